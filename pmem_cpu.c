// SPDX-License-Identifier: GPL-2.0
/*
 * pmem_cpu - persistent memory disk whose bytes are moved by the CPU
 *
 * Bio based: a bio is copied by whoever submits it and has ended when
 * submit_bio() returns.  The baseline that other front ends are compared with.
 */
#include <linux/blkdev.h>
#include <linux/module.h>

#include "pmem.h"

static void pmem_cpu_submit_bio(struct bio *bio)
{
	struct gendisk *disk = bio->bi_bdev->bd_disk;
	struct pmem_device *pmem = disk->private_data;
	blk_status_t sts = BLK_STS_OK;
	unsigned long start = 0;
	bool acct;

	if (bio->bi_opf & REQ_PREFLUSH)
		sts = pmem_core_flush(pmem);
	if (sts)
		goto out;

	acct = blk_queue_io_stat(disk->queue);
	if (acct)
		start = bio_start_io_acct(bio);
	if (bio_has_data(bio))
		sts = pmem_core_copy_bio(pmem, bio);
	if (acct)
		bio_end_io_acct(bio, start);
	if (!sts && (bio->bi_opf & REQ_FUA))
		sts = pmem_core_flush(pmem);
out:
	bio->bi_status = sts;
	bio_endio(bio);
}

static const struct block_device_operations pmem_cpu_fops = {
	.owner = THIS_MODULE,
	.submit_bio = pmem_cpu_submit_bio,
};

static struct gendisk *pmem_cpu_alloc_disk(struct pmem_device *pmem,
					   struct queue_limits *lim)
{
	struct gendisk *disk;

	lim->features |= BLK_FEAT_SYNCHRONOUS;
	disk = blk_alloc_disk(lim, dev_to_node(pmem->dev));
	if (IS_ERR(disk))
		return disk;
	disk->fops = &pmem_cpu_fops;
	disk->private_data = pmem;
	return disk;
}

static void pmem_cpu_free(struct pmem_device *pmem)
{
	put_disk(pmem->disk);
}

static const struct pmem_frontend pmem_cpu_frontend = {
	.name = "pmem_cpu",
	.alloc_disk = pmem_cpu_alloc_disk,
	.free = pmem_cpu_free,
};

static int __init pmem_cpu_init(void)
{
	return pmem_core_register(&pmem_cpu_frontend, THIS_MODULE,
				  KBUILD_MODNAME);
}
module_init(pmem_cpu_init);

static void __exit pmem_cpu_exit(void)
{
	pmem_core_unregister(&pmem_cpu_frontend);
}
module_exit(pmem_cpu_exit);

MODULE_DESCRIPTION("Persistent memory block driver: CPU copy");
MODULE_LICENSE("GPL");
