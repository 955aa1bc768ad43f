// SPDX-License-Identifier: GPL-2.0
/*
 * pmem_dma_queue - which queue serves which CPU, by which channels
 *
 * Every node with CPUs has queues of its own, and they use the channels of that
 * node; where it has none, those of the nearest node that has some.
 */
#include <linux/dma-mapping.h>
#include <linux/limits.h>
#include <linux/nodemask.h>
#include <linux/slab.h>
#include <linux/topology.h>

#include "pmem.h"
#include "pmem_dma.h"

/* The whole range of a disk, mapped for one DMA device. */
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
	map->addr = dma_map_phys(dev, pmem->phys_addr, pmem->size,
				 DMA_BIDIRECTIONAL, 0);
	map->valid = !dma_mapping_error(dev, map->addr);
	if (!map->valid)
		dev_info(pmem->dev, "%s cannot address the pmem range, not used\n",
			 dev_name(dev));
	list_add(&map->node, &pd->maps);
	return map->valid ? map : NULL;
}

static void pmem_dma_drop_maps(struct pmem_dma_dev *pd)
{
	struct pmem_dma_map *map, *next;

	list_for_each_entry_safe(map, next, &pd->maps, node) {
		if (map->valid)
			dma_unmap_phys(map->dev, map->addr, pd->pmem->size,
				       DMA_BIDIRECTIONAL, 0);
		list_del(&map->node);
		kfree(map);
	}
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

static struct pmem_dma_queue *pmem_dma_add_queue(struct pmem_dma_dev *pd,
						 int nid)
{
	struct pmem_dma_queue *q = kzalloc_node(sizeof(*q), GFP_KERNEL, nid);

	if (!q)
		return NULL;
	q->pd = pd;
	q->nid = nid;
	init_llist_head(&q->done);
	INIT_WORK(&q->work, pmem_dma_finish_work);
	pd->queues[pd->nr_queues++] = q;
	return q;
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

static int pmem_dma_make_node(struct pmem_dma_dev *pd, int nid,
			      unsigned int q_per_node,
			      const unsigned int *channels)
{
	int from = channels[nid] ? nid : pmem_dma_nearest(nid, channels);
	unsigned int nq = pmem_dma_queues_of_node(q_per_node, channels[nid],
						  pmem_dma_node_cpus(nid));
	unsigned int k;

	pd->node_first[nid] = pd->nr_queues;
	for (k = 0; k < nq; k++) {
		struct pmem_dma_queue *q = pmem_dma_add_queue(pd, nid);

		if (!q || pmem_dma_link_queue(q, k, nq, from, channels[from]))
			return -ENOMEM;
	}
	pd->node_count[nid] = nq;
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
	int nid, rc;

	INIT_LIST_HEAD(&pd->maps);
	rc = pmem_dma_alloc_tables(pd);
	if (rc)
		return rc;
	channels = kcalloc(nr_node_ids, sizeof(*channels), GFP_KERNEL);
	if (!channels)
		return -ENOMEM;

	pmem_dma_chans_lock();
	for_each_online_node(nid)
		channels[nid] =
			pmem_dma_chans_acquire(nid, pmem_dma_node_cpus(nid));
	for_each_online_node(nid) {
		rc = pmem_dma_make_node(pd, nid, q_per_node, channels);
		if (rc)
			break;
	}
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
	unsigned int i, k;

	for (i = 0; i < pd->nr_queues; i++)
		flush_work(&pd->queues[i]->work);
	pmem_dma_drop_maps(pd);

	pmem_dma_chans_lock();
	for (i = 0; i < pd->nr_queues; i++) {
		struct pmem_dma_queue *q = pd->queues[i];

		for (k = 0; k < q->nr_links; k++)
			pmem_dma_chan_put(q->links[k].ch);
		kfree(q->links);
		kfree(q);
	}
	pmem_dma_chans_unlock();
	kfree(pd->queues);
	kfree(pd->node_first);
	kfree(pd->node_count);
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

/**
 * pmem_dma_count_channels() - how many channels a disk uses
 * @pd: the disk
 *
 * Return: number of links of all queues; a channel shared by several queues
 * counts for each.
 */
unsigned int pmem_dma_count_channels(const struct pmem_dma_dev *pd)
{
	unsigned int i, n = 0;

	for (i = 0; i < pd->nr_queues; i++)
		n += pd->queues[i]->nr_links;
	return n;
}
