/* SPDX-License-Identifier: GPL-2.0 */
/*
 * compat.h - the newest kernel's names on older kernels
 *
 * Included by the compiler before every source file, out of the kernel tree
 * only. The drivers are written for the newest kernel; what an older one has in
 * another form is given that form here, with the older calls. HAVE_* are the
 * results of compat/conftest.sh. On the newest kernel nothing is left of this
 * file, so that a driver which forgets an #include is found out there.
 */
#ifndef _PMEM_COMPAT_H
#define _PMEM_COMPAT_H

/*
 * The headers below would give pr_fmt() its default, and a driver that defines
 * its own afterwards would be told that it redefines it. The same definition
 * twice is fine.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#ifndef HAVE_QUEUE_LIMITS_FEATURES
#include <linux/backing-dev.h>
#include <linux/bits.h>
#include <linux/blk-mq.h>
#include <linux/err.h>

/* The limits that can be set here; the old kernel's struct is another thing. */
struct compat_queue_limits {
	unsigned int features;
	unsigned long seg_boundary_mask;
	unsigned long virt_boundary_mask;
	unsigned int max_hw_sectors;
	unsigned int max_user_sectors;
	unsigned int max_segment_size;
	unsigned int physical_block_size;
	unsigned int logical_block_size;
	unsigned int io_min;
	unsigned int io_opt;
	unsigned short max_segments;
	unsigned int dma_alignment;
};

#define BLK_FEAT_WRITE_CACHE	BIT(0)
#define BLK_FEAT_FUA		BIT(1)
#define BLK_FEAT_ROTATIONAL	BIT(2)
#define BLK_FEAT_NOWAIT		BIT(3)
#define BLK_FEAT_DAX		BIT(4)
/* Swap asks fops->rw_page where queues have no flag for it: nothing to set. */
#define BLK_FEAT_SYNCHRONOUS	BIT(5)

static inline void compat_set_max_sectors(struct request_queue *q,
					  const struct compat_queue_limits *lim)
{
	struct queue_limits *old = &q->limits;

	if (lim->max_hw_sectors)
		blk_queue_max_hw_sectors(q, lim->max_hw_sectors);
	if (!lim->max_user_sectors)
		return;
	old->max_sectors = min(old->max_hw_sectors, lim->max_user_sectors);
	q->disk->bdi->io_pages = old->max_sectors >> (PAGE_SHIFT - 9);
}

static inline void compat_set_features(struct request_queue *q,
				       unsigned int features)
{
	blk_queue_write_cache(q, features & BLK_FEAT_WRITE_CACHE,
			      features & BLK_FEAT_FUA);
	if (!(features & BLK_FEAT_ROTATIONAL))
		blk_queue_flag_set(QUEUE_FLAG_NONROT, q);
	if (features & BLK_FEAT_NOWAIT)
		blk_queue_flag_set(QUEUE_FLAG_NOWAIT, q);
	if (features & BLK_FEAT_DAX)
		blk_queue_flag_set(QUEUE_FLAG_DAX, q);
}

/* Before the disk is added nobody else looks at the limits of its queue. */
static inline void compat_set_limits(struct request_queue *q,
				     const struct compat_queue_limits *lim)
{
	/* First, since the maximums are rounded to it. */
	if (lim->logical_block_size)
		blk_queue_logical_block_size(q, lim->logical_block_size);
	if (lim->physical_block_size)
		blk_queue_physical_block_size(q, lim->physical_block_size);
	if (lim->io_min)
		blk_queue_io_min(q, lim->io_min);
	if (lim->io_opt)
		blk_queue_io_opt(q, lim->io_opt);
	if (lim->max_segments)
		blk_queue_max_segments(q, lim->max_segments);
	if (lim->max_segment_size)
		blk_queue_max_segment_size(q, lim->max_segment_size);
	if (lim->seg_boundary_mask)
		blk_queue_segment_boundary(q, lim->seg_boundary_mask);
	if (lim->virt_boundary_mask)
		blk_queue_virt_boundary(q, lim->virt_boundary_mask);
	if (lim->dma_alignment)
		blk_queue_dma_alignment(q, lim->dma_alignment);
	compat_set_max_sectors(q, lim);
	compat_set_features(q, lim->features);
}

static inline struct gendisk *
compat_blk_alloc_disk(const struct compat_queue_limits *lim, int node)
{
	struct gendisk *disk = blk_alloc_disk(node);

	if (!disk)
		return ERR_PTR(-ENOMEM);
	if (lim)
		compat_set_limits(disk->queue, lim);
	return disk;
}

static inline struct gendisk *
compat_blk_mq_alloc_disk(struct blk_mq_tag_set *set,
			 const struct compat_queue_limits *lim, void *queuedata)
{
	struct gendisk *disk = blk_mq_alloc_disk(set, queuedata);

	if (!IS_ERR(disk) && lim)
		compat_set_limits(disk->queue, lim);
	return disk;
}

#undef blk_alloc_disk
#undef blk_mq_alloc_disk
#define blk_alloc_disk(lim, node)	compat_blk_alloc_disk(lim, node)
#define blk_mq_alloc_disk(set, lim, queuedata)	\
	compat_blk_mq_alloc_disk(set, lim, queuedata)
#define queue_limits			compat_queue_limits
#endif /* !HAVE_QUEUE_LIMITS_FEATURES */

#ifndef HAVE_ALWAYS_MERGE
#include <linux/blk-mq.h>

static inline int compat_blk_mq_alloc_tag_set(struct blk_mq_tag_set *set)
{
	set->flags |= BLK_MQ_F_SHOULD_MERGE;
	return blk_mq_alloc_tag_set(set);
}

#define blk_mq_alloc_tag_set(set)	compat_blk_mq_alloc_tag_set(set)
#endif /* !HAVE_ALWAYS_MERGE */

#ifndef HAVE_WQ_PERCPU
#define WQ_PERCPU	0
#endif

#ifndef HAVE_FREEZE_MEMFLAGS
#include <linux/blk-mq.h>

/* The drivers begin a freeze in a way that gives no flags, so these are 0. */
static inline void compat_blk_mq_unfreeze_queue(struct request_queue *q,
						unsigned int memflags)
{
	blk_mq_unfreeze_queue(q);
}

#define blk_mq_unfreeze_queue(q, flags)	compat_blk_mq_unfreeze_queue(q, flags)
#endif /* !HAVE_FREEZE_MEMFLAGS */

#ifndef HAVE_BADBLOCKS_SECTOR_T
#include <linux/badblocks.h>
#include <linux/bits.h>
#include <linux/minmax.h>

/* The longest range, in sectors, that fits the old argument. */
#define COMPAT_BADBLOCKS_STEP	BIT(30)

static inline int compat_badblocks_check(struct badblocks *bb, sector_t s,
					 sector_t sectors, sector_t *first_bad,
					 sector_t *bad_sectors)
{
	sector_t end = s + sectors;
	int step, num, rc = 0;

	for (; s < end && !rc; s += step) {
		step = min_t(sector_t, end - s, COMPAT_BADBLOCKS_STEP);
		rc = badblocks_check(bb, s, step, first_bad, &num);
	}
	if (rc)
		*bad_sectors = num;
	return rc;
}

static inline bool compat_badblocks_set(struct badblocks *bb, sector_t s,
					sector_t sectors, int acknowledged)
{
	sector_t end = s + sectors;
	bool ok = true;
	int step;

	for (; s < end && ok; s += step) {
		step = min_t(sector_t, end - s, COMPAT_BADBLOCKS_STEP);
		ok = !badblocks_set(bb, s, step, acknowledged);
	}
	return ok;
}

static inline bool compat_badblocks_clear(struct badblocks *bb, sector_t s,
					  sector_t sectors)
{
	sector_t end = s + sectors;
	bool ok = true;
	int step;

	for (; s < end && ok; s += step) {
		step = min_t(sector_t, end - s, COMPAT_BADBLOCKS_STEP);
		ok = !badblocks_clear(bb, s, step);
	}
	return ok;
}

#define badblocks_check(bb, s, n, first, num)	\
	compat_badblocks_check(bb, s, n, first, num)
#define badblocks_set(bb, s, n, ack)	compat_badblocks_set(bb, s, n, ack)
#define badblocks_clear(bb, s, n)	compat_badblocks_clear(bb, s, n)
#endif /* !HAVE_BADBLOCKS_SECTOR_T */

#ifndef HAVE_DAX_MEM2BLK_ERR
#include <linux/errno.h>

static inline int dax_mem2blk_err(int err)
{
	return err == -EHWPOISON ? -EIO : err;
}
#endif /* !HAVE_DAX_MEM2BLK_ERR */

#ifndef HAVE_DAX_PLAIN_PFN
#include <linux/dax.h>
#include <linux/mmzone.h>
#include <linux/pfn_t.h>

struct compat_dax_operations {
	long (*direct_access)(struct dax_device *dax_dev, pgoff_t pgoff,
			      long nr_pages, enum dax_access_mode mode,
			      void **kaddr, unsigned long *pfn);
	int (*zero_page_range)(struct dax_device *dax_dev, pgoff_t pgoff,
			       size_t nr_pages);
	size_t (*recovery_write)(struct dax_device *dax_dev, pgoff_t pgoff,
				 void *addr, size_t bytes,
				 struct iov_iter *iter);
};

/* One set for each object file: the operations know no driver data. */
static const struct compat_dax_operations *compat_dax_ops;

static inline long
compat_dax_direct_access(struct dax_device *dax_dev, pgoff_t pgoff,
			 long nr_pages, enum dax_access_mode mode,
			 void **kaddr, pfn_t *pfn)
{
	unsigned long plain = 0;
	long rc;

	rc = compat_dax_ops->direct_access(dax_dev, pgoff, nr_pages, mode,
					   kaddr, pfn ? &plain : NULL);
	/* PFN_MAP: there is a struct page. Without it no file system comes. */
	if (rc > 0 && pfn)
		*pfn = __pfn_to_pfn_t(plain, pfn_valid(plain) ?
				      PFN_DEV | PFN_MAP : PFN_DEV);
#ifndef HAVE_DAX_MEM2BLK_ERR
	/* These callers know poison as -EIO only. */
	rc = dax_mem2blk_err(rc);
#endif
	return rc;
}

static inline struct dax_device *
compat_alloc_dax(void *private, const struct compat_dax_operations *ops)
{
	static struct dax_operations old_ops;

	compat_dax_ops = ops;
	old_ops.direct_access = compat_dax_direct_access;
	old_ops.zero_page_range = ops->zero_page_range;
	old_ops.recovery_write = ops->recovery_write;
	return alloc_dax(private, &old_ops);
}

#define alloc_dax(private, ops)		compat_alloc_dax(private, ops)
#define dax_operations			compat_dax_operations
#endif /* !HAVE_DAX_PLAIN_PFN */

#ifndef HAVE_DMA_MAP_PHYS
#include <linux/dma-mapping.h>

static inline dma_addr_t dma_map_phys(struct device *dev, phys_addr_t phys,
				      size_t size, enum dma_data_direction dir,
				      unsigned long attrs)
{
	return dma_map_resource(dev, phys, size, dir, attrs);
}

static inline void dma_unmap_phys(struct device *dev, dma_addr_t addr,
				  size_t size, enum dma_data_direction dir,
				  unsigned long attrs)
{
	dma_unmap_resource(dev, addr, size, dir, attrs);
}
#endif /* !HAVE_DMA_MAP_PHYS */

#endif /* _PMEM_COMPAT_H */
