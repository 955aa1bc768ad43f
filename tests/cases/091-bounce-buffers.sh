#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# timeout: 240
# append: swiotlb=force
# engine-nodes: none
# Every mapping of memory is a bounce buffer: data are right only if each is mapped
# in the right direction and unmapped before the request ends. None is left. The
# engine is swdma, since ioatdma does not pass its own self-test on such a machine.

# shellcheck source=tests/lib.sh
. /tests/lib.sh

swiotlb=/sys/kernel/debug/swiotlb

used()
{
	cat "$swiotlb/io_tlb_used"
}

stat_of()
{
	awk -v name="$1" '$1 == name { print $2 }' "$disk/dma/stats"
}

modprobe swdma
make_ns raw 0
rebind pmem_dma "$ns_dev" "$ns_disk"
disk=/sys/block/$ns_disk
echo dma >"$disk/dma/policy"
idle=$(used)
fio_verify "$ns_disk" --rw=randwrite --bsrange=512-256k \
	--size=8M --iodepth=8
expect "an engine did it" test "$(stat_of read_bytes_dma)" -gt 8000000
expect "an engine did it" test "$(stat_of write_bytes_dma)" -gt 8000000
expect "bounce buffers were used" test "$(cat "$swiotlb/io_tlb_used_hiwater")" -gt "$idle"
expect_same "buffers in use" "$idle" "$(used)"

# More at once than there are buffers for: what cannot be mapped, the CPU copies.
fio_verify "$ns_disk" --rw=randwrite --bs=1m --size=96M --iodepth=96
mark "$(grep fallback_map "$disk/dma/stats" | tr '\n' ' ')"
expect_same "buffers in use" "$idle" "$(used)"
unbind "$ns_dev"
expect_same "buffers in use without a disk" "$idle" "$(used)"
