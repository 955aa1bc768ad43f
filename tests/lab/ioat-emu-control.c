// SPDX-License-Identifier: GPL-2.0
/* The control protocol: one line in, one line of JSON out. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ioat-emu.h"

#define MAX_WORDS	6
#define MAX_MBPS	1e6
#define MAX_USEC	1e8
#define MAX_AFTER	1e9

/* The channels or devices that a command names: one by number, or all of them by "*". */
struct range {
	unsigned int from;
	unsigned int to;
};

struct command {
	const char *name;
	const char *usage;
	int nargs;
	/* Returns NULL, or what is wrong. Writes the reply only if it is more than "ok". */
	const char *(*run)(char **args, FILE *out);
};

static bool parse_range(const char *word, unsigned int limit, struct range *range)
{
	char *end;
	unsigned long val;

	if (!strcmp(word, "*")) {
		*range = (struct range) { 0, limit };
		return true;
	}
	if (*word < '0' || *word > '9')
		return false;
	val = strtoul(word, &end, 10);
	if (*end || val >= limit)
		return false;
	*range = (struct range) { (unsigned int)val, (unsigned int)val + 1 };
	return true;
}

static bool parse_number(const char *word, double max, double *val)
{
	char *end;

	*val = strtod(word, &end);
	return end != word && !*end && isfinite(*val) && *val >= 0 && *val <= max;
}

static bool parse_count(const char *word, double max, __u32 *val)
{
	double number;

	if (!parse_number(word, max, &number) || number != floor(number))
		return false;
	*val = (__u32)number;
	return true;
}

/* Runs set() on every channel named, with its lock held, and lets the channel see the result. */
static const char *for_chans(const char *dev, const char *chan,
			     void (*set)(struct emu_chan *c, const void *val), const void *val)
{
	struct range d, n;
	unsigned int i, j;

	if (!parse_range(dev, opts.ndevs, &d))
		return "no such device";
	if (!parse_range(chan, opts.nchans, &n))
		return "no such channel";
	for (i = d.from; i < d.to; i++) {
		for (j = n.from; j < n.to; j++) {
			struct emu_chan *c = &devs[i].chans[j];

			pthread_mutex_lock(&c->lock);
			set(c, val);
			pthread_cond_signal(&c->wake);
			pthread_mutex_unlock(&c->lock);
		}
	}
	return NULL;
}

static void set_rate(struct emu_chan *c, const void *val)
{
	const struct emu_pace *pace = val;

	c->pace.mbps = pace->mbps;
	c->pace.latency_us = pace->latency_us;
}

static const char *run_rate(char **args, FILE *out)
{
	struct emu_pace pace = { 0 };

	(void)out;
	if (!parse_number(args[2], MAX_MBPS, &pace.mbps))
		return "MBPS must be a number from 0 (no limit) to 1000000";
	if (!parse_number(args[3], MAX_USEC, &pace.latency_us))
		return "USEC must be a number from 0 to 100000000";
	return for_chans(args[0], args[1], set_rate, &pace);
}

static const char *run_cap(char **args, FILE *out)
{
	struct range d;
	double mbps;
	unsigned int i;

	(void)out;
	if (!parse_range(args[0], opts.ndevs, &d))
		return "no such device";
	if (!parse_number(args[1], MAX_MBPS, &mbps))
		return "MBPS must be a number from 0 (no limit) to 1000000";
	for (i = d.from; i < d.to; i++) {
		pthread_mutex_lock(&devs[i].cap_lock);
		devs[i].cap_mbps = mbps;
		pthread_mutex_unlock(&devs[i].cap_lock);
	}
	return NULL;
}

/*
 * ioatdma recovers from a read or write data error only if it stands alone, and stops the kernel
 * with BUG() when it is mixed with other bits or when an XOR error is reported for a copy.
 */
static bool crashes_ioatdma(__u32 err)
{
	__u32 handled = ERR_READ_DATA | ERR_WRITE_DATA | ERR_XOR_P | ERR_XOR_Q;

	return (err & handled) && err != ERR_READ_DATA && err != ERR_WRITE_DATA;
}

static void set_err(struct emu_chan *c, const void *val)
{
	const struct emu_faults *faults = val;

	c->faults.err = faults->err;
	c->faults.after = faults->after;
}

static const char *run_err(char **args, FILE *out)
{
	struct emu_faults faults = { 0 };
	unsigned long bits;
	char *end;

	(void)out;
	bits = strtoul(args[2], &end, 16);
	if (end == args[2] || *end || *args[2] == '-' || !bits || bits & ~(unsigned long)ERR_ALL)
		return "HEX must be CHANERR bits from 1 to 7ffff";
	faults.err = (__u32)bits;
	if (crashes_ioatdma(faults.err))
		return "ioatdma crashes on these bits: 100 and 200 go alone, 10000 and 20000 never";
	if (!parse_count(args[3], MAX_AFTER, &faults.after))
		return "AFTER must be a whole number from 0 to 1000000000";
	return for_chans(args[0], args[1], set_err, &faults);
}

static void set_stall(struct emu_chan *c, const void *val)
{
	c->faults.stall = *(const bool *)val;
	pace_skip(c);
}

static const char *run_stall(char **args, FILE *out)
{
	__u32 on;
	bool stall;

	(void)out;
	if (!parse_count(args[2], 1, &on))
		return "stall takes 0 or 1";
	stall = on;
	return for_chans(args[0], args[1], set_stall, &stall);
}

static void set_delay(struct emu_chan *c, const void *val)
{
	c->faults.delay_us = *(const __u32 *)val;
}

static const char *run_delay(char **args, FILE *out)
{
	__u32 delay_us;

	(void)out;
	if (!parse_count(args[2], MAX_USEC, &delay_us))
		return "USEC must be a whole number from 0 to 100000000";
	return for_chans(args[0], args[1], set_delay, &delay_us);
}

static void add_counts(struct emu_counts *sum, const struct emu_counts *c)
{
	sum->descriptors += c->descriptors;
	sum->null_descriptors += c->null_descriptors;
	sum->bytes += c->bytes;
	sum->interrupts += c->interrupts;
	sum->held_interrupts += c->held_interrupts;
	sum->errors += c->errors;
	sum->resets += c->resets;
}

static void put_counts(FILE *out, const struct emu_counts *c, unsigned int in_progress)
{
	fprintf(out, "\"descriptors\":%llu,\"null_descriptors\":%llu,\"bytes\":%llu,",
		c->descriptors, c->null_descriptors, c->bytes);
	fprintf(out, "\"interrupts\":%llu,\"held_interrupts\":%llu,\"errors\":%llu,",
		c->interrupts, c->held_interrupts, c->errors);
	fprintf(out, "\"resets\":%llu,\"in_progress\":%u", c->resets, in_progress);
}

static unsigned int put_chan(FILE *out, struct emu_chan *c, struct emu_counts *sum)
{
	static const char * const names[] = { "active", "done", "suspended", "halted" };
	struct emu_counts counts;
	struct emu_pace pace;
	unsigned int in_progress;
	enum hw_chan_state state;
	bool stalled;

	pthread_mutex_lock(&c->lock);
	counts = c->counts;
	pace = c->pace;
	state = c->state;
	stalled = c->faults.stall;
	in_progress = (__u16)(c->count - c->done);
	pthread_mutex_unlock(&c->lock);

	add_counts(sum, &counts);
	fprintf(out, "{\"channel\":%u,\"state\":\"%s\",\"stalled\":%s,", c->nr, names[state],
		stalled ? "true" : "false");
	fprintf(out, "\"mb_per_s\":%g,\"latency_us\":%g,", pace.mbps, pace.latency_us);
	put_counts(out, &counts, in_progress);
	fputc('}', out);
	return in_progress;
}

static unsigned int put_dev(FILE *out, struct emu_dev *dev, struct emu_counts *sum)
{
	unsigned int i, now, most, in_progress = 0;
	double cap;

	pthread_rwlock_rdlock(&dev->mem.lock);
	now = dev->mem.now;
	most = dev->mem.most;
	pthread_rwlock_unlock(&dev->mem.lock);
	pthread_mutex_lock(&dev->cap_lock);
	cap = dev->cap_mbps;
	pthread_mutex_unlock(&dev->cap_lock);

	fprintf(out, "{\"device\":%u,\"connected\":%s,\"cap_mb_per_s\":%g,", dev->nr,
		atomic_load(&dev->connected) ? "true" : "false", cap);
	fprintf(out, "\"maps\":{\"now\":%u,\"most\":%u},", now, most);
	fprintf(out, "\"faults\":{\"read\":%llu,\"write\":%llu},\"channels\":[",
		atomic_load(&dev->mem.read_faults), atomic_load(&dev->mem.write_faults));
	for (i = 0; i < opts.nchans; i++) {
		fputs(i ? "," : "", out);
		in_progress += put_chan(out, &dev->chans[i], sum);
	}
	fputs("]}", out);
	return in_progress;
}

static const char *run_stats(char **args, FILE *out)
{
	struct emu_counts sum = { 0 };
	unsigned int i, in_progress = 0;

	(void)args;
	fputs("{\"ok\":true,\"devices\":[", out);
	for (i = 0; i < opts.ndevs; i++) {
		fputs(i ? "," : "", out);
		in_progress += put_dev(out, &devs[i], &sum);
	}
	fputs("],\"totals\":{", out);
	put_counts(out, &sum, in_progress);
	fputs("}}\n", out);
	return NULL;
}

static void clear_counts(struct emu_chan *c, const void *val)
{
	(void)val;
	memset(&c->counts, 0, sizeof(c->counts));
}

static const char *run_reset_stats(char **args, FILE *out)
{
	unsigned int i;

	(void)args;
	(void)out;
	for (i = 0; i < opts.ndevs; i++) {
		struct emu_mem *mem = &devs[i].mem;

		pthread_rwlock_wrlock(&mem->lock);
		mem->most = mem->now;
		pthread_rwlock_unlock(&mem->lock);
		atomic_store(&mem->read_faults, 0);
		atomic_store(&mem->write_faults, 0);
	}
	return for_chans("*", "*", clear_counts, NULL);
}

static const char *run_help(char **args, FILE *out);

static const struct command commands[] = {
	{ "stats", "counters of all devices and channels, and totals", 0, run_stats },
	{ "reset-stats", "set all counters to zero", 0, run_reset_stats },
	{ "rate", "D C MBPS USEC: speed and latency of a channel, 0 for none", 4, run_rate },
	{ "cap", "D MBPS: speed of all channels of a device together, 0 for no limit", 2, run_cap },
	{ "err", "D C HEX AFTER: after AFTER more copies one fails with CHANERR HEX", 4, run_err },
	{ "stall", "D C 0|1: hang a channel, let it go on", 3, run_stall },
	{ "delay", "D C USEC: every copy starts that much later", 3, run_delay },
	{ "help", "this list; D and C are a device and a channel, or *", 0, run_help },
};

static const char *run_help(char **args, FILE *out)
{
	size_t i;

	(void)args;
	fputs("{\"ok\":true,\"commands\":{", out);
	for (i = 0; i < ARRAY_SIZE(commands); i++)
		fprintf(out, "%s\"%s\":\"%s\"", i ? "," : "", commands[i].name, commands[i].usage);
	fputs("}}\n", out);
	return NULL;
}

static const char *run_words(char **words, int nwords, FILE *out)
{
	size_t i;

	if (!nwords)
		return "no command; try help";
	for (i = 0; i < ARRAY_SIZE(commands); i++) {
		if (strcmp(words[0], commands[i].name))
			continue;
		if (nwords != commands[i].nargs + 1)
			return "wrong number of arguments; try help";
		return commands[i].run(words + 1, out);
	}
	return "unknown command; try help";
}

/* Writes exactly one line. Cuts line into words in place. */
void control_command(char *line, FILE *out)
{
	char *words[MAX_WORDS], *word, *save = NULL;
	const char *error;
	int nwords = 0;
	long start = ftell(out);

	for (word = strtok_r(line, " \t\r", &save); word && nwords < MAX_WORDS;
	     word = strtok_r(NULL, " \t\r", &save))
		words[nwords++] = word;
	error = run_words(words, nwords, out);
	if (error)
		fprintf(out, "{\"ok\":false,\"error\":\"%s\"}\n", error);
	else if (ftell(out) == start)
		fputs("{\"ok\":true}\n", out);
}
