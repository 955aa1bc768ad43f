# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Sourced by the lab's host-side scripts: where things are, and how to speak.
# shellcheck disable=SC2034 # the variables are theirs

lab_dir=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd -P)
tree=$(cd -- "$lab_dir/../.." && pwd -P)
cache=${PMEM_LAB_CACHE:-${HOME:-/root}/.cache/pmem-lab}

say()
{
	printf 'lab: %s\n' "$*" >&2
}

die()
{
	say "$*"
	exit 1
}

# The root in use, as a real path: a symlink that another run moves must not
# change it under the feet of a running one.
root_path()
{
	local root

	root=$(readlink -e -- "$cache/root") ||
		die "no Debian root in $cache: run tests/lab/prepare (make lab)"
	printf '%s\n' "$root"
}

# Print the release of kernel series $1 in the root; a release stands for itself,
# and "debug" for the debug kernel, which is made if there is none.
kernel_release()
{
	local root release

	if [ "$1" = debug ]; then
		"$lab_dir/debug-kernel"
		return
	fi
	root=$(root_path)
	if [ -d "$root/lib/modules/$1" ]; then
		printf '%s\n' "$1"
		return
	fi
	release=$(sed -n "s/.*\"${1//./\\.}\":\"\([^\"]*\)\".*/\1/p" "$root/versions.json")
	[ -n "$release" ] || die "no kernel $1 in the lab: $(cat -- "$root/versions.json")"
	printf '%s\n' "$release"
}

# Print how many virtual machines may run at a time on this one: as many as it has
# cores, since what a case does is mostly one thing after the other, and memory, of
# which one takes up to 5 GiB.
machines()
{
	local cores fit

	cores=$(nproc)
	fit=$(awk '/^MemTotal:/ { print int($2 / 5 / 1024 / 1024) }' /proc/meminfo)
	[ "$fit" -gt 0 ] || fit=1
	printf '%s\n' "${PMEM_LAB_MACHINES:-$((cores < fit ? cores : fit))}"
}

# How many times longer than usual things may take on kernel release $1.
slowness()
{
	case $1 in
	*-debug-*) echo 10 ;;
	*) echo 1 ;;
	esac
}
