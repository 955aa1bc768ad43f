// SPDX-License-Identifier: GPL-2.0
/* Cases: injected errors, faults, stalls, memory that comes and goes. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "ioat-emu-test.h"

static void check_failed(struct guest *g, int ch, __u32 err, __u64 last)
{
	check(chan_wait_state(g, ch, STATE_HALTED));
	check(chan_read(g, ch, CHAN_ERR, 4) == err);
	check(chan_done_word(g, ch) == (last | STATE_HALTED));
}

void test_injected_error(void)
{
	pid_t pid = start(NULL, NULL);
	struct guest g;
	__u64 last = 0;
	int i;

	guest_open(&g, sock0);
	check(chan_begin(&g, 0));
	check(accepted("reset-stats"));
	check(accepted("err 0 0 100 3"));
	memset(g.pmem, 0xee, 6 * 4096);
	fill(g.ram + DATA_IOVA, 6 * 4096, 3);
	for (i = 0; i < 6; i++) {
		__u64 at = chan_push(&g, 0, PMEM_IOVA + i * 4096, DATA_IOVA + i * 4096, 4096, LAST);

		if (i == 2)
			last = at;
	}
	chan_doorbell(&g, 0);
	check_failed(&g, 0, ERR_READ_DATA, last);
	check(!memcmp(g.pmem, g.ram + DATA_IOVA, 3 * 4096));
	check(g.pmem[3 * 4096] == 0xee);
	check(total("bytes") == 3 * 4096 && total("descriptors") == 3);
	check(total("errors") == 1);
	chan_write(&g, 0, CHAN_COUNT, 2, 7);	/* a failed channel does not go on by itself */
	check(chan_state(&g, 0) == STATE_HALTED);

	check(chan_begin(&g, 0));
	push_same(&g, 0, 10, 4096);		/* and the injected error is used up */
	chan_doorbell(&g, 0);
	check(chan_wait_done(&g, 0));
	check(total("bytes") == 13 * 4096);
	guest_close(&g);
	stop(pid);
}

static void copy_fails(struct guest *g, __u64 dst, __u64 src, __u32 size, __u32 ctl, __u32 err)
{
	__u64 last = RING_IOVA(0);

	check(chan_begin(g, 0));
	chan_push(g, 0, dst, src, size, ctl);
	chan_doorbell(g, 0);
	check_failed(g, 0, err, last);
}

void test_faults(void)
{
	const __u64 hole = 2ULL << 30, ro = 8ULL << 30, rom = 9ULL << 30;
	pid_t pid = start("-x", "16");
	struct guest g;

	guest_open(&g, sock0);
	check(!guest_map(&g, ro, MIB, VU_MAP_READ, g.pmem_fd, 0));
	check(!guest_map(&g, rom, MIB, VU_MAP_READ, -1, 0));
	check(accepted("reset-stats"));
	copy_fails(&g, PMEM_IOVA, hole, 4096, LAST, ERR_READ_DATA);
	copy_fails(&g, PMEM_IOVA, rom, 4096, LAST, ERR_READ_DATA);
	copy_fails(&g, hole, DATA_IOVA, 4096, LAST, ERR_WRITE_DATA);
	copy_fails(&g, ro, DATA_IOVA, 4096, LAST, ERR_WRITE_DATA);
	copy_fails(&g, PMEM_IOVA, RAM_SIZE - 100, 4096, LAST, ERR_READ_DATA);
	check(dev_stat(0, "faults", "read") == 3 && dev_stat(0, "faults", "write") == 2);
	check(total("errors") == 5);
	check(total("bytes") == 0);

	copy_fails(&g, PMEM_IOVA, DATA_IOVA, 0, LAST, ERR_LENGTH);
	copy_fails(&g, PMEM_IOVA, DATA_IOVA, 65537, LAST, ERR_LENGTH);
	copy_fails(&g, PMEM_IOVA, DATA_IOVA, 4096, LAST | 0x87U << 24, ERR_CONTROL);
	check(chan_begin(&g, 0));
	chan_push(&g, 0, PMEM_IOVA, DATA_IOVA, 65536, LAST);
	chan_doorbell(&g, 0);
	check(chan_wait_done(&g, 0));
	check(total("bytes") == 65536);
	guest_close(&g);
	stop(pid);
}

static void chain_fails(struct guest *g, __u64 chain, __u64 completion, __u32 ctl, __u32 err)
{
	chan_reset(g, 0);
	g->head[0] = 0;
	chan_push(g, 0, 0, 0, 1, ctl);
	chan_write(g, 0, CHAN_COMPLETION, 8, completion);
	chan_write(g, 0, CHAN_CHAIN, 8, chain);
	chan_write(g, 0, CHAN_COUNT, 2, 1);
	check(chan_wait_state(g, 0, STATE_HALTED));
	check(chan_read(g, 0, CHAN_ERR, 4) == err);
}

void test_bad_addresses(void)
{
	const __u64 hole = 2ULL << 30;
	const __u32 null = DESC_NULL | LAST;
	pid_t pid = start(NULL, NULL);
	struct guest g;

	guest_open(&g, sock0);
	chain_fails(&g, hole, DONE_IOVA(0), null, ERR_NEXT_ADDR);
	chain_fails(&g, RING_IOVA(0) + 8, DONE_IOVA(0), null, ERR_NEXT_ALIGN);
	chain_fails(&g, RING_IOVA(0), hole, null, ERR_COMPLETION_ADDR);
	chain_fails(&g, RING_IOVA(0), DONE_IOVA(0) + 4, null, ERR_COMPLETION_ADDR);
	check(chan_begin(&g, 0));
	guest_close(&g);
	stop(pid);
}

void test_stall(void)
{
	pid_t pid = start(NULL, NULL);
	struct guest g;

	guest_open(&g, sock0);
	check(chan_begin(&g, 0) && chan_begin(&g, 1));
	check(accepted("stall 0 0 1"));
	push_same(&g, 0, 5, 4096);
	chan_doorbell(&g, 0);
	push_same(&g, 1, 5, 4096);
	chan_doorbell(&g, 1);
	check(chan_wait_done(&g, 1));		/* the other channel is not affected */
	usleep(50000);
	check(chan_state(&g, 0) == STATE_ACTIVE);
	check(chan_stat(0, 0, "in_progress") == 5);
	check(accepted("stall * * 0"));
	check(chan_wait_done(&g, 0));

	check(accepted("stall 0 0 1"));		/* a reset gets through, what was hanging is lost */
	check(accepted("reset-stats"));
	push_same(&g, 0, 5, 4096);
	chan_doorbell(&g, 0);
	chan_reset(&g, 0);
	check(chan_state(&g, 0) == STATE_HALTED);
	check(accepted("stall 0 0 0"));
	check(chan_begin(&g, 0));
	check(total("bytes") == 0);
	guest_close(&g);
	stop(pid);
}

void test_delay(void)
{
	pid_t pid = start(NULL, NULL);
	struct guest g;
	double t;

	guest_open(&g, sock0);
	check(chan_begin(&g, 0));
	check(accepted("delay 0 0 100000"));
	push_same(&g, 0, 2, 4096);
	t = now_s();
	chan_doorbell(&g, 0);
	check(chan_wait_done(&g, 0));
	t = now_s() - t;
	check(t > 0.2 && t < 2);

	check(accepted("delay 0 0 60000000"));
	check(accepted("reset-stats"));
	push_same(&g, 0, 2, 4096);
	chan_doorbell(&g, 0);
	usleep(20000);
	t = now_s();
	chan_reset(&g, 0);			/* ioatdma would give up after 200 ms */
	check(now_s() - t < 0.15);
	check(accepted("delay 0 0 0"));
	check(chan_begin(&g, 0));
	check(total("bytes") == 0);
	guest_close(&g);
	stop(pid);
}

void test_copy_across_maps(void)
{
	const __u64 base = 16ULL << 30;
	const __u32 rw = VU_MAP_READ | VU_MAP_WRITE;
	pid_t pid = start(NULL, NULL);
	struct guest g;
	int i;

	guest_open(&g, sock0);
	/* 16 pages, mapped one by one and last page first */
	for (i = 15; i >= 0; i--)
		check(!guest_map(&g, base + i * 4096, 4096, rw, g.pmem_fd, (__u64)(15 - i) * 4096));
	check(guest_map(&g, base + 4096, 4096, rw, g.pmem_fd, 0) == EEXIST);
	check(guest_map(&g, base - 4096, 8192, rw, g.pmem_fd, 0) == EEXIST);
	check(guest_map(&g, base + (1 << 20), 0, rw, g.pmem_fd, 0) == EINVAL);
	check(guest_map(&g, ~0ULL - 4095, 8192, rw, g.pmem_fd, 0) == EINVAL);
	check(dev_stat(0, "maps", "now") == 18);

	fill(g.ram + DATA_IOVA, 16 * 4096, 4);
	check(chan_begin(&g, 0));
	chan_push(&g, 0, base, DATA_IOVA, 16 * 4096, LAST);
	chan_doorbell(&g, 0);
	check(chan_wait_done(&g, 0));
	for (i = 0; i < 16; i++)
		check(!memcmp(g.pmem + (15 - i) * 4096, g.ram + DATA_IOVA + i * 4096, 4096));

	check(guest_unmap(&g, base + 100, 4096) == EINVAL);
	check(guest_unmap(&g, base + 3 * 4096, 2 * 4096) == 0);
	check(guest_unmap(&g, base + 3 * 4096, 2 * 4096) == 0);	/* nothing there: no harm */
	check(dev_stat(0, "maps", "now") == 16 && dev_stat(0, "maps", "most") == 18);
	copy_fails(&g, base, DATA_IOVA, 16 * 4096, LAST, ERR_WRITE_DATA);
	guest_close(&g);
	stop(pid);
}

void test_many_maps(void)
{
	const __u64 base = 16ULL << 30;
	pid_t pid = start(NULL, NULL);
	struct guest g;
	int i;

	guest_open(&g, sock0);
	for (i = 0; i < 20000 && !failed; i++)
		check(!guest_map(&g, base + (__u64)i * 8192, 4096, VU_MAP_READ, g.pmem_fd, 0));
	check(dev_stat(0, "maps", "most") == 20002);
	check(!guest_unmap(&g, base, 20000ULL * 8192));
	check(dev_stat(0, "maps", "now") == 2);
	guest_close(&g);
	stop(pid);
}

static void wait_disconnected(void)
{
	int i;

	for (i = 0; i < 1000 && strstr(say("stats"), "\"connected\":true"); i++)
		usleep(2000);
	check(!strstr(reply, "\"connected\":true"));
}

/* The memory is gone under a running chain: a fault for the guest, nothing worse for us. */
void test_unmap_while_running(void)
{
	pid_t pid = start(NULL, NULL);
	struct guest g;
	long long done;

	guest_open(&g, sock0);
	check(chan_begin(&g, 0) && chan_begin(&g, 1));
	check(accepted("reset-stats"));
	push_same(&g, 0, 1000, MIB);
	push_same(&g, 1, 1000, MIB);
	chan_doorbell(&g, 0);
	chan_doorbell(&g, 1);
	check(!guest_unmap(&g, PMEM_IOVA, PMEM_SIZE));
	memset(g.pmem, 0xee, 8 * MIB);		/* nobody may write there any more */
	check(chan_wait_state(&g, 0, STATE_HALTED));
	check(chan_wait_state(&g, 1, STATE_HALTED));
	usleep(10000);
	check(g.pmem[0] == 0xee && g.pmem[MIB - 1] == 0xee && g.pmem[4 * MIB] == 0xee);
	check(chan_read(&g, 0, CHAN_ERR, 4) == ERR_WRITE_DATA);
	done = total("descriptors");
	check(done < 2000 && total("bytes") == done * MIB);
	guest_close(&g);
	stop(pid);
}

void test_client_returns(void)
{
	pid_t pid = start(NULL, NULL);
	struct guest g;
	int i;

	for (i = 0; i < 5; i++) {
		guest_open(&g, sock0);
		check(accepted("rate 0 * 20 5"));
		check(chan_begin(&g, 0) && chan_begin(&g, 3));
		push_same(&g, 0, 500, MIB);
		push_same(&g, 3, 500, MIB);
		chan_doorbell(&g, 0);
		chan_doorbell(&g, 3);
		check(accepted("stall 0 1 1"));
		guest_close(&g);		/* in the middle of all that */
		wait_disconnected();
		check(dev_stat(0, "maps", "now") == 0);
		check(!strstr(say("stats"), "\"stalled\":true"));
	}
	check(accepted("rate * * 0 0"));
	check(dev_stat(0, "faults", "read") == 0 && dev_stat(0, "faults", "write") == 0);
	guest_open(&g, sock0);
	check(chan_state(&g, 0) == STATE_HALTED);
	check(chan_begin(&g, 0));
	guest_close(&g);
	stop(pid);
}

void test_bad_messages(void)
{
	__u8 junk[64] = { 0 };
	struct vu_region_rw rw = { .region = VU_REGION_BAR0, .count = 16 };
	struct vu_set_irqs irqs = {
		.argsz = sizeof(irqs),
		.flags = VU_SET_EVENTFD | VU_SET_TRIGGER,
		.index = VU_IRQ_MSIX,
		.start = 0xffffffff,
		.count = 2,
	};
	pid_t pid = start(NULL, NULL);
	struct guest g;

	guest_connect(&g, sock0);
	check(guest_call(&g, 99, junk, 8, NULL, 0) == EOPNOTSUPP);
	check(guest_call(&g, VU_REGION_IO_FDS, junk, 64, NULL, 0) == EOPNOTSUPP);
	check(guest_call(&g, VU_DMA_MAP, junk, 8, NULL, 0) == EINVAL);
	check(guest_call(&g, VU_SET_IRQS, &irqs, sizeof(irqs), NULL, 0) == EINVAL);
	check(guest_call(&g, VU_REGION_READ, &rw, sizeof(rw), NULL, 0) == EINVAL);
	rw.count = 4;
	rw.offset = ~0ULL - 1;
	check(guest_call(&g, VU_REGION_READ, &rw, sizeof(rw), NULL, 0) == EINVAL);
	rw.offset = 0;
	check(guest_call(&g, VU_REGION_WRITE, &rw, sizeof(rw), NULL, 0) == EINVAL);
	rw.region = 77;
	check(guest_call(&g, VU_REGION_READ, &rw, sizeof(rw), NULL, 0) == EINVAL);
	check(guest_read(&g, VU_REGION_BAR0, REG_VERSION, 1) == HW_VERSION);

	check(guest_send_raw(&g, VU_DMA_MAP, 1U << 30, junk, sizeof(junk)));
	check(guest_call(&g, VU_RESET, NULL, 0, NULL, 0) == -1);	/* that was too much */
	guest_close(&g);
	guest_connect(&g, sock0);
	check(guest_send_raw(&g, VU_RESET, 3, junk, 0));
	check(guest_call(&g, VU_RESET, NULL, 0, NULL, 0) == -1);
	guest_close(&g);
	guest_connect(&g, sock0);
	guest_close(&g);
	stop(pid);
}
