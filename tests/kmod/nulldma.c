// SPDX-License-Identifier: GPL-2.0
/*
 * nulldma - a DMA_MEMCPY provider that moves nothing and takes no time
 *
 * (With "move" it does move, for a client that looks.  No IOMMU then.)
 *
 * For counting what a dmaengine client costs by itself: each NUMA node gets a
 * device whose descriptors are done as soon as they are issued, with whatever was
 * in the memory before.  All the rest is as with ioatdma: descriptors come from a
 * ring, a spinlock is held with bottom halves disabled from prep to submit, an
 * interrupt (from this CPU to itself) schedules a tasklet, and that one unmaps and
 * calls back in order, whoever asked for a callback.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/device.h>
#include <linux/dma-mapping.h>
#include <linux/dmaengine.h>
#include <linux/errno.h>
#include <linux/interrupt.h>
#include <linux/io.h>
#include <linux/irq_work.h>
#include <linux/list.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/nodemask.h>
#include <linux/platform_device.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/string.h>
#include <linux/topology.h>

#define NULLDMA_CHANNELS	4
#define NULLDMA_RING		1024	/* a power of two */

static bool move;
module_param(move, bool, 0444);
MODULE_PARM_DESC(move, "Move the data (default N)");

/**
 * struct nulldma_chan - a channel
 * @chan: dmaengine's part
 * @prep_lock: covers @head; held from prep to submit
 * @head: descriptors submitted so far
 * @issued: descriptors issued so far
 * @done: descriptors completed so far, changed by @tasklet only
 * @interrupt: comes after a change of @issued
 * @tasklet: completes what is issued
 * @ring: the descriptors
 */
struct nulldma_chan {
	struct dma_chan chan;
	spinlock_t prep_lock;	/* a spinlock because ioatdma's is one */
	unsigned int head;
	unsigned int issued;
	unsigned int done;
	struct irq_work interrupt;
	struct tasklet_struct tasklet;
	struct dma_async_tx_descriptor *ring;
};

/**
 * struct nulldma_dev - a device
 * @dd: dmaengine's part
 * @chans: the channels
 */
struct nulldma_dev {
	struct dma_device dd;
	struct nulldma_chan chans[NULLDMA_CHANNELS];
};

static struct nulldma_chan *to_nulldma_chan(struct dma_chan *chan)
{
	return container_of(chan, struct nulldma_chan, chan);
}

/* ---------------------------------------------------------- prep to submit */

static dma_cookie_t nulldma_submit(struct dma_async_tx_descriptor *tx)
{
	struct nulldma_chan *ch = to_nulldma_chan(tx->chan);
	dma_cookie_t cookie = ch->chan.cookie + 1;

	if (cookie < DMA_MIN_COOKIE)
		cookie = DMA_MIN_COOKIE;
	tx->cookie = cookie;
	ch->chan.cookie = cookie;
	ch->head++;
	__acquire(&ch->prep_lock);
	spin_unlock_bh(&ch->prep_lock);
	return cookie;
}

/* Returns with prep_lock held unless it returns NULL. */
static struct dma_async_tx_descriptor *
nulldma_prep(struct dma_chan *chan, dma_addr_t dst, dma_addr_t src, size_t len,
	     unsigned long flags)
{
	struct nulldma_chan *ch = to_nulldma_chan(chan);
	struct dma_async_tx_descriptor *tx;

	spin_lock_bh(&ch->prep_lock);
	if (ch->head - READ_ONCE(ch->done) == NULLDMA_RING) {
		spin_unlock_bh(&ch->prep_lock);
		return NULL;
	}
	tx = &ch->ring[ch->head % NULLDMA_RING];
	tx->flags = flags;
	tx->callback = NULL;
	tx->callback_result = NULL;
	/* Earlier than a real one, but when exactly is its own affair. */
	if (move)
		memcpy(phys_to_virt(dst), phys_to_virt(src), len);
	__release(&ch->prep_lock);
	return tx;
}

/* ------------------------------------------------------- issue to callback */

static void nulldma_issue(struct dma_chan *chan)
{
	struct nulldma_chan *ch = to_nulldma_chan(chan);

	spin_lock_bh(&ch->prep_lock);
	/* The tasklet reads descriptors only after it has read this. */
	smp_store_release(&ch->issued, ch->head);
	spin_unlock_bh(&ch->prep_lock);
	irq_work_queue(&ch->interrupt);
}

static void nulldma_interrupt(struct irq_work *work)
{
	struct nulldma_chan *ch = container_of(work, struct nulldma_chan,
					       interrupt);

	tasklet_schedule(&ch->tasklet);
}

static void nulldma_complete(struct dma_async_tx_descriptor *tx)
{
	static const struct dmaengine_result result = {
		.result = DMA_TRANS_NOERROR,
	};
	dma_async_tx_callback_result callback_result = tx->callback_result;
	dma_async_tx_callback callback = tx->callback;
	void *param = tx->callback_param;

	tx->chan->completed_cookie = tx->cookie;
	dma_descriptor_unmap(tx);
	if (callback_result)
		callback_result(param, &result);
	else if (callback)
		callback(param);
}

static void nulldma_tasklet(struct tasklet_struct *task)
{
	struct nulldma_chan *ch = from_tasklet(ch, task, tasklet);
	unsigned int issued, done;

	/* Pairs with nulldma_issue(). */
	issued = smp_load_acquire(&ch->issued);
	for (done = ch->done; done != issued; done++)
		nulldma_complete(&ch->ring[done % NULLDMA_RING]);
	/* Their place in the ring may be used again. */
	WRITE_ONCE(ch->done, done);
}

static enum dma_status nulldma_status(struct dma_chan *chan,
				      dma_cookie_t cookie,
				      struct dma_tx_state *state)
{
	dma_cookie_t used = READ_ONCE(chan->cookie);
	dma_cookie_t last = READ_ONCE(chan->completed_cookie);

	if (state) {
		state->last = last;
		state->used = used;
		state->residue = 0;
	}
	return dma_async_is_complete(cookie, last, used);
}

/* ---------------------------------------------------------------- channels */

static int nulldma_alloc_chan(struct dma_chan *chan)
{
	struct nulldma_chan *ch = to_nulldma_chan(chan);
	unsigned int i;

	ch->ring = kcalloc_node(NULLDMA_RING, sizeof(*ch->ring), GFP_KERNEL,
				dev_to_node(chan->device->dev));
	if (!ch->ring)
		return -ENOMEM;
	for (i = 0; i < NULLDMA_RING; i++) {
		dma_async_tx_descriptor_init(&ch->ring[i], chan);
		ch->ring[i].tx_submit = nulldma_submit;
	}
	chan->cookie = DMA_MIN_COOKIE;
	chan->completed_cookie = DMA_MIN_COOKIE;
	return NULLDMA_RING;
}

/* Nothing is in flight: what is issued is done at once. */
static void nulldma_free_chan(struct dma_chan *chan)
{
	struct nulldma_chan *ch = to_nulldma_chan(chan);

	irq_work_sync(&ch->interrupt);
	tasklet_kill(&ch->tasklet);
	kfree(ch->ring);
	ch->ring = NULL;
}

static void nulldma_init_chan(struct nulldma_chan *ch, struct dma_device *dd)
{
	spin_lock_init(&ch->prep_lock);
	init_irq_work(&ch->interrupt, nulldma_interrupt);
	tasklet_setup(&ch->tasklet, nulldma_tasklet);
	ch->chan.device = dd;
	list_add_tail(&ch->chan.device_node, &dd->channels);
}

/* ----------------------------------------------------------------- devices */

/* Freed with the platform device, which dmaengine does not outlive: see below. */
static void nulldma_release(struct dma_device *dd)
{
}

static void nulldma_unregister(void *data)
{
	dma_async_device_unregister(data);
}

static int nulldma_probe(struct platform_device *pdev)
{
	struct nulldma_dev *nd;
	struct dma_device *dd;
	unsigned int i;
	int rc;

	rc = dma_set_mask_and_coherent(&pdev->dev, DMA_BIT_MASK(64));
	if (rc)
		return rc;
	nd = devm_kzalloc(&pdev->dev, sizeof(*nd), GFP_KERNEL);
	if (!nd)
		return -ENOMEM;
	dd = &nd->dd;
	dd->dev = &pdev->dev;
	dma_cap_set(DMA_MEMCPY, dd->cap_mask);
	dma_cap_set(DMA_PRIVATE, dd->cap_mask);
	dd->device_alloc_chan_resources = nulldma_alloc_chan;
	dd->device_free_chan_resources = nulldma_free_chan;
	dd->device_prep_dma_memcpy = nulldma_prep;
	dd->device_issue_pending = nulldma_issue;
	dd->device_tx_status = nulldma_status;
	dd->device_release = nulldma_release;
	INIT_LIST_HEAD(&dd->channels);
	for (i = 0; i < NULLDMA_CHANNELS; i++)
		nulldma_init_chan(&nd->chans[i], dd);
	rc = dma_async_device_register(dd);
	if (rc)
		return rc;
	return devm_add_action_or_reset(&pdev->dev, nulldma_unregister, dd);
}

/* A held channel holds the module; unbinding would not ask. */
static struct platform_driver nulldma_driver = {
	.probe = nulldma_probe,
	.driver = {
		.name = KBUILD_MODNAME,
		.suppress_bind_attrs = true,
	},
};

static struct platform_device *nulldma_pdevs[MAX_NUMNODES];

static int nulldma_add_device(int nid)
{
	struct platform_device *pdev;
	int rc;

	pdev = platform_device_alloc(KBUILD_MODNAME, nid);
	if (!pdev)
		return -ENOMEM;
	set_dev_node(&pdev->dev, nid);
	rc = platform_device_add(pdev);
	if (rc)
		platform_device_put(pdev);
	else
		nulldma_pdevs[nid] = pdev;
	return rc;
}

static void nulldma_del(void)
{
	int nid;

	for (nid = 0; nid < MAX_NUMNODES; nid++)
		platform_device_unregister(nulldma_pdevs[nid]);
	platform_driver_unregister(&nulldma_driver);
}

static int __init nulldma_init(void)
{
	int nid, rc;

	rc = platform_driver_register(&nulldma_driver);
	if (rc)
		return rc;
	for_each_online_node(nid) {
		rc = nulldma_add_device(nid);
		if (rc) {
			nulldma_del();
			return rc;
		}
	}
	return 0;
}
module_init(nulldma_init);

static void __exit nulldma_exit(void)
{
	nulldma_del();
}
module_exit(nulldma_exit);

MODULE_DESCRIPTION("DMA engine that moves nothing, for counting what a client costs");
MODULE_LICENSE("GPL");
