# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Sourced by cases, after lib.sh: bad sectors and failing flushes, made by the bus
# of nvbus.ko on memory that the command line reserved. /tmp/shadow holds what the
# disk should: every byte that is read is compared with it.

shadow=/tmp/shadow
kib=1024 mib=$((1 << 20))
bus=/sys/kernel/debug/nvbus

# --- The bus -----------------------------------------------------------------

# load_bus [PARAMETER...]: sets region and ns
# shellcheck disable=SC2120 # parameters are optional
load_bus()
{
	local words start size

	[[ $(cat /proc/cmdline) =~ memmap=([0-9]+)M\$([0-9]+)M ]] ||
		skip "no memory is reserved by memmap=SIZE\$START"
	words=("${BASH_REMATCH[@]}")
	size=$((words[1] * mib)) start=$((words[2] * mib))
	modprobe nd_pmem
	modprobe nvbus start="$start" size="$size" "$@"
	region=$(basename "$bus"/region*)
	ns=namespace${region#region}.0
	wait_for 10 test -e "/sys/bus/nd/devices/$ns/size"
	udevadm settle
}

unload_bus()
{
	ndctl disable-region "$region" >/dev/null
	rmmod nvbus
}

# use DRIVER DEVICE: sets disk, size and data_start, where it begins in the
# region; both in bytes.
use()
{
	local dir=/sys/bus/nd/devices/$2

	rebind "$1" "$2"
	disk=$(basename "$dir"/block/*)
	wait_for 10 test -b "/dev/$disk"
	size=$(($(cat "/sys/block/$disk/size") * 512))
	data_start=0
	if [[ $2 = pfn* ]]; then
		data_start=$(($(cat "$dir/resource") - $(cat "$dir/../resource")))
	fi
	if [ -e "/sys/block/$disk/dma/policy" ]; then
		echo dma >"/sys/block/$disk/dma/policy"
	fi
}

# inject OFFSET LENGTH, in bytes of the disk
inject()
{
	echo "$((data_start + $1)) $2" >"$bus/$region/inject"
}

badblocks()
{
	cat "/sys/block/$disk/badblocks"
}

# What the bus still holds to be bad, sorted, in the form of badblocks().
bus_errors()
{
	sort -n "$bus/$region/list" | awk -v start="$data_start" '{
		first = int(($1 - start) / 512)
		last = int(($1 - start + $2 - 1) / 512)
		print first, last - first + 1
	}'
}

# --- Reads and writes --------------------------------------------------------

# direct_read OFFSET LENGTH: one read(2), into /tmp/got
direct_read()
{
	dd if="/dev/$disk" of=/tmp/got bs="$2" count=1 skip="$1" \
		iflag=direct,skip_bytes status=none 2>/tmp/err
}

# Write /tmp/new to OFFSET by one write(2). direct_write OFFSET LENGTH [FLAGS]
direct_write()
{
	dd if=/tmp/new of="/dev/$disk" bs="$2" count=1 seek="$1" conv=notrunc \
		oflag="direct,seek_bytes${3:+,$3}" status=none 2>/tmp/err
}

eio()
{
	grep -q 'Input/output error' /tmp/err
}

# good OFFSET LENGTH: can be read, and the bytes are right
good()
{
	direct_read "$1" "$2" || fail "$1+$2: $(cat /tmp/err)"
	cmp -n "$2" -i "$1:0" "$shadow" /tmp/got || fail "$1+$2: wrong bytes"
}

# bad OFFSET LENGTH: fails with EIO, and gives no bytes
bad()
{
	refuse "read of $1+$2" direct_read "$1" "$2"
	expect "EIO for $1+$2, got $(cat /tmp/err)" eio
	expect "no bytes of $1+$2" test ! -s /tmp/got
}

# write_good OFFSET LENGTH: works, and the new bytes are read back
write_good()
{
	head -c "$2" /dev/urandom >/tmp/new
	direct_write "$1" "$2" || fail "write to $1+$2: $(cat /tmp/err)"
	dd if=/tmp/new of="$shadow" bs=64K seek="$1" conv=notrunc \
		oflag=seek_bytes status=none
	good "$1" "$2"
}

# write_bad OFFSET LENGTH: fails with EIO
write_bad()
{
	head -c "$2" /dev/urandom >/tmp/new
	refuse "write to $1+$2" direct_write "$1" "$2"
	expect "EIO for the write to $1+$2, got $(cat /tmp/err)" eio
}

whole_disk_good()
{
	dd if="/dev/$disk" of=/tmp/got bs=1M iflag=direct status=none
	cmp "$shadow" /tmp/got || fail "the disk has other bytes than were written"
}

# Take what is on a part of the disk for right. adopt OFFSET LENGTH
adopt()
{
	direct_read "$1" "$2"
	dd if=/tmp/got of="$shadow" bs=1M seek="$1" conv=notrunc \
		oflag=seek_bytes status=none
}

# edges OFFSET LENGTH: all sectors that this range touches are bad, and nothing
# for 256 KiB on both sides is, whatever the size of the request.
edges()
{
	local start=$(($1 / 512 * 512)) end=$((($1 + $2 + 511) / 512 * 512))
	local reach=$((256 * kib))

	bad "$start" 512
	bad $((end - 512)) 512
	bad $((start / 4096 * 4096)) 4096
	if [ "$start" -ge "$reach" ]; then
		good $((start - 512)) 512
		good $((start - reach)) "$reach"
		bad $((start - reach)) $((reach + 512))
	fi
	if [ $((end + reach)) -le "$size" ]; then
		good "$end" 512
		good "$end" "$reach"
		bad $((end - 512)) $((reach + 512))
	fi
}

# Print the offset on the disk of byte $1 of /mnt/file.
file_on_disk()
{
	xfs_io -r -c "fiemap -v $1 1" /mnt/file | awk -v at="$1" '
		$1 ~ /^[0-9]+:$/ {
			split($2, file, /[^0-9]+/)
			split($3, media, /\.\./)
			print media[1] * 512 + at - file[2] * 512
			exit
		}'
}

# --- Steps of a case ---------------------------------------------------------

# step FUNCTION [ARGUMENT...]
step()
{
	mark "$1"
	"$@"
}

# Ranges at the start, the middle and the end, shorter and longer than a sector
# and than a page. The first one begins ahead of the disk's data, if it can.
positions()
{
	local page=4096 middle=$((size / 2)) lead=0 ranges range start count
	middle=$((middle - middle % page))

	[ "$data_start" -eq 0 ] || lead=1024
	inject $((-lead)) $((lead + 512))
	echo "0 1" >/tmp/wanted
	ranges=("$((mib + 3 * 512)) 64" "$((2 * mib + 500)) 24" "$((3 * mib)) $page"
		"$((middle - 2 * page)) $((4 * page))" "$((middle + mib + 512)) 1536"
		"$((size - 100)) 100")
	for range in "${ranges[@]}"; do
		read -r start count <<<"$range"
		inject "$start" "$count"
		echo "$((start / 512)) $(((start + count - 1) / 512 - start / 512 + 1))"
	done >>/tmp/wanted
	expect_same "list of bad sectors" "$(cat /tmp/wanted)" "$(badblocks)"
	while read -r start count; do
		edges $((start * 512)) $((count * 512))
	done </tmp/wanted
}

# Requests of whole MiB over everything that positions() made bad, which may
# reach into the next MiB.
overwrite()
{
	local start at length

	while read -r start _; do
		start=$((start * 512 / mib * mib))
		for at in "$start" $((start + mib)); do
			length=$((at + mib > size ? size - at : mib))
			[ "$length" -le 0 ] || write_good "$at" "$length"
		done
	done </tmp/wanted
	expect_same "bad sectors after overwriting" '' "$(badblocks)"
	expect_same "errors of the disk on the bus" '' "$(bus_errors | sed '/^-/d')"
}

fsync_disk()
{
	sync "/dev/$disk" 2>/tmp/err
}

fsync_written()
{
	dd if=/tmp/new of="/dev/$disk" bs=4096 count=1 conv=notrunc,fsync \
		status=none 2>/tmp/err
}

# The errno that a command failed with: "ENOMEM" or "EIO", or what it printed.
errno_of()
{
	refuse "$1 with a failing flush" "$@"
	case $(cat /tmp/err) in
	*'Cannot allocate memory') echo ENOMEM ;;
	*'Input/output error') echo EIO ;;
	*) cat /tmp/err ;;
	esac
}

# What the bus returns is what the caller gets. Old kernels make EIO of each
# error, below all drivers: then nd_pmem shows that, and it comes first.
flush_errors()
{
	local flushes how

	direct_read 0 4096
	cp /tmp/got /tmp/new
	for how in fsync_disk fsync_written 'direct_write 0 4096 dsync'; do
		flushes=$(cat "$bus/$region/flushes")
		$how || fail "$how: $(cat /tmp/err)"
		expect "$how flushes" test "$(cat "$bus/$region/flushes")" -gt "$flushes"

		echo 5 >"$bus/$region/flush_errno"
		# shellcheck disable=SC2086 # words
		expect_same "$how, EIO" EIO "$(errno_of $how)"
		echo 12 >"$bus/$region/flush_errno"
		# shellcheck disable=SC2086 # words
		flushes=$(errno_of $how)
		[ "$1" != nd_pmem ] || stock_enomem[$how]=$flushes
		expect_same "$how, ENOMEM" "${stock_enomem[$how]}" "$flushes"
		expect "ENOMEM or EIO, got $flushes" test "$flushes" = ENOMEM -o "$flushes" = EIO
		echo 0 >"$bus/$region/flush_errno"
		$how || fail "$how after an error: $(cat /tmp/err)"
	done
	mark "a flush that gets ENOMEM fails with $flushes"
}
declare -A stock_enomem
