# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # some variables are guest.sh's
# Sourced by guest.sh: one cell of the comparison.
#
# fio only makes the load. It is started, left alone until it has been doing
# I/O for a while, watched between two instants, and stopped: its start and its
# end take seconds here and are in no figure. At both instants we read
#
#	/proc/PID/io	bytes that its threads have submitted; what is in flight
#			is the same at both, so that is also what completed
#	/proc/stat	idle and iowait of all CPUs
#
# /sys/block/pmemN/stat stands still: nd_pmem leaves it off, and switching it on
# would make it slower.
#
# CPU time is all that was not idle, whoever used it: fio, the driver,
# interrupts, workers. Idle time is what the kernel measures; the busy columns
# it only samples at each tick, which fails for work much shorter than a tick.

demo_ramp=1		# seconds of steady I/O before the first instant
demo_start_limit=60	# seconds until I/O is steady

ncpus=$(nproc)
clk_tck=$(getconf CLK_TCK)

# Sleeping by a time-out of "read" starts no process.
exec {nap_fd}<> <(:)
nap()
{
	read -r -t "$1" -u "$nap_fd" || true
}

bytes_so_far()
{
	local line lines

	bytes=0
	mapfile -t lines <"/proc/$fio_pid/io"
	for line in "${lines[@]}"; do
		case $line in
		read_bytes:* | write_bytes:*) bytes=$((bytes + ${line#* })) ;;
		esac
	done
}

# bytes_by dma|cpu DIRECTORY: set bytes to what pmem_dma has moved that way.
bytes_by()
{
	local line lines

	bytes=0
	mapfile -t lines <"$2/stats"
	for line in "${lines[@]}"; do
		case $line in
		*"_bytes_$1 "*) bytes=$((bytes + ${line#* })) ;;
		esac
	done
}

# Set engine to the percentage of bytes that the engine has moved since the
# last call for this disk; nothing if its driver is another.
engine_share()
{
	local dir=/sys/block/$1/dma dma

	engine=
	[ -e "$dir" ] || return 0
	bytes_by dma "$dir"
	dma=$bytes
	bytes_by cpu "$dir"
	if [ $((dma - dma_before + bytes - cpu_before)) -gt 0 ]; then
		engine=$((100 * (dma - dma_before) /
			(dma - dma_before + bytes - cpu_before)))
	fi
	dma_before=$dma cpu_before=$bytes
}
dma_before=0 cpu_before=0

# Set time_us, bytes and idle (in clock ticks), with nothing in between.
sample()
{
	local cpu

	read -r -a cpu </proc/stat
	bytes_so_far
	time_us=${EPOCHREALTIME/./}
	idle=$((cpu[4] + cpu[5]))
}

# Offsets are shifted so that memory and media never have the same alignment: an
# emulated CPU's TLB has one slot for both then, and copies at 1/20 the speed.
start_fio()
{
	local disk=$1 block=$2 jobs=$3 depth=$4 direction=$5
	local cpus=()

	# A lone task is kept on the node of the media, or the figure would
	# depend on where it woke up first.
	if [ "$jobs" = 1 ]; then
		cpus=(--cpus_allowed="$near_cpus")
	fi
	fio --name=demo --filename="/dev/$disk" --offset=1036k \
		--rw="rand$direction" --bs="$block" --iodepth="$depth" \
		--numjobs="$jobs" "${cpus[@]}" --ioengine=libaio --direct=1 \
		--thread --group_reporting --create_serialize=0 \
		--time_based --runtime=120 --iomem=shmhuge \
		--norandommap --refill_buffers=0 --scramble_buffers=0 \
		--gtod_reduce=1 --eta=never >/tmp/fio.log 2>&1 &
	fio_pid=$!
}

fio_failed()
{
	cat /tmp/fio.log >&2
	fail "$1"
}

# wait_for_io BYTES: by then all tasks are there and have used all their buffers,
# which costs a page fault each the first time.
wait_for_io()
{
	local i

	for ((i = 0; i < demo_start_limit * 10; i++)); do
		nap 0.1
		bytes_so_far 2>/dev/null || fio_failed "fio ended too soon"
		[ "$bytes" -lt "$1" ] || return 0
	done
	kill -KILL "$fio_pid"
	fio_failed "the load is not steady after $demo_start_limit s"
}

# An interrupted fio fails by design; an error of its I/O is in its report.
stop_fio()
{
	kill -INT "$fio_pid" || fio_failed "fio ended too soon"
	wait "$fio_pid" || true
	grep -q 'err= *0' /tmp/fio.log || fio_failed "fio saw I/O errors"
}

# cell DRIVER DISK BLOCK JOBS DEPTH DIRECTION: append the raw figures to the
# results and set mb_per_s and cpu_percent for the progress line.
cell()
{
	local driver=$1 t0 b0 i0 elapsed busy

	engine_share "$2"
	start_fio "${@:2}"
	wait_for_io $((2 * $4 * $5 * $(numfmt --from=iec "${3^^}")))
	nap "$demo_ramp"
	sample
	t0=$time_us b0=$bytes i0=$idle
	nap "$demo_seconds"
	sample
	stop_fio

	elapsed=$((time_us - t0))
	bytes=$((bytes - b0))
	[ "$bytes" -gt 0 ] || fio_failed "I/O has stopped"
	busy=$((ncpus * elapsed - (idle - i0) * (1000000 / clk_tck)))
	[ "$busy" -ge 0 ] || busy=0
	mb_per_s=$((bytes / elapsed))
	cpu_percent=$((100 * busy / elapsed))
	printf '%s\t' "$driver" "${@:3}" "$elapsed" "$bytes" "$busy" >>"$results"
	engine_share "$2"
	printf '%s\n' "$engine" >>"$results"
}
