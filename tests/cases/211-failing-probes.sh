#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# kernels: 6.1 6.12 7.3
# timeout: 300
# Each call that a probe makes, and that can fail, fails once: the bind fails with
# that errno, leaves nothing, says so in one line, and the next one works; or it
# goes on without what it did not get, if that is how it should be.

# shellcheck source=tests/lib.sh
. /tests/lib.sh
# shellcheck source=tests/life.sh
. /tests/life.sh

# Numbers that failing functions return, and what the shell calls them.
enospc=-28 eopnotsupp=-95 enodev=-19
declare -A text=([$enospc]='No space left on device'
	[$eopnotsupp]='Operation not supported' [$enodev]='No such device'
	[nxio]='No such device or address' [nomem]='Cannot allocate memory'
	[busy]='Device or resource busy')
nospc=${text[$enospc]}

# By mode: the device to bind, its namespace and its disk. The raw one has no struct
# pages here, another one in ordinary memory (e820) has.
declare -A devices names disks

make_all()
{
	local mode json

	clear_region "$region"
	for mode in raw fsdax sector; do
		json=$(ndctl create-namespace --mode="$mode" --region="$region" --size=32M)
		names[$mode]=$(jq -r .dev <<<"$json")
		disks[$mode]=$(jq -r .blockdev <<<"$json")
		devices[$mode]=$(claim_of "${names[$mode]}")
		head -c 1M /dev/urandom >"/tmp/shadow.$mode"
		dd if="/tmp/shadow.$mode" of="/dev/${disks[$mode]}" bs=1M \
			oflag=direct status=none
	done
	make_ns raw e820
	names[e820]=$ns_name devices[e820]=$ns_dev disks[e820]=$ns_disk
	head -c 1M /dev/urandom >/tmp/shadow.e820
	dd if=/tmp/shadow.e820 of="/dev/$ns_disk" bs=1M oflag=direct status=none
	udevadm settle
	for mode in "${!devices[@]}"; do
		unbind "${devices[$mode]}"
		mark "$mode: ${devices[$mode]}, ${disks[$mode]}"
	done
}

# --- Failing calls, by failcall.ko -----------------------------------------------

failcall=/sys/kernel/debug/failcall

# probe_function NAME CALLER VALUE: from now on calls of this function may fail, if
# who calls has CALLER in its name, and return VALUE.
probe_function()
{
	symbol=$1 site=$2
	echo "$1" >"$failcall/symbol"
	echo "$2" >"$failcall/caller"
	echo "$3" >"$failcall/value"
}

note()
{
	printf '<5>probe: %s\n' "$*" >/dev/kmsg
}

# attempt DRIVER MODE NTH: bind while that call fails. Sets error to the errno's
# text, or to nothing, and failed to 1 if there was such a call. All files are open
# before, since the shell's own system calls can fail as well.
attempt()
{
	local task bind

	note "$1 $2 $symbol $3 by '$site'"
	echo "$3" >"$failcall/nth"
	exec {task}>"$failcall/task" {bind}>"/sys/bus/nd/drivers/$1/bind"
	{
		echo $$ >&"$task"
		echo "${devices[$2]}" >&"$bind" || true
		echo 0 >&"$task"
	} 2>/tmp/err
	exec {task}>&- {bind}>&-
	error=''
	read -r error </tmp/err || true
	error=${error##*write error: }
	note "end $error"
	read -r failed <"$failcall/failed"
	attempts=$((attempts + failed))
}

# --- One step ------------------------------------------------------------------

# function_of NAME...: the one of these that this kernel has.
function_of()
{
	local name

	for name; do
		if [ -n "${symbols[$name]:-}" ]; then
			printf '%s\n' "$name"
			return
		fi
	done
	fail "this kernel has none of: $*"
}

# All words of this file that are functions.
read_symbols()
{
	local name

	grep -oE '[a-z_]+' "${BASH_SOURCE[0]}" | sort -u >/tmp/words
	while read -r name; do
		symbols[$name]=1
	done < <(awk 'NR == FNR { want[$1] = 1 }
		NR != FNR && ($3 in want) && $2 ~ /[tT]/ { print $3 }' /tmp/words /proc/kallsyms)
}

# Bound, the data is right, and unbound again. A bind that went on without a DAX
# device and the like has to give just as good a disk.
works()
{
	local disk=${disks[$2]}

	expect "device node of $disk" test -b "/dev/$disk"
	cmp -s -n 65536 "/dev/$disk" "/tmp/shadow.$2" || fail "$disk has other data"
	echo "${devices[$2]}" >"/sys/bus/nd/drivers/$1/unbind"
}

# Everything is as it is without the disk.
is_clean()
{
	local disk=${disks[$1]}

	[ ! -e "/sys/block/$disk" ] || fail "$disk is there"
	[ ! -e "/dev/$disk" ] || fail "/dev/$disk is there"
	[ ! -e "/sys/bus/nd/devices/${devices[$1]}/driver" ] ||
		fail "${devices[$1]} has a driver"
	refuse "${names[$1]} in /proc/iomem" has_line ": ${names[$1]}" /proc/iomem
}

# sweep DRIVER MODE WANTED: the first call fails, the second, ... until there are
# no more. WANTED is the bind's error, or "none" if it is to go on.
sweep()
{
	local nth wanted=$3

	[ "$wanted" != none ] || wanted=''
	for ((nth = 1; ; nth++)); do
		attempt "$1" "$2" "$nth"
		[ "$failed" -eq 1 ] || break
		expect_same "$1, $2: bind when call $nth of $symbol fails" "$wanted" "$error"
		[ -n "$error" ] || works "$1" "$2"
		is_clean "$2"
	done
	[ -z "$error" ] || fail "$1, $2: bind when no call fails: $error"
	[ "$nth" -gt 1 ] || fail "$1, $2: $symbol is never called"
	works "$1" "$2"
	is_clean "$2"
}

# step "DRIVERS" "MODES" WANTED VALUE FUNCTION...: calls of one function, the first
# of these names that there is; only calls by our modules count.
step()
{
	local driver mode wanted=$3

	probe_function "$(function_of "${@:5}")" "$caller" "$4"
	for driver in $1; do
		for mode in $2; do
			sweep "$driver" "$mode" "$wanted"
		done
	done
}

# --- All of them ---------------------------------------------------------------

both="pmem_cpu pmem_dma"

# Functions that only these probes call, wherever in them.
core_steps()
{
	caller=''
	step "$both" "raw fsdax sector" "$nospc" $enospc nvdimm_namespace_common_probe
	step "$both" "raw fsdax" "$nospc" $enospc devm_namespace_enable
	step pmem_cpu fsdax "$nospc" $enospc nvdimm_setup_pfn
	step pmem_cpu sector "$nospc" $enospc nvdimm_namespace_attach_btt

	# That a namespace belongs to somebody is told by success.
	step pmem_cpu raw "${text[nxio]}" 0 nd_btt_probe
	step pmem_cpu raw "${text[nxio]}" 0 nd_pfn_probe
	step pmem_cpu raw "${text[nxio]}" 0 nd_dax_probe
	step pmem_cpu raw "${text[$eopnotsupp]}" $eopnotsupp nd_pfn_probe
	step pmem_cpu raw "${text[$eopnotsupp]}" $eopnotsupp nd_dax_probe
	step pmem_cpu raw none $enodev nd_pfn_probe
}

# The rest is called by others, too.
called_steps()
{
	caller='[pmem_'
	step "$both" "raw fsdax sector" "${text[nomem]}" 0 devm_kmalloc
	step "$both" "raw fsdax e820" "${text[busy]}" 0 __devm_request_region
	step "$both" "fsdax e820" "$nospc" $enospc devm_memremap_pages
	step "$both" raw "$nospc" $enospc devm_memremap
	step "$both" "raw fsdax" "$nospc" $enospc devm_init_badblocks
	step "$both" "raw fsdax" "$nospc" $enospc alloc_dax
	step "$both" "raw fsdax" none $eopnotsupp alloc_dax
	step "$both" "raw fsdax" "$nospc" $enospc dax_add_host
	step "$both" "raw fsdax" "$nospc" $enospc device_add_disk add_disk_fwnode
	step "$both" "raw fsdax" "$nospc" $enospc __devm_add_action devm_add_action
	step "$both" fsdax none 0 kernfs_find_and_get_ns
}

disk_steps()
{
	case $(uname -r) in
	6.1.*) step pmem_cpu "raw fsdax" "${text[nomem]}" 0 __blk_alloc_disk ;;
	*) step pmem_cpu "raw fsdax" "$nospc" $enospc __blk_alloc_disk ;;
	esac
	step pmem_dma "raw fsdax" "$nospc" $enospc __blk_mq_alloc_disk
	step pmem_dma "raw fsdax" "$nospc" $enospc blk_mq_alloc_tag_set
	step pmem_dma fsdax "${text[nomem]}" 0 pcpu_alloc_noprof __alloc_percpu
}

# Without a channel, or some memory for it, the CPU copies.
channel_steps()
{
	step pmem_dma raw none 0 __dma_request_channel
	step pmem_dma raw none 0 dma_alloc_attrs
	step pmem_dma raw none -1 dma_map_phys dma_map_resource
}

# Memory for queues is a must, and so the disk fails; for channels it is not.
memory_steps()
{
	local name

	for name in __kmalloc_noprof __kmalloc_node_noprof __kmalloc_cache_noprof \
		__kmalloc_cache_node_noprof __kmalloc __kmalloc_node kmalloc_trace \
		kmalloc_node_trace; do
		[ -n "${symbols[$name]:-}" ] || continue
		probe_function "$name" '[pmem_' 0
		any_sweep pmem_dma fsdax 1
	done
}

# any_sweep DRIVER MODE STRIDE: calls fail, one in so many, and the bind fails or goes
# on. For what errno, others decide: what cannot be noted down may be "busy".
any_sweep()
{
	local nth bound=0 refused=0

	for ((nth = 1; ; nth += $3)); do
		attempt "$1" "$2" "$nth"
		if [ -n "$error" ]; then
			refused=$((refused + 1))
		else
			works "$1" "$2"
			bound=$((bound + 1))
		fi
		is_clean "$2"
		[ "$failed" -eq 1 ] || break
	done
	[ -z "$error" ] || fail "$1, $2: bind when no call of $symbol fails: $error"
	[ $((refused + bound)) -gt 1 ] || fail "$1, $2: $symbol is never called"
	mark "$1, $2: $symbol by '$(cat "$failcall/caller")' failed $((refused + bound - 1)) times: $refused binds refused"
}

# Memory that the kernel takes on behalf of the probe. vmalloc() says with a trace
# that it got none, which is all right.
kernel_memory_steps()
{
	local name

	for name in __kmalloc_noprof __kmalloc_node_noprof __kmalloc_cache_noprof \
		__kmalloc_cache_node_noprof pcpu_alloc_noprof __kmalloc __kmalloc_node \
		kmalloc_trace kmalloc_node_trace pcpu_alloc; do
		[ -n "${symbols[$name]:-}" ] || continue
		probe_function "$name" '!vm' 0
		any_sweep pmem_dma fsdax "${STRIDE:-6}"
		any_sweep pmem_cpu raw "${STRIDE:-6}"
	done
}

# What would be left over shows after some times.
repeat=6
repeat_step()
{
	local i

	for ((i = 0; i < repeat; i++)); do
		attempt "$1" fsdax 1
		expect_same "$1: bind when $symbol fails" "$nospc" "$error"
	done
}

repeated_steps()
{
	local part

	snapshot /tmp/snapshot.0
	for part in 1 2 3; do
		probe_function device_add_disk '[pmem_' $enospc
		repeat_step pmem_cpu
		repeat_step pmem_dma
		probe_function "$(function_of __devm_add_action devm_add_action)" '[pmem_' $enospc
		repeat_step pmem_cpu
		repeat_step pmem_dma
		probe_function dax_add_host '[pmem_' $enospc
		repeat_step pmem_cpu
		probe_function __blk_mq_alloc_disk '[pmem_' $enospc
		repeat_step pmem_dma
		snapshot "/tmp/snapshot.$part"
	done
	expect_same "memory that failed binds left over" '' \
		"$(grown "$repeat" /tmp/snapshot.*)"
}

# Each bind that failed has at most one line of ours, and ours or the driver core's
# line tells the errno (that one is silent about ENXIO). Memory that is not there for
# the kernel may have kept it from even coming to the probe.
other_than_one_line()
{
	dmesg | sed 's/^\[[^]]*\] //' | awk -v silent="${text[nxio]}" '
		/^probe: end/ {
			sub("^probe: end ?", "")
			if (ours > 1 || (what !~ /!vm/ && $0 && $0 != silent && !ours && !core))
				print what ": " ours + 0 " lines"
			next
		}
		/^probe: / { what = $0; ours = core = 0 }
		/ no disk: -E/ { ours++ }
		/failed with error -/ { core++ }'
}

declare -A symbols
modprobe -a pmem_cpu pmem_dma failcall
region=$(region_of 0)
attempts=0 symbol='' site=''
make_all
# A probe and its end wait for many grace periods, of tens of ms each.
echo 1 >/sys/kernel/rcu_expedited
read_symbols
mark "ready"
for mode in fsdax raw sector e820; do
	for driver in $both; do
		bind "$driver" "${devices[$mode]}"
		works "$driver" "$mode"
	done
done
iomem=$(cat /proc/iomem)

parts=(core_steps called_steps disk_steps channel_steps memory_steps)
! thorough || parts+=(kernel_memory_steps repeated_steps)
for part in "${parts[@]}"; do
	$part
	mark "$part: $attempts calls have failed"
done
echo '' >"$failcall/symbol"
expect_same "/proc/iomem" "$iomem" "$(cat /proc/iomem)"
expect "free channels" channels_free
expect_same "failures without their line in the log" '' "$(other_than_one_line)"
rmmod failcall pmem_cpu pmem_dma pmem_core
