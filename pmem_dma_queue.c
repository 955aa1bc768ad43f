// SPDX-License-Identifier: GPL-2.0
/*
 * pmem_dma_queue - which queue serves which CPU, by which channels
 *
 * Every node with CPUs has queues of its own, and they use the channels of that
 * node; where it has none, those of the nearest node that has some.
 */
#include <linux/blk-mq.h>
#include <linux/delay.h>
#include <linux/dma-mapping.h>
#include <linux/iommu.h>
#include <linux/limits.h>
#include <linux/minmax.h>
#include <linux/nodemask.h>
#include <linux/rcupdate.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/topology.h>

#include "pmem.h"
#include "pmem_dma.h"

/* How long requests in flight may keep the links from being changed. */
#define PMEM_DMA_STOP_PATIENCE	(2 * HZ)

/*
 * The whole range of a disk, mapped for one DMA device.  Several devices map it
 * at the same time, which is right as long as no mapping implies work on the
 * CPU's cache: the devices are coherent, and the mappings say so.
 */
struct pmem_dma_map {
	struct list_head node;
	struct device *dev;
	dma_addr_t addr;
	bool valid;
};

static unsigned int pmem_dma_node_cpus(int nid)
{
	unsigned int cpu, n = 0;

	for_each_possible_cpu(cpu)
		n += cpu_to_node(cpu) == nid;
	return n;
}

#ifdef CONFIG_IOMMU_API
static bool pmem_dma_translated(struct device *dev)
{
	struct iommu_domain *domain = iommu_get_domain_for_dev(dev);

	return domain && iommu_is_dma_domain(domain);
}
#else
static bool pmem_dma_translated(struct device *dev)
{
	return false;
}
#endif

/*
 * An IOMMU puts the range where the device reaches it.  Without one this has to
 * be asked before: a mapping that fails for it is a kernel warning.
 */
static bool pmem_dma_reaches(struct device *dev, phys_addr_t start, u64 size)
{
	return pmem_dma_translated(dev) ||
		start + size - 1 <= min_not_zero(dma_get_mask(dev),
						 dev->bus_dma_limit);
}

/*
 * A failure is remembered as well: the other channels of the device need not
 * try, and the log has one line about it.
 */
static struct pmem_dma_map *pmem_dma_get_map(struct pmem_dma_dev *pd,
					     struct device *dev)
{
	struct pmem_device *pmem = pd->pmem;
	struct pmem_dma_map *map;

	list_for_each_entry(map, &pd->maps, node)
		if (map->dev == dev)
			return map->valid ? map : NULL;

	map = kzalloc(sizeof(*map), GFP_KERNEL);
	if (!map)
		return NULL;
	map->dev = dev;
	if (pmem_dma_reaches(dev, pmem->phys_addr, pmem->size)) {
		map->addr = dma_map_phys(dev, pmem->phys_addr, pmem->size,
					 DMA_BIDIRECTIONAL,
					 DMA_ATTR_SKIP_CPU_SYNC);
		map->valid = !dma_mapping_error(dev, map->addr);
	}
	if (!map->valid)
		dev_info(pmem->dev, "%s cannot address the pmem range, not used\n",
			 dev_name(dev));
	list_add(&map->node, &pd->maps);
	return map->valid ? map : NULL;
}

/* Of all devices, or of one.  True if there were any. */
static bool pmem_dma_drop_maps(struct pmem_dma_dev *pd, struct device *dev)
{
	struct pmem_dma_map *map, *next;
	bool any = false;

	list_for_each_entry_safe(map, next, &pd->maps, node) {
		if (dev && map->dev != dev)
			continue;
		if (map->valid)
			dma_unmap_phys(map->dev, map->addr, pd->pmem->size,
				       DMA_BIDIRECTIONAL,
				       DMA_ATTR_SKIP_CPU_SYNC);
		list_del(&map->node);
		kfree(map);
		any = true;
	}
	return any;
}

static void pmem_dma_add_link(struct pmem_dma_queue *q, int nid,
			      unsigned int index)
{
	struct pmem_dma_chan *ch = pmem_dma_chan_get(nid, index);
	struct pmem_dma_map *map;

	if (!ch)
		return;
	map = pmem_dma_get_map(q->pd, ch->dev);
	if (!map) {
		pmem_dma_chan_put(ch);
		return;
	}
	q->links[q->nr_links].ch = ch;
	q->links[q->nr_links].base = map->addr;
	q->nr_links++;
	q->pd->nr_links++;
}

/* The k-th of nq queues takes every nq-th of the node's channels. */
static int pmem_dma_link_queue(struct pmem_dma_queue *q, unsigned int k,
			       unsigned int nq, int nid, unsigned int channels)
{
	unsigned int i;

	if (!channels)
		return 0;
	q->links = kcalloc_node(DIV_ROUND_UP(channels, nq), sizeof(*q->links),
				GFP_KERNEL, q->nid);
	if (!q->links)
		return -ENOMEM;
	for (i = k % channels; i < channels && q->nr_links < BITS_PER_LONG;
	     i += nq)
		pmem_dma_add_link(q, nid, i);
	return 0;
}

static void pmem_dma_unlink_queue(struct pmem_dma_queue *q)
{
	while (q->nr_links) {
		struct pmem_dma_link *link = &q->links[--q->nr_links];

		if (link->ch)
			pmem_dma_chan_put(link->ch);
	}
	kfree(q->links);
	q->links = NULL;
	q->unissued = 0;
}

static void pmem_dma_unlink(struct pmem_dma_dev *pd)
{
	unsigned int i;

	for (i = 0; i < pd->nr_queues; i++)
		pmem_dma_unlink_queue(pd->queues[i]);
	pd->nr_links = 0;
}

/* The node whose channels a node without any of its own should use. */
static int pmem_dma_nearest(int nid, const unsigned int *channels)
{
	int best = nid, best_distance = INT_MAX, other;

	for_each_online_node(other) {
		if (channels[other] && node_distance(nid, other) < best_distance) {
			best_distance = node_distance(nid, other);
			best = other;
		}
	}
	return best;
}

/*
 * Links of all queues.  Lack of memory leaves some queues to the CPU; an
 * administrator sees which in sysfs.
 */
static void pmem_dma_link(struct pmem_dma_dev *pd, const unsigned int *channels)
{
	int nid;

	pd->nr_channels = 0;
	for_each_online_node(nid) {
		int from = channels[nid] ? nid : pmem_dma_nearest(nid, channels);
		unsigned int nq = pd->node_count[nid], k;

		pd->nr_channels += channels[nid];
		for (k = 0; k < nq; k++)
			pmem_dma_link_queue(pd->queues[pd->node_first[nid] + k],
					    k, nq, from, channels[from]);
	}
}

/* While frozen and quiesced.  Channels wait in the list for their new links. */
static void pmem_dma_relink(struct pmem_dma_dev *pd,
			    const unsigned int *channels)
{
	pmem_dma_unlink(pd);
	pmem_dma_link(pd, channels);
}

static void pmem_dma_acquire(unsigned int *channels)
{
	int nid;

	for_each_online_node(nid)
		channels[nid] =
			pmem_dma_chans_acquire(nid, pmem_dma_node_cpus(nid));
}

static int pmem_dma_add_queue(struct pmem_dma_dev *pd, int nid)
{
	struct pmem_dma_queue *q = kzalloc_node(sizeof(*q), GFP_KERNEL, nid);

	if (!q)
		return -ENOMEM;
	q->pd = pd;
	q->nid = nid;
	init_llist_head(&q->done);
	INIT_WORK(&q->work, pmem_dma_finish_work);
	pd->queues[pd->nr_queues++] = q;
	return 0;
}

static int pmem_dma_add_queues(struct pmem_dma_dev *pd, unsigned int q_per_node,
			       const unsigned int *channels)
{
	unsigned int nq, k;
	int nid, rc;

	for_each_online_node(nid) {
		nq = pmem_dma_queues_of_node(q_per_node, channels[nid],
					     pmem_dma_node_cpus(nid));
		pd->node_first[nid] = pd->nr_queues;
		for (k = 0; k < nq; k++) {
			rc = pmem_dma_add_queue(pd, nid);
			if (rc)
				return rc;
		}
		pd->node_count[nid] = nq;
	}
	return 0;
}

static int pmem_dma_alloc_tables(struct pmem_dma_dev *pd)
{
	pd->queues = kcalloc(num_possible_cpus(), sizeof(*pd->queues),
			     GFP_KERNEL);
	pd->node_first = kcalloc(nr_node_ids, sizeof(*pd->node_first),
				 GFP_KERNEL);
	pd->node_count = kcalloc(nr_node_ids, sizeof(*pd->node_count),
				 GFP_KERNEL);
	return pd->queues && pd->node_first && pd->node_count ? 0 : -ENOMEM;
}

/**
 * pmem_dma_make_queues() - make the queues of a disk and take their channels
 * @pd: the disk
 * @q_per_node: queues per node, 0 for one per channel
 *
 * Having no channel is no error.
 *
 * Context: Process context.  May sleep for a tenth of a second per channel.
 * Return: 0 or -ENOMEM, after which pmem_dma_free_queues() is still due.
 */
int pmem_dma_make_queues(struct pmem_dma_dev *pd, unsigned int q_per_node)
{
	unsigned int *channels;
	int rc;

	rc = pmem_dma_alloc_tables(pd);
	if (rc)
		return rc;
	channels = kcalloc(nr_node_ids, sizeof(*channels), GFP_KERNEL);
	if (!channels)
		return -ENOMEM;

	pmem_dma_chans_lock();
	pmem_dma_acquire(channels);
	rc = pmem_dma_add_queues(pd, q_per_node, channels);
	if (!rc)
		pmem_dma_link(pd, channels);
	pmem_dma_chans_trim();
	pmem_dma_chans_unlock();
	kfree(channels);
	return rc;
}

/**
 * pmem_dma_free_queues() - undo pmem_dma_make_queues()
 * @pd: a disk without requests in flight
 *
 * Context: Process context.  May sleep.
 */
void pmem_dma_free_queues(struct pmem_dma_dev *pd)
{
	unsigned int i;

	for (i = 0; i < pd->nr_queues; i++)
		flush_work(&pd->queues[i]->work);

	pmem_dma_chans_lock();
	pmem_dma_drop_maps(pd, NULL);
	pmem_dma_unlink(pd);
	pmem_dma_chans_trim();
	pmem_dma_chans_unlock();

	for (i = 0; i < pd->nr_queues; i++)
		kfree(pd->queues[i]);
	kfree(pd->queues);
	kfree(pd->node_first);
	kfree(pd->node_count);
}

/*
 * Nothing in flight, and no queue_rq() that still looks at the links after its
 * request was done.  A request on an engine that hangs may stay for ever, and it
 * is over only when its provider leaves, which needs the lock that we hold: so
 * there is an end to waiting.  False then.
 */
static bool pmem_dma_stop(struct pmem_dma_dev *pd)
{
	struct request_queue *rq_queue = pd->disk->queue;

	blk_freeze_queue_start(rq_queue);
	if (blk_mq_freeze_queue_wait_timeout(rq_queue, PMEM_DMA_STOP_PATIENCE) <= 0) {
		blk_mq_unfreeze_queue(rq_queue, 0);
		return false;
	}
	blk_mq_quiesce_queue(rq_queue);
	return true;
}

static void pmem_dma_go_on(struct pmem_dma_dev *pd)
{
	struct request_queue *rq_queue = pd->disk->queue;

	blk_mq_unquiesce_queue(rq_queue);
	blk_mq_unfreeze_queue(rq_queue, 0);
}

/**
 * pmem_dma_release() - give all channels of a disk back
 * @pd: the disk; the CPU copies until pmem_dma_rescan() by an administrator
 *
 * Context: Process context.  Sleeps until requests in flight are done.
 * Return: 0, or -EBUSY if they are not done within seconds; then nothing changed.
 */
int pmem_dma_release(struct pmem_dma_dev *pd)
{
	int rc = -EBUSY;

	pmem_dma_chans_lock();
	if (pmem_dma_stop(pd)) {
		pd->released = true;
		pmem_dma_drop_maps(pd, NULL);
		pmem_dma_unlink(pd);
		pd->nr_channels = 0;
		pmem_dma_go_on(pd);
		pmem_dma_chans_trim();
		rc = 0;
	}
	pmem_dma_chans_unlock();
	return rc;
}

static unsigned int pmem_dma_sum_channels(const unsigned int *channels)
{
	unsigned int sum = 0;
	int nid;

	for_each_online_node(nid)
		sum += channels[nid];
	return sum;
}

/* Frozen I/O must not be what an allocation waits for. */
static int pmem_dma_relink_stopped(struct pmem_dma_dev *pd,
				   const unsigned int *channels)
{
	unsigned int noio;

	if (!pmem_dma_stop(pd))
		return -EBUSY;
	noio = memalloc_noio_save();
	pmem_dma_relink(pd, channels);
	memalloc_noio_restore(noio);
	pmem_dma_go_on(pd);
	pmem_dma_log_queues(pd);
	return 0;
}

/**
 * pmem_dma_rescan() - use the channels that are there now
 * @pd: the disk
 * @by_admin: asked for, so do it also after pmem_dma_release()
 *
 * The number of queues stays as it is; they share what there is.
 *
 * Context: Process context.  Sleeps until requests in flight are done, if there
 * are channels that the disk does not use yet.
 * Return: 0, -ENOMEM, or -EBUSY if requests are not done within seconds; then
 *	nothing changed.
 */
int pmem_dma_rescan(struct pmem_dma_dev *pd, bool by_admin)
{
	unsigned int *channels;
	int rc = 0;

	channels = kcalloc(nr_node_ids, sizeof(*channels), GFP_KERNEL);
	if (!channels)
		return -ENOMEM;
	pmem_dma_chans_lock();
	if (by_admin || !pd->released) {
		pmem_dma_acquire(channels);
		if (pmem_dma_sum_channels(channels) > pd->nr_channels)
			rc = pmem_dma_relink_stopped(pd, channels);
		if (!rc)
			pd->released = false;
		pmem_dma_chans_trim();
	}
	pmem_dma_chans_unlock();
	kfree(channels);
	return rc;
}

/**
 * pmem_dma_let_submitters_pass() - wait for queue_rq() calls under way
 * @pd: the disk
 *
 * Those that begin later see channel states as they are now.
 *
 * Context: Process context.  May sleep.
 */
void pmem_dma_let_submitters_pass(struct pmem_dma_dev *pd)
{
	blk_mq_quiesce_queue(pd->disk->queue);
	blk_mq_unquiesce_queue(pd->disk->queue);
}

/* Links to channels of a device become holes, which a later relink fills. */
static void pmem_dma_cut_links(struct pmem_dma_dev *pd, struct device *dev)
{
	unsigned int i, k;

	for (i = 0; i < pd->nr_queues; i++) {
		struct pmem_dma_queue *q = pd->queues[i];

		for (k = 0; k < q->nr_links; k++) {
			struct pmem_dma_chan *ch = q->links[k].ch;

			if (!ch || !pmem_dma_chan_is_of(ch, dev))
				continue;
			WRITE_ONCE(q->links[k].ch, NULL);
			pmem_dma_chan_put(ch);
			pd->nr_links--;
		}
	}
}

/**
 * pmem_dma_leave() - let go of the channels of a device
 * @pd: the disk
 * @dev: the device; pmem_dma_chans_shun() and pmem_dma_chans_stop() were called for
 *	it, so that its requests are with the CPU or done
 *
 * Requests on other devices are not waited for: one of those may hang, too.
 *
 * Context: Process context.  Sleeps until the CPU has redone what the device left.
 */
void pmem_dma_leave(struct pmem_dma_dev *pd, struct device *dev)
{
	pmem_dma_chans_lock();
	/* Their memory is still mapped for the device. */
	while (pmem_dma_busy_with(pd, dev))
		msleep(20);
	blk_mq_quiesce_queue(pd->disk->queue);
	pmem_dma_cut_links(pd, dev);
	blk_mq_unquiesce_queue(pd->disk->queue);
	pmem_dma_drop_maps(pd, dev);
	/* Have the next rescan link anew, for queues that lost all they had. */
	pd->nr_channels = 0;
	synchronize_rcu();	/* pmem_dma_watch_rq() */
	pmem_dma_chans_trim();
	pmem_dma_chans_unlock();
	dev_info(pd->pmem->dev, "%s leaves\n", dev_name(dev));
	pmem_dma_log_queues(pd);
}

/**
 * pmem_dma_forget() - a device leaves of which the disk uses no channel
 * @pd: the disk
 * @dev: the device
 *
 * It may have been of no use to this disk only: what is known about it must not
 * be taken for knowledge about a device that comes in its place.
 *
 * Context: Process context.  May sleep.
 */
void pmem_dma_forget(struct pmem_dma_dev *pd, struct device *dev)
{
	pmem_dma_chans_lock();
	/* Its channels were counted all the same: have the next rescan link anew. */
	if (pmem_dma_drop_maps(pd, dev))
		pd->nr_channels = 0;
	pmem_dma_chans_unlock();
}

/**
 * pmem_dma_log_queues() - the line that says what a disk works with
 * @pd: the disk
 */
void pmem_dma_log_queues(struct pmem_dma_dev *pd)
{
	if (pd->nr_links)
		dev_info(pd->pmem->dev, "%u queues on %u DMA channels\n",
			 pd->nr_queues, pd->nr_channels);
	else
		dev_info(pd->pmem->dev, "no DMA channel, the CPU copies\n");
}

/**
 * pmem_dma_map_queues() - send every CPU to a queue of its own node
 * @set: the disk's tag set
 *
 * The block layer may have settled for fewer queues than asked for (a crash
 * kernel has one), hence the last remainder.
 *
 * Context: Process context.
 */
void pmem_dma_map_queues(struct blk_mq_tag_set *set)
{
	struct blk_mq_queue_map *map = &set->map[HCTX_TYPE_DEFAULT];
	struct pmem_dma_dev *pd = set->driver_data;
	unsigned int cpu, other, rank;

	for_each_possible_cpu(cpu) {
		int nid = cpu_to_node(cpu);
		unsigned int queue = 0;

		if (nid != NUMA_NO_NODE && pd->node_count[nid]) {
			rank = 0;
			for_each_possible_cpu(other)
				rank += other < cpu && cpu_to_node(other) == nid;
			queue = pd->node_first[nid] +
				rank % pd->node_count[nid];
		}
		map->mq_map[cpu] = queue % map->nr_queues;
	}
}
