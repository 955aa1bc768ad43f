// SPDX-License-Identifier: GPL-2.0
/* plan_test - what pmem_dma decides without looking at the machine */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pmem_dma_plan.h"

#define PAGE		4096u
#define MAX_SEGS	8u

static int tests, failures;

static void check(bool ok, const char *what)
{
	tests++;
	failures += !ok;
	printf("%sok %d - %s\n", ok ? "" : "not ", tests, what);
}

struct fixture {
	struct pmem_dma_seg segs[MAX_SEGS + 1];	/* one more, to see an overrun */
	struct pmem_dma_plan plan;
	struct pmem_dma_limits limits;
};

static struct fixture fresh(u32 max_len, u32 align_mask)
{
	struct fixture f;

	memset(&f, 0xa5, sizeof(f));
	f.plan.max_segs = MAX_SEGS;
	f.plan.nr = 0;
	f.limits.max_len = max_len;
	f.limits.align_mask = align_mask;
	return f;
}

static enum pmem_dma_path add(struct fixture *f, u64 addr, u32 len)
{
	f->plan.segs = f->segs;	/* the fixture moves when it is returned */
	return pmem_dma_plan_add(&f->plan, &f->limits, addr, len);
}

static bool seg_is(const struct fixture *f, u32 i, u64 addr, u32 len)
{
	return i < f->plan.nr && f->segs[i].addr == addr && f->segs[i].len == len;
}

static void test_join(void)
{
	struct fixture f = fresh(1u << 30, 0);

	add(&f, 0x10000, PAGE);
	add(&f, 0x11000, PAGE);
	check(f.plan.nr == 1 && seg_is(&f, 0, 0x10000, 2 * PAGE),
	      "memory that follows on joins the segment");
	add(&f, 0x20000, PAGE);
	check(f.plan.nr == 2 && seg_is(&f, 1, 0x20000, PAGE),
	      "memory elsewhere starts a new one");
	add(&f, 0x1f000, PAGE);
	check(f.plan.nr == 3, "memory just before does not join");
}

static void test_max_len(void)
{
	struct fixture f = fresh(3 * PAGE, 0);

	check(add(&f, 0x10000, 7 * PAGE) == PMEM_DMA_ENGINE && f.plan.nr == 3 &&
	      seg_is(&f, 0, 0x10000, 3 * PAGE) &&
	      seg_is(&f, 1, 0x13000, 3 * PAGE) &&
	      seg_is(&f, 2, 0x16000, PAGE), "long memory is cut at max_len");
	check(add(&f, 0x17000, 4 * PAGE) == PMEM_DMA_ENGINE && f.plan.nr == 4 &&
	      seg_is(&f, 2, 0x16000, 3 * PAGE) &&
	      seg_is(&f, 3, 0x19000, 2 * PAGE),
	      "joining fills the segment, the rest starts a new one");
	f = fresh(3 * PAGE, 0);
	add(&f, 0x10000, 3 * PAGE);
	add(&f, 0x13000, 512);
	check(f.plan.nr == 2 && seg_is(&f, 0, 0x10000, 3 * PAGE) &&
	      seg_is(&f, 1, 0x13000, 512), "a full segment is not joined");
}

static void test_max_segs(void)
{
	struct fixture f = fresh(1u << 30, 0);
	struct pmem_dma_seg guard = f.segs[MAX_SEGS];
	u32 i;

	for (i = 0; i < MAX_SEGS; i++)
		add(&f, 0x10000ull * (i + 1), PAGE);
	check(f.plan.nr == MAX_SEGS, "num_sg segments fit");
	check(add(&f, 0x900000, PAGE) == PMEM_DMA_CPU_SEGMENTS,
	      "one more is for the CPU");
	check(!memcmp(&guard, &f.segs[MAX_SEGS], sizeof(guard)),
	      "nothing is written past the last one");
	check(add(&f, 0x10000ull * MAX_SEGS + PAGE, PAGE) == PMEM_DMA_ENGINE,
	      "what joins the last one still fits");
}

static void test_align(void)
{
	struct fixture f = fresh(1u << 20, 63);

	check(add(&f, 0x10020, 4096) == PMEM_DMA_CPU_ALIGN,
	      "an address the engine cannot take");
	check(add(&f, 0x10000, 4000) == PMEM_DMA_CPU_ALIGN,
	      "a length the engine cannot take");
	check(add(&f, 0x10040, 512) == PMEM_DMA_ENGINE, "aligned memory");
	f = fresh(1u << 20, 0);
	check(add(&f, 0x10001, 511) == PMEM_DMA_ENGINE,
	      "an engine without alignment takes any byte");
}

static void test_high(void)
{
	struct fixture f = fresh(1u << 30, 0);

	add(&f, 0xfffff000ull, PAGE);
	add(&f, 0x100000000ull, PAGE);
	check(f.plan.nr == 1 && seg_is(&f, 0, 0xfffff000ull, 2 * PAGE),
	      "segments cross 4 GiB");
}

/*
 * Random memory: the segments must name the same bytes in the same order, none
 * longer than allowed, and as few as a joining list of that memory has.
 */
static bool random_once(unsigned int seed)
{
	struct pmem_dma_seg segs[256];
	struct pmem_dma_plan plan = { .segs = segs, .max_segs = 256 };
	struct pmem_dma_limits limits;
	u64 at[64], pos = 0, in_seg = 0;
	u32 len[64], n, i, s = 0, k;

	srand(seed);
	limits.max_len = (1 + rand() % 16) * 512;
	limits.align_mask = 511;
	n = 1 + rand() % 16;
	for (i = 0; i < n; i++) {
		len[i] = (1 + rand() % 16) * 512;
		at[i] = i && rand() % 2 ? at[i - 1] + len[i - 1] :
			(u64)(1 + rand() % 1000) << 20;
		if (pmem_dma_plan_add(&plan, &limits, at[i], len[i]) !=
		    PMEM_DMA_ENGINE)
			return false;
	}
	for (i = 0; i < n; i++) {
		for (k = 0; k < len[i]; k += 512, pos += 512) {
			if (s >= plan.nr || segs[s].addr + in_seg != at[i] + k)
				return false;
			in_seg += 512;
			if (in_seg == segs[s].len) {
				if (in_seg > limits.max_len)
					return false;
				s++;
				in_seg = 0;
			}
		}
	}
	for (i = 1; i < plan.nr; i++)
		if (segs[i - 1].addr + segs[i - 1].len == segs[i].addr &&
		    segs[i - 1].len < limits.max_len)
			return false;
	return s == plan.nr && !in_seg;
}

static void test_random(void)
{
	unsigned int seed;
	bool ok = true;

	for (seed = 0; seed < 20000 && ok; seed++)
		ok = random_once(seed);
	if (!ok)
		printf("# seed %u\n", seed - 1);
	check(ok, "any memory is planned byte for byte, and joined");
}

static void test_policy(void)
{
	check(pmem_dma_wants_engine(PMEM_DMA_POLICY_AUTO, 65536, 65536),
	      "auto: at the minimum size the engine");
	check(!pmem_dma_wants_engine(PMEM_DMA_POLICY_AUTO, 65535, 65536),
	      "auto: below it the CPU");
	check(pmem_dma_wants_engine(PMEM_DMA_POLICY_DMA, 512, 65536),
	      "dma: any size");
	check(!pmem_dma_wants_engine(PMEM_DMA_POLICY_CPU, 1u << 22, 0),
	      "cpu: never");
}

static void test_queues(void)
{
	check(pmem_dma_queues_of_node(0, 4, 8) == 4, "a queue per channel");
	check(pmem_dma_queues_of_node(0, 8, 4) == 4, "at most the CPUs");
	check(pmem_dma_queues_of_node(0, 0, 4) == 1, "one without channels");
	check(pmem_dma_queues_of_node(3, 1, 8) == 3, "as many as asked for");
	check(pmem_dma_queues_of_node(64, 1, 2) == 2, "asked for, at most the CPUs");
	check(pmem_dma_queues_of_node(2, 4, 0) == 0, "none without CPUs");
}

int main(void)
{
	test_join();
	test_max_len();
	test_max_segs();
	test_align();
	test_high();
	test_random();
	test_policy();
	test_queues();
	printf("1..%d\n", tests);
	return failures ? 1 : 0;
}
