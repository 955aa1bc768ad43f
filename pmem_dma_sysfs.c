// SPDX-License-Identifier: GPL-2.0
/*
 * pmem_dma_sysfs - /sys/block/pmemN/dma/
 */
#include <linux/blkdev.h>
#include <linux/device.h>
#include <linux/dmaengine.h>
#include <linux/kstrtox.h>
#include <linux/percpu.h>
#include <linux/string.h>
#include <linux/sysfs.h>

#include "pmem_dma.h"

static const char * const pmem_dma_policy_names[] = {
	[PMEM_DMA_POLICY_AUTO] = "auto",
	[PMEM_DMA_POLICY_DMA] = "dma",
	[PMEM_DMA_POLICY_CPU] = "cpu",
};

static const char * const pmem_dma_path_names[PMEM_DMA_NR_PATHS] = {
	[PMEM_DMA_ENGINE] = "dma",
	[PMEM_DMA_CPU_CHOSEN] = "cpu",
	[PMEM_DMA_CPU_NO_CHANNEL] = "fallback_no_channel",
	[PMEM_DMA_CPU_BADBLOCK] = "fallback_badblock",
	[PMEM_DMA_CPU_SEGMENTS] = "fallback_segments",
	[PMEM_DMA_CPU_ALIGN] = "fallback_align",
	[PMEM_DMA_CPU_MAP] = "fallback_map",
	[PMEM_DMA_CPU_FULL] = "fallback_full",
	[PMEM_DMA_CPU_REDO] = "redone",
};

static struct pmem_dma_dev *dev_to_pd(struct device *dev)
{
	return dev_to_disk(dev)->private_data;
}

/* A line per queue and channel: queue, node, channel, its node, state, probes. */
static ssize_t channels_show(struct device *dev, struct device_attribute *attr,
			     char *buf)
{
	struct pmem_dma_dev *pd = dev_to_pd(dev);
	unsigned int i, k;
	int len = 0;

	pmem_dma_chans_lock();
	for (i = 0; i < pd->nr_queues; i++) {
		struct pmem_dma_queue *q = pd->queues[i];

		for (k = 0; k < q->nr_links; k++) {
			struct pmem_dma_chan *ch = q->links[k].ch;

			if (!ch)
				continue;
			len += sysfs_emit_at(buf, len, "%u %d %s %d %s %u\n", i,
					     q->nid, dma_chan_name(ch->chan),
					     ch->nid, pmem_dma_state_name(ch),
					     READ_ONCE(ch->probes));
		}
	}
	pmem_dma_chans_unlock();
	return len;
}
static DEVICE_ATTR_RO(channels);

/* A zero byte ends a string: what comes after it must not pass unseen. */
static bool pmem_dma_is_text(const char *buf, size_t len)
{
	return strnlen(buf, len) == len;
}

static ssize_t policy_show(struct device *dev, struct device_attribute *attr,
			   char *buf)
{
	unsigned int policy = READ_ONCE(dev_to_pd(dev)->policy);

	return sysfs_emit(buf, "%s\n", pmem_dma_policy_names[policy]);
}

static ssize_t policy_store(struct device *dev, struct device_attribute *attr,
			    const char *buf, size_t len)
{
	int policy = sysfs_match_string(pmem_dma_policy_names, buf);

	if (policy < 0 || !pmem_dma_is_text(buf, len))
		return -EINVAL;
	WRITE_ONCE(dev_to_pd(dev)->policy, policy);
	return len;
}
static DEVICE_ATTR_RW(policy);

static ssize_t pmem_dma_min_store(struct device *dev, const char *buf,
				  size_t len, int dir)
{
	u32 bytes;

	if (kstrtou32(buf, 10, &bytes) || !pmem_dma_is_text(buf, len))
		return -EINVAL;
	WRITE_ONCE(dev_to_pd(dev)->min_bytes[dir], bytes);
	return len;
}

static ssize_t read_min_bytes_show(struct device *dev,
				   struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%u\n", READ_ONCE(dev_to_pd(dev)->min_bytes[READ]));
}

static ssize_t read_min_bytes_store(struct device *dev,
				    struct device_attribute *attr,
				    const char *buf, size_t len)
{
	return pmem_dma_min_store(dev, buf, len, READ);
}
static DEVICE_ATTR_RW(read_min_bytes);

static ssize_t write_min_bytes_show(struct device *dev,
				    struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%u\n",
			  READ_ONCE(dev_to_pd(dev)->min_bytes[WRITE]));
}

static ssize_t write_min_bytes_store(struct device *dev,
				     struct device_attribute *attr,
				     const char *buf, size_t len)
{
	return pmem_dma_min_store(dev, buf, len, WRITE);
}
static DEVICE_ATTR_RW(write_min_bytes);

/* Counters of all CPUs; they run on while we add, so sums may be a bit apart. */
static void pmem_dma_sum(const struct pmem_dma_dev *pd,
			 struct pmem_dma_stats *sum)
{
	unsigned int cpu, i;

	memset(sum, 0, sizeof(*sum));
	for_each_possible_cpu(cpu) {
		const u64 *one = (const u64 *)per_cpu_ptr(pd->stats, cpu);

		for (i = 0; i < sizeof(*sum) / sizeof(u64); i++)
			((u64 *)sum)[i] += READ_ONCE(one[i]);
	}
}

static ssize_t stats_show(struct device *dev, struct device_attribute *attr,
			  char *buf)
{
	static const char * const dir[] = { "read", "write" };
	struct pmem_dma_dev *pd = dev_to_pd(dev);
	struct pmem_dma_stats sum;
	int len = 0, path, d;

	pmem_dma_sum(pd, &sum);
	for (d = 0; d < 2; d++) {
		for (path = 0; path < PMEM_DMA_NR_PATHS; path++)
			len += sysfs_emit_at(buf, len, "%s_requests_%s %llu\n",
					     dir[d], pmem_dma_path_names[path],
					     sum.requests[path][d]);
		len += sysfs_emit_at(buf, len,
				     "%s_bytes_dma %llu\n%s_bytes_cpu %llu\n",
				     dir[d], sum.bytes[d][0],
				     dir[d], sum.bytes[d][1]);
	}
	len += sysfs_emit_at(buf, len, "flushes %llu\n", sum.flushes);
	len += sysfs_emit_at(buf, len, "engine_errors %llu\n", sum.errors);
	len += sysfs_emit_at(buf, len, "timeouts %llu\n", sum.timeouts);
	len += sysfs_emit_at(buf, len, "in_flight %u\n",
			     pmem_dma_inflight(pd, NULL, NULL));
#ifdef CONFIG_BLK_DEV_PMEM_DMA_DEBUG_GENCTR
	len += sysfs_emit_at(buf, len, "spurious %llu\n", sum.spurious);
#endif
	return len;
}
static DEVICE_ATTR_RO(stats);

static bool pmem_dma_is_word(const char *buf, size_t len, const char *word)
{
	return sysfs_streq(buf, word) && pmem_dma_is_text(buf, len);
}

static int pmem_dma_check_one(const char *buf, size_t len)
{
	return pmem_dma_is_word(buf, len, "1") ? 0 : -EINVAL;
}

static ssize_t rescan_store(struct device *dev, struct device_attribute *attr,
			    const char *buf, size_t len)
{
	int rc = pmem_dma_check_one(buf, len);

	if (!rc)
		rc = pmem_dma_rescan(dev_to_pd(dev), true);
	return rc ? rc : len;
}
static DEVICE_ATTR_WO(rescan);

static ssize_t release_store(struct device *dev, struct device_attribute *attr,
			     const char *buf, size_t len)
{
	int rc = pmem_dma_check_one(buf, len);

	if (!rc)
		rc = pmem_dma_release(dev_to_pd(dev));
	return rc ? rc : len;
}
static DEVICE_ATTR_WO(release);

static ssize_t selftest_show(struct device *dev, struct device_attribute *attr,
			     char *buf)
{
	return pmem_dma_selftest_show(dev_to_pd(dev), buf);
}

static ssize_t selftest_store(struct device *dev, struct device_attribute *attr,
			      const char *buf, size_t len)
{
	int rc = pmem_dma_check_one(buf, len);

	if (!rc)
		rc = pmem_dma_selftest(dev_to_pd(dev));
	return rc ? rc : len;
}
static DEVICE_ATTR_RW(selftest);

static ssize_t calibrate_show(struct device *dev, struct device_attribute *attr,
			      char *buf)
{
	return pmem_dma_calibrate_show(dev_to_pd(dev), buf);
}

static ssize_t calibrate_store(struct device *dev,
			       struct device_attribute *attr, const char *buf,
			       size_t len)
{
	struct pmem_dma_dev *pd = dev_to_pd(dev);
	int rc;

	if (pmem_dma_is_word(buf, len, "apply"))
		rc = pmem_dma_calibrate_apply(pd);
	else if (pmem_dma_is_word(buf, len, "1"))
		rc = pmem_dma_calibrate(pd);
	else
		rc = -EINVAL;
	return rc ? rc : len;
}
static DEVICE_ATTR_RW(calibrate);

static struct attribute *pmem_dma_attrs[] = {
	&dev_attr_channels.attr,
	&dev_attr_policy.attr,
	&dev_attr_read_min_bytes.attr,
	&dev_attr_write_min_bytes.attr,
	&dev_attr_rescan.attr,
	&dev_attr_release.attr,
	&dev_attr_stats.attr,
	&dev_attr_selftest.attr,
	&dev_attr_calibrate.attr,
	NULL,
};

static const struct attribute_group pmem_dma_group = {
	.name = "dma",
	.attrs = pmem_dma_attrs,
};

const struct attribute_group *pmem_dma_groups[] = {
	&pmem_dma_group,
	NULL,
};
