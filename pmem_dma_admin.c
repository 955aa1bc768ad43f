// SPDX-License-Identifier: GPL-2.0
/*
 * pmem_dma_admin - copies that an administrator asks for
 *
 * The self-test has every channel of a disk copy between two buffers, one way and
 * the other, and from the media, and looks at the bytes.  The calibration has a
 * channel and the CPU copy the same lengths and finds from which on the channel
 * is faster.  Neither writes to the media.
 *
 * Their copies are requests of the disk's own tag set (REQ_OP_DRV_IN), so that
 * they get in nobody's way: they take turns with other requests, a channel in
 * trouble handles them as it does those, and whoever freezes the queue waits for
 * no more than the one that is under way.  To begin one on a frozen queue is
 * never waited for, because it may be frozen by the removal of the disk, which
 * in turn waits for the sysfs file that we are called from.  Nor need anyone stay
 * who is killed while a channel hangs: what the copy uses goes when that ends.
 *
 * To leave the CPU to others, a step does little, and sleeps so long after it that
 * fewer than one in ten thousand small requests meet one.
 */
#include <linux/blk-mq.h>
#include <linux/blkdev.h>
#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/gfp.h>
#include <linux/kref.h>
#include <linux/ktime.h>
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/sched/signal.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/sysfs.h>
#include <linux/time64.h>

#include "pmem.h"
#include "pmem_dma.h"

#define PMEM_DMA_TEST_BYTES	SZ_1K
#define PMEM_DMA_TEST_TRIES	5

/* How long a frozen queue is tried for. */
#define PMEM_DMA_ADMIN_TRIES	200
#define PMEM_DMA_ADMIN_PAUSE_MS	10

/*
 * Calibrated lengths: powers of two from the first on, as far as memory goes.  Not
 * more of them, because the kernel may clear a buffer when it hands it out, at once.
 */
#define PMEM_DMA_CAL_FIRST	SZ_4K
#define PMEM_DMA_CAL_ROUNDS	3
#define PMEM_DMA_CAL_PIECE	SZ_4K

/* A CPU's copy that is longer takes as long as its parts. */
#define PMEM_DMA_CAL_LINEAR	SZ_16K

/* To the point: with more slack, the end would wait for the CPU's next tick. */
static void pmem_dma_nap(void)
{
	usleep_range(150 * USEC_PER_MSEC, 150 * USEC_PER_MSEC + 50);
}

static void pmem_dma_admin_free(struct kref *refs)
{
	struct pmem_dma_admin *admin = container_of(refs, struct pmem_dma_admin,
						    refs);

	free_pages((unsigned long)admin->mem[0], get_order(admin->bytes));
	free_pages((unsigned long)admin->mem[1], get_order(admin->bytes));
	kfree(admin);
}

static void pmem_dma_admin_put(struct pmem_dma_admin *admin)
{
	kref_put(&admin->refs, pmem_dma_admin_free);
}

/* With buffers of that length, or shorter ones if memory is short. */
static struct pmem_dma_admin *pmem_dma_admin_new(size_t most, size_t least)
{
	gfp_t gfp = GFP_KERNEL | __GFP_NOWARN | __GFP_NORETRY;
	struct pmem_dma_admin *admin;

	for (; most >= least; most /= 2) {
		admin = kzalloc(sizeof(*admin), GFP_KERNEL);
		if (!admin)
			return NULL;
		kref_init(&admin->refs);
		admin->bytes = most;
		/* Which may clear them. */
		admin->mem[0] = (void *)__get_free_pages(gfp, get_order(most));
		pmem_dma_nap();
		admin->mem[1] = (void *)__get_free_pages(gfp, get_order(most));
		pmem_dma_nap();
		if (admin->mem[0] && admin->mem[1])
			return admin;
		pmem_dma_admin_put(admin);
	}
	return NULL;
}

/**
 * pmem_dma_admin_end() - a request of pmem_dma_admin_copy() is over
 * @admin: what it was about, not to be used any more
 * @sts: how it ended
 *
 * Context: Any.
 */
void pmem_dma_admin_end(struct pmem_dma_admin *admin, blk_status_t sts)
{
	admin->sts = sts;
	complete(&admin->done);
	pmem_dma_admin_put(admin);
}

/*
 * Have a channel do one copy.  0, -ENOENT if there is no such channel any more or
 * it is in trouble, -EOPNOTSUPP if it can't copy that, -EBUSY if the queue stays
 * frozen, -ENODEV if the disk goes, -EIO if the channel did not do it, -EINTR if
 * the caller was killed: then the copy may be under way, and neither the buffers
 * nor @admin may be used, but for pmem_dma_admin_put().
 */
static int pmem_dma_admin_copy(struct pmem_dma_dev *pd,
			       struct pmem_dma_admin *admin)
{
	struct pmem_dma_cmd *cmd;
	struct blk_plug plug;
	struct request *rq;
	unsigned int i;

	for (i = 0; i < PMEM_DMA_ADMIN_TRIES; i++) {
		if (test_bit(GD_DEAD, &pd->disk->state))
			return -ENODEV;
		if (fatal_signal_pending(current))
			return -EINTR;
		rq = blk_mq_alloc_request(pd->disk->queue, REQ_OP_DRV_IN,
					  BLK_MQ_REQ_NOWAIT);
		if (!IS_ERR(rq))
			break;
		if (PTR_ERR(rq) != -EAGAIN)
			return PTR_ERR(rq);
		msleep(PMEM_DMA_ADMIN_PAUSE_MS);
	}
	if (IS_ERR(rq))
		return -EBUSY;

	cmd = blk_mq_rq_to_pdu(rq);
	cmd->admin = admin;
	kref_get(&admin->refs);
	init_completion(&admin->done);
	/* So that it is begun here, not by a worker. */
	blk_start_plug(&plug);
	blk_execute_rq_nowait(rq, false);
	blk_finish_plug(&plug);
	/* Not woken by the channel: that would be two steps at a time. */
	pmem_dma_nap();
	if (wait_for_completion_killable(&admin->done))
		return -EINTR;
	switch (admin->sts) {
	case BLK_STS_OK:
		return 0;
	case BLK_STS_TARGET:
		return -ENOENT;
	case BLK_STS_NOTSUPP:
		return -EOPNOTSUPP;
	default:
		return -EIO;
	}
}

/* --------------------------------------------------------------- self-test */

/* A different content each time, so that what an earlier copy left is no proof. */
static void pmem_dma_fill(u64 *buf, size_t bytes, u64 seed)
{
	size_t i;

	for (i = 0; i < bytes / sizeof(*buf); i++)
		buf[i] = seed * 0x9e3779b97f4a7c15ULL + i;
}

static int pmem_dma_test_memory(struct pmem_dma_dev *pd,
				struct pmem_dma_admin *admin, void *to,
				void *from, u64 seed)
{
	int rc;

	pmem_dma_fill(from, PMEM_DMA_TEST_BYTES, seed);
	memset(to, ~0, PMEM_DMA_TEST_BYTES);
	pmem_dma_nap();
	admin->to = to;
	admin->from = from;
	rc = pmem_dma_admin_copy(pd, admin);
	if (rc)
		return rc;
	return memcmp(to, from, PMEM_DMA_TEST_BYTES) ? -EILSEQ : 0;
}

/* Others may write to the media meanwhile: each byte was there before, or after. */
static bool pmem_dma_plausible(const u8 *got, const u8 *before, const u8 *after)
{
	unsigned int i;

	if (!memcmp(got, before, PMEM_DMA_TEST_BYTES))
		return true;
	for (i = 0; i < PMEM_DMA_TEST_BYTES; i++)
		if (got[i] != before[i] && got[i] != after[i])
			return false;
	return true;
}

static int pmem_dma_read_media(struct pmem_dma_dev *pd, void *to, u64 offset,
			       size_t len)
{
	return blk_status_to_errno(pmem_core_copy(pd->pmem, false,
						  virt_to_phys(to), offset,
						  len));
}

static int pmem_dma_test_media(struct pmem_dma_dev *pd,
			       struct pmem_dma_admin *admin)
{
	void *before = admin->mem[1], *after = before + PMEM_DMA_TEST_BYTES;
	unsigned int try;
	int rc;

	if (pmem_core_is_bad(pd->pmem, 0, PMEM_DMA_TEST_BYTES))
		return 0;
	admin->to = admin->mem[0];
	admin->from = NULL;
	admin->offset = pmem_core_offset(pd->pmem, 0);
	for (try = 0; try < PMEM_DMA_TEST_TRIES; try++) {
		memset(admin->to, ~0, PMEM_DMA_TEST_BYTES);
		rc = pmem_dma_read_media(pd, before, admin->offset,
					 PMEM_DMA_TEST_BYTES);
		if (!rc)
			rc = pmem_dma_admin_copy(pd, admin);
		if (!rc)
			rc = pmem_dma_read_media(pd, after, admin->offset,
						 PMEM_DMA_TEST_BYTES);
		if (rc)
			return rc;
		if (pmem_dma_plausible(admin->to, before, after))
			return 0;
	}
	return -EILSEQ;
}

static int pmem_dma_test_link(struct pmem_dma_dev *pd,
			      struct pmem_dma_admin *admin)
{
	static const char * const what[] = { "there", "back", "media" };
	unsigned int step;
	int rc = 0;

	admin->len = PMEM_DMA_TEST_BYTES;
	for (step = 0; step < ARRAY_SIZE(what) && !rc; step++) {
		if (step == 0)
			rc = pmem_dma_test_memory(pd, admin, admin->mem[0],
						  admin->mem[1], jiffies);
		else if (step == 1)
			rc = pmem_dma_test_memory(pd, admin, admin->mem[1],
						  admin->mem[0], ~jiffies);
		else
			rc = pmem_dma_test_media(pd, admin);
	}
	admin->step = rc ? what[step - 1] : NULL;
	return rc;
}

/* Which link is the n-th?  Holes count, a channel shows up for each of its queues. */
static bool pmem_dma_admin_nth(struct pmem_dma_dev *pd,
			       struct pmem_dma_admin *admin, unsigned int n,
			       char *name, size_t size)
{
	struct pmem_dma_chan *ch = NULL;
	unsigned int i;

	pmem_dma_chans_lock();
	for (i = 0; i < pd->nr_queues; i++) {
		struct pmem_dma_queue *q = pd->queues[i];

		if (n < q->nr_links) {
			ch = q->links[n].ch;
			break;
		}
		n -= q->nr_links;
	}
	admin->queue = i;
	admin->link = n;
	strscpy(name, ch ? dma_chan_name(ch->chan) : "gone", size);
	pmem_dma_chans_unlock();
	return i < pd->nr_queues;
}

static const char *pmem_dma_test_verdict(int rc)
{
	switch (rc) {
	case 0:
		return "ok";
	case -EILSEQ:
		return "wrong data";
	case -ENOENT:
	case -EOPNOTSUPP:
		return "not usable";
	case -EBUSY:
		return "queue frozen";
	default:
		return "failed";
	}
}

/**
 * pmem_dma_selftest() - have each channel of a disk copy, and look at the bytes
 * @pd: the disk
 *
 * The result is for pmem_dma_selftest_show().
 *
 * Context: Process context.  Takes a second per channel, more if one hangs.
 * Return: 0 if all is well, -EIO if a channel is not, or another errno if the
 *	test could not be made.
 */
int pmem_dma_selftest(struct pmem_dma_dev *pd)
{
	struct pmem_dma_admin *admin;
	char name[32], *out = pd->selftest;
	size_t len = 0, size = sizeof(pd->selftest);
	unsigned int n;
	int rc, bad = 0;

	rc = mutex_lock_interruptible(&pd->admin_lock);
	if (rc)
		return rc;
	admin = pmem_dma_admin_new(2 * PMEM_DMA_TEST_BYTES,
				   2 * PMEM_DMA_TEST_BYTES);
	if (!admin) {
		rc = -ENOMEM;
		goto out_unlock;
	}
	out[0] = '\0';
	for (n = 0; pmem_dma_admin_nth(pd, admin, n, name, sizeof(name)); n++) {
		rc = pmem_dma_test_link(pd, admin);
		if (rc == -ENODEV || rc == -EINTR)
			goto out_put;
		if (rc)
			bad = -EIO;
		len += scnprintf(out + len, size - len, "%u %s %s%s%s\n",
				 admin->queue, name, pmem_dma_test_verdict(rc),
				 rc ? " " : "", rc ? admin->step : "");
	}
	if (!n)
		scnprintf(out, size, "no channel\n");
	rc = bad;
out_put:
	pmem_dma_admin_put(admin);
out_unlock:
	mutex_unlock(&pd->admin_lock);
	return rc;
}

/**
 * pmem_dma_selftest_show() - result of the last pmem_dma_selftest()
 * @pd: the disk
 * @buf: a page
 *
 * Context: Process context.  Waits for a run that is under way.
 * Return: bytes, or -EINTR.
 */
ssize_t pmem_dma_selftest_show(struct pmem_dma_dev *pd, char *buf)
{
	ssize_t len;

	/* A test on an engine that hangs may have it for long. */
	len = mutex_lock_interruptible(&pd->admin_lock);
	if (len)
		return len;
	len = sysfs_emit(buf, "%s", pd->selftest[0] ? pd->selftest :
			 "not run\n");
	mutex_unlock(&pd->admin_lock);
	return len;
}

/* ------------------------------------------------------------- calibration */

/*
 * In pieces, with a nap after each: who shares the CPU must not wait for a MiB.  To
 * let others go first (cond_resched()) would not do, since they need not be due.
 */
static int pmem_dma_cal_cpu(struct pmem_dma_dev *pd,
			    const struct pmem_dma_admin *admin, u64 *ns)
{
	u32 len = admin->len;
	u64 start;
	u32 at, piece;
	int rc = 0;

	*ns = 0;
	for (at = 0; at < len && !rc; at += piece) {
		piece = min_t(u32, len - at, PMEM_DMA_CAL_PIECE);
		start = ktime_get_ns();
		if (admin->from)
			memcpy_flushcache(admin->to + at, admin->from + at,
					  piece);
		else
			rc = pmem_dma_read_media(pd, admin->to + at,
						 admin->offset + at, piece);
		*ns += ktime_get_ns() - start;
		pmem_dma_nap();
	}
	return rc;
}

/* Set a length's cell; its predecessor is that of half the length. */
static int pmem_dma_cal_one(struct pmem_dma_dev *pd,
			    struct pmem_dma_admin *admin, bool write, u32 len,
			    u64 (*cell)[2])
{
	u64 *best = *cell, cpu;
	unsigned int round;
	int rc = 0;

	best[0] = U64_MAX;
	best[1] = U64_MAX;
	admin->to = admin->mem[0];
	admin->from = write ? admin->mem[1] : NULL;
	admin->offset = pmem_core_offset(pd->pmem, 0);
	admin->len = len;
	for (round = 0; round < PMEM_DMA_CAL_ROUNDS && !rc; round++) {
		rc = pmem_dma_admin_copy(pd, admin);
		if (rc)
			break;
		best[0] = min(best[0], admin->ns);
		if (len > PMEM_DMA_CAL_LINEAR)
			continue;
		rc = pmem_dma_cal_cpu(pd, admin, &cpu);
		best[1] = min(best[1], cpu);
	}
	if (len > PMEM_DMA_CAL_LINEAR)
		best[1] = 2 * cell[-1][1];
	return rc;
}

/* The shortest length from which on the channel was always faster. */
static u32 pmem_dma_cal_min(const struct pmem_dma_cal *cal, int dir)
{
	u32 best = U32_MAX;
	int i;

	for (i = cal->nr - 1; i >= 0; i--) {
		if (cal->ns[dir][i][0] > cal->ns[dir][i][1])
			break;
		best = PMEM_DMA_CAL_FIRST << i;
	}
	return best;
}

static int pmem_dma_cal_all(struct pmem_dma_dev *pd,
			    struct pmem_dma_admin *admin,
			    struct pmem_dma_cal *cal)
{
	u64 most = min_t(u64, admin->bytes,
			 get_capacity(pd->disk) << SECTOR_SHIFT);
	int dir, rc = 0;
	u32 len;

	for (cal->nr = 0; cal->nr < PMEM_DMA_CAL_NR; cal->nr++) {
		len = PMEM_DMA_CAL_FIRST << cal->nr;
		if (len > most)
			break;
		for (dir = 0; dir < 2; dir++) {
			rc = pmem_dma_cal_one(pd, admin, dir, len,
					      &cal->ns[dir][cal->nr]);
			if (rc == -EOPNOTSUPP && cal->nr)
				break;	/* longer than a descriptor */
			if (rc)
				return rc;
		}
		if (rc)
			break;
	}
	cal->min_bytes[READ] = pmem_dma_cal_min(cal, READ);
	cal->min_bytes[WRITE] = pmem_dma_cal_min(cal, WRITE);
	return 0;
}

/**
 * pmem_dma_calibrate() - find the lengths from which on a channel is faster
 * @pd: the disk
 *
 * Changes no setting.  The channel is the first of the disk; the copies of the
 * write direction go to memory, since the media is not written to.
 *
 * Context: Process context.  Takes some ten seconds.
 * Return: 0, -ENOENT if there is no channel, -EIO if it failed or the media is
 *	bad where it was read, or another errno.
 */
int pmem_dma_calibrate(struct pmem_dma_dev *pd)
{
	struct pmem_dma_cal cal = { };
	struct pmem_dma_admin *admin;
	char name[32];
	int rc;

	rc = mutex_lock_interruptible(&pd->admin_lock);
	if (rc)
		return rc;
	admin = pmem_dma_admin_new(PMEM_DMA_CAL_FIRST << (PMEM_DMA_CAL_NR - 1),
				   PMEM_DMA_CAL_FIRST);
	if (!admin) {
		rc = -ENOMEM;
		goto out_unlock;
	}
	rc = -ENOENT;
	if (pmem_dma_admin_nth(pd, admin, 0, name, sizeof(name)))
		rc = -EIO;
	if (rc == -EIO && !pmem_core_is_bad(pd->pmem, 0, admin->bytes))
		rc = pmem_dma_cal_all(pd, admin, &cal);
	if (!rc)
		pd->cal = cal;
	pmem_dma_admin_put(admin);
out_unlock:
	mutex_unlock(&pd->admin_lock);
	return rc;
}

/**
 * pmem_dma_calibrate_apply() - set the minimum lengths that were found
 * @pd: the disk
 *
 * Context: Process context.
 * Return: 0, -ENODATA without a calibration, or -EINTR.
 */
int pmem_dma_calibrate_apply(struct pmem_dma_dev *pd)
{
	int rc;

	rc = mutex_lock_interruptible(&pd->admin_lock);
	if (rc)
		return rc;
	rc = -ENODATA;
	if (pd->cal.nr) {
		WRITE_ONCE(pd->min_bytes[READ], pd->cal.min_bytes[READ]);
		WRITE_ONCE(pd->min_bytes[WRITE], pd->cal.min_bytes[WRITE]);
		rc = 0;
	}
	mutex_unlock(&pd->admin_lock);
	return rc;
}

/**
 * pmem_dma_calibrate_show() - result of the last pmem_dma_calibrate()
 * @pd: the disk
 * @buf: a page
 *
 * Context: Process context.  Waits for a run that is under way.
 * Return: bytes, or -EINTR.
 */
ssize_t pmem_dma_calibrate_show(struct pmem_dma_dev *pd, char *buf)
{
	const struct pmem_dma_cal *cal = &pd->cal;
	int len, i;

	len = mutex_lock_interruptible(&pd->admin_lock);
	if (len)
		return len;
	if (!cal->nr)
		len = sysfs_emit(buf, "not run\n");
	for (i = 0; i < cal->nr; i++)
		len += sysfs_emit_at(buf, len, "%lu %llu %llu %llu %llu\n",
				     (unsigned long)PMEM_DMA_CAL_FIRST << i,
				     cal->ns[READ][i][0], cal->ns[READ][i][1],
				     cal->ns[WRITE][i][0], cal->ns[WRITE][i][1]);
	if (cal->nr)
		len += sysfs_emit_at(buf, len,
				     "read_min_bytes %u\nwrite_min_bytes %u\n",
				     cal->min_bytes[READ], cal->min_bytes[WRITE]);
	mutex_unlock(&pd->admin_lock);
	return len;
}
