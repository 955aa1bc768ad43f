/* SPDX-License-Identifier: GPL-2.0 */
/*
 * nvdimm.h - what libnvdimm exports without a public header
 *
 * Header packages of distributions leave drivers/nvdimm/ out. The functions are
 * exported all the same, and these prototypes are those of every supported
 * kernel. The structs stay opaque, so that no private layout is relied on.
 *
 * Nothing checks a prototype against the kernel at build or load time (symbol
 * versions cover the exporter only): compare them with the kernel's nd.h before
 * a new kernel is called supported.
 */
#ifndef _PMEM_COMPAT_NVDIMM_H
#define _PMEM_COMPAT_NVDIMM_H

#include <linux/align.h>
#include <linux/sizes.h>
#include <linux/types.h>
#include <linux/uuid.h>
#include <asm/page.h>

struct badblocks;
struct dev_pagemap;
struct device;
struct gendisk;
struct nd_btt;
struct nd_namespace_common;
struct nd_pfn;
struct nd_region;
struct range;

/*
 * The info block of a namespace with a page map lies 4 KiB into the namespace.
 * On the media, so the same for all kernels: signature (16 bytes), uuid (16),
 * parent uuid (16), flags (4), version (2 + 2), then the offset of the data.
 */
#define PMEM_PFN_SB_DATAOFF	56

/* Space that info blocks take at the start of a namespace. */
static inline u32 nd_info_block_reserve(void)
{
	return ALIGN(SZ_8K, PAGE_SIZE);
}

/* Namespaces */
struct nd_namespace_common *nvdimm_namespace_common_probe(struct device *dev);
int devm_namespace_enable(struct device *dev, struct nd_namespace_common *ndns,
			  resource_size_t size);
void devm_namespace_disable(struct device *dev,
			    struct nd_namespace_common *ndns);
resource_size_t nvdimm_namespace_capacity(struct nd_namespace_common *ndns);
bool nvdimm_namespace_locked(struct nd_namespace_common *ndns);
const char *nvdimm_namespace_disk_name(struct nd_namespace_common *ndns,
				       char *name);
unsigned int pmem_sector_size(struct nd_namespace_common *ndns);
bool pmem_should_map_pages(struct device *dev);
const uuid_t *nd_dev_to_uuid(struct device *dev);
void nvdimm_check_and_set_ro(struct gendisk *disk);

/* Sector mode */
bool is_nd_btt(struct device *dev);
struct nd_btt *to_nd_btt(struct device *dev);
int nd_btt_probe(struct device *dev, struct nd_namespace_common *ndns);
int nvdimm_namespace_attach_btt(struct nd_namespace_common *ndns);
int nvdimm_namespace_detach_btt(struct nd_btt *nd_btt);

/* Modes with a page map */
bool is_nd_pfn(struct device *dev);
struct nd_pfn *to_nd_pfn(struct device *dev);
int nd_pfn_probe(struct device *dev, struct nd_namespace_common *ndns);
int nvdimm_setup_pfn(struct nd_pfn *nd_pfn, struct dev_pagemap *pgmap);
int nd_dax_probe(struct device *dev, struct nd_namespace_common *ndns);

/* Media errors */
long nvdimm_clear_poison(struct device *dev, phys_addr_t phys,
			 unsigned int len);
void nvdimm_badblocks_populate(struct nd_region *nd_region,
			       struct badblocks *bb, const struct range *range);

#endif /* _PMEM_COMPAT_NVDIMM_H */
