/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Tracepoints of pmem_dma
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM pmem_dma

#if !defined(_PMEM_DMA_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define _PMEM_DMA_TRACE_H

#include <linux/blk-mq.h>
#include <linux/tracepoint.h>

#include "pmem_dma.h"

/* For those who read the binary buffer, as trace-cmd and perf do. */
TRACE_DEFINE_ENUM(PMEM_DMA_ENGINE);
TRACE_DEFINE_ENUM(PMEM_DMA_CPU_CHOSEN);
TRACE_DEFINE_ENUM(PMEM_DMA_CPU_NO_CHANNEL);
TRACE_DEFINE_ENUM(PMEM_DMA_CPU_BADBLOCK);
TRACE_DEFINE_ENUM(PMEM_DMA_CPU_SEGMENTS);
TRACE_DEFINE_ENUM(PMEM_DMA_CPU_ALIGN);
TRACE_DEFINE_ENUM(PMEM_DMA_CPU_MAP);
TRACE_DEFINE_ENUM(PMEM_DMA_CPU_FULL);
TRACE_DEFINE_ENUM(PMEM_DMA_CPU_REDO);
TRACE_DEFINE_ENUM(PMEM_DMA_HEALTHY);
TRACE_DEFINE_ENUM(PMEM_DMA_SUSPECT);
TRACE_DEFINE_ENUM(PMEM_DMA_BENCHED);
TRACE_DEFINE_ENUM(PMEM_DMA_GONE);

#define pmem_dma_show_path(path)					\
	__print_symbolic(path,						\
			 { PMEM_DMA_ENGINE, "dma" },			\
			 { PMEM_DMA_CPU_CHOSEN, "cpu" },		\
			 { PMEM_DMA_CPU_NO_CHANNEL, "no_channel" },	\
			 { PMEM_DMA_CPU_BADBLOCK, "badblock" },		\
			 { PMEM_DMA_CPU_SEGMENTS, "segments" },		\
			 { PMEM_DMA_CPU_ALIGN, "align" },		\
			 { PMEM_DMA_CPU_MAP, "map" },			\
			 { PMEM_DMA_CPU_FULL, "full" },			\
			 { PMEM_DMA_CPU_REDO, "redone" })

#define pmem_dma_show_state(state)					\
	__print_symbolic(state,						\
			 { PMEM_DMA_HEALTHY, "healthy" },		\
			 { PMEM_DMA_SUSPECT, "suspect" },		\
			 { PMEM_DMA_BENCHED, "benched" },		\
			 { PMEM_DMA_GONE, "gone" })

TRACE_EVENT(submit,
	TP_PROTO(struct request *rq, struct pmem_dma_chan *ch,
		 unsigned int segments),
	TP_ARGS(rq, ch, segments),
	TP_STRUCT__entry(
		__field(dev_t, dev)
		__field(sector_t, sector)
		__field(unsigned int, bytes)
		__field(unsigned int, tag)
		__field(unsigned int, segments)
		__field(int, node)
		__field(bool, write)
	),
	TP_fast_assign(
		__entry->dev = disk_devt(rq->q->disk);
		__entry->sector = blk_rq_pos(rq);
		__entry->bytes = blk_rq_bytes(rq);
		__entry->tag = rq->tag;
		__entry->segments = segments;
		__entry->node = ch->nid;
		__entry->write = op_is_write(req_op(rq));
	),
	TP_printk("%d,%d %s sector=%llu bytes=%u tag=%u segments=%u node=%d",
		  MAJOR(__entry->dev), MINOR(__entry->dev),
		  __entry->write ? "write" : "read",
		  (unsigned long long)__entry->sector, __entry->bytes,
		  __entry->tag, __entry->segments, __entry->node)
);

DECLARE_EVENT_CLASS(pmem_dma_path,
	TP_PROTO(struct request *rq, sector_t sector, unsigned int bytes,
		 unsigned int path),
	TP_ARGS(rq, sector, bytes, path),
	TP_STRUCT__entry(
		__field(dev_t, dev)
		__field(sector_t, sector)
		__field(unsigned int, bytes)
		__field(unsigned int, tag)
		__field(unsigned int, path)
		__field(bool, write)
	),
	TP_fast_assign(
		__entry->dev = disk_devt(rq->q->disk);
		__entry->sector = sector;
		__entry->bytes = bytes;
		__entry->tag = rq->tag;
		__entry->path = path;
		__entry->write = op_is_write(req_op(rq));
	),
	TP_printk("%d,%d %s sector=%llu bytes=%u tag=%u path=%s",
		  MAJOR(__entry->dev), MINOR(__entry->dev),
		  __entry->write ? "write" : "read",
		  (unsigned long long)__entry->sector, __entry->bytes,
		  __entry->tag, pmem_dma_show_path(__entry->path))
);

DEFINE_EVENT(pmem_dma_path, complete,
	TP_PROTO(struct request *rq, sector_t sector, unsigned int bytes,
		 unsigned int path),
	TP_ARGS(rq, sector, bytes, path)
);

DEFINE_EVENT(pmem_dma_path, fallback,
	TP_PROTO(struct request *rq, sector_t sector, unsigned int bytes,
		 unsigned int path),
	TP_ARGS(rq, sector, bytes, path)
);

TRACE_EVENT(timeout,
	TP_PROTO(struct request *rq, struct pmem_dma_chan *ch),
	TP_ARGS(rq, ch),
	TP_STRUCT__entry(
		__field(dev_t, dev)
		__field(sector_t, sector)
		__field(unsigned int, tag)
		__array(char, channel, 16)
	),
	TP_fast_assign(
		__entry->dev = disk_devt(rq->q->disk);
		__entry->sector = blk_rq_pos(rq);
		__entry->tag = rq->tag;
		strscpy(__entry->channel, dma_chan_name(ch->chan),
			sizeof(__entry->channel));
	),
	TP_printk("%d,%d sector=%llu tag=%u channel=%s", MAJOR(__entry->dev),
		  MINOR(__entry->dev), (unsigned long long)__entry->sector,
		  __entry->tag, __entry->channel)
);

TRACE_EVENT(channel_state,
	TP_PROTO(struct pmem_dma_chan *ch, unsigned int state),
	TP_ARGS(ch, state),
	TP_STRUCT__entry(
		__array(char, channel, 16)
		__field(int, node)
		__field(unsigned int, state)
	),
	TP_fast_assign(
		strscpy(__entry->channel, dma_chan_name(ch->chan),
			sizeof(__entry->channel));
		__entry->node = ch->nid;
		__entry->state = state;
	),
	TP_printk("channel=%s node=%d state=%s", __entry->channel,
		  __entry->node, pmem_dma_show_state(__entry->state))
);

#endif /* _PMEM_DMA_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE pmem_dma_trace
#include <trace/define_trace.h>
