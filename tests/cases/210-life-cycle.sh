#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# kernels: 6.1 6.12 7.3
# timeout: 300
# One namespace changes hands 200 times between the three drivers, with I/O, now
# and then in mid-air, while another one is under load. Its region is taken away,
# it is destroyed in use, and modules go in every order. Nothing is left over.

# shellcheck source=tests/lib.sh
. /tests/lib.sh
# shellcheck source=tests/life.sh
. /tests/life.sh

drivers=(nd_pmem pmem_cpu pmem_dma)
parts=4 part_rounds=45 warm_up=20
thorough || part_rounds=15

# Capacity, and a part of the data that nobody writes to.
look()
{
	printf '%s ' "$(cat "/sys/block/$1/size")"
	dd if="/dev/$1" bs=1M skip=1 count=8 iflag=direct status=none | sha256sum
}

start_load()
{
	fio --name=load --filename="/dev/$load_disk" --direct=1 --thread \
		--ioengine=libaio --rw=randwrite --bsrange=64k-256k --iodepth=4 \
		--size=16M --rate_iops=30 --time_based --runtime=7200 \
		--verify=crc32c --verify_fatal=1 --verify_backlog=16 \
		--output=/out/load.log &
	load=$!
	wait_for 30 busy "$load_disk" 16
}

stop_load()
{
	expect "the other namespace's load still runs" kill -0 "$load"
	kill -INT "$load"
	wait "$load" || true
	refuse "the load met an error" grep -E 'verify: bad|error=' /out/load.log
}

# busy DISK REQUESTS: that many of them are done.
busy()
{
	local stat

	read -r -a stat <"/sys/block/$1/stat"
	[ $((stat[0] + stat[4])) -ge "$2" ]
}

# until_gone COMMAND...: over and over, until the disk is not there.
until_gone()
{
	while "$@" 2>/dev/null; do :; done
}

# I/O to a disk that goes on until it goes away. Writes keep off the part that
# look() sees. Disks made of bios count nothing unless told to.
start_io()
{
	echo 1 >"/sys/block/$1/queue/iostats"
	[ ! -e "/sys/block/$1/dma" ] || echo dma >"/sys/block/$1/dma/policy"
	until_gone dd if="/dev/$1" of=/dev/null bs=64k iflag=direct &
	io=("$!")
	until_gone dd if=/dev/zero of="/dev/$1" bs=128k seek=128 count=96 \
		conv=nocreat oflag=direct &
	io+=("$!")
	wait_for 20 busy "$1" 20
}

io_ended()
{
	local pid

	for pid in "${io[@]}"; do
		! kill -0 "$pid" 2>/dev/null || return 1
	done
}

# The disk has gone, and all I/O to it ends soon.
io_ends()
{
	wait_for 20 io_ended
	wait "${io[@]}" || true
	nothing_left "$ns_disk" "$ns_name"
}

# A few bytes, read as the driver before left them, and written.
short_io()
{
	local got

	IFS= read -r got <"/dev/$ns_disk"
	expect_same "first line of the disk" "$word" "$got"
	word="round $1 by $2"
	printf '%-30s\n' "$word" 1<>"/dev/$ns_disk"
	printf -v word '%-30s' "$word"
}

# change_hands ROUND
change_hands()
{
	local driver=${drivers[$(($1 % 3))]}

	echo "$ns_dev" >"/sys/bus/nd/drivers/$holder/unbind"
	if [ ${#io[@]} -gt 0 ]; then
		io_ends
		io=()
	else
		nothing_left "$ns_disk" "$ns_name"
	fi
	bind "$driver" "$ns_dev"
	holder=$driver
	short_io "$1" "$driver"
	# 20 is no multiple of 3, so that every driver has its turn.
	[ $(($1 % 20)) -ne 19 ] || start_io "$ns_disk"
}

# hands FIRST LAST
hands()
{
	local round

	for ((round = $1; round <= $2; round++)); do
		change_hands "$round"
	done
	if [ ${#io[@]} -gt 0 ]; then
		unbind "$ns_dev"
		io_ends
		io=()
		bind "$holder" "$ns_dev"
	fi
	mark "changed hands $2 times"
}

# take_region DRIVER: away from a disk in use, and give it back.
take_region()
{
	rebind "$1" "$ns_dev" "$ns_disk"
	start_io "$ns_disk"
	within 30 ndctl disable-region "$ns_region" >/dev/null
	io_ends
	ndctl enable-region "$ns_region" >/dev/null
	ns_dev=$(claim_of "$ns_name")
	rebind "$1" "$ns_dev" "$ns_disk"
	expect_same "$ns_disk after enable-region" "$first" "$(look "$ns_disk")"
}

# destroy DRIVER: only with --force, even if nobody uses the disk.
destroy()
{
	rebind "$1" "$ns_dev" "$ns_disk"
	refuse "an active namespace is destroyed" \
		ndctl destroy-namespace "$ns_name" 2>/dev/null
	expect_same "driver after a refusal" "$1" "$(driver_of "$ns_dev")"
	expect_same "$ns_disk after a refusal" "$first" "$(look "$ns_disk")"
	start_io "$ns_disk"
	within 30 ndctl destroy-namespace --force "$ns_name" >/dev/null
	io_ends
	make_ns fsdax 0 --size=32M
}

loaded()
{
	has_line "$1 " /proc/modules
}

# with_all: each driver has one of three disks; sets held
with_all()
{
	local driver

	modprobe -a "${drivers[@]}"
	# Whoever looks at a new disk has it open.
	udevadm settle
	held=()
	for driver in "${drivers[@]}"; do
		[ "$(driver_of "${all[$driver]}")" = "$driver" ] ||
			rebind "$driver" "${all[$driver]}" >/dev/null
		held[$driver]=$(basename "/sys/bus/nd/devices/${all[$driver]}"/block/*)
		expect "a disk of $driver" test -b "/dev/${held[$driver]}"
	done
	udevadm settle
}

# order MODULE...: unload them, each with a disk, in this order.
order()
{
	local driver other

	with_all
	for driver; do
		refuse "pmem_core goes before its front ends" rmmod pmem_core 2>/dev/null
		rmmod "$driver"
		refuse "${held[$driver]}" test -e "/sys/block/${held[$driver]}"
		expect_same "driver of ${all[$driver]}" '' "$(driver_of "${all[$driver]}")"
		unset "held[$driver]"
		[ "$driver" != pmem_dma ] || expect "free channels" channels_free
		for other in "${!held[@]}"; do
			dd if="/dev/${held[$other]}" of=/dev/null bs=64k count=4 \
				iflag=direct status=none
		done
		if ! loaded pmem_cpu && ! loaded pmem_dma && loaded pmem_core; then
			rmmod pmem_core
		fi
	done
	refuse "pmem_core" loaded pmem_core
	mark "unloaded in this order: $*"
}

# The engine's module may go whenever nobody has its channels, and come again.
engine_module()
{
	# The first one gets all disks.
	modprobe nd_pmem
	rebind pmem_dma "$ns_dev" "$ns_disk"
	refuse "ioatdma goes while in use" rmmod ioatdma 2>/dev/null
	unbind "$ns_dev"
	expect "free channels" channels_free
	rmmod ioatdma
	bind pmem_dma "$ns_dev"
	expect_same "channels without an engine" '' "$(cat "/sys/block/$ns_disk/dma/channels")"
	modprobe ioatdma
	unbind "$ns_dev"
	bind pmem_dma "$ns_dev"
	expect "channels again" test -n "$(cat "/sys/block/$ns_disk/dma/channels")"
	refuse "ioatdma goes while in use" rmmod ioatdma 2>/dev/null
	rmmod pmem_dma
	expect "free channels" channels_free
	rmmod ioatdma
	modprobe ioatdma
}

modprobe -a "${drivers[@]}"
make_ns fsdax 1
load_dev=$ns_dev load_disk=$ns_disk
rebind pmem_dma "$load_dev" "$load_disk"
echo dma >"/sys/block/$load_disk/dma/policy"
make_ns fsdax 0 --size=32M
ns_region=$(region_of 0)
holder=$(driver_of "$ns_dev") io=()
dd if=/dev/urandom of="/dev/$ns_disk" bs=1M oflag=direct conv=fsync status=none count=24
printf -v word '%-30s' start
printf '%s\n' "$word" 1<>"/dev/$ns_disk"
first=$(look "$ns_disk")

# A bind and an unbind wait for many grace periods, of tens of ms each.
echo 1 >/sys/kernel/rcu_expedited
start_load
hands 1 "$warm_up"
snapshot /tmp/snapshot.0
for ((part = 1, last = warm_up; part <= parts; part++, last += part_rounds)); do
	hands $((last + 1)) $((last + part_rounds))
	snapshot "/tmp/snapshot.$part"
done
stop_load
echo 0 >/sys/kernel/rcu_expedited
expect_same "memory that binds left over" '' \
	"$(grown $((part_rounds / 3)) /tmp/snapshot.*)"
expect_same "$ns_disk at the end" "$first" "$(look "$ns_disk")"

start_load
for driver in "${drivers[@]}"; do
	take_region "$driver"
done
for driver in "${drivers[@]}"; do
	destroy "$driver"
	first=$(look "$ns_disk")
done
stop_load

declare -A all held
all=([nd_pmem]=namespace2.0 [pmem_cpu]=$load_dev [pmem_dma]=$ns_dev)
order nd_pmem pmem_cpu pmem_dma
order pmem_cpu pmem_dma nd_pmem
order pmem_dma nd_pmem pmem_cpu
all=([nd_pmem]=$load_dev [pmem_cpu]=$ns_dev [pmem_dma]=namespace2.0)
order nd_pmem pmem_dma pmem_cpu
order pmem_cpu nd_pmem pmem_dma
order pmem_dma pmem_cpu nd_pmem
engine_module
