# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Sourced by cases, after lib.sh: two disks, raw on node 0 and fsdax on node 1,
# whose channels are those of swdma.ko, and a load that verifies all it reads. An
# emulated CPU is slow at starting processes: what is done often is done by bash. It reads
# files that change by mapfile, in one go: "read" goes back to the end of each line,
# and a file of sysfs is made anew for that, maybe with longer numbers.

swdma=/sys/kernel/debug/swdma
swdma_driver=/sys/bus/platform/drivers/swdma
declare -A counted before
knobs_set=()

# --- The provider ------------------------------------------------------------

# swdma_load [PARAMETER...]
swdma_load()
{
	modprobe swdma "$@"
	wait_for 10 test -e "$swdma/stats"
	mark "swdma${*:+ }$*"
}

# knobs NAME=VALUE...: of all channels. Name the "_every" last: it starts the fault.
knobs()
{
	local word

	for word in "$@"; do
		echo "${word#*=}" >"/sys/module/swdma/parameters/${word%=*}"
		knobs_set=("${word%=*}" "${knobs_set[@]}")
	done
}

# In the opposite order, so that no limit goes before its fault.
knobs_clear()
{
	local name

	for name in "${knobs_set[@]}"; do
		case $name in
		*_every | *_times | delay_us | stall | sleep_us | fail_abort | lose_ms | unbind)
			echo 0 >"/sys/module/swdma/parameters/$name" ;;
		esac
	done
	knobs_set=()
}

# reload [PARAMETER...]: give the channels back, and take those of another provider.
reload()
{
	tell release
	expect "nobody holds a channel" rmmod swdma
	swdma_load "$@"
	expect "no channels before rescan" channels_are 0
	tell rescan
	expect "channels after rescan" channels_are 4
}

# chan_knobs NODE NAME=VALUE...: of the channels of one device
chan_knobs()
{
	local node=$1 word dir
	shift

	for word in "$@"; do
		for dir in "$swdma/dma${node}"chan*; do
			echo "${word#*=}" >"$dir/${word%=*}"
		done
	done
}

# device_leaves DEVICE: is unbound. On a quiet machine it takes a second, and 2 s more
# if it hangs.
device_leaves()
{
	within 30 write_to "$swdma_driver/unbind" "$1"
}

provider_leaves()
{
	device_leaves swdma.0
	device_leaves swdma.1
}

provider_comes()
{
	local dev

	for dev in swdma.0 swdma.1; do
		echo "$dev" >"$swdma_driver/bind"
	done
}

# Print a counter of all channels together.
swdma_total()
{
	awk -v name="$1" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == name) col = i; next }
		{ sum += $col } END { print sum + 0 }' "$swdma/stats"
}

# --- The disks ---------------------------------------------------------------

# Sets raw, raw_dev, fsdax, fsdax_dev and disks. Every request may go to a channel.
make_disks()
{
	unwatch_disks
	make_ns raw 0
	raw=$ns_disk raw_dev=$ns_dev
	make_ns fsdax 1
	fsdax=$ns_disk fsdax_dev=$ns_dev
	disks=("$raw" "$fsdax")
	bind_disks
	# It would read the partition table of a disk that was closed, and keep all
	# others from opening it as long as an engine holds that read.
	udevadm control --stop-exec-queue
}

bind_disks()
{
	local disk

	rebind pmem_dma "$raw_dev" "$raw"
	rebind pmem_dma "$fsdax_dev" "$fsdax"
	for disk in "${disks[@]}"; do
		echo dma >"/sys/block/$disk/dma/policy"
	done
	udevadm settle
}

# Tell all disks: release or rescan. They are busy while a request is overdue.
tell()
{
	local disk

	for disk in "${disks[@]}"; do
		wait_for 30 write_to "/sys/block/$disk/dma/$1" 1 2>/dev/null
	done
}

# Read the counters of all disks into counted[DISK.NAME]: those of dma/stats, and
# "ios", the requests that the block layer saw come to their end, and "redone", of
# reads and writes together.
count()
{
	local disk line lines words

	for disk in "${disks[@]}"; do
		mapfile -t lines <"/sys/block/$disk/dma/stats"
		for line in "${lines[@]}"; do
			counted[$disk.${line% *}]=${line#* }
		done
		read -r -a words <"/sys/block/$disk/stat"
		counted[$disk.redone]=$((counted[$disk.read_requests_redone] +
			counted[$disk.write_requests_redone]))
		counted[$disk.ios]=$((words[0] + words[4]))
	done
}

# Remember the counters, for rose.
count_from_here()
{
	local key

	count
	for key in "${!counted[@]}"; do
		before[$key]=${counted[$key]}
	done
}

# rose COUNTER[>N]...: on every disk, since count_from_here, by more than N (0).
rose()
{
	local disk word name

	count
	for disk in "${disks[@]}"; do
		for word in "$@"; do
			name=${word%>*}
			[[ $word = *'>'* ]] || word+='>0'
			[ $((counted[$disk.$name] - before[$disk.$name])) -gt "${word#*>}" ] ||
				return 1
		done
	done
}

# any_rose COUNTER...: on any disk, since count_from_here
any_rose()
{
	local disk name

	count
	for disk in "${disks[@]}"; do
		for name in "$@"; do
			if [ "${counted[$disk.$name]}" -gt "${before[$disk.$name]}" ]; then
				return 0
			fi
		done
	done
	return 1
}

# state_is STATE: every disk has channels, and all are in this state.
state_is()
{
	local disk line lines words

	for disk in "${disks[@]}"; do
		mapfile -t lines <"/sys/block/$disk/dma/channels"
		[ ${#lines[@]} -gt 0 ] || return 1
		for line in "${lines[@]}"; do
			read -r -a words <<<"$line"
			[ "${words[4]}" = "$1" ] || return 1
		done
	done
}

# No disk has a channel that gets requests.
none_healthy()
{
	local disk

	for disk in "${disks[@]}"; do
		if grep -q healthy "/sys/block/$disk/dma/channels"; then
			return 1
		fi
	done
}

# channels_are COUNT: lines of each disk's list
channels_are()
{
	local disk lines

	for disk in "${disks[@]}"; do
		mapfile -t lines <"/sys/block/$disk/dma/channels"
		[ "${#lines[@]}" -eq "$1" ] || return 1
	done
}

# --- The load ----------------------------------------------------------------

# On each disk one job that reads, one that writes and then reads that back, and
# one that does both at once. The first job writes what the readers read.
start_load()
{
	local disk what

	{
		cat <<-JOB
		[global]
		direct=1
		thread=1
		ioengine=libaio
		iodepth=32
		bs=32k
		verify=crc32c
		verify_fatal=1
		size=8M
		randrepeat=1
		serialize_overlap=1
		JOB
		for disk in "${disks[@]}"; do
			printf '[fill-%s]\nfilename=/dev/%s\nrw=write\ndo_verify=0\n' "$disk" "$disk"
		done
		for disk in "${disks[@]}"; do
			for what in read write mixed; do
				printf '[%s-%s]\nfilename=/dev/%s\ntime_based=1\nruntime=7200\n' \
					"$what" "$disk" "$disk"
				# The first of them waits for those that fill.
				[ "$what-$disk" != "read-${disks[0]}" ] || echo stonewall=1
				case $what in
				read) printf 'rw=randread\n' ;;
				write) printf 'rw=randwrite\noffset=64M\nverify_backlog=128\n' ;;
				mixed) printf 'rw=randrw\noffset=128M\nverify_backlog=32\n' ;;
				esac
			done
		done
	} >/tmp/load.fio
	fio --output=/out/load.log /tmp/load.fio &
	load=$!
	goes_on 200
	mark "the load runs"
}

# goes_on [N]: N more requests of each disk come to their end.
goes_on()
{
	count_from_here
	wait_for 40 rose "ios>${1:-50}"
	expect "the load runs" kill -0 "$load"
}

# Channels move data again, in both directions.
uses_dma()
{
	count_from_here
	wait_for 40 rose read_bytes_dma write_bytes_dma
	expect "the load runs" kill -0 "$load"
}

# There are no channels, and the load goes on.
by_cpu()
{
	expect "there are no channels" channels_are 0
	count_from_here
	wait_for 20 rose {read,write}_requests_fallback_no_channel
	refuse "bytes by channels" any_rose {read,write}_bytes_dma
	expect "the load runs" kill -0 "$load"
}

# No byte was wrong, and no request failed: fio ends a job at the first error.
stop_load()
{
	kill -INT "$load"
	wait "$load" || true
	refuse "the load met an error" grep -E 'verify:|error=|[Ee]rror' /out/load.log
	expect_same "jobs that ended without error" $((4 * ${#disks[@]})) \
		"$(grep -c 'err= 0' /out/load.log)"
}

# fault "KNOB=VALUE..." COUNTER[>N]...: with the knobs set, the counters of every
# disk go up and I/O goes on; with the knobs cleared, by channels again. A fault that
# happens so many times only may not hit every disk in both directions: it is set
# again, and again.
fault()
{
	local words tries=6 end
	read -r -a words <<<"$1"
	shift

	count_from_here
	until rose "$@"; do
		[ $((tries--)) -gt 0 ] || fail "waited in vain for: ${words[*]}: $*"
		knobs "${words[@]}"
		end=$((SECONDS + 10 * slow))
		until rose "$@" || [ "$SECONDS" -ge "$end" ]; do
			sleep 0.1
		done
	done
	knobs_clear
	uses_dma
	mark "${words[*]}: $*"
}

# touch_disks: a read and a write of each disk come to their end, whatever the
# requests of the load wait for.
touch_disks()
{
	local disk

	for disk in "${disks[@]}"; do
		within 30 dd if="/dev/$disk" of=/dev/null iflag=direct bs=32k count=1 \
			status=none
		within 30 dd if=/dev/zero of="/dev/$disk" oflag=direct bs=32k count=1 \
			seek=6400 conv=notrunc status=none
	done
}

# A read from each CPU, which has a queue and a channel of its own, so that no channel
# is idle; in the background.
read_from_each_cpu()
{
	local cpu

	readers=()
	for cpu in 0 1 2 3; do
		taskset -c $cpu dd if="/dev/$raw" of=/dev/null iflag=direct bs=32k count=1 \
			status=none &
		readers+=($!)
	done
}

# They end, and without an error.
readers_end()
{
	local job

	for job in "${readers[@]}"; do
		wait "$job" || fail "a request that was late"
	done
}

# overdue "KNOB=VALUE...": the channels stand still. Their requests wait; others
# are done by the CPU, until the knobs are cleared.
overdue()
{
	local words
	read -r -a words <<<"$1"

	count_from_here
	knobs "${words[@]}"
	read_from_each_cpu
	wait_for 20 rose timeouts
	wait_for 20 none_healthy
	count_from_here
	touch_disks
	expect "the CPU copied" rose {read,write}_requests_fallback_no_channel
	knobs_clear
	readers_end
	wait_for 40 state_is healthy
	uses_dma
	mark "${words[*]}: late, by CPU, and by channels again"
}

# --- What must be true at the end --------------------------------------------

# Requests that were submitted came to an end once, and each byte of the disk was
# moved by an engine or the CPU. Without load.
adds_up()
{
	local disk words name d requests

	count
	for disk in "${disks[@]}"; do
		read -r -a words <"/sys/block/$disk/stat"
		for d in read write; do
			requests=0
			for name in dma cpu redone fallback_{no_channel,badblock,segments,align,map,full}; do
				requests=$((requests + counted[$disk.${d}_requests_$name]))
			done
			expect_same "$disk: ${d}s that the driver counted" \
				"${words[$([ $d = read ] && echo 0 || echo 4)]}" "$requests"
			expect_same "$disk: bytes of ${d}s that the driver counted" \
				$((words[$([ $d = read ] && echo 2 || echo 6)] * 512)) \
				$((counted[$disk.${d}_bytes_dma] + counted[$disk.${d}_bytes_cpu]))
		done
		expect_same "$disk: requests in flight" 0 "${words[8]}"
	done
	mark "the counters add up"
}

# Requests of every length are in flight, faults go on, and the disks go away.
# "KNOB=VALUE...": the fault
removal()
{
	local start disk dev words
	read -r -a words <<<"$1"

	for disk in "${disks[@]}"; do
		printf '[%s]\nfilename=/dev/%s\n' "$disk" "$disk"
	done >/tmp/removal.jobs
	cat - /tmp/removal.jobs >/tmp/removal.fio <<-JOB
	[global]
	direct=1
	thread=1
	ioengine=libaio
	iodepth=32
	rw=randrw
	bsrange=4k-256k
	size=32M
	time_based=1
	runtime=7200
	JOB
	fio --output=/out/removal.log /tmp/removal.fio >/dev/null 2>&1 &
	load=$!
	goes_on 100
	knobs "${words[@]}"
	sleep 0.5
	for dev in "$raw_dev" "$fsdax_dev"; do
		start=${EPOCHREALTIME/./}
		within 30 write_to /sys/bus/nd/drivers/pmem_dma/unbind "$dev"
		start=$(((${EPOCHREALTIME/./} - start) / 1000))
		mark "$1: unbinding $dev took $start ms"
	done
	wait "$load" || true
	knobs_clear
}
