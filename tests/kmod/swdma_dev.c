// SPDX-License-Identifier: GPL-2.0
/*
 * swdma_dev - devices, and what they are like
 *
 * A device can be unbound and bound through sysfs.  While clients hold channels
 * of it, it outlives that: dmaengine says when the last of them has gone.  The
 * module cannot be removed as long as a channel is held.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/delay.h>
#include <linux/device.h>
#include <linux/dma-mapping.h>
#include <linux/dmaengine.h>
#include <linux/err.h>
#include <linux/limits.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/nodemask.h>
#include <linux/overflow.h>
#include <linux/platform_device.h>
#include <linux/slab.h>
#include <linux/topology.h>

#include "swdma.h"

#define SWDMA_MAX_CHANNELS	16
#define SWDMA_MAX_RING		65536
#define SWDMA_MAX_ALIGN		12

static unsigned int channels = 2;
module_param(channels, uint, 0444);
MODULE_PARM_DESC(channels, "Channels per device, 1 to 16 (default 2)");

static unsigned long node_mask = ULONG_MAX;
module_param(node_mask, ulong, 0444);
MODULE_PARM_DESC(node_mask, "NUMA nodes that get a device, one bit each (default all)");

unsigned int swdma_ring = 4096;
module_param_named(ring, swdma_ring, uint, 0444);
MODULE_PARM_DESC(ring, "Descriptors per channel, 1 to 65536; prep returns NULL when they are used up (default 4096)");

bool swdma_block;
module_param_named(block, swdma_block, bool, 0444);
MODULE_PARM_DESC(block, "Prep sleeps while descriptors are used up, if out_of_order (default N)");

unsigned int swdma_max_len;
module_param_named(max_len, swdma_max_len, uint, 0444);
MODULE_PARM_DESC(max_len, "Longest copy in bytes; prep returns NULL for a longer one, 0 for no limit (default 0)");

static bool advertise = true;
module_param(advertise, bool, 0444);
MODULE_PARM_DESC(advertise, "The device has DMA parameters that tell max_len (default Y)");

unsigned int swdma_copy_align;
module_param_named(copy_align, swdma_copy_align, uint, 0444);
MODULE_PARM_DESC(copy_align, "Alignment of addresses and length as a power of two, 0 to 12; prep returns NULL otherwise (default 0)");

static unsigned int dma_bits = 64;
module_param(dma_bits, uint, 0444);
MODULE_PARM_DESC(dma_bits, "Address bits of the devices, 24 to 64 (default 64)");

bool swdma_out_of_order;
module_param_named(out_of_order, swdma_out_of_order, bool, 0444);
MODULE_PARM_DESC(out_of_order, "Complete in any order, sleep in prep and submit, like idxd; otherwise in order like ioatdma (default N)");

static bool private = true;
module_param(private, bool, 0444);
MODULE_PARM_DESC(private, "Channels are for exclusive use, DMA_PRIVATE (default Y)");

unsigned int swdma_terminate;
module_param_named(terminate, swdma_terminate, uint, 0444);
MODULE_PARM_DESC(terminate, "terminate_all: 0 does not exist, 1 drops descriptors, 2 calls them back as aborted (default 0)");

bool swdma_synchronize;
module_param_named(synchronize, swdma_synchronize, bool, 0444);
MODULE_PARM_DESC(synchronize, "synchronize exists (default N)");

static bool hold_exit;
module_param(hold_exit, bool, 0644);
MODULE_PARM_DESC(hold_exit, "The removal of the module waits, before it begins, until this is cleared (default N)");

struct workqueue_struct *swdma_wq;

/* Devices that are bound. */
LIST_HEAD(swdma_devs);
/* Covers the list and the values of the knobs' parameters. */
DEFINE_MUTEX(swdma_devs_lock);

/*
 * Devices that were unbound and let go by all clients.  dmaengine still looks at
 * a device after it called for its release, under a mutex of its own.
 */
static LIST_HEAD(swdma_left);
/* Not swdma_devs_lock, which is taken before dmaengine's mutex. */
static DEFINE_SPINLOCK(swdma_left_lock);

static void swdma_take_left(struct list_head *list)
{
	spin_lock(&swdma_left_lock);
	list_splice_init(&swdma_left, list);
	spin_unlock(&swdma_left_lock);
}

static void swdma_free_left(struct list_head *list)
{
	struct swdma_dev *sd, *next;

	list_for_each_entry_safe(sd, next, list, node)
		kvfree(sd);
}

/* Called by dmaengine when nobody holds the device any more. */
static void swdma_release(struct dma_device *dd)
{
	struct swdma_dev *sd = container_of(dd, struct swdma_dev, dd);

	spin_lock(&swdma_left_lock);
	list_add(&sd->node, &swdma_left);
	spin_unlock(&swdma_left_lock);
}

/* Undoes the probe. */
static void swdma_unbind(void *data)
{
	struct swdma_dev *sd = data;
	unsigned int i;

	mutex_lock(&swdma_devs_lock);
	list_del(&sd->node);
	mutex_unlock(&swdma_devs_lock);
	swdma_stats_del(sd);
	for (i = 0; i < sd->nr_chans; i++)
		swdma_chan_leave(&sd->chans[i]);
	dma_async_device_unregister(&sd->dd);
}

static struct swdma_dev *swdma_make(struct device *dev)
{
	struct swdma_dev *sd;
	unsigned int i;

	sd = kvzalloc(struct_size(sd, chans, channels), GFP_KERNEL);
	if (!sd)
		return NULL;
	sd->nid = dev_to_node(dev);
	sd->nr_chans = channels;
	sd->dd.dev = dev;
	sd->dd.copy_align = swdma_copy_align;
	sd->dd.device_release = swdma_release;
	INIT_LIST_HEAD(&sd->dd.channels);
	dma_cap_set(DMA_MEMCPY, sd->dd.cap_mask);
	if (private)
		dma_cap_set(DMA_PRIVATE, sd->dd.cap_mask);
	if (swdma_out_of_order)
		dma_cap_set(DMA_COMPLETION_NO_ORDER, sd->dd.cap_mask);
	swdma_chan_ops(&sd->dd);
	for (i = 0; i < sd->nr_chans; i++)
		swdma_chan_init(&sd->chans[i], sd);
	return sd;
}

/* No change of a knob may fall between its copy and the list. */
static int swdma_register(struct swdma_dev *sd)
{
	unsigned int i;
	int rc;

	mutex_lock(&swdma_devs_lock);
	for (i = 0; i < sd->nr_chans; i++)
		swdma_knobs_init(&sd->chans[i]);
	rc = dma_async_device_register(&sd->dd);
	if (!rc)
		list_add_tail(&sd->node, &swdma_devs);
	mutex_unlock(&swdma_devs_lock);
	return rc;
}

static int swdma_set_limits(struct platform_device *pdev)
{
	struct device *dev = &pdev->dev;

	dev->dma_parms = advertise ? &pdev->dma_parms : NULL;
	if (advertise)
		dma_set_max_seg_size(dev, swdma_max_len ? swdma_max_len :
							  UINT_MAX);
	return dma_set_mask_and_coherent(dev, DMA_BIT_MASK(dma_bits));
}

static int swdma_probe(struct platform_device *pdev)
{
	struct swdma_dev *sd;
	LIST_HEAD(left);
	int rc;

	rc = swdma_set_limits(pdev);
	if (rc)
		return rc;
	sd = swdma_make(&pdev->dev);
	if (!sd)
		return -ENOMEM;
	swdma_take_left(&left);
	rc = swdma_register(sd);
	/* This took dmaengine's mutex, so it is through with them. */
	swdma_free_left(&left);
	if (rc) {
		kvfree(sd);
		return rc;
	}
	swdma_stats_add(sd);
	return devm_add_action_or_reset(&pdev->dev, swdma_unbind, sd);
}

static struct platform_driver swdma_driver = {
	.probe = swdma_probe,
	.driver = {
		.name = "swdma",
	},
};

static struct platform_device *swdma_pdevs[MAX_NUMNODES];

static int swdma_add_device(int nid)
{
	struct platform_device *pdev = platform_device_alloc("swdma", nid);
	int rc;

	if (!pdev)
		return -ENOMEM;
	set_dev_node(&pdev->dev, nid);
	rc = platform_device_add(pdev);
	if (rc)
		platform_device_put(pdev);
	else
		swdma_pdevs[nid] = pdev;
	return rc;
}

static void swdma_del_devices(void)
{
	int nid;

	for (nid = 0; nid < MAX_NUMNODES; nid++)
		platform_device_unregister(swdma_pdevs[nid]);
}

static int swdma_add_devices(void)
{
	int nid, rc = 0;

	for_each_online_node(nid) {
		if (nid < BITS_PER_LONG && !(node_mask & BIT(nid)))
			continue;
		rc = swdma_add_device(nid);
		if (rc) {
			swdma_del_devices();
			break;
		}
	}
	return rc;
}

static bool swdma_params_ok(void)
{
	return channels && channels <= SWDMA_MAX_CHANNELS &&
		swdma_ring && swdma_ring <= SWDMA_MAX_RING &&
		swdma_copy_align <= SWDMA_MAX_ALIGN &&
		(!swdma_max_len || swdma_max_len >= BIT(swdma_copy_align)) &&
		dma_bits >= 24 && dma_bits <= 64 &&
		swdma_terminate <= 2;
}

static int __init swdma_init(void)
{
	int rc;

	if (!swdma_params_ok()) {
		pr_err("a parameter is out of range, see modinfo\n");
		return -EINVAL;
	}
	/* Each channel has an engine and lateness of its own. */
	swdma_wq = alloc_workqueue("swdma", WQ_UNBOUND | WQ_MEM_RECLAIM |
				   WQ_HIGHPRI, 0);
	if (!swdma_wq)
		return -ENOMEM;
	swdma_stats_init();
	rc = platform_driver_register(&swdma_driver);
	if (rc)
		goto stats;
	rc = swdma_add_devices();
	if (rc)
		goto driver;
	return 0;

driver:
	platform_driver_unregister(&swdma_driver);
stats:
	swdma_stats_exit();
	destroy_workqueue(swdma_wq);
	return rc;
}

static void __exit swdma_exit(void)
{
	LIST_HEAD(left);

	while (READ_ONCE(hold_exit))
		msleep(20);
	swdma_del_devices();
	platform_driver_unregister(&swdma_driver);
	swdma_take_left(&left);
	swdma_free_left(&left);
	swdma_stats_exit();
	destroy_workqueue(swdma_wq);
}

module_init(swdma_init);
module_exit(swdma_exit);
MODULE_DESCRIPTION("Software DMA engine with faults, for tests");
MODULE_LICENSE("GPL");
