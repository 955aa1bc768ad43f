#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# timeout: 300
# ext4 and xfs on pmem_dma: made, mounted, worked on with many fsyncs, checked;
# with -o dax on a namespace that has it.

# shellcheck source=tests/lib.sh
. /tests/lib.sh

mkfs_of()
{
	case $1 in
	ext4) mkfs.ext4 -q -F -b 4096 "$2" ;; # DAX wants blocks of a page
	xfs) mkfs.xfs -q -f "$2" ;;
	esac
}

fsck_of()
{
	case $1 in
	ext4) fsck.ext4 -f -n "$2" >/out/fsck.log 2>&1 ;;
	xfs) xfs_repair -n "$2" >/out/fsck.log 2>&1 ;;
	esac
}

# Write with fsync after every few blocks, read back and compare.
work_on()
{
	fio --name=fs --directory=/mnt --thread --ioengine=libaio --size=8M \
		--rw=randwrite --bsrange=4k-1m --fsync=4 --verify=crc32c \
		--verify_fatal=1 --do_verify=1 --minimal --output=/out/fio.log \
		"$@" || fail "fio $*"
}

# try_fs FS DISK [mount options]
try_fs()
{
	local fs=$1 dev=/dev/$2 sum

	mark "$fs on $2 ${3:-}"
	mkfs_of "$fs" "$dev"
	mount -t "$fs" ${3:+-o "$3"} "$dev" /mnt
	if [ "${3:-}" = dax ]; then
		expect "the mount is dax" grep -q " /mnt $fs .*dax" /proc/mounts
	fi
	work_on --direct=1 --iodepth=8 --numjobs=2
	work_on --numjobs=2
	dd if=/dev/urandom of=/mnt/file bs=1M count=24 conv=fsync status=none
	sum=$(sha256sum </mnt/file)
	umount /mnt
	expect "$fs is clean" fsck_of "$fs" "$dev"
	mount -t "$fs" ${3:+-o "$3"} "$dev" /mnt
	expect_same "the file after a new mount" "$sum" "$(sha256sum </mnt/file)"
	umount /mnt
}

mkdir -p /mnt
make_ns raw 0
raw=$ns_disk
rebind pmem_dma "$ns_dev" "$raw"
make_ns fsdax 1
rebind pmem_dma "$ns_dev" "$ns_disk"
echo 16384 >"/sys/block/$raw/dma/read_min_bytes"
echo 16384 >"/sys/block/$raw/dma/write_min_bytes"
try_fs ext4 "$raw"
try_fs xfs "$raw"
try_fs ext4 "$ns_disk" dax
try_fs xfs "$ns_disk" dax=always
expect "an engine worked for the file systems" test "$(engine_bytes)" -gt 8000000
