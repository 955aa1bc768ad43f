#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# persistence: cpu
# Where the CPU cache belongs to the persistence domain, nothing is written back:
# that would be time for nothing.

# shellcheck source=tests/lib.sh
. /tests/lib.sh
# shellcheck source=tests/persistence.sh
. /tests/persistence.sh

make_ns raw 0
rebind pmem_dma "$ns_dev" "$ns_disk"
expect_same "persistence domain" cpu_cache \
	"$(cat /sys/bus/nd/devices/region0/persistence_domain)"
trace_start
write_by_engine "$ns_disk"
trace_stop
expect "there were writes" test "$(grep -c 'block_rq_complete: .* W' /out/trace)" -gt 10
expect_same "write-backs" 0 "$(grep -c ' wb: ' /out/trace || true)"
