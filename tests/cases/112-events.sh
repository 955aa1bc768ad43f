#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# add: Documentation/latency-histogram=latency-histogram
# Every tracepoint tells what happened, each request once, and the example of the
# documentation makes a histogram of it. debugfs tells what a queue is about.

# shellcheck source=tests/lib.sh
. /tests/lib.sh

events=/sys/kernel/tracing/events/pmem_dma
trace=/sys/kernel/tracing/trace

unwatch_disks
make_ns fsdax 0
disk=$ns_disk dev=$ns_dev
rebind pmem_dma "$dev" "$disk"
udevadm settle
dma=/sys/block/$disk/dma
numbers=$(tr : , <"/sys/block/$disk/dev")

for event in submit complete fallback timeout channel_state; do
	expect "the tracepoint $event" test -d "$events/$event"
done
echo 1 >"$events/enable"

# told EVENT REGEX: how many such lines there are
told()
{
	grep -cE " $1: $2" $trace || true
}

read_direct()
{
	dd if="/dev/$disk" of=/dev/null iflag=direct bs="$1" count="$2" status=none
}

echo dma >"$dma/policy"
echo >$trace
read_direct 64k 3
expect_same "reads submitted" 3 "$(told submit "$numbers read sector=[0-9]+ bytes=65536 tag=[0-9]+ segments=[1-9]")"
expect_same "reads completed by an engine" 3 \
	"$(told complete "$numbers read sector=[0-9]+ bytes=65536 tag=[0-9]+ path=dma")"

echo cpu >"$dma/policy"
echo >$trace
dd if=/dev/zero of="/dev/$disk" oflag=direct bs=4k count=2 seek=7 conv=notrunc status=none
expect_same "writes submitted to an engine" 0 "$(told submit "")"
expect_same "writes completed by the CPU" 2 \
	"$(told complete "$numbers write sector=[0-9]+ bytes=4096 tag=[0-9]+ path=cpu")"
expect_same "the first sector" 1 "$(told complete ".* sector=56 ")"
expect_same "fallbacks, when the CPU was chosen" 0 "$(told fallback "")"

echo dma >"$dma/policy"
echo 1 >"$dma/release"
echo >$trace
read_direct 64k 2
expect_same "fallbacks" 2 "$(told fallback "$numbers read .* path=no_channel")"
expect_same "reads completed by the CPU" 2 "$(told complete ".* path=no_channel")"
echo 1 >"$dma/rescan"

echo >$trace
engine stall '*' '*' 1 >/dev/null
read_direct 64k 1 &
reader=$!
wait_for 20 grep -q ' in_flight=1$' "/sys/kernel/debug/pmem_dma/$dev/queues"
wait_for 20 grep -q 'channel_state: channel=dma.* state=suspect' $trace
expect "the timeout" [ "$(told timeout "$numbers sector=0 tag=[0-9]+ channel=dma")" -ge 1 ]
engine stall '*' '*' 0 >/dev/null
wait "$reader"
wait_for 20 grep -qE 'channel_state: .* state=(healthy|benched)' $trace
mark "the events tell what happens"

cat "/sys/kernel/debug/pmem_dma/$dev/queues"
expect_same "queues in debugfs" "$(find "/sys/block/$disk/mq/" -mindepth 1 -maxdepth 1 | wc -l)" \
	"$(grep -c ^queue= "/sys/kernel/debug/pmem_dma/$dev/queues")"
refuse "requests in flight of an idle disk" \
	grep -E 'in_flight=[1-9]' "/sys/kernel/debug/pmem_dma/$dev/queues"

echo 0 >"$events/enable"
echo auto >"$dma/policy"
fio_run "$disk" --rw=randrw --bssplit=4k/50:1M/50 --iodepth=4 --size=64M \
	--time_based=1 --runtime=20 >/dev/null &
load=$!
sleep 1
bash /latency-histogram 4 >/out/histogram
kill -INT "$(pgrep -x fio | head -n 1)" 2>/dev/null || true
wait "$load" || true
cat /out/histogram
for path in "read cpu" "write cpu" "read dma" "write dma"; do
	expect "a histogram of $path" grep -q "^$path: [1-9][0-9]* requests" /out/histogram
done
refuse "a word that is no number" bash /latency-histogram x
unbind "$dev"
refuse "debugfs of a disk that is gone" test -e "/sys/kernel/debug/pmem_dma/$dev"
