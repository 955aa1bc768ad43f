#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# kernels: debug
# fast: yes
# append: panic_on_warn=0 kasan_multi_shot
# expect-log: .
# Each detector of the debug kernel reports the bug that it is there for: without
# that, a log that has no reports says nothing.

# shellcheck source=tests/lib.sh
. /tests/lib.sh

# found BUG REPORT: a report of the detector that names the module. One of lockdep
# or KASAN turns lockdep off: its other reports have to come first.
found()
{
	dmesg -C
	modprobe seedbugs bug="$1"
	rmmod seedbugs
	dmesg >"/out/$1.log"
	expect "a report of the bug '$1'" grep -qE -- "$2" "/out/$1.log"
	mark "$1: $(grep -m 1 -oE -- "$2.*" "/out/$1.log")"
}

# Memory that nothing points to, after it is old enough to count.
leaked()
{
	local kmemleak=/sys/kernel/debug/kmemleak

	modprobe seedbugs bug=leak
	for _ in 1 2 3; do
		sleep 6
		echo scan >$kmemleak
		cat $kmemleak >/out/leak.log
		! grep -q 'seed.*\[seedbugs\]' /out/leak.log || break
	done
	expect "a report of a leak" grep -q 'seed.*\[seedbugs\]' /out/leak.log
	mark "leak: $(grep -c '^unreferenced object' /out/leak.log) objects"
	rmmod seedbugs
	# Those have been found; what is found at the end is another's.
	echo clear >$kmemleak
}

found rcu 'WARNING: suspicious RCU usage'
found locks 'WARNING: possible circular locking dependency'
found sleep 'BUG: sleeping function called from invalid context'
found shift 'UBSAN: shift-out-of-bounds'
found list 'list_add double add'
found object 'ODEBUG: init active'
found mapping 'DMA-API: .*different size'
leaked
found bounds 'BUG: KASAN: slab-out-of-bounds'
