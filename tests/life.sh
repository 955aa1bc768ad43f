# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Sourced by cases, after lib.sh, that bind and unbind a great deal. No process is
# started where the shell can do it: an emulated CPU takes 50 ms for each.

# shellcheck disable=SC2034 # for the cases
front_ends=(pmem_cpu pmem_dma)

# has_line WORD FILE
has_line()
{
	local lines

	mapfile -t lines <"$2"
	[[ "${lines[*]}" == *"$1"* ]]
}

# nothing_left DISK NAMESPACE: of a disk that was, or was not to be.
nothing_left()
{
	refuse "disk $1" test -e "/sys/block/$1"
	refuse "device node of $1" test -e "/dev/$1"
	refuse "$2 in /proc/iomem" has_line ": $2" /proc/iomem
}

# A channel tells how many users it has.
channels_free()
{
	local file users

	for file in /sys/class/dma/*/in_use; do
		[ -e "$file" ] || continue
		read -r users <"$file"
		[ "$users" = 0 ] || return 1
	done
}

# --- Memory ------------------------------------------------------------------

# snapshot FILE: the objects of each slab cache, and what the kernel uses beside them,
# in KiB. Without caches that free memory only when somebody needs it, and without
# processes, since udev's come and go.
snapshot()
{
	local file i

	udevadm settle
	sync
	for i in 1 2 3; do
		# A first look only takes the mark of recent use away.
		echo 3 >/proc/sys/vm/drop_caches
		sleep 0.2
	done
	for file in /sys/kernel/slab/*/shrink; do
		echo 1 >"$file"
	done
	awk 'FILENAME == "/proc/slabinfo" && FNR > 2 { print $1, $2 }
		/^MemTotal:/ { total = $2 }
		/^(MemFree|Buffers|Cached|Slab|AnonPages|PageTables|KernelStack):/ { total -= $2 }
		FILENAME == "/proc/zoneinfo" && $1 == "count:" { total -= $2 * 4 }
		END { print "pages", total }' /proc/slabinfo /proc/meminfo /proc/zoneinfo >"$1"
}

# grown TIMES SNAPSHOT...: print the caches that grew from each snapshot to the
# next by at least so many objects, and the rest of the memory if it grew each time
# by at least 1 MiB. What something leaves over each time shows in this way; a count
# alone does not, since caches grow and shrink by some hundred objects by themselves.
grown()
{
	local times=$1
	shift

	awk -v times="$times" 'FNR == 1 { file++ }
		file > 1 {
			gain = $2 - last[$1]
			if (file == 2 || gain < least[$1])
				least[$1] = gain
		}
		{ series[$1] = series[$1] " " $2; last[$1] = $2 }
		END {
			for (name in least)
				if (least[name] >= (name == "pages" ? 1024 : times))
					print name ":" series[name]
		}' "$@"
}
