// SPDX-License-Identifier: GPL-2.0
/*
 * preflush - writes that want a flush before their data
 *
 * No program can ask for that (REQ_PREFLUSH together with data); journals do.  As
 * long as this is loaded, each write to the disk of that name does.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/blkdev.h>
#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/string.h>

static char *disk = "";
module_param(disk, charp, 0444);
MODULE_PARM_DESC(disk, "Name of the disk, as in /sys/block");

static int preflush_submit_bio(struct kprobe *p, struct pt_regs *regs)
{
	struct bio *bio = (struct bio *)regs->di;

	if (bio_op(bio) == REQ_OP_WRITE && bio_has_data(bio) &&
	    !strcmp(bio->bi_bdev->bd_disk->disk_name, disk))
		bio->bi_opf |= REQ_PREFLUSH;
	return 0;
}

static struct kprobe preflush_probe = {
	.symbol_name = "submit_bio",
	.pre_handler = preflush_submit_bio,
};

static int __init preflush_init(void)
{
	return register_kprobe(&preflush_probe);
}
module_init(preflush_init);

static void __exit preflush_exit(void)
{
	unregister_kprobe(&preflush_probe);
}
module_exit(preflush_exit);

MODULE_DESCRIPTION("Writes with a flush before them");
MODULE_LICENSE("GPL");
