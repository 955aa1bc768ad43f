# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Sourced by the cases about persistence domains: watches, by probes on exported
# kernel functions and by the block layer's own events, what happens to the
# cache and to the write buffers before a write is reported done.

tracing=/sys/kernel/tracing

trace_start()
{
	echo 0 >$tracing/tracing_on
	echo 16384 >$tracing/buffer_size_kb
	echo global >$tracing/trace_clock
	if [ ! -e $tracing/events/pm ]; then
		{
			echo 'p:pm/wb arch_wb_cache_pmem addr=%di:x64 len=%si:u64'
			echo 'p:pm/flush nvdimm_flush'
		} >$tracing/kprobe_events
	fi
	echo 1 >$tracing/events/pm/enable
	echo 1 >$tracing/events/block/block_rq_complete/enable
	echo >$tracing/trace
	echo 1 >$tracing/tracing_on
}

# Leaves the events in /out/trace.
trace_stop()
{
	echo 0 >$tracing/tracing_on
	cat $tracing/trace >/out/trace
}

# Print how many writes were completed, and how many of those without a write-back
# of exactly their range since the range was last written. Addresses are turned
# into sectors by the first write, which the caller makes alone, to sector 0.
judge_writes()
{
	awk '
	function field(name,  i) {
		for (i = 1; i <= NF; i++)
			if (index($i, name "=") == 1)
				return substr($i, length(name) + 2)
	}
	# The low 40 bits: awk counts in floating point.
	function address(  hex) {
		hex = field("addr")
		return strtonum("0x" substr(hex, length(hex) - 9))
	}
	/ wb: / {
		if (!based++)
			base = address()
		seen[(address() - base) / 512 " " field("len") / 512]++
	}
	/ block_rq_complete: / {
		# ... block_rq_complete: 259,0 WS () 0 + 128 ...
		for (i = 1; i <= NF; i++)
			if ($i == "+")
				break
		if ($(i - 3) !~ /^[^F]*W/)
			next
		writes++
		if (seen[$(i - 1) " " $(i + 1)]-- <= 0)
			missing++
	}
	END { print writes + 0, missing + 0 }' /out/trace
}

# Print how many write-backs had no flush after them.
judge_flushes()
{
	awk '/ wb: / { open++ } / flush: / { open = 0 } END { print open + 0 }' /out/trace
}

# Writes by the engine only, of many sizes, on a disk that is bound to pmem_dma.
write_by_engine()
{
	local before

	echo dma >"/sys/block/$1/dma/policy"
	before=$(awk '$1 ~ /^write_requests_(cpu|fallback|redone)/ { n += $2 } END { print n }' \
		"/sys/block/$1/dma/stats")
	dd if=/dev/zero of="/dev/$1" bs=4k count=1 oflag=direct status=none
	fio_run "$1" --rw=randwrite --bsrange=512-1m --size=16M --iodepth=8
	expect_same "writes by CPU" "$before" \
		"$(awk '$1 ~ /^write_requests_(cpu|fallback|redone)/ { n += $2 } END { print n }' \
		"/sys/block/$1/dma/stats")"
}
