// SPDX-License-Identifier: GPL-2.0
/*
 * pmem_dma_provider - providers of DMA channels that leave and come
 *
 * Unbinding a provider through sysfs is not refused while channels are in use,
 * and nobody tells their clients but the bus.  Before the provider goes, every
 * disk lets go of its channels, with nothing in flight; the CPU copies from then
 * on.  After a device got a driver, the disks look for channels again.
 *
 * Locking: the list of disks is read under SRCU, because its readers wait for
 * I/O, which in turn may need pmem_dma_recover(), another reader.
 */
#include <linux/delay.h>
#include <linux/device.h>
#include <linux/jiffies.h>
#include <linux/notifier.h>
#include <linux/pci.h>
#include <linux/platform_device.h>
#include <linux/srcu.h>
#include <linux/workqueue.h>

#include "pmem_dma.h"

/* A device is bound before its channels are registered, and rarely comes alone. */
#define PMEM_DMA_RESCAN_DELAY	(HZ / 2)

/* After requests in flight were in the way: each try holds up new ones. */
#define PMEM_DMA_RESCAN_AGAIN	(20 * HZ)

/* How long a leaving provider may take to finish what it has. */
#define PMEM_DMA_LEAVE_PATIENCE	(2 * HZ)

static LIST_HEAD(pmem_dma_disks);
static DEFINE_SPINLOCK(pmem_dma_disks_lock);	/* additions and removals */
DEFINE_STATIC_SRCU(pmem_dma_disks_srcu);

static void pmem_dma_rescan_work(struct work_struct *work);
static DECLARE_DELAYED_WORK(pmem_dma_rescan_dwork, pmem_dma_rescan_work);

static void pmem_dma_rescan_soon(unsigned long delay)
{
	mod_delayed_work(system_unbound_wq, &pmem_dma_rescan_dwork, delay);
}

/**
 * pmem_dma_add_disk() - let a disk take part in what happens to providers
 * @pd: the disk, ready for requests
 *
 * Context: Process context.
 */
void pmem_dma_add_disk(struct pmem_dma_dev *pd)
{
	spin_lock(&pmem_dma_disks_lock);
	list_add_tail_rcu(&pd->node, &pmem_dma_disks);
	spin_unlock(&pmem_dma_disks_lock);
}

/**
 * pmem_dma_del_disk() - undo pmem_dma_add_disk()
 * @pd: the disk
 *
 * Context: Process context.  Sleeps until nobody looks at the disk any more.
 */
void pmem_dma_del_disk(struct pmem_dma_dev *pd)
{
	spin_lock(&pmem_dma_disks_lock);
	list_del_rcu(&pd->node);
	spin_unlock(&pmem_dma_disks_lock);
	synchronize_srcu(&pmem_dma_disks_srcu);
}

/**
 * pmem_dma_mark_disks() - remember which requests a channel has
 * @ch: the channel, about to be stopped; pmem_dma_reap_disks() follows
 *
 * Context: Process context.  May sleep.
 */
void pmem_dma_mark_disks(struct pmem_dma_chan *ch)
{
	int idx = srcu_read_lock(&pmem_dma_disks_srcu);
	struct pmem_dma_dev *pd;

	list_for_each_entry_srcu(pd, &pmem_dma_disks, node,
				 srcu_read_lock_held(&pmem_dma_disks_srcu))
		pmem_dma_mark(pd, ch);
	srcu_read_unlock(&pmem_dma_disks_srcu, idx);
}

/**
 * pmem_dma_reap_disks() - finish by CPU what a channel will never finish
 * @ch: the channel
 * @before: cookie of a descriptor; only requests submitted before it are over.
 *	0 for those that pmem_dma_mark_disks() has marked.
 *
 * Context: Process context.  May sleep.
 * Return: number of requests.
 */
unsigned int pmem_dma_reap_disks(struct pmem_dma_chan *ch, dma_cookie_t before)
{
	int idx = srcu_read_lock(&pmem_dma_disks_srcu);
	struct pmem_dma_dev *pd;
	unsigned int n = 0;

	list_for_each_entry_srcu(pd, &pmem_dma_disks, node,
				 srcu_read_lock_held(&pmem_dma_disks_srcu))
		n += pmem_dma_reap(pd, ch, before);
	srcu_read_unlock(&pmem_dma_disks_srcu, idx);
	return n;
}

/**
 * pmem_dma_count_inflight() - how many requests are on a channel
 * @ch: the channel
 *
 * Context: Process context.  May sleep.
 * Return: number of requests of all disks.
 */
unsigned int pmem_dma_count_inflight(struct pmem_dma_chan *ch)
{
	int idx = srcu_read_lock(&pmem_dma_disks_srcu);
	struct pmem_dma_dev *pd;
	unsigned int n = 0;

	list_for_each_entry_srcu(pd, &pmem_dma_disks, node,
				 srcu_read_lock_held(&pmem_dma_disks_srcu))
		n += pmem_dma_inflight(pd, ch, NULL);
	srcu_read_unlock(&pmem_dma_disks_srcu, idx);
	return n;
}

static void pmem_dma_forget_all(struct device *dev)
{
	int idx = srcu_read_lock(&pmem_dma_disks_srcu);
	struct pmem_dma_dev *pd;

	list_for_each_entry_srcu(pd, &pmem_dma_disks, node,
				 srcu_read_lock_held(&pmem_dma_disks_srcu))
		pmem_dma_forget(pd, dev);
	srcu_read_unlock(&pmem_dma_disks_srcu, idx);
}

/*
 * The provider is still there and works on; it leaves when we return.  What it
 * does not finish in time is taken from it: a channel without users is stopped.
 */
static void pmem_dma_provider_leaves(struct device *dev)
{
	unsigned long end = jiffies + PMEM_DMA_LEAVE_PATIENCE;
	struct pmem_dma_dev *pd;
	bool ours;
	int idx;

	pmem_dma_chans_lock();
	ours = pmem_dma_chans_shun(dev);
	pmem_dma_chans_unlock();
	if (!ours) {
		pmem_dma_forget_all(dev);
		return;
	}

	idx = srcu_read_lock(&pmem_dma_disks_srcu);
	list_for_each_entry_srcu(pd, &pmem_dma_disks, node,
				 srcu_read_lock_held(&pmem_dma_disks_srcu))
		pmem_dma_let_submitters_pass(pd);
	while (!pmem_dma_chans_drained(dev) && time_before(jiffies, end))
		msleep(20);
	pmem_dma_chans_stop(dev);

	list_for_each_entry_srcu(pd, &pmem_dma_disks, node,
				 srcu_read_lock_held(&pmem_dma_disks_srcu))
		pmem_dma_leave(pd, dev);
	srcu_read_unlock(&pmem_dma_disks_srcu, idx);
	/* Queues that lost their channels may share those of another node. */
	pmem_dma_rescan_soon(PMEM_DMA_RESCAN_DELAY);
}

static void pmem_dma_rescan_work(struct work_struct *work)
{
	int idx = srcu_read_lock(&pmem_dma_disks_srcu);
	struct pmem_dma_dev *pd;
	bool again = false;

	list_for_each_entry_srcu(pd, &pmem_dma_disks, node,
				 srcu_read_lock_held(&pmem_dma_disks_srcu))
		again |= pmem_dma_rescan(pd, false) != 0;
	srcu_read_unlock(&pmem_dma_disks_srcu, idx);
	if (again)
		pmem_dma_rescan_soon(PMEM_DMA_RESCAN_AGAIN);
}

static int pmem_dma_bus_event(struct notifier_block *nb, unsigned long event,
			      void *data)
{
	switch (event) {
	case BUS_NOTIFY_UNBIND_DRIVER:
		pmem_dma_provider_leaves(data);
		break;
	case BUS_NOTIFY_UNBOUND_DRIVER:
		pmem_dma_chans_lock();
		pmem_dma_chans_unshun(data);
		pmem_dma_chans_unlock();
		break;
	case BUS_NOTIFY_BOUND_DRIVER:
		if (!list_empty(&pmem_dma_disks))
			pmem_dma_rescan_soon(PMEM_DMA_RESCAN_DELAY);
		break;
	}
	return NOTIFY_OK;
}

static struct notifier_block pmem_dma_platform_nb = {
	.notifier_call = pmem_dma_bus_event,
};

#ifdef CONFIG_PCI
static struct notifier_block pmem_dma_pci_nb = {
	.notifier_call = pmem_dma_bus_event,
};

static int pmem_dma_watch_pci(void)
{
	return bus_register_notifier(&pci_bus_type, &pmem_dma_pci_nb);
}

static void pmem_dma_unwatch_pci(void)
{
	bus_unregister_notifier(&pci_bus_type, &pmem_dma_pci_nb);
}
#else
static int pmem_dma_watch_pci(void)
{
	return 0;
}

static void pmem_dma_unwatch_pci(void)
{
}
#endif

/**
 * pmem_dma_provider_init() - watch the buses that have DMA engines
 *
 * Context: Process context.  May sleep.
 * Return: 0 or a negative errno.
 */
int pmem_dma_provider_init(void)
{
	int rc = bus_register_notifier(&platform_bus_type,
				       &pmem_dma_platform_nb);

	if (rc)
		return rc;
	rc = pmem_dma_watch_pci();
	if (rc)
		bus_unregister_notifier(&platform_bus_type,
					&pmem_dma_platform_nb);
	return rc;
}

/**
 * pmem_dma_provider_exit() - undo pmem_dma_provider_init()
 *
 * Context: Process context.  May sleep.
 */
void pmem_dma_provider_exit(void)
{
	pmem_dma_unwatch_pci();
	bus_unregister_notifier(&platform_bus_type, &pmem_dma_platform_nb);
	cancel_delayed_work_sync(&pmem_dma_rescan_dwork);
}
