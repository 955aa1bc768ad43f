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
#include <linux/mutex.h>
#include <linux/sizes.h>
#include <linux/slab.h>

#include "pmem_dma.h"

static LIST_HEAD(pmem_dma_chans);
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
static bool pmem_dma_chan_suits(struct dma_chan *chan, void *nid)
{
	struct device *dev = dmaengine_get_dma_device(chan);

	return dev_to_node(dev) == *(int *)nid && dev_is_dma_coherent(dev);
}

static struct pmem_dma_chan *pmem_dma_chan_request(int nid)
{
	struct pmem_dma_chan *ch;
	dma_cap_mask_t mask;
	u32 align;

	ch = kzalloc_node(sizeof(*ch), GFP_KERNEL, nid);
	if (!ch)
		return NULL;
	dma_cap_zero(mask);
	dma_cap_set(DMA_MEMCPY, mask);
	ch->chan = dma_request_channel(mask, pmem_dma_chan_suits, &nid);
	if (!ch->chan) {
		kfree(ch);
		return NULL;
	}
	ch->dev = dmaengine_get_dma_device(ch->chan);
	ch->nid = nid;
	ch->ordered = !dma_has_cap(DMA_COMPLETION_NO_ORDER,
				   ch->chan->device->cap_mask);
	align = 1U << ch->chan->device->copy_align;
	ch->limits.align_mask = align - 1;
	/* A device without parameters of its own reports 64 KiB, no limit. */
	ch->limits.max_len = ch->dev->dma_parms ?
		round_down(dma_get_max_seg_size(ch->dev), align) : SZ_1G;
	if (!ch->limits.max_len)
		ch->limits.max_len = align;
	list_add_tail(&ch->node, &pmem_dma_chans);
	return ch;
}

static void pmem_dma_chan_release(struct pmem_dma_chan *ch)
{
	list_del(&ch->node);
	dma_release_channel(ch->chan);
	kfree(ch);
}

/* The index-th channel of a node in the list, or NULL. */
static struct pmem_dma_chan *pmem_dma_chan_nth(int nid, unsigned int index)
{
	struct pmem_dma_chan *ch;

	list_for_each_entry(ch, &pmem_dma_chans, node)
		if (ch->nid == nid && !index--)
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
 * The last one gives the channel back to its provider.
 *
 * Context: Process context, under pmem_dma_chans_lock().  May sleep.
 */
void pmem_dma_chan_put(struct pmem_dma_chan *ch)
{
	lockdep_assert_held(&pmem_dma_chans_mutex);
	if (!--ch->refs)
		pmem_dma_chan_release(ch);
}

/**
 * pmem_dma_chans_trim() - give back channels that nobody took a reference to
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
