// SPDX-License-Identifier: GPL-2.0
/*
 * What is in a record: every sector tells whose it is, and the rest of it can be
 * computed from that.  So a record needs no checksum, and of one that is in
 * pieces each piece can be named.
 */
#include <string.h>

#include "powercut.h"

#define FILL_WORDS	62

struct sector {
	uint32_t epoch;
	uint32_t seq;
	uint32_t job;
	uint16_t index;
	uint16_t sectors;
	uint64_t fill[FILL_WORDS];
};

_Static_assert(sizeof(struct sector) == SECTOR, "a sector is a sector");

/* Each bit of the result depends on each of the word. */
uint64_t mix(uint64_t word)
{
	unsigned int round;

	word += 0x6a09e667f3bcc909;
	for (round = 0; round < 3; round++) {
		word ^= word >> 29;
		word *= 0xd1342543de82ef95;
	}
	return word ^ word >> 32;
}

static uint64_t hash(const struct job *job, unsigned int in_epoch, unsigned int seq)
{
	return mix(mix(mix(seed + job->nr) + in_epoch) + seq);
}

/* As many short ones as long ones: each power of two is as likely as the next. */
struct record record_of(const struct job *job, unsigned int in_epoch,
			unsigned int seq)
{
	uint64_t h = hash(job, in_epoch, seq);
	unsigned int octaves, least;

	octaves = __builtin_ctz(job->kind->max_sectors / MIN_SECTORS);
	least = MIN_SECTORS << (h >> 8) % octaves;
	return (struct record) {
		.epoch = in_epoch,
		.seq = seq,
		.slot = job->kind->slots ? h % job->kind->slots : 0,
		.sectors = least + (h >> 32) % (least + 1),
	};
}

static void make_sector(const struct job *job, const struct record *rec,
			unsigned int index, struct sector *s)
{
	uint64_t word = mix(hash(job, rec->epoch, rec->seq) + index);
	unsigned int i;

	s->epoch = rec->epoch;
	s->seq = rec->seq;
	s->job = job->nr;
	s->index = index;
	s->sectors = rec->sectors;
	for (i = 0; i < FILL_WORDS; i++) {
		s->fill[i] = word;
		word = word * 5 + index;
	}
}

/* Fill the job's buffer. */
void record_make(const struct job *job, const struct record *rec)
{
	unsigned int i;

	for (i = 0; i < rec->sectors; i++)
		make_sector(job, rec, i, (struct sector *)job->buf + i);
}

/* Does the first sector in the job's buffer say that it begins a record? */
bool record_claims(const struct job *job, struct record *rec)
{
	struct sector s;

	memcpy(&s, job->buf, sizeof(s));
	if (s.job != job->nr || !s.epoch || !s.seq)
		return false;
	*rec = record_of(job, s.epoch, s.seq);
	return true;
}

/* How many sectors of a record are right, of those that were read. */
unsigned int record_good(const struct job *job, const struct record *rec,
			 size_t bytes)
{
	struct sector want;
	unsigned int i;

	for (i = 0; i < rec->sectors && (i + 1) * SECTOR <= bytes; i++) {
		make_sector(job, rec, i, &want);
		if (memcmp(&want, job->buf + i * SECTOR, SECTOR))
			break;
	}
	return i;
}

/* Print what a sector of the buffer says that it is. */
void record_describe(const struct job *job, unsigned int index, size_t bytes)
{
	struct sector s, want;
	struct record rec;

	if ((index + 1) * SECTOR > bytes) {
		printf("ends before sector %u", index);
		return;
	}
	memcpy(&s, job->buf + index * SECTOR, sizeof(s));
	rec = (struct record) {
		.epoch = s.epoch, .seq = s.seq, .sectors = s.sectors,
	};
	make_sector(job, &rec, s.index, &want);
	printf("sector %u is sector %u of %u of job %u epoch %u sequence %u%s",
	       index, s.index, s.sectors, s.job, s.epoch, s.seq,
	       memcmp(&s, &want, sizeof(s)) ? ", spoilt" : "");
}
