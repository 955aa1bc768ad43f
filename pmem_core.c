// SPDX-License-Identifier: GPL-2.0
/*
 * pmem_core - namespaces, badblocks, DAX and CPU copies for pmem block drivers
 *
 * A front end registers with pmem_core_register() and from then on competes for
 * namespaces as any nd driver does.  For each namespace the core goes through
 *
 *	enable -> info block -> request region -> map -> badblocks
 *	-> front end's disk -> DAX device -> add disk
 *
 * and back in the opposite order.  BTT namespaces get their disk from nd_btt,
 * devdax ones are left to dax_pmem.
 *
 * Locking: probe, remove and notify run under the device lock of the nd device.
 * The badblocks list has a lock of its own; everything else in struct
 * pmem_device is constant while the disk exists.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/bio.h>
#include <linux/dax.h>
#include <linux/device.h>
#include <linux/highmem.h>
#include <linux/io.h>
#include <linux/kstrtox.h>
#include <linux/libnvdimm.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/nd.h>
#include <linux/set_memory.h>
#include <linux/slab.h>
#include <linux/sysfs.h>
#include <linux/uio.h>
#include <asm/cacheflush.h>

#include "pmem.h"
#include "pmem_nvdimm.h"

/* Two groups of the core's own choosing, the rest for the front end. */
#define PMEM_MAX_GROUPS	4

/* What the nd bus sees of a front end. */
struct pmem_nd_driver {
	struct nd_device_driver nd;
	const struct pmem_frontend *fe;
	const struct attribute_group *groups[PMEM_MAX_GROUPS + 1];
	struct list_head node;
};

static LIST_HEAD(pmem_drivers);
static DEFINE_MUTEX(pmem_drivers_lock);	/* pmem_drivers; (un)register sleeps */

/* ------------------------------------------------------------------ poison */

/**
 * pmem_core_is_bad() - does a range touch a known bad sector?
 * @pmem: the device
 * @sector: first sector
 * @bytes: length in bytes, rounded up to whole sectors
 *
 * Context: Any.  Takes no lock but the seqlock of the list.
 * Return: true if at least one sector of the range is in the badblocks list.
 */
bool pmem_core_is_bad(struct pmem_device *pmem, sector_t sector, u64 bytes)
{
	sector_t first, num;

	if (likely(!pmem->bb.count))
		return false;
	return badblocks_check(&pmem->bb, sector,
			       DIV_ROUND_UP_ULL(bytes, SECTOR_SIZE),
			       &first, &num);
}
EXPORT_SYMBOL_GPL(pmem_core_is_bad);

/*
 * The media is good again: pages that memory_failure() took away may be used
 * and the linear map may speculate into them.  Memory mapped by vmalloc has no
 * such pages.
 */
static void pmem_unpoison_pages(struct pmem_device *pmem, u64 offset, u64 len)
{
#ifdef CONFIG_MEMORY_FAILURE
	unsigned long pfn = PHYS_PFN(pmem->phys_addr + offset);
	unsigned long end = pfn + PHYS_PFN(len);

	if (is_vmalloc_addr(pmem->virt_addr))
		return;
	for (; pfn < end; pfn++)
		if (TestClearPageHWPoison(pfn_to_page(pfn)))
			clear_mce_nospec(pfn);
#endif
}

/* Returns the number of bytes cleared, which may be short, or an errno. */
static long pmem_clear_media(struct pmem_device *pmem, u64 offset,
			     unsigned int len)
{
	long cleared = nvdimm_clear_poison(pmem->dev, pmem->phys_addr + offset,
					   len);

	if (cleared > 0) {
		pmem_unpoison_pages(pmem, offset, cleared);
		arch_invalidate_pmem(pmem->virt_addr + offset, len);
	}
	return cleared;
}

static void pmem_forget_bad(struct pmem_device *pmem, sector_t sector,
			    u64 bytes)
{
	sector_t nr = bytes >> SECTOR_SHIFT;

	if (!nr)
		return;
	badblocks_clear(&pmem->bb, sector, nr);
	if (pmem->bb_state)
		sysfs_notify_dirent(pmem->bb_state);
}

/* ------------------------------------------------------------- CPU copying */

/*
 * Pages that follow each other in a bio are copied at once, where the kernel maps
 * all memory and caches need no care page by page.
 */
#if defined(CONFIG_HIGHMEM) || ARCH_IMPLEMENTS_FLUSH_DCACHE_PAGE
#define pmem_for_each_piece bio_for_each_segment
#else
#define pmem_for_each_piece bio_for_each_bvec
#endif

static blk_status_t pmem_read(struct pmem_device *pmem, struct page *page,
			      unsigned int page_off, u64 offset,
			      unsigned int len)
{
	void *mem = kmap_local_page(page);
	unsigned long left;

	/* Poison that nobody knew of shows up as bytes left over. */
	left = copy_mc_to_kernel(mem + page_off, pmem->virt_addr + offset, len);
	kunmap_local(mem);
	flush_dcache_page(page);
	return left ? BLK_STS_IOERR : BLK_STS_OK;
}

static void pmem_write(struct pmem_device *pmem, struct page *page,
		       unsigned int page_off, u64 offset, unsigned int len)
{
	void *mem = kmap_local_page(page);

	flush_dcache_page(page);
	memcpy_flushcache(pmem->virt_addr + offset, mem + page_off, len);
	kunmap_local(mem);
}

/*
 * A write makes bad sectors good if the bus clears them, all or the first few.
 * They leave the list only after the new bytes are there, so that no reader gets
 * the bytes which the clearing left behind.
 */
static blk_status_t pmem_write_bad(struct pmem_device *pmem, struct page *page,
				   unsigned int page_off, sector_t sector,
				   unsigned int len)
{
	u64 offset = pmem_core_offset(pmem, sector);
	long cleared = pmem_clear_media(pmem, offset, len);

	if (cleared <= 0)
		return BLK_STS_IOERR;
	cleared = round_down(cleared, SECTOR_SIZE);
	pmem_write(pmem, page, page_off, offset, cleared);
	pmem_forget_bad(pmem, sector, cleared);
	return cleared == len ? BLK_STS_OK : BLK_STS_IOERR;
}

/* Page by page: one that stays bad does not keep the others from being written. */
static blk_status_t pmem_write_bad_bio(struct pmem_device *pmem, struct bio *bio)
{
	struct bvec_iter iter;
	struct bio_vec bv;
	blk_status_t sts;

	bio_for_each_segment(bv, bio, iter) {
		if (pmem_core_is_bad(pmem, iter.bi_sector, bv.bv_len)) {
			sts = pmem_write_bad(pmem, bv.bv_page, bv.bv_offset,
					     iter.bi_sector, bv.bv_len);
			if (sts)
				return sts;
			continue;
		}
		pmem_write(pmem, bv.bv_page, bv.bv_offset,
			   pmem_core_offset(pmem, iter.bi_sector), bv.bv_len);
	}
	return BLK_STS_OK;
}

/**
 * pmem_core_copy_bio() - read or write the bytes of a bio with the CPU
 * @pmem: the device
 * @bio: a read or a write, not yet advanced beyond what is still to be copied
 *
 * Reads survive machine checks and refuse known bad sectors.  Writes bypass the
 * CPU cache, so that pmem_core_flush() is all they need to be durable, and
 * clear the poison of the sectors they overwrite; where that fails they fail
 * and the sectors stay bad.  The bio is neither advanced nor ended.
 *
 * Context: Process context.  May sleep (clearing poison asks firmware).
 * Return: BLK_STS_OK or BLK_STS_IOERR.
 */
blk_status_t pmem_core_copy_bio(struct pmem_device *pmem, struct bio *bio)
{
	bool bad = pmem_core_is_bad(pmem, bio->bi_iter.bi_sector,
				    bio->bi_iter.bi_size);
	struct bvec_iter iter;
	struct bio_vec bv;
	blk_status_t sts;

	if (!op_is_write(bio_op(bio))) {
		if (unlikely(bad))
			return BLK_STS_IOERR;
		pmem_for_each_piece(bv, bio, iter) {
			sts = pmem_read(pmem, bv.bv_page, bv.bv_offset,
					pmem_core_offset(pmem, iter.bi_sector),
					bv.bv_len);
			if (unlikely(sts))
				return sts;
		}
		return BLK_STS_OK;
	}

	if (unlikely(bad))
		return pmem_write_bad_bio(pmem, bio);
	pmem_for_each_piece(bv, bio, iter)
		pmem_write(pmem, bv.bv_page, bv.bv_offset,
			   pmem_core_offset(pmem, iter.bi_sector), bv.bv_len);
	return BLK_STS_OK;
}
EXPORT_SYMBOL_GPL(pmem_core_copy_bio);

/**
 * pmem_core_copy() - copy between memory and media with the CPU
 * @pmem: the device
 * @write: to the media (true) or from it
 * @mem: physical address of the memory, which has struct pages
 * @offset: place in the mapped range, in bytes
 * @len: length in bytes
 *
 * For parts of a request that touch no known bad sector; the same care as in
 * pmem_core_copy_bio() otherwise.
 *
 * Context: Any.
 * Return: BLK_STS_OK, or BLK_STS_IOERR if reading met unknown poison.
 */
blk_status_t pmem_core_copy(struct pmem_device *pmem, bool write,
			    phys_addr_t mem, u64 offset, size_t len)
{
	while (len) {
		struct page *page = pfn_to_page(PHYS_PFN(mem));
		unsigned int in_page = offset_in_page(mem);
		size_t chunk = min_t(size_t, len, PAGE_SIZE - in_page);

		if (write)
			pmem_write(pmem, page, in_page, offset, chunk);
		else if (pmem_read(pmem, page, in_page, offset, chunk))
			return BLK_STS_IOERR;
		mem += chunk;
		offset += chunk;
		len -= chunk;
	}
	return BLK_STS_OK;
}
EXPORT_SYMBOL_GPL(pmem_core_copy);

/**
 * pmem_core_writeback() - push written bytes out of the CPU cache
 * @pmem: the device
 * @offset: start in the mapped range, in bytes
 * @len: length in bytes
 *
 * The flush of libnvdimm drains write buffers and counts on writes that did not
 * stay in the cache.  A device's write may stay there (DDIO), so whoever did
 * not use pmem_core_copy_bio() calls this before the write is reported done.
 * Does nothing where the cache belongs to the persistence domain.
 *
 * Context: Any; takes time in proportion to @len.
 */
void pmem_core_writeback(struct pmem_device *pmem, u64 offset, size_t len)
{
	if (pmem->needs_wb)
		arch_wb_cache_pmem(pmem->virt_addr + offset, len);
}
EXPORT_SYMBOL_GPL(pmem_core_writeback);

/**
 * pmem_core_flush() - make every write completed so far durable
 * @pmem: the device
 *
 * Never hands a bio down: some providers would complete it on their own later,
 * which a request driver cannot use.
 *
 * Context: Process context.  May sleep.
 * Return: BLK_STS_OK, or the status that stands for the errno of the flush
 *	(lack of memory stays BLK_STS_RESOURCE, it is no I/O error).
 */
blk_status_t pmem_core_flush(struct pmem_device *pmem)
{
	return errno_to_blk_status(nvdimm_flush(pmem->region, NULL));
}
EXPORT_SYMBOL_GPL(pmem_core_flush);

/* --------------------------------------------------------------------- DAX */

static long pmem_dax_direct_access(struct dax_device *dax_dev, pgoff_t pgoff,
				   long nr_pages, enum dax_access_mode mode,
				   void **kaddr, unsigned long *pfn)
{
	struct pmem_device *pmem = dax_get_private(dax_dev);
	sector_t sector = (sector_t)pgoff << (PAGE_SHIFT - SECTOR_SHIFT);
	sector_t nr_sectors = (sector_t)nr_pages << (PAGE_SHIFT - SECTOR_SHIFT);
	u64 offset = pmem_core_offset(pmem, sector);
	sector_t first, num;
	long good;

	if (kaddr)
		*kaddr = pmem->virt_addr + offset;
	if (pfn)
		*pfn = PHYS_PFN(pmem->phys_addr + offset);

	if (likely(!pmem->bb.count))
		return PHYS_PFN(pmem->size - offset);
	if (!badblocks_check(&pmem->bb, sector, nr_sectors, &first, &num))
		return nr_pages;	/* beyond them nothing was checked */
	if (mode != DAX_RECOVERY_WRITE)
		return -EHWPOISON;

	/*
	 * Recovery goes page by page, since firmware clears large ranges
	 * unreliably: hand out what lies before the bad page, or that page.
	 */
	good = first > sector ? PHYS_PFN((first - sector) << SECTOR_SHIFT) : 0;
	return good ? good : 1;
}

static int pmem_dax_zero_page_range(struct dax_device *dax_dev, pgoff_t pgoff,
				    size_t nr_pages)
{
	struct pmem_device *pmem = dax_get_private(dax_dev);
	sector_t sector = (sector_t)pgoff << (PAGE_SHIFT - SECTOR_SHIFT);

	for (; nr_pages; nr_pages--, sector += PAGE_SECTORS) {
		struct page *zero = ZERO_PAGE(0);

		if (!pmem_core_is_bad(pmem, sector, PAGE_SIZE))
			pmem_write(pmem, zero, 0,
				   pmem_core_offset(pmem, sector), PAGE_SIZE);
		else if (pmem_write_bad(pmem, zero, 0, sector, PAGE_SIZE))
			return -EIO;
	}
	return 0;
}

/* Called for a write() to a DAX file whose range direct_access refused. */
static size_t pmem_dax_recovery_write(struct dax_device *dax_dev, pgoff_t pgoff,
				      void *addr, size_t bytes,
				      struct iov_iter *iter)
{
	struct pmem_device *pmem = dax_get_private(dax_dev);
	sector_t sector = (sector_t)pgoff << (PAGE_SHIFT - SECTOR_SHIFT);
	size_t in_page = offset_in_page(addr), len, done;
	long cleared;

	len = PFN_PHYS(PFN_UP(in_page + bytes));
	if (!pmem_core_is_bad(pmem, sector, len))
		return _copy_from_iter_flushcache(addr, bytes, iter);

	/* Clearing part of a page would lose the rest of it. */
	if (in_page || !PAGE_ALIGNED(bytes))
		return 0;

	cleared = pmem_clear_media(pmem, pmem_core_offset(pmem, sector), len);
	if (cleared < 0 || (size_t)cleared < len)
		return 0;

	done = _copy_from_iter_flushcache(addr, bytes, iter);
	/* As in pmem_write_bad(): good only after the bytes are there. */
	pmem_forget_bad(pmem, sector, cleared);
	return done;
}

static const struct dax_operations pmem_dax_ops = {
	.direct_access = pmem_dax_direct_access,
	.zero_page_range = pmem_dax_zero_page_range,
	.recovery_write = pmem_dax_recovery_write,
};

static int pmem_memory_failure(struct dev_pagemap *pgmap, unsigned long pfn,
			       unsigned long nr_pages, int mf_flags)
{
	struct pmem_device *pmem = container_of(pgmap, struct pmem_device,
						pgmap);
	u64 offset = PFN_PHYS(pfn) - pmem->phys_addr - pmem->data_offset;

	return dax_holder_notify_failure(pmem->dax_dev, offset,
					 (u64)nr_pages << PAGE_SHIFT, mf_flags);
}

static const struct dev_pagemap_ops pmem_pagemap_ops = {
	.memory_failure = pmem_memory_failure,
};

static struct pmem_device *dev_to_pmem(struct device *dev)
{
	/* The disk's parent is the nd device; private_data is the front end's. */
	return dev_get_drvdata(dev->parent);
}

static ssize_t write_cache_show(struct device *dev,
				struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%d\n",
			  dax_write_cache_enabled(dev_to_pmem(dev)->dax_dev));
}

static ssize_t write_cache_store(struct device *dev,
				 struct device_attribute *attr,
				 const char *buf, size_t len)
{
	bool on;
	int rc = kstrtobool(buf, &on);

	if (rc)
		return rc;
	dax_write_cache(dev_to_pmem(dev)->dax_dev, on);
	return len;
}
static DEVICE_ATTR_RW(write_cache);

static umode_t pmem_dax_attr_visible(struct kobject *kobj,
				     struct attribute *attr, int n)
{
	struct pmem_device *pmem = dev_to_pmem(kobj_to_dev(kobj));

	if (!IS_ENABLED(CONFIG_ARCH_HAS_PMEM_API) || !pmem->dax_dev)
		return 0;
	return attr->mode;
}

static struct attribute *pmem_dax_attrs[] = {
	&dev_attr_write_cache.attr,
	NULL,
};

static const struct attribute_group pmem_dax_group = {
	.name = "dax",
	.attrs = pmem_dax_attrs,
	.is_visible = pmem_dax_attr_visible,
};

static void pmem_remove_dax(struct pmem_device *pmem)
{
	if (!pmem->dax_dev)
		return;
	dax_remove_host(pmem->disk);
	kill_dax(pmem->dax_dev);
	put_dax(pmem->dax_dev);
}

static int pmem_add_dax(struct pmem_device *pmem)
{
	struct dax_device *dax_dev = alloc_dax(pmem, &pmem_dax_ops);
	int rc;

	/* A machine whose caches alias has no DAX; the disk works all the same. */
	if (IS_ERR(dax_dev))
		return PTR_ERR(dax_dev) == -EOPNOTSUPP ? 0 : PTR_ERR(dax_dev);

	set_dax_nocache(dax_dev);
	set_dax_nomc(dax_dev);
	if (is_nvdimm_sync(pmem->region))
		set_dax_synchronous(dax_dev);
	rc = dax_add_host(dax_dev, pmem->disk);
	if (rc) {
		kill_dax(dax_dev);
		put_dax(dax_dev);
		return rc;
	}
	dax_write_cache(dax_dev, pmem->needs_wb);
	pmem->dax_dev = dax_dev;
	return 0;
}

/* --------------------------------------------------------- attach a device */

/*
 * Only while raw access to the namespace is enabled: make or check the pfn info
 * block, and learn from it where the data begins.
 */
static int pmem_read_info_block(struct pmem_device *pmem)
{
	__le64 dataoff;
	int rc;

	rc = nvdimm_setup_pfn(to_nd_pfn(pmem->dev), &pmem->pgmap);
	if (rc)
		return rc;
	rc = nvdimm_read_bytes(pmem->ndns, SZ_4K + PMEM_PFN_SB_DATAOFF,
			       &dataoff, sizeof(dataoff), 0);
	if (rc)
		return rc;
	pmem->data_offset = le64_to_cpu(dataoff);
	pmem->phys_addr = pmem->pgmap.range.start;
	pmem->size = range_len(&pmem->pgmap.range);
	if (pmem->data_offset >= pmem->size) {
		dev_err(pmem->dev, "data offset %#llx beyond the namespace\n",
			pmem->data_offset);
		return -ENXIO;
	}
	return 0;
}

/* Everything that needs the namespace enabled for raw access. */
static int pmem_identify(struct pmem_device *pmem)
{
	struct nd_namespace_io *nsio = to_nd_namespace_io(&pmem->ndns->dev);
	int rc;

	pmem->phys_addr = nsio->res.start;
	pmem->size = resource_size(&nsio->res);

	rc = devm_namespace_enable(pmem->dev, pmem->ndns,
				   nd_info_block_reserve());
	if (rc)
		return rc;
	/*
	 * An error may have left access disabled.  What is enabled is undone
	 * with the failed probe.
	 */
	if (is_nd_pfn(pmem->dev)) {
		rc = pmem_read_info_block(pmem);
		if (rc)
			return rc;
	}
	devm_namespace_disable(pmem->dev, pmem->ndns);
	return 0;
}

static int pmem_map(struct pmem_device *pmem)
{
	struct nd_namespace_io *nsio = to_nd_namespace_io(&pmem->ndns->dev);
	struct device *dev = pmem->dev;
	void *addr;

	if (!devm_request_mem_region(dev, nsio->res.start,
				     resource_size(&nsio->res),
				     dev_name(&pmem->ndns->dev)))
		return -EBUSY;

	if (is_nd_pfn(dev) || pmem_should_map_pages(dev)) {
		if (!is_nd_pfn(dev)) {
			pmem->pgmap.range.start = nsio->res.start;
			pmem->pgmap.range.end = nsio->res.end;
			pmem->pgmap.nr_range = 1;
		}
		pmem->pgmap.owner = pmem;
		pmem->pgmap.type = MEMORY_DEVICE_FS_DAX;
		pmem->pgmap.ops = &pmem_pagemap_ops;
		addr = devm_memremap_pages(dev, &pmem->pgmap);
	} else {
		addr = devm_memremap(dev, pmem->phys_addr, pmem->size,
				     ARCH_MEMREMAP_PMEM);
	}
	if (IS_ERR(addr))
		return PTR_ERR(addr);
	pmem->virt_addr = addr;
	return 0;
}

static int pmem_init_badblocks(struct pmem_device *pmem)
{
	int rc = devm_init_badblocks(pmem->dev, &pmem->bb);

	if (rc)
		return rc;
	pmem->bb_range.start = pmem->phys_addr + pmem->data_offset;
	pmem->bb_range.end = pmem->phys_addr + pmem->size - 1;
	nvdimm_badblocks_populate(pmem->region, &pmem->bb, &pmem->bb_range);
	return 0;
}

static void pmem_init_limits(struct pmem_device *pmem, struct queue_limits *lim)
{
	int flush = nvdimm_has_flush(pmem->region);

	lim->logical_block_size = pmem_sector_size(pmem->ndns);
	lim->physical_block_size = PAGE_SIZE;
	lim->max_hw_sectors = UINT_MAX;
	lim->features = BLK_FEAT_WRITE_CACHE;

	if (!IS_ENABLED(CONFIG_ARCH_HAS_UACCESS_FLUSHCACHE) || flush < 0)
		dev_warn(pmem->dev, "unable to guarantee persistence of writes\n");
	else if (flush)
		lim->features |= BLK_FEAT_FUA;
	if (is_nd_pfn(pmem->dev) || pmem_should_map_pages(pmem->dev))
		lim->features |= BLK_FEAT_DAX;
}

/*
 * Order of the end: no new DAX mappings, no new requests and none in flight
 * (del_gendisk), then the disk and the front end's queues and channels.
 */
static void pmem_release_disk(void *data)
{
	struct pmem_device *pmem = data;

	pmem_remove_dax(pmem);
	del_gendisk(pmem->disk);
	pmem->fe->free(pmem);
}

static int pmem_attach_disk(struct pmem_device *pmem,
			    const struct attribute_group **groups)
{
	struct queue_limits lim = { };
	struct gendisk *disk;
	int rc;

	rc = pmem_identify(pmem);
	if (rc)
		return rc;
	rc = pmem_map(pmem);
	if (rc)
		return rc;
	rc = pmem_init_badblocks(pmem);
	if (rc)
		return rc;

	pmem->needs_wb = nvdimm_has_cache(pmem->region);
	pmem_init_limits(pmem, &lim);
	disk = pmem->fe->alloc_disk(pmem, &lim);
	if (IS_ERR(disk))
		return PTR_ERR(disk);

	pmem->disk = disk;
	disk->bb = &pmem->bb;
	nvdimm_namespace_disk_name(pmem->ndns, disk->disk_name);
	set_capacity(disk, (pmem->size - pmem->data_offset) >> SECTOR_SHIFT);

	rc = pmem_add_dax(pmem);
	if (rc)
		goto out_free;
	rc = device_add_disk(pmem->dev, disk, groups);
	if (rc)
		goto out_remove_dax;
	rc = devm_add_action_or_reset(pmem->dev, pmem_release_disk, pmem);
	if (rc)
		return rc;

	nvdimm_check_and_set_ro(disk);
	pmem->bb_state = sysfs_get_dirent(disk_to_dev(disk)->kobj.sd,
					  "badblocks");
	if (!pmem->bb_state)
		dev_warn(pmem->dev, "'badblocks' notification disabled\n");
	return 0;

out_remove_dax:
	pmem_remove_dax(pmem);
out_free:
	pmem->fe->free(pmem);
	return rc;
}

/*
 * Is the raw namespace the base of a btt, pfn or dax device?  Then that device
 * was registered by the question, and takes the namespace with it.
 */
static int pmem_probe_claims(struct device *dev,
			     struct nd_namespace_common *ndns)
{
	int rc;

	rc = devm_namespace_enable(dev, ndns, nd_info_block_reserve());
	if (rc)
		return rc;
	if (!nd_btt_probe(dev, ndns))
		return -ENXIO;

	/* -EOPNOTSUPP: there is an info block, but this kernel can't use it. */
	rc = nd_pfn_probe(dev, ndns);
	if (!rc || rc == -EOPNOTSUPP)
		return rc ? rc : -ENXIO;
	rc = nd_dax_probe(dev, ndns);
	if (!rc || rc == -EOPNOTSUPP)
		return rc ? rc : -ENXIO;

	devm_namespace_disable(dev, ndns);
	return 0;
}

static int pmem_probe(struct device *dev)
{
	struct pmem_nd_driver *drv =
		container_of(to_nd_device_driver(dev->driver),
			     struct pmem_nd_driver, nd);
	struct nd_namespace_common *ndns = nvdimm_namespace_common_probe(dev);
	struct pmem_device *pmem;
	int rc;

	if (IS_ERR(ndns))
		return PTR_ERR(ndns);

	pmem = devm_kzalloc(dev, sizeof(*pmem), GFP_KERNEL);
	if (!pmem)
		return -ENOMEM;
	pmem->dev = dev;
	pmem->ndns = ndns;
	pmem->region = to_nd_region(dev->parent);
	pmem->fe = drv->fe;
	dev_set_drvdata(dev, pmem);

	if (is_nd_btt(dev))
		return nvdimm_namespace_attach_btt(ndns);

	if (!is_nd_pfn(dev)) {
		rc = pmem_probe_claims(dev, ndns);
		if (rc)
			return rc;
	}
	rc = pmem_attach_disk(pmem, drv->groups);
	if (rc)
		dev_err(dev, "no disk: %pe\n", ERR_PTR(rc));
	return rc;
}

static void pmem_remove(struct device *dev)
{
	struct pmem_device *pmem = dev_get_drvdata(dev);

	if (is_nd_btt(dev)) {
		nvdimm_namespace_detach_btt(to_nd_btt(dev));
	} else {
		/* The device lock keeps pmem_notify() away. */
		sysfs_put(pmem->bb_state);
		pmem->bb_state = NULL;
	}
	nvdimm_flush(pmem->region, NULL);
}

static void pmem_shutdown(struct device *dev)
{
	nvdimm_flush(to_nd_region(dev->parent), NULL);
}

/* ---------------------------------------------------------- notifications */

static void pmem_revalidate_poison(struct pmem_device *pmem)
{
	if (is_nd_btt(pmem->dev)) {
		struct nd_namespace_io *nsio =
			to_nd_namespace_io(&pmem->ndns->dev);
		struct range range = {
			.start = nsio->res.start,
			.end = nsio->res.end,
		};

		nvdimm_badblocks_populate(pmem->region, &nsio->bb, &range);
		return;
	}
	nvdimm_badblocks_populate(pmem->region, &pmem->bb, &pmem->bb_range);
	if (pmem->bb_state)
		sysfs_notify_dirent(pmem->bb_state);
}

/* The disk of a BTT is made by nd_btt; it is the one disk below its device. */
static int pmem_set_ro_if_disk(struct device *child, void *unused)
{
	if (child->type && !strcmp(child->type->name, "disk"))
		nvdimm_check_and_set_ro(dev_to_disk(child));
	return 0;
}

static void pmem_revalidate_region(struct pmem_device *pmem)
{
	if (is_nd_btt(pmem->dev))
		device_for_each_child(pmem->dev, NULL, pmem_set_ro_if_disk);
	else
		nvdimm_check_and_set_ro(pmem->disk);
}

static void pmem_notify(struct device *dev, enum nvdimm_event event)
{
	struct pmem_device *pmem = dev_get_drvdata(dev);

	switch (event) {
	case NVDIMM_REVALIDATE_POISON:
		pmem_revalidate_poison(pmem);
		break;
	case NVDIMM_REVALIDATE_REGION:
		pmem_revalidate_region(pmem);
		break;
	default:
		dev_dbg(dev, "event %d is not for a pmem device\n", event);
		break;
	}
}

/* ------------------------------------------------------------ registration */

static int pmem_collect_groups(struct pmem_nd_driver *drv)
{
	const struct attribute_group **group = drv->fe->groups;
	int n = 0;

	drv->groups[n++] = &pmem_dax_group;
	for (; group && *group; group++) {
		if (n == PMEM_MAX_GROUPS)
			return -E2BIG;
		drv->groups[n++] = *group;
	}
	return 0;
}

/**
 * pmem_core_register() - let a front end bind namespaces
 * @fe: the front end; stays valid until pmem_core_unregister()
 * @owner: THIS_MODULE
 * @mod_name: KBUILD_MODNAME
 *
 * Every namespace that has no driver is probed at once.
 *
 * Context: Process context.  May sleep.
 * Return: 0 or a negative errno.
 */
int pmem_core_register(const struct pmem_frontend *fe, struct module *owner,
		       const char *mod_name)
{
	struct pmem_nd_driver *drv = kzalloc(sizeof(*drv), GFP_KERNEL);
	int rc;

	if (!drv)
		return -ENOMEM;
	drv->fe = fe;
	rc = pmem_collect_groups(drv);
	if (rc)
		goto out_free;
	drv->nd.drv.name = fe->name;
	drv->nd.type = ND_DRIVER_NAMESPACE_IO | ND_DRIVER_NAMESPACE_PMEM;
	drv->nd.probe = pmem_probe;
	drv->nd.remove = pmem_remove;
	drv->nd.shutdown = pmem_shutdown;
	drv->nd.notify = pmem_notify;

	rc = __nd_driver_register(&drv->nd, owner, mod_name);
	if (rc)
		goto out_free;
	mutex_lock(&pmem_drivers_lock);
	list_add(&drv->node, &pmem_drivers);
	mutex_unlock(&pmem_drivers_lock);
	return 0;

out_free:
	kfree(drv);
	return rc;
}
EXPORT_SYMBOL_GPL(pmem_core_register);

/**
 * pmem_core_unregister() - give back every namespace of a front end
 * @fe: what was registered
 *
 * Context: Process context.  Sleeps until all I/O to its disks has ended.
 */
void pmem_core_unregister(const struct pmem_frontend *fe)
{
	struct pmem_nd_driver *drv, *next;

	mutex_lock(&pmem_drivers_lock);
	list_for_each_entry_safe(drv, next, &pmem_drivers, node) {
		if (drv->fe != fe)
			continue;
		list_del(&drv->node);
		nd_driver_unregister(&drv->nd);
		kfree(drv);
	}
	mutex_unlock(&pmem_drivers_lock);
}
EXPORT_SYMBOL_GPL(pmem_core_unregister);

MODULE_DESCRIPTION("Persistent memory core: namespaces, badblocks, DAX, CPU copy");
MODULE_LICENSE("GPL");
