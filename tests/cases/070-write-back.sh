#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# persistence: mem-ctrl
# Where the persistence domain is the memory controller, every range that an
# engine wrote is written back from the CPU cache before its request is done, and
# a flush comes after that.

# shellcheck source=tests/lib.sh
. /tests/lib.sh
# shellcheck source=tests/persistence.sh
. /tests/persistence.sh

make_ns raw 0
rebind pmem_dma "$ns_dev" "$ns_disk"
expect_same "persistence domain" memory_controller \
	"$(cat /sys/bus/nd/devices/region0/persistence_domain)"

trace_start
write_by_engine "$ns_disk"
trace_stop
read -r writes missing < <(judge_writes)
mark "$writes writes, $missing without a write-back before their end"
expect "there were writes" test "$writes" -gt 10
expect_same "writes without write-back" 0 "$missing"

trace_start
dd if=/dev/zero of="/dev/$ns_disk" bs=64k count=8 oflag=direct,dsync status=none
trace_stop
expect "dsync writes were written back" test "$(grep -c ' wb: ' /out/trace)" -ge 8
expect "dsync writes were flushed" test "$(grep -c ' flush: ' /out/trace)" -ge 8
expect_same "write-backs without a flush after them" 0 "$(judge_flushes)"
