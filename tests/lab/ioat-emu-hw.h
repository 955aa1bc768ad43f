/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The part of the I/OAT v3.2 programming model that the emulator offers and its test drives:
 * MMIO registers, channel registers, error bits and the copy descriptor.
 */
#ifndef IOAT_EMU_HW_H
#define IOAT_EMU_HW_H

#include <linux/types.h>

/* ioatdma keeps its channels in an array of four: a fifth would overrun it. */
#define HW_MAX_CHANS		4

#define HW_VENDOR_ID		0x8086
#define HW_DEVICE_ID		0x2021	/* Skylake-SP: ioatdma treats it as v3.2 */

/* BAR 0: device registers, one block per channel, MSI-X table and pending bits */
#define HW_BAR_SIZE		0x4000
#define HW_CHAN_SIZE		0x80	/* channel n begins at (n + 1) * HW_CHAN_SIZE */
#define HW_MSIX_TABLE		0x2000
#define HW_MSIX_PBA		0x3000

#define REG_CHANCNT		0x00
#define REG_XFERCAP		0x01
#define REG_INTRCTRL		0x03
#define   INTRCTRL_MASTER_EN	0x01
#define   INTRCTRL_STATUS	0x02
#define   INTRCTRL_MSIX		0x08
#define REG_ATTNSTATUS		0x04
#define REG_VERSION		0x08
#define   HW_VERSION		0x32
#define REG_INTRDELAY		0x0c
#define   INTRDELAY_MASK	0x3fff
#define REG_DMACAP		0x10

/* channel registers */
#define CHAN_CTRL		0x00
#define   CTRL_REARM		0x01
#define   CTRL_ERR_COMPLETION	0x04
#define   CTRL_ERR_INT		0x10
#define CHAN_COMPAT		0x02
#define CHAN_CMD		0x04
#define   CMD_SUSPEND		0x04
#define   CMD_RESUME		0x10
#define   CMD_RESET		0x20
#define CHAN_COUNT		0x06
#define CHAN_STATUS		0x08
#define   STATUS_MASK		0x07
#define CHAN_CHAIN		0x10
#define CHAN_CHAIN_HIGH		0x14
#define CHAN_COMPLETION		0x18
#define CHAN_COMPLETION_HIGH	0x1c
#define CHAN_CURRENT		0x20
#define CHAN_ERR		0x28
#define CHAN_ERRMASK		0x2c
#define CHAN_DCA		0x30

enum hw_chan_state {
	STATE_ACTIVE,
	STATE_DONE,
	STATE_SUSPENDED,
	STATE_HALTED,
};

/* CHANERR */
#define ERR_NEXT_ADDR		0x00004
#define ERR_NEXT_ALIGN		0x00008
#define ERR_READ_DATA		0x00100
#define ERR_WRITE_DATA		0x00200
#define ERR_CONTROL		0x00400
#define ERR_LENGTH		0x00800
#define ERR_COMPLETION_ADDR	0x01000
#define ERR_XOR_P		0x10000
#define ERR_XOR_Q		0x20000
#define ERR_ALL			0x7ffff

/* PCI configuration space */
#define CFG_SIZE		4096
#define CFG_PCIE		0x40
#define CFG_MSIX		0x80
#define CFG_DMAUNCERRSTS	0x148
#define CFG_CHANERR_INT		0x180
#define CFG_CHANERRMASK_INT	0x184

struct hw_desc {
	__u32 size;
	__u32 ctl;
	__u64 src;
	__u64 dst;
	__u64 next;
	__u64 unused[4];
};

#define DESC_ALIGN		64
#define DESC_INT		0x01
#define DESC_COMPLETION		0x08
#define DESC_NULL		0x20
#define DESC_OP(ctl)		((ctl) >> 24)	/* 0 is copy */

#endif
