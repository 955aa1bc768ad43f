// SPDX-License-Identifier: GPL-2.0
/*
 * pmem_dma_plan - the decisions of pmem_dma, free of kernel state
 */
#include <linux/minmax.h>

#include "pmem_dma_plan.h"

/**
 * pmem_dma_plan_add() - append a piece of memory to a plan
 * @plan: the plan
 * @limits: what the channel can do
 * @addr: physical address of the memory
 * @len: bytes, at least one
 *
 * Memory that continues the last segment makes that one longer, so that the
 * block layer's count of segments (which joins such neighbours) suffices.
 *
 * Return: PMEM_DMA_ENGINE, or why the CPU has to do the request; the plan is
 * of no use then.
 */
enum pmem_dma_path pmem_dma_plan_add(struct pmem_dma_plan *plan,
				     const struct pmem_dma_limits *limits,
				     u64 addr, u32 len)
{
	struct pmem_dma_seg *last = plan->nr ? &plan->segs[plan->nr - 1] : NULL;
	u32 take;

	if ((addr | len) & limits->align_mask)
		return PMEM_DMA_CPU_ALIGN;

	if (last && last->addr + last->len == addr) {
		take = min(len, limits->max_len - last->len);
		last->len += take;
		addr += take;
		len -= take;
	}
	while (len) {
		if (plan->nr == plan->max_segs)
			return PMEM_DMA_CPU_SEGMENTS;
		take = min(len, limits->max_len);
		last = &plan->segs[plan->nr++];
		last->addr = addr;
		last->len = take;
		addr += take;
		len -= take;
	}
	return PMEM_DMA_ENGINE;
}

/**
 * pmem_dma_queues_of_node() - how many hardware queues a NUMA node gets
 * @q_per_node: what the administrator asked for, 0 to let us choose
 * @channels: channels acquired on the node
 * @cpus: CPUs of the node, which may come online later
 *
 * A queue without a CPU would never see a request.
 *
 * Return: Number of queues, 0 only for a node without CPUs.
 */
u32 pmem_dma_queues_of_node(u32 q_per_node, u32 channels, u32 cpus)
{
	u32 want = q_per_node ? q_per_node : max(channels, 1u);

	return min(want, cpus);
}
