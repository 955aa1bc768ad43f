#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# timeout: 240
# qemu: -device amd-iommu,dma-remap=on
# append: iommu.passthrough=0 iommu.strict=1
# Behind an IOMMU that translates, and forgets at once what is unmapped: an engine
# reaches what is mapped for it, in the right direction, and nothing else. It is the
# emulated engine that tells of anything else, as an error.

# shellcheck source=tests/lib.sh
. /tests/lib.sh

# The engines have groups of their own, whose domain translates.
translated()
{
	local dev groups=0

	for dev in /sys/bus/pci/drivers/ioatdma/0000:*; do
		expect_same "domain of ${dev##*/}" DMA "$(cat "$dev/iommu_group/type")"
		groups=$((groups + 1))
	done
	expect_same "engines behind the IOMMU" 2 "$groups"
}

stat_of()
{
	awk -v name="$2" '$1 == name { print $2 }' "/sys/block/$1/dma/stats"
}

both_disks()
{
	local disk before

	before=$(engine_bytes)
	for disk in "${disks[@]}"; do
		echo dma >"/sys/block/$disk/dma/policy"
		fio_verify "$disk" --rw=randwrite --bsrange=512-1m \
			--size=16M --iodepth=16
		expect "$disk by engine" test "$(stat_of "$disk" read_bytes_dma)" -gt 8000000
		expect "$disk by engine" test "$(stat_of "$disk" write_bytes_dma)" -gt 8000000
		expect_same "failed descriptors of $disk" 0 "$(stat_of "$disk" engine_errors)"
	done
	expect "engines moved bytes" test $(($(engine_bytes) - before)) -gt 32000000
	expect_same "errors of the engines" 0 "$(engine_total errors)"
}

# The engine leaves, with all that is mapped for it, and comes again.
leave_and_come()
{
	local dev devs=() disk

	for dev in /sys/bus/pci/drivers/ioatdma/0000:*; do
		devs+=("${dev##*/}")
		echo "${dev##*/}" >/sys/bus/pci/drivers/ioatdma/unbind
	done
	for dev in "${devs[@]}"; do
		echo "$dev" >/sys/bus/pci/drivers/ioatdma/bind
	done
	for disk in "${disks[@]}"; do
		wait_for 20 test -s "/sys/block/$disk/dma/channels"
	done
}

translated
make_ns raw 0
disks=("$ns_disk")
rebind pmem_dma "$ns_dev" "$ns_disk"
make_ns fsdax 1
disks+=("$ns_disk")
rebind pmem_dma "$ns_dev" "$ns_disk"
both_disks
leave_and_come
both_disks
