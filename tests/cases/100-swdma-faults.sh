#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# engine-nodes: none
# timeout: 240
# A provider that works in order, as ioatdma does, with every fault that it can
# have, one after the other under one load: each is seen for what it is, no error
# reaches the user, no byte is wrong, and channels are used again afterwards.

# shellcheck source=tests/lib.sh
. /tests/lib.sh
# shellcheck source=tests/swdma.sh
. /tests/swdma.sh

# Data come at the last moment, into memory that was spoilt before: whoever looks
# at a request too early finds it wrong.
swdma_load late=1 poison=165
make_disks
expect "all channels are healthy" state_is healthy
start_load
uses_dma

# The channel does not take a descriptor: the first of a request, or a later one.
fault "prep_every=5" {read,write}_requests_fallback_full {read,write}_bytes_cpu
fault "submit_every=5" {read,write}_requests_fallback_full {read,write}_bytes_cpu

# A descriptor fails half-way.
for result in 1 2 3; do
	fault "fail_result=$result fail_every=20" engine_errors {read,write}_requests_redone
done
fault "fail_result=2 fail_abort=1 fail_every=100" "engine_errors>100" \
	{read,write}_requests_redone

# Slow, but not out of time; interrupts that never come but are found later.
fault "delay_us=1000" {read,write}_bytes_dma
fault "irq_every=3" {read,write}_bytes_dma
fault "lose_ms=300 lose_every=50" {read,write}_requests_dma

# Out of time: the CPU takes over until the channel answers.
overdue "stall=1"
overdue "slow_ms=6000 slow_times=1 slow_every=1"
fault "irq_every=1" timeouts

# Callbacks that never come: what came before a later one is over.
fault "lose_ms=0 lose_times=8 lose_every=30" timeouts {read,write}_requests_redone

# Every descriptor fails: the channels have to rest.
fault "fail_every=1" engine_errors {read,write}_requests_fallback_no_channel
stop_load
adds_up
removal "fail_every=3 prep_every=7"
