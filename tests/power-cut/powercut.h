/* SPDX-License-Identifier: GPL-2.0 */
/*
 * powercut - write records that a power cut must not lose, and look for them
 *
 * Many jobs write at the same time, each its own records into its own slots, one
 * after the other.  What a record contains, how long it is, and which slot it
 * goes to, follows from the seed, the epoch (the boot in which it was written),
 * the job, and its sequence number.  So all that has to be known outside of the
 * machine, to tell what must be on the media after a cut, is the last sequence
 * number of each job that was acknowledged: "EPOCH JOB SEQUENCE", a line each,
 * given to the host once the write was reported as durable.
 *
 * What was acknowledged last for a slot must be there, in one piece.  The records
 * that the job was writing when the power went may be there instead, or parts of
 * them where a write is not atomic.  Nothing else may be.
 */
#ifndef _POWERCUT_H
#define _POWERCUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#define SECTOR		512
#define MAX_SECTORS	2048
#define MIN_SECTORS	8
#define MAX_SLOTS	32
#define MAX_JOBS	32
#define MAX_EPOCHS	4096

struct job;

/**
 * struct kind - a way to write records
 * @name: for the report
 * @slots: places for records, each of MAX_SECTORS
 * @max_sectors: of a record, a power of two
 * @batch: records that are acknowledged together
 * @atomic: a record is there or not, even if it was not acknowledged
 * @open: prepare for @put or @get
 * @put: write a record; durable after @sync, or at once without one
 * @sync: make durable what was put
 * @get: read what is in a slot, as far as there is something; return the bytes
 * @write: instead of @put and @sync: the whole job
 * @check: instead of @get: look for all records of the job; return the losses
 */
struct kind {
	const char *name;
	unsigned int slots;
	unsigned int max_sectors;
	unsigned int batch;
	bool atomic;
	void (*open)(struct job *job);
	void (*put)(struct job *job, unsigned int slot, size_t bytes);
	void (*sync)(struct job *job);
	size_t (*get)(struct job *job, unsigned int slot);
	void (*write)(struct job *job);
	unsigned int (*check)(struct job *job);
};

/**
 * struct job - a thread that writes
 * @kind: how
 * @path: the disk or directory
 * @nr: the job's number, the same at each boot
 * @place: how many jobs are before it on a disk
 * @fd: what the kind has open
 * @dir: the directory, if the kind needs it
 * @buf: of MAX_SECTORS, aligned
 * @last: last acknowledged sequence number of each epoch, from 1 on; 0 for none
 */
struct job {
	const struct kind *kind;
	const char *path;
	unsigned int nr;
	unsigned int place;
	int fd;
	int dir;
	uint8_t *buf;
	unsigned int last[MAX_EPOCHS + 1];
};

/**
 * struct record - what follows from a record's number
 * @epoch: the boot that wrote it
 * @seq: its number, from 1 on
 * @slot: where it goes
 * @sectors: its length
 */
struct record {
	unsigned int epoch;
	unsigned int seq;
	unsigned int slot;
	unsigned int sectors;
};

/* The epoch to be written, or the last one that was. */
extern unsigned int epoch;
extern uint64_t seed;

/* record.c */
uint64_t mix(uint64_t word);
struct record record_of(const struct job *job, unsigned int in_epoch,
			unsigned int seq);
void record_make(const struct job *job, const struct record *rec);
bool record_claims(const struct job *job, struct record *rec);
unsigned int record_good(const struct job *job, const struct record *rec,
			 size_t bytes);
void record_describe(const struct job *job, unsigned int index, size_t bytes);

/* kinds.c */
extern const struct kind *const disk_kinds[];
extern const struct kind *const file_kinds[];

/* powercut.c */
_Noreturn void die(const char *what, const char *name);
void acknowledge(const struct job *job, unsigned int seq);

#endif /* _POWERCUT_H */
