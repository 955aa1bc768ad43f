// SPDX-License-Identifier: GPL-2.0
/*
 * swdma_stats - counters, in debugfs
 *
 *	/sys/kernel/debug/swdma/stats		all channels, one a line
 *	/sys/kernel/debug/swdma/reset		write anything: counters to 0
 *	/sys/kernel/debug/swdma/dmaXchanY/	a channel: knobs and counters
 */
#include <linux/debugfs.h>
#include <linux/fs.h>
#include <linux/module.h>
#include <linux/seq_file.h>
#include <linux/string.h>

#include "swdma.h"

static const char * const swdma_stat_names[SWDMA_NR_STATS] = {
	[SWDMA_STAT_DESCRIPTORS] = "descriptors",
	[SWDMA_STAT_BYTES] = "bytes",
	[SWDMA_STAT_CALLBACKS] = "callbacks",
	[SWDMA_STAT_IN_FLIGHT] = "in_flight",
	[SWDMA_STAT_MAX_IN_FLIGHT] = "max_in_flight",
	[SWDMA_STAT_INTERRUPTS] = "interrupts",
	[SWDMA_STAT_LOST_INTERRUPTS] = "lost_interrupts",
	[SWDMA_STAT_POLLS] = "polls",
	[SWDMA_STAT_SLOW] = "slowed",
	[SWDMA_STAT_FAILED] = "failed",
	[SWDMA_STAT_ABORTED] = "aborted",
	[SWDMA_STAT_LOST] = "lost",
	[SWDMA_STAT_LATE] = "came_late",
	[SWDMA_STAT_SPURIOUS] = "came_twice",
	[SWDMA_STAT_DROPPED] = "dropped",
	[SWDMA_STAT_SUBMIT_ERRORS] = "submit_errors",
	[SWDMA_STAT_PREP_ERRORS] = "prep_errors",
	[SWDMA_STAT_RING_FULL] = "ring_full",
	[SWDMA_STAT_TOO_LONG] = "too_long",
	[SWDMA_STAT_MISALIGNED] = "misaligned",
	[SWDMA_STAT_GONE] = "gone",
};

static struct dentry *swdma_root;

static void swdma_show_chan(struct seq_file *m, struct swdma_chan *ch)
{
	unsigned int i;

	seq_printf(m, "%s %d", dma_chan_name(&ch->chan), ch->sd->nid);
	spin_lock_irq(&ch->lock);
	for (i = 0; i < SWDMA_NR_STATS; i++)
		seq_printf(m, " %llu", ch->stats[i]);
	spin_unlock_irq(&ch->lock);
	seq_putc(m, '\n');
}

static int swdma_stats_show(struct seq_file *m, void *unused)
{
	struct swdma_dev *sd;
	unsigned int i;

	seq_puts(m, "channel node");
	for (i = 0; i < SWDMA_NR_STATS; i++)
		seq_printf(m, " %s", swdma_stat_names[i]);
	seq_putc(m, '\n');
	mutex_lock(&swdma_devs_lock);
	list_for_each_entry(sd, &swdma_devs, node)
		for (i = 0; i < sd->nr_chans; i++)
			swdma_show_chan(m, &sd->chans[i]);
	mutex_unlock(&swdma_devs_lock);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(swdma_stats);

static void swdma_reset_chan(struct swdma_chan *ch)
{
	u64 in_flight;

	spin_lock_irq(&ch->lock);
	in_flight = ch->stats[SWDMA_STAT_IN_FLIGHT];
	memset(ch->stats, 0, sizeof(ch->stats));
	ch->stats[SWDMA_STAT_IN_FLIGHT] = in_flight;
	ch->stats[SWDMA_STAT_MAX_IN_FLIGHT] = in_flight;
	spin_unlock_irq(&ch->lock);
}

static ssize_t swdma_reset_write(struct file *file, const char __user *buf,
				 size_t len, loff_t *pos)
{
	struct swdma_dev *sd;
	unsigned int i;

	mutex_lock(&swdma_devs_lock);
	list_for_each_entry(sd, &swdma_devs, node)
		for (i = 0; i < sd->nr_chans; i++)
			swdma_reset_chan(&sd->chans[i]);
	mutex_unlock(&swdma_devs_lock);
	return len;
}

static const struct file_operations swdma_reset_fops = {
	.owner = THIS_MODULE,
	.open = simple_open,
	.write = swdma_reset_write,
};

/**
 * swdma_stats_add() - make the files of a device
 * @sd: a registered device
 *
 * Context: Process context.
 */
void swdma_stats_add(struct swdma_dev *sd)
{
	unsigned int i, k;

	for (i = 0; i < sd->nr_chans; i++) {
		struct swdma_chan *ch = &sd->chans[i];
		struct dentry *dir = debugfs_create_dir(dma_chan_name(&ch->chan),
							swdma_root);

		swdma_knobs_debugfs(ch, dir);
		for (k = 0; k < SWDMA_NR_STATS; k++)
			debugfs_create_u64(swdma_stat_names[k], 0444, dir,
					   &ch->stats[k]);
	}
}

/**
 * swdma_stats_del() - undo swdma_stats_add()
 * @sd: a device that is still registered
 *
 * Context: Process context, not under swdma_devs_lock: waits for readers.
 */
void swdma_stats_del(struct swdma_dev *sd)
{
	unsigned int i;

	for (i = 0; i < sd->nr_chans; i++)
		debugfs_lookup_and_remove(dma_chan_name(&sd->chans[i].chan),
					  swdma_root);
}

/**
 * swdma_stats_init() - make the files of the module
 *
 * Context: Process context.
 */
void swdma_stats_init(void)
{
	swdma_root = debugfs_create_dir("swdma", NULL);
	debugfs_create_file("stats", 0444, swdma_root, NULL,
			    &swdma_stats_fops);
	debugfs_create_file("reset", 0200, swdma_root, NULL,
			    &swdma_reset_fops);
}

/**
 * swdma_stats_exit() - undo swdma_stats_init()
 *
 * Context: Process context.
 */
void swdma_stats_exit(void)
{
	debugfs_remove(swdma_root);
}
