#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# engine-nodes: none
# timeout: 240
# The provider comes after the disks, leaves while it is in use, is given back and
# comes again as another one, all under one load: the disks go on by the CPU, and
# by channels as soon as there are some that will do.

# shellcheck source=tests/lib.sh
. /tests/lib.sh
# shellcheck source=tests/swdma.sh
. /tests/swdma.sh

# leave_in_use MODE [KNOB=VALUE...]: what becomes of descriptors in flight
leave_in_use()
{
	local mode=$1
	shift

	count_from_here
	knobs unbind="$mode" "$@"
	sleep 0.5
	provider_leaves
	by_cpu
	provider_comes
	wait_for 20 channels_are 4
	knobs_clear
	wait_for 20 state_is healthy
	uses_dma
	mark "unbound and bound in use, mode $mode ${*:+with }$*"
}

# One that does nothing any more leaves; the other one works.
leave_hung()
{
	count_from_here
	chan_knobs 0 stall=1
	wait_for 20 any_rose timeouts
	device_leaves swdma.0
	expect "what it owed was redone" any_rose redone
	uses_dma
	echo swdma.0 >"$swdma_driver/bind"
	wait_for 20 state_is healthy
	goes_on
	mark "one that hung was unbound"
}

# The range of the disks is beyond what the engine can address: one line for each
# disk and device. A better one that comes in its place is used.
too_few_bits()
{
	tell release
	rmmod swdma
	dmesg -C
	swdma_load dma_bits=31
	tell rescan
	by_cpu
	expect_same "lines about it" $((2 * ${#disks[@]})) \
		"$(dmesg | grep -c 'cannot address the pmem range')"
	rmmod swdma
	by_cpu
	swdma_load
	wait_for 20 channels_are 4
	uses_dma
}

# The disks look for channels when the module of the provider is about to go, and cannot
# be had any more.
rescan_while_removed()
{
	local remover

	reload "$@" hold_exit=1
	tell release
	rmmod swdma &
	remover=$!
	wait_for 10 grep -q going /sys/module/swdma/initstate
	tell rescan
	by_cpu
	echo 0 >/sys/module/swdma/parameters/hold_exit
	wait "$remover" || fail "rmmod failed"
	by_cpu
	swdma_load
	wait_for 20 channels_are 4
	uses_dma
	mark "a rescan while the provider is removed $*"
}

# limited COUNTER PARAMETER...: channels with this limit, of which the counter of
# swdma tells that it was met.
limited()
{
	local counter=$1
	shift

	reload "$@"
	count_from_here
	wait_for 20 rose {read,write}_requests_fallback_full {read,write}_bytes_cpu
	expect "$counter" test "$(swdma_total "$counter")" -gt 0
	goes_on
}

odd_requests()
{
	local disk

	reload copy_align=12
	uses_dma
	expect_same "misaligned descriptors" 0 "$(swdma_total misaligned)"
	count_from_here
	for disk in "${disks[@]}"; do
		dd if="/dev/$disk" of=/dev/null iflag=direct bs=512 skip=3 count=1 status=none
		dd if=/dev/zero of="/dev/$disk" oflag=direct bs=512 seek=409603 count=1 \
			conv=notrunc status=none
	done
	expect "short requests fell back" rose {read,write}_requests_fallback_align
	expect_same "misaligned descriptors" 0 "$(swdma_total misaligned)"
}

# All descriptors wait for an interrupt that never comes, so that there is none left for
# a probe. The provider looks when it is asked for one that is not done yet.
full_without_interrupts()
{
	reload ring=16
	uses_dma
	count_from_here
	knobs irq_every=1
	wait_for 20 any_rose timeouts
	goes_on
	goes_on
	wait_for 20 grep -q benched /sys/block/pmem*/dma/channels
	goes_on
	knobs_clear
	uses_dma
	mark "a full ring without interrupts"
}

make_disks
start_load
by_cpu
swdma_load
wait_for 20 channels_are 4
uses_dma
refuse "a provider in use goes away" rmmod swdma
mark "the provider came after the disks"

leave_in_use 0
leave_in_use 1
leave_in_use 2
leave_in_use 1 delay_us=1000
leave_hung

too_few_bits
rescan_while_removed
rescan_while_removed private=0
limited ring_full ring=16
limited too_long max_len=2048 advertise=0
full_without_interrupts
reload max_len=4096
uses_dma
expect_same "too long descriptors" 0 "$(swdma_total too_long)"
odd_requests
reload out_of_order=1 block=1 ring=16
uses_dma
reload private=0 terminate=2 synchronize=1
uses_dma
fault "lose_ms=0 lose_times=8 lose_every=30" timeouts {read,write}_requests_redone

stop_load
adds_up
removal "delay_us=100"
