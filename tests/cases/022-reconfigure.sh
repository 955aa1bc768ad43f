#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# select: yes
# kernels: 6.1 6.12 7.3
# timeout: 240
# With pmem_dma selected, ndctl makes each mode out of each other one. All get the
# right driver and always the same size, and data are right.

# shellcheck source=tests/lib.sh
. /tests/lib.sh

# Each of the 20 ways from one mode to another, once.
modes=(raw sector raw mem raw dev raw devdax sector mem sector dev sector devdax
	mem dev mem devdax dev devdax raw)

declare -A sizes

check()
{
	local size

	if [ "$1" = devdax ]; then
		expect_same "disk of $ns_dev" '' "$ns_disk"
		expect_same "driver of $ns_dev" dax_pmem "$(driver_of "$ns_dev")"
		return
	fi
	expect_same "driver of $ns_dev" pmem_dma "$(driver_of "$ns_dev")"
	size=$(cat "/sys/block/$ns_disk/size")
	expect_same "size as $1" "${sizes[$1]:-$size}" "$size"
	[ -z "${sizes[$1]:-}" ] || return 0
	sizes[$1]=$size
	fio_verify "$ns_disk" --rw=randwrite --bsrange=4k-64k --size=4M --iodepth=8
}

for mode in "${modes[@]}"; do
	case $mode in
	mem | dev) words=(fsdax --map="$mode") ;;
	*) words=("$mode") ;;
	esac
	if [ -z "${ns_name:-}" ]; then
		make_ns "${words[@]}" 0
	else
		reconfigure_ns "${words[@]}"
	fi
	check "$mode"
done
make_ns fsdax e820
check dev-e820
