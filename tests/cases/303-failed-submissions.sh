#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# kernels: debug
# engine-nodes: none
# The kernel's own injection of failing submissions: requests fail before they get to
# the driver, in the middle of others. These fail with EIO and no others do, what was
# written is right, and what the driver counted is what came to it.

# shellcheck source=tests/lib.sh
. /tests/lib.sh
# shellcheck source=tests/swdma.sh
. /tests/swdma.sh

fault=/sys/kernel/debug/fail_make_request

# Some requests are refused. fio ends a job at the first error unless told to go on.
with_failures()
{
	local disk=$1 errors

	echo 1 >"/sys/block/$disk/make-it-fail"
	fio --name=failures --filename="/dev/$disk" --direct=1 --thread --ioengine=libaio \
		--rw=randrw --bsrange=4k-64k --size=8M --iodepth=16 --continue_on_error=io \
		--output-format=json --output="/out/$disk.json" || true
	echo 0 >"/sys/block/$disk/make-it-fail"
	errors=$(sed -n '/^{/,$p' "/out/$disk.json" | jq '.jobs[0].total_err')
	expect "requests of $disk failed" test "$errors" -gt 0
	mark "$disk: $errors requests failed"
}

swdma_load late=1 poison=165
make_disks
echo 0 >$fault/verbose
echo 5 >$fault/probability
echo -1 >$fault/times
for disk in "${disks[@]}"; do
	with_failures "$disk"
done
echo 0 >$fault/probability
adds_up
for disk in "${disks[@]}"; do
	refuse "redone requests of $disk" test "${counted[$disk.redone]}" -gt 0
	fio_verify "$disk" --rw=randrw --bsrange=4k-64k --size=4M --iodepth=16
done
