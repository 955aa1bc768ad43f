// SPDX-License-Identifier: GPL-2.0
/*
 * pmem_dma - persistent memory disk whose bytes are moved by DMA engines
 *
 * A blk-mq front end of pmem_core.  This file has the parameters and the disk;
 * the life of a request is told in pmem_dma_rq.c, how late ones are found in
 * pmem_dma_inflight.c, the trust in channels in pmem_dma_health.c, which queue
 * uses which channel in pmem_dma_queue.c.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/blk-mq.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/percpu.h>
#include <linux/sizes.h>
#include <linux/slab.h>

#include "pmem.h"
#include "pmem_dma.h"
#include "pmem_dma_gen.h"

#define PMEM_DMA_MAX_DEPTH	1024U
#define PMEM_DMA_MAX_SG		256U
#define PMEM_DMA_MAX_QUEUES	64U

/* The ring of ioatdma, the largest that we know of. */
#define PMEM_DMA_MAX_DESCRIPTORS	65536U

/*
 * Longer requests are split.  The CPU copies 4 MiB in about a millisecond, long
 * enough to make the overhead of a request vanish.
 */
#define PMEM_DMA_MAX_SECTORS	(SZ_4M >> SECTOR_SHIFT)

/*
 * An engine's copy costs some 20 us before the first byte (descriptor, doorbell,
 * interrupt), and then moves 12 GB/s where a CPU reads 7 and writes 3.5 (I/OAT
 * on a Skylake Xeon).  From these sizes on, even a request that is alone is
 * faster by engine there.
 */
#define PMEM_DMA_READ_MIN	SZ_512K
#define PMEM_DMA_WRITE_MIN	SZ_128K

/*
 * A channel that completes nothing for so long is looked at.  To be late is no
 * error.
 */
#define PMEM_DMA_TIMEOUT	HZ

/* -------------------------------------------------------------- parameters */

struct pmem_dma_range {
	const char *name;
	unsigned int min, max;
	unsigned int value;
};

static int pmem_dma_range_set(const char *val, const struct kernel_param *kp)
{
	struct pmem_dma_range *range = kp->arg;
	unsigned int n;
	int rc = kstrtouint(val, 0, &n);

	if (!rc && (n < range->min || n > range->max))
		rc = -EINVAL;
	if (rc) {
		pr_err("%s=%s: must be a number from %u to %u\n", range->name,
		       val, range->min, range->max);
		return rc;
	}
	range->value = n;
	return 0;
}

static int pmem_dma_range_get(char *buf, const struct kernel_param *kp)
{
	struct pmem_dma_range *range = kp->arg;

	return sysfs_emit(buf, "%u\n", range->value);
}

static const struct kernel_param_ops pmem_dma_range_ops = {
	.set = pmem_dma_range_set,
	.get = pmem_dma_range_get,
};

static struct pmem_dma_range queue_depth = {
	.name = "queue_depth", .min = 1, .max = PMEM_DMA_MAX_DEPTH, .value = 128,
};
module_param_cb(queue_depth, &pmem_dma_range_ops, &queue_depth, 0444);
__MODULE_PARM_TYPE(queue_depth, "uint");
MODULE_PARM_DESC(queue_depth,
		 "Requests in flight per hardware queue, 1 to 1024 (default 128); times num_sg less than 65536");

static struct pmem_dma_range q_per_node = {
	.name = "q_per_node", .min = 0, .max = PMEM_DMA_MAX_QUEUES, .value = 0,
};
module_param_cb(q_per_node, &pmem_dma_range_ops, &q_per_node, 0444);
__MODULE_PARM_TYPE(q_per_node, "uint");
MODULE_PARM_DESC(q_per_node,
		 "Hardware queues per NUMA node, 1 to 64 and at most the node's CPUs, 0 for one per DMA channel of the node (default 0)");

static struct pmem_dma_range num_sg = {
	.name = "num_sg", .min = 1, .max = PMEM_DMA_MAX_SG, .value = 128,
};
module_param_cb(num_sg, &pmem_dma_range_ops, &num_sg, 0444);
__MODULE_PARM_TYPE(num_sg, "uint");
MODULE_PARM_DESC(num_sg,
		 "Memory segments, that is descriptors, per request, 1 to 256 (default 128); times queue_depth less than 65536");

/* -------------------------------------------------------------------- disk */

static const struct block_device_operations pmem_dma_fops = {
	.owner = THIS_MODULE,
};

static int pmem_dma_alloc_tags(struct pmem_dma_dev *pd)
{
	struct blk_mq_tag_set *set = &pd->set;

	set->ops = &pmem_dma_mq_ops;
	set->nr_hw_queues = pd->nr_queues;
	set->queue_depth = queue_depth.value;
	set->numa_node = dev_to_node(pd->pmem->dev);
	set->cmd_size = pmem_dma_rq_size(pd->num_sg);
	/* Flushes, poison clearing and some providers' submit may sleep. */
	set->flags = BLK_MQ_F_BLOCKING | BLK_MQ_F_NO_SCHED_BY_DEFAULT;
	set->timeout = PMEM_DMA_TIMEOUT;
	set->driver_data = pd;
	return blk_mq_alloc_tag_set(set);
}

static void pmem_dma_free_dev(struct pmem_dma_dev *pd)
{
	pmem_dma_free_queues(pd);
	free_percpu(pd->stats);
	kfree(pd);
}

static struct gendisk *pmem_dma_alloc_disk(struct pmem_device *pmem,
					   struct queue_limits *lim)
{
	struct pmem_dma_dev *pd;
	struct gendisk *disk;
	int rc;

	pd = kzalloc_node(sizeof(*pd), GFP_KERNEL, dev_to_node(pmem->dev));
	if (!pd)
		return ERR_PTR(-ENOMEM);
	pd->pmem = pmem;
	pd->num_sg = num_sg.value;
	pd->min_bytes[READ] = PMEM_DMA_READ_MIN;
	pd->min_bytes[WRITE] = PMEM_DMA_WRITE_MIN;
	INIT_LIST_HEAD(&pd->maps);
	mutex_init(&pd->admin_lock);
	pmem_dma_watch_init(pd);
	pd->stats = alloc_percpu(struct pmem_dma_stats);
	rc = pd->stats ? pmem_dma_make_queues(pd, q_per_node.value) : -ENOMEM;
	if (rc)
		goto out_free_dev;
	rc = pmem_dma_alloc_tags(pd);
	if (rc)
		goto out_free_dev;
	rc = pmem_dma_gen_add(pd);
	if (rc)
		goto out_free_tags;

	lim->max_segments = pd->num_sg;
	lim->max_segment_size = UINT_MAX;
	lim->max_hw_sectors = PMEM_DMA_MAX_SECTORS;
	lim->max_user_sectors = PMEM_DMA_MAX_SECTORS;
	disk = blk_mq_alloc_disk(&pd->set, lim, pd);
	if (IS_ERR(disk)) {
		rc = PTR_ERR(disk);
		goto out_gen_del;
	}
	disk->fops = &pmem_dma_fops;
	disk->private_data = pd;
	pd->disk = disk;
	pmem->fe_data = pd;
	pmem_dma_log_queues(pd);
	pmem_dma_add_disk(pd);
	pmem_dma_debugfs_add(pd);
	return disk;

out_gen_del:
	pmem_dma_gen_del(pd);
out_free_tags:
	blk_mq_free_tag_set(&pd->set);
out_free_dev:
	pmem_dma_free_dev(pd);
	return ERR_PTR(rc);
}

static void pmem_dma_free(struct pmem_device *pmem)
{
	struct pmem_dma_dev *pd = pmem->fe_data;

	pmem_dma_watch_exit(pd);
	pmem_dma_debugfs_del(pd);
	pmem_dma_del_disk(pd);
	put_disk(pd->disk);
	pmem_dma_gen_del(pd);
	blk_mq_free_tag_set(&pd->set);
	pmem_dma_free_dev(pd);
}

static const struct pmem_frontend pmem_dma_frontend = {
	.name = "pmem_dma",
	.alloc_disk = pmem_dma_alloc_disk,
	.free = pmem_dma_free,
	.groups = pmem_dma_groups,
};

static int __init pmem_dma_init(void)
{
	int rc;

	if (queue_depth.value * num_sg.value >= PMEM_DMA_MAX_DESCRIPTORS) {
		pr_err("queue_depth=%u times num_sg=%u must be less than %u\n",
		       queue_depth.value, num_sg.value,
		       PMEM_DMA_MAX_DESCRIPTORS);
		return -EINVAL;
	}
	rc = pmem_dma_rq_init();
	if (rc)
		return rc;
	pmem_dma_debugfs_init();
	rc = pmem_dma_provider_init();
	if (rc)
		goto out_debugfs_exit;
	rc = pmem_core_register(&pmem_dma_frontend, THIS_MODULE,
				KBUILD_MODNAME);
	if (rc)
		goto out_provider_exit;
	return 0;

out_provider_exit:
	pmem_dma_provider_exit();
out_debugfs_exit:
	pmem_dma_debugfs_exit();
	pmem_dma_rq_exit();
	return rc;
}
module_init(pmem_dma_init);

static void __exit pmem_dma_exit(void)
{
	pmem_core_unregister(&pmem_dma_frontend);
	pmem_dma_provider_exit();
	pmem_dma_debugfs_exit();
	pmem_dma_rq_exit();
}
module_exit(pmem_dma_exit);

MODULE_DESCRIPTION("Persistent memory block driver: DMA engine copy");
MODULE_LICENSE("GPL");
