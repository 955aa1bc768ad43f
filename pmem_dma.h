/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the parts of pmem_dma share
 */
#ifndef _PMEM_DMA_H
#define _PMEM_DMA_H

#include <linux/atomic.h>
#include <linux/blk-mq.h>
#include <linux/completion.h>
#include <linux/dmaengine.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/llist.h>
#include <linux/mutex.h>
#include <linux/types.h>
#include <linux/workqueue.h>

#include "pmem_dma_plan.h"

struct dentry;
struct pmem_device;
struct pmem_dma_slot;

/**
 * enum pmem_dma_state - how far a channel is trusted; see pmem_dma_health.c
 * @PMEM_DMA_HEALTHY: gets requests
 * @PMEM_DMA_SUSPECT: a request on it is overdue
 * @PMEM_DMA_BENCHED: failed too often, rests for a while
 * @PMEM_DMA_GONE: its provider is leaving
 */
enum pmem_dma_state {
	PMEM_DMA_HEALTHY,
	PMEM_DMA_SUSPECT,
	PMEM_DMA_BENCHED,
	PMEM_DMA_GONE,
};

/* Before the number of a suspicion is used again, its probes have long been answered. */
#define PMEM_DMA_SUSPICIONS	64

/**
 * struct pmem_dma_chan - a dmaengine channel, shared by all disks
 * @node: link in the module's list
 * @chan: the channel
 * @dev: device that does the DMA; memory is mapped for it
 * @nid: NUMA node of @dev
 * @refs: links to it; under pmem_dma_chans_lock()
 * @stopped: already given back, before its provider left; under the same lock
 * @limits: what one descriptor can move
 * @ordered: descriptors complete in the order of submission, so that the
 *	interrupt of the last one stands for all
 * @state: enum pmem_dma_state
 * @strikes: failed descriptors since the last good one; a hint, not exact
 * @bench_secs: how long the next rest is, 0 if it never rested
 * @bench_end: end of the rest, in jiffies
 * @recover: finds out about a suspect channel
 * @answered: when it last did so after it had been late, in jiffies
 * @rounds: how often @recover has looked since the channel became suspect
 * @probe: two halves of memory, copied from one to the other by a probe
 * @probe_dma: the same as the engine sees it
 * @probe_cookie: of the probe that is on its way, 0 for none
 * @suspicion: number of the present suspicion, or of the last one
 * @answered_suspicion: the one of which a probe was called back
 * @suspicions: the callback of a probe gets the address of its number's entry; each
 *	of them points to the channel
 * @probes: sent so far
 * @last_done: when a descriptor was last called back, in jiffies
 */
struct pmem_dma_chan {
	struct list_head node;
	struct dma_chan *chan;
	struct device *dev;
	int nid;
	unsigned int refs;
	bool stopped;
	struct pmem_dma_limits limits;
	bool ordered;
	unsigned int state;
	unsigned int strikes;

	unsigned int bench_secs;
	unsigned long bench_end;
	struct delayed_work recover;
	unsigned long answered;
	unsigned int rounds;
	void *probe;
	dma_addr_t probe_dma;
	dma_cookie_t probe_cookie;
	unsigned int suspicion;
	unsigned int answered_suspicion;
	struct pmem_dma_chan *suspicions[PMEM_DMA_SUSPICIONS];
	unsigned int probes;

	/* Written for each descriptor, so away from what queue_rq() reads. */
	unsigned long last_done ____cacheline_aligned_in_smp;
};

/**
 * struct pmem_dma_link - a channel as one disk uses it
 * @ch: the channel, or NULL after its provider has left
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
 * @slots: which callbacks count, a struct pmem_dma_slot per tag
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
#ifdef CONFIG_BLK_DEV_PMEM_DMA_DEBUG_GENCTR
	struct pmem_dma_slot *slots;
#endif

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
 * @timeouts: requests found late
 * @spurious: callbacks that did not count
 */
struct pmem_dma_stats {
	u64 requests[PMEM_DMA_NR_PATHS][2];
	u64 bytes[2][2];
	u64 errors;
	u64 flushes;
	u64 timeouts;
#ifdef CONFIG_BLK_DEV_PMEM_DMA_DEBUG_GENCTR
	u64 spurious;
#endif
};

#define PMEM_DMA_CAL_NR		6

/**
 * struct pmem_dma_cal - result of a calibration
 * @nr: lengths, powers of two; 0 for none
 * @ns: nanoseconds, by direction and length, by channel (0) and CPU (1)
 * @min_bytes: from where on the channel was faster, by direction; U32_MAX for
 *	nowhere
 */
struct pmem_dma_cal {
	unsigned int nr;
	u64 ns[2][PMEM_DMA_CAL_NR][2];
	u32 min_bytes[2];
};

/**
 * struct pmem_dma_admin - a copy that pmem_dma_admin.c asks for
 * @refs: whoever asks, and the request under way
 * @mem: two buffers, which may outlive who asked
 * @bytes: length of each
 * @queue: index of a queue
 * @link: index of a channel among those of the queue
 * @to: memory
 * @from: memory, or NULL for the media
 * @offset: place in the disk's mapped range, in bytes, if @from is NULL
 * @len: bytes
 * @ns: from submit to completion, once it is done
 * @step: what was going on when it failed
 * @done: it came to its end
 * @sts: which end
 */
struct pmem_dma_admin {
	struct kref refs;
	void *mem[2];
	size_t bytes;
	unsigned int queue;
	unsigned int link;
	void *to;
	void *from;
	u64 offset;
	u32 len;
	u64 ns;
	const char *step;
	struct completion done;
	blk_status_t sts;
};

/**
 * struct pmem_dma_dev - one disk
 * @node: link in the list of disks
 * @pmem: the core's half
 * @disk: the disk
 * @set: tag set
 * @num_sg: most segments of a request
 * @policy: enum pmem_dma_policy
 * @min_bytes: shortest request for an engine, by direction
 * @stats: per CPU
 * @watched: @watch looks for late requests before long
 * @queues: one per hctx
 * @nr_queues: number of @queues
 * @node_first: first queue of each node, indexed by node id
 * @node_count: queues of each node
 * @nr_links: links of all queues; two queues may share a channel
 * @nr_channels: channels that there were when the links were made
 * @released: an administrator gave the channels back; no rescan by ourselves
 * @gen_id: number by which callbacks find the disk
 * @debugfs: directory
 * @admin_lock: self-test and calibration, one at a time, and their results
 * @selftest: text for sysfs
 * @cal: the calibration
 * @maps: pmem range as mapped for each DMA device
 * @watch: looks for late requests while there are any with channels
 *
 * The links and what they need (@nr_links, @released, @maps) change under
 * pmem_dma_chans_lock(), links in use only while the queue is frozen and
 * quiesced; quiesced is enough to make holes of those that no request uses.
 */
struct pmem_dma_dev {
	struct list_head node;
	struct pmem_device *pmem;
	struct gendisk *disk;
	struct blk_mq_tag_set set;
	unsigned int num_sg;
	unsigned int policy;
	u32 min_bytes[2];
	bool watched;
	struct pmem_dma_stats __percpu *stats;
	struct pmem_dma_queue **queues;
	unsigned int nr_queues;
	unsigned int *node_first;
	unsigned int *node_count;
	unsigned int nr_links;
	unsigned int nr_channels;
	bool released;
#ifdef CONFIG_BLK_DEV_PMEM_DMA_DEBUG_GENCTR
	u32 gen_id;
#endif
	struct list_head maps;
	struct delayed_work watch;
	struct dentry *debugfs;
	struct mutex admin_lock;	/* @selftest, @cal */
	char selftest[2048];
	struct pmem_dma_cal cal;
};

/**
 * struct pmem_dma_cmd - the driver's part of a request
 * @q: queue that took it
 * @link: channel that moves it
 * @done: in the queue's list of requests to finish
 * @pending: descriptors not called back yet, plus PMEM_DMA_SUBMITTING
 * @cookie: of the last descriptor
 * @dma_bytes: bytes given to the engine
 * @start: when it was given to the channel, in jiffies
 * @overdue: how often its time was up
 * @nr_segs: segments that are mapped
 * @admin: what an administrator's request is about
 * @failed: the CPU has to copy all of it once more
 * @marked: all of it was with the channel when that was stopped
 * @segs: num_sg segments
 *
 * Only what a request uses is set, in pmem_dma_execute().
 */
struct pmem_dma_cmd {
	struct pmem_dma_queue *q;
	struct pmem_dma_link *link;
	struct llist_node done;
	atomic_t pending;
	dma_cookie_t cookie;
	u32 dma_bytes;
	u32 overdue;
	unsigned long start;
	u32 nr_segs;
	struct pmem_dma_admin *admin;
	bool failed;
	bool marked;
	struct pmem_dma_seg segs[];
};

/* In @pending while queue_rq() has the command. */
#define PMEM_DMA_SUBMITTING	0x10000

/* pmem_dma_rq.c */
extern const struct blk_mq_ops pmem_dma_mq_ops;
int pmem_dma_rq_init(void);
void pmem_dma_rq_exit(void);
size_t pmem_dma_rq_size(unsigned int num_sg);
void pmem_dma_finish(struct pmem_dma_cmd *cmd);
void pmem_dma_finish_work(struct work_struct *work);

/* pmem_dma_inflight.c */
void pmem_dma_watch_init(struct pmem_dma_dev *pd);
void pmem_dma_watch_exit(struct pmem_dma_dev *pd);
void pmem_dma_watch_start(struct pmem_dma_dev *pd);
unsigned int pmem_dma_inflight(struct pmem_dma_dev *pd,
			       struct pmem_dma_chan *ch,
			       struct pmem_dma_queue *q);
void pmem_dma_mark(struct pmem_dma_dev *pd, struct pmem_dma_chan *ch);
unsigned int pmem_dma_reap(struct pmem_dma_dev *pd, struct pmem_dma_chan *ch,
			   dma_cookie_t before);
bool pmem_dma_busy_with(struct pmem_dma_dev *pd, struct device *dev);

/* pmem_dma_chan.c */
void pmem_dma_chans_lock(void);
void pmem_dma_chans_unlock(void);
unsigned int pmem_dma_chans_acquire(int nid, unsigned int want);
struct pmem_dma_chan *pmem_dma_chan_get(int nid, unsigned int index);
void pmem_dma_chan_put(struct pmem_dma_chan *ch);
void pmem_dma_chans_trim(void);
bool pmem_dma_chan_is_of(const struct pmem_dma_chan *ch,
			 const struct device *dev);
bool pmem_dma_chans_drained(struct device *dev);
void pmem_dma_chans_stop(struct device *dev);
bool pmem_dma_chans_shun(struct device *dev);
void pmem_dma_chans_unshun(struct device *dev);

/* pmem_dma_health.c */
int pmem_dma_health_init(struct pmem_dma_chan *ch);
void pmem_dma_health_exit(struct pmem_dma_chan *ch);
const char *pmem_dma_state_name(const struct pmem_dma_chan *ch);
bool pmem_dma_chan_rested(struct pmem_dma_chan *ch);
void pmem_dma_chan_failed(struct pmem_dma_chan *ch);
void pmem_dma_chan_leaves(struct pmem_dma_chan *ch);
bool pmem_dma_chan_late(struct pmem_dma_chan *ch);

/* pmem_dma_provider.c */
int pmem_dma_provider_init(void);
void pmem_dma_provider_exit(void);
void pmem_dma_add_disk(struct pmem_dma_dev *pd);
void pmem_dma_del_disk(struct pmem_dma_dev *pd);
void pmem_dma_mark_disks(struct pmem_dma_chan *ch);
unsigned int pmem_dma_reap_disks(struct pmem_dma_chan *ch, dma_cookie_t before);
unsigned int pmem_dma_count_inflight(struct pmem_dma_chan *ch);

/* pmem_dma_queue.c */
int pmem_dma_make_queues(struct pmem_dma_dev *pd, unsigned int q_per_node);
void pmem_dma_free_queues(struct pmem_dma_dev *pd);
void pmem_dma_map_queues(struct blk_mq_tag_set *set);
int pmem_dma_release(struct pmem_dma_dev *pd);
int pmem_dma_rescan(struct pmem_dma_dev *pd, bool by_admin);
void pmem_dma_let_submitters_pass(struct pmem_dma_dev *pd);
void pmem_dma_leave(struct pmem_dma_dev *pd, struct device *dev);
void pmem_dma_forget(struct pmem_dma_dev *pd, struct device *dev);
void pmem_dma_log_queues(struct pmem_dma_dev *pd);

/* pmem_dma_admin.c */
void pmem_dma_admin_end(struct pmem_dma_admin *admin, blk_status_t sts);
int pmem_dma_selftest(struct pmem_dma_dev *pd);
ssize_t pmem_dma_selftest_show(struct pmem_dma_dev *pd, char *buf);
int pmem_dma_calibrate(struct pmem_dma_dev *pd);
int pmem_dma_calibrate_apply(struct pmem_dma_dev *pd);
ssize_t pmem_dma_calibrate_show(struct pmem_dma_dev *pd, char *buf);

/* pmem_dma_debugfs.c */
void pmem_dma_debugfs_init(void);
void pmem_dma_debugfs_exit(void);
void pmem_dma_debugfs_add(struct pmem_dma_dev *pd);
void pmem_dma_debugfs_del(struct pmem_dma_dev *pd);

/* pmem_dma_sysfs.c */
extern const struct attribute_group *pmem_dma_groups[];

/* A channel that may be given a request? */
static inline bool pmem_dma_chan_usable(struct pmem_dma_chan *ch)
{
	unsigned int state = READ_ONCE(ch->state);

	return likely(state == PMEM_DMA_HEALTHY) ||
		(state == PMEM_DMA_BENCHED && pmem_dma_chan_rested(ch));
}

/* Before a command that now counts as in flight goes to the provider. */
static inline void pmem_dma_watch(struct pmem_dma_dev *pd)
{
	if (unlikely(!READ_ONCE(pd->watched)))
		pmem_dma_watch_start(pd);
}

#endif /* _PMEM_DMA_H */
