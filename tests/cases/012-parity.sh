#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# kernels: 6.1 6.12 7.3
# timeout: 180
# What a disk shows in sysfs and answers to ioctls is the same under each driver, but
# for what Documentation/parity.md lists.

# shellcheck source=tests/lib.sh
. /tests/lib.sh

# Attributes that a driver with request queues has, or has other values of. A disk's
# numbers and statistics are never the same.
never='dev|uevent|diskseq|stat|inflight'
of_requests='queue/(async_depth|io_poll_delay|io_timeout|iostats|max_hw_sectors_kb'
of_requests+='|max_sectors_kb|max_segment_size|nr_requests|rq_affinity|scheduler|wbt_lat_usec)'

# Print "attribute:value" lines, but not of the attributes named. Some cannot be read.
attributes()
{
	cd "/sys/block/$ns_disk"
	{ grep -rs '' --exclude-dir={power,trace,integrity,mq,dma} . || true; } |
		sed 's#^\./##' | grep -vE "^($1):" | sort
	cd /
}

ioctls()
{
	local dev=/dev/$ns_disk

	blockdev --getro --getss --getpbsz --getiomin --getioopt --getsz --getsize64 \
		--getalignoff --getra --flushbufs --rereadpt "$dev"
	for command in "blkdiscard $dev" "blkdiscard --secure $dev" \
		"blkdiscard --zeroout --offset 4096 --length 65536 $dev" \
		"fallocate --punch-hole --offset 0 --length 4096 $dev" \
		"fallocate --zero-range --offset 4096 --length 4096 $dev" \
		"dd if=/dev/zero of=$dev bs=513 count=1 oflag=direct status=none"; do
		# shellcheck disable=SC2086 # words
		echo "$command: $(if $command 2>&1; then echo ok; fi)"
	done
}

for mode in raw fsdax sector; do
	make_ns "$mode" 0
	for driver in "${drivers[@]}"; do
		rebind "$driver" "$ns_dev" "$ns_disk" >/dev/null
		except=$never
		if [ -e "/sys/block/$ns_disk/dma" ]; then
			except+="|$of_requests"
		fi
		attributes "$except" >"/tmp/attributes.$driver"
		ioctls >"/tmp/ioctls.$driver"
		grep -vE "^($except):" /tmp/attributes.nd_pmem >/tmp/wanted || true
		expect "attributes of $driver" diff /tmp/wanted "/tmp/attributes.$driver"
		expect "ioctls of $driver" diff /tmp/ioctls.nd_pmem "/tmp/ioctls.$driver"
	done
	mark "$(wc -l </tmp/wanted) attributes: $(wc -l </tmp/attributes.nd_pmem) of the stock driver"
	expect "attributes" test "$(wc -l </tmp/wanted)" -gt 40
done
cat /tmp/ioctls.nd_pmem
