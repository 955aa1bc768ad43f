#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Usage: compat/conftest.sh HEADER OBJTREE COMPILER FLAG...
# Ask the compiler which of the newest kernel's interfaces this kernel has, and
# print compat-generated.h: a "#define HAVE_X 1" for each one that it has. Run
# by kbuild with the flags of a module's source file.
#
# Never a version number: stable kernels and vendors back-port. Each probe comes
# in the newest form and in the one before. One of them must compile: an
# interface that is neither ends the build with the compiler's words, instead of
# a driver that is built on a guess.
#
# HEADER is the result of an earlier run; it is printed again if HEADER.key says
# that it was made from the same kernel headers, compiler, flags and probes.
set -euo pipefail

header=$1
objtree=$2
shift 2
cc=("$@" -fsyntax-only -Wno-error -Werror=implicit-function-declaration
	-Werror=incompatible-pointer-types -Werror=int-conversion)

# Change times, not modification times: a package brings files that are as old
# as its build.
inputs=$(
	{
		printf '%s\n' "${cc[@]}"
		cat -- "$0"
		stat -c '%n %s %Z' -- "$objtree/Module.symvers" \
			"$objtree/include/generated/autoconf.h" 2>/dev/null || true
	} | sha256sum
)
if [ -s "$header" ] && [ "$(cat -- "$header.key" 2>/dev/null)" = "$inputs" ]; then
	cat -- "$header"
	exit
fi

dir=$(mktemp -d)
trap 'rm -rf -- "$dir"' EXIT
names=()

# probe NAME: the newest form on standard input, a line "before:", the old form.
probe()
{
	local text

	text=$(cat)
	names+=("$1")
	printf '%s\n' "${text%%$'\n'before:*}" >"$dir/$1.new.c"
	printf '%s\n' "${text#*$'\n'before:}" >"$dir/$1.old.c"
}

compile_one()
{
	if "${cc[@]}" "$dir/$1.c" 2>"$dir/$1.err"; then
		: >"$dir/$1.ok"
	fi
}

# compile NAME...: leaves NAME.ok, or the compiler's words in NAME.err.
compile()
{
	local cpus name

	cpus=$(nproc)
	for name; do
		while (($(jobs -rp | wc -l) >= cpus)); do
			wait -n || true
		done
		compile_one "$name" &
	done
	wait
}

# stop MESSAGE FILE...: with the compiler's words.
stop()
{
	printf 'compat: %s\n' "$1" >&2
	shift
	tail -n +1 -- "$@" | head -n 40 >&2
	exit 1
}

# Nothing that follows means anything unless this compiles.
cat >"$dir/must-pass.c" <<'C'
#include <linux/module.h>
#include <linux/blk-mq.h>
#include <linux/dax.h>
#include <linux/dmaengine.h>
#include <linux/libnvdimm.h>
#include <linux/nd.h>
#if !IS_ENABLED(CONFIG_LIBNVDIMM)
#error this kernel is configured without LIBNVDIMM
#endif
#if !IS_ENABLED(CONFIG_DMA_ENGINE)
#error this kernel is configured without DMA_ENGINE
#endif
C

# And nothing means anything if this does.
cat >"$dir/must-fail.c" <<'C'
#include <linux/module.h>
int f(struct device *dev, sector_t *sector);
int (*g)(struct device *, int *) = f;
C

# Limits and features are passed when a disk is made. 6.9, "block: pass a
# queue_limits argument to blk_alloc_disk", and 6.11, "block: move cache control
# settings out of queue->flags". May go with 6.1 (June 2028).
probe QUEUE_LIMITS_FEATURES <<'C'
#include <linux/blk-mq.h>
struct gendisk *f(struct queue_limits *lim)
{
	lim->max_user_sectors = 8;
	lim->features = BLK_FEAT_WRITE_CACHE | BLK_FEAT_FUA | BLK_FEAT_DAX |
			BLK_FEAT_SYNCHRONOUS | BLK_FEAT_NOWAIT;
	return blk_alloc_disk(lim, 0);
}
struct gendisk *g(struct blk_mq_tag_set *set, struct queue_limits *lim)
{
	return blk_mq_alloc_disk(set, lim, NULL);
}
before:
#include <linux/blk-mq.h>
struct gendisk *f(struct request_queue *q)
{
	blk_queue_write_cache(q, true, true);
	blk_queue_flag_set(QUEUE_FLAG_DAX, q);
	return blk_alloc_disk(0);
}
struct gendisk *g(struct blk_mq_tag_set *set)
{
	return blk_mq_alloc_disk(set, NULL);
}
C

# Merging needs no flag. 6.14, "block: remove BLK_MQ_F_SHOULD_MERGE". May go with
# 6.12 (June 2030).
probe ALWAYS_MERGE <<'C'
#include <linux/blk-mq.h>
enum { BLK_MQ_F_SHOULD_MERGE };
before:
#include <linux/blk-mq.h>
int f(void)
{
	return BLK_MQ_F_SHOULD_MERGE;
}
C

# Freezing a queue forbids I/O by allocations until the thaw. 6.14, "block: force
# noio scope in blk_mq_freeze_queue". May go with 6.12 (June 2030).
probe FREEZE_MEMFLAGS <<'C'
#include <linux/blk-mq.h>
void f(struct request_queue *q)
{
	unsigned int memflags = blk_mq_freeze_queue(q);

	blk_mq_unfreeze_queue(q, memflags);
}
before:
#include <linux/blk-mq.h>
void f(struct request_queue *q)
{
	blk_mq_freeze_queue(q);
	blk_mq_unfreeze_queue(q);
}
C

# A workqueue says so if it is bound to CPUs; it always was. 6.18, "workqueue: add
# WQ_PERCPU to alloc_workqueue users", and back-ported. May go with 6.1 (June
# 2028).
probe WQ_PERCPU <<'C'
#include <linux/workqueue.h>
int f(void)
{
	return WQ_PERCPU;
}
before:
#include <linux/workqueue.h>
enum { WQ_PERCPU };
C

# 6.15, "badblocks: use sector_t instead of int to avoid truncation of badblocks
# length" and "badblocks: return boolean from badblocks_set() and
# badblocks_clear()". May go with 6.12 (June 2030).
probe BADBLOCKS_SECTOR_T <<'C'
#include <linux/badblocks.h>
int (*f)(struct badblocks *, sector_t, sector_t, sector_t *, sector_t *) =
	badblocks_check;
bool (*g)(struct badblocks *, sector_t, sector_t, int) = badblocks_set;
bool (*h)(struct badblocks *, sector_t, sector_t) = badblocks_clear;
before:
#include <linux/badblocks.h>
int (*f)(struct badblocks *, sector_t, int, sector_t *, int *) =
	badblocks_check;
int (*g)(struct badblocks *, sector_t, int, int) = badblocks_set;
int (*h)(struct badblocks *, sector_t, int) = badblocks_clear;
C

# A poisoned page is told from an I/O error. 6.5, "dax: enable dax fault handler
# to report VM_FAULT_HWPOISON". May go with 6.1 (June 2028).
probe DAX_MEM2BLK_ERR <<'C'
#include <linux/dax.h>
int f(int err)
{
	return dax_mem2blk_err(err);
}
before:
#include <linux/dax.h>
static inline int dax_mem2blk_err(int err)
{
	return err;
}
C

# 6.17, "mm: remove devmap related functions and page table bits" and its
# series, which drops pfn_t. May go with 6.12 (June 2030).
probe DAX_PLAIN_PFN <<'C'
#include <linux/dax.h>
long f(struct dax_device *dax_dev, pgoff_t pgoff, long nr_pages,
       enum dax_access_mode mode, void **kaddr, unsigned long *pfn);
struct dax_operations ops = { .direct_access = f };
before:
#include <linux/dax.h>
#include <linux/pfn_t.h>
long f(struct dax_device *dax_dev, pgoff_t pgoff, long nr_pages,
       enum dax_access_mode mode, void **kaddr, pfn_t *pfn);
struct dax_operations ops = { .direct_access = f };
C

# Memory is mapped by its physical address. 6.18, "dma-mapping: export new
# dma_*map_phys() interface". May go with 6.12 (June 2030).
probe DMA_MAP_PHYS <<'C'
#include <linux/dma-mapping.h>
void f(struct device *dev, phys_addr_t phys)
{
	dma_unmap_phys(dev, dma_map_phys(dev, phys, 1, DMA_TO_DEVICE, 0), 1,
		       DMA_TO_DEVICE, 0);
}
before:
#include <linux/dma-mapping.h>
static inline dma_addr_t dma_map_phys(struct device *dev, phys_addr_t phys)
{
	return dma_map_resource(dev, phys, 1, DMA_TO_DEVICE, 0);
}
C

compile must-pass must-fail "${names[@]/%/.new}"
[ -e "$dir/must-pass.ok" ] ||
	stop "cannot build for this kernel:" "$dir/must-pass.err"
[ ! -e "$dir/must-fail.ok" ] ||
	stop "the compiler takes wrong types for right:" "$dir/must-fail.c"

older=()
for name in "${names[@]}"; do
	[ -e "$dir/$name.new.ok" ] || older+=("$name")
done
compile "${older[@]/%/.old}"
for name in ${older[@]+"${older[@]}"}; do
	[ -e "$dir/$name.old.ok" ] ||
		stop "this kernel has neither form of $name that the drivers know:" \
			"$dir/$name.new.err" "$dir/$name.old.err"
done

echo '/* Made by compat/conftest.sh */'
for name in "${names[@]}"; do
	if [ -e "$dir/$name.new.ok" ]; then
		printf '#define HAVE_%s 1\n' "$name"
	else
		printf '/* #undef HAVE_%s */\n' "$name"
	fi
done
# kbuild keeps the old header, and its date, if this one is the same.
printf '%s\n' "$inputs" >"$header.key"
