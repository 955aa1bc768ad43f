#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Self-test and calibration: what they find, also when there is something to be
# found, and that they are in nobody's way: not in that of I/O, of those who freeze
# the queue, or of the disk's removal.

# shellcheck source=tests/lib.sh
. /tests/lib.sh

unwatch_disks
make_ns fsdax 0
disk=$ns_disk dev=$ns_dev
rebind pmem_dma "$dev" "$disk"
dma=/sys/block/$disk/dma

# value_of NAME: of the disk's statistics
value_of()
{
	awk -v name="$1" '$1 == name { print $2 }' "$dma/stats"
}

# Lines of the self-test's result that don't end in "ok".
not_ok()
{
	grep -v ' ok$' "$dma/selftest"
}

# What the CPU copies, as long as nothing calibrated has been applied.
media()
{
	dd if="/dev/$disk" bs=64k count=16 iflag=direct status=none | sha256sum
}

# --- What they find ----------------------------------------------------------

expect_same "result before the first run" "not run" "$(cat "$dma/selftest")"
expect_same "result before the first run" "not run" "$(cat "$dma/calibrate")"
for file in selftest calibrate; do
	for word in 0 2 yes ''; do
		refuse "$file takes '$word'" write_to "$dma/$file" "$word" 2>/dev/null
	done
done
refuse "apply without calibration" write_to "$dma/calibrate" apply 2>/dev/null
expect_same "result after nonsense" "not run" "$(cat "$dma/selftest")"

before=$(cat "$dma/stats")
media >/tmp/before
descriptors=$(engine stats | jq '[.. | .descriptors? // empty] | add')
echo 1 >"$dma/selftest"
refuse "a channel that fails" not_ok
expect_same "channels that were tested" "$(wc -l <"$dma/channels")" "$(wc -l <"$dma/selftest")"
expect "the engine has copied for it" \
	[ "$(engine stats | jq '[.. | .descriptors? // empty] | add')" -ge \
	$((descriptors + 3 * $(wc -l <"$dma/channels"))) ]
cat "$dma/selftest"

echo 1 >"$dma/calibrate"
cat "$dma/calibrate"
expect "a line for 4k" grep -qE '^4096( [0-9]+){4}$' "$dma/calibrate"
expect "a line for 128k" grep -qE '^131072( [0-9]+){4}$' "$dma/calibrate"
media >/tmp/after
expect "the media is as before" cmp /tmp/before /tmp/after
expect_same "requests that count as the disk's, but for those of media" \
	"$(grep -v _cpu <<<"$before")" "$(grep -v _cpu "$dma/stats")"
echo apply >"$dma/calibrate"
for d in read write; do
	expect_same "applied ${d}_min_bytes" \
		"$(awk -v name="${d}_min_bytes" '$1 == name { print $2 }' "$dma/calibrate")" \
		"$(cat "$dma/${d}_min_bytes")"
done

# A channel that fails is named, and is used again.
engine err '*' '*' 0x100 0 >/dev/null
refuse "a self-test with failing channels passes" write_to "$dma/selftest" 1 2>/dev/null
cat "$dma/selftest"
expect "a channel that failed" grep -q ' failed there$' "$dma/selftest"
wait_for 20 write_to "$dma/selftest" 1 2>/dev/null
refuse "a channel that fails" not_ok

echo 1 >"$dma/release"
echo 1 >"$dma/selftest"
expect_same "self-test without channel" "no channel" "$(cat "$dma/selftest")"
refuse "calibration without channel" write_to "$dma/calibrate" 1 2>/dev/null
echo 1 >"$dma/rescan"
mark "self-test and calibration tell what is"

# --- In nobody's way ---------------------------------------------------------

# over_and_over FILE: until the disk is gone. A test that finds the queue frozen for
# long, or the channels given back, fails, which is right.
over_and_over()
{
	while [ -e "$dma/$1" ]; do
		echo 1 >"$dma/$1" || true
	done 2>/dev/null
	true
}

cat >/tmp/mix.fio <<-JOB
	[global]
	filename=/dev/$disk
	direct=1
	time_based=1
	runtime=7200
	[small-reader]
	rw=randread
	bs=4k
	size=16M
	[verifier]
	ioengine=libaio
	iodepth=8
	rw=randwrite
	bsrange=4k-1M
	offset=32M
	size=32M
	verify=crc32c
	verify_fatal=1
	verify_backlog=32
	serialize_overlap=1
JOB
fio --output=/out/mix.log /tmp/mix.fio &
load=$!
over_and_over selftest &
testers=($!)
over_and_over calibrate &
testers+=($!)

# freeze_for SECONDS [COMMAND...]: all that freezes or drains the queue, and the command,
# in turns.
freeze_for()
{
	local queue=/sys/block/$disk/queue end=$((SECONDS + $1)) rounds=0 depth scheduler
	shift

	until [ "$SECONDS" -ge "$end" ]; do
		for depth in 64 128; do
			within 20 write_to "$queue/nr_requests" "$depth"
		done
		for scheduler in mq-deadline none; do
			within 20 write_to "$queue/scheduler" "$scheduler"
		done
		within 20 blockdev --flushbufs "/dev/$disk"
		within 20 write_to "$dma/release" 1
		within 20 write_to "$dma/rescan" 1
		"$@"
		expect "the load runs" kill -0 "$load"
		rounds=$((rounds + 1))
	done
	mark "$rounds rounds of freezing in the mix ${*}"
}

read_only_and_back()
{
	within 20 blockdev --setro "/dev/$disk"
	within 20 blockdev --setrw "/dev/$disk"
}

freeze_for 30
kill -INT "$load"
wait "$load" || true
refuse "the load met an error" grep -E 'verify:|error=' /out/mix.log

# Readers don't mind if the disk is read-only for a while.
fio --output=/out/readers.log --section=small-reader /tmp/mix.fio &
load=$!
freeze_for 30 read_only_and_back
kill -INT "$load"
wait "$load" || true
refuse "the readers met an error" grep error= /out/readers.log

# Removal under all of it, except that fio's end is an error now.
fio --output=/out/removal.log /tmp/mix.fio >/dev/null 2>&1 &
load=$!
sleep 2
within 20 write_to /sys/bus/nd/drivers/pmem_dma/unbind "$dev"
wait "$load" || true
for tester in "${testers[@]}"; do
	wait_for 20 exited "$tester"
done

# And in a single pass: the sums are the block layer's.
bind pmem_dma "$dev"
wait_for 10 test -b "/dev/$disk"
echo 1 >"$dma/selftest"
expect_same "requests in flight" 0 "$(value_of in_flight)"
read -r -a words <"/sys/block/$disk/stat"
expect_same "reads and writes of the disk" $((words[0] + words[4])) \
	"$(awk '/_requests_/ { sum += $2 } END { print sum }' "$dma/stats")"

# Flushes of nothing are writes to the block layer, not to us.
written=$(value_of write_requests_cpu)
for ((i = 0; i < 5; i++)); do
	dd if=/dev/zero of="/dev/$disk" bs=4k count=1 oflag=direct conv=notrunc,fsync status=none
done
expect_same "writes" 5 $(($(value_of write_requests_cpu) - written))
read -r -a flushed <"/sys/block/$disk/stat"
expect_same "writes and flushes of the block layer" $((words[4] + 10)) "${flushed[4]}"
expect_same "flushes" "${flushed[15]}" "$(value_of flushes)"
mark "gone and back"
