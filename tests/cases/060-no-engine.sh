#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# engine-nodes: none
# select: yes
# A machine without any engine: the CPU copies, and one line says so.

# shellcheck source=tests/lib.sh
. /tests/lib.sh

dmesg -C
make_ns raw 0
expect_same "driver of $ns_dev" pmem_dma "$(driver_of "$ns_dev")"
echo dma >"/sys/block/$ns_disk/dma/policy"
fio_verify "$ns_disk" --rw=randwrite --bsrange=512-1m --size=16M --iodepth=16
expect_same "channels" '' "$(cat "/sys/block/$ns_disk/dma/channels")"
expect_same "bytes by DMA" 0 "$(awk '/bytes_dma/ { sum += $2 } END { print sum }' \
	"/sys/block/$ns_disk/dma/stats")"
expect "reads fell back for want of a channel" \
	grep -q '^read_requests_fallback_no_channel [1-9]' "/sys/block/$ns_disk/dma/stats"
unbind "$ns_dev"
dmesg -C
bind pmem_dma "$ns_dev"
expect_same "lines in the log for one bind" \
	"pmem_dma $ns_dev: no DMA channel, the CPU copies" \
	"$(dmesg | grep pmem | sed 's/^\[[^]]*\] //')"
