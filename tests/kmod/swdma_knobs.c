// SPDX-License-Identifier: GPL-2.0
/*
 * swdma_knobs - what goes wrong, and when
 *
 * Descriptors are counted, and faults limited, for each channel by itself;
 * writing an "_every" starts its count anew.  Every channel has all knobs, as
 * files of its directory in debugfs.  The module parameter of the same name sets
 * the knob of all channels, present and future.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/debugfs.h>
#include <linux/fs.h>
#include <linux/kernel.h>
#include <linux/limits.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/sysfs.h>

#include "swdma.h"

/**
 * struct swdma_param - a knob as module parameter
 * @name: its name
 * @min: least value
 * @max: largest value
 * @value: what channels get
 */
struct swdma_param {
	const char *name;
	u32 min, max;
	u32 value;
};

static struct swdma_param swdma_params[SWDMA_NR_KNOBS] = {
	[SWDMA_EVERY(SWDMA_FAULT_PREP)] = { "prep_every", 0, U32_MAX },
	[SWDMA_TIMES(SWDMA_FAULT_PREP)] = { "prep_times", 0, U32_MAX },
	[SWDMA_EVERY(SWDMA_FAULT_SUBMIT)] = { "submit_every", 0, U32_MAX },
	[SWDMA_TIMES(SWDMA_FAULT_SUBMIT)] = { "submit_times", 0, U32_MAX },
	[SWDMA_EVERY(SWDMA_FAULT_SLOW)] = { "slow_every", 0, U32_MAX },
	[SWDMA_TIMES(SWDMA_FAULT_SLOW)] = { "slow_times", 0, U32_MAX },
	[SWDMA_EVERY(SWDMA_FAULT_FAIL)] = { "fail_every", 0, U32_MAX },
	[SWDMA_TIMES(SWDMA_FAULT_FAIL)] = { "fail_times", 0, U32_MAX },
	[SWDMA_EVERY(SWDMA_FAULT_LOSE)] = { "lose_every", 0, U32_MAX },
	[SWDMA_TIMES(SWDMA_FAULT_LOSE)] = { "lose_times", 0, U32_MAX },
	[SWDMA_EVERY(SWDMA_FAULT_SPURIOUS)] = { "spurious_every", 0, U32_MAX },
	[SWDMA_TIMES(SWDMA_FAULT_SPURIOUS)] = { "spurious_times", 0, U32_MAX },
	[SWDMA_EVERY(SWDMA_FAULT_IRQ)] = { "irq_every", 0, U32_MAX },
	[SWDMA_TIMES(SWDMA_FAULT_IRQ)] = { "irq_times", 0, U32_MAX },
	[SWDMA_DELAY_US] = { "delay_us", 0, 10 * USEC_PER_SEC },
	[SWDMA_LATE] = { "late", 0, 1 },
	[SWDMA_POISON] = { "poison", 0, U8_MAX },
	[SWDMA_STALL] = { "stall", 0, 1 },
	[SWDMA_SHUFFLE] = { "shuffle", 0, 1, 1 },
	[SWDMA_SLEEP_US] = { "sleep_us", 0, USEC_PER_SEC },
	[SWDMA_SLOW_MS] = { "slow_ms", 0, 100 * MSEC_PER_SEC, 1000 },
	[SWDMA_FAIL_RESULT] = { "fail_result", DMA_TRANS_READ_FAILED,
				DMA_TRANS_ABORTED, DMA_TRANS_READ_FAILED },
	[SWDMA_FAIL_ABORT] = { "fail_abort", 0, 1 },
	[SWDMA_LOSE_MS] = { "lose_ms", 0, 600 * MSEC_PER_SEC },
	[SWDMA_SPURIOUS_MS] = { "spurious_ms", 0, 600 * MSEC_PER_SEC },
	[SWDMA_UNBIND] = { "unbind", SWDMA_UNBIND_FINISH, SWDMA_UNBIND_DROP },
};

/* Writing "every" also starts the count of its fault anew. */
static void swdma_knob_set(struct swdma_knob *knob, u32 value)
{
	struct swdma_chan *ch = knob->ch;
	unsigned int fault = knob->index / 2;
	unsigned long flags;

	spin_lock_irqsave(&ch->lock, flags);
	WRITE_ONCE(knob->value, value);
	if (fault < SWDMA_NR_FAULTS && knob->index == SWDMA_EVERY(fault)) {
		ch->counts[fault].seen = 0;
		ch->counts[fault].hits = 0;
	}
	spin_unlock_irqrestore(&ch->lock, flags);
	wake_up_all(&ch->wake);
}

/**
 * swdma_hit() - is it this descriptor's turn?
 * @ch: the channel
 * @fault: to do what to it
 *
 * Context: Under the channel's lock.
 * Return: whether the fault is to happen.
 */
bool swdma_hit(struct swdma_chan *ch, enum swdma_fault fault)
{
	u32 every = swdma_knob(ch, SWDMA_EVERY(fault));
	u32 times = swdma_knob(ch, SWDMA_TIMES(fault));
	struct swdma_count *count = &ch->counts[fault];

	lockdep_assert_held(&ch->lock);
	if (!every || ++count->seen % every)
		return false;
	if (times && count->hits >= times)
		return false;
	count->hits++;
	return true;
}

/**
 * swdma_knobs_init() - give a new channel the settings of the module
 * @ch: the channel
 *
 * Context: Under swdma_devs_lock, so that no change is missed.
 */
void swdma_knobs_init(struct swdma_chan *ch)
{
	unsigned int i;

	lockdep_assert_held(&swdma_devs_lock);
	for (i = 0; i < SWDMA_NR_KNOBS; i++) {
		ch->knobs[i].ch = ch;
		ch->knobs[i].index = i;
		ch->knobs[i].value = READ_ONCE(swdma_params[i].value);
	}
}

/* ----------------------------------------------------------------- debugfs */

static int swdma_knob_show(void *data, u64 *value)
{
	struct swdma_knob *knob = data;

	*value = READ_ONCE(knob->value);
	return 0;
}

static int swdma_knob_store(void *data, u64 value)
{
	struct swdma_knob *knob = data;
	const struct swdma_param *param = &swdma_params[knob->index];

	if (value < param->min || value > param->max)
		return -EINVAL;
	swdma_knob_set(knob, value);
	return 0;
}

DEFINE_DEBUGFS_ATTRIBUTE(swdma_knob_fops, swdma_knob_show, swdma_knob_store,
			 "%llu\n");

/**
 * swdma_knobs_debugfs() - make the files of a channel's knobs
 * @ch: the channel
 * @dir: its directory
 *
 * Context: Process context.
 */
void swdma_knobs_debugfs(struct swdma_chan *ch, struct dentry *dir)
{
	unsigned int i;

	for (i = 0; i < SWDMA_NR_KNOBS; i++)
		debugfs_create_file(swdma_params[i].name, 0644, dir,
				    &ch->knobs[i], &swdma_knob_fops);
}

/* ------------------------------------------------------- module parameters */

static void swdma_param_spread(unsigned int index, u32 value)
{
	struct swdma_dev *sd;
	unsigned int i;

	mutex_lock(&swdma_devs_lock);
	WRITE_ONCE(swdma_params[index].value, value);
	list_for_each_entry(sd, &swdma_devs, node)
		for (i = 0; i < sd->nr_chans; i++)
			swdma_knob_set(&sd->chans[i].knobs[index], value);
	mutex_unlock(&swdma_devs_lock);
}

static int swdma_param_set(const char *val, const struct kernel_param *kp)
{
	struct swdma_param *param = kp->arg;
	u32 n;
	int rc = kstrtou32(val, 0, &n);

	if (!rc && (n < param->min || n > param->max))
		rc = -EINVAL;
	if (rc) {
		pr_err("%s must be a number from %u to %u\n", param->name,
		       param->min, param->max);
		return rc;
	}
	swdma_param_spread(param - swdma_params, n);
	return 0;
}

static int swdma_param_get(char *buf, const struct kernel_param *kp)
{
	const struct swdma_param *param = kp->arg;

	return sysfs_emit(buf, "%u\n", READ_ONCE(param->value));
}

static const struct kernel_param_ops swdma_param_ops = {
	.set = swdma_param_set,
	.get = swdma_param_get,
};

/* The description follows each: a macro argument is best used once. */
#define SWDMA_PARAM(name, index)					\
	module_param_cb(name, &swdma_param_ops, &swdma_params[index], 0644)

SWDMA_PARAM(prep_every, SWDMA_EVERY(SWDMA_FAULT_PREP));
MODULE_PARM_DESC(prep_every,
		 "Every n-th descriptor cannot be prepared, 0 for none (default 0)");
SWDMA_PARAM(prep_times, SWDMA_TIMES(SWDMA_FAULT_PREP));
MODULE_PARM_DESC(prep_times,
		 "At most so many hits of prep_every, 0 for no limit (default 0)");

SWDMA_PARAM(submit_every, SWDMA_EVERY(SWDMA_FAULT_SUBMIT));
MODULE_PARM_DESC(submit_every,
		 "Every n-th descriptor is refused by submit with a negative cookie, 0 for none (default 0)");
SWDMA_PARAM(submit_times, SWDMA_TIMES(SWDMA_FAULT_SUBMIT));
MODULE_PARM_DESC(submit_times,
		 "At most so many hits of submit_every, 0 for no limit (default 0)");

SWDMA_PARAM(slow_every, SWDMA_EVERY(SWDMA_FAULT_SLOW));
MODULE_PARM_DESC(slow_every,
		 "Every n-th descriptor takes slow_ms longer, 0 for none (default 0)");
SWDMA_PARAM(slow_times, SWDMA_TIMES(SWDMA_FAULT_SLOW));
MODULE_PARM_DESC(slow_times,
		 "At most so many hits of slow_every, 0 for no limit (default 0)");

SWDMA_PARAM(fail_every, SWDMA_EVERY(SWDMA_FAULT_FAIL));
MODULE_PARM_DESC(fail_every,
		 "Every n-th descriptor fails with fail_result after half of its data, 0 for none (default 0)");
SWDMA_PARAM(fail_times, SWDMA_TIMES(SWDMA_FAULT_FAIL));
MODULE_PARM_DESC(fail_times,
		 "At most so many hits of fail_every, 0 for no limit (default 0)");

SWDMA_PARAM(lose_every, SWDMA_EVERY(SWDMA_FAULT_LOSE));
MODULE_PARM_DESC(lose_every,
		 "Every n-th descriptor is called back only after lose_ms, or never, 0 for none (default 0)");
SWDMA_PARAM(lose_times, SWDMA_TIMES(SWDMA_FAULT_LOSE));
MODULE_PARM_DESC(lose_times,
		 "At most so many hits of lose_every, 0 for no limit (default 0)");

SWDMA_PARAM(spurious_every, SWDMA_EVERY(SWDMA_FAULT_SPURIOUS));
MODULE_PARM_DESC(spurious_every,
		 "Every n-th descriptor is called back twice, 0 for none (default 0)");
SWDMA_PARAM(spurious_times, SWDMA_TIMES(SWDMA_FAULT_SPURIOUS));
MODULE_PARM_DESC(spurious_times,
		 "At most so many hits of spurious_every, 0 for no limit (default 0)");

SWDMA_PARAM(irq_every, SWDMA_EVERY(SWDMA_FAULT_IRQ));
MODULE_PARM_DESC(irq_every,
		 "Every n-th descriptor that raises an interrupt does so in vain: the next interrupt or a poll finds it, 0 for none (default 0)");
SWDMA_PARAM(irq_times, SWDMA_TIMES(SWDMA_FAULT_IRQ));
MODULE_PARM_DESC(irq_times,
		 "At most so many hits of irq_every, 0 for no limit (default 0)");

SWDMA_PARAM(delay_us, SWDMA_DELAY_US);
MODULE_PARM_DESC(delay_us,
		 "Microseconds that a descriptor occupies its channel, 0 to 10000000 (default 0)");
SWDMA_PARAM(late, SWDMA_LATE);
MODULE_PARM_DESC(late,
		 "1 to move data at the end of the delays, just before anything tells of it, 0 at their start (default 0)");
SWDMA_PARAM(poison, SWDMA_POISON);
MODULE_PARM_DESC(poison,
		 "Byte to fill the target with when a descriptor starts, 1 to 255, 0 to leave it (default 0)");
SWDMA_PARAM(stall, SWDMA_STALL);
MODULE_PARM_DESC(stall,
		 "1 to start no descriptor until it is 0 again (default 0)");
SWDMA_PARAM(shuffle, SWDMA_SHUFFLE);
MODULE_PARM_DESC(shuffle,
		 "1 to take descriptors in random order if out_of_order (default 1)");
SWDMA_PARAM(sleep_us, SWDMA_SLEEP_US);
MODULE_PARM_DESC(sleep_us,
		 "Microseconds that prep and submit sleep if out_of_order, 0 to 1000000 (default 0)");
SWDMA_PARAM(slow_ms, SWDMA_SLOW_MS);
MODULE_PARM_DESC(slow_ms,
		 "Milliseconds for slow_every, 0 to 100000 (default 1000)");
SWDMA_PARAM(fail_result, SWDMA_FAIL_RESULT);
MODULE_PARM_DESC(fail_result,
		 "Result for fail_every: 1 read failed, 2 write failed, 3 aborted (default 1)");
SWDMA_PARAM(fail_abort, SWDMA_FAIL_ABORT);
MODULE_PARM_DESC(fail_abort,
		 "1 to abort all that was submitted after a failed descriptor (default 0)");
SWDMA_PARAM(lose_ms, SWDMA_LOSE_MS);
MODULE_PARM_DESC(lose_ms,
		 "Milliseconds for lose_every, 1 to 600000, 0 for ever (default 0)");
SWDMA_PARAM(spurious_ms, SWDMA_SPURIOUS_MS);
MODULE_PARM_DESC(spurious_ms,
		 "Milliseconds from the first callback to the second for spurious_every, 0 to 600000 (default 0)");
SWDMA_PARAM(unbind, SWDMA_UNBIND);
MODULE_PARM_DESC(unbind,
		 "When the device leaves, descriptors in flight 0 finish, 1 are called back as aborted, 2 are dropped (default 0)");
