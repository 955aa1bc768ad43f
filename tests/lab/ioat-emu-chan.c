// SPDX-License-Identifier: GPL-2.0
/*
 * One channel: its registers and the thread that works through its descriptors.
 *
 * Life of a descriptor: the doorbell (CHAN_COUNT) makes the channel active; the worker fetches the
 * descriptor, copies, waits for the copy's deadline, counts it, writes the completion word and
 * raises the interrupt. The lock is dropped for fetch, copy and wait, never between "counted" and
 * "written back", so that what the guest sees completed is what the counters say.
 */
#include <errno.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "ioat-emu.h"

static void chan_fire(struct emu_chan *c)
{
	const __u64 one = 1;

	c->irq_armed = false;
	c->irq_held = false;
	if (write(c->irq_fd, &one, sizeof(one)) != sizeof(one))
		emu_log(0, "d%u ch%u: interrupt lost: %s", c->dev->nr, c->nr, strerror(errno));
	c->counts.interrupts++;
}

static bool chan_can_fire(const struct emu_chan *c)
{
	return c->irq_armed && c->irq_enabled && c->irq_fd >= 0;
}

/* One interrupt per rearming: ioatdma rearms when it has reaped, and counts on what was held. */
static void chan_raise(struct emu_chan *c)
{
	if (chan_can_fire(c)) {
		chan_fire(c);
		return;
	}
	c->irq_held = true;
	c->counts.held_interrupts++;
}

static void chan_release_held(struct emu_chan *c)
{
	if (c->irq_held && chan_can_fire(c))
		chan_fire(c);
}

/* Nothing to report to before the driver has set an address. */
static __u32 chan_write_back(struct emu_chan *c)
{
	if (!c->completion)
		return 0;
	if (c->completion % sizeof(__u64) ||
	    !mem_write_u64(&c->dev->mem, c->completion, c->last | c->state))
		return ERR_COMPLETION_ADDR;
	return 0;
}

static void chan_fail(struct emu_chan *c, __u32 err)
{
	c->err |= err;
	c->state = STATE_HALTED;
	c->counts.errors++;
	emu_log(1, "d%u ch%u: error %#x at descriptor %#llx", c->dev->nr, c->nr, err, c->next);
	/* ioatdma's quick recovery starts from the halted state in the completion word. */
	if (c->ctrl & CTRL_ERR_COMPLETION)
		chan_write_back(c);
	if (c->ctrl & CTRL_ERR_INT)
		chan_raise(c);
}

/* HALTED and no other state: after a reset ioatdma waits without a limit until it sees that. */
static void chan_do_reset(struct emu_chan *c)
{
	c->state = STATE_HALTED;
	c->err = 0;
	c->chain = 0;
	c->next = 0;
	c->last = 0;
	c->completion = 0;
	c->count = 0;
	c->done = 0;
	c->want_reset = false;
	c->want_suspend = false;
	c->irq_held = false;
	c->pace.end_ns = 0;
	c->counts.resets++;
	pthread_cond_broadcast(&c->idle);
}

static void chan_request_reset(struct emu_chan *c)
{
	if (c->busy) {
		c->want_reset = true;
		pthread_cond_signal(&c->wake);
	} else {
		chan_do_reset(c);
	}
}

/* Suspended even when idle, or ioatdma's quiesce runs into its time-out at every reset. */
static void chan_do_suspend(struct emu_chan *c)
{
	c->want_suspend = false;
	if (c->state == STATE_ACTIVE || c->state == STATE_DONE)
		c->state = STATE_SUSPENDED;
}

static void chan_command(struct emu_chan *c, __u8 cmd)
{
	if (cmd & CMD_RESET) {
		chan_request_reset(c);
	} else if (cmd & CMD_SUSPEND) {
		if (c->busy)
			c->want_suspend = true;
		else
			chan_do_suspend(c);
	} else if ((cmd & CMD_RESUME) && c->state == STATE_SUSPENDED) {
		c->state = c->done == c->count ? STATE_DONE : STATE_ACTIVE;
		pace_skip(c);
	}
}

static void chan_doorbell(struct emu_chan *c, __u16 count)
{
	__u64 now = emu_now_ns();
	__u16 i;

	for (i = c->count; i != count; i++)
		c->issued_ns[i] = now;
	c->count = count;
	/* A channel that was given a chain after its reset starts here; a failed one does not. */
	if (c->state == STATE_DONE || (c->state == STATE_HALTED && !c->err && c->next))
		c->state = c->done == count ? STATE_DONE : STATE_ACTIVE;
}

/*
 * A new chain counts from zero and has completed nothing: ioatdma takes an old address in the
 * completion word for progress. The driver writes the low half, then the high half.
 */
static void chan_set_chain(struct emu_chan *c)
{
	if (c->busy)
		return;
	if (c->state == STATE_SUSPENDED)
		c->state = STATE_HALTED;
	c->next = c->chain;
	c->last = 0;
	c->count = 0;
	c->done = 0;
}

static void chan_control(struct emu_chan *c, __u16 val)
{
	c->ctrl = val & ~CTRL_REARM;
	if (val & CTRL_REARM) {
		c->irq_armed = true;
		chan_release_held(c);
	}
}

static void set_half(__u64 *reg, bool high, __u32 len, __u64 val)
{
	if (len == sizeof(*reg))
		*reg = val;
	else if (high)
		*reg = (__u32)*reg | val << 32;
	else
		*reg = *reg >> 32 << 32 | (__u32)val;
}

void chan_write(struct emu_chan *c, __u32 reg, __u32 len, __u64 val)
{
	pthread_mutex_lock(&c->lock);
	switch (reg) {
	case CHAN_CTRL:
		chan_control(c, (__u16)val);
		break;
	case CHAN_CMD:
		chan_command(c, (__u8)val);
		break;
	case CHAN_COUNT:
		chan_doorbell(c, (__u16)val);
		break;
	case CHAN_CHAIN:
	case CHAN_CHAIN_HIGH:
		set_half(&c->chain, reg == CHAN_CHAIN_HIGH, len, val);
		if (reg == CHAN_CHAIN_HIGH || len == sizeof(c->chain))
			chan_set_chain(c);
		break;
	case CHAN_COMPLETION:
	case CHAN_COMPLETION_HIGH:
		set_half(&c->completion, reg == CHAN_COMPLETION_HIGH, len, val);
		break;
	case CHAN_ERR:
		c->err &= ~(__u32)val;
		break;
	case CHAN_ERRMASK:
		c->errmask = (__u32)val;
		break;
	case CHAN_DCA:
		c->dca = (__u32)val;
		break;
	default:
		emu_log(1, "d%u ch%u: write to register %#x ignored", c->dev->nr, c->nr, reg);
	}
	if (!c->busy)
		pthread_cond_signal(&c->wake);
	pthread_mutex_unlock(&c->lock);
}

/* The aligned 64 bits that hold reg: ioatdma reads the status as one, the rest in pieces. */
static __u64 chan_read_u64(const struct emu_chan *c, __u32 reg)
{
	__u64 cmd = c->want_reset ? CMD_RESET : 0;

	switch (reg) {
	case CHAN_CTRL:
		return c->ctrl | 2ULL << (CHAN_COMPAT * 8) | cmd << (CHAN_CMD * 8) |
		       (__u64)c->count << (CHAN_COUNT * 8);
	case CHAN_STATUS:
		return c->last | c->state;
	case CHAN_CHAIN:
		return c->chain;
	case CHAN_COMPLETION:
		return c->completion;
	case CHAN_CURRENT:
		return c->next;
	case CHAN_ERR:
		return c->err | (__u64)c->errmask << 32;
	case CHAN_DCA:
		return c->dca;
	default:
		return 0;
	}
}

__u64 chan_read(struct emu_chan *c, __u32 reg)
{
	__u64 val;

	pthread_mutex_lock(&c->lock);
	val = chan_read_u64(c, reg & ~7U);
	pthread_mutex_unlock(&c->lock);
	return val >> (reg % 8 * 8);
}

bool chan_attention(struct emu_chan *c)
{
	bool held;

	pthread_mutex_lock(&c->lock);
	held = c->irq_held;
	pthread_mutex_unlock(&c->lock);
	return held;
}

void chan_enable_irq(struct emu_chan *c, bool on)
{
	pthread_mutex_lock(&c->lock);
	c->irq_enabled = on;
	chan_release_held(c);
	pthread_mutex_unlock(&c->lock);
}

/* Takes over fd; -1 disconnects. */
void chan_set_irq_fd(struct emu_chan *c, int fd)
{
	pthread_mutex_lock(&c->lock);
	if (c->irq_fd >= 0)
		close(c->irq_fd);
	c->irq_fd = fd;
	chan_release_held(c);
	pthread_mutex_unlock(&c->lock);
}

/* Device reset: back to power-on state, healthy, with the worker out of guest memory. */
void chan_reset(struct emu_chan *c)
{
	pthread_mutex_lock(&c->lock);
	memset(&c->faults, 0, sizeof(c->faults));
	chan_request_reset(c);
	while (c->want_reset)
		pthread_cond_wait(&c->idle, &c->lock);
	c->ctrl = 0;
	c->errmask = 0;
	c->dca = 0;
	c->irq_armed = false;
	c->irq_enabled = false;
	pthread_mutex_unlock(&c->lock);
}

static __u32 chan_check_desc(const struct hw_desc *desc)
{
	if (DESC_OP(desc->ctl))
		return ERR_CONTROL;	/* no XOR, PQ or fill: DMACAP does not offer them */
	if (!desc->size || desc->size > 1U << opts.xfercap)
		return ERR_LENGTH;
	return 0;
}

static __u32 chan_take_injected(struct emu_chan *c)
{
	__u32 err = 0;

	if (c->faults.err && !c->faults.after--) {
		err = c->faults.err;
		c->faults.err = 0;
		c->faults.after = 0;
	}
	return err;
}

/* c->lock held, released while copying. Returns CHANERR bits. */
static __u32 chan_copy(struct emu_chan *c, const struct hw_desc *desc)
{
	__u32 delay_us = c->faults.delay_us;
	__u64 end_ns;
	__u32 err;

	if (delay_us) {
		pace_wait(c, emu_now_ns() + delay_us * 1000ULL);
		pace_skip(c);
	}
	if (c->want_reset)
		return 0;
	err = chan_check_desc(desc);
	if (!err)
		err = chan_take_injected(c);
	if (err)
		return err;

	end_ns = pace_end(c, c->issued_ns[c->done], desc->size);
	pthread_mutex_unlock(&c->lock);
	err = mem_copy(&c->dev->mem, desc->dst, desc->src, desc->size);
	pthread_mutex_lock(&c->lock);
	if (!err)
		pace_wait(c, end_ns);
	return err;
}

static __u32 chan_fetch(struct emu_chan *c, struct hw_desc *desc)
{
	__u64 at = c->next;
	bool ok;

	if (at % DESC_ALIGN)
		return ERR_NEXT_ALIGN;
	pthread_mutex_unlock(&c->lock);
	ok = mem_read(&c->dev->mem, at, desc, sizeof(*desc));
	pthread_mutex_lock(&c->lock);
	return ok ? 0 : ERR_NEXT_ADDR;
}

static __u32 chan_complete(struct emu_chan *c, const struct hw_desc *desc)
{
	__u32 err = 0;

	c->last = c->next;
	c->next = desc->next;
	c->done++;
	if (c->done == c->count)
		c->state = STATE_DONE;
	if (desc->ctl & DESC_NULL) {
		c->counts.null_descriptors++;
	} else {
		c->counts.descriptors++;
		c->counts.bytes += desc->size;
	}
	if (desc->ctl & DESC_COMPLETION)
		err = chan_write_back(c);
	if (!err && (desc->ctl & DESC_INT))
		chan_raise(c);
	return err;
}

static void chan_step(struct emu_chan *c)
{
	struct hw_desc desc;
	__u32 err;

	c->busy = true;
	err = chan_fetch(c, &desc);
	/* Null descriptors start a chain and carry no data: neither paced nor made to fail. */
	if (!err && !c->want_reset && !(desc.ctl & DESC_NULL))
		err = chan_copy(c, &desc);
	c->busy = false;

	if (c->want_reset) {
		chan_do_reset(c);	/* the guest no longer expects a word about this one */
		return;
	}
	if (!err)
		err = chan_complete(c, &desc);
	if (err)
		chan_fail(c, err);
	if (c->want_suspend)
		chan_do_suspend(c);
}

static void *chan_worker(void *arg)
{
	struct emu_chan *c = arg;

	/* The default slack of 50 us would be most of a small copy's time. */
	prctl(PR_SET_TIMERSLACK, 1);
	pthread_mutex_lock(&c->lock);
	for (;;) {
		if (c->state == STATE_ACTIVE && !c->faults.stall)
			chan_step(c);
		else
			pthread_cond_wait(&c->wake, &c->lock);
	}
	return NULL;
}

void chan_init(struct emu_chan *c, struct emu_dev *dev, unsigned int nr)
{
	pthread_condattr_t attr;

	c->dev = dev;
	c->nr = nr;
	c->irq_fd = -1;
	c->state = STATE_HALTED;
	c->pace.mbps = opts.mbps;
	c->pace.latency_us = opts.latency_us;
	pthread_mutex_init(&c->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&c->wake, &attr);
	pthread_cond_init(&c->idle, &attr);
	pthread_condattr_destroy(&attr);
}

void chan_start(struct emu_chan *c)
{
	pthread_t thread;
	int err;

	err = pthread_create(&thread, NULL, chan_worker, c);
	if (err)
		emu_die("cannot start a channel: %s", strerror(err));
	pthread_detach(thread);
}
