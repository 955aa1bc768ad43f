#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# The guest's part of the bench that counts instructions: the clock of its machine
# goes by one nanosecond with each. Leaves in /out
#
#	figures.tsv	what, engine, direction, bytes, and the instructions of an I/O:
#			lower decile, median and most of the rounds
#	facts.tsv	what was measured, and how the disks were set
#	kallsyms	names of the kernel's functions, for the trace
set -euo pipefail

# shellcheck source=tests/lib.sh
. /tests/lib.sh

lengths=512,4096,65536,2097152
engines=psync,io_uring,libaio
# How long I/O goes on for the host to trace some, in instructions.
trace_ticks=${BENCH_TRACE_TICKS:-0}
# Only what a DMA read of some length takes off the stock driver.
long_reads=${BENCH_LONG_READS:-}

say()
{
	printf 'bench: %3d s  %s\n' "$SECONDS" "$*"
}

fact()
{
	printf '%s\t%s\n' "$@" >>/out/facts.tsv
}

# figures WHAT FILE ENGINES LENGTHS DIRECTIONS
figures()
{
	local what=$1
	shift

	/bench/insn "$@" >/tmp/figures || fail "insn $*"
	sed "s|^|$what\t|" /tmp/figures >>/out/figures.tsv
	say "$what"
}

# set_queue DISK NAME=VALUE...: of its request queue. Not every kernel and not
# every kind of disk has all of them.
set_queue()
{
	local disk=$1 word
	shift

	for word in "$@"; do
		[ ! -e "/sys/block/$disk/queue/${word%=*}" ] ||
			echo "${word#*=}" >"/sys/block/$disk/queue/${word%=*}"
	done
}

# Print a setting; of several that can be chosen, the one that is.
get_queue()
{
	sed 's/.*\[\(.*\)\].*/\1/' "/sys/block/$1/queue/$2" 2>/dev/null || echo -
}

# The largest I/O is to be one request, and the requests of one that has several
# queues on a larger machine go through no scheduler.
prepare_queue()
{
	local disk=$1 most

	most=$(get_queue "$disk" max_hw_sectors_kb)
	set_queue "$disk" scheduler=none max_sectors_kb=$((most < 2048 ? most : 2048))
}

# queue_facts WHAT DISK
queue_facts()
{
	local name words=

	for name in scheduler iostats wbt_lat_usec nomerges rq_affinity max_sectors_kb \
		max_segments write_cache; do
		words+="$name=$(get_queue "$2" $name | tr ' ' -) "
	done
	fact "queue.$1" "${words% }"
}

# What settings cost at 4k, each for itself and then taken back; a comma joins some
# that are set together.
variants()
{
	local what=$1 disk=$2 setting words name old
	shift 2

	for setting; do
		IFS=, read -r -a words <<<"$setting"
		old=()
		for name in "${words[@]}"; do
			name=${name%=*}
			[ -e "/sys/block/$disk/queue/$name" ] || continue 2
			old+=("$name=$(get_queue "$disk" "$name")")
		done
		set_queue "$disk" "${words[@]}"
		figures "$what $setting" "/dev/$disk" psync,io_uring 4096 read,write
		set_queue "$disk" "${old[@]}"
	done
}

all_figures()
{
	prepare_queue "$2"
	if [ -n "$long_reads" ]; then
		figures "$1" "/dev/$2" psync 65536,2097152 read
		figures "$1" "/dev/$2" uring_x16 65536 read
		return
	fi
	queue_facts "$1" "$2"
	figures "$1" "/dev/$2" "$engines" "$lengths" read,write
	# 16 times 2M would take longer than from one timer interrupt to the next, and how
	# many of 16 short ones a worker finds at once is a matter of luck.
	figures "$1" "/dev/$2" uring_x16 4096,65536 read,write
}

# through_ext4 WHAT DISK: blocks that are allocated and were written before.
through_ext4()
{
	mkfs.ext4 -q -F -E lazy_itable_init=0,lazy_journal_init=0 "/dev/$2" >/dev/null 2>&1
	mount -o noatime "/dev/$2" /mnt
	dd if=/dev/zero of=/mnt/file bs=1M count=36 oflag=direct conv=fsync status=none
	figures "$1 ext4" /mnt/file psync,io_uring 4096 read,write
	umount /mnt
}

# --- What is measured --------------------------------------------------------

null_disk()
{
	modprobe null_blk nr_devices=1 queue_mode=2 irqmode=0 gb=1 bs=512 submit_queues=1 \
		max_sectors=4096 "$@"
	wait_for 10 test -b /dev/nullb0
}

floor()
{
	null_disk
	all_figures null_blk nullb0
	variants null_blk nullb0 iostats=0 wbt_lat_usec=0 nomerges=2 \
		iostats=0,wbt_lat_usec=0,nomerges=2
	rmmod null_blk
	null_disk blocking=1
	prepare_queue nullb0
	figures "null_blk blocking" /dev/nullb0 psync,io_uring 4096 read,write
	rmmod null_blk
}

# What moving the bytes costs by itself, in the form of the other figures.
copies()
{
	local what all i sizes

	modprobe copycost bytes="$lengths"
	IFS=, read -r -a sizes <<<"$lengths"
	for what in read write writeback engine; do
		IFS=, read -r -a all <"/sys/module/copycost/parameters/$what"
		for i in "${!sizes[@]}"; do
			printf 'copy\t-\t%s\t%s\t%s\t%s\t%s\n' "$what" "${sizes[i]}" \
				"${all[i]}" "${all[i]}" "${all[i]}" >>/out/figures.tsv
		done
	done
	rmmod copycost
}

stock()
{
	all_figures nd_pmem "$ns_disk"
	variants nd_pmem "$ns_disk" iostats=1
	traced nd_pmem
	through_ext4 nd_pmem "$ns_disk"
}

by_cpu()
{
	rebind pmem_cpu "$ns_dev" "$ns_disk"
	all_figures pmem_cpu "$ns_disk"
	variants pmem_cpu "$ns_disk" iostats=1
	through_ext4 pmem_cpu "$ns_disk"
}

policy()
{
	echo "$1" >"/sys/block/$ns_disk/dma/policy"
}

# counted PATH DIRECTION: requests, by pmem_dma's own count
counted()
{
	awk -v name="$2_requests_$1" '$1 == name { print $2 }' "/sys/block/$ns_disk/dma/stats"
}

# Requests do go where the policy says.
expect_path()
{
	local path=$1 other=cpu direction before
	[ "$path" = dma ] || other=dma
	shift

	declare -A before
	for direction in read write; do
		before[$direction]=$(counted $other $direction)
		before[$path$direction]=$(counted "$path" $direction)
	done
	"$@"
	for direction in read write; do
		expect "${direction}s by $path" test "$(counted "$path" $direction)" -gt \
			"${before[$path$direction]}"
		expect_same "${direction}s by $other" "${before[$direction]}" \
			"$(counted $other $direction)"
	done
}

# Not to the engine: it would not write the file system.
with_cpu_policy()
{
	policy cpu
	expect_path cpu all_figures "pmem_dma/cpu" "$ns_disk"
	variants "pmem_dma/cpu" "$ns_disk" iostats=0 wbt_lat_usec=0 nomerges=2 rq_affinity=0 \
		scheduler=mq-deadline iostats=0,wbt_lat_usec=0,nomerges=2
	through_ext4 pmem_dma/cpu "$ns_disk"
}

with_dma_policy()
{
	policy dma
	expect_path dma all_figures "pmem_dma/dma" "$ns_disk"
	variants "pmem_dma/dma" "$ns_disk" iostats=0 wbt_lat_usec=0 nomerges=2 rq_affinity=0 \
		iostats=0,wbt_lat_usec=0,nomerges=2
}

# traced WHAT: the host traces a part of it (see where.py), which ends by itself.
traced()
{
	local direction

	[ "$trace_ticks" -gt 0 ] || return 0
	for direction in read write; do
		printf 'trace begins: %s-%s\n' "$1" "$direction"
		/bench/insn "/dev/$ns_disk" psync 4096 "$direction" "$trace_ticks"
	done
}

by_dma()
{
	rebind pmem_dma "$ns_dev" "$ns_disk"
	with_cpu_policy
	with_dma_policy
	policy cpu
	traced pmem_dma.cpu
	policy dma
	traced pmem_dma.dma
	policy cpu
	genctr
	fact channels "$(tr '\n' ';' <"/sys/block/$ns_disk/dma/channels")"
}

# The DMA path of a driver that checks the generation of callbacks.
genctr()
{
	unbind "$ns_dev"
	rmmod pmem_dma
	insmod /bench/genctr/pmem_dma.ko
	rebind pmem_dma "$ns_dev" "$ns_disk"
	policy dma
	prepare_queue "$ns_disk"
	figures "pmem_dma/dma GENCTR=y" "/dev/$ns_disk" psync,io_uring 4096 read,write
	policy cpu
	figures "pmem_dma/cpu GENCTR=y" "/dev/$ns_disk" psync,io_uring 4096 read,write
	unbind "$ns_dev"
	rmmod pmem_dma
	rebind pmem_dma "$ns_dev" "$ns_disk"
}

# --- Self-test and calibration, and a reader who must not notice -------------

# latency_with FILE PROVIDER [PARAMETER]: five times alone, and five times with it.
latency_with()
{
	local file=$1 run tester
	shift

	unbind "$ns_dev"
	rmmod nulldma 2>/dev/null || true
	modprobe "$@"
	bind pmem_dma "$ns_dev"
	wait_for 10 test -b "/dev/$ns_disk"
	for run in 1 2 3 4 5; do
		fact "latency.$file.alone.$run" \
			"$(/bench/insn "/dev/$ns_disk" psync 4096 read 40000 latency)"
		touch /tmp/go-on
		/bench/insn "/sys/block/$ns_disk/dma/$file" 1 /tmp/go-on &
		tester=$!
		# It has to be loaded, which is not what this is about.
		sleep 0.3
		fact "latency.$file.with.$run" \
			"$(/bench/insn "/dev/$ns_disk" psync 4096 read 40000 latency)"
		rm /tmp/go-on
		wait "$tester" || fail "$file failed"
	done
	say "latency with $file"
}

# The reader's requests are too short for an engine. The self-test looks at what was
# moved; the calibration is for a provider that takes no CPU, as a real one.
admin_latency()
{
	policy auto
	latency_with selftest nulldma move=1
	latency_with calibrate nulldma
}

: >/out/figures.tsv
: >/out/facts.tsv
fact kernel "$(uname -r)"
make_ns fsdax 0
fact media "fsdax, persistence domain $(cat "/sys/bus/nd/devices/$(region_of 0)/persistence_domain" 2>/dev/null || echo unknown)"
# It would look at each disk that was written to, in the middle of what follows.
udevadm control --stop-exec-queue

modprobe nulldma
if [ -n "$long_reads" ]; then
	null_disk
	all_figures null_blk nullb0
	all_figures nd_pmem "$ns_disk"
	rebind pmem_dma "$ns_dev" "$ns_disk"
	policy dma
	all_figures pmem_dma/dma "$ns_disk"
else
	floor
	copies
	stock
	by_cpu
	by_dma
	[ "$trace_ticks" -gt 0 ] || admin_latency
fi
cat /proc/kallsyms >/out/kallsyms
say "measured"
