# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Sourced by the cases, in the guest. A case that gets to its end passes; any
# command that fails, fails it. Disks are named as the kernel does (pmem0),
# namespaces and claims as on the nd bus (namespace0.0, pfn0.1, btt0.1).

set -euo pipefail

mark()
{
	printf '%7.1f  %s\n' "$(cut -d ' ' -f 1 /proc/uptime)" "$*"
	printf '<5>case: %s\n' "$*" >/dev/kmsg
}

fail()
{
	mark "FAILED: $*"
	exit 1
}

skip()
{
	printf 'skip: %s\n' "$*"
	exit 77
}

# A command that fails and so ends the case is named.
trap 'printf "line %s gave %s: %s\n" "$LINENO" "$?" "$BASH_COMMAND"' ERR
set -E

# expect "WHAT" COMMAND...: the command succeeds.
expect()
{
	local what=$1
	shift

	"$@" || fail "expected: $what"
}

# expect_same "WHAT" WANTED GOT
expect_same()
{
	[ "$2" = "$3" ] || fail "$1: expected '$2', got '$3'"
}

# refuse "WHAT" COMMAND...: the command fails, and that is right.
refuse()
{
	local what=$1
	shift

	if "$@"; then
		fail "expected not: $what"
	fi
}

# How much slower than usual this kernel is; limits of time grow with it.
slow=${LAB_SLOW:-1}

# wait_for SECONDS COMMAND...: until the command succeeds.
wait_for()
{
	local end=$((SECONDS + $1 * slow))
	shift

	until "$@"; do
		[ "$SECONDS" -lt "$end" ] || fail "waited in vain for: $*"
		sleep 0.1
	done
}

# exited PID: such a process is not there any more.
exited()
{
	! kill -0 "$1" 2>/dev/null
}

# within SECONDS COMMAND...: the command succeeds in this time. If it can't even be
# killed, the case ends all the same, and the kernel log tells where tasks hang.
within()
{
	local end=$((SECONDS + $1 * slow)) pid
	shift

	"$@" &
	pid=$!
	while kill -0 "$pid" 2>/dev/null; do
		if [ "$SECONDS" -ge "$end" ]; then
			echo w >/proc/sysrq-trigger
			fail "no end of: $*"
		fi
		sleep 0.05
	done
	wait "$pid" || fail "failed: $*"
}

# write_to FILE WORD
write_to()
{
	echo "$2" >"$1"
}

# --- Namespaces ------------------------------------------------------------

# Print the region of the NVDIMM on node $1 (0, 1), or the memmap= one (e820).
region_of()
{
	local dir node=$1 bus=ACPI.NFIT

	if [ "$node" = e820 ]; then
		node=1 bus=e820
	fi
	for dir in /sys/bus/nd/devices/region*; do
		if [ "$(cat "$dir/numa_node")" = "$node" ] &&
		   [ "$(cat "$dir/../provider")" = "$bus" ]; then
			printf '%s\n' "${dir##*/}"
			return
		fi
	done
	fail "no region on $1"
}

# make_ns MODE NODE [ndctl's options]: make the region's only namespace, and set
# ns_name (namespace0.0), ns_dev, which is what a driver binds to (namespace0.0,
# pfn0.0, btt0.0, dax0.0), and ns_disk (pmem0; nothing for devdax).
make_ns()
{
	local mode=$1 region
	region=$(region_of "$2")
	shift 2

	clear_region "$region"
	created "$(ndctl create-namespace --force --mode="$mode" --region="$region" "$@")"
}

# reconfigure_ns MODE [ndctl's options]: make another mode out of ns_name.
reconfigure_ns()
{
	local mode=$1
	shift

	created "$(ndctl create-namespace --force --reconfig="$ns_name" --mode="$mode" "$@")"
}

# Take over what ndctl says of a namespace.
created()
{
	ns_name=$(jq -r .dev <<<"$1")
	ns_disk=$(jq -r '.blockdev // empty' <<<"$1")
	ns_dev=$(claim_of "$ns_name")
	udevadm settle
	mark "$(jq -r '"\(.mode) \(.map // "")"' <<<"$1") namespace $ns_name: ${ns_disk:-no disk}, bound as $ns_dev"
}

# Print what stands before namespace $1 on the bus, or the namespace itself.
claim_of()
{
	local holder

	read -r holder <"/sys/bus/nd/devices/$1/holder"
	printf '%s\n' "${holder:-$1}"
}

# Labels are written anew, since the first boot of an NVDIMM finds none.
clear_region()
{
	local dimm

	ndctl destroy-namespace --force --region="$1" all >/dev/null 2>&1 || true
	dimm=$(ndctl list -D -r "$1" | jq -r '.[0].dev // empty')
	if [ -n "$dimm" ]; then
		ndctl disable-region "$1" >/dev/null 2>&1
		ndctl init-labels --force "$dimm" >/dev/null 2>&1
		ndctl enable-region "$1" >/dev/null 2>&1
	fi
}

# Where single requests count, udev must not read a disk and its partition table
# each time that somebody who wrote to it has closed it.
unwatch_disks()
{
	mkdir -p /run/udev/rules.d
	echo 'KERNEL=="pmem*", OPTIONS+="nowatch"' >/run/udev/rules.d/99-unwatched.rules
	udevadm control --reload
}

# --- Drivers ---------------------------------------------------------------

# All of a case is run on the default kernel (and its debug kernel), on others what
# may differ there.
thorough()
{
	[[ $(uname -r) = 6.12.* ]]
}

# The stock driver goes first: it says what is right.
# shellcheck disable=SC2034 # for the cases
drivers=(nd_pmem pmem_cpu pmem_dma)

# Print the driver of device $1 of the nd bus, or nothing.
driver_of()
{
	local driver

	driver=$(readlink "/sys/bus/nd/devices/$1/driver") || true
	printf '%s\n' "${driver##*/}"
}

unbind()
{
	echo "$1" >"/sys/bus/nd/drivers/$(driver_of "$1")/unbind"
}

bind()
{
	echo "$2" >"/sys/bus/nd/drivers/$1/bind"
}

# rebind DRIVER DEVICE [DISK]: hand the device over to another driver, and wait
# for the disk's node.
rebind()
{
	modprobe "$1"
	if [ -n "$(driver_of "$2")" ]; then
		unbind "$2"
	fi
	bind "$1" "$2"
	expect_same "driver of $2" "$1" "$(driver_of "$2")"
	[ $# -lt 3 ] || wait_for 10 test -b "/dev/$3"
	mark "$2 is bound to $1"
}

# --- The emulated engine ---------------------------------------------------

engine_port=/dev/virtio-ports/engine

# engine COMMAND [ARGUMENT...]: print the one line that it answers. A reply that
# comes after our patience must not be taken for the next one: it is read away.
engine()
{
	local fd reply

	[ -e "$engine_port" ] || fail "this machine has no engine"
	exec {fd}<>"$engine_port"
	while read -r -t 0.05 -u "$fd" reply; do :; done
	printf '%s\n' "$*" >&"$fd"
	read -r -t $((10 * slow)) -u "$fd" reply || fail "the engine does not answer: $*"
	exec {fd}>&-
	[[ $reply == *'"ok":true'* ]] || fail "engine: $* gave $reply"
	printf '%s\n' "$reply"
}

# Print a counter of all channels together: bytes, descriptors, errors ...
engine_total()
{
	engine stats | jq ".totals.$1"
}

engine_bytes()
{
	engine_total bytes
}

# --- Load ------------------------------------------------------------------

# fio_run DISK [fio's options]: an emulated CPU needs seconds to start processes
# and to fill buffers, so threads, and buffers from one huge segment.
fio_run()
{
	local disk=$1
	shift

	fio --name=case --filename="/dev/$disk" --direct=1 --thread \
		--ioengine=libaio --group_reporting --eta=never --minimal \
		--output=/out/fio.log "$@" || {
		cat /out/fio.log
		fail "fio $* on $disk"
	}
}

# fio_verify DISK [fio's options]: write, read back and compare.
fio_verify()
{
	fio_run "$@" --verify=crc32c --verify_fatal=1 --do_verify=1
}
