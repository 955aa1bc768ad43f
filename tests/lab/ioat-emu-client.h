/* SPDX-License-Identifier: GPL-2.0 */
/* A small vfio-user client with guest memory: what QEMU and ioatdma are to the emulator. */
#ifndef IOAT_EMU_CLIENT_H
#define IOAT_EMU_CLIENT_H

#include <stdbool.h>
#include <stddef.h>

#include "ioat-emu-hw.h"
#include "ioat-emu-wire.h"

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))

#define RAM_SIZE	(64ULL << 20)
#define RAM_IOVA	0ULL
#define PMEM_SIZE	(64ULL << 20)
#define PMEM_IOVA	(4ULL << 30)

#define RING_DESCS	1024
#define RING_IOVA(ch)	(0x100000ULL + (ch) * RING_DESCS * sizeof(struct hw_desc))
#define DONE_IOVA(ch)	(0x1000ULL + (ch) * 64)
#define DATA_IOVA	0x800000ULL	/* first address in RAM that tests use for data */

struct guest {
	int sock;
	__u16 msg_id;
	int ram_fd;
	int pmem_fd;
	__u8 *ram;
	__u8 *pmem;
	int irq_fd[HW_MAX_CHANS];
	unsigned int head[HW_MAX_CHANS];	/* descriptors made since the chain began */
};

/* Connects and says hello; maps nothing yet. */
void guest_connect(struct guest *g, const char *path);
/* Connects, maps RAM and pmem and sets up interrupts, as QEMU and the kernel do before a probe. */
void guest_open(struct guest *g, const char *path);
void guest_close(struct guest *g);

/* Sends a message and waits for the answer. Returns its errno, -1 when the connection is gone. */
int guest_call(struct guest *g, __u16 cmd, const void *data, __u32 len, const int *fds, int nfds);
/* Like guest_call(); the payload of the answer goes to reply. */
int guest_ask(struct guest *g, __u16 cmd, const void *data, __u32 len, void *reply, __u32 room);
bool guest_send_raw(struct guest *g, __u16 cmd, __u32 size, const void *data, __u32 len);

int guest_map(struct guest *g, __u64 iova, __u64 size, __u32 flags, int fd, __u64 offset);
int guest_unmap(struct guest *g, __u64 iova, __u64 size);
void guest_connect_irqs(struct guest *g, int nchans);

__u64 guest_read(struct guest *g, __u32 region, __u64 offset, __u32 len);
void guest_write(struct guest *g, __u32 region, __u64 offset, __u32 len, __u64 val);

__u64 chan_read(struct guest *g, int ch, __u32 reg, __u32 len);
void chan_write(struct guest *g, int ch, __u32 reg, __u32 len, __u64 val);
int chan_state(struct guest *g, int ch);
bool chan_wait_state(struct guest *g, int ch, int state);
void chan_reset(struct guest *g, int ch);

/* Reset, completion address, a null descriptor: as ioatdma starts a channel. */
bool chan_begin(struct guest *g, int ch);
__u64 chan_push(struct guest *g, int ch, __u64 dst, __u64 src, __u32 size, __u32 ctl);
void chan_doorbell(struct guest *g, int ch);
/* Waits until the completion word says that all is done. */
bool chan_wait_done(struct guest *g, int ch);
__u64 chan_done_word(struct guest *g, int ch);
/* Interrupts since the last call; waits up to 2 s for the first if wait is true. */
__u64 chan_irqs(struct guest *g, int ch, bool wait);

#endif
