// SPDX-License-Identifier: GPL-2.0
/*
 * seedbugs - one bug of each kind that a debug kernel has to find
 *
 * A log without reports says something about our modules only if the detectors
 * do report.  This module has the bug that its parameter names, and is otherwise
 * right: it can be removed again, and does no harm to anybody else's memory.
 *
 * What a compiler or a static checker could see is hidden from it.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/compiler.h>
#include <linux/dma-mapping.h>
#include <linux/err.h>
#include <linux/kernel.h>
#include <linux/list.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/mutex.h>
#include <linux/platform_device.h>
#include <linux/preempt.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>
#include <linux/timer.h>

#define SEED_BYTES	64

static char *bug = "";
module_param(bug, charp, 0444);
MODULE_PARM_DESC(bug, "rcu, locks, sleep, shift, list, object, mapping, bounds or leak");

static unsigned int seed_sink;

/* A protected pointer is followed without protection. */
static int seed_rcu(void)
{
	static unsigned int __rcu *pointer;

	if (rcu_dereference(pointer))
		seed_sink++;
	return 0;
}

static DEFINE_MUTEX(seed_first);
static DEFINE_MUTEX(seed_second);

static void seed_lock_both(struct mutex *outer, struct mutex *inner)
{
	mutex_lock(outer);
	mutex_lock(inner);
	mutex_unlock(inner);
	mutex_unlock(outer);
}

/* Two locks are taken in one order, and in the other. */
static int seed_locks(void)
{
	seed_lock_both(&seed_first, &seed_second);
	seed_lock_both(&seed_second, &seed_first);
	return 0;
}

static int seed_sleep(void)
{
	preempt_disable();
	might_sleep();
	preempt_enable();
	return 0;
}

static int seed_shift(void)
{
	unsigned int bits = 40;

	OPTIMIZER_HIDE_VAR(bits);
	seed_sink = 1U << bits;
	return 0;
}

/* An element is added to a list in which it already is. */
static int seed_list(void)
{
	struct list_head head, element;

	INIT_LIST_HEAD(&head);
	list_add(&element, &head);
	list_add(&element, &head);
	return 0;
}

static void seed_timer_fn(struct timer_list *timer)
{
	seed_sink++;
}

/* A timer is set up anew while it is running. */
static int seed_object(void)
{
	static struct timer_list timer;

	timer_setup(&timer, seed_timer_fn, 0);
	mod_timer(&timer, jiffies + 1000 * HZ);
	timer_setup(&timer, seed_timer_fn, 0);
	return 0;
}

/* A mapping is undone with another length than it was made with. */
static int seed_mapping(void)
{
	struct platform_device *pdev;
	dma_addr_t addr;
	void *mem;
	int rc;

	pdev = platform_device_register_simple(KBUILD_MODNAME,
					       PLATFORM_DEVID_NONE, NULL, 0);
	if (IS_ERR(pdev))
		return PTR_ERR(pdev);
	rc = dma_coerce_mask_and_coherent(&pdev->dev, DMA_BIT_MASK(64));
	mem = kmalloc(SEED_BYTES, GFP_KERNEL);
	if (rc || !mem)
		goto out;
	addr = dma_map_single(&pdev->dev, mem, SEED_BYTES, DMA_TO_DEVICE);
	if (!dma_mapping_error(&pdev->dev, addr))
		dma_unmap_single(&pdev->dev, addr, SEED_BYTES / 2,
				 DMA_TO_DEVICE);
out:
	kfree(mem);
	platform_device_unregister(pdev);
	return rc;
}

/* Memory is read beyond its end. */
static int seed_bounds(void)
{
	u8 *mem = kzalloc(SEED_BYTES, GFP_KERNEL);
	unsigned int end = SEED_BYTES;

	if (!mem)
		return -ENOMEM;
	OPTIMIZER_HIDE_VAR(end);
	seed_sink = READ_ONCE(mem[end]);
	kfree(mem);
	return 0;
}

/* Some, as a stale pointer to one may be left on a stack for a while. */
static int seed_leak(void)
{
	unsigned int i;

	for (i = 0; i < 16; i++) {
		void *mem = kmalloc(SEED_BYTES, GFP_KERNEL);

		OPTIMIZER_HIDE_VAR(mem);
	}
	return 0;
}

static const struct {
	const char *name;
	int (*plant)(void);
} seeds[] = {
	{ "rcu", seed_rcu },
	{ "locks", seed_locks },
	{ "sleep", seed_sleep },
	{ "shift", seed_shift },
	{ "list", seed_list },
	{ "object", seed_object },
	{ "mapping", seed_mapping },
	{ "bounds", seed_bounds },
	{ "leak", seed_leak },
};

static int __init seedbugs_init(void)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(seeds); i++)
		if (!strcmp(bug, seeds[i].name))
			return seeds[i].plant();
	pr_err("bug=%s: no such bug\n", bug);
	return -EINVAL;
}
module_init(seedbugs_init);

static void __exit seedbugs_exit(void)
{
}
module_exit(seedbugs_exit);

MODULE_DESCRIPTION("One bug for each detector of a debug kernel");
MODULE_LICENSE("GPL");
