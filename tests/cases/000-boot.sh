#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# kernels: 6.1 6.12 7.3
# The machine is what the other cases count on, with stock drivers only.

# shellcheck source=tests/lib.sh
. /tests/lib.sh

check_nodes()
{
	expect_same "nodes with CPUs" 0-1 "$(cat /sys/devices/system/node/has_cpu)"
	expect_same "CPUs of node 1" 2-3 "$(cat /sys/devices/system/node/node1/cpulist)"
}

check_regions()
{
	expect_same "first NVDIMM" region0 "$(region_of 0)"
	expect_same "second NVDIMM" region1 "$(region_of 1)"
	expect_same "memmap= region" region2 "$(region_of e820)"
}

# One device on each node, four channels each, all from the upstream driver.
check_engines()
{
	local dev node nodes=''

	for dev in /sys/bus/pci/drivers/ioatdma/0000:*; do
		expect "4 channels of ${dev##*/}" test "$(find "$dev/dma/" -name 'dma*chan*' | wc -l)" = 4
		node=$(cat "$dev/numa_node")
		nodes+=$node
	done
	[[ $nodes =~ ^(01|10)$ ]] || fail "engines are on nodes '$nodes'"
	expect "the engine's counters" test "$(engine_total errors)" = 0
}

check_nodes
check_regions
check_engines
make_ns raw 0
expect_same "driver of $ns_dev" nd_pmem "$(driver_of "$ns_dev")"
fio_verify "$ns_disk" --rw=randwrite --bsrange=4k-64k --size=16M --iodepth=8
