#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# engine-nodes: none
# timeout: 240
# A provider that completes in any order and may sleep, as idxd does, with every
# fault that it can have under one load. One that loses callbacks is terminated;
# where it cannot be, requests wait for it to leave.

# shellcheck source=tests/lib.sh
. /tests/lib.sh
# shellcheck source=tests/swdma.sh
. /tests/swdma.sh

# A callback is lost on a provider without terminate: nobody knows whether the
# data are still to come. The request waits; others do not.
cannot_terminate()
{
	reload out_of_order=1 late=1 poison=165
	uses_dma
	count_from_here
	# Of one device only: a disk lets go of a provider when nothing is in flight.
	chan_knobs 0 lose_ms=0 lose_times=8 lose_every=30
	wait_for 30 any_rose timeouts
	# Twice as long as it takes to give up where giving up is safe.
	sleep 6
	refuse "a request was redone that may still be written" any_rose redone
	chan_knobs 0 lose_every=0
	count_from_here
	device_leaves swdma.0
	expect "what the provider owed was redone" any_rose redone
	goes_on
	echo swdma.0 >"$swdma_driver/bind"
	wait_for 20 channels_are 4
	uses_dma
	mark "lost callbacks, no terminate: redone when the provider had left"
}

swdma_load out_of_order=1 terminate=1 synchronize=1 late=1 poison=165
make_disks
expect "all channels are healthy" state_is healthy
start_load
uses_dma

fault "sleep_us=300" {read,write}_bytes_dma
fault "prep_every=5 sleep_us=100" {read,write}_requests_fallback_full {read,write}_bytes_cpu
fault "submit_every=5" {read,write}_requests_fallback_full {read,write}_bytes_cpu
for result in 1 2 3; do
	fault "fail_result=$result fail_every=20" engine_errors {read,write}_requests_redone
done
fault "fail_result=2 fail_abort=1 fail_every=100" "engine_errors>100" \
	{read,write}_requests_redone
fault "delay_us=1000" {read,write}_bytes_dma
fault "lose_ms=300 lose_every=50" {read,write}_requests_dma
overdue "stall=1"
fault "lose_ms=0 lose_times=8 lose_every=30" timeouts {read,write}_requests_redone
cannot_terminate
stop_load
adds_up
removal "fail_every=3 prep_every=7 sleep_us=100"
