// SPDX-License-Identifier: GPL-2.0
/* See ioat-emu-client.h. Failures that no test expects end the program. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "ioat-emu-client.h"

#define MAX_FDS		8
#define WAIT_MS		10000

static void fatal(const char *what)
{
	printf("Bail out! %s: %s\n", what, strerror(errno));
	exit(1);
}

static int make_memory(const char *name, size_t size, __u8 **mem)
{
	int fd = memfd_create(name, MFD_CLOEXEC);

	if (fd < 0 || ftruncate(fd, (off_t)size))
		fatal("memfd");
	*mem = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (*mem == MAP_FAILED)
		fatal("mmap");
	return fd;
}

static bool send_message(struct guest *g, const struct vu_header *hdr, const void *data,
			 __u32 len, const int *fds, int nfds)
{
	union {
		char buf[CMSG_SPACE(MAX_FDS * sizeof(int))];
		struct cmsghdr align;
	} control = { 0 };
	struct iovec iov[2] = {
		{ .iov_base = (void *)hdr, .iov_len = sizeof(*hdr) },
		{ .iov_base = (void *)data, .iov_len = len },
	};
	struct msghdr mh = { .msg_iov = iov, .msg_iovlen = 2 };
	struct cmsghdr *cm;

	if (nfds) {
		mh.msg_control = control.buf;
		mh.msg_controllen = CMSG_SPACE((size_t)nfds * sizeof(int));
		cm = CMSG_FIRSTHDR(&mh);
		cm->cmsg_level = SOL_SOCKET;
		cm->cmsg_type = SCM_RIGHTS;
		cm->cmsg_len = CMSG_LEN((size_t)nfds * sizeof(int));
		memcpy(CMSG_DATA(cm), fds, (size_t)nfds * sizeof(int));
	}
	return sendmsg(g->sock, &mh, MSG_NOSIGNAL) == (ssize_t)(sizeof(*hdr) + len);
}

static bool receive(int fd, void *buf, size_t len)
{
	return !len || recv(fd, buf, len, MSG_WAITALL) == (ssize_t)len;
}

static int receive_answer(struct guest *g, __u16 cmd, void *reply, __u32 room)
{
	struct vu_header hdr;
	char rest[8192];
	__u32 len;

	if (!receive(g->sock, &hdr, sizeof(hdr)))
		return -1;
	len = hdr.size - (__u32)sizeof(hdr);
	if (hdr.size < sizeof(hdr) || len > sizeof(rest) || !receive(g->sock, rest, len))
		return -1;
	if (hdr.id != g->msg_id || hdr.cmd != cmd || !(hdr.flags & VU_FLAG_REPLY))
		return -1;
	if (hdr.flags & VU_FLAG_ERROR)
		return hdr.error ? (int)hdr.error : -1;
	memcpy(reply, rest, len < room ? len : room);
	return 0;
}

static struct vu_header next_header(struct guest *g, __u16 cmd, __u32 len)
{
	return (struct vu_header) {
		.id = ++g->msg_id,
		.cmd = cmd,
		.size = (__u32)sizeof(struct vu_header) + len,
	};
}

int guest_call(struct guest *g, __u16 cmd, const void *data, __u32 len, const int *fds, int nfds)
{
	struct vu_header hdr = next_header(g, cmd, len);
	char none;

	if (!send_message(g, &hdr, data, len, fds, nfds))
		return -1;
	return receive_answer(g, cmd, &none, 0);
}

int guest_ask(struct guest *g, __u16 cmd, const void *data, __u32 len, void *reply, __u32 room)
{
	struct vu_header hdr = next_header(g, cmd, len);

	if (!send_message(g, &hdr, data, len, NULL, 0))
		return -1;
	return receive_answer(g, cmd, reply, room);
}

bool guest_send_raw(struct guest *g, __u16 cmd, __u32 size, const void *data, __u32 len)
{
	struct vu_header hdr = next_header(g, cmd, 0);

	hdr.size = size;
	return send_message(g, &hdr, data, len, NULL, 0);
}

int guest_map(struct guest *g, __u64 iova, __u64 size, __u32 flags, int fd, __u64 offset)
{
	struct vu_dma_map map = {
		.argsz = sizeof(map),
		.flags = flags,
		.offset = offset,
		.iova = iova,
		.size = size,
	};

	return guest_call(g, VU_DMA_MAP, &map, sizeof(map), &fd, fd >= 0);
}

int guest_unmap(struct guest *g, __u64 iova, __u64 size)
{
	struct vu_dma_unmap unmap = { .argsz = sizeof(unmap), .iova = iova, .size = size };

	return guest_call(g, VU_DMA_UNMAP, &unmap, sizeof(unmap), NULL, 0);
}

/* In two steps, as QEMU does: all vectors without descriptors, then the real ones. */
void guest_connect_irqs(struct guest *g, int nchans)
{
	struct vu_set_irqs set = {
		.argsz = sizeof(set),
		.flags = VU_SET_EVENTFD | VU_SET_TRIGGER,
		.index = VU_IRQ_MSIX,
		.count = (__u32)nchans,
	};
	int i;

	if (guest_call(g, VU_SET_IRQS, &set, sizeof(set), NULL, 0))
		fatal("interrupt set-up");
	for (i = 0; i < nchans; i++) {
		g->irq_fd[i] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
		set.start = (__u32)i;
		set.count = 1;
		if (guest_call(g, VU_SET_IRQS, &set, sizeof(set), &g->irq_fd[i], 1))
			fatal("interrupt set-up");
	}
	guest_write(g, VU_REGION_BAR0, REG_INTRCTRL, 1, INTRCTRL_MASTER_EN);
}

static void say_hello(struct guest *g)
{
	static const struct {
		struct vu_version version;
		char caps[24];
	} hello = { .caps = "{\"capabilities\":{}}" };

	if (guest_call(g, VU_VERSION, &hello, sizeof(hello), NULL, 0))
		fatal("version");
}

void guest_connect(struct guest *g, const char *path)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int i;

	memset(g, 0, sizeof(*g));
	g->ram_fd = make_memory("ram", RAM_SIZE, &g->ram);
	g->pmem_fd = make_memory("pmem", PMEM_SIZE, &g->pmem);
	for (i = 0; i < HW_MAX_CHANS; i++)
		g->irq_fd[i] = -1;
	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", path);
	g->sock = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (g->sock < 0 || connect(g->sock, (struct sockaddr *)&addr, sizeof(addr)))
		fatal(path);
	say_hello(g);
}

void guest_open(struct guest *g, const char *path)
{
	const __u32 rw = VU_MAP_READ | VU_MAP_WRITE;

	guest_connect(g, path);
	if (guest_map(g, RAM_IOVA, RAM_SIZE, rw, g->ram_fd, 0) ||
	    guest_map(g, PMEM_IOVA, PMEM_SIZE, rw, g->pmem_fd, 0))
		fatal("map");
	guest_connect_irqs(g, (int)guest_read(g, VU_REGION_BAR0, REG_CHANCNT, 1));
}

void guest_close(struct guest *g)
{
	int i;

	close(g->sock);
	close(g->ram_fd);
	close(g->pmem_fd);
	munmap(g->ram, RAM_SIZE);
	munmap(g->pmem, PMEM_SIZE);
	for (i = 0; i < HW_MAX_CHANS; i++)
		if (g->irq_fd[i] >= 0)
			close(g->irq_fd[i]);
}

__u64 guest_read(struct guest *g, __u32 region, __u64 offset, __u32 len)
{
	struct vu_region_rw rw = { .offset = offset, .region = region, .count = len };
	struct {
		struct vu_region_rw rw;
		__u64 val;
	} reply = { .val = 0 };

	if (guest_ask(g, VU_REGION_READ, &rw, sizeof(rw), &reply, sizeof(reply)))
		fatal("region read");
	return reply.val;
}

void guest_write(struct guest *g, __u32 region, __u64 offset, __u32 len, __u64 val)
{
	struct {
		struct vu_region_rw rw;
		__u64 val;
	} msg = {
		.rw = { .offset = offset, .region = region, .count = len },
		.val = val,
	};

	if (guest_call(g, VU_REGION_WRITE, &msg, (__u32)sizeof(msg.rw) + len, NULL, 0))
		fatal("region write");
}

__u64 chan_read(struct guest *g, int ch, __u32 reg, __u32 len)
{
	return guest_read(g, VU_REGION_BAR0, (__u64)(ch + 1) * HW_CHAN_SIZE + reg, len);
}

void chan_write(struct guest *g, int ch, __u32 reg, __u32 len, __u64 val)
{
	guest_write(g, VU_REGION_BAR0, (__u64)(ch + 1) * HW_CHAN_SIZE + reg, len, val);
}

int chan_state(struct guest *g, int ch)
{
	return chan_read(g, ch, CHAN_STATUS, 8) & STATUS_MASK;
}

bool chan_wait_state(struct guest *g, int ch, int state)
{
	int i;

	for (i = 0; i < WAIT_MS; i++) {
		if (chan_state(g, ch) == state)
			return true;
		usleep(1000);
	}
	return false;
}

void chan_reset(struct guest *g, int ch)
{
	int i;

	chan_write(g, ch, CHAN_CMD, 1, CMD_RESET);
	for (i = 0; i < WAIT_MS; i++) {
		if (!(chan_read(g, ch, CHAN_CMD, 1) & CMD_RESET))
			return;
		usleep(1000);
	}
	errno = ETIMEDOUT;
	fatal("reset");
}

static void write_halves(struct guest *g, int ch, __u32 reg, __u64 val)
{
	chan_write(g, ch, reg, 4, (__u32)val);
	chan_write(g, ch, reg + 4, 4, val >> 32);
}

bool chan_begin(struct guest *g, int ch)
{
	chan_reset(g, ch);
	memset(g->ram + DONE_IOVA(ch), 0, sizeof(__u64));
	write_halves(g, ch, CHAN_COMPLETION, DONE_IOVA(ch));
	chan_write(g, ch, CHAN_CTRL, 2, CTRL_REARM | CTRL_ERR_COMPLETION | CTRL_ERR_INT);
	write_halves(g, ch, CHAN_CHAIN, RING_IOVA(ch));
	g->head[ch] = 0;
	chan_push(g, ch, 0, 0, 1, DESC_NULL | DESC_INT | DESC_COMPLETION);
	chan_doorbell(g, ch);
	return chan_wait_done(g, ch) && chan_irqs(g, ch, true) == 1;
}

static __u64 desc_iova(int ch, unsigned int nr)
{
	return RING_IOVA(ch) + nr % RING_DESCS * sizeof(struct hw_desc);
}

/* Returns the descriptor's address, which the completion word will name. */
__u64 chan_push(struct guest *g, int ch, __u64 dst, __u64 src, __u32 size, __u32 ctl)
{
	unsigned int nr = g->head[ch]++;
	struct hw_desc desc = {
		.size = size,
		.ctl = ctl,
		.src = src,
		.dst = dst,
		.next = desc_iova(ch, nr + 1),
	};

	memcpy(g->ram + desc_iova(ch, nr), &desc, sizeof(desc));
	return desc_iova(ch, nr);
}

void chan_doorbell(struct guest *g, int ch)
{
	chan_write(g, ch, CHAN_COUNT, 2, (__u16)g->head[ch]);
}

__u64 chan_done_word(struct guest *g, int ch)
{
	return __atomic_load_n((__u64 *)(g->ram + DONE_IOVA(ch)), __ATOMIC_ACQUIRE);
}

bool chan_wait_done(struct guest *g, int ch)
{
	__u64 want = desc_iova(ch, g->head[ch] - 1) | STATE_DONE;
	int i;

	for (i = 0; i < WAIT_MS * 10; i++) {
		if (chan_done_word(g, ch) == want)
			return true;
		usleep(100);
	}
	return false;
}

__u64 chan_irqs(struct guest *g, int ch, bool wait)
{
	struct pollfd pfd = { .fd = g->irq_fd[ch], .events = POLLIN };
	__u64 count = 0;

	poll(&pfd, 1, wait ? 2000 : 0);
	if (read(g->irq_fd[ch], &count, sizeof(count)) < 0)
		return 0;
	return count;
}
