/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the parts of pmem_dma share
 */
#ifndef _PMEM_DMA_H
#define _PMEM_DMA_H

#include <linux/atomic.h>
#include <linux/blk-mq.h>
#include <linux/list.h>
#include <linux/llist.h>
#include <linux/types.h>
#include <linux/workqueue.h>

#include "pmem_dma_plan.h"

struct dma_chan;
struct pmem_device;

/**
 * struct pmem_dma_chan - a dmaengine channel, shared by all disks
 * @node: link in the module's list
 * @chan: the channel
 * @dev: device that does the DMA; memory is mapped for it
 * @nid: NUMA node of @dev
 * @refs: disks that use it; under the lock of pmem_dma_chan.c
 * @limits: what one descriptor can move
 * @ordered: descriptors complete in the order of submission, so that the
 *	interrupt of the last one stands for all
 * @suspect: a request on it timed out and none has completed since
 */
struct pmem_dma_chan {
	struct list_head node;
	struct dma_chan *chan;
	struct device *dev;
	int nid;
	unsigned int refs;
	struct pmem_dma_limits limits;
	bool ordered;
	bool suspect;
};

/**
 * struct pmem_dma_link - a channel as one disk uses it
 * @ch: the channel
 * @base: DMA address of the disk's mapped range for @ch->dev
 */
struct pmem_dma_link {
	struct pmem_dma_chan *ch;
	dma_addr_t base;
};

/**
 * struct pmem_dma_queue - a hardware queue (hctx)
 * @pd: its disk
 * @nid: node whose CPUs submit to it
 * @links: channels that serve it
 * @nr_links: number of @links, 0 when the CPU copies everything
 * @next: counts requests, to go round @links
 * @unissued: bit per link with descriptors that wait for issue_pending; set
 *	after the submit, cleared before the issue
 * @done: requests that need process context to finish
 * @work: finishes them
 */
struct pmem_dma_queue {
	struct pmem_dma_dev *pd;
	int nid;
	struct pmem_dma_link *links;
	unsigned int nr_links;
	atomic_t next;
	unsigned long unissued;

	/* Written by whoever completes, often another CPU. */
	struct llist_head done ____cacheline_aligned_in_smp;
	struct work_struct work;
};

/**
 * struct pmem_dma_stats - what one CPU counted for a disk
 * @requests: by path and direction (0 read, 1 write)
 * @bytes: moved, by direction, by engine (0) or CPU (1)
 * @errors: descriptors that an engine reported as failed
 * @flushes: flush requests and FUA writes
 * @timeouts: requests that the block layer found late
 */
struct pmem_dma_stats {
	u64 requests[PMEM_DMA_NR_PATHS][2];
	u64 bytes[2][2];
	u64 errors;
	u64 flushes;
	u64 timeouts;
};

/**
 * struct pmem_dma_dev - one disk
 * @pmem: the core's half
 * @set: tag set
 * @policy: enum pmem_dma_policy
 * @min_bytes: shortest request for an engine, by direction
 * @stats: per CPU
 * @queues: one per hctx
 * @nr_queues: number of @queues
 * @node_first: first queue of each node, indexed by node id
 * @node_count: queues of each node
 * @maps: pmem ranges mapped for DMA devices
 */
struct pmem_dma_dev {
	struct pmem_device *pmem;
	struct blk_mq_tag_set set;
	unsigned int policy;
	u32 min_bytes[2];
	struct pmem_dma_stats __percpu *stats;
	struct pmem_dma_queue **queues;
	unsigned int nr_queues;
	unsigned int *node_first;
	unsigned int *node_count;
	struct list_head maps;
};

/* pmem_dma_chan.c */
void pmem_dma_chans_lock(void);
void pmem_dma_chans_unlock(void);
unsigned int pmem_dma_chans_acquire(int nid, unsigned int want);
struct pmem_dma_chan *pmem_dma_chan_get(int nid, unsigned int index);
void pmem_dma_chan_put(struct pmem_dma_chan *ch);
void pmem_dma_chans_trim(void);

/* pmem_dma_queue.c */
int pmem_dma_make_queues(struct pmem_dma_dev *pd, unsigned int q_per_node);
void pmem_dma_free_queues(struct pmem_dma_dev *pd);
void pmem_dma_map_queues(struct blk_mq_tag_set *set);
unsigned int pmem_dma_count_channels(const struct pmem_dma_dev *pd);

/* pmem_dma_sysfs.c */
extern const struct attribute_group *pmem_dma_groups[];

/* pmem_dma.c */
void pmem_dma_finish_work(struct work_struct *work);

#endif /* _PMEM_DMA_H */
