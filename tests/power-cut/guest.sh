#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# The power cut's part in the guest, run by tests/power-cut/run: what the last cut
# left is checked, then writers and file systems are set to work until the next one.
#   POWER_EPOCH  number of this boot, from 1; the first one makes the namespaces
#   POWER_SEED   of the writer
#   POWER_LAST   1: only check, and end

# shellcheck source=tests/lib.sh
. /tests/lib.sh

epoch=$POWER_EPOCH
acks=/root/acks
port=0x300
declare -A disk_of

# make_two MODE NODE: a small namespace for records and a large one for files.
make_two()
{
	local region
	region=$(region_of "$2")

	clear_region "$region"
	created "$(ndctl create-namespace --force --mode="$1" --region="$region" \
		--name="records$2" --size=128M)"
	created "$(ndctl create-namespace --force --mode="$1" --region="$region" \
		--name="files$2")"
}

find_disks()
{
	local name disk

	while read -r name disk; do
		disk_of[$name]=$disk
		expect_same "driver of $disk" pmem_dma \
			"$(basename "$(readlink "/sys/block/$disk/device/driver")")"
	done < <(ndctl list -N | jq -r '.[] | select(.name // "" != "") | "\(.name) \(.blockdev)"')
	expect_same "namespaces" 4 "${#disk_of[@]}"
}

# Everything by the engine, or what is long enough for it.
set_policy()
{
	local name

	for name in records0 files1; do
		echo dma >"/sys/block/${disk_of[$name]}/dma/policy"
	done
	for name in records1 files0; do
		echo 65536 >"/sys/block/${disk_of[$name]}/dma/read_min_bytes"
		echo 65536 >"/sys/block/${disk_of[$name]}/dma/write_min_bytes"
	done
}

make_files()
{
	mkfs.ext4 -q -F "/dev/${disk_of[files0]}"
	mkfs.xfs -q -f "/dev/${disk_of[files1]}"
}

check_files()
{
	expect "ext4 is clean" fsck.ext4 -f -n "/dev/${disk_of[files0]}" >/out/ext4.log 2>&1
	expect "xfs is clean" xfs_repair -n "/dev/${disk_of[files1]}" >/out/xfs.log 2>&1
}

mount_files()
{
	mount -t ext4 "/dev/${disk_of[files0]}" /mnt/ext4
	mount -t xfs "/dev/${disk_of[files1]}" /mnt/xfs
}

# The journals bring the file systems in order, and nothing else has to.
replay_journals()
{
	mount_files
	umount /mnt/ext4 /mnt/xfs
	expect "ext4 replayed its journal" \
		grep -q "EXT4-fs (${disk_of[files0]}): recovery complete" <(dmesg)
	expect "xfs replayed its journal" \
		grep -q "XFS (${disk_of[files1]}): Ending recovery" <(dmesg)
	check_files
	mark "ext4 and xfs replayed their journals and are clean"
}

# The same targets in the same order, each time.
powercut()
{
	/usr/bin/powercut "$1" "$POWER_SEED" "$2" "$3" "/dev/${disk_of[records0]}" \
		"/dev/${disk_of[records1]}" /mnt/ext4 /mnt/xfs
}

# Print what the disks have moved, and by whom. The files change, so each is read in one
# go.
moved()
{
	local file line lines name
	local -A sum=()

	for file in /sys/block/pmem*/dma/stats; do
		mapfile -t lines <"$file"
		for line in "${lines[@]}"; do
			name=${line% *}
			sum[$name]=$((${sum[$name]:-0} + ${line#* }))
		done
	done
	printf 'moved: read dma %d cpu %d write dma %d cpu %d flushes %d redone %d\n' \
		"${sum[read_bytes_dma]}" "${sum[read_bytes_cpu]}" "${sum[write_bytes_dma]}" \
		"${sum[write_bytes_cpu]}" "${sum[flushes]}" \
		$((sum[read_requests_redone] + sum[write_requests_redone]))
}

# All jobs have got an acknowledgement.
all_write()
{
	kill -0 "$writer" 2>/dev/null || fail "the writer ended: $(tail -n 1 /out/writer.log)"
	grep -q 'all jobs have written' /out/writer.log
}

write_until_cut()
{
	powercut write "$epoch" "$port" >/out/writer.log 2>&1 &
	writer=$!
	wait_for 60 all_write
	# The harness wants a line of it from each boot, however early the cut comes.
	moved
	mark "ready for the cut"
	while all_write; do
		moved
		sleep 0.3
	done
}

echo 5000 >/sys/module/ioatdma/parameters/completion_timeout
mkdir -p /mnt/ext4 /mnt/xfs
if [ "$epoch" = 1 ]; then
	make_two raw 0
	make_two fsdax 1
fi
find_disks
set_policy
if [ "$epoch" = 1 ]; then
	make_files
else
	replay_journals
fi
mount_files
if [ "$epoch" != 1 ]; then
	expect "nothing acknowledged is missing" powercut check $((epoch - 1)) "$acks"
	moved
	mark "checked"
fi
if [ -z "${POWER_LAST:-}" ]; then
	write_until_cut
fi
umount /mnt/ext4 /mnt/xfs
check_files
