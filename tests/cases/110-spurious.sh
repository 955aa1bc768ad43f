#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# engine-nodes: none
# genctr: yes
# expect-log: spurious callback
# A provider that calls back twice for a descriptor: at once, later, when the tag
# has gone to another request, and when the disk is gone. With the generation
# check each of them is seen, counted and dropped, and no byte is wrong.

# shellcheck source=tests/lib.sh
. /tests/lib.sh
# shellcheck source=tests/swdma.sh
. /tests/swdma.sh

# Data come at the last moment, into memory that was spoilt before: a request that
# somebody else's callback completes has wrong bytes.
logged()
{
	dmesg | grep -q "$1"
}

swdma_load late=1 poison=165
make_disks
count
for disk in "${disks[@]}"; do
	expect_same "$disk: spurious callbacks of a good provider" 0 "${counted[$disk.spurious]}"
done
start_load

for ms in 0 1 20 300; do
	fault "delay_us=500 spurious_ms=$ms spurious_every=5" "spurious>20" \
		{read,write}_bytes_dma
done
stop_load
adds_up
expect "the log tells of those that came twice" \
	logged 'spurious callback: .* is called back already'
expect_same "lines of the log, which are limited" yes \
	"$([ "$(dmesg | grep -c 'spurious callback')" -lt 200 ] && echo yes || echo no)"

# The second callback finds no disk any more, and later another one in its place.
count_from_here
knobs spurious_ms=3000 spurious_every=1
dd if="/dev/$raw" of=/dev/null iflag=direct bs=32k count=20 status=none
unbind "$raw_dev"
wait_for 10 logged 'spurious callback for a disk that is gone'
knobs_clear
rebind pmem_dma "$raw_dev" "$raw"
mark "a disk that is gone: its callbacks are dropped"
