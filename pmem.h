/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the persistent memory core offers to its block front ends
 *
 * The core binds a namespace, maps it, keeps its badblocks, its DAX device and
 * its notifications, and knows how the CPU copies to and from the media.  A
 * front end makes the disk and decides how requests move their bytes.  The core
 * knows nothing of DMA, a front end knows nothing of libnvdimm.
 */
#ifndef _PMEM_H
#define _PMEM_H

#include <linux/badblocks.h>
#include <linux/blkdev.h>
#include <linux/memremap.h>
#include <linux/types.h>

struct dax_device;
struct kernfs_node;
struct nd_namespace_common;
struct nd_region;
struct pmem_device;

/**
 * struct pmem_frontend - a block driver on top of the core
 * @name: driver name on the nd bus, unique among loaded drivers
 * @alloc_disk: make the disk with the given limits, which the front end may
 *	tighten first; set fops and private_data, leave name, capacity and
 *	badblocks to the core.  May sleep.  Returns ERR_PTR() after undoing
 *	everything, in which case @free is not called.
 * @free: release what @alloc_disk made, the disk included.  Called once, after
 *	del_gendisk() if the disk was added.  May sleep.
 * @groups: NULL-terminated sysfs groups of the disk, or NULL
 */
struct pmem_frontend {
	const char *name;
	struct gendisk *(*alloc_disk)(struct pmem_device *pmem,
				      struct queue_limits *lim);
	void (*free)(struct pmem_device *pmem);
	const struct attribute_group **groups;
};

/**
 * struct pmem_device - one bound namespace
 * @dev: nd device that is bound (namespaceX.Y, pfnX.Y or bttX.Y)
 * @ndns: namespace behind @dev
 * @region: region of the namespace
 * @fe: front end that owns the disk
 * @fe_data: for the front end
 * @disk: the disk; NULL for a BTT, whose disk belongs to nd_btt
 * @phys_addr: physical address of the mapped range
 * @virt_addr: kernel address of the mapped range
 * @size: length of the mapped range, in bytes
 * @data_offset: where sector 0 lies in the mapped range, in bytes
 * @needs_wb: a write that went through the CPU cache is not durable before it
 *	is written back (persistence domain is the memory controller or unknown)
 * @bb: known bad sectors, relative to sector 0
 * @bb_state: sysfs node of the badblocks attribute, for pollers
 * @bb_range: physical range that @bb describes
 * @dax_dev: DAX device, or NULL
 * @pgmap: page map of a namespace with struct pages
 *
 * Everything up to @needs_wb is constant from alloc_disk() until free().
 */
struct pmem_device {
	struct device *dev;
	struct nd_namespace_common *ndns;
	struct nd_region *region;
	const struct pmem_frontend *fe;
	void *fe_data;
	struct gendisk *disk;
	phys_addr_t phys_addr;
	void *virt_addr;
	u64 size;
	u64 data_offset;
	bool needs_wb;
	struct badblocks bb;
	struct kernfs_node *bb_state;
	struct range bb_range;
	struct dax_device *dax_dev;
	struct dev_pagemap pgmap;
};

/**
 * pmem_core_offset() - where a sector lies in the mapped range
 * @pmem: the device
 * @sector: sector of the disk, in 512-byte units
 *
 * Context: Any.
 * Return: Offset into the mapped range, in bytes.
 */
static inline u64 pmem_core_offset(const struct pmem_device *pmem,
				   sector_t sector)
{
	return pmem->data_offset + ((u64)sector << SECTOR_SHIFT);
}

int pmem_core_register(const struct pmem_frontend *fe, struct module *owner,
		       const char *mod_name);
void pmem_core_unregister(const struct pmem_frontend *fe);

bool pmem_core_is_bad(struct pmem_device *pmem, sector_t sector, u64 bytes);
blk_status_t pmem_core_copy_bio(struct pmem_device *pmem, struct bio *bio);
blk_status_t pmem_core_copy(struct pmem_device *pmem, bool write,
			    phys_addr_t mem, u64 offset, size_t len);
void pmem_core_writeback(struct pmem_device *pmem, u64 offset, size_t len);
blk_status_t pmem_core_flush(struct pmem_device *pmem);

#endif /* _PMEM_H */
