# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# What must not be in a kernel log. Sourced by guest-init, and on the host by those
# who look at the log of a machine that could not do so itself.

# Nothing that is right ever prints one of these.
bad_log='WARNING:|BUG:|BUG |Oops|cut here|Call Trace|Modules linked in'
bad_log+='|general protection|unable to handle|NULL pointer|[Bb]ad page|segfault'
bad_log+='|KASAN|KCSAN|KFENCE|UBSAN|DMA-API|ODEBUG|refcount_t|list_(add|del) corrupt'
bad_log+='|use-after-free|double free|memory leak|leaked|unreferenced object'
bad_log+='|circular locking|recursive locking|inconsistent lock|suspicious RCU'
bad_log+='|scheduling while atomic|sleeping function|page allocation failure'
bad_log+='|blocked for more than|detected.*stall|stalls on|starved for|soft lockup|hard LOCKUP|stuck for'

# What detectors say when they begin, or of what is looked at elsewhere.
harmless='ommand line: |use-after-free debug is enabled|DMA-API: (preallocated|debugging enabled)'
harmless+='|leak detector initialized|kmemleak: .* suspected memory leaks'

# bad_lines [REGEX]: print the bad lines of the log on standard input, but for those
# that are expected.
bad_lines()
{
	grep -aEv -- "$harmless${1:+|$1}" | grep -aE -- "$bad_log"
}
