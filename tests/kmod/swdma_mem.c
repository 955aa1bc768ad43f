// SPDX-License-Identifier: GPL-2.0
/*
 * swdma_mem - get at the memory behind DMA addresses, and move it
 *
 * The device is behind no IOMMU, so that a DMA address is a physical one, be it
 * of the client's memory or of a bounce buffer.  RAM is in the direct map.
 * Persistent memory may not be, whether it has pages or not, and mapping it for
 * each copy would cost more than the copy: windows of it stay mapped until the
 * channel is given back.
 */
#include <linux/dma-direct.h>
#include <linux/io.h>
#include <linux/ioport.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "swdma.h"

/* Huge pages map them; enough for 1 GiB of persistent memory on a side. */
#define SWDMA_WINDOW_SIZE	SZ_2M
#define SWDMA_NR_WINDOWS	512U

/* Source and target have tables of their own, so as not to evict each other. */
enum swdma_side {
	SWDMA_FROM,
	SWDMA_TO,
	SWDMA_NR_SIDES
};

/* A mapped piece of memory. */
struct swdma_piece {
	void *virt;
	size_t len;
	bool unmap;
};

static bool swdma_is_ram(phys_addr_t phys, size_t len)
{
	return region_intersects(phys, len, IORESOURCE_SYSTEM_RAM,
				 IORES_DESC_NONE) == REGION_INTERSECTS;
}

static struct swdma_window *swdma_window(struct swdma_chan *ch,
					 enum swdma_side side, phys_addr_t phys)
{
	return &ch->windows[side * SWDMA_NR_WINDOWS +
			    phys / SWDMA_WINDOW_SIZE % SWDMA_NR_WINDOWS];
}

struct swdma_search {
	phys_addr_t phys;
	struct swdma_window found;
};

static int swdma_clip(struct resource *res, void *arg)
{
	struct swdma_search *search = arg;

	if (search->phys < res->start || search->phys > res->end)
		return 0;
	search->found.phys = res->start;
	search->found.len = resource_size(res);
	return 1;
}

/*
 * What the window of an address may map: its part of one region, since the
 * kernel complains of a mapping that reaches over the end of a resource.
 */
static bool swdma_find_part(phys_addr_t phys, struct swdma_window *part)
{
	phys_addr_t start = round_down(phys, SWDMA_WINDOW_SIZE);
	phys_addr_t end = start + SWDMA_WINDOW_SIZE - 1;
	struct swdma_search search = { .phys = phys };

	if (walk_iomem_res_desc(IORES_DESC_PERSISTENT_MEMORY, IORESOURCE_MEM,
				start, end, &search, swdma_clip) != 1 &&
	    walk_iomem_res_desc(IORES_DESC_PERSISTENT_MEMORY_LEGACY,
				IORESOURCE_MEM, start, end, &search,
				swdma_clip) != 1)
		return false;
	*part = search.found;
	return true;
}

static bool swdma_is_open(const struct swdma_window *win, phys_addr_t phys)
{
	return win->virt && phys >= win->phys && phys - win->phys < win->len;
}

/* False if there is no persistent memory. */
static bool swdma_open(struct swdma_window *win, phys_addr_t phys)
{
	struct swdma_window part;

	if (!swdma_find_part(phys, &part))
		return false;
	if (win->virt)
		memunmap(win->virt);
	*win = part;
	win->virt = memremap(win->phys, win->len, MEMREMAP_WB);
	return win->virt;
}

/* Get at as much of the range as one mapping reaches. */
static int swdma_map(struct swdma_chan *ch, enum swdma_side side,
		     dma_addr_t addr, size_t len, struct swdma_piece *piece)
{
	phys_addr_t phys = dma_to_phys(ch->sd->dd.dev, addr);
	struct swdma_window *win = swdma_window(ch, side, phys);

	piece->unmap = false;
	piece->len = min_t(size_t, len, SWDMA_WINDOW_SIZE -
			   (phys & (SWDMA_WINDOW_SIZE - 1)));
	if (!swdma_is_open(win, phys) && swdma_is_ram(phys, piece->len)) {
		piece->virt = phys_to_virt(phys);
		return 0;
	}
	if (swdma_is_open(win, phys) || swdma_open(win, phys)) {
		piece->virt = win->virt + (phys - win->phys);
		piece->len = min_t(size_t, len, win->phys + win->len - phys);
		return 0;
	}
	piece->len = min_t(size_t, len, PAGE_SIZE - offset_in_page(phys));
	piece->virt = memremap(phys, piece->len, MEMREMAP_WB);
	piece->unmap = true;
	return piece->virt ? 0 : -ENXIO;
}

static void swdma_unmap(const struct swdma_piece *piece)
{
	if (piece->unmap)
		memunmap(piece->virt);
}

/* Returns the bytes moved, or an error. */
static ssize_t swdma_move_piece(struct swdma_chan *ch, dma_addr_t dst,
				dma_addr_t src, size_t len)
{
	struct swdma_piece from, to;
	int rc;

	rc = swdma_map(ch, SWDMA_FROM, src, len, &from);
	if (rc)
		return rc;
	rc = swdma_map(ch, SWDMA_TO, dst, from.len, &to);
	if (!rc) {
		memcpy(to.virt, from.virt, to.len);
		swdma_unmap(&to);
	}
	swdma_unmap(&from);
	return rc ? rc : (ssize_t)to.len;
}

/**
 * swdma_move() - do what a descriptor is for
 * @ch: its channel
 * @desc: the descriptor
 * @len: how much of it to move
 *
 * Context: Process context.  May sleep.
 * Return: 0, or -ENXIO if there is no memory behind an address.
 */
int swdma_move(struct swdma_chan *ch, struct swdma_desc *desc, size_t len)
{
	ssize_t n = 0;

	mutex_lock(&ch->move_lock);
	for (; desc->moved < len; desc->moved += n) {
		n = swdma_move_piece(ch, desc->dst + desc->moved,
				     desc->src + desc->moved,
				     len - desc->moved);
		if (n < 0)
			break;
		cond_resched();
	}
	mutex_unlock(&ch->move_lock);
	return n < 0 ? n : 0;
}

/**
 * swdma_fill() - fill the target of a descriptor
 * @ch: its channel
 * @desc: the descriptor
 * @byte: with what
 *
 * Context: Process context.  May sleep.
 * Return: 0, or -ENXIO if there is no memory behind the address.
 */
int swdma_fill(struct swdma_chan *ch, struct swdma_desc *desc, u8 byte)
{
	struct swdma_piece to;
	size_t at = 0;
	int rc = 0;

	mutex_lock(&ch->move_lock);
	for (; at < desc->len; at += to.len) {
		rc = swdma_map(ch, SWDMA_TO, desc->dst + at, desc->len - at,
			       &to);
		if (rc)
			break;
		memset(to.virt, byte, to.len);
		swdma_unmap(&to);
		cond_resched();
	}
	mutex_unlock(&ch->move_lock);
	return rc;
}

/**
 * swdma_mem_init() - get ready to move
 * @ch: a channel
 *
 * Context: Process context.  May sleep.
 * Return: 0 or -ENOMEM.
 */
int swdma_mem_init(struct swdma_chan *ch)
{
	ch->windows = kvcalloc(SWDMA_NR_SIDES * SWDMA_NR_WINDOWS,
			       sizeof(*ch->windows), GFP_KERNEL);
	return ch->windows ? 0 : -ENOMEM;
}

/**
 * swdma_mem_exit() - undo swdma_mem_init()
 * @ch: a channel that moves nothing
 *
 * Context: Process context.  May sleep.
 */
void swdma_mem_exit(struct swdma_chan *ch)
{
	unsigned int i;

	for (i = 0; i < SWDMA_NR_SIDES * SWDMA_NR_WINDOWS; i++)
		if (ch->windows[i].virt)
			memunmap(ch->windows[i].virt);
	kvfree(ch->windows);
	ch->windows = NULL;
}
