// SPDX-License-Identifier: GPL-2.0
/*
 * failcall - make one call of a kernel function fail
 *
 * Kernels that people run have no fault injection.  A kprobe at the entry of a
 * function can do it as well: when the call that is to fail comes, the caller
 * gets a value that we choose, and the function does not run at all.
 *
 * In /sys/kernel/debug/failcall:
 *
 *	symbol	name of the function; an empty line takes the probe away
 *	task	only calls by this thread count (0: none do)
 *	caller	only calls count from where a text like "pmem_map [pmem_core]"
 *		has this in it (empty: all), or after a "!" has it not
 *	value	what the caller gets: a negative errno does for an int as well
 *		as for an ERR_PTR(), 0 is NULL
 *	nth	which call fails, counted from 1 (0: none does); writing to it
 *		starts the count anew
 *	seen	calls that counted
 *	failed	calls that were made to fail
 *	site	who made the last of those, as in caller
 *
 * Locking: failcall_lock is held by all writers.  The probe looks at the
 * settings without it, for what one thread does: set them before it calls.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/debugfs.h>
#include <linux/fs.h>
#include <linux/kallsyms.h>
#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/preempt.h>
#include <linux/ptrace.h>
#include <linux/sched.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#ifndef CONFIG_X86_64
#error "failcall knows the registers of x86-64 only"
#endif

/* Enough for "function [module]". */
#define FAILCALL_NAME	(KSYM_NAME_LEN + MODULE_NAME_LEN + 4)

static DEFINE_MUTEX(failcall_lock);
static struct kprobe failcall_probe;
static bool failcall_probed;
static char failcall_symbol[FAILCALL_NAME];
static char failcall_caller[FAILCALL_NAME];
static char failcall_site[FAILCALL_NAME];
static char failcall_scratch[FAILCALL_NAME];
static u64 failcall_value;
static u32 failcall_task;
static u32 failcall_nth;
static u32 failcall_seen;
static u32 failcall_failed;

/*
 * Called in place of the function, with the value as its first argument.  The
 * stack is as the function would have found it, so this returns to the caller.
 */
static noinline notrace unsigned long failcall_return(unsigned long value)
{
	return value;
}

static bool failcall_counts(const char *site)
{
	if (failcall_caller[0] == '!')
		return !strstr(site, failcall_caller + 1);
	return strstr(site, failcall_caller);
}

NOKPROBE_SYMBOL(failcall_counts);

/* Interrupts come while our thread runs, too, and what they call is not its. */
static int failcall_enter(struct kprobe *probe, struct pt_regs *regs)
{
	unsigned long from;

	if (!in_task() || current->pid != READ_ONCE(failcall_task))
		return 0;

	from = regs_get_kernel_stack_nth(regs, 0);
	snprintf(failcall_scratch, sizeof(failcall_scratch), "%ps",
		 (void *)(from - 1));
	if (!failcall_counts(failcall_scratch))
		return 0;
	if (++failcall_seen != failcall_nth)
		return 0;

	failcall_failed++;
	strscpy(failcall_site, failcall_scratch, sizeof(failcall_site));
	regs->di = failcall_value;
	regs->ip = (unsigned long)failcall_return;
	return 1;
}

NOKPROBE_SYMBOL(failcall_enter);

/* That there is one tells kprobes and ftrace that we change where to go on. */
static void failcall_after(struct kprobe *probe, struct pt_regs *regs,
			   unsigned long flags)
{
}

NOKPROBE_SYMBOL(failcall_after);

static void failcall_remove(void)
{
	if (failcall_probed)
		unregister_kprobe(&failcall_probe);
	failcall_probed = false;
	failcall_symbol[0] = '\0';
}

/*
 * Only where ftrace has its hook: from anywhere else we would come by way of a
 * breakpoint, which looks like an interrupt.
 */
static int failcall_insert(const char *symbol)
{
	int rc;

	memset(&failcall_probe, 0, sizeof(failcall_probe));
	strscpy(failcall_symbol, symbol, sizeof(failcall_symbol));
	failcall_probe.symbol_name = failcall_symbol;
	failcall_probe.pre_handler = failcall_enter;
	failcall_probe.post_handler = failcall_after;
	rc = register_kprobe(&failcall_probe);
	if (rc)
		goto out_forget;
	failcall_probed = true;
	if (kprobe_ftrace(&failcall_probe))
		return 0;
	failcall_remove();
	rc = -EOPNOTSUPP;
out_forget:
	failcall_symbol[0] = '\0';
	return rc;
}

/* ----------------------------------------------------------------- debugfs */

/* A line of text from user space, without its end.  Returns an errno. */
static int failcall_line(char *line, size_t size, const char __user *buf,
			 size_t len)
{
	if (len >= size)
		return -E2BIG;
	if (copy_from_user(line, buf, len))
		return -EFAULT;
	line[len] = '\0';
	strim(line);
	return 0;
}

static ssize_t failcall_text_read(struct file *file, char __user *buf,
				  size_t len, loff_t *pos)
{
	const char *text = file_inode(file)->i_private;
	char line[FAILCALL_NAME + 1];
	size_t n;

	mutex_lock(&failcall_lock);
	n = scnprintf(line, sizeof(line), "%s\n", text);
	mutex_unlock(&failcall_lock);
	return simple_read_from_buffer(buf, len, pos, line, n);
}

static ssize_t failcall_symbol_write(struct file *file, const char __user *buf,
				     size_t len, loff_t *pos)
{
	char line[FAILCALL_NAME];
	int rc = failcall_line(line, sizeof(line), buf, len);

	if (rc)
		return rc;
	mutex_lock(&failcall_lock);
	WRITE_ONCE(failcall_task, 0);
	failcall_remove();
	if (line[0])
		rc = failcall_insert(line);
	mutex_unlock(&failcall_lock);
	return rc ? rc : len;
}

static const struct file_operations failcall_symbol_fops = {
	.owner = THIS_MODULE,
	.open = simple_open,
	.read = failcall_text_read,
	.write = failcall_symbol_write,
};

static ssize_t failcall_caller_write(struct file *file, const char __user *buf,
				     size_t len, loff_t *pos)
{
	char line[FAILCALL_NAME];
	int rc = failcall_line(line, sizeof(line), buf, len);

	if (rc)
		return rc;
	mutex_lock(&failcall_lock);
	strscpy(failcall_caller, line, sizeof(failcall_caller));
	mutex_unlock(&failcall_lock);
	return len;
}

static const struct file_operations failcall_caller_fops = {
	.owner = THIS_MODULE,
	.open = simple_open,
	.read = failcall_text_read,
	.write = failcall_caller_write,
};

static const struct file_operations failcall_site_fops = {
	.owner = THIS_MODULE,
	.open = simple_open,
	.read = failcall_text_read,
};

static int failcall_value_get(void *data, u64 *value)
{
	*value = failcall_value;
	return 0;
}

static int failcall_value_set(void *data, u64 value)
{
	mutex_lock(&failcall_lock);
	failcall_value = value;
	mutex_unlock(&failcall_lock);
	return 0;
}

DEFINE_DEBUGFS_ATTRIBUTE_SIGNED(failcall_value_fops, failcall_value_get,
				failcall_value_set, "%lld\n");

static int failcall_nth_get(void *data, u64 *value)
{
	*value = failcall_nth;
	return 0;
}

static int failcall_nth_set(void *data, u64 value)
{
	mutex_lock(&failcall_lock);
	failcall_nth = value;
	failcall_seen = 0;
	failcall_failed = 0;
	failcall_site[0] = '\0';
	mutex_unlock(&failcall_lock);
	return 0;
}

DEFINE_DEBUGFS_ATTRIBUTE(failcall_nth_fops, failcall_nth_get, failcall_nth_set,
			 "%llu\n");

static struct dentry *failcall_dir;

static int __init failcall_init(void)
{
	struct dentry *dir = debugfs_create_dir(KBUILD_MODNAME, NULL);

	if (IS_ERR(dir))
		return PTR_ERR(dir);
	failcall_dir = dir;
	debugfs_create_file("symbol", 0600, dir, failcall_symbol,
			    &failcall_symbol_fops);
	debugfs_create_file("caller", 0600, dir, failcall_caller,
			    &failcall_caller_fops);
	debugfs_create_file("site", 0400, dir, failcall_site,
			    &failcall_site_fops);
	debugfs_create_file("value", 0600, dir, NULL, &failcall_value_fops);
	debugfs_create_file("nth", 0600, dir, NULL, &failcall_nth_fops);
	debugfs_create_u32("task", 0600, dir, &failcall_task);
	debugfs_create_u32("seen", 0400, dir, &failcall_seen);
	debugfs_create_u32("failed", 0400, dir, &failcall_failed);
	return 0;
}
module_init(failcall_init);

static void __exit failcall_exit(void)
{
	debugfs_remove(failcall_dir);
	failcall_remove();
}
module_exit(failcall_exit);

MODULE_DESCRIPTION("Test module: make one call of a kernel function fail");
MODULE_LICENSE("GPL");
