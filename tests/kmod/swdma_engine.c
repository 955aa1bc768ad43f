// SPDX-License-Identifier: GPL-2.0
/*
 * swdma_engine - moves the data, and tells about it or does not
 *
 * Data is moved by a work per channel: too much of it for a tasklet.  A
 * descriptor's fate is decided when its turn comes.
 */
#include <linux/bottom_half.h>
#include <linux/dmaengine.h>
#include <linux/jiffies.h>
#include <linux/ktime.h>
#include <linux/printk.h>
#include <linux/random.h>

#include "swdma.h"

/* How far out of order a descriptor is taken at most. */
#define SWDMA_SHUFFLE_DEPTH	16

/* Whoever moves data or calls back, so that synchronize can wait for it. */
static void swdma_enter(struct swdma_chan *ch)
{
	atomic_inc(&ch->busy);
}

static void swdma_leave(struct swdma_chan *ch)
{
	if (atomic_dec_and_test(&ch->busy))
		wake_up_all(&ch->wake);
}

/**
 * swdma_put_desc() - have a descriptor free again
 * @ch: its channel
 * @desc: the descriptor, in no list
 *
 * Context: Under the channel's lock.
 */
void swdma_put_desc(struct swdma_chan *ch, struct swdma_desc *desc)
{
	lockdep_assert_held(&ch->lock);
	list_add_tail(&desc->node, &ch->free);
	wake_up(&ch->wake);
}

/* It has been called back, or never will be. */
static void swdma_end(struct swdma_chan *ch, struct swdma_desc *desc)
{
	ch->stats[SWDMA_STAT_IN_FLIGHT]--;
	swdma_put_desc(ch, desc);
}

/* -------------------------------------------------------------- call back */

static void swdma_call(struct swdma_desc *desc)
{
	struct dma_async_tx_descriptor *tx = &desc->tx;
	struct dmaengine_result res = {
		.result = desc->result,
		.residue = desc->len - desc->moved,
	};

	if (tx->callback_result)
		tx->callback_result(tx->callback_param, &res);
	else if (tx->callback)
		tx->callback(tx->callback_param);
}

/* Under the channel's lock. */
static void swdma_defer(struct swdma_chan *ch, struct swdma_desc *desc, u32 ms)
{
	desc->due = ktime_add_ms(ktime_get(), ms);
	list_add_tail(&desc->node, &ch->late);
	mod_delayed_work(swdma_wq, &ch->late_work, 0);
}

/* Under the channel's lock.  True if the descriptor gets no callback now. */
static bool swdma_lose(struct swdma_chan *ch, struct swdma_desc *desc)
{
	if (!desc->lost)
		return false;
	ch->stats[SWDMA_STAT_LOST]++;
	if (desc->lose_ms)
		swdma_defer(ch, desc, desc->lose_ms);
	else
		swdma_end(ch, desc);
	return true;
}

/* The next descriptor to call back, in no list any more. */
static struct swdma_desc *swdma_take_done(struct swdma_chan *ch)
{
	struct swdma_desc *desc;
	unsigned long flags;

	spin_lock_irqsave(&ch->lock, flags);
	do {
		desc = list_first_entry_or_null(&ch->done, struct swdma_desc,
						node);
		if (!desc)
			break;
		list_del_init(&desc->node);
		if (!desc->passed)
			WRITE_ONCE(ch->chan.completed_cookie, desc->tx.cookie);
		desc->passed = true;
	} while (swdma_lose(ch, desc));
	spin_unlock_irqrestore(&ch->lock, flags);
	return desc;
}

static void swdma_count_result(struct swdma_chan *ch, struct swdma_desc *desc)
{
	ch->stats[SWDMA_STAT_CALLBACKS]++;
	if (desc->result == DMA_TRANS_ABORTED)
		ch->stats[SWDMA_STAT_ABORTED]++;
	else if (desc->result != DMA_TRANS_NOERROR)
		ch->stats[SWDMA_STAT_FAILED]++;
}

static void swdma_call_back(struct swdma_chan *ch, struct swdma_desc *desc)
{
	unsigned long flags;

	dma_descriptor_unmap(&desc->tx);
	/* First, for a client that looks at the counters when called back. */
	spin_lock_irqsave(&ch->lock, flags);
	swdma_count_result(ch, desc);
	spin_unlock_irqrestore(&ch->lock, flags);

	swdma_call(desc);

	spin_lock_irqsave(&ch->lock, flags);
	if (desc->twice && !desc->called) {
		desc->called = true;
		ch->stats[SWDMA_STAT_IN_FLIGHT]--;
		swdma_defer(ch, desc, swdma_knob(ch, SWDMA_SPURIOUS_MS));
	} else {
		swdma_end(ch, desc);
	}
	spin_unlock_irqrestore(&ch->lock, flags);
}

static void swdma_reap(struct swdma_chan *ch)
{
	struct swdma_desc *desc;

	swdma_enter(ch);
	while ((desc = swdma_take_done(ch)))
		swdma_call_back(ch, desc);
	swdma_leave(ch);
}

/**
 * swdma_poll() - call back, in order, what is done
 * @ch: the channel
 *
 * Context: Bottom halves or less.  Not from a callback.
 */
void swdma_poll(struct swdma_chan *ch)
{
	spin_lock_bh(&ch->reap_lock);
	swdma_reap(ch);
	spin_unlock_bh(&ch->reap_lock);
}

/**
 * swdma_irq() - the interrupt of a channel
 * @task: its tasklet
 *
 * Context: Softirq.
 */
void swdma_irq(struct tasklet_struct *task)
{
	swdma_poll(container_of(task, struct swdma_chan, irq));
}

/* -------------------------------------------------------------------- move */

static void swdma_move_or_fail(struct swdma_chan *ch, struct swdma_desc *desc)
{
	bool half = desc->result != DMA_TRANS_NOERROR;

	if (!swdma_move(ch, desc, half ? desc->len / 2 : desc->len))
		return;
	pr_err_ratelimited("swdma: no memory at %pad or %pad\n", &desc->src,
			   &desc->dst);
	desc->result = DMA_TRANS_WRITE_FAILED;
}

static void swdma_pause(struct swdma_chan *ch, struct swdma_desc *desc)
{
	u64 us = swdma_knob(ch, SWDMA_DELAY_US);

	if (desc->slow)
		us += (u64)swdma_knob(ch, SWDMA_SLOW_MS) * USEC_PER_MSEC;
	if (us)
		wait_event_hrtimeout(ch->wake, READ_ONCE(desc->cut),
				     ns_to_ktime(us * NSEC_PER_USEC));
}

/*
 * Late data of a lost one never comes, or with its late callback.  In order that
 * would be unfair: the status has passed it by then, and so says that nothing is
 * going to be written any more.
 */
static bool swdma_data_follows(struct swdma_desc *desc)
{
	return desc->lost && (swdma_out_of_order || !desc->lose_ms);
}

static void swdma_execute(struct swdma_chan *ch, struct swdma_desc *desc)
{
	bool late = swdma_knob(ch, SWDMA_LATE);
	u8 poison = swdma_knob(ch, SWDMA_POISON);

	if (poison)
		swdma_fill(ch, desc, poison);
	if (!late)
		swdma_move_or_fail(ch, desc);
	swdma_pause(ch, desc);
	if (late && !swdma_data_follows(desc) && !READ_ONCE(desc->cut))
		swdma_move_or_fail(ch, desc);
	spin_lock_irq(&ch->lock);
	ch->stats[SWDMA_STAT_BYTES] += desc->moved;
	spin_unlock_irq(&ch->lock);
}

/* ------------------------------------------------------------------ engine */

/* Some way into the list when out of order, to deserve the name. */
static struct swdma_desc *swdma_pick(struct swdma_chan *ch)
{
	struct swdma_desc *desc, *last = NULL;
	unsigned int n = 0;

	if (swdma_out_of_order && swdma_knob(ch, SWDMA_SHUFFLE))
		n = get_random_u32() % SWDMA_SHUFFLE_DEPTH;
	list_for_each_entry(desc, &ch->issued, node) {
		last = desc;
		if (!n--)
			break;
	}
	return last;
}

static void swdma_decide(struct swdma_chan *ch, struct swdma_desc *desc)
{
	desc->slow = swdma_hit(ch, SWDMA_FAULT_SLOW);
	desc->lost = swdma_hit(ch, SWDMA_FAULT_LOSE);
	desc->lose_ms = swdma_knob(ch, SWDMA_LOSE_MS);
	desc->twice = swdma_hit(ch, SWDMA_FAULT_SPURIOUS);
	if (swdma_hit(ch, SWDMA_FAULT_FAIL))
		desc->result = swdma_knob(ch, SWDMA_FAIL_RESULT);
	if (desc->slow)
		ch->stats[SWDMA_STAT_SLOW]++;
}

static struct swdma_desc *swdma_take_issued(struct swdma_chan *ch)
{
	struct swdma_desc *desc = NULL;

	spin_lock_irq(&ch->lock);
	if (!ch->stop)
		desc = swdma_pick(ch);
	if (desc) {
		list_del_init(&desc->node);
		swdma_decide(ch, desc);
		ch->cur = desc;
		swdma_enter(ch);
	}
	spin_unlock_irq(&ch->lock);
	return desc;
}

/* Under the channel's lock. */
static void swdma_cut_one(struct swdma_chan *ch, struct swdma_desc *desc,
			  enum swdma_cut how)
{
	list_del_init(&desc->node);
	if (how == SWDMA_CUT_DROP) {
		ch->stats[SWDMA_STAT_DROPPED]++;
		swdma_end(ch, desc);
		return;
	}
	desc->result = DMA_TRANS_ABORTED;
	desc->lost = false;
	desc->twice = false;
	/* The one that is being worked on was before it. */
	list_add_tail(&desc->node, ch->cur ? &ch->behind : &ch->done);
}

/* Under the channel's lock. */
static void swdma_cut_list(struct swdma_chan *ch, struct list_head *list,
			   enum swdma_cut how)
{
	struct swdma_desc *desc, *next;

	list_for_each_entry_safe(desc, next, list, node)
		swdma_cut_one(ch, desc, how);
}

/* Under the channel's lock.  A descriptor has failed. */
static void swdma_abort_behind(struct swdma_chan *ch)
{
	if (!swdma_knob(ch, SWDMA_FAIL_ABORT))
		return;
	swdma_cut_list(ch, &ch->issued, SWDMA_CUT_ABORT);
	swdma_cut_list(ch, &ch->queued, SWDMA_CUT_ABORT);
}

/* Under the channel's lock.  Does an interrupt come of it? */
static bool swdma_retire(struct swdma_chan *ch, struct swdma_desc *desc)
{
	bool raise = desc->tx.flags & DMA_PREP_INTERRUPT;

	ch->cur = NULL;
	if (desc->cut != SWDMA_CUT_NOT)
		swdma_cut_one(ch, desc, desc->cut);
	else
		list_add_tail(&desc->node, &ch->done);
	list_splice_tail_init(&ch->behind, &ch->done);
	if (desc->cut == SWDMA_CUT_DROP)
		return false;
	if (desc->result != DMA_TRANS_NOERROR) {
		swdma_abort_behind(ch);
		raise = true;
	}
	if (raise && swdma_hit(ch, SWDMA_FAULT_IRQ)) {
		ch->stats[SWDMA_STAT_LOST_INTERRUPTS]++;
		raise = false;
	}
	ch->stats[SWDMA_STAT_INTERRUPTS] += raise;
	return raise;
}

static void swdma_do_one(struct swdma_chan *ch, struct swdma_desc *desc)
{
	bool raise;

	swdma_execute(ch, desc);
	spin_lock_irq(&ch->lock);
	raise = swdma_retire(ch, desc);
	spin_unlock_irq(&ch->lock);
	if (raise && swdma_out_of_order)
		swdma_reap(ch);
	else if (raise)
		tasklet_schedule(&ch->irq);
	swdma_leave(ch);
}

static bool swdma_may_start(struct swdma_chan *ch)
{
	return !swdma_knob(ch, SWDMA_STALL) || READ_ONCE(ch->stop);
}

/**
 * swdma_engine_work() - work on what was issued
 * @work: work of a channel
 *
 * Context: Process context.
 */
void swdma_engine_work(struct work_struct *work)
{
	struct swdma_chan *ch = container_of(work, struct swdma_chan, engine);
	struct swdma_desc *desc;

	do {
		wait_event_idle(ch->wake, swdma_may_start(ch));
		desc = swdma_take_issued(ch);
		if (desc)
			swdma_do_one(ch, desc);
	} while (desc);
}

/**
 * swdma_cut_off() - be rid of everything that is not done
 * @ch: the channel
 * @how: with a callback or without
 *
 * The one that is being worked on follows when the engine is through with it.
 *
 * Context: Any.
 */
void swdma_cut_off(struct swdma_chan *ch, enum swdma_cut how)
{
	struct swdma_desc *desc, *next;
	unsigned long flags;

	spin_lock_irqsave(&ch->lock, flags);
	list_for_each_entry_safe(desc, next, &ch->late, node) {
		if (!desc->called) {
			swdma_cut_one(ch, desc, how);
			continue;
		}
		list_del_init(&desc->node);
		swdma_put_desc(ch, desc);
	}
	if (how == SWDMA_CUT_DROP) {
		swdma_cut_list(ch, &ch->done, how);
		swdma_cut_list(ch, &ch->behind, how);
	}
	swdma_cut_list(ch, &ch->issued, how);
	swdma_cut_list(ch, &ch->queued, how);
	if (ch->cur)
		WRITE_ONCE(ch->cur->cut, how);
	spin_unlock_irqrestore(&ch->lock, flags);
	wake_up_all(&ch->wake);
	/* Not from here: the client may hold a lock that its callback takes. */
	tasklet_schedule(&ch->irq);
}

/* -------------------------------------------------------------------- late */

/* The next one whose time has come; else come again when it has. */
static struct swdma_desc *swdma_take_late(struct swdma_chan *ch)
{
	struct swdma_desc *desc, *first = NULL;

	spin_lock_irq(&ch->lock);
	list_for_each_entry(desc, &ch->late, node)
		if (!first || ktime_before(desc->due, first->due))
			first = desc;
	if (first) {
		s64 ms = ktime_ms_delta(first->due, ktime_get());

		if (ms > 0) {
			mod_delayed_work(swdma_wq, &ch->late_work,
					 msecs_to_jiffies(ms));
			first = NULL;
		} else {
			list_del_init(&first->node);
		}
	}
	spin_unlock_irq(&ch->lock);
	return first;
}

static void swdma_call_late(struct swdma_chan *ch, struct swdma_desc *desc)
{
	size_t moved = desc->moved;

	if (swdma_knob(ch, SWDMA_LATE))
		swdma_move_or_fail(ch, desc);
	spin_lock_irq(&ch->lock);
	ch->stats[SWDMA_STAT_BYTES] += desc->moved - moved;
	ch->stats[SWDMA_STAT_LATE]++;
	spin_unlock_irq(&ch->lock);
	local_bh_disable();
	swdma_call_back(ch, desc);
	local_bh_enable();
}

static void swdma_call_again(struct swdma_chan *ch, struct swdma_desc *desc)
{
	spin_lock_irq(&ch->lock);
	ch->stats[SWDMA_STAT_SPURIOUS]++;
	spin_unlock_irq(&ch->lock);
	local_bh_disable();
	swdma_call(desc);
	local_bh_enable();
	spin_lock_irq(&ch->lock);
	swdma_put_desc(ch, desc);
	spin_unlock_irq(&ch->lock);
}

/**
 * swdma_late_work() - call back those that are late, or once too often
 * @work: work of a channel
 *
 * Context: Process context; callbacks run with bottom halves disabled.
 */
void swdma_late_work(struct work_struct *work)
{
	struct swdma_chan *ch = container_of(to_delayed_work(work),
					     struct swdma_chan, late_work);
	struct swdma_desc *desc;

	swdma_enter(ch);
	while ((desc = swdma_take_late(ch))) {
		if (desc->called)
			swdma_call_again(ch, desc);
		else
			swdma_call_late(ch, desc);
	}
	swdma_leave(ch);
}
