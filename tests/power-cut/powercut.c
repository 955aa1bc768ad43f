// SPDX-License-Identifier: GPL-2.0
/*
 * powercut write SEED EPOCH PORT TARGET...	until the power goes; PORT is an I/O port
 * powercut check SEED EPOCH ACKS TARGET...	what epochs 1 to EPOCH have left
 *
 * A TARGET is a disk or a directory; both commands need the same ones in the same
 * order.  See powercut.h.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/io.h>
#include <sys/stat.h>
#include <unistd.h>

#include "powercut.h"

unsigned int epoch;
uint64_t seed;

static struct job jobs[MAX_JOBS];
static unsigned int nr_jobs;

/* QEMU's isa-debugcon, and what it answers to a read. */
static unsigned short port;
static pthread_mutex_t port_lock = PTHREAD_MUTEX_INITIALIZER;

#define PORT_IS_THERE	0xe9

/* Jobs from which no acknowledgement has come yet. */
static atomic_int silent;

_Noreturn void die(const char *what, const char *name)
{
	int err = errno;

	printf("FAILED: %s %s: %s\n", what, name, strerror(err));
	fflush(stdout);
	_exit(1);
}

/* -------------------------------------------------------------------- write */

/*
 * When an instruction has put a byte out, the host has it: nothing that a cut can
 * take back.  The drivers of other ports return before that, and acknowledgements
 * get lost with the machine.
 */
void acknowledge(const struct job *job, unsigned int seq)
{
	char line[48];
	int i, len;

	len = snprintf(line, sizeof(line), "%u %u %u\n", epoch, job->nr, seq);
	pthread_mutex_lock(&port_lock);
	for (i = 0; i < len; i++)
		outb(line[i], port);
	pthread_mutex_unlock(&port_lock);
	if (seq == job->kind->batch && atomic_fetch_sub(&silent, 1) == 1) {
		puts("all jobs have written");
		fflush(stdout);
	}
}

static void write_slots(struct job *job)
{
	const struct kind *kind = job->kind;
	unsigned int seq;

	kind->open(job);
	for (seq = 1; ; seq++) {
		struct record rec = record_of(job, epoch, seq);

		record_make(job, &rec);
		kind->put(job, rec.slot, (size_t)rec.sectors * SECTOR);
		if (seq % kind->batch)
			continue;
		if (kind->sync)
			kind->sync(job);
		acknowledge(job, seq);
	}
}

static void *job_thread(void *arg)
{
	struct job *job = arg;

	if (job->kind->write)
		job->kind->write(job);
	else
		write_slots(job);
	return NULL;
}

static int write_mode(const char *port_name)
{
	pthread_t threads[MAX_JOBS];
	unsigned int i;

	port = strtoul(port_name, NULL, 0);
	/* Threads inherit it. */
	if (ioperm(port, 1, 1))
		die("get access to port", port_name);
	if (inb(port) != PORT_IS_THERE)
		die("nothing is at port", port_name);
	for (i = 0; i < nr_jobs; i++)
		silent += jobs[i].kind->batch > 0;
	for (i = 0; i < nr_jobs; i++)
		if (pthread_create(&threads[i], NULL, job_thread, &jobs[i]))
			die("start", jobs[i].kind->name);
	for (i = 0; i < nr_jobs; i++)
		pthread_join(threads[i], NULL);
	return 0;
}

/* -------------------------------------------------------------------- check */

/* A line that was cut off in the middle was no acknowledgement. */
static void read_acks(const char *name)
{
	unsigned int in_epoch, nr, seq;
	FILE *file = fopen(name, "r");
	char line[64];

	if (!file)
		die("open", name);
	while (fgets(line, sizeof(line), file)) {
		if (!strchr(line, '\n') ||
		    sscanf(line, "%u %u %u", &in_epoch, &nr, &seq) != 3 ||
		    !in_epoch || in_epoch > epoch || nr >= nr_jobs) {
			printf("ignored: %s\n", line);
			continue;
		}
		if (jobs[nr].last[in_epoch] < seq)
			jobs[nr].last[in_epoch] = seq;
	}
	fclose(file);
}

/**
 * struct slot_state - what may be in a slot
 * @acked: the last record that was acknowledged, if any
 * @touched: in flight to it later, when the power went, were others
 */
struct slot_state {
	struct record acked;
	bool touched;
};

static void replay(const struct job *job, struct slot_state *slots)
{
	unsigned int e, seq, last;

	for (e = 1; e <= epoch; e++) {
		last = job->last[e];
		for (seq = 1; seq <= last + job->kind->batch; seq++) {
			struct record rec = record_of(job, e, seq);
			struct slot_state *slot = &slots[rec.slot];

			if (seq <= last)
				slot->acked = rec;
			slot->touched = seq > last;
		}
	}
}

static bool same(const struct record *a, const struct record *b)
{
	return a->epoch == b->epoch && a->seq == b->seq;
}

/* Was it under way, after the acknowledged one, when the power went? */
static bool was_in_flight(const struct job *job, const struct record *rec,
			  const struct record *acked)
{
	unsigned int last;

	if (rec->epoch > epoch || rec->epoch < acked->epoch)
		return false;
	last = job->last[rec->epoch];
	return rec->seq > last && rec->seq <= last + job->kind->batch;
}

/* A record that is atomic may only be missing, if it was the first one there. */
static bool may_be_torn(const struct job *job, const struct slot_state *slot,
			size_t bytes)
{
	return !job->kind->atomic || (!bytes && !slot->acked.seq);
}

static void lost(const struct job *job, unsigned int nr, const struct slot_state *slot,
		 unsigned int good, size_t bytes)
{
	printf("LOST %s %s job %u slot %u: acknowledged was epoch %u sequence %u (%u sectors), ",
	       job->path, job->kind->name, job->nr, nr, slot->acked.epoch, slot->acked.seq,
	       slot->acked.sectors);
	if (!bytes) {
		puts("nothing is there");
		return;
	}
	record_describe(job, 0, bytes);
	if (good) {
		printf(", %u good; ", good);
		record_describe(job, good, bytes);
	}
	putchar('\n');
}

static unsigned int check_slots(struct job *job)
{
	unsigned int i, good, as_acked = 0, newer = 0, torn = 0, losses = 0;
	struct slot_state slots[MAX_SLOTS] = { 0 };

	replay(job, slots);
	job->kind->open(job);
	for (i = 0; i < job->kind->slots; i++) {
		struct slot_state *slot = &slots[i];
		struct record rec;
		size_t bytes;
		bool whole;

		if (!slot->acked.seq && !slot->touched)
			continue;
		good = 0;
		bytes = job->kind->get(job, i);
		if (bytes >= SECTOR && record_claims(job, &rec))
			good = record_good(job, &rec, bytes);
		whole = good && good == rec.sectors && rec.slot == i;
		if (whole && same(&rec, &slot->acked))
			as_acked++;
		else if (whole && was_in_flight(job, &rec, &slot->acked))
			newer++;
		else if (!whole && slot->touched && may_be_torn(job, slot, bytes))
			torn++;
		else if (++losses <= 3)
			lost(job, i, slot, whole ? 0 : good, bytes);
	}
	printf("%-8s %-10s %5u acknowledged; slots: %u as acknowledged, %u newer, %u torn in flight, %u LOST\n",
	       job->kind->name, job->path, job->last[epoch], as_acked, newer, torn, losses);
	return losses;
}

static int check_mode(const char *acks)
{
	unsigned int i, losses = 0;

	read_acks(acks);
	for (i = 0; i < nr_jobs; i++)
		losses += jobs[i].kind->check ? jobs[i].kind->check(&jobs[i]) :
			check_slots(&jobs[i]);
	printf("%u losses\n", losses);
	return losses != 0;
}

/* --------------------------------------------------------------------- main */

static void add_jobs(const char *target)
{
	const struct kind *const *kind;
	unsigned int place = 0;
	struct stat st;

	if (stat(target, &st))
		die("stat", target);
	for (kind = S_ISDIR(st.st_mode) ? file_kinds : disk_kinds; *kind; kind++) {
		struct job *job = &jobs[nr_jobs];

		if (nr_jobs == MAX_JOBS)
			die("too many jobs for", target);
		job->kind = *kind;
		job->path = target;
		job->nr = nr_jobs++;
		job->place = place++;
		if (posix_memalign((void **)&job->buf, 4096, MAX_SECTORS * SECTOR))
			die("no memory for", target);
		memset(job->buf, 0, MAX_SECTORS * SECTOR);
	}
}

int main(int argc, char **argv)
{
	int i;

	if (argc < 6) {
		fputs("usage: powercut write SEED EPOCH PORT TARGET...\n"
		      "       powercut check SEED EPOCH ACKS TARGET...\n", stderr);
		return 2;
	}
	seed = strtoull(argv[2], NULL, 10);
	epoch = strtoul(argv[3], NULL, 10);
	if (!epoch || epoch > MAX_EPOCHS)
		die("bad epoch", argv[3]);
	for (i = 5; i < argc; i++)
		add_jobs(argv[i]);
	return strcmp(argv[1], "write") ? check_mode(argv[4]) : write_mode(argv[4]);
}
