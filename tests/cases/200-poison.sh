#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# kernels: 6.1 6.12 7.3
# timeout: 420
# append: memmap=64M$1216M
# Bad sectors and failing flushes of a raw disk, under each driver in turn.

# shellcheck source=tests/lib.sh
. /tests/lib.sh
# shellcheck source=tests/poison.sh
. /tests/poison.sh

# A poller of the badblocks file. strace shows when its poll(2) returns: at once
# after the file was opened, then for each notification.
polls()
{
	touch /tmp/poll.log
	grep -c 'poll(.*POLLPRI|POLLERR' /tmp/poll.log || true
}

polled()
{
	[ "$(polls)" -ge "$1" ]
}

start_poller()
{
	rm -f /tmp/poll.log
	strace --kill-on-exit -o /tmp/poll.log -e trace=poll findmnt --poll \
		--tab-file "/sys/block/$disk/badblocks" >/dev/null 2>&1 &
	poller=$!
	wait_for 10 polled 1
	sleep 0.3
	expect_same "returns of poll() before any event" 1 "$(polls)"
}

stop_poller()
{
	kill -KILL "$poller"
	wait "$poller" 2>/dev/null || true
}

notification()
{
	start_poller
	inject $((3 * mib)) 4096
	wait_for 5 polled 2
	stop_poller
	edges $((3 * mib)) 4096
	write_good $((3 * mib)) 4096
	expect_same "bad sectors after the write" '' "$(badblocks)"
}

# Many adjacent requests that the block layer merges: those that touch a bad
# sector fail, no others, and fio finds no wrong byte in the rest.
merged()
{
	local start=$((8 * mib)) merges i
	local window=(--name=merged --filename="/dev/$disk" --direct=1 --thread
		--ioengine=libaio --bs=4k --offset="$start" --size=1M --iodepth=32
		--iodepth_batch=32 --iodepth_batch_complete_min=32
		--verify=crc32c --verify_state_save=0)

	fio "${window[@]}" --rw=write --do_verify=0 --output=/out/fio.log
	adopt "$start" "$mib"
	for i in 1 2 3 4 5; do
		inject $((start + i * 128 * kib + 3 * 4096 + 512)) 512
	done
	merges=$(awk '{ print $2 }' "/sys/block/$disk/stat")
	fio "${window[@]}" --rw=read --continue_on_error=read \
		--output-format=json --output=/out/fio.json || true
	merges=$(($(awk '{ print $2 }' "/sys/block/$disk/stat") - merges))
	mark "$merges reads were merged"
	sed -n '/^{/,$p' /out/fio.json >/tmp/fio.json
	expect_same "failed reads" 5 "$(jq '.jobs[0].total_err' /tmp/fio.json)"
	expect_same "bytes read" $((mib - 5 * 4096)) \
		"$(jq '.jobs[0].read.io_bytes' /tmp/fio.json)"
	[ "$1" != pmem_dma ] || expect "merges" test "$merges" -gt 0
	write_good "$start" "$mib"
	expect_same "bad sectors after overwriting" '' "$(badblocks)"
}

# Engines carry the good requests of this test, and never see a bad sector. (The
# block layer cuts a read of a MiB into requests that may all but one be good.)
by_engine()
{
	local key before

	dma_stat()
	{
		awk -v key="$1" '$1 == key { print $2 }' "/sys/block/$disk/dma/stats"
	}

	inject "$mib" 512
	for key in read_requests_dma read_requests_fallback_badblock; do
		before=$(dma_stat "$key")
		case $key in
		*_dma) good $((2 * mib)) "$mib" ;;
		*) bad $((mib / 2)) "$mib" ;;
		esac
		expect "$key counted" test "$(dma_stat "$key")" -gt "$before"
	done
	# What udev reads after each writer has closed the disk is no bad read.
	udevadm settle
	before=$(engine_bytes)
	bad "$mib" $((64 * kib))
	expect_same "bytes that engines moved for a bad read" "$before" "$(engine_bytes)"
	write_good "$mib" 512
}

# Nothing is cleared: the sector stays bad, its neighbours stay good.
refused_clear()
{
	local at=$((2 * mib))

	inject "$at" 512
	echo refuse >"$bus/clear_mode"
	write_bad "$at" 512
	write_bad "$at" 4096
	expect_same "bad sectors after a refused clear" "$((at / 512)) 1" "$(badblocks)"
	edges "$at" 512
	echo ok >"$bus/clear_mode"
	write_good "$at" 4096

	# The bus can't clear less than a page.
	inject "$at" 512
	echo 4096 >"$bus/clear_unit"
	write_bad "$at" 512
	expect_same "bad sectors after clearing too little" "$((at / 512)) 1" "$(badblocks)"
	bad "$at" 512
	write_good "$at" 4096
	echo 256 >"$bus/clear_unit"
	expect_same "bad sectors after clearing a page" '' "$(badblocks)"
}

# Only half of what is written gets cleared. The media has lost the old bytes of
# that half: whoever can read it must get what was written.
partial_clear()
{
	local at=$((4 * mib))

	inject "$at" 4096
	echo partial >"$bus/clear_mode"
	write_bad "$at" 4096
	echo ok >"$bus/clear_mode"
	expect_same "bad sectors on the bus" "$((at / 512 + 4)) 4" "$(bus_errors)"
	bad $((at + 2048)) 2048
	case $(badblocks) in
	"$((at / 512)) 8") ;;
	"$((at / 512 + 4)) 4")
		direct_read "$at" 2048
		[ "$1" = nd_pmem ] || cmp -n 2048 /tmp/new /tmp/got ||
			fail "bytes that clearing left behind can be read" ;;
	*) fail "bad sectors after a partial clear: $(badblocks)" ;;
	esac
	good $((at - 4096)) 4096
	good $((at + 4096)) 4096
	write_good "$at" 4096
	expect_same "bad sectors after overwriting" '' "$(badblocks)"
}

# Errors come up while the disk works elsewhere.
under_load()
{
	local i fio

	fio_verify "$disk" --rw=randrw --bs=16k --offset=16M --size=4M --iodepth=8 \
		--io_size=8M &
	fio=$!
	for ((i = 0; i < 64; i++)); do
		kill -0 "$fio" 2>/dev/null || break
		inject $((32 * mib + i * 64 * kib)) 4096
		sleep 0.05
	done
	wait "$fio" || fail "fio found errors"
	mark "$i ranges went bad during the load"
	expect "injection under load" test "$i" -gt 4
	expect_same "number of bad ranges" "$i" "$(badblocks | wc -l)"
	bad $((32 * mib)) "$mib"
	adopt $((16 * mib)) $((4 * mib))
	for ((i = 0; i < 4; i++)); do
		write_good $(((32 + i) * mib)) "$mib"
	done
	expect_same "bad sectors after overwriting" '' "$(badblocks)"
}

raw_disk()
{
	use "$1" "$ns"
	step whole_disk_good
	step notification
	step positions
	step overwrite
	step merged "$1"
	[ "$1" != pmem_dma ] || step by_engine
	step refused_clear
	step partial_clear "$1"
	step under_load
	step flush_errors "$1"
	step whole_disk_good
}

load_bus
use nd_pmem "$ns"
head -c "$size" /dev/urandom >"$shadow"
dd if="$shadow" of="/dev/$disk" bs=1M oflag=direct status=none
for driver in "${drivers[@]}"; do
	raw_disk "$driver"
done
unload_bus
