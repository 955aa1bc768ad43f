// SPDX-License-Identifier: GPL-2.0
/*
 * pmem_dma_inflight - the requests that channels have: count, find late, take back
 *
 * The block layer's own search for late requests is not used.  Before it calls a
 * driver it waits for all queue_rq() calls under way, and one of those may be in the
 * prep of a provider that waits for a free descriptor (idxd), for as long as its
 * engine hangs: just when the search would matter.  So each disk has a work that
 * looks at the requests themselves.  It runs while channels have any.
 */
#include <linux/blk-mq.h>
#include <linux/jiffies.h>
#include <linux/minmax.h>
#include <linux/percpu.h>
#include <linux/rcupdate.h>
#include <linux/workqueue.h>

#include "pmem.h"
#include "pmem_dma.h"
#include "pmem_dma_gen.h"
#include "pmem_dma_trace.h"

/* How often a request may be overdue on a channel that completes others. */
#define PMEM_DMA_MAX_OVERDUE	5

/* ------------------------------------------------------------------- watch */

/*
 * A long queue is no reason to suspect a channel that works it off; to be overdue
 * several times is.
 */
static bool pmem_dma_overdue(struct pmem_dma_cmd *cmd, struct pmem_dma_chan *ch,
			     unsigned int timeout)
{
	return ++cmd->overdue >= PMEM_DMA_MAX_OVERDUE ||
		time_after_eq(jiffies, READ_ONCE(ch->last_done) + timeout);
}

/*
 * No descriptor can be taken back: the engine may still write into the memory
 * of a late request, so it must not complete here.  It completes when its
 * callbacks come, or when pmem_dma_recover() knows that they never will.
 */
static bool pmem_dma_watch_rq(struct request *rq, void *data)
{
	struct pmem_dma_cmd *cmd = blk_mq_rq_to_pdu(rq);
	struct pmem_dma_link *link = READ_ONCE(cmd->link);
	struct pmem_dma_dev *pd = rq->q->queuedata;
	unsigned int timeout = READ_ONCE(rq->timeout);
	bool *busy = data;
	struct pmem_dma_chan *ch;

	/* With the CPU, in a flush, or about to be finished. */
	if (!link || !atomic_read_acquire(&cmd->pending))
		return true;
	*busy = true;
	if (time_before(jiffies, READ_ONCE(cmd->start) +
			(cmd->overdue + 1UL) * timeout))
		return true;

	/* The provider may be leaving, pmem_dma_leave() waits for us. */
	rcu_read_lock();
	ch = READ_ONCE(link->ch);
	if (ch && pmem_dma_overdue(cmd, ch, timeout)) {
		trace_timeout(rq, ch);
		this_cpu_inc(pd->stats->timeouts);
		if (pmem_dma_chan_late(ch))
			dev_warn(pd->pmem->dev, "%s is late, copying by CPU until it answers\n",
				 dma_chan_name(ch->chan));
	}
	rcu_read_unlock();
	return true;
}

/* Half the time after which a request is late, but no more often than has a use. */
static unsigned long pmem_dma_watch_period(struct pmem_dma_dev *pd)
{
	return clamp_t(unsigned long, READ_ONCE(pd->disk->queue->rq_timeout) / 2,
		       HZ / 10, HZ);
}

/*
 * A submitter may still see @watched as set when this look has missed its request
 * and clears it.  So there is always one look more.
 */
static void pmem_dma_watch_work(struct work_struct *work)
{
	struct pmem_dma_dev *pd = container_of(to_delayed_work(work),
					       struct pmem_dma_dev, watch);
	bool last = !READ_ONCE(pd->watched), busy = false;

	blk_mq_tagset_busy_iter(&pd->set, pmem_dma_watch_rq, &busy);
	WRITE_ONCE(pd->watched, busy);
	if (busy || !last)
		queue_delayed_work(system_unbound_wq, &pd->watch,
				   pmem_dma_watch_period(pd));
}

/**
 * pmem_dma_watch_start() - look for late requests from now on
 * @pd: the disk
 *
 * Called by way of pmem_dma_watch().
 *
 * Context: Any.
 */
void pmem_dma_watch_start(struct pmem_dma_dev *pd)
{
	WRITE_ONCE(pd->watched, true);
	queue_delayed_work(system_unbound_wq, &pd->watch,
			   pmem_dma_watch_period(pd));
}

/**
 * pmem_dma_watch_init() - prepare the watch of a disk
 * @pd: the disk
 */
void pmem_dma_watch_init(struct pmem_dma_dev *pd)
{
	INIT_DELAYED_WORK(&pd->watch, pmem_dma_watch_work);
}

/**
 * pmem_dma_watch_exit() - end the watch
 * @pd: a disk that gets no requests any more
 *
 * Context: Process context.  May sleep.
 */
void pmem_dma_watch_exit(struct pmem_dma_dev *pd)
{
	cancel_delayed_work_sync(&pd->watch);
}

/* ------------------------------------------------------------------ search */

/* What pmem_dma_mark(), pmem_dma_reap() and pmem_dma_inflight() look for. */
struct pmem_dma_search {
	struct pmem_dma_chan *ch;
	struct pmem_dma_queue *q;
	dma_cookie_t before;
	bool mark, reap;
	unsigned int found;
};

/* Cookies go up to INT_MAX and start again at DMA_MIN_COOKIE. */
static bool pmem_dma_cookie_before(dma_cookie_t a, dma_cookie_t b)
{
	return ((b - a) & INT_MAX) < INT_MAX / 2;
}

static bool pmem_dma_search_rq(struct request *rq, void *data)
{
	struct pmem_dma_cmd *cmd = blk_mq_rq_to_pdu(rq);
	struct pmem_dma_link *link = READ_ONCE(cmd->link);
	struct pmem_dma_search *search = data;
	int pending;

	if (!link || (search->ch && link->ch != search->ch) ||
	    (search->q && cmd->q != search->q))
		return true;
	pending = atomic_read_acquire(&cmd->pending);
	if (!pending)
		return true;
	if (search->mark) {
		/* What is being submitted goes on after the terminate. */
		WRITE_ONCE(cmd->marked, pending < PMEM_DMA_SUBMITTING);
		return true;
	}
	if (!search->reap) {
		search->found++;
		return true;
	}
	/* One that is being submitted came after the probe. */
	if (pending >= PMEM_DMA_SUBMITTING ||
	    !(search->before ?
	      pmem_dma_cookie_before(cmd->cookie, search->before) :
	      READ_ONCE(cmd->marked)))
		return true;
	if (pmem_dma_gen_take_rest(cmd)) {
		search->found++;
		pmem_dma_finish(cmd);
	}
	return true;
}

/**
 * pmem_dma_mark() - remember which requests a channel has
 * @pd: a disk
 * @ch: the channel, about to be stopped
 *
 * Stopping a channel wakes submitters that wait in prep for a descriptor.  What
 * they submit then is not among what was stopped, and must not be reaped: the
 * engine may get to it at any time.
 *
 * Context: Process context.
 */
void pmem_dma_mark(struct pmem_dma_dev *pd, struct pmem_dma_chan *ch)
{
	struct pmem_dma_search search = { .ch = ch, .mark = true };

	blk_mq_tagset_busy_iter(&pd->set, pmem_dma_search_rq, &search);
}

/**
 * pmem_dma_reap() - redo by CPU what a channel will never finish
 * @pd: a disk
 * @ch: the channel, from which no callback for these requests can come any more
 * @before: requests submitted before the descriptor of this cookie, 0 for those
 *	that pmem_dma_mark() has marked
 *
 * Context: Process context.
 * Return: number of requests.
 */
unsigned int pmem_dma_reap(struct pmem_dma_dev *pd, struct pmem_dma_chan *ch,
			   dma_cookie_t before)
{
	struct pmem_dma_search search = {
		.ch = ch, .before = before, .reap = true,
	};

	blk_mq_tagset_busy_iter(&pd->set, pmem_dma_search_rq, &search);
	return search.found;
}

/**
 * pmem_dma_inflight() - count the requests of a disk that channels have
 * @pd: the disk
 * @ch: only those on this channel, or NULL
 * @q: only those of this queue, or NULL
 *
 * Context: Process context.
 * Return: number of requests.
 */
unsigned int pmem_dma_inflight(struct pmem_dma_dev *pd, struct pmem_dma_chan *ch,
			       struct pmem_dma_queue *q)
{
	struct pmem_dma_search search = { .ch = ch, .q = q };

	blk_mq_tagset_busy_iter(&pd->set, pmem_dma_search_rq, &search);
	return search.found;
}

/* What pmem_dma_busy_with() looks for. */
struct pmem_dma_busy {
	struct device *dev;
	bool found;
};

static bool pmem_dma_busy_rq(struct request *rq, void *data)
{
	struct pmem_dma_cmd *cmd = blk_mq_rq_to_pdu(rq);
	struct pmem_dma_link *link = READ_ONCE(cmd->link);
	struct pmem_dma_busy *busy = data;

	if (link && link->ch && pmem_dma_chan_is_of(link->ch, busy->dev))
		busy->found = true;
	return !busy->found;
}

/**
 * pmem_dma_busy_with() - has a disk any request that went to a device?
 * @pd: the disk
 * @dev: the device
 *
 * Other than for pmem_dma_inflight(), requests count until they have ended.
 *
 * Context: Process context, under pmem_dma_chans_lock().
 * Return: true if so.
 */
bool pmem_dma_busy_with(struct pmem_dma_dev *pd, struct device *dev)
{
	struct pmem_dma_busy busy = { .dev = dev };

	blk_mq_tagset_busy_iter(&pd->set, pmem_dma_busy_rq, &busy);
	return busy.found;
}
