#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# kernels: debug
# fast: yes
# The kernel's own injection of time-outs: callbacks get lost, for no reason that
# the engine knows of. What they were for is redone, and nobody notices.

# shellcheck source=tests/lib.sh
. /tests/lib.sh

stat_of()
{
	awk -v name="$1" '$1 == name { print $2 }' "/sys/block/$ns_disk/dma/stats"
}

healthy()
{
	awk '$5 != "healthy" { bad = 1 } END { exit bad || !NR }' \
		"/sys/block/$ns_disk/dma/channels"
}

fault=/sys/kernel/debug/fail_io_timeout

make_ns fsdax 1
rebind pmem_dma "$ns_dev" "$ns_disk"
echo dma >"/sys/block/$ns_disk/dma/policy"
udevadm settle
echo 0 >$fault/verbose
echo 2 >$fault/probability
echo 10 >$fault/times
echo 1 >"/sys/block/$ns_disk/io-timeout-fail"
fio_verify "$ns_disk" --rw=randrw --bsrange=4k-256k --size=16M --iodepth=16
echo 0 >"/sys/block/$ns_disk/io-timeout-fail"
mark "$((10 - $(cat $fault/times))) callbacks lost, $(stat_of timeouts) time-outs"
expect "callbacks were lost" test "$(cat $fault/times)" -lt 10
expect "requests were late" test "$(stat_of timeouts)" -gt 0
expect "requests were redone" test \
	$(($(stat_of read_requests_redone) + $(stat_of write_requests_redone))) -gt 0
wait_for 60 healthy
fio_verify "$ns_disk" --rw=randwrite --bs=64k --size=4M --iodepth=16
