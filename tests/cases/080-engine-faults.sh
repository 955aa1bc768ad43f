#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# timeout: 300
# expect-log: ioatdma
# The engine fails, hangs, and is unbound and bound again while I/O is verified:
# no error reaches the user, no byte is wrong, I/O goes on.

# shellcheck source=tests/lib.sh
. /tests/lib.sh

stat_of()
{
	awk -v name="$1" '$1 == name { print $2 }' "/sys/block/$ns_disk/dma/stats"
}

start_load()
{
	fio --name=load --filename="/dev/$ns_disk" --direct=1 --thread \
		--ioengine=libaio --rw=randrw --bs=64k --iodepth=8 --size=32M \
		--time_based --runtime=7200 --verify=crc32c --verify_fatal=1 \
		--verify_backlog=32 --output=/out/load.log &
	load=$!
	wait_for 60 test -e "/out/load.log"
	goes_on
}

ios()
{
	awk '{ print $1 + $5 }' "/sys/block/$ns_disk/stat"
}

more_than()
{
	test "$(ios)" -gt "$1"
}

# A hundred more requests come to their end.
goes_on()
{
	wait_for 30 more_than $(($(ios) + 100))
	expect "the load runs" kill -0 "$load"
}

state_is()
{
	awk -v state="$1" '$5 != state { bad = 1 } END { exit bad || !NR }' \
		"/sys/block/$ns_disk/dma/channels"
}

uses_dma()
{
	local before
	before=$(stat_of write_bytes_dma)
	sleep 0.5
	test "$(stat_of write_bytes_dma)" -gt "$before"
}

data_errors()
{
	local code

	for code in 100 200; do
		engine err '*' '*' "$code" 3 >/dev/null
		goes_on
		mark "error $code: $(stat_of engine_errors) failed descriptors so far"
	done
	expect "errors were seen" test "$(stat_of engine_errors)" -gt 0
	expect "requests were redone" test \
		$(($(stat_of read_requests_redone) + $(stat_of write_requests_redone))) -gt 0
}

# The engine stops for 4 s: the CPU takes over, and hands back later.
hang()
{
	engine stall '*' '*' 1 >/dev/null
	sleep 4
	goes_on
	expect "requests were late" test "$(stat_of timeouts)" -gt 0
	engine stall '*' '*' 0 >/dev/null
	wait_for 60 state_is healthy
	wait_for 60 uses_dma
	mark "after the hang: $(stat_of timeouts) time-outs"
}

leave_and_come()
{
	local dev devs=()

	for dev in /sys/bus/pci/drivers/ioatdma/0000:*; do
		devs+=("${dev##*/}")
		within 20 write_to /sys/bus/pci/drivers/ioatdma/unbind "${dev##*/}"
		goes_on
	done
	expect_same "channels" '' "$(cat "/sys/block/$ns_disk/dma/channels")"
	for dev in "${devs[@]}"; do
		echo "$dev" >/sys/bus/pci/drivers/ioatdma/bind
	done
	wait_for 20 state_is healthy
	wait_for 20 uses_dma
	goes_on
}

give_back()
{
	echo 1 >"/sys/block/$ns_disk/dma/release"
	expect "the engine's module can go" rmmod ioatdma
	goes_on
	modprobe ioatdma
	sleep 2
	expect_same "channels before rescan" '' "$(cat "/sys/block/$ns_disk/dma/channels")"
	echo 1 >"/sys/block/$ns_disk/dma/rescan"
	expect "channels after rescan" test -s "/sys/block/$ns_disk/dma/channels"
	wait_for 20 uses_dma
}

make_ns fsdax 1
rebind pmem_dma "$ns_dev" "$ns_disk"
echo dma >"/sys/block/$ns_disk/dma/policy"
start_load
data_errors
hang
leave_and_come
give_back
kill -INT "$load"
wait "$load" || true
refuse "the load met an error" grep -E 'verify: bad|error=' /out/load.log
