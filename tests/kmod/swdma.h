/* SPDX-License-Identifier: GPL-2.0 */
/*
 * swdma - a DMA_MEMCPY provider in software, which can do everything wrong
 *
 * For tests of dmaengine clients.  Every NUMA node gets a platform device with
 * some channels; a channel really moves the data, at its own time, and counts
 * what it does.  Two kinds of provider can be played:
 *
 *	in order	like ioatdma: a spinlock is held, with bottom halves
 *			disabled, from prep to submit; callbacks come from a
 *			tasklet, in order, once a descriptor with
 *			DMA_PREP_INTERRUPT is done or somebody asks for the
 *			status.
 *	out of order	like idxd: prep and submit may sleep, descriptors
 *			complete in any order, callbacks come from a thread,
 *			and the status of a cookie is never known.
 *
 * Life of a descriptor: free -> queued (submitted) -> issued -> current (the
 * engine's work moves the data) -> done -> called back -> free.  One whose
 * callback is to come late, or twice, goes to the list of late ones before it
 * is free again.
 *
 * What a channel is like is fixed when the module is loaded (swdma_dev.c).
 * What goes wrong on it can be changed at any time (swdma_knobs.c).
 */
#ifndef _SWDMA_H
#define _SWDMA_H

#include <linux/dmaengine.h>
#include <linux/interrupt.h>
#include <linux/ktime.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/spinlock.h>
#include <linux/types.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

struct dentry;

/* What can go wrong with every n-th descriptor. */
enum swdma_fault {
	SWDMA_FAULT_PREP,	/* prep returns NULL */
	SWDMA_FAULT_SUBMIT,	/* submit returns a negative cookie */
	SWDMA_FAULT_SLOW,	/* takes much longer */
	SWDMA_FAULT_FAIL,	/* ends with an error */
	SWDMA_FAULT_LOSE,	/* its callback gets lost */
	SWDMA_FAULT_SPURIOUS,	/* its callback comes twice */
	SWDMA_FAULT_IRQ,	/* its interrupt gets lost */
	SWDMA_NR_FAULTS
};

/*
 * First two for each fault, then the others.  "every": hits every n-th
 * descriptor, counted from the moment the knob was written, 0 for none.
 * "times": at most so often, 0 for no limit.
 */
#define SWDMA_EVERY(fault)	(2 * (fault))
#define SWDMA_TIMES(fault)	(2 * (fault) + 1)

enum swdma_knob_index {
	SWDMA_DELAY_US = 2 * SWDMA_NR_FAULTS,
	SWDMA_LATE,
	SWDMA_POISON,
	SWDMA_STALL,
	SWDMA_SHUFFLE,
	SWDMA_SLEEP_US,
	SWDMA_SLOW_MS,
	SWDMA_FAIL_RESULT,
	SWDMA_FAIL_ABORT,
	SWDMA_LOSE_MS,
	SWDMA_SPURIOUS_MS,
	SWDMA_UNBIND,
	SWDMA_NR_KNOBS
};

/* Values of the unbind knob: what becomes of descriptors in flight. */
enum swdma_unbind {
	SWDMA_UNBIND_FINISH,	/* they go on to their end */
	SWDMA_UNBIND_ABORT,	/* called back as aborted */
	SWDMA_UNBIND_DROP,	/* never heard of again */
};

enum swdma_stat {
	SWDMA_STAT_DESCRIPTORS,
	SWDMA_STAT_BYTES,
	SWDMA_STAT_CALLBACKS,
	SWDMA_STAT_IN_FLIGHT,
	SWDMA_STAT_MAX_IN_FLIGHT,
	SWDMA_STAT_INTERRUPTS,
	SWDMA_STAT_LOST_INTERRUPTS,
	SWDMA_STAT_POLLS,
	SWDMA_STAT_SLOW,
	SWDMA_STAT_FAILED,
	SWDMA_STAT_ABORTED,
	SWDMA_STAT_LOST,
	SWDMA_STAT_LATE,
	SWDMA_STAT_SPURIOUS,
	SWDMA_STAT_DROPPED,
	SWDMA_STAT_SUBMIT_ERRORS,
	SWDMA_STAT_PREP_ERRORS,
	SWDMA_STAT_RING_FULL,
	SWDMA_STAT_TOO_LONG,
	SWDMA_STAT_MISALIGNED,
	SWDMA_STAT_GONE,
	SWDMA_NR_STATS
};

/* How a descriptor was cut off by terminate or unbind. */
enum swdma_cut {
	SWDMA_CUT_NOT,
	SWDMA_CUT_ABORT,	/* with a callback */
	SWDMA_CUT_DROP,		/* without */
};

/**
 * struct swdma_desc - a descriptor
 * @tx: the client's view
 * @node: in one of the channel's lists, or in none while it is worked on
 * @dst: DMA address to copy to
 * @src: DMA address to copy from
 * @len: bytes to copy
 * @moved: bytes copied
 * @lose_ms: how late its callback is to come if it gets lost, 0 for never
 * @due: when its late callback is to come
 * @result: what the client is told
 * @cut: somebody wants to be rid of it
 * @slow: it takes longer
 * @lost: its callback gets lost
 * @twice: its callback comes twice
 * @called: its callback has come once
 * @passed: the status knows it as complete
 */
struct swdma_desc {
	struct dma_async_tx_descriptor tx;
	struct list_head node;
	dma_addr_t dst;
	dma_addr_t src;
	size_t len;
	size_t moved;
	u32 lose_ms;
	ktime_t due;
	enum dmaengine_tx_result result;
	enum swdma_cut cut;
	bool slow;
	bool lost;
	bool twice;
	bool called;
	bool passed;
};

/**
 * struct swdma_knob - a knob of one channel
 * @ch: the channel
 * @index: which one, see enum swdma_knob_index
 * @value: its setting
 */
struct swdma_knob {
	struct swdma_chan *ch;
	unsigned int index;
	u32 value;
};

/**
 * struct swdma_count - progress of a fault
 * @seen: candidates since its knob was written
 * @hits: those that were hit
 */
struct swdma_count {
	u32 seen;
	u32 hits;
};

/**
 * struct swdma_window - mapping of persistent memory
 * @phys: where it starts
 * @len: bytes
 * @virt: where it is mapped, or NULL
 */
struct swdma_window {
	phys_addr_t phys;
	size_t len;
	void *virt;
};

/**
 * struct swdma_chan - a channel
 * @chan: dmaengine's part
 * @sd: its device
 * @prep_lock: held from prep to submit when in order; its only purpose is that
 *	a client which sleeps in between, or preps twice, is found out
 * @reap_lock: held over callbacks when in order; keeps them in order
 * @lock: covers everything below up to @stats; taken from any context
 * @free: descriptors to give out
 * @queued: submitted, not issued
 * @issued: for the engine to take
 * @behind: aborted, to be done once @cur is
 * @done: for an interrupt to find
 * @late: whose callback comes late
 * @cur: the engine works on it
 * @stop: the channel is being given back
 * @dead: the device has left
 * @knobs: settings
 * @counts: progress of each fault
 * @stats: what happened, see enum swdma_stat
 * @busy: threads that move data or call back
 * @wake: waits for knobs, free descriptors, @stop and the end of @busy
 * @engine: moves the data
 * @late_work: calls back late ones
 * @irq: the interrupt
 * @move_lock: covers @windows
 * @windows: mappings of each side, one for each value of their hash
 * @descs: all descriptors
 */
struct swdma_chan {
	struct dma_chan chan;
	struct swdma_dev *sd;
	spinlock_t prep_lock;	/* a spinlock because ioatdma's is one */
	spinlock_t reap_lock;	/* taken by a tasklet */

	spinlock_t lock;	/* inside of the other two */
	struct list_head free;
	struct list_head queued;
	struct list_head issued;
	struct list_head behind;
	struct list_head done;
	struct list_head late;
	struct swdma_desc *cur;
	bool stop;
	bool dead;
	struct swdma_knob knobs[SWDMA_NR_KNOBS];
	struct swdma_count counts[SWDMA_NR_FAULTS];
	u64 stats[SWDMA_NR_STATS];

	atomic_t busy;
	wait_queue_head_t wake;
	struct work_struct engine;
	struct delayed_work late_work;
	struct tasklet_struct irq;

	struct mutex move_lock;	/* mapping sleeps */
	struct swdma_window *windows;
	struct swdma_desc *descs;
};

/**
 * struct swdma_dev - a device
 * @dd: dmaengine's part
 * @nid: its NUMA node
 * @node: in the list of present or of left devices
 * @nr_chans: number of @chans
 * @chans: the channels
 */
struct swdma_dev {
	struct dma_device dd;
	int nid;
	struct list_head node;
	unsigned int nr_chans;
	struct swdma_chan chans[];
};

static inline struct swdma_chan *to_swdma_chan(struct dma_chan *chan)
{
	return container_of(chan, struct swdma_chan, chan);
}

static inline u32 swdma_knob(struct swdma_chan *ch, unsigned int index)
{
	return READ_ONCE(ch->knobs[index].value);
}

/* swdma_dev.c */
extern struct workqueue_struct *swdma_wq;
extern struct list_head swdma_devs;
extern struct mutex swdma_devs_lock;
extern unsigned int swdma_ring;
extern unsigned int swdma_max_len;
extern unsigned int swdma_copy_align;
extern unsigned int swdma_terminate;
extern bool swdma_out_of_order;
extern bool swdma_synchronize;
extern bool swdma_block;

/* swdma_chan.c */
void swdma_chan_init(struct swdma_chan *ch, struct swdma_dev *sd);
void swdma_chan_leave(struct swdma_chan *ch);
void swdma_chan_ops(struct dma_device *dd);

/* swdma_engine.c */
void swdma_engine_work(struct work_struct *work);
void swdma_late_work(struct work_struct *work);
void swdma_irq(struct tasklet_struct *task);
void swdma_poll(struct swdma_chan *ch);
void swdma_put_desc(struct swdma_chan *ch, struct swdma_desc *desc);
void swdma_cut_off(struct swdma_chan *ch, enum swdma_cut how);

/* swdma_knobs.c */
void swdma_knobs_init(struct swdma_chan *ch);
void swdma_knobs_debugfs(struct swdma_chan *ch, struct dentry *dir);
bool swdma_hit(struct swdma_chan *ch, enum swdma_fault fault);

/* swdma_mem.c */
int swdma_mem_init(struct swdma_chan *ch);
void swdma_mem_exit(struct swdma_chan *ch);
int swdma_move(struct swdma_chan *ch, struct swdma_desc *desc, size_t len);
int swdma_fill(struct swdma_chan *ch, struct swdma_desc *desc, u8 byte);

/* swdma_stats.c */
void swdma_stats_init(void);
void swdma_stats_exit(void);
void swdma_stats_add(struct swdma_dev *sd);
void swdma_stats_del(struct swdma_dev *sd);

#endif /* _SWDMA_H */
