#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# kernels: 6.1 6.12 7.3
# select: yes
# With the shipped modprobe configuration enabled, coldplug alone loads pmem_dma
# and gives it every namespace, and nd_pmem is not even loaded.

# shellcheck source=tests/lib.sh
. /tests/lib.sh

not_loaded()
{
	! grep -q "^$1 " /proc/modules
}

check_coldplug()
{
	expect "pmem_dma was loaded by coldplug" grep -q '^pmem_dma ' /proc/modules
	expect "nd_pmem was not" not_loaded nd_pmem
	expect "ioatdma was" grep -q '^ioatdma ' /proc/modules
	expect_same "driver of the memmap= namespace" pmem_dma "$(driver_of namespace2.0)"
}

# ndctl goes by what is loaded too.
check_ndctl()
{
	make_ns raw 0
	expect_same "driver of $ns_dev" pmem_dma "$(driver_of "$ns_dev")"
	expect "its disk has channels" test -s "/sys/block/$ns_disk/dma/channels"
	make_ns fsdax 1
	expect_same "driver of $ns_dev" pmem_dma "$(driver_of "$ns_dev")"
	expect "nd_pmem is still not loaded" not_loaded nd_pmem
	echo dma >"/sys/block/$ns_disk/dma/policy"
	fio_verify "$ns_disk" --rw=randwrite --bsrange=4k-256k --size=16M --iodepth=16
}

# One command back, as the file's comments say.
check_switch_back()
{
	sed -i -E 's/^(alias|softdep) /#\1 /' /etc/modprobe.d/pmem-dma.conf
	expect_same "what nd:t5 loads now" nd_pmem "$(modprobe -R nd:t5)"
}

check_coldplug
check_ndctl
check_switch_back
