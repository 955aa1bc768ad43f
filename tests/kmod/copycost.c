// SPDX-License-Identifier: GPL-2.0
/*
 * copycost - what moving the bytes of a request costs, and nothing else
 *
 * For telling the cost of a driver from that of its copies.  Loading it measures,
 * for each of the lengths in "bytes", and its parameters show the clock ticks of
 * one request:
 *
 *	read		from media to memory, by copy_mc_to_kernel()
 *	write		from memory to media, by memcpy_flushcache()
 *	writeback	what an engine wrote, by arch_wb_cache_pmem()
 *	engine		the provider's part: prep, submit, issue, interrupt and a
 *			callback, for the descriptors that pmem_dma would use
 *
 * CPU copies take the whole length at once, as ours do when the pages of a request
 * follow each other; nd_pmem goes page by page.  Both sides are ordinary memory:
 * that makes no difference where the clock counts instructions, which is what this
 * is for.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/compiler.h>
#include <linux/dmaengine.h>
#include <linux/errno.h>
#include <linux/gfp.h>
#include <linux/kernel.h>
#include <linux/libnvdimm.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/preempt.h>
#include <linux/sizes.h>
#include <linux/string.h>
#include <linux/timex.h>
#include <linux/uaccess.h>

#define COPYCOST_LENGTHS	8
#define COPYCOST_MAX_LEN	SZ_4M
/* The clock's timer ticks fall into few of them, and the least is taken. */
#define COPYCOST_ROUNDS		16

static unsigned int bytes[COPYCOST_LENGTHS];
static unsigned int lengths;
module_param_array(bytes, uint, &lengths, 0444);
MODULE_PARM_DESC(bytes, "Lengths of requests, up to 8 of up to 4 MiB");

static unsigned long read[COPYCOST_LENGTHS];
module_param_array(read, ulong, NULL, 0444);
MODULE_PARM_DESC(read, "Result: clock ticks of a CPU copy from the media");

static unsigned long write[COPYCOST_LENGTHS];
module_param_array(write, ulong, NULL, 0444);
MODULE_PARM_DESC(write, "Result: clock ticks of a CPU copy to the media");

static unsigned long writeback[COPYCOST_LENGTHS];
module_param_array(writeback, ulong, NULL, 0444);
MODULE_PARM_DESC(writeback, "Result: clock ticks of writing back from the cache");

static unsigned long engine[COPYCOST_LENGTHS];
module_param_array(engine, ulong, NULL, 0444);
MODULE_PARM_DESC(engine, "Result: clock ticks of a dmaengine provider's part");

static void *copycost_mem, *copycost_media;
static struct dma_chan *copycost_chan;
static bool copycost_called;

static int copycost_read(size_t len)
{
	return copy_mc_to_kernel(copycost_mem, copycost_media, len) ? -EIO : 0;
}

static int copycost_write(size_t len)
{
	memcpy_flushcache(copycost_media, copycost_mem, len);
	return 0;
}

static int copycost_writeback(size_t len)
{
	arch_wb_cache_pmem(copycost_media, len);
	return 0;
}

static void copycost_callback(void *param)
{
	WRITE_ONCE(copycost_called, true);
}

/* The addresses are of no interest to a provider that moves nothing. */
static int copycost_engine(size_t len)
{
	struct dma_async_tx_descriptor *tx;
	size_t at;

	copycost_called = false;
	for (at = 0; at < len; at += SZ_1M) {
		bool last = at + SZ_1M >= len;

		tx = dmaengine_prep_dma_memcpy(copycost_chan, 0, 0,
					       min_t(size_t, len - at, SZ_1M),
					       DMA_CTRL_ACK |
					       (last ? DMA_PREP_INTERRUPT : 0));
		if (!tx)
			return -EBUSY;
		if (last)
			tx->callback = copycost_callback;
		dmaengine_submit(tx);
	}
	dma_async_issue_pending(copycost_chan);
	while (!READ_ONCE(copycost_called))
		cpu_relax();
	return 0;
}

static int copycost_measure(int (*fn)(size_t len), unsigned long *results)
{
	unsigned int i, round;

	for (i = 0; i < lengths; i++) {
		unsigned long least = ULONG_MAX;

		for (round = 0; round < COPYCOST_ROUNDS; round++) {
			unsigned long ticks;
			cycles_t start;
			int rc;

			preempt_disable();
			start = get_cycles();
			rc = fn(bytes[i]);
			ticks = get_cycles() - start;
			preempt_enable();
			if (rc)
				return rc;
			least = min(least, ticks);
		}
		results[i] = least;
	}
	return 0;
}

static bool copycost_filter(struct dma_chan *chan, void *unused)
{
	return !strncmp(dev_name(chan->device->dev), "nulldma", 7);
}

static int copycost_measure_engine(void)
{
	dma_cap_mask_t mask;
	int rc;

	dma_cap_zero(mask);
	dma_cap_set(DMA_MEMCPY, mask);
	copycost_chan = dma_request_channel(mask, copycost_filter, NULL);
	if (!copycost_chan) {
		pr_err("needs nulldma, and a channel of it\n");
		return -ENODEV;
	}
	rc = copycost_measure(copycost_engine, engine);
	dma_release_channel(copycost_chan);
	return rc;
}

static int copycost_measure_all(void)
{
	int rc;

	rc = copycost_measure(copycost_read, read);
	if (!rc)
		rc = copycost_measure(copycost_write, write);
	if (!rc)
		rc = copycost_measure(copycost_writeback, writeback);
	if (!rc)
		rc = copycost_measure_engine();
	return rc;
}

static int __init copycost_init(void)
{
	unsigned int i;
	int rc = -ENOMEM;

	for (i = 0; i < lengths; i++) {
		if (!bytes[i] || bytes[i] > COPYCOST_MAX_LEN) {
			pr_err("bytes=%u is out of range\n", bytes[i]);
			return -EINVAL;
		}
	}
	copycost_mem = alloc_pages_exact(COPYCOST_MAX_LEN,
					 GFP_KERNEL | __GFP_ZERO);
	copycost_media = alloc_pages_exact(COPYCOST_MAX_LEN,
					   GFP_KERNEL | __GFP_ZERO);
	if (copycost_mem && copycost_media)
		rc = copycost_measure_all();
	if (copycost_media)
		free_pages_exact(copycost_media, COPYCOST_MAX_LEN);
	if (copycost_mem)
		free_pages_exact(copycost_mem, COPYCOST_MAX_LEN);
	return rc;
}
module_init(copycost_init);

static void __exit copycost_exit(void)
{
}
module_exit(copycost_exit);

MODULE_DESCRIPTION("Cost of the copies of a request, for telling a driver's part");
MODULE_LICENSE("GPL");
