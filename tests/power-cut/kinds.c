// SPDX-License-Identifier: GPL-2.0
/* Ways to write records to a disk, and to files. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "powercut.h"

#define SLOT_BYTES	((off_t)MAX_SECTORS * SECTOR)
#define NAME_BYTES	64

/* Where a log that grows as long as the machine runs has to stop. */
#define APPEND_LIMIT	((off_t)64 << 20)
#define CHURN_FILES	48

static int open_at(int dir, const char *name, int flags)
{
	int fd = openat(dir, name, flags | O_CLOEXEC, 0600);

	if (fd < 0)
		die("open", name);
	return fd;
}

static void write_all(struct job *job, int fd, size_t bytes, off_t at)
{
	ssize_t done = pwrite(fd, job->buf, bytes, at);

	if (done < 0 || (size_t)done != bytes)
		die("write", job->kind->name);
}

static size_t read_all(struct job *job, int fd, off_t at)
{
	ssize_t done = pread(fd, job->buf, SLOT_BYTES, at);

	if (done < 0)
		die("read", job->kind->name);
	return done;
}

static void sync_file(int fd, const char *name)
{
	if (fsync(fd))
		die("fsync", name);
}

/* ------------------------------------------------------------------- disks */

static void disk_open_dsync(struct job *job)
{
	job->fd = open_at(AT_FDCWD, job->path, O_RDWR | O_DIRECT | O_DSYNC);
}

static void disk_open(struct job *job)
{
	job->fd = open_at(AT_FDCWD, job->path, O_RDWR | O_DIRECT);
}

static off_t disk_place(const struct job *job, unsigned int slot)
{
	return ((off_t)job->place * MAX_SLOTS + slot) * SLOT_BYTES;
}

static void disk_put(struct job *job, unsigned int slot, size_t bytes)
{
	write_all(job, job->fd, bytes, disk_place(job, slot));
}

static size_t disk_get(struct job *job, unsigned int slot)
{
	return read_all(job, job->fd, disk_place(job, slot));
}

static void disk_sync(struct job *job)
{
	if (fdatasync(job->fd))
		die("fdatasync", job->path);
}

/* Each write is durable when it returns: FUA. */
static const struct kind dsync = {
	.name = "dsync",
	.slots = MAX_SLOTS,
	.max_sectors = MAX_SECTORS,
	.batch = 1,
	.open = disk_open_dsync,
	.put = disk_put,
	.get = disk_get,
};

/* Some writes, then a flush for all of them. */
static const struct kind flush = {
	.name = "flush",
	.slots = MAX_SLOTS,
	.max_sectors = MAX_SECTORS,
	.batch = 4,
	.open = disk_open,
	.put = disk_put,
	.sync = disk_sync,
	.get = disk_get,
};

const struct kind *const disk_kinds[] = { &dsync, &dsync, &flush, NULL };

/* --------------------------------------------------------- slots of a file */

static void open_dir(struct job *job)
{
	job->dir = open_at(AT_FDCWD, job->path, O_RDONLY | O_DIRECTORY);
}

/* A file with holes, so that blocks are allocated while records are written. */
static void file_open(struct job *job, const char *name, int flags)
{
	struct stat st;

	open_dir(job);
	job->fd = open_at(job->dir, name, O_RDWR | O_CREAT | flags);
	if (fstat(job->fd, &st))
		die("stat", name);
	if (!st.st_size) {
		if (ftruncate(job->fd, MAX_SLOTS * SLOT_BYTES))
			die("truncate", name);
		sync_file(job->fd, name);
		sync_file(job->dir, job->path);
	}
}

static void file_open_cached(struct job *job)
{
	file_open(job, "slots", 0);
}

static void file_open_direct(struct job *job)
{
	file_open(job, "slots.direct", O_DIRECT | O_DSYNC);
}

static void file_put(struct job *job, unsigned int slot, size_t bytes)
{
	write_all(job, job->fd, bytes, slot * SLOT_BYTES);
}

static void file_sync(struct job *job)
{
	sync_file(job->fd, "slots");
}

static size_t file_get(struct job *job, unsigned int slot)
{
	return read_all(job, job->fd, slot * SLOT_BYTES);
}

static const struct kind cached = {
	.name = "fsync",
	.slots = 16,
	.max_sectors = MAX_SECTORS,
	.batch = 1,
	.open = file_open_cached,
	.put = file_put,
	.sync = file_sync,
	.get = file_get,
};

static const struct kind direct = {
	.name = "direct",
	.slots = 16,
	.max_sectors = MAX_SECTORS,
	.batch = 1,
	.open = file_open_direct,
	.put = file_put,
	.get = file_get,
};

/* --------------------------------------------- a file that takes another's place */

static void slot_name(char *name, unsigned int slot)
{
	snprintf(name, NAME_BYTES, "slot.%u", slot);
}

static void replace_put(struct job *job, unsigned int slot, size_t bytes)
{
	char name[NAME_BYTES];
	int fd = open_at(job->dir, "new", O_WRONLY | O_CREAT | O_TRUNC);

	write_all(job, fd, bytes, 0);
	sync_file(fd, "new");
	close(fd);
	slot_name(name, slot);
	if (renameat(job->dir, "new", job->dir, name))
		die("rename", name);
}

static void replace_sync(struct job *job)
{
	sync_file(job->dir, job->path);
}

static size_t replace_get(struct job *job, unsigned int slot)
{
	char name[NAME_BYTES];
	size_t bytes;
	int fd;

	slot_name(name, slot);
	fd = openat(job->dir, name, O_RDONLY | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT)
		return 0;
	if (fd < 0)
		die("open", name);
	bytes = read_all(job, fd, 0);
	close(fd);
	return bytes;
}

static const struct kind replace = {
	.name = "replace",
	.slots = MAX_SLOTS,
	.max_sectors = 512,
	.batch = 1,
	.atomic = true,
	.open = open_dir,
	.put = replace_put,
	.sync = replace_sync,
	.get = replace_get,
};

/* ------------------------------------------------------ a log that grows */

static void log_name(char *name, unsigned int of_epoch)
{
	snprintf(name, NAME_BYTES, "log.%u", of_epoch);
}

/* A log for each epoch. That of the last one has been checked. */
static void append_open(struct job *job)
{
	char name[NAME_BYTES];

	open_dir(job);
	log_name(name, epoch - 1);
	if (unlinkat(job->dir, name, 0) && errno != ENOENT)
		die("unlink", name);
	log_name(name, epoch);
	job->fd = open_at(job->dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND);
	sync_file(job->dir, job->path);
}

static void append_write(struct job *job)
{
	unsigned int seq;
	off_t end = 0;

	append_open(job);
	for (seq = 1; end < APPEND_LIMIT; seq++) {
		struct record rec = record_of(job, epoch, seq);

		record_make(job, &rec);
		write_all(job, job->fd, rec.sectors * SECTOR, end);
		end += rec.sectors * SECTOR;
		/* Both take the new length along. */
		if (seq % 2 ? fsync(job->fd) : fdatasync(job->fd))
			die("fsync", "log");
		acknowledge(job, seq);
	}
}

static unsigned int append_check(struct job *job)
{
	unsigned int seq, last = job->last[epoch];
	char name[NAME_BYTES];
	off_t at = 0;

	open_dir(job);
	log_name(name, epoch);
	job->fd = openat(job->dir, name, O_RDONLY | O_CLOEXEC);
	if (job->fd < 0 && !last)
		return 0;
	if (job->fd < 0)
		die("open", name);
	for (seq = 1; seq <= last; seq++) {
		struct record rec = record_of(job, epoch, seq);
		size_t bytes = read_all(job, job->fd, at);
		unsigned int good = record_good(job, &rec, bytes);

		if (good < rec.sectors) {
			printf("LOST %s/%s: sequence %u of %u acknowledged, %u of %u sectors are good, ",
			       job->path, name, seq, last, good, rec.sectors);
			record_describe(job, good, bytes);
			putchar('\n');
			return 1;
		}
		at += rec.sectors * SECTOR;
	}
	printf("%-8s %-10s %5u acknowledged, all there\n", job->kind->name,
	       job->path, last);
	return 0;
}

static const struct kind append = {
	.name = "append",
	.max_sectors = 128,
	.batch = 1,
	.write = append_write,
	.check = append_check,
};

/* ------------------------------------------------ work for the journal */

/* One step; that a file is not there, or is a directory, is no failure. */
static void churn_step(int dir, uint64_t dice, uint8_t *buf)
{
	char name[NAME_BYTES], other[NAME_BYTES];
	int fd = -1;

	snprintf(name, sizeof(name), "churn.%u", (unsigned int)(dice >> 8) % CHURN_FILES);
	snprintf(other, sizeof(other), "churn.%u", (unsigned int)(dice >> 24) % CHURN_FILES);
	switch (dice % 8) {
	case 0:
		unlinkat(dir, name, 0);
		break;
	case 1:
		renameat(dir, name, dir, other);
		break;
	case 2:
		linkat(dir, name, dir, other, 0);
		break;
	case 3:
		if (mkdirat(dir, name, 0700))
			unlinkat(dir, name, AT_REMOVEDIR);
		break;
	default:
		fd = openat(dir, name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	}
	if (fd < 0)
		return;
	if (ftruncate(fd, (dice >> 40) % (64 << 10)) ||
	    pwrite(fd, buf, SECTOR << (dice >> 56) % 8, (dice >> 40) % (256 << 10)) < 0 ||
	    (dice % 8 == 4 && fsync(fd)))
		die("churn", name);
	close(fd);
}

static void churn_write(struct job *job)
{
	uint64_t step;

	open_dir(job);
	for (step = 0; ; step++) {
		churn_step(job->dir, mix(mix(seed + epoch) + mix(job->nr) + step), job->buf);
		if (step % 4 == 0)
			usleep(1000);
	}
}

static unsigned int churn_check(struct job *job)
{
	(void)job;
	return 0;
}

static const struct kind churn = {
	.name = "churn",
	.max_sectors = MIN_SECTORS * 2,
	.write = churn_write,
	.check = churn_check,
};

const struct kind *const file_kinds[] = {
	&cached, &direct, &replace, &append, &churn, NULL
};
