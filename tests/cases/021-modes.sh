#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# select: yes
# timeout: 240
# Namespaces of every mode with pmem_dma selected: each is made, one out of the
# other, by ndctl; capacity is what the stock driver shows; devdax goes to its own
# driver.

# shellcheck source=tests/lib.sh
. /tests/lib.sh

# Bound to pmem_dma, and the data is right.
check_disk()
{
	expect_same "driver of $ns_dev" pmem_dma "$(driver_of "$ns_dev")"
	fio_verify "$ns_disk" --rw=randwrite --bsrange=4k-64k --size=4M --iodepth=8
}

# The size under the stock driver, and back.
check_size()
{
	local ours

	ours=$(cat "/sys/block/$ns_disk/size")
	rebind nd_pmem "$ns_dev" "$ns_disk"
	expect_same "size of $ns_disk with nd_pmem" "$ours" "$(cat "/sys/block/$ns_disk/size")"
	rebind pmem_dma "$ns_dev" "$ns_disk"
}

make_ns raw 0
check_disk
check_size
make_ns fsdax 0 --map=mem
check_disk
check_size
make_ns fsdax 0 --map=dev
check_disk
check_size
make_ns sector 0 --sector-size=4096
check_disk
check_size
make_ns devdax 0
expect "the dax device is there" compgen -G '/sys/bus/dax/devices/dax0.*' >/dev/null
expect "dax_pmem has it" compgen -G '/sys/bus/nd/drivers/dax_pmem/dax0.*' >/dev/null
make_ns raw 0
check_disk
make_ns fsdax e820
check_disk
check_size
