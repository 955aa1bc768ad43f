// SPDX-License-Identifier: GPL-2.0
/*
 * pmem_dma_rq - life of a request
 *
 *	plan	pmem_dma_plan() cuts it into segments, or says why the CPU has
 *		to copy it.  Nothing has happened yet that needs undoing.
 *	execute	pmem_dma_map_segs() maps all segments, then pmem_dma_submit()
 *		preps and submits them back to back: some providers hold a
 *		spinlock from one to the other, so that nothing may come in
 *		between.  The channel is kicked once for a batch of requests.
 *	complete pmem_dma_done() is called for every descriptor; the last one
 *		finishes the request, straight from the callback if little is
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
#include <linux/bio.h>
#include <linux/blk-mq.h>
#include <linux/delay.h>
#include <linux/dma-mapping.h>
#include <linux/dmaengine.h>
#include <linux/jiffies.h>
#include <linux/ktime.h>
#include <linux/percpu.h>
#include <linux/sizes.h>
#include <linux/slab.h>

#include "pmem.h"
#include "pmem_dma.h"
#include "pmem_dma_gen.h"

#define CREATE_TRACE_POINTS
#include "pmem_dma_trace.h"

/*
 * To write back so much takes some microseconds, no longer than to have a worker
 * do it, and is done where the callback comes in, which may be a softirq.
 */
#define PMEM_DMA_WB_INLINE	SZ_64K

/* How long a submitter waits for the descriptors ahead of a full ring. */
#define PMEM_DMA_FULL_WAIT_US	50
#define PMEM_DMA_FULL_WAITS	2000

static struct workqueue_struct *pmem_dma_wq;

/**
 * pmem_dma_rq_init() - what all requests share
 *
 * Context: Process context.  May sleep.
 * Return: 0 or -ENOMEM.
 */
int pmem_dma_rq_init(void)
{
	pmem_dma_wq = alloc_workqueue("pmem_dma", WQ_MEM_RECLAIM | WQ_HIGHPRI |
				      WQ_PERCPU, 0);
	return pmem_dma_wq ? 0 : -ENOMEM;
}

/**
 * pmem_dma_rq_exit() - undo pmem_dma_rq_init()
 *
 * Context: Process context.  May sleep.
 */
void pmem_dma_rq_exit(void)
{
	destroy_workqueue(pmem_dma_wq);
}

/**
 * pmem_dma_rq_size() - size of the driver's part of a request
 * @num_sg: segments
 *
 * Return: bytes.
 */
size_t pmem_dma_rq_size(unsigned int num_sg)
{
	struct pmem_dma_cmd *cmd;

	/* Two for an administrator's copy from memory to memory. */
	return struct_size(cmd, segs, max(num_sg, 2U));
}

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
static void pmem_dma_copy_and_end(struct pmem_dma_dev *pd, struct request *rq,
				  enum pmem_dma_path path)
{
	bool fua = rq->cmd_flags & REQ_FUA;
	unsigned int all = blk_rq_bytes(rq);
	sector_t sector = blk_rq_pos(rq);
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
	trace_complete(rq, sector, all, path);
	__blk_mq_end_request(rq, BLK_STS_OK);
}

static void pmem_dma_by_cpu(struct pmem_dma_dev *pd, struct request *rq,
			    enum pmem_dma_path path)
{
	pmem_dma_count(pd, path, op_is_write(req_op(rq)), 0, blk_rq_bytes(rq));
	if (path != PMEM_DMA_CPU_CHOSEN)
		trace_fallback(rq, blk_rq_pos(rq), blk_rq_bytes(rq), path);
	if (rq->cmd_flags & REQ_FUA)
		this_cpu_inc(pd->stats->flushes);
	pmem_dma_copy_and_end(pd, rq, path);
}

/* ---------------------------------------------------------------- complete */

static enum dma_data_direction pmem_dma_dir(struct request *rq)
{
	if (unlikely(blk_rq_is_passthrough(rq)))
		return DMA_BIDIRECTIONAL;
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
	trace_complete(rq, blk_rq_pos(rq), blk_rq_bytes(rq), PMEM_DMA_ENGINE);
	return sts;
}

/* Its request is nobody's: the block layer frees it. */
static void pmem_dma_end_admin(struct request *rq, blk_status_t sts)
{
	struct pmem_dma_cmd *cmd = blk_mq_rq_to_pdu(rq);
	struct pmem_dma_admin *admin = cmd->admin;

	blk_mq_end_request(rq, sts);
	pmem_dma_admin_end(admin, sts);
}

static void pmem_dma_settle_admin(struct request *rq)
{
	struct pmem_dma_cmd *cmd = blk_mq_rq_to_pdu(rq);

	cmd->admin->ns += ktime_get_ns();
	pmem_dma_end_admin(rq, cmd->failed ? BLK_STS_IOERR : BLK_STS_OK);
}

static void pmem_dma_finish_slow(struct request *rq)
{
	struct pmem_dma_cmd *cmd = blk_mq_rq_to_pdu(rq);
	struct pmem_dma_dev *pd = cmd->q->pd;

	pmem_dma_unmap_segs(cmd, 0, pmem_dma_dir(rq));
	if (blk_rq_is_passthrough(rq))
		pmem_dma_settle_admin(rq);
	else if (cmd->failed)
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
	if (unlikely(blk_rq_is_passthrough(rq)))
		pmem_dma_settle_admin(rq);
	else
		blk_mq_end_request(rq, pmem_dma_settle(cmd->q->pd, rq));
}

/**
 * pmem_dma_finish() - a command's last descriptor is over
 * @cmd: the command, which nobody else has any more
 *
 * Context: Any, also the callback of a descriptor.
 */
void pmem_dma_finish(struct pmem_dma_cmd *cmd)
{
	struct request *rq = blk_mq_rq_from_pdu(cmd);
	struct pmem_dma_queue *q = cmd->q;
	bool slow = cmd->failed || (rq->cmd_flags & REQ_FUA) ||
		(op_is_write(req_op(rq)) && q->pd->pmem->needs_wb &&
		 blk_rq_bytes(rq) > PMEM_DMA_WB_INLINE);

	if (likely(!slow))
		blk_mq_complete_request(rq);
	else if (llist_add(&cmd->done, &q->done))
		queue_work(pmem_dma_wq, &q->work);
}

/* Called by the provider, in any context, once per descriptor. */
static void pmem_dma_done(void *param, const struct dmaengine_result *res)
{
	struct pmem_dma_cmd *cmd = pmem_dma_gen_take(param);
	struct pmem_dma_chan *ch;

	/* Spurious, as far as that can be told. */
	if (unlikely(!cmd || !cmd->link))
		return;
	/* Fault injection: the provider has lost the callback. */
	if (blk_should_fake_timeout(blk_mq_rq_from_pdu(cmd)->q)) {
		pmem_dma_gen_untake(param);
		return;
	}

	ch = cmd->link->ch;
	WRITE_ONCE(ch->last_done, jiffies);
	if (unlikely(res && res->result != DMA_TRANS_NOERROR)) {
		this_cpu_inc(cmd->q->pd->stats->errors);
		WRITE_ONCE(cmd->failed, true);
		/* Those behind a failed one are aborted; one strike for all. */
		if (res->result != DMA_TRANS_ABORTED)
			pmem_dma_chan_failed(ch);
	} else if (unlikely(READ_ONCE(ch->strikes))) {
		WRITE_ONCE(ch->strikes, 0);
	}
	/* Orders @failed before the last one out looks at it. */
	if (atomic_dec_and_test(&cmd->pending))
		pmem_dma_finish(cmd);
}

/* ----------------------------------------------------------------- execute */

static __always_inline bool pmem_dma_map_segs(struct pmem_dma_cmd *cmd, u32 nr,
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

/* From here on, until it is finished, a command can be found to be late. */
static __always_inline void pmem_dma_begin(struct pmem_dma_cmd *cmd, u32 nr)
{
	cmd->overdue = 0;
	cmd->start = jiffies;
	cmd->marked = false;
	/* Whoever finds it finds the above, not what its last use has left. */
	atomic_set_release(&cmd->pending, PMEM_DMA_SUBMITTING + nr);
	pmem_dma_gen_begin(cmd, nr);
	pmem_dma_watch(cmd->q->pd);
}

/* Prep and submit one segment; false if the channel does not take it. */
static __always_inline bool pmem_dma_submit_seg(struct pmem_dma_cmd *cmd,
						u32 i, dma_addr_t media,
						bool write, unsigned long flags)
{
	const struct pmem_dma_seg *seg = &cmd->segs[i];
	struct dma_chan *chan = cmd->link->ch->chan;
	struct dma_async_tx_descriptor *tx;
	dma_cookie_t cookie;

	tx = dmaengine_prep_dma_memcpy(chan, write ? media : seg->dma,
				       write ? seg->dma : media, seg->len,
				       flags);
	if (unlikely(!tx))
		return false;
	tx->callback_result = pmem_dma_done;
	tx->callback_param = pmem_dma_gen_param(cmd, i);
	cookie = dmaengine_submit(tx);
	if (unlikely(dma_submit_error(cookie)))
		return false;
	cmd->cookie = cookie;
	return true;
}

/*
 * A full ring met us in the middle of a request, before the descriptor whose
 * interrupt was to report the earlier ones.  Asking for their status makes the
 * provider look; a hung engine is the watch's business.
 */
static void pmem_dma_poll_submitted(struct pmem_dma_cmd *cmd, u32 not_submitted)
{
	unsigned int i;

	for (i = 0; i < PMEM_DMA_FULL_WAITS; i++) {
		if (atomic_read(&cmd->pending) ==
		    PMEM_DMA_SUBMITTING + not_submitted)
			return;
		dma_async_is_tx_complete(cmd->link->ch->chan, cmd->cookie, NULL,
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
	u32 nr = cmd->nr_segs, sent = 0, left, i;

	for (i = 0; i < nr; i++) {
		struct pmem_dma_seg *seg = &cmd->segs[i];
		unsigned long flags = DMA_CTRL_ACK;

		if (i == nr - 1 || !ch->ordered)
			flags |= DMA_PREP_INTERRUPT;
		if (!pmem_dma_submit_seg(cmd, i,
					 cmd->link->base + start + sent, write,
					 flags))
			break;
		sent += seg->len;
	}
	if (likely(i == nr))
		return true;

	pmem_dma_gen_withdraw(cmd, i);
	if (!i) {
		pmem_dma_unmap_segs(cmd, 0, pmem_dma_dir(rq));
		atomic_set(&cmd->pending, 0);
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
		pmem_dma_poll_submitted(cmd, left);
	/* Our own share keeps it from reaching zero. */
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
	for_each_set_bit(i, &links, BITS_PER_LONG) {
		struct pmem_dma_chan *ch = READ_ONCE(q->links[i].ch);

		if (likely(ch))
			dma_async_issue_pending(ch->chan);
	}
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

		if (link->ch && pmem_dma_chan_usable(link->ch))
			return link;
	}
	return NULL;
}

/*
 * An engine is wanted: can one do it?  PMEM_DMA_ENGINE leaves the channel and the segments
 * in the command, and their number in *@nr.
 */
static enum pmem_dma_path pmem_dma_plan(struct pmem_dma_queue *q,
					struct request *rq, u32 *nr)
{
	struct pmem_dma_cmd *cmd = blk_mq_rq_to_pdu(rq);
	struct pmem_dma_dev *pd = q->pd;
	struct pmem_dma_plan plan = {
		.segs = cmd->segs,
		.max_segs = pd->num_sg,
	};
	enum pmem_dma_path path;
	struct req_iterator iter;
	struct bio_vec bv;

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

/* Not in the way of requests that are for the CPU anyway. */
static noinline enum pmem_dma_path pmem_dma_execute(struct pmem_dma_queue *q,
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
	pmem_dma_begin(cmd, nr);
	trace_submit(rq, link->ch, nr);
	if (unlikely(!pmem_dma_submit(cmd, rq)))
		return PMEM_DMA_CPU_FULL;

	set_bit(link - q->links, &q->unissued);
	/* From here on the request may be gone. */
	if (atomic_sub_and_test(PMEM_DMA_SUBMITTING, &cmd->pending))
		pmem_dma_finish(cmd);
	return PMEM_DMA_ENGINE;
}

/* The link, if it is there and can copy what is asked for; else set *@sts. */
static struct pmem_dma_link *pmem_dma_admin_link(struct pmem_dma_dev *pd,
						 struct pmem_dma_admin *admin,
						 blk_status_t *sts)
{
	struct pmem_dma_queue *q = pd->queues[admin->queue];
	struct pmem_dma_link *link = &q->links[admin->link];
	u64 at;

	*sts = BLK_STS_TARGET;
	if (admin->link >= q->nr_links || !link->ch ||
	    !pmem_dma_chan_usable(link->ch))
		return NULL;
	*sts = BLK_STS_NOTSUPP;
	at = admin->from ? 0 : link->base + admin->offset;
	if (admin->len > link->ch->limits.max_len ||
	    ((admin->len | at) & link->ch->limits.align_mask))
		return NULL;
	return link;
}

/*
 * A copy that pmem_dma_admin.c asks for, on a channel that need not belong to the
 * queue that the request came by.  No CPU stands in for the channel.
 */
static noinline blk_status_t pmem_dma_queue_admin(struct pmem_dma_dev *pd,
						  struct request *rq)
{
	struct pmem_dma_cmd *cmd = blk_mq_rq_to_pdu(rq);
	struct pmem_dma_admin *admin = cmd->admin;
	struct pmem_dma_link *link;
	dma_addr_t from;
	blk_status_t sts;

	link = pmem_dma_admin_link(pd, admin, &sts);
	if (!link)
		goto out_end;
	sts = BLK_STS_IOERR;
	cmd->q = pd->queues[admin->queue];
	cmd->link = link;
	cmd->failed = false;
	cmd->segs[0].addr = virt_to_phys(admin->to);
	cmd->segs[0].len = admin->len;
	if (admin->from) {
		cmd->segs[1].addr = virt_to_phys(admin->from);
		cmd->segs[1].len = admin->len;
	}
	if (!pmem_dma_map_segs(cmd, admin->from ? 2 : 1, pmem_dma_dir(rq)))
		goto out_end;
	from = admin->from ? cmd->segs[1].dma : link->base + admin->offset;
	admin->ns = -ktime_get_ns();
	pmem_dma_begin(cmd, 1);
	if (!pmem_dma_submit_seg(cmd, 0, from, false,
				 DMA_CTRL_ACK | DMA_PREP_INTERRUPT)) {
		pmem_dma_gen_withdraw(cmd, 0);
		atomic_set(&cmd->pending, 0);
		pmem_dma_unmap_segs(cmd, 0, pmem_dma_dir(rq));
		goto out_end;
	}
	dma_async_issue_pending(link->ch->chan);
	if (atomic_sub_and_test(PMEM_DMA_SUBMITTING, &cmd->pending))
		pmem_dma_finish(cmd);
	return BLK_STS_OK;

out_end:
	pmem_dma_end_admin(rq, sts);
	return BLK_STS_OK;
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
		path = PMEM_DMA_CPU_CHOSEN;
		if (pmem_dma_wants_engine(READ_ONCE(pd->policy),
					  blk_rq_bytes(rq),
					  READ_ONCE(pd->min_bytes[rq_data_dir(rq)])))
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
	case REQ_OP_DRV_IN:
		if (bd->last)
			pmem_dma_issue(q);
		return pmem_dma_queue_admin(pd, rq);
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

const struct blk_mq_ops pmem_dma_mq_ops = {
	.queue_rq = pmem_dma_queue_rq,
	.commit_rqs = pmem_dma_commit_rqs,
	.complete = pmem_dma_complete,
	.init_hctx = pmem_dma_init_hctx,
	.map_queues = pmem_dma_map_queues,
};
