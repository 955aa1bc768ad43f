#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Usage: compat/find-kernel.sh [KDIR=DIR] [KVER=RELEASE|SERIES]
# Choose the kernel to build for. Prints three words: build directory, release,
# and where the directory is: "host", or "lab" for the lab's Debian root. Says on
# standard error what was chosen and why.
#
# KDIR is a build directory. KVER is a release (6.12.118+deb13-amd64), or a series
# (6.12), which stands for its newest release here, or else in the lab, or "debug",
# the lab's debug kernel, which nothing else stands for. Without
# either: the running kernel if its headers are here, else the newest kernel
# that has headers, else the lab's 6.12.
set -euo pipefail

tree=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd -P)
lab_root=${PMEM_LAB_CACHE:-${HOME:-/root}/.cache/pmem-lab}/root
lab_default=6.12

die()
{
	printf 'make: %s\n' "$*" >&2
	exit 1
}

# The release that modules built in directory $1 are for; fails without headers.
release_of()
{
	sed -n 's/^#define UTS_RELEASE "\(.*\)"/\1/p' \
		"$1/include/generated/utsrelease.h" 2>/dev/null | grep .
}

# Kernels with headers under root directory $1 (empty: this machine), oldest
# first. A link in the lab's root is absolute as seen from inside of it.
kernels_in()
{
	local dir target

	for dir in "$1"/lib/modules/*/build; do
		target=$(readlink -- "$dir" || true)
		case $target in
		/*) target=$1$target ;;
		*) target=$dir ;;
		esac
		if [ -e "$target/Makefile" ]; then
			basename -- "$(dirname -- "$dir")"
		fi
	done | sort -V
}

# Of the kernels on standard input: release $1, or the newest of series $1.
pick()
{
	local want=${1//./\\.}

	case $1 in
	'') grep -v -- -debug- | tail -n 1 ;;
	*[!0-9.]* | *.*.*) grep -x -- "$want" ;;
	*) grep -- "^${want}[.+-]" | grep -v -- -debug- | tail -n 1 ;;
	esac
}

chosen()
{
	printf 'Building for %s: %s\n' "$2" "$4" >&2
	printf '%s %s %s\n' "$1" "$2" "$3"
	exit 0
}

from_lab()
{
	local release

	[ -e "$lab_root" ] || "$tree/tests/lab/prepare" >&2
	release=$(kernels_in "$lab_root" | pick "$1") ||
		die "no headers of kernel $1: neither here nor in the lab, which has" \
			"$(kernels_in "$lab_root" | paste -sd ' ') (make lab updates it)"
	chosen "/lib/modules/$release/build" "$release" lab "$2"
}

kdir='' kver=''
for arg; do
	case $arg in
	KDIR=*) kdir=${arg#KDIR=} ;;
	KVER=*) kver=${arg#KVER=} ;;
	*) die "find-kernel: what is $arg?" ;;
	esac
done

if [ -n "$kdir" ]; then
	release=$(release_of "$kdir") ||
		die "KDIR=$kdir is not a configured kernel build directory"
	chosen "$(realpath -- "$kdir")" "$release" host "KDIR=$kdir"
fi

if [ "$kver" = debug ]; then
	kver=$("$tree/tests/lab/debug-kernel")
fi
if [ -n "$kver" ]; then
	if release=$(kernels_in '' | pick "$kver"); then
		chosen "/lib/modules/$release/build" "$release" host \
			"its headers are on this machine"
	fi
	from_lab "$kver" "headers from the lab, since this machine has none"
fi

running=$(uname -r)
if release=$(kernels_in '' | pick "$running"); then
	chosen "/lib/modules/$release/build" "$release" host "the running kernel"
fi
if release=$(kernels_in '' | pick '' | grep .); then
	chosen "/lib/modules/$release/build" "$release" host \
		"the newest with headers here; none for the running $running"
fi
from_lab "$lab_default" \
	"this machine has no kernel headers, so the lab's $lab_default (KVER= chooses)"
