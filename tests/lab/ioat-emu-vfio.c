// SPDX-License-Identifier: GPL-2.0
/*
 * The vfio-user side of a device: one client at a time, one message after the other.
 *
 * QEMU waits for the reply to every message, MMIO writes included, so handlers must not block on
 * anything slower than a running copy.
 */
#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ioat-emu.h"
#include "ioat-emu-wire.h"

#define MSG_MAX_FDS	8
#define MSG_MAX_DATA	4096	/* QEMU reads the configuration space in one message */
#define MSG_MAX_PAYLOAD	(MSG_MAX_DATA + 256)

/* Behind an emulated IOMMU QEMU needs thousands of maps, and asks for the limit. */
static const char vfio_caps[] =
	"{\"capabilities\":{\"max_msg_fds\":%d,\"max_data_xfer_size\":%d,\"max_dma_maps\":%d}}";

union vfio_payload {
	__u8 bytes[MSG_MAX_PAYLOAD];
	struct vu_version version;
	struct vu_dma_map map;
	struct vu_dma_unmap unmap;
	struct vu_device_info device;
	struct vu_region_info region;
	struct vu_irq_info irq;
	struct vu_set_irqs set_irqs;
	struct vu_region_rw rw;
};

struct vfio_msg {
	struct vu_header hdr;
	__u32 len;			/* of in */
	int fds[MSG_MAX_FDS];		/* handlers that keep one put -1 in its place */
	unsigned int nfds;
	union vfio_payload in;
	union vfio_payload out;
	__u32 out_len;
};

static bool read_all(int fd, void *buf, size_t len)
{
	__u8 *p = buf;

	while (len) {
		ssize_t n = read(fd, p, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		p += n;
		len -= (size_t)n;
	}
	return true;
}

static void take_fds(struct vfio_msg *m, struct msghdr *mh)
{
	struct cmsghdr *cm;

	for (cm = CMSG_FIRSTHDR(mh); cm; cm = CMSG_NXTHDR(mh, cm)) {
		if (cm->cmsg_level != SOL_SOCKET || cm->cmsg_type != SCM_RIGHTS)
			continue;
		m->nfds = (unsigned int)((cm->cmsg_len - CMSG_LEN(0)) / sizeof(int));
		memcpy(m->fds, CMSG_DATA(cm), m->nfds * sizeof(int));
	}
}

/* File descriptors come with the first byte of a message, so the header is read by recvmsg(). */
static bool receive_header(int sock, struct vfio_msg *m)
{
	union {
		char buf[CMSG_SPACE(MSG_MAX_FDS * sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec iov = { .iov_base = &m->hdr, .iov_len = sizeof(m->hdr) };
	struct msghdr mh = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.buf,
		.msg_controllen = sizeof(control.buf),
	};
	ssize_t n;

	m->nfds = 0;
	do {
		n = recvmsg(sock, &mh, MSG_CMSG_CLOEXEC);
	} while (n < 0 && errno == EINTR);
	if (n <= 0)
		return false;
	take_fds(m, &mh);
	return read_all(sock, (__u8 *)&m->hdr + n, sizeof(m->hdr) - (size_t)n);
}

static bool receive(int sock, struct vfio_msg *m)
{
	if (!receive_header(sock, m))
		return false;
	if (m->hdr.size < sizeof(m->hdr) || m->hdr.size - sizeof(m->hdr) > sizeof(m->in)) {
		emu_log(0, "client sent a message of %u bytes: dropped it", m->hdr.size);
		return false;
	}
	m->len = m->hdr.size - (__u32)sizeof(m->hdr);
	return read_all(sock, &m->in, m->len);
}

static void close_fds(struct vfio_msg *m)
{
	unsigned int i;

	for (i = 0; i < m->nfds; i++)
		if (m->fds[i] >= 0)
			close(m->fds[i]);
	m->nfds = 0;
}

static bool answer(int sock, struct vfio_msg *m, int err)
{
	__u32 len = err ? 0 : m->out_len;
	struct vu_header hdr = {
		.id = m->hdr.id,
		.cmd = m->hdr.cmd,
		.size = (__u32)sizeof(hdr) + len,
		.flags = VU_FLAG_REPLY | (err ? VU_FLAG_ERROR : 0),
		.error = (__u32)-err,
	};
	struct iovec iov[2] = {
		{ .iov_base = &hdr, .iov_len = sizeof(hdr) },
		{ .iov_base = &m->out, .iov_len = len },
	};
	struct msghdr mh = { .msg_iov = iov, .msg_iovlen = 2 };

	if (m->hdr.flags & VU_FLAG_NO_REPLY)
		return true;
	return sendmsg(sock, &mh, MSG_NOSIGNAL) == (ssize_t)hdr.size;
}

static int handle_version(struct vfio_msg *m)
{
	struct vu_version *out = &m->out.version;
	int len;

	if (m->in.version.major)
		return -EPROTONOSUPPORT;
	out->major = 0;
	out->minor = 0;
	len = snprintf(out->caps, MSG_MAX_DATA, vfio_caps, MSG_MAX_FDS, MSG_MAX_DATA, EMU_MAX_MAPS);
	m->out_len = (__u32)(sizeof(*out) + (size_t)len + 1);
	return 0;
}

static int handle_map(struct emu_dev *dev, struct vfio_msg *m)
{
	const struct vu_dma_map *in = &m->in.map;
	struct emu_map map = { .iova = in->iova, .size = in->size, .flags = in->flags };

	return mem_map(&dev->mem, map, m->nfds ? m->fds[0] : -1, in->offset);
}

static int handle_unmap(struct emu_dev *dev, struct vfio_msg *m)
{
	const struct vu_dma_unmap *in = &m->in.unmap;

	m->out.unmap = *in;
	m->out_len = sizeof(*in);
	if (!(in->flags & VU_UNMAP_ALL))
		return mem_unmap(&dev->mem, in->iova, in->size);
	mem_unmap_all(&dev->mem);
	return 0;
}

static int handle_device_info(struct vfio_msg *m)
{
	m->out.device = (struct vu_device_info) {
		.argsz = sizeof(m->out.device),
		.flags = VU_DEVICE_RESET | VU_DEVICE_PCI,
		.regions = VU_REGIONS,
		.irqs = VU_IRQS,
	};
	m->out_len = sizeof(m->out.device);
	return 0;
}

static __u32 region_size(__u32 index)
{
	switch (index) {
	case VU_REGION_BAR0:
		return HW_BAR_SIZE;
	case VU_REGION_CONFIG:
		return CFG_SIZE;
	default:
		return 0;
	}
}

static int handle_region_info(struct vfio_msg *m)
{
	__u32 index = m->in.region.index;

	if (index >= VU_REGIONS)
		return -EINVAL;
	m->out.region = (struct vu_region_info) {
		.argsz = sizeof(m->out.region),
		.flags = region_size(index) ? VU_REGION_RW : 0,
		.index = index,
		.size = region_size(index),
	};
	m->out_len = sizeof(m->out.region);
	return 0;
}

static int handle_irq_info(struct vfio_msg *m)
{
	__u32 index = m->in.irq.index;

	if (index >= VU_IRQS)
		return -EINVAL;
	m->out.irq = (struct vu_irq_info) {
		.argsz = sizeof(m->out.irq),
		.flags = index == VU_IRQ_MSIX ? VU_IRQ_EVENTFD : 0,
		.index = index,
		.count = index == VU_IRQ_MSIX ? opts.nchans : 0,
	};
	m->out_len = sizeof(m->out.irq);
	return 0;
}

static void disconnect_irqs(struct emu_dev *dev)
{
	unsigned int i;

	for (i = 0; i < opts.nchans; i++)
		chan_set_irq_fd(&dev->chans[i], -1);
}

/*
 * QEMU first announces all vectors without file descriptors, then sends one per vector; count 0
 * takes them all back. The other interrupt kinds do not exist: only "none" is accepted there.
 */
static int handle_set_irqs(struct emu_dev *dev, struct vfio_msg *m)
{
	const struct vu_set_irqs *in = &m->in.set_irqs;
	__u32 i;

	if (in->index >= VU_IRQS || !(in->flags & VU_SET_TRIGGER))
		return -EINVAL;
	if (in->flags & VU_SET_NONE && !in->count) {
		if (in->index == VU_IRQ_MSIX)
			disconnect_irqs(dev);
		return 0;
	}
	if (in->index != VU_IRQ_MSIX || !(in->flags & VU_SET_EVENTFD) ||
	    in->start > opts.nchans || in->count > opts.nchans - in->start)
		return -EINVAL;
	for (i = 0; i < in->count; i++) {
		chan_set_irq_fd(&dev->chans[in->start + i], i < m->nfds ? m->fds[i] : -1);
		if (i < m->nfds)
			m->fds[i] = -1;
	}
	return 0;
}

static bool access_ok(const struct vu_region_rw *rw)
{
	__u32 size = region_size(rw->region);
	__u32 max = rw->region == VU_REGION_BAR0 ? sizeof(__u64) : MSG_MAX_DATA;

	return rw->count && rw->count <= max && rw->offset < size &&
	       rw->count <= size - rw->offset;
}

static int handle_read(struct emu_dev *dev, struct vfio_msg *m)
{
	const struct vu_region_rw *in = &m->in.rw;
	struct vu_region_rw *out = &m->out.rw;
	__u64 val;

	if (!access_ok(in))
		return -EINVAL;
	*out = *in;
	if (in->region == VU_REGION_CONFIG) {
		dev_cfg_read(dev, in->offset, in->count, out->data);
	} else {
		val = dev_bar_read(dev, in->offset, in->count);
		memcpy(out->data, &val, in->count);
	}
	m->out_len = (__u32)sizeof(*out) + in->count;
	return 0;
}

static int handle_write(struct emu_dev *dev, struct vfio_msg *m)
{
	const struct vu_region_rw *in = &m->in.rw;
	__u64 val = 0;

	if (!access_ok(in) || m->len - sizeof(*in) < in->count)
		return -EINVAL;
	if (in->region == VU_REGION_CONFIG) {
		dev_cfg_write(dev, in->offset, in->count, in->data);
	} else {
		memcpy(&val, in->data, in->count);
		dev_bar_write(dev, in->offset, in->count, val);
	}
	m->out.rw = *in;
	m->out_len = sizeof(*in);
	return 0;
}

static const struct {
	const char *name;
	__u32 min_len;
} vfio_commands[] = {
	[VU_VERSION] = { "version", sizeof(struct vu_version) },
	[VU_DMA_MAP] = { "dma map", sizeof(struct vu_dma_map) },
	[VU_DMA_UNMAP] = { "dma unmap", sizeof(struct vu_dma_unmap) },
	[VU_DEVICE_INFO] = { "device info", sizeof(__u32) },
	[VU_REGION_INFO] = { "region info", offsetof(struct vu_region_info, size) },
	[VU_IRQ_INFO] = { "irq info", offsetof(struct vu_irq_info, count) },
	[VU_SET_IRQS] = { "set irqs", sizeof(struct vu_set_irqs) },
	[VU_REGION_READ] = { "region read", sizeof(struct vu_region_rw) },
	[VU_REGION_WRITE] = { "region write", sizeof(struct vu_region_rw) },
	[VU_RESET] = { "reset", 0 },
};

static int check(const struct emu_dev *dev, const struct vfio_msg *m)
{
	__u16 cmd = m->hdr.cmd;

	if (cmd >= ARRAY_SIZE(vfio_commands) || !vfio_commands[cmd].name) {
		emu_log(1, "d%u: unknown message %u", dev->nr, cmd);
		return -EOPNOTSUPP;
	}
	emu_log(2, "d%u: %s", dev->nr, vfio_commands[cmd].name);
	return m->len < vfio_commands[cmd].min_len ? -EINVAL : 0;
}

static int handle(struct emu_dev *dev, struct vfio_msg *m)
{
	int err = check(dev, m);

	m->out_len = 0;
	if (err)
		return err;
	switch (m->hdr.cmd) {
	case VU_VERSION:
		return handle_version(m);
	case VU_DMA_MAP:
		return handle_map(dev, m);
	case VU_DMA_UNMAP:
		return handle_unmap(dev, m);
	case VU_DEVICE_INFO:
		return handle_device_info(m);
	case VU_REGION_INFO:
		return handle_region_info(m);
	case VU_IRQ_INFO:
		return handle_irq_info(m);
	case VU_SET_IRQS:
		return handle_set_irqs(dev, m);
	case VU_REGION_READ:
		return handle_read(dev, m);
	case VU_REGION_WRITE:
		return handle_write(dev, m);
	default:	/* VU_RESET, the last that check() lets pass */
		dev_reset(dev);
		return 0;
	}
}

static void serve(struct emu_dev *dev, int sock, struct vfio_msg *m)
{
	bool ok = true;

	while (ok && receive(sock, m)) {
		ok = answer(sock, m, handle(dev, m));
		close_fds(m);
	}
	close_fds(m);
}

/* In this order: the workers leave guest memory before it goes. */
static void forget_client(struct emu_dev *dev)
{
	dev_reset(dev);
	disconnect_irqs(dev);
	mem_unmap_all(&dev->mem);
}

static void *vfio_thread(void *arg)
{
	struct emu_dev *dev = arg;
	struct vfio_msg m;

	for (;;) {
		int sock = accept4(dev->listen_fd, NULL, NULL, SOCK_CLOEXEC);

		if (sock < 0) {
			emu_log(0, "%s: accept: %s", dev->path, strerror(errno));
			sleep(1);
			continue;
		}
		emu_log(1, "d%u: client connected", dev->nr);
		atomic_store(&dev->connected, true);
		serve(dev, sock, &m);
		forget_client(dev);
		atomic_store(&dev->connected, false);
		close(sock);
		emu_log(1, "d%u: client gone", dev->nr);
	}
	return NULL;
}

void vfio_start(struct emu_dev *dev)
{
	pthread_t thread;
	int err;

	err = pthread_create(&thread, NULL, vfio_thread, dev);
	if (err)
		emu_die("cannot start a device: %s", strerror(err));
	pthread_detach(thread);
}
