// SPDX-License-Identifier: GPL-2.0
/* Cases: what a driver finds, copies, interrupts, pace. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ioat-emu-test.h"

void test_discovery(void)
{
	struct vu_region_info region = { .argsz = sizeof(region), .index = VU_REGION_BAR0 };
	struct vu_irq_info irq = { .argsz = sizeof(irq), .index = VU_IRQ_MSIX };
	struct vu_device_info info = { .argsz = sizeof(info) };
	const __u32 cfg = VU_REGION_CONFIG, bar = VU_REGION_BAR0;
	pid_t pid = start("-n", "3");
	struct guest g;

	guest_connect(&g, sock0);
	check(!guest_ask(&g, VU_DEVICE_INFO, &info, sizeof(info), &info, sizeof(info)));
	check(info.regions == 9 && info.irqs == 3);
	check(info.flags == (VU_DEVICE_RESET | VU_DEVICE_PCI));
	check(!guest_ask(&g, VU_REGION_INFO, &region, sizeof(region), &region, sizeof(region)));
	check(region.size == HW_BAR_SIZE && region.flags == VU_REGION_RW);
	check(!guest_ask(&g, VU_IRQ_INFO, &irq, sizeof(irq), &irq, sizeof(irq)));
	check(irq.count == 3 && irq.flags == VU_IRQ_EVENTFD);

	check(guest_read(&g, cfg, 0, 4) == 0x20218086);
	guest_write(&g, cfg, 0x10, 4, 0xffffffff);
	check(guest_read(&g, cfg, 0x10, 4) == 0xffffc004);
	guest_write(&g, cfg, 0x30, 4, 0xffffffff);
	check(guest_read(&g, cfg, 0x30, 4) == 0);	/* no ROM */
	check(guest_read(&g, cfg, CFG_PCIE, 2) == (0x10 | CFG_MSIX << 8));
	check(guest_read(&g, cfg, CFG_MSIX, 4) == (0x11 | 2 << 16));
	guest_write(&g, cfg, CFG_CHANERR_INT, 4, 0xffffffff);
	check(guest_read(&g, cfg, CFG_CHANERR_INT, 4) == 0);

	check(guest_read(&g, bar, REG_CHANCNT, 1) == 3);
	check(guest_read(&g, bar, REG_XFERCAP, 1) == 20);
	check(guest_read(&g, bar, REG_VERSION, 1) == HW_VERSION);
	check(guest_read(&g, bar, REG_DMACAP, 4) == 0);
	check(chan_state(&g, 0) == STATE_HALTED);
	check(chan_read(&g, 3, CHAN_STATUS, 8) == 0);	/* there is no fourth channel */
	guest_close(&g);
	stop(pid);
}

void test_device_reset(void)
{
	pid_t pid = start(NULL, NULL);
	struct guest g;

	guest_open(&g, sock0);
	check(chan_begin(&g, 1));
	guest_write(&g, VU_REGION_CONFIG, 4, 2, 0x0006);
	check(guest_read(&g, VU_REGION_CONFIG, 4, 2) == 0x0006);
	check(accepted("stall 0 1 1"));
	check(!guest_call(&g, VU_RESET, NULL, 0, NULL, 0));
	check(guest_read(&g, VU_REGION_CONFIG, 4, 2) == 0);
	check(guest_read(&g, VU_REGION_BAR0, REG_INTRCTRL, 1) == 0);
	check(chan_state(&g, 1) == STATE_HALTED);
	guest_write(&g, VU_REGION_BAR0, REG_INTRCTRL, 1, INTRCTRL_MASTER_EN);
	check(chan_begin(&g, 1));	/* maps and vectors are still there, the stall is not */
	guest_close(&g);
	stop(pid);
}

static void copy_random(struct guest *g, int ch, int count, __u64 *bytes)
{
	const __u64 half = 8 * MIB;
	__u64 src = DATA_IOVA, dst = PMEM_IOVA;
	int i;

	fill(g->ram + DATA_IOVA, half, 1);
	memset(g->pmem, 0xee, half);
	for (i = 0; i < count; i++) {
		__u32 size = (__u32)(random() % 30000 + 1);

		chan_push(g, ch, dst, src, size, i == count - 1 ? LAST : 0);
		src += size;
		dst += size;
		*bytes += size;
	}
	chan_doorbell(g, ch);
}

void test_copy(void)
{
	pid_t pid = start(NULL, NULL);
	__u64 bytes = 0;
	struct guest g;

	guest_open(&g, sock0);
	check(chan_begin(&g, 0));
	check(accepted("reset-stats"));
	copy_random(&g, 0, 250, &bytes);
	check(chan_wait_done(&g, 0));
	check(chan_irqs(&g, 0, true) == 0);	/* the null descriptor's was not rearmed */
	chan_write(&g, 0, CHAN_CTRL, 2, CTRL_REARM);
	check(chan_irqs(&g, 0, true) == 1);
	check(!memcmp(g.pmem, g.ram + DATA_IOVA, bytes));
	check(g.pmem[bytes] == 0xee);
	check(chan_stat(0, 0, "bytes") == (long long)bytes);
	check(total("bytes") == (long long)bytes);
	check(total("descriptors") == 250);
	check(total("null_descriptors") == 0);
	check(total("interrupts") == 1 && total("held_interrupts") == 1);
	check(total("in_progress") == 0);

	fill(g.pmem, 5000, 2);		/* and back, from pmem */
	chan_push(&g, 0, DATA_IOVA + 7, PMEM_IOVA, 5000, LAST);
	chan_doorbell(&g, 0);
	check(chan_wait_done(&g, 0));
	check(!memcmp(g.ram + DATA_IOVA + 7, g.pmem, 5000));
	guest_close(&g);
	stop(pid);
}

void test_all_channels(void)
{
	pid_t pid = start(NULL, NULL);
	struct guest g[2];
	int d, ch, round;

	guest_open(&g[0], sock0);
	guest_open(&g[1], sock1);
	for (d = 0; d < 2; d++)
		for (ch = 0; ch < 4; ch++)
			check(chan_begin(&g[d], ch));
	check(accepted("reset-stats"));
	for (round = 0; round < 5; round++) {
		for (d = 0; d < 2; d++)
			for (ch = 0; ch < 4; ch++) {
				push_same(&g[d], ch, 1000, 4 * KIB);
				chan_doorbell(&g[d], ch);
			}
		for (d = 0; d < 2; d++)
			for (ch = 0; ch < 4; ch++)
				check(chan_wait_done(&g[d], ch));
	}
	check(total("descriptors") == 2 * 4 * 5 * 1000);
	check(total("bytes") == 2LL * 4 * 5 * 1000 * 4 * KIB);
	check(chan_stat(1, 3, "bytes") == 5LL * 1000 * 4 * KIB);
	guest_close(&g[0]);
	guest_close(&g[1]);
	stop(pid);
}

/* The count register has 16 bits and wraps round; so does the ring, elsewhere. */
void test_count_wraps(void)
{
	pid_t pid = start(NULL, NULL);
	struct guest g;
	int i;

	guest_open(&g, sock0);
	check(chan_begin(&g, 2));
	check(accepted("reset-stats"));
	for (i = 0; i < 140 && !failed; i++) {
		push_same(&g, 2, 500, 64);
		chan_doorbell(&g, 2);
		check(chan_wait_done(&g, 2));
	}
	check(total("descriptors") == 70000);
	check(total("bytes") == 70000LL * 64);
	guest_close(&g);
	stop(pid);
}

void test_interrupts(void)
{
	pid_t pid = start(NULL, NULL);
	struct guest g;
	int i;

	guest_open(&g, sock0);
	check(chan_begin(&g, 0));
	chan_write(&g, 0, CHAN_CTRL, 2, CTRL_REARM);
	for (i = 0; i < 3; i++) {
		chan_push(&g, 0, PMEM_IOVA, DATA_IOVA, 100, LAST);
		chan_doorbell(&g, 0);
		check(chan_wait_done(&g, 0));
	}
	check(chan_irqs(&g, 0, true) == 1);
	check(guest_read(&g, VU_REGION_BAR0, REG_ATTNSTATUS, 4) == 1);
	chan_write(&g, 0, CHAN_CTRL, 2, CTRL_REARM);	/* two more became one */
	check(chan_irqs(&g, 0, true) == 1);
	check(guest_read(&g, VU_REGION_BAR0, REG_ATTNSTATUS, 4) == 0);

	guest_write(&g, VU_REGION_BAR0, REG_INTRCTRL, 1, 0);
	chan_write(&g, 0, CHAN_CTRL, 2, CTRL_REARM);
	chan_push(&g, 0, PMEM_IOVA, DATA_IOVA, 100, LAST);
	chan_doorbell(&g, 0);
	check(chan_wait_done(&g, 0));
	check(chan_irqs(&g, 0, false) == 0);
	guest_write(&g, VU_REGION_BAR0, REG_INTRCTRL, 1, INTRCTRL_MASTER_EN);
	check(chan_irqs(&g, 0, true) == 1);
	guest_close(&g);
	stop(pid);
}

void test_suspend_and_reset(void)
{
	pid_t pid = start(NULL, NULL);
	struct guest g;

	guest_open(&g, sock0);
	check(chan_begin(&g, 0));
	chan_write(&g, 0, CHAN_CMD, 1, CMD_SUSPEND);
	check(chan_state(&g, 0) == STATE_SUSPENDED);
	chan_push(&g, 0, PMEM_IOVA, DATA_IOVA, 100, LAST);
	chan_doorbell(&g, 0);
	usleep(20000);
	check(chan_state(&g, 0) == STATE_SUSPENDED);
	chan_write(&g, 0, CHAN_CMD, 1, CMD_RESUME);
	check(chan_wait_done(&g, 0));

	/* a slow copy: suspends when it is over, a reset does not wait for it */
	check(accepted("rate 0 0 0 100000"));
	chan_push(&g, 0, PMEM_IOVA, DATA_IOVA, 100, LAST);
	chan_push(&g, 0, PMEM_IOVA, DATA_IOVA, 100, LAST);
	chan_doorbell(&g, 0);
	usleep(20000);
	chan_write(&g, 0, CHAN_CMD, 1, CMD_SUSPEND);
	check(chan_wait_state(&g, 0, STATE_SUSPENDED));
	check(chan_stat(0, 0, "in_progress") == 1);
	chan_reset(&g, 0);
	check(chan_state(&g, 0) == STATE_HALTED);
	check(accepted("rate 0 0 0 0"));
	check(chan_begin(&g, 0));
	guest_close(&g);
	stop(pid);
}

/* A sanitizer makes copies so slow that only the lower limit of a time means something. */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
static const bool slow_build = true;
#else
static const bool slow_build;
#endif

/*
 * Never faster than the model. How much slower depends on what else the machine does, so the upper
 * limit only catches a wrong unit; the figures are printed.
 */
static void check_pace(const char *what, double took, double model)
{
	printf("# %s: %.4f s, model %.4f s (%+.2f %%)\n", what, took, model,
	       (took / model - 1) * 100);
	check(took > model * 0.97);
	check(slow_build || took < model * 3 + 1);
}

static double run_chans(struct guest *g, int nchans, int count, __u32 size)
{
	double t;
	int ch;

	for (ch = 0; ch < nchans; ch++)
		push_same(g, ch, count, size);
	t = now_s();
	for (ch = 0; ch < nchans; ch++)
		chan_doorbell(g, ch);
	for (ch = 0; ch < nchans; ch++)
		check(chan_wait_done(g, ch));
	return now_s() - t;
}

/* One copy at a time, each waited for by its interrupt. */
static double run_single(struct guest *g, int count, __u32 size)
{
	double t = now_s();
	int i;

	for (i = 0; i < count; i++) {
		chan_write(g, 0, CHAN_CTRL, 2, CTRL_REARM);
		push_same(g, 0, 1, size);
		chan_doorbell(g, 0);
		check(chan_irqs(g, 0, true) == 1);
	}
	return now_s() - t;
}

void test_pace(void)
{
	pid_t pid = start("-B", "1000");
	struct guest g;
	int ch;

	guest_open(&g, sock0);
	for (ch = 0; ch < 4; ch++)
		check(chan_begin(&g, ch));
	run_chans(&g, 4, 1, MIB);	/* first use of memory is slow */
	check_pace("-B 1000, 400 x 1 MiB", run_chans(&g, 1, 400, MIB), 400.0 * MIB / 1000 / MB);
	check(accepted("rate * * 500 0"));
	check_pace("500 MB/s, 4 channels of 500 x 64 KiB", run_chans(&g, 4, 500, 64 * KIB),
		   500.0 * 64 * KIB / 500 / MB);
	check(accepted("rate 0 0 0 400"));
	check_pace("400 us, 500 x 4 KiB", run_chans(&g, 1, 500, 4 * KIB), 500 * 0.0004);
	chan_irqs(&g, 0, true);
	check_pace("400 us, 500 x 4 KiB one by one", run_single(&g, 500, 4 * KIB), 500 * 0.0004);
	check(accepted("rate 0 0 11784 7.41"));
	check_pace("7.41 us + 11784 MB/s, 1000 x 4 KiB", run_chans(&g, 1, 1000, 4 * KIB),
		   1000 * 0.00000741 + 1000 * 4.0 * KIB / 11784 / MB);
	check(accepted("rate * * 1000 0") && accepted("cap 0 1000"));
	check_pace("cap 1000 MB/s, 4 channels of 100 x 1 MiB", run_chans(&g, 4, 100, MIB),
		   400.0 * MIB / 1000 / MB);
	check(accepted("rate * * 0 0") && accepted("cap * 0"));
	printf("# no limit, 4 channels of 1000 x 64 KiB: %.0f MB/s\n",
	       4000.0 * 64 * KIB / run_chans(&g, 4, 1000, 64 * KIB) / MB);
	guest_close(&g);
	stop(pid);
}
