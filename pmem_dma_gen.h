/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Which callbacks count; see pmem_dma_gen.c
 *
 * Without CONFIG_BLK_DEV_PMEM_DMA_DEBUG_GENCTR a callback brings its command's
 * address and is believed: nothing of the check remains.
 */
#ifndef _PMEM_DMA_GEN_H
#define _PMEM_DMA_GEN_H

#include <linux/atomic.h>
#include <linux/blk-mq.h>
#include <linux/types.h>

#include "pmem_dma.h"

#ifdef CONFIG_BLK_DEV_PMEM_DMA_DEBUG_GENCTR

int pmem_dma_gen_add(struct pmem_dma_dev *pd);
void pmem_dma_gen_del(struct pmem_dma_dev *pd);
void pmem_dma_gen_begin(struct pmem_dma_cmd *cmd, u32 nr);
void *pmem_dma_gen_param(struct pmem_dma_cmd *cmd, u32 seg);
struct pmem_dma_cmd *pmem_dma_gen_take(void *param);
void pmem_dma_gen_untake(void *param);
u32 pmem_dma_gen_withdraw(struct pmem_dma_cmd *cmd, u32 from);

/* The same as below, but a callback under way keeps its share. */
static inline bool pmem_dma_gen_take_rest(struct pmem_dma_cmd *cmd)
{
	u32 rest = pmem_dma_gen_withdraw(cmd, 0);

	if (!rest)
		return false;
	WRITE_ONCE(cmd->failed, true);
	return atomic_sub_and_test(rest, &cmd->pending);
}

#else

static inline int pmem_dma_gen_add(struct pmem_dma_dev *pd)
{
	return 0;
}

static inline void pmem_dma_gen_del(struct pmem_dma_dev *pd)
{
}

static inline void pmem_dma_gen_begin(struct pmem_dma_cmd *cmd, u32 nr)
{
}

static inline void *pmem_dma_gen_param(struct pmem_dma_cmd *cmd, u32 seg)
{
	return cmd;
}

static inline struct pmem_dma_cmd *pmem_dma_gen_take(void *param)
{
	return param;
}

static inline void pmem_dma_gen_untake(void *param)
{
}

static inline u32 pmem_dma_gen_withdraw(struct pmem_dma_cmd *cmd, u32 from)
{
	return 0;
}

/*
 * No callback will come for what is pending, so the CPU has to redo the command.
 * True if the caller has it now: a last callback that is under way takes its
 * share, and the rest will get none.
 */
static inline bool pmem_dma_gen_take_rest(struct pmem_dma_cmd *cmd)
{
	int pending = atomic_read(&cmd->pending);

	do {
		if (!pending)
			return false;
	} while (!atomic_try_cmpxchg(&cmd->pending, &pending, 0));
	WRITE_ONCE(cmd->failed, true);
	return true;
}

#endif /* CONFIG_BLK_DEV_PMEM_DMA_DEBUG_GENCTR */

#endif /* _PMEM_DMA_GEN_H */
