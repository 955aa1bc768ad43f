// SPDX-License-Identifier: GPL-2.0
/* The PCI function round the channels: configuration space, device registers, reset. */
#include <string.h>

#include "ioat-emu.h"

/* PCI header and capabilities; the standard offsets */
#define CFG_VENDOR	0x00
#define CFG_DEVICE	0x02
#define CFG_COMMAND	0x04
#define   COMMAND_BITS	0x0546	/* memory, bus master, parity, SERR, INTx disable */
#define CFG_STATUS	0x06
#define   STATUS_CAPS	0x0010
#define CFG_CLASS_REV	0x08
#define   CLASS_SYSTEM	0x08800004
#define CFG_BAR0	0x10
#define   BAR_64BIT	0x00000004
#define CFG_BAR1	0x14
#define CFG_SUBVENDOR	0x2c
#define CFG_CAPS	0x34

static void cfg_set(struct emu_dev *dev, unsigned int at, unsigned int len, __u32 val,
		    __u32 writable)
{
	unsigned int i;

	for (i = 0; i < len; i++) {
		dev->cfg[at + i] = (__u8)(val >> i * 8);
		dev->cfg_writable[at + i] = (__u8)(writable >> i * 8);
	}
}

/* What is not set here reads as zero and ignores writes: also the ROM BAR, which QEMU sizes. */
static void cfg_init(struct emu_dev *dev)
{
	memset(dev->cfg, 0, sizeof(dev->cfg));
	memset(dev->cfg_writable, 0, sizeof(dev->cfg_writable));

	cfg_set(dev, CFG_VENDOR, 2, HW_VENDOR_ID, 0);
	cfg_set(dev, CFG_DEVICE, 2, HW_DEVICE_ID, 0);
	cfg_set(dev, CFG_COMMAND, 2, 0, COMMAND_BITS);
	cfg_set(dev, CFG_STATUS, 2, STATUS_CAPS, 0);
	cfg_set(dev, CFG_CLASS_REV, 4, CLASS_SYSTEM, 0);
	cfg_set(dev, CFG_BAR0, 4, BAR_64BIT, ~(__u32)(HW_BAR_SIZE - 1));
	cfg_set(dev, CFG_BAR1, 4, 0, ~0U);
	cfg_set(dev, CFG_SUBVENDOR, 2, HW_VENDOR_ID, 0);
	cfg_set(dev, CFG_CAPS, 1, CFG_PCIE, 0);

	/* PCI Express, version 2, integrated end point: no link registers to invent */
	cfg_set(dev, CFG_PCIE, 4, 0x10 | CFG_MSIX << 8 | 0x0092 << 16, 0);
	cfg_set(dev, CFG_PCIE + 4, 4, 0x8001, 0);
	cfg_set(dev, CFG_PCIE + 8, 2, 0x2810, 0x7fff);

	/* MSI-X, one vector per channel; enable and mask are the writable bits */
	cfg_set(dev, CFG_MSIX, 4, 0x11 | (opts.nchans - 1) << 16, 0xc0000000);
	cfg_set(dev, CFG_MSIX + 4, 4, HW_MSIX_TABLE, 0);
	cfg_set(dev, CFG_MSIX + 8, 4, HW_MSIX_PBA, 0);

	cfg_set(dev, CFG_CHANERRMASK_INT, 4, 0, ~0U);
}

void dev_cfg_read(struct emu_dev *dev, __u64 offset, __u32 len, __u8 *data)
{
	memcpy(data, dev->cfg + offset, len);
}

/* DMAUNCERRSTS and CHANERR_INT are "write one to clear"; they are never set, so need no code. */
void dev_cfg_write(struct emu_dev *dev, __u64 offset, __u32 len, const __u8 *data)
{
	__u32 i;

	for (i = 0; i < len; i++) {
		__u8 mask = dev->cfg_writable[offset + i];
		__u8 *byte = &dev->cfg[offset + i];

		*byte = (*byte & ~mask) | (data[i] & mask);
	}
}

static struct emu_chan *dev_chan_at(struct emu_dev *dev, __u64 offset)
{
	__u64 block = offset / HW_CHAN_SIZE;

	return block >= 1 && block <= opts.nchans ? &dev->chans[block - 1] : NULL;
}

/*
 * DMACAP stays 0: no XOR, PQ or DCA. ioatdma then offers copies only, keeps its channels private
 * and leaves out the XOR self-test. INTRDELAY does not announce coalescing, so its value has no
 * effect.
 */
static __u64 dev_reg_read(struct emu_dev *dev, __u64 offset, __u32 len)
{
	__u8 regs[HW_CHAN_SIZE + sizeof(__u64)] = { 0 };
	__u8 attention = 0;
	__u64 val = 0;
	unsigned int i;

	for (i = 0; i < opts.nchans; i++)
		attention |= chan_attention(&dev->chans[i]) << i;
	regs[REG_CHANCNT] = (__u8)opts.nchans;
	regs[REG_XFERCAP] = (__u8)opts.xfercap;
	regs[REG_INTRCTRL] = dev->intrctrl | (attention ? INTRCTRL_STATUS : 0);
	regs[REG_ATTNSTATUS] = attention;
	regs[REG_VERSION] = HW_VERSION;
	memcpy(&regs[REG_INTRDELAY], &dev->intrdelay, sizeof(dev->intrdelay));
	memcpy(&val, &regs[offset], len);
	return val;
}

__u64 dev_bar_read(struct emu_dev *dev, __u64 offset, __u32 len)
{
	struct emu_chan *c = dev_chan_at(dev, offset);

	if (c)
		return chan_read(c, offset % HW_CHAN_SIZE);
	return offset < HW_CHAN_SIZE ? dev_reg_read(dev, offset, len) : 0;
}

static void dev_set_intrctrl(struct emu_dev *dev, __u8 val)
{
	unsigned int i;

	dev->intrctrl = val & (INTRCTRL_MASTER_EN | INTRCTRL_MSIX);
	for (i = 0; i < opts.nchans; i++)
		chan_enable_irq(&dev->chans[i], val & INTRCTRL_MASTER_EN);
}

void dev_bar_write(struct emu_dev *dev, __u64 offset, __u32 len, __u64 val)
{
	struct emu_chan *c = dev_chan_at(dev, offset);

	if (c)
		chan_write(c, offset % HW_CHAN_SIZE, len, val);
	else if (offset == REG_INTRCTRL)
		dev_set_intrctrl(dev, (__u8)val);
	else if (offset == REG_INTRDELAY)
		dev->intrdelay = val & INTRDELAY_MASK;
}

/* Injected faults go, the pace stays: a new guest finds a healthy engine of the same speed. */
void dev_reset(struct emu_dev *dev)
{
	unsigned int i;

	for (i = 0; i < opts.nchans; i++)
		chan_reset(&dev->chans[i]);
	dev->intrctrl = 0;
	dev->intrdelay = 0;
	cfg_init(dev);
}

void dev_init(struct emu_dev *dev, unsigned int nr)
{
	unsigned int i;

	dev->nr = nr;
	dev->cap_mbps = opts.cap_mbps;
	pthread_mutex_init(&dev->cap_lock, NULL);
	mem_init(&dev->mem);
	for (i = 0; i < opts.nchans; i++)
		chan_init(&dev->chans[i], dev, i);
	cfg_init(dev);
}
