// SPDX-License-Identifier: GPL-2.0
/*
 * Guest memory as the device may reach it.
 *
 * Without an IOMMU the client maps a handful of RAM blocks; behind an emulated IOMMU it maps and
 * unmaps thousands of 4 KiB windows. Hence a sorted table with binary search. What is not in the
 * table, or not for that direction, is a fault, as an IOMMU would report it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "ioat-emu.h"
#include "ioat-emu-wire.h"

void mem_init(struct emu_mem *mem)
{
	pthread_rwlockattr_t attr;

	/* glibc prefers readers: four busy channels could keep an unmap waiting for ever. */
	pthread_rwlockattr_init(&attr);
	pthread_rwlockattr_setkind_np(&attr, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
	pthread_rwlock_init(&mem->lock, &attr);
	pthread_rwlockattr_destroy(&attr);
}

/* Index of the first window that ends above iova; all before it lie wholly below. */
static unsigned int mem_find(const struct emu_mem *mem, __u64 iova)
{
	unsigned int low = 0, high = mem->now;

	while (low < high) {
		unsigned int mid = (low + high) / 2;
		const struct emu_map *map = &mem->maps[mid];

		if (map->iova + (map->size - 1) < iova)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static int mem_make_room(struct emu_mem *mem)
{
	unsigned int room = mem->room ? mem->room * 2 : 64;
	struct emu_map *maps;

	if (mem->now < mem->room)
		return 0;
	if (mem->now >= EMU_MAX_MAPS)
		return -ENOSPC;
	maps = realloc(mem->maps, room * sizeof(*maps));
	if (!maps)
		return -ENOMEM;
	mem->maps = maps;
	mem->room = room;
	return 0;
}

static int mem_insert(struct emu_mem *mem, const struct emu_map *map)
{
	unsigned int i = mem_find(mem, map->iova);
	int err;

	if (i < mem->now && mem->maps[i].iova <= map->iova + (map->size - 1))
		return -EEXIST;
	err = mem_make_room(mem);
	if (err)
		return err;
	memmove(&mem->maps[i + 1], &mem->maps[i], (mem->now - i) * sizeof(*map));
	mem->maps[i] = *map;
	mem->now++;
	if (mem->most < mem->now)
		mem->most = mem->now;
	return 0;
}

/* fd -1 stands for memory that the client cannot share. Returns 0 or a negative errno. */
int mem_map(struct emu_mem *mem, struct emu_map map, int fd, __u64 offset)
{
	int prot = 0, err;

	if (!map.size || map.iova + (map.size - 1) < map.iova)
		return -EINVAL;
	if (map.flags & VU_MAP_READ)
		prot |= PROT_READ;
	if (map.flags & VU_MAP_WRITE)
		prot |= PROT_WRITE;
	if (fd >= 0) {
		map.host = mmap(NULL, map.size, prot, MAP_SHARED, fd, (off_t)offset);
		if (map.host == MAP_FAILED)
			return -errno;
	}

	pthread_rwlock_wrlock(&mem->lock);
	err = mem_insert(mem, &map);
	pthread_rwlock_unlock(&mem->lock);
	if (err && map.host)
		munmap(map.host, map.size);
	return err;
}

static void mem_remove(struct emu_mem *mem, unsigned int from, unsigned int to)
{
	unsigned int i;

	if (from == to)
		return;
	for (i = from; i < to; i++)
		if (mem->maps[i].host)
			munmap(mem->maps[i].host, mem->maps[i].size);
	memmove(&mem->maps[from], &mem->maps[to], (mem->now - to) * sizeof(*mem->maps));
	mem->now -= to - from;
}

/*
 * Removes every window inside the range. Returns when no copy uses them any more: the client
 * gives the memory to somebody else as soon as it has our answer.
 */
int mem_unmap(struct emu_mem *mem, __u64 iova, __u64 size)
{
	__u64 last = iova + (size - 1);
	unsigned int from, to;
	int err = 0;

	if (!size || last < iova)
		return -EINVAL;

	pthread_rwlock_wrlock(&mem->lock);
	from = mem_find(mem, iova);
	for (to = from; to < mem->now && mem->maps[to].iova <= last; to++)
		if (mem->maps[to].iova < iova || last - mem->maps[to].iova < mem->maps[to].size - 1)
			err = -EINVAL;	/* windows cannot be split */
	if (!err)
		mem_remove(mem, from, to);
	pthread_rwlock_unlock(&mem->lock);
	return err;
}

void mem_unmap_all(struct emu_mem *mem)
{
	pthread_rwlock_wrlock(&mem->lock);
	mem_remove(mem, 0, mem->now);
	pthread_rwlock_unlock(&mem->lock);
}

/*
 * Host address of iova with mem->lock held, NULL for a fault; *len shrinks to what is contiguous.
 */
static void *mem_at(struct emu_mem *mem, __u64 iova, __u64 *len, __u32 need)
{
	unsigned int i = mem_find(mem, iova);
	const struct emu_map *map = i < mem->now ? &mem->maps[i] : NULL;
	__u64 skip;

	if (!map || map->iova > iova || !map->host || !(map->flags & need)) {
		if (need == VU_MAP_WRITE)
			atomic_fetch_add(&mem->write_faults, 1);
		else
			atomic_fetch_add(&mem->read_faults, 1);
		emu_log(1, "fault: %s of %#llx", need == VU_MAP_WRITE ? "write" : "read", iova);
		return NULL;
	}
	skip = iova - map->iova;
	if (*len > map->size - skip)
		*len = map->size - skip;
	return map->host + skip;
}

/* For descriptors: they are aligned, so one that spans two windows is as good as unmapped. */
bool mem_read(struct emu_mem *mem, __u64 iova, void *buf, __u64 len)
{
	__u64 have = len;
	const void *p;
	bool ok;

	pthread_rwlock_rdlock(&mem->lock);
	p = mem_at(mem, iova, &have, VU_MAP_READ);
	ok = p && have == len;
	if (ok)
		memcpy(buf, p, len);
	pthread_rwlock_unlock(&mem->lock);
	return ok;
}

/* For the completion word: the guest polls it, so it must change at once and after the data. */
bool mem_write_u64(struct emu_mem *mem, __u64 iova, __u64 val)
{
	__u64 have = sizeof(val);
	__u64 *p;
	bool ok;

	pthread_rwlock_rdlock(&mem->lock);
	p = mem_at(mem, iova, &have, VU_MAP_WRITE);
	ok = p && have == sizeof(val);
	if (ok)
		__atomic_store_n(p, val, __ATOMIC_RELEASE);
	pthread_rwlock_unlock(&mem->lock);
	return ok;
}

/* Returns 0 or the CHANERR bit of the side that failed. */
__u32 mem_copy(struct emu_mem *mem, __u64 dst, __u64 src, __u64 len)
{
	__u32 err = 0;

	pthread_rwlock_rdlock(&mem->lock);
	while (len) {
		__u64 step = len;
		void *from, *to;

		from = mem_at(mem, src, &step, VU_MAP_READ);
		if (!from) {
			err = ERR_READ_DATA;
			break;
		}
		to = mem_at(mem, dst, &step, VU_MAP_WRITE);
		if (!to) {
			err = ERR_WRITE_DATA;
			break;
		}
		memmove(to, from, step);	/* a guest may ask for an overlap */
		src += step;
		dst += step;
		len -= step;
	}
	pthread_rwlock_unlock(&mem->lock);
	return err;
}
