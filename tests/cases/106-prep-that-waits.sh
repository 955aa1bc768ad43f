#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# engine-nodes: none
# timeout: 240
# An engine whose prep waits for a free descriptor, as idxd's does, stands still while
# requests wait there. That is noticed, others go by the CPU, and those that wait go on
# when the channel is terminated, the engine goes on, or the provider leaves.

# shellcheck source=tests/lib.sh
. /tests/lib.sh
# shellcheck source=tests/swdma.sh
. /tests/swdma.sh

# Most of the load's 192 requests are in prep then. All who submit may wait for one
# channel while another is idle and thus never late: so each is given a read.
stand_still()
{
	count_from_here
	knobs stall=1
	read_from_each_cpu
	wait_for 40 rose timeouts
	wait_for 20 none_healthy
	count_from_here
	mark "the engines stand still"
}

swdma_load out_of_order=1 terminate=1 synchronize=1 block=1 ring=16
make_disks
start_load
uses_dma

# Those in prep are woken by the terminate and submit to an engine that goes on later:
# nobody may think that they were terminated, too.
for round in 1 2; do
	stand_still
	wait_for 40 rose redone {read,write}_requests_fallback_no_channel
	mark "channels are terminated, requests go by the CPU: $round"
	knobs_clear
	readers_end
	wait_for 80 state_is healthy
	uses_dma
done

stand_still
provider_leaves
mark "the provider has left"
by_cpu
knobs_clear
readers_end
provider_comes
wait_for 20 channels_are 4
uses_dma

# Without terminate nothing but the engine itself helps: what came before the hang
# was noticed waits for it.
reload out_of_order=1 terminate=0 synchronize=1 block=1 ring=16
for disk in "${disks[@]}"; do
	echo dma >"/sys/block/$disk/dma/policy"
done
uses_dma
stand_still
touch_disks
expect "the CPU copied" rose {read,write}_requests_fallback_no_channel
knobs_clear
readers_end
wait_for 40 state_is healthy
uses_dma
stop_load
adds_up
removal delay_us=200
