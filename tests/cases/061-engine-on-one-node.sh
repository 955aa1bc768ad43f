#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# engine-nodes: 1
# Only node 1 has an engine: the queues of node 0 borrow its channels.

# shellcheck source=tests/lib.sh
. /tests/lib.sh

make_ns raw 0
rebind pmem_dma "$ns_dev" "$ns_disk"
expect_same "nodes of the queues" '0 1' \
	"$(awk '{ print $2 }' "/sys/block/$ns_disk/dma/channels" | sort -u | xargs)"
expect_same "nodes of the channels" 1 \
	"$(awk '{ print $4 }' "/sys/block/$ns_disk/dma/channels" | sort -u | xargs)"
echo dma >"/sys/block/$ns_disk/dma/policy"
fio_verify "$ns_disk" --rw=randwrite --bs=64k --size=8M --iodepth=8 --cpus_allowed=0
expect "node 0 used the engine" test "$(engine_bytes)" -gt 8000000
