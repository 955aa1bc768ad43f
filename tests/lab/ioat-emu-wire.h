/* SPDX-License-Identifier: GPL-2.0 */
/* Messages of the vfio-user protocol, version 0.0, as far as this PCI device needs them. */
#ifndef IOAT_EMU_WIRE_H
#define IOAT_EMU_WIRE_H

#include <linux/types.h>

enum vu_cmd {
	VU_VERSION = 1,
	VU_DMA_MAP,
	VU_DMA_UNMAP,
	VU_DEVICE_INFO,
	VU_REGION_INFO,
	VU_REGION_IO_FDS,
	VU_IRQ_INFO,
	VU_SET_IRQS,
	VU_REGION_READ,
	VU_REGION_WRITE,
	VU_DMA_READ,
	VU_DMA_WRITE,
	VU_RESET,
};

#define VU_FLAG_REPLY		0x01
#define VU_FLAG_NO_REPLY	0x10
#define VU_FLAG_ERROR		0x20

struct vu_header {
	__u16 id;
	__u16 cmd;
	__u32 size;	/* of the whole message */
	__u32 flags;
	__u32 error;
};

struct vu_version {
	__u16 major;
	__u16 minor;
	char caps[];	/* JSON, ends with a NUL */
};

#define VU_MAP_READ		0x01
#define VU_MAP_WRITE		0x02

struct vu_dma_map {
	__u32 argsz;
	__u32 flags;
	__u64 offset;
	__u64 iova;
	__u64 size;
};

#define VU_UNMAP_ALL		0x02

struct vu_dma_unmap {
	__u32 argsz;
	__u32 flags;
	__u64 iova;
	__u64 size;
};

#define VU_DEVICE_RESET		0x01
#define VU_DEVICE_PCI		0x02

struct vu_device_info {
	__u32 argsz;
	__u32 flags;
	__u32 regions;
	__u32 irqs;
};

#define VU_REGIONS		9
#define VU_REGION_BAR0		0
#define VU_REGION_CONFIG	7
#define VU_REGION_RW		0x03

struct vu_region_info {
	__u32 argsz;
	__u32 flags;
	__u32 index;
	__u32 cap_offset;
	__u64 size;
	__u64 offset;
};

/*
 * INTx, MSI, MSI-X. Later indices are errors and requests of the host: a device that has them and
 * offers no vector makes QEMU warn at every start.
 */
#define VU_IRQS			3
#define VU_IRQ_MSIX		2
#define VU_IRQ_EVENTFD		0x01

struct vu_irq_info {
	__u32 argsz;
	__u32 flags;
	__u32 index;
	__u32 count;
};

#define VU_SET_NONE		0x01
#define VU_SET_EVENTFD		0x04
#define VU_SET_TRIGGER		0x20

struct vu_set_irqs {
	__u32 argsz;
	__u32 flags;
	__u32 index;
	__u32 start;
	__u32 count;
};

struct vu_region_rw {
	__u64 offset;
	__u32 region;
	__u32 count;
	__u8 data[];
};

#endif
