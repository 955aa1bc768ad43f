// SPDX-License-Identifier: GPL-2.0
/*
 * pmem_dma_debugfs - /sys/kernel/debug/pmem_dma/
 *
 * A directory per disk, named after its nd device, since that is known before
 * the disk has a name.  For people who look for a bug: formats may change.
 */
#include <linux/cpumask.h>
#include <linux/debugfs.h>
#include <linux/device.h>
#include <linux/seq_file.h>

#include "pmem.h"
#include "pmem_dma.h"

static struct dentry *pmem_dma_debugfs_root;

static void pmem_dma_show_cpus(struct seq_file *m, struct pmem_dma_dev *pd,
			       unsigned int queue)
{
	struct blk_mq_queue_map *map = &pd->set.map[HCTX_TYPE_DEFAULT];
	const char *sep = "";
	unsigned int cpu;

	seq_puts(m, " cpus=");
	for_each_possible_cpu(cpu) {
		if (map->mq_map[cpu] != queue)
			continue;
		seq_printf(m, "%s%u", sep, cpu);
		sep = ",";
	}
}

/* A line per queue, then one for each of its channels. */
static int queues_show(struct seq_file *m, void *data)
{
	struct pmem_dma_dev *pd = m->private;
	unsigned int i, k;

	pmem_dma_chans_lock();
	for (i = 0; i < pd->nr_queues; i++) {
		struct pmem_dma_queue *q = pd->queues[i];

		seq_printf(m, "queue=%u node=%d", i, q->nid);
		pmem_dma_show_cpus(m, pd, i);
		seq_printf(m, " picked=%u unissued=%#lx to_finish=%s in_flight=%u\n",
			   atomic_read(&q->next), READ_ONCE(q->unissued),
			   llist_empty(&q->done) ? "none" : "some",
			   pmem_dma_inflight(pd, NULL, q));
		for (k = 0; k < q->nr_links; k++) {
			struct pmem_dma_chan *ch = q->links[k].ch;

			if (!ch) {
				seq_puts(m, "  left\n");
				continue;
			}
			seq_printf(m, "  %s state=%s in_flight=%u strikes=%u probes=%u max_len=%u align=%u ordered=%d\n",
				   dma_chan_name(ch->chan),
				   pmem_dma_state_name(ch),
				   pmem_dma_inflight(pd, ch, q),
				   READ_ONCE(ch->strikes),
				   READ_ONCE(ch->probes), ch->limits.max_len,
				   ch->limits.align_mask + 1, ch->ordered);
		}
	}
	pmem_dma_chans_unlock();
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(queues);

/**
 * pmem_dma_debugfs_add() - show a disk in debugfs
 * @pd: the disk, with its queues and tag set
 *
 * Context: Process context.  May sleep.
 */
void pmem_dma_debugfs_add(struct pmem_dma_dev *pd)
{
	pd->debugfs = debugfs_create_dir(dev_name(pd->pmem->dev),
					 pmem_dma_debugfs_root);
	debugfs_create_file("queues", 0400, pd->debugfs, pd, &queues_fops);
}

/**
 * pmem_dma_debugfs_del() - undo pmem_dma_debugfs_add()
 * @pd: the disk
 *
 * Context: Process context.  Sleeps until nobody reads about the disk.
 */
void pmem_dma_debugfs_del(struct pmem_dma_dev *pd)
{
	debugfs_remove_recursive(pd->debugfs);
}

/**
 * pmem_dma_debugfs_init() - make the directory
 *
 * Context: Process context.  May sleep.
 */
void pmem_dma_debugfs_init(void)
{
	pmem_dma_debugfs_root = debugfs_create_dir("pmem_dma", NULL);
}

/**
 * pmem_dma_debugfs_exit() - remove the directory
 *
 * Context: Process context.  May sleep.
 */
void pmem_dma_debugfs_exit(void)
{
	debugfs_remove_recursive(pmem_dma_debugfs_root);
}
