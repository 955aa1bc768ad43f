#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# timeout: 240
# persistence: mem-ctrl
# DAX files under each driver: pages and 2 MiB at a time by mmap, MAP_SYNC, the
# cache write-back of msync and fsync and the attribute that turns it off,
# clones of xfs.

# shellcheck source=tests/lib.sh
. /tests/lib.sh

mib=$((1 << 20))
tracing=/sys/kernel/tracing
file=/mnt/file

# Print how many events of a kind came since the last call of forget.
events()
{
	grep -c -- "$1" $tracing/trace || true
}

forget()
{
	echo >$tracing/trace
}

watch_kernel()
{
	echo 'p:dax/wb arch_wb_cache_pmem len=%si:u64' >$tracing/kprobe_events
	echo 1 >$tracing/events/dax/wb/enable
	echo 1 >$tracing/events/fs_dax/dax_pmd_fault_done/enable
}

# The first $1 bytes of the file as the disk has them, past the file system.
file_on_media()
{
	local sector

	sector=$(xfs_io -r -c 'fiemap -v 0 1' $file | awk '
		$1 ~ /^[0-9]+:$/ { split($3, media, /\.\./); print media[1]; exit }')
	dd if="/dev/$ns_disk" bs="$1" count=1 iflag=direct,skip_bytes \
		skip=$((sector * 512)) status=none
}

mapped_bytes()
{
	xfs_io -c 'mmap -r 0 8m' -c "mread -v $1 16" $file | sed -n 's/^[0-9a-f]*: *//p'
}

# A big, aligned extent is mapped by one fault of 2 MiB.
big_pages()
{
	xfs_io -f -c 'falloc 0 8m' -c 'pwrite -q -S 0x11 0 8m' $file
	forget
	xfs_io -c 'mmap 0 8m' -c 'mwrite -S 0x22 0 8m' -c 'msync -s 0 8m' $file
	expect "faults of 2 MiB" test "$(events 'dax_pmd_fault_done.*NOPAGE')" -ge 4
	expect_same "bytes other than written" 0 "$(file_on_media $mib | tr -d '\042' | wc -c)"
}

# Stores reach the media by msync, or by fsync; with a write-back of the cache
# unless the attribute says that none is needed.
written_back()
{
	local attr=/sys/block/$ns_disk/dax/write_cache

	expect_same "write_cache" 1 "$(cat "$attr")"
	for sync in 'msync -s 0 8m' fsync; do
		forget
		xfs_io -c 'mmap 0 8m' -c 'mwrite -S 0x33 4k 64k' -c "$sync" $file
		expect "write-back by $sync" test "$(events ' wb: ')" -gt 0
	done
	echo 0 >"$attr"
	forget
	xfs_io -c 'mmap 0 8m' -c 'mwrite -S 0x44 4k 64k' -c fsync $file
	expect_same "write-backs without write_cache" 0 "$(events ' wb: ')"
	echo 1 >"$attr"
	if echo maybe >"$attr" 2>/dev/null; then
		fail "write_cache takes anything"
	fi
	expect_same "write_cache" 1 "$(cat "$attr")"
	expect "bytes by read(2)" cmp -n 4096 \
		<(dd if=$file bs=4K skip=2 count=1 status=none) <(head -c 4096 /dev/zero | tr '\0' '\104')
	expect_same "bytes by mmap" "44 44 44 44 44 44 44 44 44 44 44 44 44 44 44 44  DDDDDDDDDDDDDDDD" \
		"$(mapped_bytes 8192)"
}

map_sync()
{
	xfs_io -c 'mmap -S 0 1m' -c 'mwrite -S 0x55 0 4k' $file >/tmp/out 2>&1 ||
		fail "MAP_SYNC: $(cat /tmp/out)"
	expect "a MAP_SYNC mapping, got $(cat /tmp/out)" test ! -s /tmp/out
	expect_same "bytes other than written" 0 \
		"$(file_on_media 4096 | tr -d '\125' | wc -c)"
}

# A store to a clone goes to a page of its own.
clone()
{
	local before

	before=$(sha256sum <$file)
	cp --reflink=always $file /mnt/clone
	xfs_io -c 'mmap 0 8m' -c 'mwrite -S 0x66 1m 4k' -c 'msync -s 0 8m' /mnt/clone
	expect_same "the original" "$before" "$(sha256sum <$file)"
	expect_same "bytes that differ" 4096 "$({ cmp -l $file /mnt/clone || true; } | wc -l)"
	rm /mnt/clone
}

on_ext4()
{
	mkfs.ext4 -q -F -b 4096 -E stride=512,stripe_width=512 "/dev/$ns_disk"
	mount -o dax=always "/dev/$ns_disk" /mnt
	big_pages
	written_back
	map_sync
	umount /mnt
	expect "ext4 is clean" fsck.ext4 -f -n "/dev/$ns_disk" >/out/fsck.log 2>&1
}

on_xfs()
{
	mkfs.xfs -q -f -m reflink=1,rmapbt=1 -d su=2m,sw=1,agcount=2 -l su=32k,size=64m "/dev/$ns_disk"
	mount -o dax=always "/dev/$ns_disk" /mnt
	xfs_io -c 'extsize 2m' /mnt
	big_pages
	written_back
	map_sync
	clone
	umount /mnt
	expect "xfs is clean" xfs_repair -n "/dev/$ns_disk" >/out/fsck.log 2>&1
}

make_ns fsdax 0
watch_kernel
for driver in "${drivers[@]}"; do
	rebind "$driver" "$ns_dev" "$ns_disk"
	mark "ext4"
	on_ext4
	mark "xfs"
	on_xfs
done
