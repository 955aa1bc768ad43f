#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# kernels: 6.1 6.12 7.3
# timeout: 300
# Every byte is right, whatever the size and the alignment of the request, on
# both nodes at once; and what the driver says it moved is what the engine moved.

# shellcheck source=tests/lib.sh
. /tests/lib.sh

# A counter of a disk.
stat_of()
{
	awk -v name="$2" '$1 == name { print $2 }' "/sys/block/$1/dma/stats"
}

dma_bytes()
{
	local disk sum=0

	for disk in "$@"; do
		sum=$((sum + $(stat_of "$disk" read_bytes_dma) + $(stat_of "$disk" write_bytes_dma)))
	done
	echo "$sum"
}

# verify_all OPTIONS: eight jobs, four on each disk, each with its own part, at
# any sector.
verify_all()
{
	cat >/tmp/job <<-JOB
	[global]
	direct=1
	thread=1
	ioengine=libaio
	iodepth=32
	size=8M
	offset_increment=32M
	blockalign=512
	verify=crc32c
	verify_fatal=1
	do_verify=1
	numjobs=4
	group_reporting=1
	$1
	[raw]
	filename=/dev/$raw
	[fsdax]
	filename=/dev/$fsdax
	JOB
	fio --minimal --output=/out/fio.log /tmp/job || {
		cat /out/fio.log
		fail "fio: $1"
	}
	mark "verified: ${1//$'\n'/ }"
}

# The engine counts what its driver's own test moves too: take differences. On a
# host that is busy beyond measure ioatdma's watchdog may still find the engine
# late: what the engine then did in vain, it counts and we do not.
same_bytes()
{
	local ours theirs

	ours=$(($(dma_bytes "$raw" "$fsdax") - ours_before))
	theirs=$(($(engine_bytes) - theirs_before))
	expect "an engine did something" test "$theirs" -gt 0
	if [ "$(stat_of "$raw" timeouts)$(stat_of "$fsdax" timeouts)" != 00 ]; then
		mark "the engine was late: driver $ours, engine $theirs bytes"
		expect "the engine did at least what we say" test "$theirs" -ge "$ours"
		return
	fi
	expect_same "bytes by DMA: driver against engine" "$ours" "$theirs"
}

echo 5000 >/sys/module/ioatdma/parameters/completion_timeout
make_ns raw 0
raw=$ns_disk raw_dev=$ns_dev
make_ns fsdax 1
fsdax=$ns_disk
rebind pmem_dma "$raw_dev" "$raw"
rebind pmem_dma "$ns_dev" "$fsdax"
for disk in "$raw" "$fsdax"; do
	echo dma >"/sys/block/$disk/dma/policy"
done
udevadm settle
ours_before=$(dma_bytes "$raw" "$fsdax")
theirs_before=$(engine_bytes)

verify_all 'rw=randwrite
bsrange=512-4m'
verify_all 'rw=randwrite
bssplit=512/40:4k/30:64k/20:1m/10'
for disk in "$raw" "$fsdax"; do
	echo auto >"/sys/block/$disk/dma/policy"
done
verify_all 'rw=randrw
rwmixread=30
bsrange=512-4m'
same_bytes
for disk in "$raw" "$fsdax"; do
	expect "$disk used both" test "$(stat_of "$disk" write_bytes_cpu)" -gt 0
done
