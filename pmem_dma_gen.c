// SPDX-License-Identifier: GPL-2.0
/*
 * pmem_dma_gen - callbacks that come late, twice, or for somebody else
 *
 * A provider with a bug, or an engine that comes back from the dead, may call
 * back for a descriptor that is long over.  If callbacks brought the address of
 * a command, such a one would count for the request that has the command now and
 * complete it while its data is still on the way.
 *
 * So a callback brings a number instead: disk, queue, tag, a generation that
 * changes each time the tag is used, and which descriptor of the request it is
 * for.  A slot per tag has a token for every descriptor that may still be called
 * back: the generation of its request.  A callback has to exchange its token for
 * the command; whoever finds another generation there, or none, is spurious, and
 * is counted, logged and dropped.  The tokens of a request are as many as its
 * pending descriptors, and who took a token is free to use the command until it
 * has dropped its share of them.
 *
 * Locking: none but RCU, under which slots are looked at by those who may not be
 * entitled to it.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/bitfield.h>
#include <linux/blk-mq.h>
#include <linux/overflow.h>
#include <linux/percpu.h>
#include <linux/slab.h>
#include <linux/xarray.h>

#include "pmem.h"
#include "pmem_dma.h"
#include "pmem_dma_gen.h"

#define PMEM_DMA_ID_SEG		GENMASK_ULL(7, 0)
#define PMEM_DMA_ID_GEN		GENMASK_ULL(23, 8)
#define PMEM_DMA_ID_TAG		GENMASK_ULL(37, 24)
#define PMEM_DMA_ID_QUEUE	GENMASK_ULL(50, 38)
#define PMEM_DMA_ID_DISK	GENMASK_ULL(63, 51)

/**
 * struct pmem_dma_slot - what callbacks for a tag have to fit
 * @cmd: command that has the tag
 * @id: disk, queue and tag as in a callback's number
 * @gen: of the present or last request, never 0
 * @tokens: by segment, @gen while a callback is due, else 0
 */
struct pmem_dma_slot {
	struct pmem_dma_cmd *cmd;
	u64 id;
	u16 gen;
	u16 tokens[];
};

static DEFINE_XARRAY_ALLOC(pmem_dma_gen_disks);
static u32 pmem_dma_gen_next_disk;

static struct pmem_dma_slot *pmem_dma_slot_at(const struct pmem_dma_queue *q,
					      unsigned int tag)
{
	struct pmem_dma_slot *slot;

	return (void *)q->slots +
		tag * ALIGN(struct_size(slot, tokens, q->pd->num_sg),
			    __alignof__(*slot));
}

static struct pmem_dma_slot *pmem_dma_slot_of(struct pmem_dma_cmd *cmd)
{
	return pmem_dma_slot_at(cmd->q, blk_mq_rq_from_pdu(cmd)->tag);
}

static int pmem_dma_gen_add_queue(struct pmem_dma_dev *pd, unsigned int index,
				  u32 disk)
{
	struct pmem_dma_queue *q = pd->queues[index];
	unsigned int depth = pd->set.queue_depth, tag;
	size_t size = (void *)pmem_dma_slot_at(q, 1) - (void *)q->slots;

	q->slots = kvzalloc_node(array_size(depth, size), GFP_KERNEL, q->nid);
	if (!q->slots)
		return -ENOMEM;
	for (tag = 0; tag < depth; tag++)
		pmem_dma_slot_at(q, tag)->id =
			FIELD_PREP(PMEM_DMA_ID_DISK, disk) |
			FIELD_PREP(PMEM_DMA_ID_QUEUE, index) |
			FIELD_PREP(PMEM_DMA_ID_TAG, tag);
	return 0;
}

static void pmem_dma_gen_free(struct pmem_dma_dev *pd)
{
	unsigned int i;

	for (i = 0; i < pd->nr_queues; i++)
		kvfree(pd->queues[i]->slots);
}

/**
 * pmem_dma_gen_add() - let callbacks find a disk
 * @pd: the disk, with its queues and its tag set
 *
 * Context: Process context.  May sleep.
 * Return: 0, -ENOMEM, or -EBUSY if there are too many disks.
 */
int pmem_dma_gen_add(struct pmem_dma_dev *pd)
{
	unsigned int i;
	u32 disk;
	int rc;

	/* Not the number of a disk that went a moment ago. */
	rc = xa_alloc_cyclic(&pmem_dma_gen_disks, &disk, NULL,
			     XA_LIMIT(0, FIELD_MAX(PMEM_DMA_ID_DISK)),
			     &pmem_dma_gen_next_disk, GFP_KERNEL);
	if (rc < 0)
		return rc;
	rc = 0;
	for (i = 0; i < pd->nr_queues && !rc; i++)
		rc = pmem_dma_gen_add_queue(pd, i, disk);
	if (rc) {
		xa_erase(&pmem_dma_gen_disks, disk);
		pmem_dma_gen_free(pd);
		return rc;
	}
	pd->gen_id = disk;
	xa_store(&pmem_dma_gen_disks, disk, pd, GFP_KERNEL);
	return 0;
}

/**
 * pmem_dma_gen_del() - undo pmem_dma_gen_add()
 * @pd: a disk without requests in flight
 *
 * Context: Process context.  Sleeps until no callback looks at the disk.
 */
void pmem_dma_gen_del(struct pmem_dma_dev *pd)
{
	xa_erase(&pmem_dma_gen_disks, pd->gen_id);
	synchronize_rcu();
	pmem_dma_gen_free(pd);
}

/**
 * pmem_dma_gen_begin() - a request is about to be submitted
 * @cmd: its command, with @q set
 * @nr: descriptors
 *
 * Context: Any.
 */
void pmem_dma_gen_begin(struct pmem_dma_cmd *cmd, u32 nr)
{
	struct pmem_dma_slot *slot = pmem_dma_slot_of(cmd);
	u32 i;

	slot->cmd = cmd;
	WRITE_ONCE(slot->gen, slot->gen == U16_MAX ? 1 : slot->gen + 1);
	/* Nobody can have the new generation yet; dmaengine's lock orders this. */
	for (i = 0; i < nr; i++)
		WRITE_ONCE(slot->tokens[i], slot->gen);
}

/**
 * pmem_dma_gen_param() - what a descriptor's callback shall bring
 * @cmd: the command, after pmem_dma_gen_begin()
 * @seg: segment of the descriptor
 *
 * Context: Any.
 * Return: a number, in the disguise of a pointer.
 */
void *pmem_dma_gen_param(struct pmem_dma_cmd *cmd, u32 seg)
{
	const struct pmem_dma_slot *slot = pmem_dma_slot_of(cmd);

	return (void *)(slot->id | FIELD_PREP(PMEM_DMA_ID_GEN, slot->gen) |
			FIELD_PREP(PMEM_DMA_ID_SEG, seg));
}

/* Under RCU, NULL if the disk is gone. */
static struct pmem_dma_slot *pmem_dma_gen_find(u64 id)
{
	struct pmem_dma_dev *pd = xa_load(&pmem_dma_gen_disks,
					  FIELD_GET(PMEM_DMA_ID_DISK, id));

	if (!pd)
		return NULL;
	return pmem_dma_slot_at(pd->queues[FIELD_GET(PMEM_DMA_ID_QUEUE, id)],
				FIELD_GET(PMEM_DMA_ID_TAG, id));
}

static void pmem_dma_gen_spurious(u64 id, const struct pmem_dma_slot *slot)
{
	struct pmem_dma_dev *pd = xa_load(&pmem_dma_gen_disks,
					  FIELD_GET(PMEM_DMA_ID_DISK, id));
	u32 gen = FIELD_GET(PMEM_DMA_ID_GEN, id);

	if (!slot || !pd) {
		pr_warn_ratelimited("spurious callback for a disk that is gone\n");
		return;
	}
	this_cpu_inc(pd->stats->spurious);
	dev_warn_ratelimited(pd->pmem->dev,
			     "spurious callback: queue %u tag %u descriptor %u, generation %u is %s\n",
			     (u32)FIELD_GET(PMEM_DMA_ID_QUEUE, id),
			     (u32)FIELD_GET(PMEM_DMA_ID_TAG, id),
			     (u32)FIELD_GET(PMEM_DMA_ID_SEG, id), gen,
			     READ_ONCE(slot->gen) == gen ?
			     "called back already" : "over");
}

/**
 * pmem_dma_gen_take() - a callback claims its share of a command
 * @param: what pmem_dma_gen_param() gave to the descriptor
 *
 * Context: Any.
 * Return: the command, or NULL for a callback that must not count.
 */
struct pmem_dma_cmd *pmem_dma_gen_take(void *param)
{
	u64 id = (uintptr_t)param;
	u16 gen = FIELD_GET(PMEM_DMA_ID_GEN, id);
	struct pmem_dma_cmd *cmd = NULL;
	struct pmem_dma_slot *slot;

	rcu_read_lock();
	slot = pmem_dma_gen_find(id);
	if (slot && cmpxchg(&slot->tokens[FIELD_GET(PMEM_DMA_ID_SEG, id)], gen,
			    0) == gen)
		cmd = slot->cmd;
	else
		pmem_dma_gen_spurious(id, slot);
	rcu_read_unlock();
	return cmd;
}

/**
 * pmem_dma_gen_untake() - as if the callback had not come
 * @param: the callback's, after pmem_dma_gen_take() gave a command for it
 *
 * Context: Any.
 */
void pmem_dma_gen_untake(void *param)
{
	u64 id = (uintptr_t)param;

	rcu_read_lock();
	WRITE_ONCE(pmem_dma_gen_find(id)->tokens[FIELD_GET(PMEM_DMA_ID_SEG, id)],
		   FIELD_GET(PMEM_DMA_ID_GEN, id));
	rcu_read_unlock();
}

/**
 * pmem_dma_gen_withdraw() - callbacks that come from now on shall not count
 * @cmd: a command that has descriptors pending
 * @from: first segment
 *
 * Context: Any.
 * Return: how many would have counted.
 */
u32 pmem_dma_gen_withdraw(struct pmem_dma_cmd *cmd, u32 from)
{
	struct pmem_dma_slot *slot = pmem_dma_slot_of(cmd);
	u32 n = 0;

	for (; from < cmd->q->pd->num_sg; from++)
		n += xchg(&slot->tokens[from], 0) != 0;
	return n;
}
