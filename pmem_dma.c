// SPDX-License-Identifier: GPL-2.0
/*
 * pmem_dma - persistent memory disk whose bytes are moved by DMA engines
 *
 * Life of a request:
 *
 *	plan	pmem_dma_plan() cuts it into segments, or says why the CPU has
 *		to copy it.  Nothing has happened yet that needs undoing.
 *	execute	pmem_dma_map_segs() maps all segments, then pmem_dma_submit()
 *		preps and submits them back to back: some providers hold a
 *		spinlock from one to the other, so that nothing may come in
 *		between.  The channel is kicked once for a batch of requests.
 *	complete pmem_dma_done() is called for every descriptor; the last one
 *		finishes the request, straight from the callback if nothing is
 *		left to do, else on the queue's work.
 *
 * An engine that fails makes a request slow, never wrong: the CPU copies it
 * once more, and its verdict is the one that counts.
 *
 * Persistence: pmem_core_flush() drains buffers beyond the CPU cache and counts
 * on writes that are not in the cache.  The CPU's copies bypass it.  An
 * engine's write may end up in it, and "transfer complete" says nothing about
 * that.  So each range written by an engine is written back, by
 * pmem_core_writeback(), before its request is reported done; then a FUA request
 * flushes.  A later FLUSH thereby covers all writes completed before it.
 *
 * Locking: there is none in the path of a request.  A command belongs to
 * queue_rq() until it drops its share of @pending, then to the callbacks, then
 * to whoever brought @pending to zero.  After its share is dropped, queue_rq()
 * must not touch the request any more.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/bio.h>
#include <linux/blk-mq.h>
#include <linux/delay.h>
#include <linux/dma-mapping.h>
#include <linux/dmaengine.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/percpu.h>
#include <linux/sizes.h>
#include <linux/slab.h>

#include "pmem.h"
#include "pmem_dma.h"

#define PMEM_DMA_MAX_DEPTH	1024U
#define PMEM_DMA_MAX_SG		256U
#define PMEM_DMA_MAX_QUEUES	64U

/* The ring of ioatdma, the largest that we know of. */
#define PMEM_DMA_MAX_DESCRIPTORS	65536U

/*
 * Longer requests are split.  The CPU copies 4 MiB in about a millisecond, long
 * enough to make the overhead of a request vanish.
 */
#define PMEM_DMA_MAX_SECTORS	(SZ_4M >> SECTOR_SHIFT)

/*
 * An engine's copy costs some 20 us before the first byte (descriptor, doorbell,
 * interrupt), and then moves 12 GB/s where a CPU reads 7 and writes 3.5 (I/OAT
 * on a Skylake Xeon).  From these sizes on, even a request that is alone is
 * faster by engine there.
 */
#define PMEM_DMA_READ_MIN	SZ_512K
#define PMEM_DMA_WRITE_MIN	SZ_128K

/* How long a submitter waits for the descriptors ahead of a full ring. */
#define PMEM_DMA_FULL_WAIT_US	50
#define PMEM_DMA_FULL_WAITS	2000

/**
 * struct pmem_dma_cmd - the driver's part of a request
 * @q: queue that took it
 * @link: channel that moves it
 * @done: in the queue's list of requests to finish
 * @pending: descriptors not called back yet, plus one while being submitted
 * @dma_bytes: bytes given to the engine
 * @nr_segs: segments that are mapped
 * @failed: the CPU has to copy all of it once more
 * @segs: num_sg segments
 *
 * Only what a request uses is set, in pmem_dma_plan() and pmem_dma_execute().
 */
struct pmem_dma_cmd {
	struct pmem_dma_queue *q;
	struct pmem_dma_link *link;
	struct llist_node done;
	atomic_t pending;
	u32 dma_bytes;
	u32 nr_segs;
	bool failed;
	struct pmem_dma_seg segs[];
};

static struct workqueue_struct *pmem_dma_wq;

/* -------------------------------------------------------------- parameters */

struct pmem_dma_range {
	const char *name;
	unsigned int min, max;
	unsigned int value;
};

static int pmem_dma_range_set(const char *val, const struct kernel_param *kp)
{
	struct pmem_dma_range *range = kp->arg;
	unsigned int n;
	int rc = kstrtouint(val, 0, &n);

	if (!rc && (n < range->min || n > range->max))
		rc = -EINVAL;
	if (rc) {
		pr_err("%s=%s: must be a number from %u to %u\n", range->name,
		       val, range->min, range->max);
		return rc;
	}
	range->value = n;
	return 0;
}

static int pmem_dma_range_get(char *buf, const struct kernel_param *kp)
{
	struct pmem_dma_range *range = kp->arg;

	return sysfs_emit(buf, "%u\n", range->value);
}

static const struct kernel_param_ops pmem_dma_range_ops = {
	.set = pmem_dma_range_set,
	.get = pmem_dma_range_get,
};

static struct pmem_dma_range queue_depth = {
	.name = "queue_depth", .min = 1, .max = PMEM_DMA_MAX_DEPTH, .value = 128,
};
module_param_cb(queue_depth, &pmem_dma_range_ops, &queue_depth, 0444);
__MODULE_PARM_TYPE(queue_depth, "uint");
MODULE_PARM_DESC(queue_depth,
		 "Requests in flight per hardware queue, 1 to 1024 (default 128); times num_sg less than 65536");

static struct pmem_dma_range q_per_node = {
	.name = "q_per_node", .min = 0, .max = PMEM_DMA_MAX_QUEUES, .value = 0,
};
module_param_cb(q_per_node, &pmem_dma_range_ops, &q_per_node, 0444);
__MODULE_PARM_TYPE(q_per_node, "uint");
MODULE_PARM_DESC(q_per_node,
		 "Hardware queues per NUMA node, 1 to 64 and at most the node's CPUs, 0 for one per DMA channel of the node (default 0)");

static struct pmem_dma_range num_sg = {
	.name = "num_sg", .min = 1, .max = PMEM_DMA_MAX_SG, .value = 128,
};
module_param_cb(num_sg, &pmem_dma_range_ops, &num_sg, 0444);
__MODULE_PARM_TYPE(num_sg, "uint");
MODULE_PARM_DESC(num_sg,
		 "Memory segments, that is descriptors, per request, 1 to 256 (default 128); times queue_depth less than 65536");

/* ---------------------------------------------------------------- counters */

static void pmem_dma_count(struct pmem_dma_dev *pd, enum pmem_dma_path path,
			   bool write, unsigned int dma_bytes,
			   unsigned int cpu_bytes)
{
	this_cpu_inc(pd->stats->requests[path][write]);
	if (dma_bytes)
		this_cpu_add(pd->stats->bytes[write][0], dma_bytes);
	if (cpu_bytes)
		this_cpu_add(pd->stats->bytes[write][1], cpu_bytes);
}

/* ---------------------------------------------------------------- CPU copy */

/*
 * Copy all of a request and end it.  Each bio gets the status of its own range:
 * a bad sector must not fail the neighbours that were merged with it.
 */
static void pmem_dma_copy_and_end(struct pmem_dma_dev *pd, struct request *rq)
{
	bool fua = rq->cmd_flags & REQ_FUA;
	blk_status_t sts;

	do {
		struct bio *bio = rq->bio;
		unsigned int bytes = bio->bi_iter.bi_size;

		sts = pmem_core_copy_bio(pd->pmem, bio);
		if (fua && !sts)
			sts = pmem_core_flush(pd->pmem);
		if (!blk_update_request(rq, sts, bytes))
			break;
	} while (true);
	__blk_mq_end_request(rq, BLK_STS_OK);
}

static void pmem_dma_by_cpu(struct pmem_dma_dev *pd, struct request *rq,
			    enum pmem_dma_path path)
{
	pmem_dma_count(pd, path, op_is_write(req_op(rq)), 0, blk_rq_bytes(rq));
	if (rq->cmd_flags & REQ_FUA)
		this_cpu_inc(pd->stats->flushes);
	pmem_dma_copy_and_end(pd, rq);
}

/* ---------------------------------------------------------------- complete */

static enum dma_data_direction pmem_dma_dir(struct request *rq)
{
	/* Seen from the memory: the engine reads it for a write to the media. */
	return op_is_write(req_op(rq)) ? DMA_TO_DEVICE : DMA_FROM_DEVICE;
}

static void pmem_dma_unmap_segs(struct pmem_dma_cmd *cmd, u32 from,
				enum dma_data_direction dir)
{
	struct device *dev = cmd->link->ch->dev;
	u32 i;

	for (i = from; i < cmd->nr_segs; i++)
		dma_unmap_page(dev, cmd->segs[i].dma, cmd->segs[i].len, dir);
	cmd->nr_segs = from;
}

/* The engine has done all of it. */
static blk_status_t pmem_dma_settle(struct pmem_dma_dev *pd, struct request *rq)
{
	struct pmem_dma_cmd *cmd = blk_mq_rq_to_pdu(rq);
	bool write = op_is_write(req_op(rq));
	blk_status_t sts = BLK_STS_OK;

	pmem_dma_count(pd, PMEM_DMA_ENGINE, write, cmd->dma_bytes,
		       blk_rq_bytes(rq) - cmd->dma_bytes);
	if (write)
		pmem_core_writeback(pd->pmem,
				    pmem_core_offset(pd->pmem, blk_rq_pos(rq)),
				    blk_rq_bytes(rq));
	if (rq->cmd_flags & REQ_FUA) {
		this_cpu_inc(pd->stats->flushes);
		sts = pmem_core_flush(pd->pmem);
	}
	return sts;
}

static void pmem_dma_finish_slow(struct request *rq)
{
	struct pmem_dma_cmd *cmd = blk_mq_rq_to_pdu(rq);
	struct pmem_dma_dev *pd = cmd->q->pd;

	pmem_dma_unmap_segs(cmd, 0, pmem_dma_dir(rq));
	if (cmd->failed)
		pmem_dma_by_cpu(pd, rq, PMEM_DMA_CPU_REDO);
	else
		blk_mq_end_request(rq, pmem_dma_settle(pd, rq));
}

/**
 * pmem_dma_finish_work() - finish requests that may sleep or take long
 * @work: work of a queue
 *
 * Context: Process context.
 */
void pmem_dma_finish_work(struct work_struct *work)
{
	struct pmem_dma_queue *q = container_of(work, struct pmem_dma_queue,
						work);
	struct llist_node *list = llist_reverse_order(llist_del_all(&q->done));
	struct pmem_dma_cmd *cmd, *next;

	llist_for_each_entry_safe(cmd, next, list, done) {
		pmem_dma_finish_slow(blk_mq_rq_from_pdu(cmd));
		cond_resched();
	}
}

/* Nothing left that sleeps.  On the submitter's CPU if the queue wants that. */
static void pmem_dma_complete(struct request *rq)
{
	struct pmem_dma_cmd *cmd = blk_mq_rq_to_pdu(rq);

	pmem_dma_unmap_segs(cmd, 0, pmem_dma_dir(rq));
	blk_mq_end_request(rq, pmem_dma_settle(cmd->q->pd, rq));
}

/* Nobody else has the command any more. */
static void pmem_dma_finish(struct pmem_dma_cmd *cmd)
{
	struct request *rq = blk_mq_rq_from_pdu(cmd);
	struct pmem_dma_queue *q = cmd->q;
	bool persist = op_is_write(req_op(rq)) &&
		(q->pd->pmem->needs_wb || (rq->cmd_flags & REQ_FUA));

	if (!cmd->failed && !persist)
		blk_mq_complete_request(rq);
	else if (llist_add(&cmd->done, &q->done))
		queue_work(pmem_dma_wq, &q->work);
}

/* Called by the provider, in any context, once per descriptor. */
static void pmem_dma_done(void *param, const struct dmaengine_result *res)
{
	struct pmem_dma_cmd *cmd = param;
	struct pmem_dma_chan *ch = cmd->link->ch;

	if (unlikely(res && res->result != DMA_TRANS_NOERROR)) {
		this_cpu_inc(cmd->q->pd->stats->errors);
		WRITE_ONCE(cmd->failed, true);
	} else if (unlikely(READ_ONCE(ch->suspect))) {
		WRITE_ONCE(ch->suspect, false);
	}
	/* Orders @failed before the last one out looks at it. */
	if (atomic_dec_and_test(&cmd->pending))
		pmem_dma_finish(cmd);
}

/* ----------------------------------------------------------------- execute */

static bool pmem_dma_map_segs(struct pmem_dma_cmd *cmd, u32 nr,
			      enum dma_data_direction dir)
{
	struct device *dev = cmd->link->ch->dev;

	for (cmd->nr_segs = 0; cmd->nr_segs < nr; cmd->nr_segs++) {
		struct pmem_dma_seg *seg = &cmd->segs[cmd->nr_segs];

		seg->dma = dma_map_page(dev, pfn_to_page(PHYS_PFN(seg->addr)),
					offset_in_page(seg->addr), seg->len,
					dir);
		if (unlikely(dma_mapping_error(dev, seg->dma))) {
			pmem_dma_unmap_segs(cmd, 0, dir);
			return false;
		}
	}
	return true;
}

/* Prep and submit one segment; false if the channel does not take it. */
static bool pmem_dma_submit_seg(struct pmem_dma_cmd *cmd,
				const struct pmem_dma_seg *seg,
				dma_addr_t media, bool write,
				unsigned long flags, dma_cookie_t *cookie)
{
	struct dma_chan *chan = cmd->link->ch->chan;
	struct dma_async_tx_descriptor *tx;

	tx = dmaengine_prep_dma_memcpy(chan, write ? media : seg->dma,
				       write ? seg->dma : media, seg->len,
				       flags);
	if (unlikely(!tx))
		return false;
	tx->callback_result = pmem_dma_done;
	tx->callback_param = cmd;
	*cookie = dmaengine_submit(tx);
	return likely(!dma_submit_error(*cookie));
}

/*
 * A full ring met us in the middle of a request, before the descriptor whose
 * interrupt was to report the earlier ones.  Asking for their status makes the
 * provider look; a hung engine is the timeout's business.
 */
static void pmem_dma_poll_submitted(struct pmem_dma_cmd *cmd,
				    dma_cookie_t cookie, u32 not_submitted)
{
	unsigned int i;

	for (i = 0; i < PMEM_DMA_FULL_WAITS; i++) {
		if (atomic_read(&cmd->pending) == 1 + not_submitted)
			return;
		dma_async_is_tx_complete(cmd->link->ch->chan, cookie, NULL,
					 NULL);
		usleep_range(PMEM_DMA_FULL_WAIT_US, 2 * PMEM_DMA_FULL_WAIT_US);
	}
}

/*
 * Submit the mapped segments.  What the channel does not take, the CPU copies
 * here and now, in the shadow of the engine.  Returns false if the channel took
 * nothing at all.
 */
static bool pmem_dma_submit(struct pmem_dma_cmd *cmd, struct request *rq)
{
	struct pmem_device *pmem = cmd->q->pd->pmem;
	struct pmem_dma_chan *ch = cmd->link->ch;
	u64 start = pmem_core_offset(pmem, blk_rq_pos(rq));
	bool write = op_is_write(req_op(rq));
	u32 nr = cmd->nr_segs, left, i;
	dma_cookie_t cookie = 0;
	u32 sent = 0;

	for (i = 0; i < nr; i++) {
		struct pmem_dma_seg *seg = &cmd->segs[i];
		unsigned long flags = DMA_CTRL_ACK;

		if (i == nr - 1 || !ch->ordered)
			flags |= DMA_PREP_INTERRUPT;
		if (!pmem_dma_submit_seg(cmd, seg,
					 cmd->link->base + start + sent, write,
					 flags, &cookie))
			break;
		sent += seg->len;
	}
	if (likely(i == nr))
		return true;

	if (!i) {
		pmem_dma_unmap_segs(cmd, 0, pmem_dma_dir(rq));
		return false;
	}
	dma_async_issue_pending(ch->chan);
	left = nr - i;
	cmd->dma_bytes = sent;
	pmem_dma_unmap_segs(cmd, i, pmem_dma_dir(rq));
	for (; i < nr; i++) {
		struct pmem_dma_seg *seg = &cmd->segs[i];

		if (pmem_core_copy(pmem, write, seg->addr, start + sent,
				   seg->len))
			WRITE_ONCE(cmd->failed, true);
		sent += seg->len;
	}
	if (ch->ordered)
		pmem_dma_poll_submitted(cmd, cookie, left);
	/* Our own share keeps this from reaching zero. */
	atomic_sub(left, &cmd->pending);
	return true;
}

/* Start every channel of the queue that has descriptors waiting. */
static void pmem_dma_issue(struct pmem_dma_queue *q)
{
	unsigned long links;
	unsigned int i;

	if (!READ_ONCE(q->unissued))
		return;
	links = xchg(&q->unissued, 0);
	for_each_set_bit(i, &links, BITS_PER_LONG)
		dma_async_issue_pending(q->links[i].ch->chan);
}

/* -------------------------------------------------------------------- plan */

static struct pmem_dma_link *pmem_dma_pick_link(struct pmem_dma_queue *q)
{
	unsigned int i, start = 0;

	if (q->nr_links > 1)
		start = (unsigned int)atomic_inc_return(&q->next);
	for (i = 0; i < q->nr_links; i++) {
		struct pmem_dma_link *link =
			&q->links[(start + i) % q->nr_links];

		if (likely(!READ_ONCE(link->ch->suspect)))
			return link;
	}
	return NULL;
}

/*
 * Who moves the request?  PMEM_DMA_ENGINE leaves the channel and the segments
 * in the command, and their number in *@nr.
 */
static enum pmem_dma_path pmem_dma_plan(struct pmem_dma_queue *q,
					struct request *rq, u32 *nr)
{
	struct pmem_dma_cmd *cmd = blk_mq_rq_to_pdu(rq);
	struct pmem_dma_dev *pd = q->pd;
	struct pmem_dma_plan plan = {
		.segs = cmd->segs,
		.max_segs = num_sg.value,
	};
	enum pmem_dma_path path;
	struct req_iterator iter;
	struct bio_vec bv;

	if (!pmem_dma_wants_engine(READ_ONCE(pd->policy), blk_rq_bytes(rq),
				   READ_ONCE(pd->min_bytes[rq_data_dir(rq)])))
		return PMEM_DMA_CPU_CHOSEN;
	cmd->link = pmem_dma_pick_link(q);
	if (unlikely(!cmd->link))
		return PMEM_DMA_CPU_NO_CHANNEL;
	if (unlikely(pmem_core_is_bad(pd->pmem, blk_rq_pos(rq),
				      blk_rq_bytes(rq))))
		return PMEM_DMA_CPU_BADBLOCK;
	if ((pmem_core_offset(pd->pmem, blk_rq_pos(rq)) + cmd->link->base) &
	    cmd->link->ch->limits.align_mask)
		return PMEM_DMA_CPU_ALIGN;

	rq_for_each_bvec(bv, rq, iter) {
		path = pmem_dma_plan_add(&plan, &cmd->link->ch->limits,
					 page_to_phys(bv.bv_page) + bv.bv_offset,
					 bv.bv_len);
		if (unlikely(path != PMEM_DMA_ENGINE))
			return path;
	}
	*nr = plan.nr;
	return PMEM_DMA_ENGINE;
}

/* ------------------------------------------------------------------ blk-mq */

static enum pmem_dma_path pmem_dma_execute(struct pmem_dma_queue *q,
					   struct request *rq)
{
	struct pmem_dma_cmd *cmd = blk_mq_rq_to_pdu(rq);
	struct pmem_dma_link *link;
	enum pmem_dma_path path;
	u32 nr;

	path = pmem_dma_plan(q, rq, &nr);
	if (path != PMEM_DMA_ENGINE)
		return path;
	if (unlikely(!pmem_dma_map_segs(cmd, nr, pmem_dma_dir(rq))))
		return PMEM_DMA_CPU_MAP;

	link = cmd->link;
	cmd->q = q;
	cmd->failed = false;
	cmd->dma_bytes = blk_rq_bytes(rq);
	atomic_set(&cmd->pending, nr + 1);
	if (unlikely(!pmem_dma_submit(cmd, rq)))
		return PMEM_DMA_CPU_FULL;

	set_bit(link - q->links, &q->unissued);
	/* From here on the request may be gone. */
	if (atomic_dec_and_test(&cmd->pending))
		pmem_dma_finish(cmd);
	return PMEM_DMA_ENGINE;
}

static blk_status_t pmem_dma_queue_rq(struct blk_mq_hw_ctx *hctx,
				      const struct blk_mq_queue_data *bd)
{
	struct pmem_dma_queue *q = hctx->driver_data;
	struct pmem_dma_dev *pd = q->pd;
	struct request *rq = bd->rq;
	struct pmem_dma_cmd *cmd = blk_mq_rq_to_pdu(rq);
	enum pmem_dma_path path;

	cmd->link = NULL;
	blk_mq_start_request(rq);
	switch (req_op(rq)) {
	case REQ_OP_READ:
	case REQ_OP_WRITE:
		path = pmem_dma_execute(q, rq);
		/*
		 * Kick the engine for the whole batch before the CPU copies,
		 * so that both work at the same time.
		 */
		if (bd->last)
			pmem_dma_issue(q);
		if (path != PMEM_DMA_ENGINE)
			pmem_dma_by_cpu(pd, rq, path);
		return BLK_STS_OK;
	case REQ_OP_FLUSH:
		if (bd->last)
			pmem_dma_issue(q);
		this_cpu_inc(pd->stats->flushes);
		blk_mq_end_request(rq, pmem_core_flush(pd->pmem));
		return BLK_STS_OK;
	default:
		return BLK_STS_NOTSUPP;
	}
}

static void pmem_dma_commit_rqs(struct blk_mq_hw_ctx *hctx)
{
	pmem_dma_issue(hctx->driver_data);
}

static int pmem_dma_init_hctx(struct blk_mq_hw_ctx *hctx, void *data,
			      unsigned int index)
{
	struct pmem_dma_dev *pd = data;

	hctx->driver_data = pd->queues[index];
	return 0;
}

/*
 * No descriptor can be taken back: the engine may still write into the memory
 * of this request, so it must not complete.  It completes when its callbacks
 * come.  Until then the channel gets nothing new.
 */
static enum blk_eh_timer_return pmem_dma_timeout(struct request *rq)
{
	struct pmem_dma_cmd *cmd = blk_mq_rq_to_pdu(rq);
	struct pmem_dma_link *link = READ_ONCE(cmd->link);
	struct pmem_dma_dev *pd = rq->q->queuedata;
	struct pmem_dma_chan *ch;

	this_cpu_inc(pd->stats->timeouts);
	if (!link)	/* with the CPU, or in a flush */
		return BLK_EH_RESET_TIMER;
	ch = link->ch;
	if (!READ_ONCE(ch->suspect))
		dev_warn(pd->pmem->dev, "%s is late, copying by CPU until it answers\n",
			 dma_chan_name(ch->chan));
	WRITE_ONCE(ch->suspect, true);
	dma_async_issue_pending(ch->chan);
	return BLK_EH_RESET_TIMER;
}

static const struct blk_mq_ops pmem_dma_mq_ops = {
	.queue_rq = pmem_dma_queue_rq,
	.commit_rqs = pmem_dma_commit_rqs,
	.complete = pmem_dma_complete,
	.timeout = pmem_dma_timeout,
	.init_hctx = pmem_dma_init_hctx,
	.map_queues = pmem_dma_map_queues,
};

static const struct block_device_operations pmem_dma_fops = {
	.owner = THIS_MODULE,
};

/* -------------------------------------------------------------------- disk */

static int pmem_dma_alloc_tags(struct pmem_dma_dev *pd)
{
	struct blk_mq_tag_set *set = &pd->set;
	struct pmem_dma_cmd *cmd;

	set->ops = &pmem_dma_mq_ops;
	set->nr_hw_queues = pd->nr_queues;
	set->queue_depth = queue_depth.value;
	set->numa_node = dev_to_node(pd->pmem->dev);
	set->cmd_size = struct_size(cmd, segs, num_sg.value);
	/* Flushes, poison clearing and some providers' submit may sleep. */
	set->flags = BLK_MQ_F_BLOCKING | BLK_MQ_F_NO_SCHED_BY_DEFAULT;
	set->driver_data = pd;
	return blk_mq_alloc_tag_set(set);
}

static void pmem_dma_log_queues(struct pmem_dma_dev *pd)
{
	unsigned int links = pmem_dma_count_channels(pd);

	if (links)
		dev_info(pd->pmem->dev, "%u queues on %u DMA channels\n",
			 pd->nr_queues, links);
	else
		dev_info(pd->pmem->dev, "no DMA channel, the CPU copies\n");
}

static void pmem_dma_free_dev(struct pmem_dma_dev *pd)
{
	pmem_dma_free_queues(pd);
	free_percpu(pd->stats);
	kfree(pd);
}

static struct gendisk *pmem_dma_alloc_disk(struct pmem_device *pmem,
					   struct queue_limits *lim)
{
	struct pmem_dma_dev *pd;
	struct gendisk *disk;
	int rc;

	pd = kzalloc_node(sizeof(*pd), GFP_KERNEL, dev_to_node(pmem->dev));
	if (!pd)
		return ERR_PTR(-ENOMEM);
	pd->pmem = pmem;
	pd->min_bytes[READ] = PMEM_DMA_READ_MIN;
	pd->min_bytes[WRITE] = PMEM_DMA_WRITE_MIN;
	INIT_LIST_HEAD(&pd->maps);
	pd->stats = alloc_percpu(struct pmem_dma_stats);
	rc = pd->stats ? pmem_dma_make_queues(pd, q_per_node.value) : -ENOMEM;
	if (rc)
		goto out_free_dev;
	rc = pmem_dma_alloc_tags(pd);
	if (rc)
		goto out_free_dev;

	lim->max_segments = num_sg.value;
	lim->max_segment_size = UINT_MAX;
	lim->max_hw_sectors = PMEM_DMA_MAX_SECTORS;
	lim->max_user_sectors = PMEM_DMA_MAX_SECTORS;
	disk = blk_mq_alloc_disk(&pd->set, lim, pd);
	if (IS_ERR(disk)) {
		rc = PTR_ERR(disk);
		goto out_free_tags;
	}
	disk->fops = &pmem_dma_fops;
	disk->private_data = pd;
	pmem->fe_data = pd;
	pmem_dma_log_queues(pd);
	return disk;

out_free_tags:
	blk_mq_free_tag_set(&pd->set);
out_free_dev:
	pmem_dma_free_dev(pd);
	return ERR_PTR(rc);
}

static void pmem_dma_free(struct pmem_device *pmem)
{
	struct pmem_dma_dev *pd = pmem->fe_data;

	blk_mq_free_tag_set(&pd->set);
	pmem_dma_free_dev(pd);
}

static const struct pmem_frontend pmem_dma_frontend = {
	.name = "pmem_dma",
	.alloc_disk = pmem_dma_alloc_disk,
	.free = pmem_dma_free,
	.groups = pmem_dma_groups,
};

static int __init pmem_dma_init(void)
{
	int rc;

	if (queue_depth.value * num_sg.value >= PMEM_DMA_MAX_DESCRIPTORS) {
		pr_err("queue_depth=%u times num_sg=%u must be less than %u\n",
		       queue_depth.value, num_sg.value,
		       PMEM_DMA_MAX_DESCRIPTORS);
		return -EINVAL;
	}
	pmem_dma_wq = alloc_workqueue("pmem_dma", WQ_MEM_RECLAIM | WQ_HIGHPRI,
				      0);
	if (!pmem_dma_wq)
		return -ENOMEM;
	rc = pmem_core_register(&pmem_dma_frontend, THIS_MODULE,
				KBUILD_MODNAME);
	if (rc)
		destroy_workqueue(pmem_dma_wq);
	return rc;
}
module_init(pmem_dma_init);

static void __exit pmem_dma_exit(void)
{
	pmem_core_unregister(&pmem_dma_frontend);
	destroy_workqueue(pmem_dma_wq);
}
module_exit(pmem_dma_exit);

MODULE_DESCRIPTION("Persistent memory block driver: DMA engine copy");
MODULE_LICENSE("GPL");
