#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# engine-nodes: none
# timeout: 240
# No request is done while an engine may still touch its memory. The engine writes
# at the very last moment, into memory that it spoilt at the first, and its callbacks
# come late or never. What was read is in the page cache, so that it can be looked
# at, and written over, long after the request.

# shellcheck source=tests/lib.sh
. /tests/lib.sh
# shellcheck source=tests/swdma.sh
. /tests/swdma.sh

far=64
jobs=()

policy()
{
	local disk

	for disk in "${disks[@]}"; do
		echo "$1" >"/sys/block/$disk/dma/policy"
	done
}

# on_cpu CPU COMMAND...: in the background. Each CPU has a queue, and each queue a
# channel, of its own.
on_cpu()
{
	taskset -c "$@" &
	jobs+=($!)
}

put()
{
	dd if="$1" of="/dev/$2" bs="$bytes" count=1 seek="$3" conv=notrunc status=none \
		oflag="${4:-direct}"
}

# same FILE DISK BLOCK: in the page cache, if it is there
same()
{
	dd if="/dev/$2" bs="$bytes" count=1 skip="$3" status=none | cmp -s - "$1"
}

# The first block of each disk is read, and one beyond its readahead written; by the
# CPU they hold /tmp/old before.
start_requests()
{
	local disk cpu=0

	policy cpu
	for disk in "${disks[@]}"; do
		put /tmp/old "$disk" 0
		put /tmp/old "$disk" "$far"
		blockdev --flushbufs "/dev/$disk"
	done
	policy dma
	wait_for 20 state_is healthy
	count_from_here
	jobs=()
	for disk in "${disks[@]}"; do
		on_cpu $cpu dd if="/dev/$disk" of="/tmp/got.$disk" bs="$bytes" count=1 \
			status=none
		on_cpu $((cpu + 1)) dd if=/tmp/new of="/dev/$disk" bs="$bytes" count=1 \
			seek="$far" conv=notrunc oflag=direct status=none
		cpu=$((cpu + 2))
	done
}

none_ends()
{
	local job

	for job in "${jobs[@]}"; do
		expect "a request waits for the engine" kill -0 "$job"
	done
}

# They end without error, with the right data in the right place.
all_end()
{
	local job disk

	for job in "${jobs[@]}"; do
		wait "$job" || fail "a request failed"
	done
	policy cpu
	for disk in "${disks[@]}"; do
		expect "$disk: what was read" cmp "/tmp/got.$disk" /tmp/old
		expect "$disk: what is in the page cache" same /tmp/old "$disk" 0
		expect "$disk: what was written" same /tmp/new "$disk" "$far"
	done
}

# The memory of what was read, and the media of what was written, belong to somebody
# else now: written over, they stay so.
use_again()
{
	local disk

	for disk in "${disks[@]}"; do
		dd if=/tmp/other of="/dev/$disk" bs="$bytes" count=1 conv=notrunc status=none
		put /tmp/other "$disk" "$far"
	done
}

unchanged()
{
	local disk

	# Dirty pages stay; read anew, they would have what is on the media.
	for disk in "${disks[@]}"; do
		expect "$disk: nobody wrote to memory after its request" same /tmp/other "$disk" 0
	done
	for disk in "${disks[@]}"; do
		blockdev --flushbufs "/dev/$disk"
		expect "$disk: the media under it" same /tmp/other "$disk" 0
		expect "$disk: nobody wrote to the media after its request" \
			same /tmp/other "$disk" "$far"
	done
}

sleep_until()
{
	while [ "$SECONDS" -lt "$1" ]; do
		sleep 0.2
	done
}

# The engine stands still for 5 s with everything in its queue.
stalled()
{
	knobs stall=1
	start_requests
	wait_for 20 rose timeouts
	sleep 3
	none_ends
	refuse "something was redone" any_rose redone
	knobs_clear
	all_end
	expect "the engine did it" rose {read,write}_requests_dma
	mark "stalled: waited for the engine"
}

# Callbacks and data never come, and that is certain: the CPU does it, long before
# the data would have come, if the time of that is given.
given_up()
{
	local late

	knobs lose_ms="${1:-0}" lose_times=1 lose_every=1
	start_requests
	late=$((SECONDS + ${1:-0} / 1000 + 2))
	all_end
	expect "requests were redone" rose {read,write}_requests_redone
	use_again
	if [ $# -gt 0 ]; then
		expect "all was over before data came late" test "$SECONDS" -lt $((late - 3))
		sleep_until "$late"
	fi
	unchanged
	knobs_clear
	mark "lost ${1:+for $1 ms}: nothing was written afterwards"
}

# Callbacks and data come after 8 s, and nothing can hinder them.
waited_for()
{
	local due=$((SECONDS + 8))

	knobs lose_ms=8000 lose_times=1 lose_every=1
	start_requests
	sleep_until $((due - 1))
	expect "requests were late" rose timeouts
	none_ends
	all_end
	refuse "something was redone" any_rose redone
	use_again
	unchanged
	knobs_clear
	mark "late by 8 s: waited for"
}

# Nothing is wrong, all takes 3 s: requests are late, and so are the answers to probes,
# some of which come when the next request is late already, and say nothing about it.
slow_engine()
{
	blocks_of $((4 << 10))
	knobs delay_us=3000000
	start_requests
	all_end
	start_requests
	all_end
	expect "requests were late" rose timeouts
	use_again
	sleep 12
	unchanged
	knobs_clear
	mark "slow: waited for"
}

# blocks_of BYTES: patterns and readahead of this size
blocks_of()
{
	local name disk

	bytes=$1
	for name in old new other; do
		head -c "$bytes" /dev/urandom >"/tmp/$name"
	done
	for disk in "${disks[@]}"; do
		echo $((bytes / 1024)) >"/sys/block/$disk/queue/read_ahead_kb"
	done
}

echo 0 >/proc/sys/vm/dirty_writeback_centisecs
swdma_load late=1 poison=165
make_disks
blocks_of $((128 << 10))
for disk in "${disks[@]}"; do
	# The last one to close a disk empties its page cache.
	exec {fd}<"/dev/$disk"
done
stalled
given_up

reload out_of_order=1 late=1 poison=165
stalled
waited_for

reload out_of_order=1 terminate=1 synchronize=1 late=1 poison=165
given_up 14000

reload late=1 poison=165
slow_engine
