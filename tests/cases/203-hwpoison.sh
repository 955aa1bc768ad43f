#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# kernels: 6.1 6.12 7.3
# timeout: 240
# append: memmap=320M$960M
# A page of a DAX file goes bad while processes have it mapped: the one that maps
# this page is killed, others go on; the page can't be read, and is good again
# after it was overwritten. xfs hears of it by the notification of the driver.

# shellcheck source=tests/lib.sh
. /tests/lib.sh
# shellcheck source=tests/poison.sh
. /tests/poison.sh

tracing=/sys/kernel/tracing
page=4096

# Mapped, and waiting for the next command.
waits()
{
	grep -q /mnt/file "/proc/$1/maps" && grep -q '^State:.S' "/proc/$1/status"
}

# map NAME OFFSET: a process that maps a page of the file and touches it, and does
# what is written to fd[NAME]
map()
{
	local out

	mkfifo "/tmp/$1"
	xfs_io /mnt/file <"/tmp/$1" >"/tmp/$1.out" 2>&1 &
	pid[$1]=$!
	exec {out}>"/tmp/$1"
	fd[$1]=$out
	printf 'mmap %d %d\nmread -v %d 16\n' "$2" "$page" "$2" >&"$out"
	wait_for 10 waits "${pid[$1]}"
}

# ends NAME STATUS: no more commands for the process, which ends so.
ends()
{
	local out=${fd[$1]} status=0

	exec {out}>&-
	wait "${pid[$1]}" 2>/dev/null || status=$?
	rm "/tmp/$1"
	expect_same "end of $1" "$2" "$status"
}

notified()
{
	grep -c ' notify: ' $tracing/trace || true
}

# $1: whether the file system is to be told
one_bad_page()
{
	local at=$((mib + 5 * page)) media address
	declare -A pid fd

	head -c $((2 * mib)) /dev/urandom >/tmp/file
	cp /tmp/file /mnt/file
	sync /mnt/file
	media=$(file_on_disk "$at")
	map victim "$at"
	map other $((at + 64 * page))
	echo >$tracing/trace

	address=$(($(cat "/sys/bus/nd/devices/$device/resource") + media))
	inject "$media" "$page"
	echo "$address" >/sys/devices/system/memory/hard_offline_page
	wait_for 10 exited "${pid[victim]}"
	ends victim 135 # 128 + SIGBUS
	expect_same "file system was told" "$1" "$(notified)"

	refuse "read of the bad page" dd if=/mnt/file of=/tmp/got bs="$page" skip="$at" \
		count=1 iflag=skip_bytes status=none
	expect "no bytes of the bad page" test ! -s /tmp/got
	refuse "the other process is gone" exited "${pid[other]}"
	printf 'mread -v %d 16\n' $((at + 64 * page)) >&"${fd[other]}"
	ends other 0
	expect_same "reads of the other process" 2 "$(wc -l </tmp/other.out)"

	head -c "$page" /dev/urandom >/tmp/new
	for file in /tmp/file /mnt/file; do
		dd if=/tmp/new of="$file" bs="$page" seek="$at" oflag=seek_bytes \
			conv=notrunc status=none
	done
	expect_same "bad sectors after the write" '' "$(badblocks)"
	expect "right bytes" cmp /tmp/file /mnt/file
	map next "$at"
	ends next 0
	rm -f /tmp/*.out
}

# The second parameter is how often the file system is told.
on_fs()
{
	case $1 in
	ext4) mkfs.ext4 -q -F -b "$page" "/dev/$disk" ;;
	xfs) mkfs.xfs -q -f -m rmapbt=1 "/dev/$disk" ;;
	esac
	mount -o dax=always "/dev/$disk" /mnt
	one_bad_page "$2"
	umount /mnt
}

load_bus async=0
ndctl create-namespace --force --reconfig="$ns" --mode=fsdax >/tmp/ns.json
disk=$(jq -r .blockdev /tmp/ns.json)
device=$(basename "$(readlink -f "/sys/block/$disk/device")")
modprobe xfs
# Else a process lives until it touches the page again.
echo 1 >/proc/sys/vm/memory_failure_early_kill
echo 'p:mf/notify xfs_dax_notify_failure offset=%si:x64' >$tracing/kprobe_events
echo 1 >$tracing/events/mf/notify/enable
for driver in "${drivers[@]}"; do
	use "$driver" "$device"
	step on_fs ext4 0
	step on_fs xfs 1
done
unload_bus
