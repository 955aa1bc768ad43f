#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# kernels: debug
# timeout: 200
# expect-log: dma-debug disabled
# Allocations fail, each in turn, while a namespace is bound, its channels are
# given back and taken, and it is unbound; and at random below I/O. What cannot be
# done without memory says so and undoes what it did; the rest goes on.

# shellcheck source=tests/lib.sh
. /tests/lib.sh

debug=/sys/kernel/debug

# Only allocations fail that have module $1 among the callers next to them: what the
# kernel does with memory on its own account, deeper down, is not tested here.
below()
{
	local fault start size

	start=$(cat "/sys/module/$1/sections/.text")
	size=$(awk -v name="$1" '$1 == name { print $2 }' /proc/modules)
	for fault in failslab fail_page_alloc; do
		echo 0 >$debug/$fault/verbose
		echo N >$debug/$fault/ignore-gfp-wait
		echo 12 >$debug/$fault/stacktrace-depth
		printf '%#x' "$start" >$debug/$fault/require-start
		printf '%#x' $((start + size)) >$debug/$fault/require-end
	done
}

# with_nth N FILE TEXT: write to a file while the N-th allocation fails. Sets used,
# whether there was an N-th, and failed, whether the write said so.
with_nth()
{
	local nth=/proc/thread-self/fail-nth left

	failed=1
	echo "$1" >$nth
	! echo "$3" 2>/dev/null >"$2" || failed=0
	read -r left <$nth
	used=$((left == 0))
	echo 0 >$nth
}

bound()
{
	test "$(driver_of "$ns_dev")" = pmem_dma
}

# Allocations of what the disk cannot be without fail the bind, others only cost
# a channel.
bind_with_failures()
{
	local n whole=0

	below pmem_core
	for ((n = 1; ; n++)); do
		with_nth "$n" /sys/bus/nd/drivers/pmem_dma/bind "$ns_dev"
		if [ $failed = 0 ]; then
			expect "allocation $n failed, the bind did not, $ns_dev is bound" bound
			expect "$ns_disk can be read" dd if="/dev/$ns_disk" of=/dev/null bs=1M \
				count=1 iflag=direct status=none
			unbind "$ns_dev"
			whole=$((whole + 1))
		else
			refuse "allocation $n failed, the bind too, $ns_dev is bound" bound
		fi
		[ $used = 1 ] || break
	done
	mark "$((n - 1)) allocations of a bind failed in turn, $((whole - 1)) of them without harm"
	expect "there were allocations" test "$n" -gt 20
}

# The disk goes on, whatever has become of its channels.
channels_with_failures()
{
	local n name dma=/sys/block/$ns_disk/dma

	below pmem_dma
	for name in release rescan; do
		for ((n = 1; ; n++)); do
			[ $name = release ] || echo 1 >"$dma/release"
			with_nth "$n" "$dma/$name" 1
			dd if=/dev/zero of="/dev/$ns_disk" bs=128k count=4 oflag=direct status=none
			[ $name = rescan ] || echo 1 >"$dma/rescan"
			[ $used = 1 ] || break
		done
		mark "$((n - 1)) allocations of $name failed in turn"
	done
	echo 1 >"$dma/rescan"
	expect "the channels are back" test -s "$dma/channels"
}

# Nothing in the path of a request needs memory that it cannot do without.
io_with_failures()
{
	below pmem_dma
	echo 10 >$debug/failslab/probability
	echo -1 >$debug/failslab/times
	echo 10 >$debug/fail_page_alloc/probability
	echo -1 >$debug/fail_page_alloc/times
	fio_verify "$ns_disk" --rw=randrw --bsrange=4k-256k --size=8M --iodepth=16
	echo 0 >$debug/failslab/probability
	echo 0 >$debug/fail_page_alloc/probability
	mark "verified while allocations failed"
}

# Nothing can refuse to go.
unbind_with_failures()
{
	local n

	for ((n = 1; ; n++)); do
		bound || bind pmem_dma "$ns_dev"
		below pmem_core
		with_nth "$n" /sys/bus/nd/drivers/pmem_dma/unbind "$ns_dev"
		refuse "$ns_dev is bound after an unbind" bound
		[ $used = 1 ] || break
	done
	mark "$((n - 1)) allocations of an unbind failed in turn"
}

make_ns fsdax 1
unbind "$ns_dev"
modprobe pmem_dma
! bound || unbind "$ns_dev"
bind_with_failures
bind pmem_dma "$ns_dev"
udevadm settle
echo dma >"/sys/block/$ns_disk/dma/policy"
channels_with_failures
io_with_failures
unbind_with_failures
bind pmem_dma "$ns_dev"
udevadm settle
echo dma >"/sys/block/$ns_disk/dma/policy"
fio_verify "$ns_disk" --rw=randwrite --bs=64k --size=4M --iodepth=16
