#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# kernels: none
# engine-nodes: none
# timeout: 3600
# For a long time (make soak), everything at once and at random: requests of many
# sizes on two disks, all of them verified, while the provider fails, leaves, and is
# another one in each round, channels are given back, CPUs go and come, memory is
# short, a namespace changes its driver, and policies, schedulers and depths change.
# Nothing hangs, no request fails, no byte is wrong. After each round all counters add
# up, and the kernel's memory has not grown.
#   SOAK_MINUTES  how long rounds are started (30)
#   SOAK_SEED     of what happens, and in which order

# shellcheck source=tests/lib.sh
. /tests/lib.sh
# shellcheck source=tests/swdma.sh
. /tests/swdma.sh
# shellcheck source=tests/life.sh
. /tests/life.sh

minutes=${SOAK_MINUTES:-30}
seed=${SOAK_SEED:-$((RANDOM % 10000))}
round_seconds=150
# Longest that a request, or a command, may take before it counts as hung.
patience=120
# KiB that the kernel's memory may have grown from the first round to the last: what
# the caches of 4 CPUs make of the same load by chance, and no more for more rounds.
bound_slab=2048 bound_vmalloc=512 bound_pages=6144

providers=(
	""
	"late=1 poison=165"
	"max_len=4096 ring=256"
	"copy_align=6 late=1"
	"private=0 terminate=2 synchronize=1"
	"out_of_order=1 terminate=1 synchronize=1 late=1 poison=165"
	"out_of_order=1 terminate=2 synchronize=1 ring=64"
)
faults=(
	"prep_every=5" "submit_every=7" "delay_us=200" "sleep_us=200"
	"fail_result=1 fail_every=20" "fail_result=2 fail_every=9"
	"fail_result=2 fail_abort=1 fail_every=100" "fail_every=1"
	"irq_every=3" "irq_every=1"
	"lose_ms=300 lose_every=50" "lose_ms=0 lose_times=4 lose_every=60"
	"slow_ms=3000 slow_times=1 slow_every=50" "stall=1"
)
# Of these, some more often than others.
actions=(fault fault fault fault fault provider provider channels cpu cpu cpu
	memory policy policy queue queue rebind)

declare -A load_of device_of total=() happened=()
offline=()

# roll N: set dice to 0...N-1. Not in a subshell, which has random numbers of its own.
roll()
{
	dice=$((RANDOM % $1))
}

# pick WORD...: set picked to one of them.
pick()
{
	roll $#
	shift "$dice"
	picked=$1
}

# poll COMMAND...: until it succeeds. The limit of time is up to the caller.
poll()
{
	until "$@"; do
		sleep 0.2
	done
}

# patiently COMMAND...: a hang ends the case and is in the log.
patiently()
{
	within $patience "$@"
}

# --- The load ----------------------------------------------------------------

# Of every size from a sector on; what is read has its checksums in places that do
# not depend on the size with which it was written.
load_start()
{
	local disk=$1 what disks=("$1")

	loads=$((loads + 1))
	{
		cat <<-JOB
		[global]
		filename=/dev/$disk
		direct=1
		thread=1
		ioengine=libaio
		iodepth=16
		verify=crc32c
		verify_fatal=1
		verify_interval=4k
		size=16M
		serialize_overlap=1
		verify_state_save=0
		randseed=$((seed + loads))
		[fill]
		rw=write
		bs=256k
		do_verify=0
		JOB
		for what in read mixed write sectors; do
			printf '[%s]\ntime_based=1\nruntime=7200\n' "$what"
			case $what in
			read) printf 'stonewall=1\nrw=randread\nbssplit=4k/40:16k/20:64k/20:512k/15:1m/5\n' ;;
			mixed) printf 'rw=randrw\noffset=32M\nverify_backlog=32\nbssplit=4k/40:32k/30:128k/20:1m/10\n' ;;
			write) printf 'rw=randwrite\noffset=64M\nverify_backlog=64\nbsrange=4k-1m\n' ;;
			sectors) printf 'rw=randwrite\noffset=96M\nsize=4M\nverify_interval=512\nverify_backlog=64\nbsrange=512-16k\nblockalign=512\n' ;;
			esac
		done
	} >"/tmp/$disk.fio"
	fio --output="/out/load.$disk.log" "/tmp/$disk.fio" &
	load_of[$disk]=$!
	# More than the job that fills: all others run.
	count_from_here
	patiently poll rose "ios>120"
}

# loads_run [DISK...]: those of all disks, or of these
loads_run()
{
	local disk

	[ $# -gt 0 ] || set -- "${disks[@]}"
	for disk; do
		kill -0 "${load_of[$disk]}" 2>/dev/null || {
			tail -n 5 "/out/load.$disk.log"
			fail "the load of $disk ended"
		}
	done
}

# More requests of each disk come to their end.
progress()
{
	count_from_here
	patiently poll rose "ios>30"
	loads_run
}

# fio ends a job at the first error and says so.
load_stop()
{
	local disk=$1 log=/out/load.$1.log

	loads_run "$disk"
	kill -INT "${load_of[$disk]}"
	patiently poll exited "${load_of[$disk]}"
	wait "${load_of[$disk]}" || true
	refuse "the load of $disk met an error" grep -E 'verify:|error=|[Ee]rror' "$log"
	expect_same "jobs of $disk that ended without error" 5 "$(grep -c 'err= 0' "$log")"
}

# Each descriptor that was submitted has come to an end.
nothing_in_flight()
{
	test "$(swdma_total in_flight)" = 0
}

# The counters of a disk add up and are kept: they go with the disk.
settle()
{
	local disks=("$1") name

	adds_up
	for name in {read,write}_{bytes,requests}_{dma,cpu} redone ios timeouts engine_errors flushes; do
		total[$name]=$((${total[$name]:-0} + counted[$1.$name]))
	done
}

# --- What happens to it --------------------------------------------------------

do_fault()
{
	local words

	pick "${faults[@]}"
	read -r -a words <<<"$picked"
	mark "fault: $picked"
	knobs "${words[@]}"
	roll 3
	sleep $((dice + 1))
	# All requests of a disk may be with a channel that stands still.
	case $picked in
	stall* | slow*) ;;
	*) progress ;;
	esac
	knobs_clear
}

# Each disk has some; how many queues it has depends on the CPUs that it was made with.
any_channels()
{
	local disk

	for disk in "${disks[@]}"; do
		read -r _ <"/sys/block/$disk/dma/channels" || return 1
	done
}

do_provider()
{
	local mode devs dev

	pick 0 1 2
	mode=$picked
	pick "swdma.0" "swdma.1" "swdma.0 swdma.1" "swdma.1 swdma.0"
	read -r -a devs <<<"$picked"
	mark "unbound in use, mode $mode: ${devs[*]}"
	knobs unbind="$mode"
	for dev in "${devs[@]}"; do
		patiently write_to "$swdma_driver/unbind" "$dev"
	done
	progress
	for dev in "${devs[@]}"; do
		patiently write_to "$swdma_driver/bind" "$dev"
	done
	knobs_clear
	patiently poll any_channels
}

# Refused as long as a request is late; then again.
release()
{
	patiently poll write_to "/sys/block/$1/dma/release" 1 2>/dev/null
}

rescan()
{
	patiently poll write_to "/sys/block/$1/dma/rescan" 1 2>/dev/null
}

do_channels()
{
	local disk

	pick "${disks[@]}"
	disk=$picked
	mark "channels of $disk are given back and taken"
	release "$disk"
	expect_same "channels of $disk" '' "$(cat "/sys/block/$disk/dma/channels")"
	progress
	rescan "$disk"
}

cpu_online()
{
	patiently write_to "/sys/devices/system/cpu/cpu$1/online" "$2"
}

cpus_back()
{
	local cpu

	for cpu in "${offline[@]}"; do
		cpu_online "$cpu" 1
	done
	offline=()
}

# Up to two at a time, so that a node may be without any.
do_cpu()
{
	local cpu

	if [ ${#offline[@]} -eq 2 ]; then
		mark "CPUs ${offline[*]} come back"
		cpus_back
		return
	fi
	roll 3
	cpu=$((dice + 1))
	if [ "${offline[0]:-}" = "$cpu" ]; then
		cpu=$((cpu % 3 + 1))
	fi
	mark "CPU $cpu goes"
	cpu_online "$cpu" 0
	offline+=("$cpu")
}

# All but a little goes to huge pages, which the kernel makes by throwing out caches
# and moving other pages, and without killing anybody. Pages of files in memory would
# do too, but an emulated CPU takes minutes to fill so many.
do_memory()
{
	local pages

	roll 64
	pages=$(awk -v leave=$((96 + dice)) '/^MemAvailable:/ { print int(($2 / 1024 - leave) / 2) }' /proc/meminfo)
	[ "$pages" -gt 0 ] || return 0
	# An emulated CPU that shares its host takes minutes for it at times.
	within $((4 * patience)) write_to /proc/sys/vm/nr_hugepages "$pages"
	mark "$(awk '/^(HugePages_Total|MemFree):/ { print $1, $2 }' /proc/meminfo | tr '\n' ' ')of $pages"
	progress
	roll 5
	sleep "$dice"
	progress
	patiently write_to /proc/sys/vm/nr_hugepages 0
}

do_policy()
{
	local dir

	pick "${disks[@]}"
	dir=/sys/block/$picked/dma
	pick auto dma dma cpu
	echo "$picked" >"$dir/policy"
	pick 0 4096 65536 524288
	echo "$picked" >"$dir/read_min_bytes"
	pick 0 4096 65536 524288
	echo "$picked" >"$dir/write_min_bytes"
	mark "$(cd "$dir" && grep . policy ./*_min_bytes | tr '\n' ' ')"
}

do_queue()
{
	local dir names name

	pick "${disks[@]}"
	dir=/sys/block/$picked/queue
	read -r names <"$dir/scheduler"
	# shellcheck disable=SC2086 # words
	pick ${names//[\[\]]/}
	name=$picked
	patiently write_to "$dir/scheduler" "$name"
	pick 4 16 64 128
	patiently write_to "$dir/nr_requests" "$picked"
	mark "${dir%/queue}: $name, $picked requests"
	pick 0 1 2
	echo "$picked" >"$dir/rq_affinity"
	pick 0 1 2
	echo "$picked" >"$dir/nomerges"
}

# Another driver in between, which reads what is there.
do_rebind()
{
	local disk

	pick "${disks[@]}"
	disk=$picked
	mark "$disk changes its driver"
	load_stop "$disk"
	settle "$disk"
	pick nd_pmem pmem_cpu
	patiently rebind "$picked" "${device_of[$disk]}" "$disk"
	patiently dd if="/dev/$disk" of=/dev/null bs=1M count=16 iflag=direct status=none
	patiently rebind pmem_dma "${device_of[$disk]}" "$disk"
	echo dma >"/sys/block/$disk/dma/policy"
	load_start "$disk"
}

# --- Rounds --------------------------------------------------------------------

# Print one of the kernel's own uses of memory, in KiB.
slab_kib()
{
	awk '/^SUnreclaim:/ { print $2 }' /proc/meminfo
}

vmalloc_kib()
{
	awk '{ n += $2 } END { print int(n / 1024) }' /proc/vmallocinfo
}

# Nothing runs, and the provider is gone: only what was forgotten is left.
look_at_memory()
{
	local file

	# udev was kept waiting with all the disks that came and went.
	udevadm control --start-exec-queue
	file=/tmp/memory.$(printf '%03d' "$rounds")
	snapshot "$file"
	udevadm control --stop-exec-queue
	slab+=("$(slab_kib)")
	vmalloc+=("$(vmalloc_kib)")
	pages+=("$(awk '$1 == "pages" { print $2 }' "$file")")
	mark "KiB: ${slab[-1]} unreclaimable slab, ${vmalloc[-1]} vmalloc, ${pages[-1]} other pages"
}

# flat WHAT BOUND KIB...: the last is not above the first one that counts by more.
# A round for warming up does not count.
flat()
{
	local what=$1 bound=$2
	shift 3

	[ $# -gt 1 ] || return 0
	mark "$what from round to round, after the first: $* KiB"
	expect "$what did not grow by more than $bound KiB" test $((${*: -1} - $1)) -le "$bound"
}

round_starts()
{
	local disk words

	pick "${providers[@]}"
	read -r -a words <<<"$picked"
	swdma_load "${words[@]}"
	for disk in "${disks[@]}"; do
		rescan "$disk"
		echo dma >"/sys/block/$disk/dma/policy"
	done
	patiently poll any_channels
	for disk in "${disks[@]}"; do
		load_start "$disk"
	done
	mark "round $rounds with swdma ${words[*]}"
}

# All goes well again: by channels, on all CPUs.
recover()
{
	local disk

	cpus_back
	for disk in "${disks[@]}"; do
		echo dma >"/sys/block/$disk/dma/policy"
	done
	# A channel that failed again and again rests for up to 64 s.
	patiently poll state_is healthy
	count_from_here
	patiently poll rose read_bytes_dma write_bytes_dma
}

round_ends()
{
	local disk

	recover
	for disk in "${disks[@]}"; do
		load_stop "$disk"
	done
	patiently poll nothing_in_flight
	for disk in "${disks[@]}"; do
		settle "$disk"
		release "$disk"
	done
	patiently rmmod swdma
	look_at_memory
}

# Counters begin anew with the disk: the sums of a round are of that round.
fresh_disks()
{
	local disk

	for disk in "${disks[@]}"; do
		patiently rebind pmem_dma "${device_of[$disk]}" "$disk"
	done
}

one_round()
{
	local end=$((SECONDS + round_seconds))

	rounds=$((rounds + 1))
	round_starts
	while [ "$SECONDS" -lt "$end" ]; do
		pick "${actions[@]}"
		happened[$picked]=$((${happened[$picked]:-0} + 1))
		"do_$picked"
		progress
		roll 3
		sleep "$dice"
	done
	round_ends
	fresh_disks
}

report()
{
	local name

	for name in "${!happened[@]}"; do
		printf '%s %s, ' "$name" "${happened[$name]}"
	done
	printf 'in %d rounds of %d s\n' "$rounds" "$round_seconds"
	for name in "${!total[@]}"; do
		printf '%s %s\n' "$name" "${total[$name]}"
	done | sort
}

rounds=0 loads=0 slab=() vmalloc=() pages=()
mark "SOAK_SEED=$seed SOAK_MINUTES=$minutes"
RANDOM=$seed
[ $((minutes * 60)) -ge $((4 * round_seconds)) ] || round_seconds=$((minutes * 60 / 4))
swdma_load
make_disks
device_of=([$raw]=$raw_dev [$fsdax]=$fsdax_dev)
modprobe -a nd_pmem pmem_cpu
for disk in "${disks[@]}"; do
	release "$disk"
done
rmmod swdma
stop=$((SECONDS + minutes * 60))
while [ "$SECONDS" -lt "$stop" ]; do
	one_round
done
report
flat "unreclaimable slab" $bound_slab "${slab[@]}"
flat "vmalloc" $bound_vmalloc "${vmalloc[@]}"
flat "other pages" $bound_pages "${pages[@]}"
rm /tmp/memory.001
expect_same "slab caches that grew in each round" '' "$(grown 100 /tmp/memory.*)"
mark "memory is flat"
