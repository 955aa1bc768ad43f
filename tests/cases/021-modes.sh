#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# kernels: 6.1 6.12 7.3
# timeout: 300
# append: memmap=65M!2305M
# Namespaces of every mode, sector size, alignment and padding: the three drivers
# show the same capacity and each others' bytes, and leave labels and info blocks
# as they are. devdax goes to its own driver.

# shellcheck source=tests/lib.sh
. /tests/lib.sh

kib=1024 mib=$((1 << 20))
chunk=$((64 * kib))

# Places on a disk of $1 bytes: both ends and a page in between.
places()
{
	echo 0 $(($1 / 3 / 4096 * 4096)) $(($1 - chunk))
}

# What earlier drivers wrote is there.
read_back()
{
	local at

	for at in $(places "$1"); do
		dd if="/dev/$ns_disk" of=/tmp/got bs="$chunk" count=1 skip="$at" \
			iflag=direct,skip_bytes status=none
		expect "bytes at $at under $2" cmp "/tmp/want.$at" /tmp/got
	done
}

write_new()
{
	local at

	for at in $(places "$1"); do
		head -c "$chunk" /dev/urandom >"/tmp/want.$at"
		dd if="/tmp/want.$at" of="/dev/$ns_disk" bs="$chunk" count=1 seek="$at" \
			oflag=direct,seek_bytes conv=notrunc status=none
	done
}

# Print what a disk looks like from outside.
shape()
{
	local dir=/sys/block/$ns_disk

	echo "$(cat "$dir/size") sectors, blocks of $(cat "$dir"/queue/{logical,physical}_block_size |
		tr '\n' ' ')dax $(cat "$dir/queue/dax")"
}

# past_info_block COMMAND...: run it while raw_disk shows all of the namespace, info
# block included; then the namespace is what its info block says, under nd_pmem.
past_info_block()
{
	local dir=/sys/bus/nd/devices/$ns_name

	ndctl disable-namespace "$ns_name" >/dev/null 2>&1
	echo 1 >"$dir/force_raw"
	bind nd_pmem "$ns_name"
	raw_disk=/dev/$(basename "$dir"/block/*)
	"$@"
	unbind "$ns_name"
	echo 0 >"$dir/force_raw"
	bind nd_pmem "$ns_name" 2>/dev/null || true # its new owner is bound instead
	ns_dev=$(claim_of "$ns_name")
	wait_for 10 compgen -G "/sys/bus/nd/devices/$ns_dev/block/*" >/dev/null
	expect_same "driver of $ns_dev" nd_pmem "$(driver_of "$ns_dev")"
	ns_disk=$(basename "/sys/bus/nd/devices/$ns_dev"/block/*)
}

# Save the label area, and the first 8 KiB, where an info block lies, under name $1.
save_metadata()
{
	local dimm

	dimm=$(ndctl list -D -r "region${ns_name//[!0-9.]/}" 2>/dev/null | jq -r '.[0].dev // empty')
	: >"$1.labels"
	[ -z "$dimm" ] || ndctl read-labels -o "$1.labels" "$dimm" >/dev/null 2>&1
	past_info_block save_start "$1.info"
}

save_start()
{
	dd if="$raw_disk" of="$1" bs=8K count=1 iflag=direct status=none
}

# The disk of the namespace under each driver in turn.
same_under_all()
{
	local driver size first=''

	[[ $ns_dev = namespace* ]] || save_metadata /tmp/before
	for driver in "${drivers[@]}" nd_pmem; do
		rebind "$driver" "$ns_dev" "$ns_disk"
		[ ! -e "/sys/block/$ns_disk/dma" ] || echo dma >"/sys/block/$ns_disk/dma/policy"
		size=$(($(cat "/sys/block/$ns_disk/size") * 512))
		[ -z "$first" ] || read_back "$size" "$driver"
		first=${first:-$(shape)}
		expect_same "shape under $driver" "$first" "$(shape)"
		write_new "$size"
	done
	[[ $ns_dev != namespace* ]] || return 0
	save_metadata /tmp/after
	expect "the same info block" cmp /tmp/before.info /tmp/after.info
	expect "the same labels" cmp /tmp/before.labels /tmp/after.labels
	mark "$first"
}

# try MODE NODE [ndctl's options]
try()
{
	make_ns "$@"
	same_under_all
}

# Print the number of the region that begins at $1 MiB.
region_at()
{
	grep -lx "$(printf '%#x' $(($1 * mib)))" /sys/bus/nd/devices/region*/resource |
		sed -E 's#.*/region([0-9]+)/.*#\1#'
}

# The checksum of an info block, in /tmp/block, whose last eight bytes are to hold
# it, as two decimal numbers.
checksum()
{
	head -c 4088 /tmp/block | od -An -v -tu4 | awk '
		{ for (i = 1; i <= NF; i++) { lo = (lo + $i) % 2^32; hi = (hi + lo) % 2^32 } }
		END { hi = (hi + 2 * lo) % 2^32; print lo, hi }'
}

# poke OFFSET NUMBER: 32 bits, little endian
poke()
{
	local i

	for i in 0 8 16 24; do
		printf '%b' "\\x$(printf %x $(($2 >> i & 255)))"
	done | dd of=/tmp/block bs=1 seek="$1" conv=notrunc status=none
}

# Old kernels began the data of such a namespace at the next aligned place. Nothing
# makes these any more, but they have to be read. write_padding START END, in bytes
write_padding()
{
	local lo hi

	dd if="$raw_disk" of=/tmp/block bs=4K skip=1 count=1 iflag=direct status=none
	poke 76 "$1"
	poke 80 "$2"
	read -r lo hi < <(checksum)
	poke 4088 "$lo"
	poke 4092 "$hi"
	dd if=/tmp/block of="$raw_disk" bs=4K seek=1 count=1 oflag=direct status=none
}

modprobe -a pmem_cpu pmem_dma
try raw 0
try sector 0 --sector-size=512
try sector 0 --sector-size=4096
try fsdax 0 --map=mem --align=2M
try fsdax 0 --map=mem --align=4K
try fsdax 1 --map=dev --align=4K
if thorough; then
	try raw 0 --sector-size=4096
	try sector 0 --sector-size=4160
	try fsdax 0 --map=dev --align=2M
	try fsdax 1 --size=256M
fi

# Memory that does not begin where pages of 2 MiB do has no driver at all.
ns_name=namespace$(region_at 2305).0
for driver in "${drivers[@]}"; do
	refuse "$driver takes memory that begins at an odd MiB" \
		bind "$driver" "$ns_name" 2>/dev/null
done

make_ns fsdax e820 --map=dev
size=$(cat "/sys/block/$ns_disk/size")
past_info_block write_padding $((2 * mib)) $((4 * mib))
expect_same "size without the padding" $((size - 6 * mib / 512)) \
	"$(cat "/sys/block/$ns_disk/size")"
same_under_all

make_ns devdax 0
expect "the dax device is there" compgen -G '/sys/bus/dax/devices/dax0.*' >/dev/null
expect "dax_pmem has it" compgen -G '/sys/bus/nd/drivers/dax_pmem/dax0.*' >/dev/null
