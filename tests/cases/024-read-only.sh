#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# timeout: 180
# Read-only comes from the region to the disk and goes again, while it is bound
# and while it is not, for disks with and without a BTT, as with the stock driver.

# shellcheck source=tests/lib.sh
. /tests/lib.sh

region_ro()
{
	echo "$1" >"/sys/bus/nd/devices/$region/read_only"
}

# Print whether the disk says that it is read-only, and what a write and a DAX
# mapping come to.
state()
{
	local written=yes

	dd if=/dev/zero of="/dev/$ns_disk" bs=4K count=1 oflag=direct conv=notrunc \
		status=none 2>/tmp/err || written=no
	echo "$1: ro $(cat "/sys/block/$ns_disk/ro"), getro $(blockdev --getro "/dev/$ns_disk"), write $written"
}

# Print all that happens.
story()
{
	region_ro 0
	state "at first"
	region_ro 1
	state "region read-only"
	blockdev --setrw "/dev/$ns_disk"
	state "disk set writable"
	region_ro 1
	state "region read-only again"
	rebind "$1" "$ns_dev" "$ns_disk" >/dev/null
	state "bound while read-only"
	region_ro 0
	state "region writable"
	blockdev --setro "/dev/$ns_disk"
	state "disk set read-only"
	region_ro 0
	state "region writable again"
	rebind "$1" "$ns_dev" "$ns_disk" >/dev/null
	state "bound while writable"
}

# The same story under each driver.
tell()
{
	local driver stock='' told

	for driver in "${drivers[@]}"; do
		rebind "$driver" "$ns_dev" "$ns_disk"
		told=$(story "$driver")
		stock=${stock:-$told}
		expect_same "story under $driver" "$stock" "$told"
	done
	mark "$stock"
	expect "writes were refused" grep -q 'region read-only: ro 1, .*write no' <<<"$stock"
	expect "and allowed again" grep -q 'region writable: ro 0, .*write yes' <<<"$stock"
}

region=$(region_of 0)
for mode in raw sector fsdax; do
	make_ns "$mode" 0
	tell
done

# It changes while requests are on their way: reads go on, no write comes through.
echo dma >"/sys/block/$ns_disk/dma/policy"
fio --name=load --filename="/dev/$ns_disk" --direct=1 --thread --ioengine=libaio \
	--rw=randread --bs=64k --iodepth=16 --size=64M --time_based --runtime=8 \
	--output=/out/load.log &
load=$!
sleep 3
for i in 1 2 3 4 5 6 7 8 9 10; do
	region_ro $((i % 2))
	expect_same "read-only" $((i % 2)) "$(cat "/sys/block/$ns_disk/ro")"
done
wait "$load" || fail "reads failed: $(cat /out/load.log)"
