#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# The guest's part of tests/perf/genctr: leaves in /out/runs a line per run of fio,
# "off" or "on", what it did, KiB/s, I/Os per second, and the mean slat in ns.
set -euo pipefail

# shellcheck source=tests/lib.sh
. /tests/lib.sh

# The driver without (off) or with (on) the check, for the namespace.
driver()
{
	unbind "$ns_dev"
	rmmod pmem_dma 2>/dev/null || true
	case $1 in
	off) modprobe pmem_dma ;;
	on) insmod /bench/genctr/pmem_dma.ko ;;
	esac
	# A driver that is loaded takes a device that has none.
	expect_same "driver of $ns_dev" pmem_dma "$(driver_of "$ns_dev")"
	wait_for 10 test -b "/dev/$ns_disk"
	echo dma >"/sys/block/$ns_disk/dma/policy"
}

# run OFF|ON NAME [fio's options]
run()
{
	local which=$1 name=$2
	shift 2

	fio --name="$name" --filename="/dev/$ns_disk" --direct=1 --thread --ioengine=libaio \
		--size=256M --time_based=1 --runtime=3 --ramp_time=1 --output-format=json \
		--output=/tmp/fio.json "$@"
	jq -r --arg which "$which" '.jobs[0] | (if .read.total_ios > 0 then .read else .write end) as $d
		| [$which, .jobname, $d.bw, $d.iops, $d.slat_ns.mean] | @tsv' /tmp/fio.json >>/out/runs
}

unwatch_disks
make_ns fsdax 0
# The two take turns, so that what the host does meanwhile hits both.
for round in 1 2 3 4 5 6 7 8; do
	for which in off on; do
		driver $which
		run $which "4k read, depth 16" --rw=randread --bs=4k --iodepth=16
		run $which "64k read, depth 16" --rw=randread --bs=64k --iodepth=16
		run $which "64k write, depth 16" --rw=randwrite --bs=64k --iodepth=16
	done
	printf 'round %d of 8\n' "$round"
done
