/* SPDX-License-Identifier: GPL-2.0 */
/*
 * ioat-emu: Intel I/OAT v3.2 copy engines for virtual machines, served over vfio-user.
 *
 * Threads: the main thread answers the control socket; every device has one thread that speaks
 * vfio-user with its client (QEMU); every channel has one thread that works through descriptors.
 *
 * Locks, outermost first: emu_chan.lock, then emu_mem.lock or emu_dev.cap_lock.
 */
#ifndef IOAT_EMU_H
#define IOAT_EMU_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>

#include "ioat-emu-hw.h"

#define EMU_MAX_DEVS	8
#define EMU_MAX_MAPS	65535

#define __printf(a, b)	__attribute__((__format__(printf, a, b)))
#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))

/* A window of guest memory. Without a host address it only exists: ROM that QEMU cannot share. */
struct emu_map {
	__u64 iova;
	__u64 size;
	__u8 *host;
	__u32 flags;
};

struct emu_mem {
	/* Held for reading during each copy, so that an unmap is answered only when none runs. */
	pthread_rwlock_t lock;
	struct emu_map *maps;	/* sorted by iova, no overlap */
	unsigned int now;
	unsigned int most;
	unsigned int room;
	/* Several channels count faults while they share the lock. */
	atomic_ullong read_faults;
	atomic_ullong write_faults;
};

struct emu_counts {
	__u64 descriptors;	/* copies completed */
	__u64 null_descriptors;
	__u64 bytes;
	__u64 interrupts;
	__u64 held_interrupts;
	__u64 errors;
	__u64 resets;
};

struct emu_faults {
	__u32 err;		/* CHANERR bits for the copy that follows the next after ones */
	__u32 after;
	bool stall;
	__u32 delay_us;
};

struct emu_pace {
	double mbps;		/* 0: no limit */
	double latency_us;
	__u64 end_ns;		/* when the previous descriptor ended in the model */
};

struct emu_dev;

struct emu_chan {
	struct emu_dev *dev;
	unsigned int nr;

	pthread_mutex_t lock;	/* everything below */
	pthread_cond_t wake;	/* the worker has work, or reason to stop waiting */
	pthread_cond_t idle;	/* a reset that had to wait for the worker is done */

	/* registers */
	__u16 ctrl;
	__u16 count;
	__u32 err;
	__u32 errmask;
	__u32 dca;
	__u64 chain;
	__u64 completion;
	enum hw_chan_state state;

	/* progress: next and last descriptor, how many of count are done */
	__u64 next;
	__u64 last;
	__u16 done;
	bool busy;		/* the worker has a descriptor and may have dropped the lock */
	bool want_reset;
	bool want_suspend;

	int irq_fd;
	bool irq_enabled;
	bool irq_armed;
	bool irq_held;

	struct emu_faults faults;
	struct emu_pace pace;
	struct emu_counts counts;
	__u64 issued_ns[1 << 16];	/* by descriptor number: when the doorbell covered it */
};

struct emu_dev {
	unsigned int nr;
	const char *path;
	int listen_fd;
	atomic_bool connected;
	struct emu_mem mem;
	struct emu_chan chans[HW_MAX_CHANS];

	/* Only the device's own thread uses these. */
	__u8 cfg[CFG_SIZE];
	__u8 cfg_writable[CFG_SIZE];
	__u8 intrctrl;
	__u16 intrdelay;

	pthread_mutex_t cap_lock;
	double cap_mbps;	/* 0: no limit */
	__u64 cap_free_ns;	/* when the shared path is free again in the model */
};

struct emu_options {
	unsigned int ndevs;
	unsigned int nchans;
	unsigned int xfercap;	/* log2 */
	double mbps;
	double latency_us;
	double cap_mbps;
	unsigned int spin_us;
	unsigned int verbose;
	const char *control;
};

/* ioat-emu.c */
extern struct emu_options opts;
extern struct emu_dev devs[EMU_MAX_DEVS];

void emu_log(unsigned int level, const char *fmt, ...) __printf(2, 3);
_Noreturn void emu_die(const char *fmt, ...) __printf(1, 2);
__u64 emu_now_ns(void);
int emu_listen(const char *path);
int emu_connect(const char *path);

/* ioat-emu-mem.c */
void mem_init(struct emu_mem *mem);
int mem_map(struct emu_mem *mem, struct emu_map map, int fd, __u64 offset);
int mem_unmap(struct emu_mem *mem, __u64 iova, __u64 size);
void mem_unmap_all(struct emu_mem *mem);
bool mem_read(struct emu_mem *mem, __u64 iova, void *buf, __u64 len);
bool mem_write_u64(struct emu_mem *mem, __u64 iova, __u64 val);
__u32 mem_copy(struct emu_mem *mem, __u64 dst, __u64 src, __u64 len);

/* ioat-emu-pace.c */
__u64 pace_end(struct emu_chan *c, __u64 issued_ns, __u32 bytes);
void pace_skip(struct emu_chan *c);
void pace_wait(struct emu_chan *c, __u64 until_ns);

/* ioat-emu-chan.c */
void chan_init(struct emu_chan *c, struct emu_dev *dev, unsigned int nr);
void chan_start(struct emu_chan *c);
void chan_reset(struct emu_chan *c);
void chan_set_irq_fd(struct emu_chan *c, int fd);
void chan_enable_irq(struct emu_chan *c, bool on);
bool chan_attention(struct emu_chan *c);
__u64 chan_read(struct emu_chan *c, __u32 reg);
void chan_write(struct emu_chan *c, __u32 reg, __u32 len, __u64 val);

/* ioat-emu-dev.c */
void dev_init(struct emu_dev *dev, unsigned int nr);
void dev_reset(struct emu_dev *dev);
void dev_cfg_read(struct emu_dev *dev, __u64 offset, __u32 len, __u8 *data);
void dev_cfg_write(struct emu_dev *dev, __u64 offset, __u32 len, const __u8 *data);
__u64 dev_bar_read(struct emu_dev *dev, __u64 offset, __u32 len);
void dev_bar_write(struct emu_dev *dev, __u64 offset, __u32 len, __u64 val);

/* ioat-emu-vfio.c */
void vfio_start(struct emu_dev *dev);

/* ioat-emu-control.c */
void control_command(char *line, FILE *out);

/* ioat-emu-server.c */
int control_serve(int listen_fd, int signal_fd);
int control_client(const char *path, int nwords, char **words);

#endif
