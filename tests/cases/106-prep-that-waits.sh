#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# kernels: none
# engine-nodes: none
# timeout: 240
# An engine whose prep waits for a free descriptor, as idxd's does, stands still while
# requests wait there. By hand only (KVER=6.12 CASE=106*), since it fails: the block
# layer looks for late requests only when nobody is in queue_rq() any more, so no
# channel is found to be late and nothing goes by the CPU until the engine goes on.

# shellcheck source=tests/lib.sh
. /tests/lib.sh
# shellcheck source=tests/swdma.sh
. /tests/swdma.sh

swdma_load out_of_order=1 terminate=1 synchronize=1 block=1 ring=64
make_disks
start_load
uses_dma
count_from_here
knobs stall=1
wait_for 40 rose timeouts
wait_for 40 rose {read,write}_requests_fallback_no_channel
knobs_clear
wait_for 80 state_is healthy
uses_dma
stop_load
adds_up
