/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The part of libnvdimm that has no public header
 *
 * In the kernel tree its own headers lie beside us; header packages of
 * distributions lack them, and compat/ has the prototypes.
 */
#ifndef _PMEM_NVDIMM_H
#define _PMEM_NVDIMM_H

/* sparse of Debian 12 does not know __has_include. */
#ifdef __has_include
#if __has_include("nd.h")
#define PMEM_IN_TREE
#endif
#endif

#ifdef PMEM_IN_TREE
#include "nd.h"
#include "pfn.h"
#include "btt.h"
#define PMEM_PFN_SB_DATAOFF	offsetof(struct nd_pfn_sb, dataoff)
#else
#include "compat/nvdimm.h"
#endif

#endif /* _PMEM_NVDIMM_H */
