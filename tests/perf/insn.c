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
 * calls them, at depth 1, and uring_x16, which is io_uring with the file and the buffer
 * registered, 16 I/Os submitted and waited for at once. I/O is direct, one block after
 * the other over a part of the file (of 16 at once every other block, or the block layer
 * would merge them), from a huge page, so that a request has one segment.
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
#include <sys/uio.h>
#include <unistd.h>
#include <x86intrin.h>

#define ROUNDS		51
#define BUFFER_BYTES	(2u << 20)
#define MOST_AT_ONCE	16u
/* An emulated CPU is slow at copies between places of the same alignment. */
#define FIRST_BYTE	(1036u << 10)
#define RANGE_BYTES	(32u << 20)

struct request {
	void *buffer;
	size_t bytes;
	off_t at;
	off_t step;
	int write;
};

static int fd;
static void *buffer;

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

static void advance(struct request *rq)
{
	rq->at += rq->step;
	if (rq->at + (off_t)rq->bytes > FIRST_BYTE + RANGE_BYTES)
		rq->at = FIRST_BYTE;
}

/* ------------------------------------------------------------------- psync */

static void psync_io(struct request *rq)
{
	ssize_t res;

	if (rq->write)
		res = pwrite(fd, rq->buffer, rq->bytes, rq->at);
	else
		res = pread(fd, rq->buffer, rq->bytes, rq->at);
	expect_all(rq, res < 0 ? -errno : res);
	advance(rq);
}

/* ------------------------------------------------------------------ libaio */

static aio_context_t aio;

static void aio_open(void)
{
	aio = 0;
	if (syscall(SYS_io_setup, 1, &aio))
		die("io_setup: %s", strerror(errno));
}

static void aio_io(struct request *rq)
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
	advance(rq);
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
static struct io_uring_sqe *uring_sqes;
static int uring_registered;

static void *uring_map(size_t bytes, off_t what)
{
	void *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE,
			 uring_fd, what);

	if (map == MAP_FAILED)
		die("mapping of the rings: %s", strerror(errno));
	return map;
}

static void uring_setup(unsigned int entries)
{
	size_t sq, cq;
	uint32_t i;

	memset(&uring, 0, sizeof(uring));
	uring_fd = (int)syscall(SYS_io_uring_setup, entries, &uring);
	if (uring_fd < 0)
		die("io_uring_setup: %s", strerror(errno));
	if (!(uring.features & IORING_FEAT_SINGLE_MMAP))
		die("io_uring of an old kernel");
	sq = uring.sq_off.array + uring.sq_entries * sizeof(uint32_t);
	cq = uring.cq_off.cqes + uring.cq_entries * sizeof(struct io_uring_cqe);
	uring_rings_bytes = sq > cq ? sq : cq;
	uring_rings = uring_map(uring_rings_bytes, IORING_OFF_SQ_RING);
	uring_sqes = uring_map(uring.sq_entries * sizeof(*uring_sqes), IORING_OFF_SQES);
	for (i = 0; i < uring.sq_entries; i++)
		((uint32_t *)(uring_rings + uring.sq_off.array))[i] = i;
	uring_registered = 0;
}

static void uring_open(void)
{
	uring_setup(1);
}

static void uring_register(unsigned int what, const void *arg)
{
	if (syscall(SYS_io_uring_register, uring_fd, what, arg, 1))
		die("io_uring_register %u: %s", what, strerror(errno));
}

static void uring_x16_open(void)
{
	struct iovec all = { .iov_base = buffer, .iov_len = BUFFER_BYTES };

	uring_setup(MOST_AT_ONCE);
	uring_register(IORING_REGISTER_FILES, &fd);
	uring_register(IORING_REGISTER_BUFFERS, &all);
	uring_registered = 1;
}

static uint32_t *uring_word(uint32_t offset)
{
	return (uint32_t *)(uring_rings + offset);
}

static void uring_prepare(struct io_uring_sqe *sqe, const struct request *rq)
{
	memset(sqe, 0, sizeof(*sqe));
	if (uring_registered) {
		sqe->opcode = rq->write ? IORING_OP_WRITE_FIXED : IORING_OP_READ_FIXED;
		sqe->flags = IOSQE_FIXED_FILE;
	} else {
		sqe->opcode = rq->write ? IORING_OP_WRITE : IORING_OP_READ;
		sqe->fd = fd;
	}
	sqe->addr = (uintptr_t)rq->buffer;
	sqe->len = (uint32_t)rq->bytes;
	sqe->off = (uint64_t)rq->at;
}

/* As many as the ring has entries, all in the same buffer. */
static void uring_io(struct request *rq)
{
	uint32_t *tail = uring_word(uring.sq_off.tail);
	uint32_t *head = uring_word(uring.cq_off.head);
	uint32_t mask = *uring_word(uring.cq_off.ring_mask);
	struct io_uring_cqe *cqes = (void *)(uring_rings + uring.cq_off.cqes);
	uint32_t n = uring.sq_entries, i;

	for (i = 0; i < n; i++) {
		uring_prepare(&uring_sqes[(*tail + i) & (n - 1)], rq);
		advance(rq);
	}
	__atomic_store_n(tail, *tail + n, __ATOMIC_RELEASE);
	if (syscall(SYS_io_uring_enter, uring_fd, n, n, IORING_ENTER_GETEVENTS, NULL, 0) != n)
		die("io_uring_enter: %s", strerror(errno));
	if (__atomic_load_n(uring_word(uring.cq_off.tail), __ATOMIC_ACQUIRE) - *head != n)
		die("io_uring_enter: less than %u completions", n);
	for (i = 0; i < n; i++)
		expect_all(rq, cqes[(*head + i) & mask].res);
	__atomic_store_n(head, *head + n, __ATOMIC_RELEASE);
}

static void uring_close(void)
{
	munmap(uring_sqes, uring.sq_entries * sizeof(*uring_sqes));
	munmap(uring_rings, uring_rings_bytes);
	close(uring_fd);
}

/* ------------------------------------------------------------- measurement */

static const struct engine {
	const char *name;
	unsigned int at_once;
	void (*open)(void);
	void (*io)(struct request *rq);
	void (*close)(void);
} engines[] = {
	{ "psync", 1, NULL, psync_io, NULL },
	{ "libaio", 1, aio_open, aio_io, aio_close },
	{ "io_uring", 1, uring_open, uring_io, uring_close },
	{ "uring_x16", MOST_AT_ONCE, uring_x16_open, uring_io, uring_close },
};

static const struct engine *find_engine(const char *name)
{
	size_t i;

	for (i = 0; i < sizeof(engines) / sizeof(engines[0]); i++)
		if (!strcmp(name, engines[i].name))
			return &engines[i];
	die("no engine %s", name);
}

static uint64_t round_ticks(const struct engine *engine, struct request *rq, unsigned int times)
{
	uint64_t start = __rdtsc();
	unsigned int i;

	for (i = 0; i < times; i++)
		engine->io(rq);
	return (__rdtsc() - start) / ((uint64_t)times * engine->at_once);
}

static int compare(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* A round takes about a tenth of the time from one timer interrupt to the next. */
static void measure(const struct engine *engine, struct request *rq)
{
	unsigned int times = (unsigned int)(400000 / (6000 + rq->bytes / 2)) / engine->at_once + 1;
	uint64_t ticks[ROUNDS];
	unsigned int i;

	if (engine->open)
		engine->open();
	for (i = 0; i < 3; i++)
		round_ticks(engine, rq, times);
	for (i = 0; i < ROUNDS; i++)
		ticks[i] = round_ticks(engine, rq, times);
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
	while (__rdtsc() - start < ticks)
		engine->io(rq);
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

static struct request make_request(const struct engine *engine, const char *bytes,
				   const char *direction)
{
	struct request rq = { .buffer = buffer, .at = FIRST_BYTE };

	rq.bytes = strtoul(bytes, NULL, 10);
	if (!rq.bytes || rq.bytes > BUFFER_BYTES)
		die("no length: %s", bytes);
	rq.step = (off_t)rq.bytes * (engine->at_once > 1 ? 2 : 1);
	rq.write = !strcmp(direction, "write");
	if (!rq.write && strcmp(direction, "read"))
		die("no direction: %s", direction);
	return rq;
}

static void measure_all(char *names, const char *lengths, const char *directions)
{
	char *name, *direction, *bytes, *save_d, *save_b;

	for (name = strtok(names, ","); name; name = strtok(NULL, ",")) {
		char *list_d = strdup(directions);

		for (direction = strtok_r(list_d, ",", &save_d); direction;
		     direction = strtok_r(NULL, ",", &save_d)) {
			char *list_b = strdup(lengths);

			for (bytes = strtok_r(list_b, ",", &save_b); bytes;
			     bytes = strtok_r(NULL, ",", &save_b)) {
				const struct engine *engine = find_engine(name);
				struct request rq = make_request(engine, bytes, direction);

				measure(engine, &rq);
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
		const struct engine *engine = find_engine(argv[2]);
		struct request rq = make_request(engine, argv[3], argv[4]);
		uint64_t n = strtoull(argv[5], NULL, 10);

		if (argc == 7)
			latencies(engine, &rq, n);
		else
			go_on(engine, &rq, n);
	} else {
		measure_all(argv[2], argv[3], argv[4]);
	}
	return 0;
}
