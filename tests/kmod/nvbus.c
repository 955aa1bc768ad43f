// SPDX-License-Identifier: GPL-2.0
/*
 * nvbus - an nvdimm bus on reserved memory, whose media errors are made to order
 *
 * QEMU's NVDIMM never goes bad and never fails to flush.  This bus does, when
 * debugfs is told so.  To every driver above it, it is a bus like another:
 * errors come by badrange and notification, and are cleared by ND_CMD_CLEAR_ERROR.
 *
 * The memory is taken from the kernel by memmap=SIZE$START on its command line.
 *
 * In /sys/kernel/debug/nvbus:
 *
 *	clear_mode	what CLEAR_ERROR does: ok, refuse, or partial (clears the
 *			first half only)
 *	clear_unit	granule of clearing that ARS_CAP tells, in bytes
 *	clears		CLEAR_ERROR commands seen
 *	refused		those that cleared nothing
 *	regionN/inject	takes "OFFSET LENGTH", in bytes from the region's start
 *	regionN/list	errors that nobody has cleared, one "OFFSET LENGTH" a line
 *	regionN/flush_errno  what the next flushes return, as a positive errno
 *	regionN/flushes	calls of the flush provider
 *
 * A range that was cleared reads as NVBUS_SCRAP, since its old content is lost
 * on real media, too: a driver that lets it be read before it was overwritten
 * gets caught.
 *
 * Locking: the list of errors has the lock of struct badrange.  ARS commands
 * come under the lock of the bus.  Everything else is set up before the bus is
 * registered, or is a counter or a switch.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/atomic.h>
#include <linux/debugfs.h>
#include <linux/device.h>
#include <linux/io.h>
#include <linux/libnvdimm.h>
#include <linux/list.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/nd.h>
#include <linux/ndctl.h>
#include <linux/nodemask.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/string.h>

#define NVBUS_MAX_REGIONS	4

/* What clearing leaves behind. */
#define NVBUS_SCRAP		0xdb

/* Low half of a command's status: what the firmware thinks of it. */
#define NVBUS_STATUS_OK		0
#define NVBUS_STATUS_FAILED	1

/* In nd_cmd_ars_status::flags: there were more records than room. */
#define NVBUS_ARS_OVERFLOW	1

enum nvbus_clear_mode {
	NVBUS_CLEAR_OK,
	NVBUS_CLEAR_REFUSE,
	NVBUS_CLEAR_PARTIAL,
};

static const char * const nvbus_clear_modes[] = {
	[NVBUS_CLEAR_OK] = "ok",
	[NVBUS_CLEAR_REFUSE] = "refuse",
	[NVBUS_CLEAR_PARTIAL] = "partial",
};

struct nvbus_region {
	struct resource res;
	void *mem;
	struct nvdimm *dimm;
	struct nd_region *region;
	atomic_t flushes;
	u32 flush_errno;
};

/**
 * struct nvbus - the one bus of this module
 * @desc: what libnvdimm knows of it
 * @bus: its handle there
 * @parent: device above the bus
 * @debugfs: directory of the bus
 * @regions: the first @nr_regions are in use
 * @nr_regions: number of regions
 * @errors: media errors, by physical address
 * @scrub: range of the last ARS_START
 * @clear_mode: enum nvbus_clear_mode
 * @clear_unit: granule of clearing, in bytes
 * @clears: CLEAR_ERROR commands seen
 * @refused: those that cleared nothing
 */
struct nvbus {
	struct nvdimm_bus_descriptor desc;
	struct nvdimm_bus *bus;
	struct device *parent;
	struct dentry *debugfs;
	struct nvbus_region regions[NVBUS_MAX_REGIONS];
	unsigned int nr_regions;
	struct badrange errors;
	struct range scrub;
	int clear_mode;
	u32 clear_unit;
	atomic_t clears;
	atomic_t refused;
};

static struct nvbus nvbus;

/* -------------------------------------------------------------- parameters */

static unsigned long long start[NVBUS_MAX_REGIONS];
static unsigned int nr_start;
module_param_array(start, ullong, &nr_start, 0444);
MODULE_PARM_DESC(start,
		 "Physical address of each region, up to 4 (comma-separated)");

static unsigned long long size[NVBUS_MAX_REGIONS];
static unsigned int nr_size;
module_param_array(size, ullong, &nr_size, 0444);
MODULE_PARM_DESC(size, "Size of each region in bytes, a multiple of 2 MiB");

static int node[NVBUS_MAX_REGIONS];
static unsigned int nr_node;
module_param_array(node, int, &nr_node, 0444);
MODULE_PARM_DESC(node, "NUMA node of each region (default 0)");

static int target_node[NVBUS_MAX_REGIONS];
static unsigned int nr_target_node;
module_param_array(target_node, int, &nr_target_node, 0444);
MODULE_PARM_DESC(target_node,
		 "NUMA node of each region when used as memory (default: as node)");

static bool pagemap = true;
module_param(pagemap, bool, 0444);
MODULE_PARM_DESC(pagemap, "Raw namespaces get struct pages (default Y)");

static bool persist_cache;
module_param(persist_cache, bool, 0444);
MODULE_PARM_DESC(persist_cache,
		 "CPU caches are in the persistence domain (default N)");

static bool persist_memctrl;
module_param(persist_memctrl, bool, 0444);
MODULE_PARM_DESC(persist_memctrl,
		 "The memory controller is in the persistence domain (default N)");

static bool dimm = true;
module_param(dimm, bool, 0444);
MODULE_PARM_DESC(dimm,
		 "Put a label-less DIMM under each region; without one, nobody guarantees persistence (default Y)");

static bool flush = true;
module_param(flush, bool, 0444);
MODULE_PARM_DESC(flush, "The regions have a flush provider (default Y)");

static bool async = true;
module_param(async, bool, 0444);
MODULE_PARM_DESC(async,
		 "The flush is an explicit one: with a DIMM and a provider, disks have FUA, and DAX is not synchronous (default Y)");

/* ---------------------------------------------------------------- commands */

static struct nvbus_region *nvbus_find_region(u64 addr, u64 len)
{
	struct nvbus_region *r;

	for (r = nvbus.regions; r < nvbus.regions + nvbus.nr_regions; r++)
		if (addr >= r->res.start && addr <= r->res.end &&
		    len && len - 1 <= r->res.end - addr)
			return r;
	return NULL;
}

static int nvbus_ars_cap(struct nd_cmd_ars_cap *cap)
{
	if (!nvbus_find_region(cap->address, cap->length)) {
		cap->status = NVBUS_STATUS_FAILED;
		return -EINVAL;
	}
	cap->status = NVBUS_STATUS_OK |
		      ND_ARS_PERSISTENT << ARS_EXT_STATUS_SHIFT;
	cap->max_ars_out = PAGE_SIZE;
	cap->clear_err_unit = READ_ONCE(nvbus.clear_unit);
	cap->flags = 0;
	return 0;
}

static int nvbus_ars_start(struct nd_cmd_ars_start *cmd)
{
	cmd->scrub_time = 0;
	if (!nvbus_find_region(cmd->address, cmd->length)) {
		cmd->status = NVBUS_STATUS_FAILED;
		return -EINVAL;
	}
	nvbus.scrub.start = cmd->address;
	nvbus.scrub.end = cmd->address + cmd->length - 1;
	cmd->status = NVBUS_STATUS_OK;
	return 0;
}

/* The scrub was over when ARS_START returned: everything is known here. */
static int nvbus_ars_status(struct nd_cmd_ars_status *cmd, unsigned int buf_len)
{
	u32 room = (buf_len - sizeof(*cmd)) / sizeof(cmd->records[0]);
	struct badrange_entry *e;

	memset(cmd, 0, buf_len);
	cmd->type = ND_ARS_PERSISTENT;
	cmd->address = nvbus.scrub.start;
	cmd->length = range_len(&nvbus.scrub);

	spin_lock(&nvbus.errors.lock);
	list_for_each_entry(e, &nvbus.errors.list, list) {
		if (e->start > nvbus.scrub.end ||
		    e->start + e->length <= nvbus.scrub.start)
			continue;
		if (cmd->num_records == room) {
			cmd->flags = NVBUS_ARS_OVERFLOW;
			break;
		}
		cmd->records[cmd->num_records].err_address = e->start;
		cmd->records[cmd->num_records].length = e->length;
		cmd->num_records++;
	}
	spin_unlock(&nvbus.errors.lock);

	cmd->out_length = sizeof(*cmd) +
			  cmd->num_records * sizeof(cmd->records[0]);
	return 0;
}

/* How much of @len is cleared in the present mode. */
static u64 nvbus_clearable(u64 len, u32 unit)
{
	switch (READ_ONCE(nvbus.clear_mode)) {
	case NVBUS_CLEAR_OK:
		return len;
	case NVBUS_CLEAR_PARTIAL:
		return round_down(len / 2, unit);
	default:
		return 0;
	}
}

/*
 * As firmware does: clears in whole units, and whether anything was bad there
 * makes no difference.  libnvdimm forgets its copy of the range by itself.
 */
static int nvbus_clear_error(struct nd_cmd_clear_error *cmd)
{
	struct nvbus_region *r = nvbus_find_region(cmd->address, cmd->length);
	u32 unit = READ_ONCE(nvbus.clear_unit);

	atomic_inc(&nvbus.clears);
	cmd->cleared = 0;
	if (r && !((cmd->address | cmd->length) & (unit - 1)))
		cmd->cleared = nvbus_clearable(cmd->length, unit);
	if (!cmd->cleared) {
		atomic_inc(&nvbus.refused);
		cmd->status = NVBUS_STATUS_FAILED;
		return -EIO;
	}
	memset(r->mem + (cmd->address - r->res.start), NVBUS_SCRAP,
	       cmd->cleared);
	badrange_forget(&nvbus.errors, cmd->address, cmd->cleared);
	cmd->status = NVBUS_STATUS_OK;
	/* A short clear is told by a positive code, as the ACPI bus does. */
	return cmd->cleared < cmd->length ? cmd->cleared : 0;
}

static int nvbus_ctl(struct nvdimm_bus_descriptor *desc, struct nvdimm *nvdimm,
		     unsigned int cmd, void *buf, unsigned int buf_len,
		     int *cmd_rc)
{
	static const size_t min_len[] = {
		[ND_CMD_ARS_CAP] = sizeof(struct nd_cmd_ars_cap),
		[ND_CMD_ARS_START] = sizeof(struct nd_cmd_ars_start),
		[ND_CMD_ARS_STATUS] = sizeof(struct nd_cmd_ars_status),
		[ND_CMD_CLEAR_ERROR] = sizeof(struct nd_cmd_clear_error),
	};
	int rc;

	if (nvdimm || cmd >= ARRAY_SIZE(min_len) || !min_len[cmd])
		return -ENOTTY;
	if (buf_len < min_len[cmd])
		return -EINVAL;

	switch (cmd) {
	case ND_CMD_ARS_CAP:
		rc = nvbus_ars_cap(buf);
		break;
	case ND_CMD_ARS_START:
		rc = nvbus_ars_start(buf);
		break;
	case ND_CMD_ARS_STATUS:
		rc = nvbus_ars_status(buf, buf_len);
		break;
	default:
		rc = nvbus_clear_error(buf);
		break;
	}
	if (cmd_rc)
		*cmd_rc = rc;
	return 0;
}

static int nvbus_flush(struct nd_region *region, struct bio *bio)
{
	struct nvbus_region *r = nd_region_provider_data(region);

	/* Reserved memory persists for as long as anybody can look at it. */
	atomic_inc(&r->flushes);
	return -(int)READ_ONCE(r->flush_errno);
}

/* ----------------------------------------------------------------- debugfs */

static int nvbus_inject(struct nvbus_region *r, u64 offset, u64 len)
{
	u64 addr = r->res.start + offset;
	int rc;

	if (offset >= resource_size(&r->res) || !nvbus_find_region(addr, len))
		return -EINVAL;
	rc = badrange_add(&nvbus.errors, addr, len);
	if (rc)
		return rc;
	rc = nvdimm_bus_add_badrange(nvbus.bus, addr, len);
	if (rc)
		return rc;
	nvdimm_region_notify(r->region, NVDIMM_REVALIDATE_POISON);
	return 0;
}

static ssize_t nvbus_inject_write(struct file *file, const char __user *ubuf,
				  size_t count, loff_t *pos)
{
	struct nvbus_region *r = file_inode(file)->i_private;
	char text[64];
	s64 offset, len;
	int rc;

	if (count >= sizeof(text))
		return -EINVAL;
	if (copy_from_user(text, ubuf, count))
		return -EFAULT;
	text[count] = '\0';
	if (sscanf(text, "%lli %lli", &offset, &len) != 2 ||
	    offset < 0 || len <= 0)
		return -EINVAL;
	rc = nvbus_inject(r, offset, len);
	return rc ? rc : count;
}

static const struct file_operations nvbus_inject_fops = {
	.owner = THIS_MODULE,
	.open = simple_open,
	.write = nvbus_inject_write,
	.llseek = noop_llseek,
};

static int nvbus_list_show(struct seq_file *seq, void *unused)
{
	struct nvbus_region *r = seq->private;
	struct badrange_entry *e;

	spin_lock(&nvbus.errors.lock);
	list_for_each_entry(e, &nvbus.errors.list, list)
		if (e->start >= r->res.start && e->start <= r->res.end)
			seq_printf(seq, "%llu %llu\n", e->start - r->res.start,
				   e->length);
	spin_unlock(&nvbus.errors.lock);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(nvbus_list);

static int nvbus_clear_mode_show(struct seq_file *seq, void *unused)
{
	seq_printf(seq, "%s\n", nvbus_clear_modes[READ_ONCE(nvbus.clear_mode)]);
	return 0;
}

static int nvbus_clear_mode_open(struct inode *inode, struct file *file)
{
	return single_open(file, nvbus_clear_mode_show, NULL);
}

static ssize_t nvbus_clear_mode_write(struct file *file,
				      const char __user *ubuf, size_t count,
				      loff_t *pos)
{
	char text[16];
	int mode;

	if (count >= sizeof(text))
		return -EINVAL;
	if (copy_from_user(text, ubuf, count))
		return -EFAULT;
	text[count] = '\0';
	mode = sysfs_match_string(nvbus_clear_modes, text);
	if (mode < 0)
		return mode;
	WRITE_ONCE(nvbus.clear_mode, mode);
	return count;
}

static const struct file_operations nvbus_clear_mode_fops = {
	.owner = THIS_MODULE,
	.open = nvbus_clear_mode_open,
	.read = seq_read,
	.write = nvbus_clear_mode_write,
	.llseek = seq_lseek,
	.release = single_release,
};

static int nvbus_clear_unit_get(void *unused, u64 *val)
{
	*val = READ_ONCE(nvbus.clear_unit);
	return 0;
}

static int nvbus_clear_unit_set(void *unused, u64 val)
{
	if (!is_power_of_2(val) || val > SZ_1M)
		return -EINVAL;
	WRITE_ONCE(nvbus.clear_unit, val);
	return 0;
}
DEFINE_DEBUGFS_ATTRIBUTE(nvbus_clear_unit_fops, nvbus_clear_unit_get,
			 nvbus_clear_unit_set, "%llu\n");

static void nvbus_add_debugfs(void)
{
	struct dentry *dir = debugfs_create_dir(KBUILD_MODNAME, NULL);
	struct nvbus_region *r;

	nvbus.debugfs = dir;
	debugfs_create_file("clear_mode", 0644, dir, NULL,
			    &nvbus_clear_mode_fops);
	debugfs_create_file_unsafe("clear_unit", 0644, dir, NULL,
				   &nvbus_clear_unit_fops);
	debugfs_create_atomic_t("clears", 0444, dir, &nvbus.clears);
	debugfs_create_atomic_t("refused", 0444, dir, &nvbus.refused);

	for (r = nvbus.regions; r < nvbus.regions + nvbus.nr_regions; r++) {
		dir = debugfs_create_dir(dev_name(nd_region_dev(r->region)),
					 nvbus.debugfs);
		debugfs_create_file("inject", 0200, dir, r, &nvbus_inject_fops);
		debugfs_create_file("list", 0444, dir, r, &nvbus_list_fops);
		debugfs_create_u32("flush_errno", 0644, dir, &r->flush_errno);
		debugfs_create_atomic_t("flushes", 0444, dir, &r->flushes);
	}
}

/* ------------------------------------------------------------- set-up, end */

/* Only memory that the command line reserved: no RAM, no device's registers. */
static int nvbus_check_range(u64 addr, u64 len)
{
	struct nvbus_region *r;

	if (!len || !IS_ALIGNED(addr | len, SZ_2M) || addr + len < addr) {
		pr_err("%#llx+%#llx: start and size must be multiples of 2 MiB\n",
		       addr, len);
		return -EINVAL;
	}
	for (r = nvbus.regions; r < nvbus.regions + nvbus.nr_regions; r++)
		if (addr <= r->res.end && addr + len > r->res.start) {
			pr_err("%#llx+%#llx overlaps %pR\n", addr, len,
			       &r->res);
			return -EBUSY;
		}
	if (region_intersects(addr, len, IORESOURCE_SYSTEM_RAM,
			      IORES_DESC_NONE) != REGION_DISJOINT) {
		pr_err("%#llx+%#llx is System RAM: reserve it with memmap=%#llx$%#llx\n",
		       addr, len, len, addr);
		return -EBUSY;
	}
	if (region_intersects(addr, len, IORESOURCE_MEM,
			      IORES_DESC_RESERVED) != REGION_INTERSECTS) {
		pr_err("%#llx+%#llx is not all reserved memory\n", addr, len);
		return -EINVAL;
	}
	return 0;
}

static void nvbus_unmap(void)
{
	while (nvbus.nr_regions)
		memunmap(nvbus.regions[--nvbus.nr_regions].mem);
}

static int nvbus_map(void)
{
	unsigned int i;
	int rc = -EINVAL;

	if (!nr_start || nr_start != nr_size) {
		pr_err("start= and size= must name the same number of regions\n");
		return rc;
	}
	for (i = 0; i < nr_start; i++) {
		struct nvbus_region *r = &nvbus.regions[i];

		rc = nvbus_check_range(start[i], size[i]);
		if (rc)
			goto out_unmap;
		r->res.start = start[i];
		r->res.end = start[i] + size[i] - 1;
		r->res.flags = IORESOURCE_MEM;
		r->mem = memremap(start[i], size[i], MEMREMAP_WB);
		if (!r->mem) {
			rc = -ENOMEM;
			goto out_unmap;
		}
		nvbus.nr_regions++;
	}
	return 0;

out_unmap:
	nvbus_unmap();
	return rc;
}

static unsigned long nvbus_region_flags(void)
{
	unsigned long flags = 0;

	if (pagemap)
		flags |= BIT(ND_REGION_PAGEMAP);
	if (persist_cache)
		flags |= BIT(ND_REGION_PERSIST_CACHE);
	if (persist_memctrl)
		flags |= BIT(ND_REGION_PERSIST_MEMCTRL);
	if (async)
		flags |= BIT(ND_REGION_ASYNC);
	return flags;
}

static int nvbus_add_region(struct nvbus_region *r, unsigned int i)
{
	struct nd_mapping_desc mapping = { .size = size[i] };
	struct nd_region_desc desc = {
		.res = &r->res,
		.provider_data = r,
		.numa_node = node[i],
		.target_node = i < nr_target_node ? target_node[i] : node[i],
		.flags = nvbus_region_flags(),
		.flush = flush ? nvbus_flush : NULL,
	};

	if (desc.numa_node < 0 || desc.numa_node >= MAX_NUMNODES ||
	    !node_online(desc.numa_node)) {
		pr_err("there is no node %d\n", desc.numa_node);
		return -EINVAL;
	}
	if (dimm) {
		/* The region looks at its DIMM as soon as it is created. */
		r->dimm = nvdimm_create(nvbus.bus, r, NULL,
					BIT(NDD_REGISTER_SYNC), 0, 0, NULL);
		if (!r->dimm)
			return -ENOMEM;
		mapping.nvdimm = r->dimm;
		desc.mapping = &mapping;
		desc.num_mappings = 1;
	}
	r->region = nvdimm_pmem_region_create(nvbus.bus, &desc);
	return r->region ? 0 : -ENOMEM;
}

static void nvbus_forget_errors(void)
{
	struct badrange_entry *e, *next;

	list_for_each_entry_safe(e, next, &nvbus.errors.list, list) {
		list_del(&e->list);
		kfree(e);
	}
}

static int nvbus_register(void)
{
	unsigned int i;
	int rc = 0;

	nvbus.parent = root_device_register(KBUILD_MODNAME);
	if (IS_ERR(nvbus.parent))
		return PTR_ERR(nvbus.parent);
	nvbus.bus = nvdimm_bus_register(nvbus.parent, &nvbus.desc);
	if (!nvbus.bus) {
		rc = -ENOMEM;
		goto out_parent;
	}
	for (i = 0; i < nvbus.nr_regions && !rc; i++)
		rc = nvbus_add_region(&nvbus.regions[i], i);
	if (!rc)
		return 0;

	nvdimm_bus_unregister(nvbus.bus);
out_parent:
	root_device_unregister(nvbus.parent);
	return rc;
}

static int __init nvbus_init(void)
{
	int rc;

	badrange_init(&nvbus.errors);
	nvbus.clear_unit = 256;
	nvbus.desc.provider_name = KBUILD_MODNAME;
	nvbus.desc.module = THIS_MODULE;
	nvbus.desc.ndctl = nvbus_ctl;
	nvbus.desc.cmd_mask = BIT(ND_CMD_ARS_CAP) | BIT(ND_CMD_ARS_START) |
			      BIT(ND_CMD_ARS_STATUS) | BIT(ND_CMD_CLEAR_ERROR);

	rc = nvbus_map();
	if (rc)
		return rc;
	rc = nvbus_register();
	if (rc) {
		nvbus_unmap();
		return rc;
	}
	nvbus_add_debugfs();
	return 0;
}
module_init(nvbus_init);

static void __exit nvbus_exit(void)
{
	debugfs_remove_recursive(nvbus.debugfs);
	nvdimm_bus_unregister(nvbus.bus);
	root_device_unregister(nvbus.parent);
	nvbus_forget_errors();
	nvbus_unmap();
}
module_exit(nvbus_exit);

MODULE_DESCRIPTION("Test bus of persistent memory with media and flush errors to order");
MODULE_LICENSE("GPL");
