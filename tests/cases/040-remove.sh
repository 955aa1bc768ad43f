#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# timeout: 300
# The namespace is unbound, destroyed, and the module taken away while I/O runs:
# I/O ends with errors, nothing hangs, nothing is left, and it all works again.

# shellcheck source=tests/lib.sh
. /tests/lib.sh

# start_load DISK: until the disk goes away.
start_load()
{
	echo dma >"/sys/block/$1/dma/policy"
	fio --name=load --filename="/dev/$1" --direct=1 --thread \
		--ioengine=libaio --rw=randrw --bsrange=4k-1m --iodepth=32 \
		--numjobs=4 --size=64M --time_based --runtime=7200 \
		--output=/out/load.log >/dev/null 2>&1 &
	load=$!
	wait_for 30 busy "$1"
}

# How many are in flight depends on who is faster, the engine or fio.
busy()
{
	awk '{ exit !($1 > 100 && $5 > 100 && $9) }' "/sys/block/$1/stat"
}

# The load ends by itself, with errors, and soon.
load_ends()
{
	wait_for 30 exited "$load"
	if wait "$load"; then
		fail "the load met no error"
	fi
	refuse "the disk is still there" test -e "/sys/block/$1"
}

modules_gone()
{
	! grep -qE '^pmem_(dma|cpu|core) ' /proc/modules
}

make_ns fsdax 1
for round in 1 2 3; do
	rebind pmem_dma "$ns_dev" "$ns_disk"
	start_load "$ns_disk"
	within 20 write_to /sys/bus/nd/drivers/pmem_dma/unbind "$ns_dev"
	load_ends "$ns_disk"
	mark "round $round: unbound under load"
done

rebind pmem_dma "$ns_dev" "$ns_disk"
start_load "$ns_disk"
refuse "a module in use goes away" rmmod pmem_dma
within 30 ndctl disable-namespace "$ns_name" >/dev/null
load_ends "$ns_disk"
rmmod pmem_dma pmem_core
expect "no module is left" modules_gone
rmmod ioatdma
modprobe ioatdma

modprobe pmem_dma
ndctl destroy-namespace --force "$ns_name" >/dev/null
make_ns fsdax 1
expect_same "driver of the new namespace" pmem_dma "$(driver_of "$ns_dev")"
echo dma >"/sys/block/$ns_disk/dma/policy"
fio_verify "$ns_disk" --rw=randwrite --bs=64k --size=16M --iodepth=16
