// SPDX-License-Identifier: GPL-2.0
/*
 * pmem_dma_chan - the module's dmaengine channels
 *
 * A channel costs megabytes of ring and a tenth of a second to set up, and a
 * machine has few: the module takes each once and its disks share them.
 *
 * Locking: pmem_dma_chans_lock() covers the list and the references.  It is a
 * mutex because requesting and releasing a channel sleeps, and its callers hold
 * it over a whole set-up so that nobody trims what they are about to take.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/dma-map-ops.h>
#include <linux/dmaengine.h>
#include <linux/log2.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/sizes.h>
#include <linux/slab.h>

#include "pmem_dma.h"

/* A device whose provider is leaving: its channels are not taken any more. */
struct pmem_dma_shunned {
	struct list_head node;
	struct device *dev;
};

static LIST_HEAD(pmem_dma_chans);
static LIST_HEAD(pmem_dma_shunned);
static DEFINE_MUTEX(pmem_dma_chans_mutex);

void pmem_dma_chans_lock(void)
{
	mutex_lock(&pmem_dma_chans_mutex);
}

void pmem_dma_chans_unlock(void)
{
	mutex_unlock(&pmem_dma_chans_mutex);
}

/*
 * The CPU does not maintain its cache around our transfers on the pmem side,
 * which is mapped once and for all: the device has to see the cache itself.
 */
static bool pmem_dma_dev_suits(struct device *dev, int nid)
{
	return dev_to_node(dev) == nid && dev_is_dma_coherent(dev);
}

/* What pmem_dma_chan_suits() is asked for. */
struct pmem_dma_wanted {
	int nid;
	struct module *owner;	/* of the channel that was found, held */
};

/*
 * Channels of a device that is being unregistered come by as well, and with @dev
 * already freed: dmaengine_get_dma_device() has to wait until one is ours.
 *
 * The provider's module is held from here on, as it may be about to be removed: a
 * dmaengine that finds this out by itself takes the device off its list, where the
 * removal does so once more.
 */
static bool pmem_dma_chan_suits(struct dma_chan *chan, void *data)
{
	struct pmem_dma_wanted *wanted = data;
	struct dma_device *dd = chan->device;
	struct pmem_dma_shunned *shunned;

	list_for_each_entry(shunned, &pmem_dma_shunned, node)
		if (shunned->dev == dd->dev)
			return false;
	if (!pmem_dma_dev_suits(dd->dev, wanted->nid) ||
	    !try_module_get(dd->owner))
		return false;
	/* An earlier one that could not be set up. */
	module_put(wanted->owner);
	wanted->owner = dd->owner;
	return true;
}

static struct dma_chan *pmem_dma_chan_find(int nid)
{
	struct pmem_dma_wanted wanted = { .nid = nid };
	struct dma_chan *chan;
	dma_cap_mask_t mask;

	dma_cap_zero(mask);
	dma_cap_set(DMA_MEMCPY, mask);
	chan = dma_request_channel(mask, pmem_dma_chan_suits, &wanted);
	/* The channel holds it by itself. */
	module_put(wanted.owner);
	return chan;
}

/*
 * 64 KiB is what a device reports that was never told a limit, which goes for
 * all engines that we know of.  They split long copies themselves (ioatdma) or
 * take 2 MiB at once (idxd).  What is longer than a bounce buffer cannot be
 * mapped where everything has to go through one.
 */
static u32 pmem_dma_max_len(struct device *dev)
{
	u32 len = dma_get_max_seg_size(dev);

	len = len == SZ_64K ? SZ_1M : min_t(u32, len, SZ_1G);
	return min_t(size_t, len, dma_max_mapping_size(dev));
}

static struct pmem_dma_chan *pmem_dma_chan_request(int nid)
{
	struct pmem_dma_chan *ch;
	u32 align;

	ch = kzalloc_node(sizeof(*ch), GFP_KERNEL, nid);
	if (!ch)
		return NULL;
	ch->chan = pmem_dma_chan_find(nid);
	if (!ch->chan) {
		kfree(ch);
		return NULL;
	}
	ch->dev = dmaengine_get_dma_device(ch->chan);
	if (!pmem_dma_dev_suits(ch->dev, nid))
		goto out_release;
	ch->nid = nid;
	ch->ordered = !dma_has_cap(DMA_COMPLETION_NO_ORDER,
				   ch->chan->device->cap_mask);
	align = 1U << ch->chan->device->copy_align;
	ch->limits.align_mask = align - 1;
	ch->limits.max_len = max(round_down(pmem_dma_max_len(ch->dev), align),
				 align);
	if (pmem_dma_health_init(ch))
		goto out_release;
	list_add_tail(&ch->node, &pmem_dma_chans);
	return ch;

out_release:
	dma_release_channel(ch->chan);
	kfree(ch);
	return NULL;
}

static void pmem_dma_chan_release(struct pmem_dma_chan *ch)
{
	list_del(&ch->node);
	if (!ch->stopped)
		pmem_dma_health_exit(ch);
	kfree(ch);
}

/* The index-th channel of a node in the list that will stay, or NULL. */
static struct pmem_dma_chan *pmem_dma_chan_nth(int nid, unsigned int index)
{
	struct pmem_dma_chan *ch;

	list_for_each_entry(ch, &pmem_dma_chans, node)
		if (ch->nid == nid && READ_ONCE(ch->state) != PMEM_DMA_GONE &&
		    !index--)
			return ch;
	return NULL;
}

/**
 * pmem_dma_chans_acquire() - have channels of a node in the list
 * @nid: the node
 * @want: how many
 *
 * Context: Process context, under pmem_dma_chans_lock().  May sleep.
 * Return: how many there are, at most @want.
 */
unsigned int pmem_dma_chans_acquire(int nid, unsigned int want)
{
	unsigned int n = 0;

	lockdep_assert_held(&pmem_dma_chans_mutex);
	while (n < want &&
	       (pmem_dma_chan_nth(nid, n) || pmem_dma_chan_request(nid)))
		n++;
	return n;
}

/**
 * pmem_dma_chan_get() - take a reference to a channel in the list
 * @nid: its node
 * @index: its number among those of the node
 *
 * Context: Under pmem_dma_chans_lock().
 * Return: the channel, or NULL if there is none of that number.
 */
struct pmem_dma_chan *pmem_dma_chan_get(int nid, unsigned int index)
{
	struct pmem_dma_chan *ch = pmem_dma_chan_nth(nid, index);

	lockdep_assert_held(&pmem_dma_chans_mutex);
	if (ch)
		ch->refs++;
	return ch;
}

/**
 * pmem_dma_chan_put() - drop a reference
 * @ch: a channel on which the caller has nothing in flight
 *
 * The channel stays in the list until pmem_dma_chans_trim().
 *
 * Context: Under pmem_dma_chans_lock().
 */
void pmem_dma_chan_put(struct pmem_dma_chan *ch)
{
	lockdep_assert_held(&pmem_dma_chans_mutex);
	ch->refs--;
}

/**
 * pmem_dma_chans_trim() - give channels without references back
 *
 * Context: Process context, under pmem_dma_chans_lock().  May sleep.
 */
void pmem_dma_chans_trim(void)
{
	struct pmem_dma_chan *ch, *next;

	lockdep_assert_held(&pmem_dma_chans_mutex);
	list_for_each_entry_safe(ch, next, &pmem_dma_chans, node)
		if (!ch->refs)
			pmem_dma_chan_release(ch);
}

/**
 * pmem_dma_chan_is_of() - does a channel belong to a device?
 * @ch: the channel
 * @dev: the device that is bound to the provider, or does the DMA
 *
 * Context: Any.
 * Return: true if so.
 */
bool pmem_dma_chan_is_of(const struct pmem_dma_chan *ch,
			 const struct device *dev)
{
	return ch->dev == dev || ch->chan->device->dev == dev;
}

/**
 * pmem_dma_chans_drained() - is nothing in flight on the channels of a device?
 * @dev: the device
 *
 * Context: Process context, not under pmem_dma_chans_lock().  May sleep.
 * Return: true if so.
 */
bool pmem_dma_chans_drained(struct device *dev)
{
	struct pmem_dma_chan *ch;
	unsigned int n = 0;

	pmem_dma_chans_lock();
	list_for_each_entry(ch, &pmem_dma_chans, node)
		if (pmem_dma_chan_is_of(ch, dev))
			n += pmem_dma_count_inflight(ch);
	pmem_dma_chans_unlock();
	return !n;
}

/**
 * pmem_dma_chans_stop() - release the channels of a leaving device
 * @dev: the device; pmem_dma_chans_shun() was called for it
 *
 * Requests that are still on them are redone by the CPU.
 *
 * Context: Process context, not under pmem_dma_chans_lock().  May sleep.
 */
void pmem_dma_chans_stop(struct device *dev)
{
	struct pmem_dma_chan *ch;
	unsigned int n;

	pmem_dma_chans_lock();
	list_for_each_entry(ch, &pmem_dma_chans, node) {
		/* One that was stopped has no device any more. */
		if (ch->stopped || !pmem_dma_chan_is_of(ch, dev))
			continue;
		pmem_dma_mark_disks(ch);
		pmem_dma_health_exit(ch);
		ch->stopped = true;
		n = pmem_dma_reap_disks(ch, 0);
		if (n)
			dev_warn(dev, "left %u requests undone, redone by CPU\n",
				 n);
	}
	pmem_dma_chans_unlock();
}

/**
 * pmem_dma_chans_shun() - the provider of a device is leaving
 * @dev: the device
 *
 * Its channels become PMEM_DMA_GONE, and no more are taken.
 *
 * Context: Process context, under pmem_dma_chans_lock().
 * Return: true if there were channels of it in the list.
 */
bool pmem_dma_chans_shun(struct device *dev)
{
	struct pmem_dma_shunned *shunned;
	struct pmem_dma_chan *ch;
	bool any = false;

	lockdep_assert_held(&pmem_dma_chans_mutex);
	list_for_each_entry(ch, &pmem_dma_chans, node) {
		/* One that was stopped has no device any more. */
		if (ch->stopped || !pmem_dma_chan_is_of(ch, dev))
			continue;
		pmem_dma_chan_leaves(ch);
		any = true;
	}
	if (!any)
		return false;
	/* Small, and without it the provider would hang on a new reference. */
	shunned = kmalloc(sizeof(*shunned), GFP_KERNEL | __GFP_NOFAIL);
	shunned->dev = dev;
	list_add(&shunned->node, &pmem_dma_shunned);
	return true;
}

/**
 * pmem_dma_chans_unshun() - the provider of a device has left
 * @dev: the device
 *
 * Context: Process context, under pmem_dma_chans_lock().
 */
void pmem_dma_chans_unshun(struct device *dev)
{
	struct pmem_dma_shunned *shunned, *next;

	lockdep_assert_held(&pmem_dma_chans_mutex);
	list_for_each_entry_safe(shunned, next, &pmem_dma_shunned, node) {
		if (shunned->dev == dev) {
			list_del(&shunned->node);
			kfree(shunned);
		}
	}
}
