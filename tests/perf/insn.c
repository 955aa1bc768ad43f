// SPDX-License-Identifier: GPL-2.0
/*
 * insn - ticks of the time stamp counter per I/O
 *
 *	insn FILE ENGINES LENGTHS DIRECTIONS
 *		print a line for each combination: engine, direction, length, and
 *		of all rounds the lower decile, the median and the most ticks per I/O
 *	insn FILE ENGINE LENGTH DIRECTION TICKS
 *		do I/O for so long, for somebody who watches
 *	insn FILE WORD STOP
 *		write the word to the file, over and over until STOP is gone
 *	insn FILE ENGINE LENGTH DIRECTION COUNT latency
 *		print the median, the 99.99th percentile and the most ticks of so many
 *		I/Os, each at a random place
 *
 * Each list is separated by commas; ENGINES are psync, libaio and io_uring, as fio
 * calls them, at depth 1. I/O is direct, one block after the other over a part of
 * the file, from a huge page, so that a request has one segment.
 *
 * Where the counter counts instructions, the lower decile of many short rounds is
 * free of timer interrupts and of what other tasks do, and nearly always the same.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/io_uring.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <x86intrin.h>

#define ROUNDS		51
#define BUFFER_BYTES	(2u << 20)
/* An emulated CPU is slow at copies between places of the same alignment. */
#define FIRST_BYTE	(1036u << 10)
#define RANGE_BYTES	(32u << 20)

struct request {
	void *buffer;
	size_t bytes;
	off_t at;
	int write;
};

static int fd;

static void __attribute__((noreturn, format(printf, 1, 2))) die(const char *fmt, ...)
{
	va_list args;

	fputs("insn: ", stderr);
	va_start(args, fmt);
	vfprintf(stderr, fmt, args);
	va_end(args);
	fputc('\n', stderr);
	exit(1);
}

static void expect_all(const struct request *rq, long long res)
{
	if (res < 0)
		die("%s: %s", rq->write ? "write" : "read", strerror((int)-res));
	if ((size_t)res != rq->bytes)
		die("%lld of %zu bytes", res, rq->bytes);
}

/* ------------------------------------------------------------------- psync */

static void psync_io(const struct request *rq)
{
	ssize_t res;

	if (rq->write)
		res = pwrite(fd, rq->buffer, rq->bytes, rq->at);
	else
		res = pread(fd, rq->buffer, rq->bytes, rq->at);
	expect_all(rq, res < 0 ? -errno : res);
}

/* ------------------------------------------------------------------ libaio */

static aio_context_t aio;

static void aio_open(void)
{
	aio = 0;
	if (syscall(SYS_io_setup, 1, &aio))
		die("io_setup: %s", strerror(errno));
}

static void aio_io(const struct request *rq)
{
	struct iocb cb = {
		.aio_lio_opcode = rq->write ? IOCB_CMD_PWRITE : IOCB_CMD_PREAD,
		.aio_fildes = (uint32_t)fd,
		.aio_buf = (uintptr_t)rq->buffer,
		.aio_nbytes = rq->bytes,
		.aio_offset = rq->at,
	};
	struct iocb *list = &cb;
	struct io_event event;

	if (syscall(SYS_io_submit, aio, 1, &list) != 1)
		die("io_submit: %s", strerror(errno));
	if (syscall(SYS_io_getevents, aio, 1, 1, &event, NULL) != 1)
		die("io_getevents: %s", strerror(errno));
	expect_all(rq, event.res);
}

static void aio_close(void)
{
	syscall(SYS_io_destroy, aio);
}

/* ---------------------------------------------------------------- io_uring */

static int uring_fd;
static struct io_uring_params uring;
static char *uring_rings;
static size_t uring_rings_bytes;
static struct io_uring_sqe *uring_sqe;

static void *uring_map(size_t bytes, off_t what)
{
	void *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE,
			 uring_fd, what);

	if (map == MAP_FAILED)
		die("mapping of the rings: %s", strerror(errno));
	return map;
}

static void uring_open(void)
{
	size_t sq, cq;

	memset(&uring, 0, sizeof(uring));
	uring_fd = (int)syscall(SYS_io_uring_setup, 1, &uring);
	if (uring_fd < 0)
		die("io_uring_setup: %s", strerror(errno));
	if (!(uring.features & IORING_FEAT_SINGLE_MMAP))
		die("io_uring of an old kernel");
	sq = uring.sq_off.array + uring.sq_entries * sizeof(uint32_t);
	cq = uring.cq_off.cqes + uring.cq_entries * sizeof(struct io_uring_cqe);
	uring_rings_bytes = sq > cq ? sq : cq;
	uring_rings = uring_map(uring_rings_bytes, IORING_OFF_SQ_RING);
	uring_sqe = uring_map(sizeof(*uring_sqe), IORING_OFF_SQES);
	*(uint32_t *)(uring_rings + uring.sq_off.array) = 0;
}

static uint32_t *uring_word(uint32_t offset)
{
	return (uint32_t *)(uring_rings + offset);
}

/* The ring has one entry, the first. */
static void uring_io(const struct request *rq)
{
	uint32_t *tail = uring_word(uring.sq_off.tail);
	uint32_t *head = uring_word(uring.cq_off.head);
	uint32_t mask = *uring_word(uring.cq_off.ring_mask);
	struct io_uring_cqe *cqes = (void *)(uring_rings + uring.cq_off.cqes);
	long long res;

	memset(uring_sqe, 0, sizeof(*uring_sqe));
	uring_sqe->opcode = rq->write ? IORING_OP_WRITE : IORING_OP_READ;
	uring_sqe->fd = fd;
	uring_sqe->addr = (uintptr_t)rq->buffer;
	uring_sqe->len = (uint32_t)rq->bytes;
	uring_sqe->off = (uint64_t)rq->at;
	__atomic_store_n(tail, *tail + 1, __ATOMIC_RELEASE);
	if (syscall(SYS_io_uring_enter, uring_fd, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0) != 1)
		die("io_uring_enter: %s", strerror(errno));
	if (__atomic_load_n(uring_word(uring.cq_off.tail), __ATOMIC_ACQUIRE) == *head)
		die("io_uring_enter: no completion");
	res = cqes[*head & mask].res;
	__atomic_store_n(head, *head + 1, __ATOMIC_RELEASE);
	expect_all(rq, res);
}

static void uring_close(void)
{
	munmap(uring_sqe, sizeof(*uring_sqe));
	munmap(uring_rings, uring_rings_bytes);
	close(uring_fd);
}

/* ------------------------------------------------------------- measurement */

static const struct engine {
	const char *name;
	void (*open)(void);
	void (*io)(const struct request *rq);
	void (*close)(void);
} engines[] = {
	{ "psync", NULL, psync_io, NULL },
	{ "libaio", aio_open, aio_io, aio_close },
	{ "io_uring", uring_open, uring_io, uring_close },
};

static const struct engine *find_engine(const char *name)
{
	size_t i;

	for (i = 0; i < sizeof(engines) / sizeof(engines[0]); i++)
		if (!strcmp(name, engines[i].name))
			return &engines[i];
	die("no engine %s", name);
}

static void advance(struct request *rq)
{
	rq->at += (off_t)rq->bytes;
	if (rq->at + (off_t)rq->bytes > FIRST_BYTE + RANGE_BYTES)
		rq->at = FIRST_BYTE;
}

static uint64_t round_ticks(const struct engine *engine, struct request *rq, unsigned int ios)
{
	uint64_t start = __rdtsc();
	unsigned int i;

	for (i = 0; i < ios; i++) {
		engine->io(rq);
		advance(rq);
	}
	return (__rdtsc() - start) / ios;
}

static int compare(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* A round takes about a tenth of the time from one timer interrupt to the next. */
static void measure(const struct engine *engine, struct request *rq)
{
	unsigned int ios = (unsigned int)(400000 / (6000 + rq->bytes / 2)) + 1, i;
	uint64_t ticks[ROUNDS];

	if (engine->open)
		engine->open();
	for (i = 0; i < 3; i++)
		round_ticks(engine, rq, ios);
	for (i = 0; i < ROUNDS; i++)
		ticks[i] = round_ticks(engine, rq, ios);
	if (engine->close)
		engine->close();
	qsort(ticks, ROUNDS, sizeof(ticks[0]), compare);
	printf("%s\t%s\t%zu\t%llu\t%llu\t%llu\n", engine->name, rq->write ? "write" : "read",
	       rq->bytes, (unsigned long long)ticks[ROUNDS / 10],
	       (unsigned long long)ticks[ROUNDS / 2], (unsigned long long)ticks[ROUNDS - 1]);
}

static void go_on(const struct engine *engine, struct request *rq, uint64_t ticks)
{
	uint64_t start = __rdtsc();

	if (engine->open)
		engine->open();
	while (__rdtsc() - start < ticks) {
		engine->io(rq);
		advance(rq);
	}
}

static void latencies(const struct engine *engine, struct request *rq, size_t count)
{
	uint64_t *ticks = calloc(count, sizeof(*ticks)), start;
	unsigned int seed = 1;
	size_t i;

	if (!count || !ticks)
		die("no memory for %zu latencies", count);
	if (engine->open)
		engine->open();
	for (i = 0; i < count; i++) {
		rq->at = FIRST_BYTE + (off_t)((size_t)rand_r(&seed) %
					      (RANGE_BYTES / rq->bytes) * rq->bytes);
		start = __rdtsc();
		engine->io(rq);
		ticks[i] = __rdtsc() - start;
	}
	qsort(ticks, count, sizeof(ticks[0]), compare);
	printf("%llu %llu %llu\n", (unsigned long long)ticks[count / 2],
	       (unsigned long long)ticks[count - 1 - count / 10000],
	       (unsigned long long)ticks[count - 1]);
	free(ticks);
}

static struct request make_request(void *buffer, const char *bytes, const char *direction)
{
	struct request rq = { .buffer = buffer, .at = FIRST_BYTE };

	rq.bytes = strtoul(bytes, NULL, 10);
	if (!rq.bytes || rq.bytes > BUFFER_BYTES)
		die("no length: %s", bytes);
	rq.write = !strcmp(direction, "write");
	if (!rq.write && strcmp(direction, "read"))
		die("no direction: %s", direction);
	return rq;
}

static void measure_all(void *buffer, char *names, const char *lengths, const char *directions)
{
	char *name, *direction, *bytes, *save_d, *save_b;

	for (name = strtok(names, ","); name; name = strtok(NULL, ",")) {
		char *list_d = strdup(directions);

		for (direction = strtok_r(list_d, ",", &save_d); direction;
		     direction = strtok_r(NULL, ",", &save_d)) {
			char *list_b = strdup(lengths);

			for (bytes = strtok_r(list_b, ",", &save_b); bytes;
			     bytes = strtok_r(NULL, ",", &save_b)) {
				struct request rq = make_request(buffer, bytes, direction);

				measure(find_engine(name), &rq);
			}
			free(list_b);
		}
		free(list_d);
	}
}

/* A shell would take longer than what it starts. */
static int over_and_over(const char *file, const char *word, const char *stop)
{
	int out = open(file, O_WRONLY), rc = 0;

	/* The start of this process is not what a reader is to notice. */
	usleep(60000);
	while (!access(stop, F_OK))
		if (pwrite(out, word, strlen(word), 0) < 0)
			rc = 1;
	return rc;
}

int main(int argc, char **argv)
{
	void *buffer;

	if (argc == 4)
		return over_and_over(argv[1], argv[2], argv[3]);
	if (argc < 5 || argc > 7 || (argc == 7 && strcmp(argv[6], "latency")))
		die("usage: insn FILE ENGINES LENGTHS DIRECTIONS [TICKS | COUNT latency]");
	fd = open(argv[1], O_RDWR | O_DIRECT);
	if (fd < 0)
		die("%s: %s", argv[1], strerror(errno));
	buffer = mmap(NULL, BUFFER_BYTES, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
	if (buffer == MAP_FAILED)
		die("no huge page: %s", strerror(errno));
	memset(buffer, 0x5a, BUFFER_BYTES);
	if (mlockall(MCL_CURRENT | MCL_FUTURE))
		die("mlockall: %s", strerror(errno));
	if (argc > 5) {
		struct request rq = make_request(buffer, argv[3], argv[4]);
		uint64_t n = strtoull(argv[5], NULL, 10);

		if (argc == 7)
			latencies(find_engine(argv[2]), &rq, n);
		else
			go_on(find_engine(argv[2]), &rq, n);
	} else {
		measure_all(buffer, argv[2], argv[3], argv[4]);
	}
	return 0;
}
