// SPDX-License-Identifier: GPL-2.0
/*
 * pmem_dma_health - how far a channel is trusted
 *
 *	             late request                  answer
 *	  HEALTHY  ---------------->  SUSPECT  -------------->  HEALTHY
 *	     |                           |
 *	     | strikes                   | requests lost, terminated, or late again
 *	     v                           v
 *	  BENCHED  <---------------------+
 *	     |  rest over: HEALTHY again, the next rest is twice as long
 *	     |
 *	  any state --- provider leaves ---> GONE (until all disks let go)
 *
 * Only a healthy channel gets requests; the CPU copies the others.
 *
 * A descriptor cannot be taken back, so a late request cannot simply be
 * completed: the engine could still write into its memory.  But providers do
 * lose callbacks (ioatdma does for the descriptor on which it reboots a hung
 * channel).  A suspect channel is therefore sent a probe, a copy between two
 * halves of scratch memory.  On a channel that works in order, the callback of
 * the probe says that everything submitted before it is over, called back or
 * not, and what was not is copied by the CPU.  On a channel that works out of
 * order a probe would prove nothing, and might wait for a descriptor like any
 * other prep there: that answers when nothing is missing any more, or is sure to be
 * idle after a terminate, if its provider has that.  Where neither helps, the
 * request waits for its callback, or for the provider to leave.
 *
 * A channel may answer only because it was asked: one whose interrupts get lost.
 * Nothing is missing then, but each time its requests took as long as it takes to
 * become late.  So who is late for the second time in a while rests as well.
 */
#include <linux/dma-mapping.h>
#include <linux/dmaengine.h>
#include <linux/jiffies.h>

#include "pmem_dma.h"
#include "pmem_dma_trace.h"

/* Failures in a row that end the trust, and the first and the longest rest. */
#define PMEM_DMA_MAX_STRIKES	8
#define PMEM_DMA_BENCH_FIRST	1	/* seconds */
#define PMEM_DMA_BENCH_LONGEST	64

/* To be late once in such a time may be chance; more than the longest rest. */
#define PMEM_DMA_LATE_AGAIN	(2 * PMEM_DMA_BENCH_LONGEST * HZ)

/* How often a suspect channel is looked at, and when patience ends. */
#define PMEM_DMA_RECOVER_DELAY	(HZ / 10)
#define PMEM_DMA_PROBE_ROUNDS	10
#define PMEM_DMA_RECOVER_ROUNDS	30

/* When submitters that wait for a leaving provider are helped out of it. */
#define PMEM_DMA_LEAVE_DELAY	(3 * HZ)

#define PMEM_DMA_PROBE_BYTES	2048

static const char * const pmem_dma_state_names[] = {
	[PMEM_DMA_HEALTHY] = "healthy",
	[PMEM_DMA_SUSPECT] = "suspect",
	[PMEM_DMA_BENCHED] = "benched",
	[PMEM_DMA_GONE] = "gone",
};

static bool pmem_dma_rest_is_over(const struct pmem_dma_chan *ch)
{
	return time_after_eq(jiffies, READ_ONCE(ch->bench_end));
}

/**
 * pmem_dma_state_name() - state of a channel as sysfs shows it
 * @ch: the channel
 *
 * One that has rested becomes healthy with the next request, and is called so
 * before that comes.
 *
 * Return: a constant string.
 */
const char *pmem_dma_state_name(const struct pmem_dma_chan *ch)
{
	unsigned int state = READ_ONCE(ch->state);

	if (state == PMEM_DMA_BENCHED && pmem_dma_rest_is_over(ch))
		state = PMEM_DMA_HEALTHY;
	return pmem_dma_state_names[state];
}

/* False if somebody else changed the state first. */
static bool pmem_dma_move(struct pmem_dma_chan *ch, enum pmem_dma_state from,
			  enum pmem_dma_state to)
{
	if (cmpxchg(&ch->state, from, to) != from)
		return false;
	trace_channel_state(ch, to);
	return true;
}

static void pmem_dma_bench(struct pmem_dma_chan *ch, enum pmem_dma_state from)
{
	unsigned int secs = ch->bench_secs;

	if (!secs || time_after(jiffies, ch->bench_end +
				PMEM_DMA_BENCH_LONGEST * HZ))
		secs = PMEM_DMA_BENCH_FIRST;
	WRITE_ONCE(ch->bench_end, jiffies + secs * HZ);
	WRITE_ONCE(ch->strikes, 0);
	if (!pmem_dma_move(ch, from, PMEM_DMA_BENCHED))
		return;
	ch->bench_secs = min_t(unsigned int, 2 * secs, PMEM_DMA_BENCH_LONGEST);
	dev_warn_ratelimited(ch->dev, "%s keeps failing, copying by CPU for %u s\n",
			     dma_chan_name(ch->chan), secs);
}

/**
 * pmem_dma_chan_rested() - may a benched channel try again?
 * @ch: the channel
 *
 * Context: Any.
 * Return: true if its rest is over; it is healthy then.
 */
bool pmem_dma_chan_rested(struct pmem_dma_chan *ch)
{
	return pmem_dma_rest_is_over(ch) &&
		pmem_dma_move(ch, PMEM_DMA_BENCHED, PMEM_DMA_HEALTHY);
}

/**
 * pmem_dma_chan_failed() - a descriptor was reported as failed
 * @ch: the channel
 *
 * Context: Any, called from callbacks.
 */
void pmem_dma_chan_failed(struct pmem_dma_chan *ch)
{
	unsigned int strikes = READ_ONCE(ch->strikes) + 1;

	WRITE_ONCE(ch->strikes, strikes);
	if (strikes >= PMEM_DMA_MAX_STRIKES)
		pmem_dma_bench(ch, PMEM_DMA_HEALTHY);
}

/**
 * pmem_dma_chan_late() - a request on the channel is overdue
 * @ch: the channel
 *
 * Context: Any.
 * Return: true if that is news.
 */
bool pmem_dma_chan_late(struct pmem_dma_chan *ch)
{
	if (!pmem_dma_move(ch, PMEM_DMA_HEALTHY, PMEM_DMA_SUSPECT) &&
	    !pmem_dma_move(ch, PMEM_DMA_BENCHED, PMEM_DMA_SUSPECT))
		return false;
	WRITE_ONCE(ch->rounds, 0);
	mod_delayed_work(system_unbound_wq, &ch->recover, 0);
	return true;
}

/*
 * There can be several probes of one suspicion, since a probe may get lost like
 * anything else.  Any of them will do: all that was submitted before the first is
 * over.  Those of an earlier suspicion, which may be answered at any time, must
 * not be taken for one: so the callback is told which of them it is of.
 */
static void pmem_dma_probe_done(void *param, const struct dmaengine_result *res)
{
	struct pmem_dma_chan **mine = param, *ch = *mine;
	unsigned int suspicion = mine - ch->suspicions;

	if (suspicion == READ_ONCE(ch->suspicion))
		WRITE_ONCE(ch->answered_suspicion, suspicion);
}

static void pmem_dma_send_probe(struct pmem_dma_chan *ch)
{
	struct dma_async_tx_descriptor *tx;
	dma_cookie_t cookie;

	if (!ch->probe_cookie) {
		WRITE_ONCE(ch->answered_suspicion, PMEM_DMA_SUSPICIONS);
		WRITE_ONCE(ch->suspicion,
			   (ch->suspicion + 1) % PMEM_DMA_SUSPICIONS);
	}
	tx = dmaengine_prep_dma_memcpy(ch->chan,
				       ch->probe_dma + PMEM_DMA_PROBE_BYTES,
				       ch->probe_dma, PMEM_DMA_PROBE_BYTES,
				       DMA_PREP_INTERRUPT | DMA_CTRL_ACK);
	if (!tx)
		return;		/* a full ring: a later round tries again */
	tx->callback_result = pmem_dma_probe_done;
	tx->callback_param = &ch->suspicions[ch->suspicion];
	ch->probes++;
	cookie = dmaengine_submit(tx);
	if (!ch->probe_cookie && !dma_submit_error(cookie))
		ch->probe_cookie = cookie;
	dma_async_issue_pending(ch->chan);
}

static void pmem_dma_answered(struct pmem_dma_chan *ch, unsigned int lost)
{
	bool again = time_before(jiffies, ch->answered + PMEM_DMA_LATE_AGAIN);

	ch->answered = jiffies;
	dev_info(ch->dev, "%s answers again, %u late requests redone by CPU\n",
		 dma_chan_name(ch->chan), lost);
	if (lost || again)
		pmem_dma_bench(ch, PMEM_DMA_SUSPECT);
	else
		pmem_dma_move(ch, PMEM_DMA_SUSPECT, PMEM_DMA_HEALTHY);
}

/* Everything on the channel is over, by force. */
static void pmem_dma_terminate(struct pmem_dma_chan *ch)
{
	unsigned int lost;

	pmem_dma_mark_disks(ch);
	if (dmaengine_terminate_sync(ch->chan))
		return;
	ch->probe_cookie = 0;
	lost = pmem_dma_reap_disks(ch, 0);
	dev_warn(ch->dev, "%s terminated, %u requests redone by CPU\n",
		 dma_chan_name(ch->chan), lost);
	pmem_dma_bench(ch, PMEM_DMA_SUSPECT);
}

static void pmem_dma_look(struct pmem_dma_chan *ch)
{
	dma_cookie_t probe = ch->probe_cookie;
	enum dma_status status;

	/*
	 * Asking makes some providers see an interrupt that they missed, if it is
	 * for a cookie that is not done yet.  The last one will do for that, since
	 * without that interrupt there may be no descriptor free for a probe.
	 */
	dma_async_issue_pending(ch->chan);
	status = dma_async_is_tx_complete(ch->chan,
					  probe ?: READ_ONCE(ch->chan->cookie),
					  NULL, NULL);

	if (!ch->ordered) {
		if (!pmem_dma_count_inflight(ch))
			pmem_dma_answered(ch, 0);
		return;
	}
	if (!probe || status != DMA_COMPLETE ||
	    READ_ONCE(ch->answered_suspicion) != ch->suspicion) {
		if (ch->rounds % PMEM_DMA_PROBE_ROUNDS == 0)
			pmem_dma_send_probe(ch);
		return;
	}
	ch->probe_cookie = 0;
	pmem_dma_answered(ch, pmem_dma_reap_disks(ch, probe));
}

static void pmem_dma_recover(struct work_struct *work)
{
	struct pmem_dma_chan *ch = container_of(to_delayed_work(work),
						struct pmem_dma_chan, recover);
	unsigned long delay = PMEM_DMA_RECOVER_DELAY;
	unsigned int state;

	if (READ_ONCE(ch->state) == PMEM_DMA_SUSPECT)
		pmem_dma_look(ch);
	state = READ_ONCE(ch->state);
	if (state != PMEM_DMA_SUSPECT && state != PMEM_DMA_GONE)
		return;
	if (state == PMEM_DMA_GONE ||
	    ++ch->rounds >= PMEM_DMA_RECOVER_ROUNDS) {
		pmem_dma_terminate(ch);
		delay = HZ;
	}
	mod_delayed_work(system_unbound_wq, &ch->recover, delay);
}

/**
 * pmem_dma_chan_leaves() - the provider of a channel is leaving
 * @ch: the channel; pmem_dma_health_exit() follows
 *
 * Submitters may be in the provider's prep, which may wait for a descriptor for as
 * long as the engine hangs.  Only a terminate sets some free.
 *
 * Context: Any.
 */
void pmem_dma_chan_leaves(struct pmem_dma_chan *ch)
{
	WRITE_ONCE(ch->state, PMEM_DMA_GONE);
	trace_channel_state(ch, PMEM_DMA_GONE);
	mod_delayed_work(system_unbound_wq, &ch->recover, PMEM_DMA_LEAVE_DELAY);
}

/**
 * pmem_dma_health_init() - a channel was acquired
 * @ch: the channel, with @chan and @dev set
 *
 * Context: Process context.  May sleep.
 * Return: 0 or -ENOMEM.
 */
int pmem_dma_health_init(struct pmem_dma_chan *ch)
{
	unsigned int i;

	for (i = 0; i < PMEM_DMA_SUSPICIONS; i++)
		ch->suspicions[i] = ch;
	INIT_DELAYED_WORK(&ch->recover, pmem_dma_recover);
	ch->answered = jiffies - PMEM_DMA_LATE_AGAIN;
	ch->probe = dma_alloc_coherent(ch->dev, 2 * PMEM_DMA_PROBE_BYTES,
				       &ch->probe_dma, GFP_KERNEL);
	return ch->probe ? 0 : -ENOMEM;
}

/**
 * pmem_dma_health_exit() - release a channel to its provider
 * @ch: the channel, without anything in flight but probes
 *
 * Context: Process context.  May sleep.
 */
void pmem_dma_health_exit(struct pmem_dma_chan *ch)
{
	cancel_delayed_work_sync(&ch->recover);
	/* The last probe may be on its way; after this nothing is. */
	dma_release_channel(ch->chan);
	dma_free_coherent(ch->dev, 2 * PMEM_DMA_PROBE_BYTES, ch->probe,
			  ch->probe_dma);
}
