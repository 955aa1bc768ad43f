#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# timeout: 240
# Without configuration the stock driver has everything. One namespace changes
# hands through sysfs, both ways, while the other one is under load; each driver
# shows the same bytes and the same capacity.

# shellcheck source=tests/lib.sh
. /tests/lib.sh

# Print size and checksum of a disk, the whole of it, past the page cache.
look()
{
	printf '%s ' "$(cat "/sys/block/$1/size")"
	dd if="/dev/$1" bs=2M iflag=direct status=none | sha256sum
}

# Fill the disk with something that is the same nowhere.
fill()
{
	fio_run "$1" --rw=write --bs=1M --iodepth=4 --refill_buffers --size=100%
}

# through DEVICE DISK: round all drivers and back.
through()
{
	local first driver

	first=$(look "$2")
	for driver in pmem_dma pmem_cpu pmem_dma nd_pmem; do
		rebind "$driver" "$1" "$2"
		expect_same "$2 under $driver" "$first" "$(look "$2")"
	done
}

expect_same "driver without configuration" nd_pmem "$(driver_of namespace2.0)"
make_ns fsdax 1
expect_same "driver of $ns_dev" nd_pmem "$(driver_of "$ns_dev")"
load_dev=$ns_dev load_disk=$ns_disk
make_ns raw 0 --size=128M
expect_same "driver of $ns_dev" nd_pmem "$(driver_of "$ns_dev")"

fill "$ns_disk"
rebind pmem_dma "$load_dev" "$load_disk"
echo dma >"/sys/block/$load_disk/dma/policy"
fio --name=load --filename="/dev/$load_disk" --direct=1 --thread \
	--ioengine=libaio --rw=randwrite --bs=128k --iodepth=4 --size=32M \
	--time_based --runtime=7200 --verify=crc32c --verify_fatal=1 \
	--verify_backlog=64 --output=/out/load.log &
load=$!
through "$ns_dev" "$ns_disk"
expect "the other namespace's load still runs" kill -0 "$load"
kill -INT "$load"
wait "$load" || true
refuse "the load met an error" grep -E 'verify: bad|error=' /out/load.log
rebind nd_pmem "$load_dev" "$load_disk"
