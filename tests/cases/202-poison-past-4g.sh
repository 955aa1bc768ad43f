#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# kernels: 6.1 6.12 7.3
# engine-nodes: none
# append: memmap=4608M$524288M
# Bad sectors more than 4 GiB into a disk. There is no memory behind the range:
# what is written to it is lost, but which sectors are bad can be told. An engine could
# not reach it.

# shellcheck source=tests/lib.sh
. /tests/lib.sh
# shellcheck source=tests/poison.sh
. /tests/poison.sh

gib=$((1 << 30))

readable()
{
	direct_read "$1" 512 || fail "read of $1: $(cat /tmp/err)"
}

# far_sectors OFFSET...
far_sectors()
{
	local at

	for at; do
		inject "$at" 512
	done
	for at; do
		echo "$((at / 512)) 1"
	done >/tmp/wanted
	expect_same "list of bad sectors" "$(cat /tmp/wanted)" "$(badblocks)"
	for at; do
		# A place whose lower 32 bits are the same is another one.
		readable $((at % (4 * gib)))
		readable $((at - 512))
		bad "$at" 512
		[ $((at + 512)) -ge "$size" ] || readable $((at + 512))
		direct_write "$at" 512 || fail "write to $at: $(cat /tmp/err)"
		readable "$at"
	done
	expect_same "bad sectors after the writes" '' "$(badblocks)"
	expect_same "errors on the bus" '' "$(bus_errors)"
}

load_bus pagemap=0
use nd_pmem "$ns"
head -c 512 /dev/zero >/tmp/new
for driver in "${drivers[@]}"; do
	use "$driver" "$ns"
	expect "a disk of 4.5 GiB" test "$size" -eq $((4608 * mib))
	step far_sectors $((4 * gib + 512)) $((4 * gib + 400 * mib + 4096)) $((size - 512))
done
unload_bus
