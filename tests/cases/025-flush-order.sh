#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# append: memmap=64M$1216M
# engine-nodes: none
# A write that wants a flush before its data fails with it, and moves nothing; and a
# disk that goes, or whose machine goes down, is flushed. Under each driver, the stock
# one first.

# shellcheck source=tests/lib.sh
. /tests/lib.sh
# shellcheck source=tests/poison.sh
. /tests/poison.sh

flushes()
{
	cat "$bus/$region/flushes"
}

# write FILE: 64 KiB at 1 MiB of the disk
write()
{
	dd if="$1" of="/dev/$disk" oflag=direct bs=64k seek=16 count=1 conv=notrunc status=none
}

holds()
{
	dd if="/dev/$disk" iflag=direct bs=64k skip=16 count=1 status=none | cmp -s - "$1"
}

for name in old new; do
	head -c 64k /dev/urandom >"/tmp/$name"
done
unwatch_disks
load_bus
for driver in "${drivers[@]}"; do
	use "$driver" "$ns"
	write /tmp/old
	modprobe preflush disk="$disk"

	echo 5 >"$bus/$region/flush_errno"
	before=$(flushes)
	refuse "$driver: a write whose flush fails" write /tmp/new 2>/tmp/error
	expect "$driver: EIO" grep -q 'Input/output error' /tmp/error
	expect "$driver: it was flushed first" test "$(flushes)" -gt "$before"
	echo 0 >"$bus/$region/flush_errno"
	expect "$driver: no data moved" holds /tmp/old

	before=$(flushes)
	write /tmp/new
	expect "$driver: flushes before a write" test "$(flushes)" -gt "$before"
	expect "$driver: data moved after a flush" holds /tmp/new
	rmmod preflush

	udevadm settle
	before=$(flushes)
	modprobe ndshutdown device="$ns"
	rmmod ndshutdown
	expect "$driver: flushes at shutdown" test "$(flushes)" -gt "$before"

	before=$(flushes)
	unbind "$ns"
	expect "$driver: flushes when the disk goes" test "$(flushes)" -gt "$before"
	mark "$driver: flushes where it has to"
done
unload_bus
