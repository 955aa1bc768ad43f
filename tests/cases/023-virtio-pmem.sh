#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# kernels: 6.1 6.12 7.3
# timeout: 180
# qemu: -object memory-backend-memfd,id=vp0,size=64M,share=on -device virtio-pmem-pci,memdev=vp0,bus=pcie.0,memaddr=0x180000000 -object memory-backend-file,id=vp1,size=64M,share=on,mem-path=/dev/zero -device virtio-pmem-pci,memdev=vp1,bus=pcie.0,memaddr=0x190000000
# Two virtio-pmem devices. Their flush is a request to the host; that of the
# second one fails, since nothing can be synced to /dev/zero.

# shellcheck source=tests/lib.sh
. /tests/lib.sh

# Sets devices to the namespaces of the virtio buses; the first one can flush.
find_devices()
{
	local dir

	devices=()
	for dir in /sys/bus/nd/devices/region*; do
		if [ "$(cat "$dir/../provider")" = virtio-pmem ]; then
			devices+=("namespace${dir##*region}.0")
		fi
	done
}

use()
{
	rebind "$1" "$2"
	disk=$(basename "/sys/bus/nd/devices/$2"/block/*)
	wait_for 10 test -b "/dev/$disk"
	[ ! -e "/sys/block/$disk/dma/policy" ] || echo dma >"/sys/block/$disk/dma/policy"
}

# Print what becomes of a command: "ok" or the errno's name.
outcome()
{
	if "$@" 2>/tmp/err; then
		echo ok
	elif grep -q 'Input/output error' /tmp/err; then
		echo EIO
	else
		cat /tmp/err
	fi
}

write_dsync()
{
	dd if=/dev/zero of="/dev/$disk" bs=64K count=1 conv=notrunc oflag=direct,dsync status=none
}

write_direct()
{
	dd if=/dev/zero of="/dev/$disk" bs=64K count=1 conv=notrunc oflag=direct status=none
}

# Print a line of everything that a flush has a part in.
flushing()
{
	echo "fua $(cat "/sys/block/$disk/queue/fua")" \
		"$(cat "/sys/block/$disk/queue/write_cache"):" \
		"write $(outcome write_direct), fsync $(outcome sync "/dev/$disk")," \
		"O_DSYNC $(outcome write_dsync), write $(outcome write_direct)"
}

# A disk whose flush is not an instruction can't promise MAP_SYNC.
dax_file()
{
	mkfs.ext4 -q -b 4096 "/dev/$1"
	mount -o dax "/dev/$1" /mnt
	xfs_io -f -c 'pwrite -S 0x5a 0 1m' -c 'mmap 0 1m' -c 'mwrite -S 0xa5 4k 8k' \
		-c 'msync -s' /mnt/file >/dev/null
	refuse "MAP_SYNC on $1" xfs_io -c 'mmap -S 0 1m' /mnt/file >/tmp/out 2>&1
	sum=$(sha256sum </mnt/file)
	umount /mnt
	expect "ext4 is clean" fsck.ext4 -f -n "/dev/$1" >/out/fsck.log 2>&1
	mount -o dax "/dev/$1" /mnt
	expect_same "the file after a new mount" "$sum" "$(sha256sum </mnt/file)"
	umount /mnt
}

find_devices
expect_same "virtio-pmem devices" 2 "${#devices[@]}"
use nd_pmem "${devices[0]}"
# Which one is which depends on the bus.
if [ "$(outcome sync "/dev/$disk")" != ok ]; then
	devices=("${devices[1]}" "${devices[0]}")
fi

stock=()
for driver in "${drivers[@]}"; do
	for i in 0 1; do
		use "$driver" "${devices[i]}"
		line=$(flushing)
		mark "$driver on ${devices[i]}: $line"
		expect_same "flushing under $driver" "${stock[i]:=$line}" "$line"
	done
	use "$driver" "${devices[0]}"
	fio_verify "$disk" --rw=randwrite --bsrange=4k-256k --size=16M --iodepth=16 --fsync=8
done
expect "a flush that works" grep -q 'fsync ok, O_DSYNC ok' <<<"${stock[0]}"
expect "a flush that fails" grep -q 'fsync EIO' <<<"${stock[1]}"

ns_name=${devices[0]}
reconfigure_ns fsdax --map=mem
for driver in "${drivers[@]}"; do
	rebind "$driver" "$ns_dev" "$ns_disk"
	dax_file "$ns_disk"
done
