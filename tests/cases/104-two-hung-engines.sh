#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# engine-nodes: none
# timeout: 240
# Two engines hang at the same time, and are unbound one after the other.

# shellcheck source=tests/lib.sh
. /tests/lib.sh
# shellcheck source=tests/swdma.sh
. /tests/swdma.sh

# Both do nothing any more; one after the other they leave. Nobody waits for requests
# that are with the other one: neither the unbinding, nor the giving back of channels,
# which is refused.
leave_both()
{
	count_from_here
	knobs stall=1
	read_from_each_cpu
	wait_for 20 none_healthy
	within 20 refuse "giving back channels with requests that hang" \
		write_to "/sys/block/$raw/dma/release" 1
	device_leaves swdma.0
	expect "what it owed was redone" any_rose redone
	touch_disks
	device_leaves swdma.1
	readers_end
	goes_on
	by_cpu
	knobs_clear
	provider_comes
	wait_for 20 channels_are 4
	wait_for 20 state_is healthy
	uses_dma
	mark "round $1: two that hung were unbound"
}

# A self-test waits for the engine, not so whoever has started it.
kill_selftest()
{
	local tester dma=/sys/block/$raw/dma

	knobs stall=1
	echo 1 >"$dma/selftest" &
	tester=$!
	wait_for 20 grep -q suspect "$dma/channels"
	kill -KILL "$tester"
	wait_for 20 exited "$tester"
	within 20 cat "$dma/selftest"
	knobs_clear
	wait_for 40 state_is healthy
	within 20 write_to "$dma/selftest" 1
	mark "a self-test was killed"
}

swdma_load
make_disks
wait_for 20 channels_are 4
kill_selftest
start_load
for round in 1 2 3; do
	uses_dma
	leave_both "$round"
done
stop_load
adds_up
