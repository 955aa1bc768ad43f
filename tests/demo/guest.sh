#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# The demo's part in the guest: namespaces, data check, both measurements.
# Leaves header.tsv and cells.tsv in /out for report.py.
set -euo pipefail

# shellcheck source=tests/lib.sh
. /tests/lib.sh
# shellcheck source=tests/demo/measure.sh
. /tests/demo/measure.sh

results=/out/cells.tsv
conf=/etc/modprobe.d/pmem-dma.conf
demo_seconds=${DEMO_SECONDS:-3}
policy=${DEMO_POLICY:-auto}
blocks=(4k 64k 2M)
loads=("1 1" "16 16")
directions=(read write)
cells_total=$((2 * ${#blocks[@]} * ${#loads[@]} * ${#directions[@]}))
cells_done=0
# Blocks large enough for the engine in both directions.
verify_mib=48
verify=(--name=verify --rw=write --bs=1M --size="${verify_mib}M" --iodepth=8
	--ioengine=libaio --direct=1 --thread --iomem=shmhuge
	--verify=crc32c --verify_fatal=1 --eta=never)

say()
{
	printf 'demo: %3d s  %s\n' "$SECONDS" "$*"
}

make_namespaces()
{
	make_ns fsdax 0
	disk=$ns_disk
	make_ns raw 1
	other=$ns_disk
	say "ndctl made /dev/$disk (fsdax, node 0) and /dev/$other (raw, node 1)"
}

disk_driver()
{
	local driver

	driver=$(readlink -e "/sys/block/$1/device/driver") || driver=nothing
	printf '%s\n' "${driver##*/}"
}

expect_driver()
{
	local wanted=$1 d

	for d in "$disk" "$other"; do
		[ "$(disk_driver "$d")" = "$wanted" ] ||
			fail "/dev/$d is bound to $(disk_driver "$d"), not $wanted"
	done
}

# udevd goes on for seconds with the modprobe configuration that it knows.
coldplug()
{
	udevadm control --reload
	udevadm trigger --action=add --subsystem-match=nd
	udevadm settle --timeout=60 || fail "udev is not done within 60 s"
}

# What its comments tell an administrator to do. The reboot is done without:
# the driver is unloaded and the devices announced once more.
select_pmem_dma()
{
	sed -i -E 's/^#(alias|softdep) /\1 /' "$conf"
	modprobe -r nd_pmem
	coldplug
	expect_driver pmem_dma
	say "pmem_dma selected by modprobe configuration; bound to both"
}

select_nd_pmem()
{
	count_driver_bytes
	sed -i -E 's/^(alias|softdep) /#\1 /' "$conf"
	modprobe -r pmem_dma
	coldplug
	expect_driver nd_pmem
	say "configuration taken back; nd_pmem bound to both"
}

# Print how often the driver asked an engine that was late for a sign of life:
# last of the columns of "channels", in which disks and queues share channels.
probes()
{
	awk '{ probes[$3] = $6 } END { for (c in probes) n += probes[c]; printf "%d", n }' \
		/sys/block/*/dma/channels
}

# Print the sum of the counters whose names match.
counters()
{
	awk -v name="$1" '$1 ~ name { n += $2 } END { printf "%d", n }' \
		/sys/block/*/dma/stats
}

# A disk's counters go with the disk. Probes are no data.
driver_bytes=0 probe_bytes=0 redone=0 late=0
count_driver_bytes()
{
	local d

	for d in /sys/block/*/dma; do
		bytes_by dma "$d"
		driver_bytes=$((driver_bytes + bytes))
	done
	probe_bytes=$((probe_bytes + 2048 * $(probes)))
	redone=$((redone + $(counters '_redone$')))
	late=$((late + $(counters '^timeouts$')))
}

verify_data()
{
	local d

	for d in "$disk" "$other"; do
		fio "${verify[@]}" --filename="/dev/$d" "$@" >/tmp/verify.log 2>&1 || {
			cat /tmp/verify.log
			fail "data check of /dev/$d failed"
		}
	done
}

verify_both_ways()
{
	local before

	before=$(engine_bytes)
	verify_data
	[ $(($(engine_bytes) - before)) -ge $((2 * 2 * verify_mib << 20)) ] ||
		fail "the engine did not move the data of the check"
	say "fio --verify=crc32c: written and read back through the engine, right"
	select_nd_pmem
	verify_data --verify_only
	say "the same data read through nd_pmem, right"
}

# The first touch of every page costs the emulator 20 us, and the engine has
# page tables of its own.
warm_up()
{
	local count=$(($(blockdev --getsize64 "/dev/$disk") >> 21))

	dd if=/dev/zero of="/dev/$disk" bs=2M count="$count" oflag=direct status=none
	dd if="/dev/$disk" of=/dev/null bs=2M count="$count" iflag=direct status=none
}

measure_driver()
{
	local driver=$1 block load direction

	expect_driver "$driver"
	if [ "$driver" = pmem_dma ]; then
		echo "$policy" >"/sys/block/$disk/dma/policy"
	fi
	warm_up
	for block in "${blocks[@]}"; do
		for load in "${loads[@]}"; do
			for direction in "${directions[@]}"; do
				# shellcheck disable=SC2086 # tasks and depth
				cell "$driver" "$disk" "$block" $load "$direction"
				cells_done=$((cells_done + 1))
				say "$(printf '%2d of %d  %-8s %3s %-5s %-5s %6d MB/s %4d %% CPU' \
					"$cells_done" "$cells_total" "$driver" "$block" \
					"${load/ /x}" "$direction" "$mb_per_s" "$cpu_percent")"
			done
		done
	done
}

write_header()
{
	{
		printf '%s\t%s\n' \
			kernel "$(uname -r)" \
			versions.fio "$(fio --version | sed 's/^fio-//')" \
			versions.ndctl "$(ndctl --version)" \
			driver_dma_bytes "$driver_bytes" \
			probe_bytes "$probe_bytes" \
			requests_redone "$redone" \
			requests_late "$late" \
			engine_bytes "$(($(engine_bytes) - engine_before - probe_bytes))"
	} >/out/header.tsv
}

: >"$results"
# The measuring shell is not kept waiting by the load; its children are normal.
chrt --reset-on-fork --fifo --pid 50 $$

make_namespaces
near_cpus=$(cat /sys/devices/system/node/node0/cpulist)
engine_before=$(engine_bytes)
select_pmem_dma
verify_both_ways
measure_driver nd_pmem
select_pmem_dma
measure_driver pmem_dma
count_driver_bytes
write_header
say "measured"
