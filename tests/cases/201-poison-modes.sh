#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# kernels: 6.1 6.12 7.3
# timeout: 420
# append: memmap=64M$1216M
# Bad sectors of fsdax and sector disks, under DAX files, and failing flushes of
# a disk without FUA, under each driver in turn.

# shellcheck source=tests/lib.sh
. /tests/lib.sh
# shellcheck source=tests/poison.sh
. /tests/poison.sh

# reconfigure MODE [OPTION...]: sets device, what a driver binds to, and disk
reconfigure()
{
	ndctl create-namespace --force --reconfig="$ns" --mode "$@" >/tmp/ns.json
	disk=$(jq -r .blockdev /tmp/ns.json)
	device=$(basename "$(readlink -f "/sys/block/$disk/device")")
	mark "$*: $device"
}

# bad_sectors DEVICE DRIVER...
bad_sectors()
{
	local driver device=$1
	shift

	use nd_pmem "$device"
	rm -f "$shadow"
	adopt 0 "$size"
	for driver; do
		use "$driver" "$device"
		step whole_disk_good
		step positions
		step overwrite
	done
}

# Data begin elsewhere than the region does.
fsdax_disk()
{
	local map=$1
	shift

	reconfigure fsdax --map="$map"
	bad_sectors "$device" "$@"
	expect "data do not begin with the region" test "$data_start" -gt 0
}

# Bad pages of a DAX file can't be read, and are good after they were written.
# A write of less than a page can't make one good.
dax_file()
{
	local page=4096 at=$((mib + 5 * 4096)) media

	mkfs.ext4 -q -b "$page" "/dev/$disk"
	mount -o dax "/dev/$disk" /mnt
	head -c $((2 * mib)) /dev/urandom >/tmp/file
	cp /tmp/file /mnt/file
	sync /mnt/file
	media=$(file_on_disk "$at")

	inject $((media + 100)) 16
	refuse "read of a bad page" dd if=/mnt/file of=/tmp/got bs="$page" \
		skip="$at" count=1 iflag=skip_bytes status=none
	expect "no bytes of a bad page" test ! -s /tmp/got
	dd if=/mnt/file of=/tmp/got bs="$page" skip=$((at + page)) count=4 \
		iflag=skip_bytes status=none
	cmp -n $((4 * page)) -i $((at + page)):0 /tmp/file /tmp/got
	refuse "write to a part of a bad page" dd if=/tmp/file of=/mnt/file bs=512 \
		seek="$at" count=1 oflag=seek_bytes conv=notrunc status=none
	expect_same "bad sectors" "$((media / 512)) 1" "$(badblocks)"

	head -c "$page" /dev/urandom >/tmp/new
	for file in /tmp/file /mnt/file; do
		dd if=/tmp/new of="$file" bs="$page" seek="$at" oflag=seek_bytes \
			conv=notrunc status=none
	done
	expect_same "bad sectors after the write" '' "$(badblocks)"
	expect "right bytes" cmp /tmp/file /mnt/file
	umount /mnt
}

dax_files()
{
	for driver in "${drivers[@]}"; do
		use "$driver" "$device"
		step dax_file
	done
}

# Print how many pages of the disk can't be read.
failing_pages()
{
	fio --name=read --filename="/dev/$disk" --direct=1 --thread \
		--ioengine=psync --bs=4k --rw=read --continue_on_error=read \
		--output-format=json --output=/out/fio.json || true
	sed -n '/^{/,$p' /out/fio.json | jq '.jobs[0].total_err'
}

# A BTT keeps the blocks that it once could not read; each driver gets new ones.
sector_disk()
{
	local driver before failing i=0

	reconfigure sector
	use nd_pmem "$device"
	head -c "$size" /dev/urandom |
		dd of="/dev/$disk" bs=1M iflag=fullblock oflag=direct status=none
	before=$(failing_pages)
	expect_same "pages that fail before any is bad" 0 "$before"
	for driver in "${drivers[@]}"; do
		use "$driver" "$device"
		i=$((i + 1))
		inject $((i * 8 * mib)) 65536
		failing=$(failing_pages)
		expect "up to 16 pages more fail ($before, $failing)" \
			test $((failing - before)) -gt 8 -a $((failing - before)) -le 16
		before=$failing
	done
}

thorough || drivers=(pmem_cpu pmem_dma)
load_bus
fsdax_disk dev "${drivers[@]}"
dax_files
step sector_disk
reconfigure raw
unload_bus
thorough || exit 0

# A raw disk without struct pages, and without a DIMM. Nobody guarantees
# persistence then: no FUA, so the block layer, or the file's fsync, flushes after
# the write.
load_bus dimm=0 pagemap=0
bad_sectors "$ns" pmem_cpu pmem_dma
for driver in "${drivers[@]}"; do
	use "$driver" "$ns"
	expect_same "FUA" 0 "$(cat "/sys/block/$disk/queue/fua")"
	step flush_errors "$driver"
done
fsdax_disk mem pmem_cpu pmem_dma
unload_bus
