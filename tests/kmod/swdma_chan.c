// SPDX-License-Identifier: GPL-2.0
/*
 * swdma_chan - what dmaengine and its clients call
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/delay.h>
#include <linux/dmaengine.h>
#include <linux/kernel.h>
#include <linux/mm.h>
#include <linux/slab.h>

#include "swdma.h"

/* -------------------------------------------------------------------- prep */

static void swdma_bump(struct swdma_chan *ch, enum swdma_stat stat)
{
	unsigned long flags;

	spin_lock_irqsave(&ch->lock, flags);
	ch->stats[stat]++;
	spin_unlock_irqrestore(&ch->lock, flags);
}

static bool swdma_fits(struct swdma_chan *ch, dma_addr_t dst, dma_addr_t src,
		       size_t len)
{
	if (!len || (swdma_max_len && len > swdma_max_len)) {
		swdma_bump(ch, SWDMA_STAT_TOO_LONG);
		return false;
	}
	if ((dst | src | len) & (BIT_ULL(swdma_copy_align) - 1)) {
		swdma_bump(ch, SWDMA_STAT_MISALIGNED);
		return false;
	}
	return true;
}

static struct swdma_desc *swdma_get_desc_locked(struct swdma_chan *ch)
{
	struct swdma_desc *desc;

	if (ch->dead) {
		ch->stats[SWDMA_STAT_GONE]++;
		return NULL;
	}
	if (swdma_hit(ch, SWDMA_FAULT_PREP)) {
		ch->stats[SWDMA_STAT_PREP_ERRORS]++;
		return NULL;
	}
	desc = list_first_entry_or_null(&ch->free, struct swdma_desc, node);
	if (desc)
		list_del_init(&desc->node);
	else
		ch->stats[SWDMA_STAT_RING_FULL]++;
	return desc;
}

static struct swdma_desc *swdma_get_desc(struct swdma_chan *ch)
{
	struct swdma_desc *desc;
	unsigned long flags;

	spin_lock_irqsave(&ch->lock, flags);
	desc = swdma_get_desc_locked(ch);
	spin_unlock_irqrestore(&ch->lock, flags);
	return desc;
}

static struct dma_async_tx_descriptor *
swdma_prepare(struct swdma_chan *ch, struct swdma_desc *desc, dma_addr_t dst,
	      dma_addr_t src, size_t len, unsigned long flags)
{
	/* It is in no list, so there is nothing in it to keep. */
	memset(desc, 0, sizeof(*desc));
	INIT_LIST_HEAD(&desc->node);
	dma_async_tx_descriptor_init(&desc->tx, &ch->chan);
	desc->tx.flags = flags;
	desc->dst = dst;
	desc->src = src;
	desc->len = len;
	desc->result = DMA_TRANS_NOERROR;
	return &desc->tx;
}

/* ------------------------------------------------------------------ submit */

static dma_cookie_t swdma_queue_locked(struct swdma_chan *ch,
				       struct swdma_desc *desc)
{
	dma_cookie_t cookie = ch->chan.cookie + 1;

	if (ch->dead) {
		ch->stats[SWDMA_STAT_GONE]++;
		return -ENODEV;
	}
	if (swdma_hit(ch, SWDMA_FAULT_SUBMIT)) {
		ch->stats[SWDMA_STAT_SUBMIT_ERRORS]++;
		return -EIO;
	}
	if (cookie < DMA_MIN_COOKIE)
		cookie = DMA_MIN_COOKIE;
	desc->tx.cookie = cookie;
	ch->chan.cookie = cookie;
	list_add_tail(&desc->node, &ch->queued);
	ch->stats[SWDMA_STAT_DESCRIPTORS]++;
	ch->stats[SWDMA_STAT_IN_FLIGHT]++;
	if (ch->stats[SWDMA_STAT_IN_FLIGHT] >
	    ch->stats[SWDMA_STAT_MAX_IN_FLIGHT])
		ch->stats[SWDMA_STAT_MAX_IN_FLIGHT] =
			ch->stats[SWDMA_STAT_IN_FLIGHT];
	return cookie;
}

static dma_cookie_t swdma_queue(struct dma_async_tx_descriptor *tx)
{
	struct swdma_desc *desc = container_of(tx, struct swdma_desc, tx);
	struct swdma_chan *ch = to_swdma_chan(tx->chan);
	dma_cookie_t cookie;
	unsigned long flags;

	spin_lock_irqsave(&ch->lock, flags);
	cookie = swdma_queue_locked(ch, desc);
	if (cookie < 0)
		swdma_put_desc(ch, desc);
	spin_unlock_irqrestore(&ch->lock, flags);
	return cookie;
}

static void swdma_issue(struct dma_chan *chan)
{
	struct swdma_chan *ch = to_swdma_chan(chan);
	unsigned long flags;

	spin_lock_irqsave(&ch->lock, flags);
	list_splice_tail_init(&ch->queued, &ch->issued);
	spin_unlock_irqrestore(&ch->lock, flags);
	queue_work_node(ch->sd->nid, swdma_wq, &ch->engine);
}

/* ---------------------------------------------------------------- in order */

static dma_cookie_t swdma_submit_ordered(struct dma_async_tx_descriptor *tx)
{
	struct swdma_chan *ch = to_swdma_chan(tx->chan);
	dma_cookie_t cookie = swdma_queue(tx);

	__acquire(&ch->prep_lock);
	spin_unlock_bh(&ch->prep_lock);
	return cookie;
}

/* Returns with prep_lock held unless it returns NULL. */
static struct dma_async_tx_descriptor *
swdma_prep_ordered(struct dma_chan *chan, dma_addr_t dst, dma_addr_t src,
		   size_t len, unsigned long flags)
{
	struct swdma_chan *ch = to_swdma_chan(chan);
	struct dma_async_tx_descriptor *tx;
	struct swdma_desc *desc;

	if (!swdma_fits(ch, dst, src, len))
		return NULL;
	spin_lock_bh(&ch->prep_lock);
	desc = swdma_get_desc(ch);
	if (!desc) {
		spin_unlock_bh(&ch->prep_lock);
		return NULL;
	}
	tx = swdma_prepare(ch, desc, dst, src, len, flags);
	tx->tx_submit = swdma_submit_ordered;
	__release(&ch->prep_lock);
	return tx;
}

static enum dma_status swdma_status_ordered(struct dma_chan *chan,
					    dma_cookie_t cookie,
					    struct dma_tx_state *state)
{
	struct swdma_chan *ch = to_swdma_chan(chan);
	dma_cookie_t used = READ_ONCE(chan->cookie);
	dma_cookie_t last = READ_ONCE(chan->completed_cookie);

	if (dma_async_is_complete(cookie, last, used) != DMA_COMPLETE) {
		swdma_bump(ch, SWDMA_STAT_POLLS);
		swdma_poll(ch);
		last = READ_ONCE(chan->completed_cookie);
	}
	if (state) {
		state->last = last;
		state->used = used;
		state->residue = 0;
	}
	return dma_async_is_complete(cookie, last, used);
}

/* ------------------------------------------------------------ out of order */

static void swdma_sleep(struct swdma_chan *ch)
{
	u32 us = swdma_knob(ch, SWDMA_SLEEP_US);

	might_sleep();
	if (us)
		usleep_range(us, us + us / 4 + 1);
}

/* Off it goes: idxd has nothing to do when asked to issue what is pending. */
static dma_cookie_t swdma_submit_unordered(struct dma_async_tx_descriptor *tx)
{
	dma_cookie_t cookie;

	swdma_sleep(to_swdma_chan(tx->chan));
	cookie = swdma_queue(tx);
	swdma_issue(tx->chan);
	return cookie;
}

static bool swdma_has_desc(struct swdma_chan *ch)
{
	return !list_empty_careful(&ch->free) || READ_ONCE(ch->dead);
}

static struct dma_async_tx_descriptor *
swdma_prep_unordered(struct dma_chan *chan, dma_addr_t dst, dma_addr_t src,
		     size_t len, unsigned long flags)
{
	struct swdma_chan *ch = to_swdma_chan(chan);
	struct dma_async_tx_descriptor *tx;
	struct swdma_desc *desc;

	swdma_sleep(ch);
	if (!swdma_fits(ch, dst, src, len))
		return NULL;
	if (swdma_block)
		wait_event_idle(ch->wake, swdma_has_desc(ch));
	desc = swdma_get_desc(ch);
	if (!desc)
		return NULL;
	tx = swdma_prepare(ch, desc, dst, src, len, flags);
	tx->tx_submit = swdma_submit_unordered;
	return tx;
}

static enum dma_status swdma_status_unordered(struct dma_chan *chan,
					      dma_cookie_t cookie,
					      struct dma_tx_state *state)
{
	return DMA_OUT_OF_ORDER;
}

/* -------------------------------------------------------------- both kinds */

static int swdma_terminate_chan(struct dma_chan *chan)
{
	swdma_cut_off(to_swdma_chan(chan), swdma_terminate > 1 ?
		      SWDMA_CUT_ABORT : SWDMA_CUT_DROP);
	return 0;
}

/* Afterwards no memory is touched and no callback runs for what was cut off. */
static void swdma_synchronize_chan(struct dma_chan *chan)
{
	struct swdma_chan *ch = to_swdma_chan(chan);

	wait_event_idle(ch->wake, !atomic_read(&ch->busy));
}

static int swdma_alloc(struct dma_chan *chan)
{
	struct swdma_chan *ch = to_swdma_chan(chan);
	unsigned int i;

	/*
	 * dmaengine may offer a device that has left while somebody else still
	 * holds a channel of it.  Not -ENODEV: it would unlink it twice then.
	 */
	if (ch->dead)
		return -ESHUTDOWN;
	ch->descs = kvcalloc(swdma_ring, sizeof(*ch->descs), GFP_KERNEL);
	if (!ch->descs)
		return -ENOMEM;
	if (swdma_mem_init(ch)) {
		kvfree(ch->descs);
		return -ENOMEM;
	}
	for (i = 0; i < swdma_ring; i++)
		list_add_tail(&ch->descs[i].node, &ch->free);
	chan->cookie = DMA_MIN_COOKIE;
	chan->completed_cookie = DMA_MIN_COOKIE;
	ch->stop = false;
	return swdma_ring;
}

/* A client may give a channel back with descriptors in flight: its problem. */
static void swdma_discard(struct swdma_chan *ch)
{
	u64 left;

	spin_lock_irq(&ch->lock);
	left = ch->stats[SWDMA_STAT_IN_FLIGHT];
	ch->stats[SWDMA_STAT_DROPPED] += left;
	ch->stats[SWDMA_STAT_IN_FLIGHT] = 0;
	INIT_LIST_HEAD(&ch->free);
	INIT_LIST_HEAD(&ch->queued);
	INIT_LIST_HEAD(&ch->issued);
	INIT_LIST_HEAD(&ch->behind);
	INIT_LIST_HEAD(&ch->done);
	INIT_LIST_HEAD(&ch->late);
	spin_unlock_irq(&ch->lock);
	if (left)
		pr_warn("node %d channel %d given back with %llu descriptors in flight\n",
			ch->sd->nid, ch->chan.chan_id, left);
}

static void swdma_free(struct dma_chan *chan)
{
	struct swdma_chan *ch = to_swdma_chan(chan);

	spin_lock_irq(&ch->lock);
	ch->stop = true;
	if (ch->cur)
		WRITE_ONCE(ch->cur->cut, SWDMA_CUT_DROP);
	spin_unlock_irq(&ch->lock);
	wake_up_all(&ch->wake);
	cancel_work_sync(&ch->engine);
	tasklet_kill(&ch->irq);
	cancel_delayed_work_sync(&ch->late_work);
	swdma_discard(ch);
	swdma_mem_exit(ch);
	kvfree(ch->descs);
	ch->descs = NULL;
}

/**
 * swdma_chan_init() - set up a channel
 * @ch: the channel, zeroed
 * @sd: its device
 *
 * Context: Process context.
 */
void swdma_chan_init(struct swdma_chan *ch, struct swdma_dev *sd)
{
	ch->sd = sd;
	ch->chan.device = &sd->dd;
	spin_lock_init(&ch->prep_lock);
	spin_lock_init(&ch->reap_lock);
	spin_lock_init(&ch->lock);
	INIT_LIST_HEAD(&ch->free);
	INIT_LIST_HEAD(&ch->queued);
	INIT_LIST_HEAD(&ch->issued);
	INIT_LIST_HEAD(&ch->behind);
	INIT_LIST_HEAD(&ch->done);
	INIT_LIST_HEAD(&ch->late);
	mutex_init(&ch->move_lock);
	init_waitqueue_head(&ch->wake);
	INIT_WORK(&ch->engine, swdma_engine_work);
	INIT_DELAYED_WORK(&ch->late_work, swdma_late_work);
	tasklet_setup(&ch->irq, swdma_irq);
	list_add_tail(&ch->chan.device_node, &sd->dd.channels);
}

/**
 * swdma_chan_leave() - take no more descriptors
 * @ch: channel of a device that leaves, perhaps in use
 *
 * Context: Process context.
 */
void swdma_chan_leave(struct swdma_chan *ch)
{
	spin_lock_irq(&ch->lock);
	ch->dead = true;
	/* Nobody can reach the knob any more. */
	ch->knobs[SWDMA_STALL].value = 0;
	spin_unlock_irq(&ch->lock);
	wake_up_all(&ch->wake);
	switch (swdma_knob(ch, SWDMA_UNBIND)) {
	case SWDMA_UNBIND_ABORT:
		swdma_cut_off(ch, SWDMA_CUT_ABORT);
		break;
	case SWDMA_UNBIND_DROP:
		swdma_cut_off(ch, SWDMA_CUT_DROP);
		break;
	}
}

/**
 * swdma_chan_ops() - set the functions of a device
 * @dd: the device
 *
 * Context: Any.
 */
void swdma_chan_ops(struct dma_device *dd)
{
	dd->device_alloc_chan_resources = swdma_alloc;
	dd->device_free_chan_resources = swdma_free;
	dd->device_issue_pending = swdma_issue;
	if (swdma_out_of_order) {
		dd->device_prep_dma_memcpy = swdma_prep_unordered;
		dd->device_tx_status = swdma_status_unordered;
	} else {
		dd->device_prep_dma_memcpy = swdma_prep_ordered;
		dd->device_tx_status = swdma_status_ordered;
	}
	if (swdma_terminate)
		dd->device_terminate_all = swdma_terminate_chan;
	if (swdma_synchronize)
		dd->device_synchronize = swdma_synchronize_chan;
}
