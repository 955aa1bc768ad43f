#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Every CPU submits to a queue of its own node, and a queue is served by channels
# of its node; the parameters decide how many queues there are, and what is out
# of range is refused with the limit named.

# shellcheck source=tests/lib.sh
. /tests/lib.sh

# Print the queues of a disk as "queue: CPUs".
queues_of()
{
	local dir

	for dir in "/sys/block/$1"/mq/*; do
		printf '%s: %s\n' "${dir##*/}" "$(cat "$dir/cpu_list")"
	done | sort -n
}

# The lines of dma/channels as "queue node: nodes of the channels".
channel_nodes()
{
	awk '{ n[$1 " " $2] = n[$1 " " $2] " " $4 } END { for (q in n) print q ":" n[q] }' \
		"/sys/block/$1/dma/channels" | sort
}

# with "PARAMETERS" QUEUES CHANNEL-NODES
with()
{
	unbind "$ns_dev"
	modprobe -r pmem_dma
	# shellcheck disable=SC2086 # words
	modprobe pmem_dma $1
	[ "$(driver_of "$ns_dev")" = pmem_dma ] || bind pmem_dma "$ns_dev"
	expect_same "queues with '$1'" "$2" "$(queues_of "$ns_disk")"
	expect_same "channels with '$1'" "$3" "$(channel_nodes "$ns_disk")"
}

# refused "PARAMETERS" "WHAT THE LOG SAYS"
refused()
{
	dmesg -C
	# shellcheck disable=SC2086 # words
	refuse "pmem_dma takes $1" modprobe pmem_dma $1
	expect "the log names the limit for $1" grep -qF -- "$2" <(dmesg)
	refuse "pmem_dma is loaded" grep -q '^pmem_dma ' /proc/modules
}

make_ns raw 0
rebind pmem_dma "$ns_dev" "$ns_disk"
# Two CPUs a node, so at most two queues, of the four channels of its node.
with '' $'0: 0\n1: 1\n2: 2\n3: 3' $'0 0: 0\n1 0: 0\n2 1: 1\n3 1: 1'
with q_per_node=1 $'0: 0, 1\n1: 2, 3' $'0 0: 0 0\n1 1: 1 1'
with q_per_node=64 $'0: 0\n1: 1\n2: 2\n3: 3' $'0 0: 0\n1 0: 0\n2 1: 1\n3 1: 1'
with 'queue_depth=7 num_sg=3' $'0: 0\n1: 1\n2: 2\n3: 3' \
	$'0 0: 0\n1 0: 0\n2 1: 1\n3 1: 1'
expect_same "depth" 7 "$(cat "/sys/block/$ns_disk/queue/nr_requests")"
expect_same "segments" 3 "$(cat "/sys/block/$ns_disk/queue/max_segments")"
echo dma >"/sys/block/$ns_disk/dma/policy"
fio_verify "$ns_disk" --rw=randwrite --bsrange=512-1m --size=16M --iodepth=16

for name in $'channels' policy read_min_bytes write_min_bytes stats; do
	expect "dma/$name can be read" cat "/sys/block/$ns_disk/dma/$name" >/dev/null
done
refuse "policy takes nonsense" bash -c "echo fast >/sys/block/$ns_disk/dma/policy"
refuse "a size takes nonsense" bash -c "echo -1 >/sys/block/$ns_disk/dma/read_min_bytes"
refuse "a size takes too much" bash -c "echo 4294967296 >/sys/block/$ns_disk/dma/write_min_bytes"
refuse "rescan takes 0" bash -c "echo 0 >/sys/block/$ns_disk/dma/rescan"
for word in policy:cpu read_min_bytes:1 rescan:1 release:1 selftest:1 calibrate:1; do
	refuse "${word%:*} takes what follows a zero byte" \
		bash -c "printf '%s\\0junk' ${word#*:} >/sys/block/$ns_disk/dma/${word%:*}"
done
expect_same "policy is as it was" dma "$(cat "/sys/block/$ns_disk/dma/policy")"
expect_same "the size is as it was" 524288 "$(cat "/sys/block/$ns_disk/dma/read_min_bytes")"

unbind "$ns_dev"
modprobe -r pmem_dma
refused queue_depth=0 'queue_depth=0: must be a number from 1 to 1024'
refused queue_depth=1025 'queue_depth=1025: must be a number from 1 to 1024'
refused q_per_node=65 'q_per_node=65: must be a number from 0 to 64'
refused num_sg=0 'num_sg=0: must be a number from 1 to 256'
refused num_sg=many 'num_sg=many: must be a number from 1 to 256'
refused 'queue_depth=1024 num_sg=64' \
	'queue_depth=1024 times num_sg=64 must be less than 65536'
expect "modinfo tells units, ranges, defaults" test \
	"$(modinfo -p pmem_dma | grep -c '(default')" = 3
