// SPDX-License-Identifier: GPL-2.0
/*
 * How fast the engine seems to be.
 *
 * Every copy gets a deadline on an ideal time line: it starts when its doorbell rang or when the
 * copy before it ended, whichever is later, and takes latency + bytes / rate. Waking up late moves
 * nothing on that line, so that errors do not add up and the mean is exact: a host that was busy
 * elsewhere finds the copies done that a real engine would have done meanwhile. All channels of a
 * device share one path whose rate can be capped.
 */
#include <time.h>

#include "ioat-emu.h"

static __u64 pace_transfer_ns(__u32 bytes, double mbps)
{
	return mbps > 0 ? (__u64)(bytes * 1000.0 / mbps) : 0;
}

/* Returns when the shared path is done with the bytes, 0 without a cap. */
static __u64 pace_cap(struct emu_dev *dev, __u64 start, __u32 bytes)
{
	__u64 end = 0;

	pthread_mutex_lock(&dev->cap_lock);
	if (dev->cap_mbps > 0) {
		if (dev->cap_free_ns < start)
			dev->cap_free_ns = start;
		dev->cap_free_ns += pace_transfer_ns(bytes, dev->cap_mbps);
		end = dev->cap_free_ns;
	}
	pthread_mutex_unlock(&dev->cap_lock);
	return end;
}

/* c->lock held. Returns when this copy ends in the model, and makes that the channel's new end. */
__u64 pace_end(struct emu_chan *c, __u64 issued_ns, __u32 bytes)
{
	struct emu_pace *pace = &c->pace;
	__u64 start = issued_ns, cap_end;

	if (start < pace->end_ns)
		start = pace->end_ns;
	cap_end = pace_cap(c->dev, start, bytes);
	pace->end_ns = start + pace_transfer_ns(bytes, pace->mbps);
	if (pace->end_ns < cap_end)
		pace->end_ns = cap_end;
	pace->end_ns += (__u64)(pace->latency_us * 1000);
	return pace->end_ns;
}

/* c->lock held. Time in which the channel stood still on purpose is not made up for. */
void pace_skip(struct emu_chan *c)
{
	__u64 now = emu_now_ns();

	if (c->pace.end_ns < now)
		c->pace.end_ns = now;
}

/*
 * c->lock held, and released while waiting. A reset ends the wait: ioatdma gives it 200 ms.
 *
 * Timers wake a few microseconds late. That can be bought off by spinning, but on a host whose
 * CPUs also run the guest it costs more than it gives, so opts.spin_us is small or zero.
 */
void pace_wait(struct emu_chan *c, __u64 until_ns)
{
	__u64 spin_ns = opts.spin_us * 1000ULL;
	__u64 sleep_ns = until_ns - spin_ns;
	struct timespec ts = {
		.tv_sec = (time_t)(sleep_ns / 1000000000),
		.tv_nsec = (long)(sleep_ns % 1000000000),
	};

	while (!c->want_reset && emu_now_ns() < sleep_ns)
		pthread_cond_timedwait(&c->wake, &c->lock, &ts);
	if (!spin_ns || c->want_reset)
		return;
	pthread_mutex_unlock(&c->lock);
	while (emu_now_ns() < until_ns)
		__builtin_ia32_pause();
	pthread_mutex_lock(&c->lock);
}
