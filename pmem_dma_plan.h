/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The decisions of pmem_dma, free of kernel state
 *
 * Everything here depends on its arguments alone and builds in user space too,
 * where tests/unit tries it.
 */
#ifndef _PMEM_DMA_PLAN_H
#define _PMEM_DMA_PLAN_H

#include <linux/types.h>

/**
 * enum pmem_dma_path - who moves the bytes of a request, and why
 * @PMEM_DMA_ENGINE: an engine
 * @PMEM_DMA_CPU_CHOSEN: the CPU, because of size or policy
 * @PMEM_DMA_CPU_NO_CHANNEL: the CPU, the queue has no usable channel
 * @PMEM_DMA_CPU_BADBLOCK: the CPU, the range touches a known bad sector
 * @PMEM_DMA_CPU_SEGMENTS: the CPU, more segments than num_sg
 * @PMEM_DMA_CPU_ALIGN: the CPU, the engine cannot address the memory
 * @PMEM_DMA_CPU_MAP: the CPU, the memory could not be mapped for DMA
 * @PMEM_DMA_CPU_FULL: the CPU, the channel took no more descriptors
 * @PMEM_DMA_CPU_REDO: the CPU once more, after an engine failed
 * @PMEM_DMA_NR_PATHS: number of the above
 *
 * All after @PMEM_DMA_CPU_CHOSEN are fallbacks: an engine was wanted.
 */
enum pmem_dma_path {
	PMEM_DMA_ENGINE,
	PMEM_DMA_CPU_CHOSEN,
	PMEM_DMA_CPU_NO_CHANNEL,
	PMEM_DMA_CPU_BADBLOCK,
	PMEM_DMA_CPU_SEGMENTS,
	PMEM_DMA_CPU_ALIGN,
	PMEM_DMA_CPU_MAP,
	PMEM_DMA_CPU_FULL,
	PMEM_DMA_CPU_REDO,
	PMEM_DMA_NR_PATHS
};

/**
 * enum pmem_dma_policy - what an administrator asked for
 * @PMEM_DMA_POLICY_AUTO: engine for requests of at least the minimum size
 * @PMEM_DMA_POLICY_DMA: engine whenever possible
 * @PMEM_DMA_POLICY_CPU: CPU always
 */
enum pmem_dma_policy {
	PMEM_DMA_POLICY_AUTO,
	PMEM_DMA_POLICY_DMA,
	PMEM_DMA_POLICY_CPU,
};

/**
 * struct pmem_dma_limits - what one channel can do
 * @max_len: most bytes of a descriptor, a multiple of @align_mask + 1
 * @align_mask: bits that addresses and lengths must not have
 */
struct pmem_dma_limits {
	u32 max_len;
	u32 align_mask;
};

/**
 * struct pmem_dma_seg - one descriptor of a request
 * @addr: physical address of the memory
 * @dma: the same as the engine sees it, once it is mapped
 * @len: bytes
 *
 * The pmem side needs no address: segments follow each other there.
 */
struct pmem_dma_seg {
	u64 addr;
	u64 dma;
	u32 len;
};

/**
 * struct pmem_dma_plan - a request being cut into segments
 * @segs: room for @max_segs segments
 * @max_segs: num_sg
 * @nr: segments so far
 */
struct pmem_dma_plan {
	struct pmem_dma_seg *segs;
	u32 max_segs;
	u32 nr;
};

/**
 * pmem_dma_wants_engine() - is an engine the better choice?
 * @policy: what the administrator asked for
 * @bytes: length of the request
 * @min_bytes: shortest request that @PMEM_DMA_POLICY_AUTO gives to an engine
 *
 * Return: true for an engine, false for the CPU.
 */
static inline bool pmem_dma_wants_engine(enum pmem_dma_policy policy, u32 bytes,
					 u32 min_bytes)
{
	switch (policy) {
	case PMEM_DMA_POLICY_AUTO:
		return bytes >= min_bytes;
	case PMEM_DMA_POLICY_DMA:
		return true;
	default:
		return false;
	}
}

enum pmem_dma_path pmem_dma_plan_add(struct pmem_dma_plan *plan,
				     const struct pmem_dma_limits *limits,
				     u64 addr, u32 len);
u32 pmem_dma_queues_of_node(u32 q_per_node, u32 channels, u32 cpus);

#endif /* _PMEM_DMA_PLAN_H */
