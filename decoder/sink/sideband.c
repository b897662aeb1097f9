/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Sideband
 *
 * One line per record that lies beside the PT, in the order of time and in the words of perf script
 * (--show-mmap-events, --show-task-events, --show-switch-events, --show-lost-events):
 *
 *	 123/124     [003] 12345.678901234: PERF_RECORD_COMM exec: ls:123/124
 *
 *	pid/tid and [cpu] of whoever ran when the record was made; '?' if it does not say
 *	time in seconds on the recorder's clock; 0: before the recording
 */

#include <errno.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <sys/mman.h>

#include "decoder/sink/output.h"
#include "decoder/sink/sinks.h"

#define NAME_MAX_SHOWN 2048

struct sideband {
	struct ptd_sink sink;
	struct output output;
};

#define put(s, ...) output_printf(&(s)->output, __VA_ARGS__)

static const char *printable(const char *name, char ret_text[static NAME_MAX_SHOWN + 1])
{
	ret_text[output_printable(ret_text, name, NAME_MAX_SHOWN)] = '\0';
	return ret_text;
}

static void put_head(struct sideband *s, const struct ptd_event *e)
{
	char ids[32] = "?", cpu[16] = "?";

	if (e->current.tid != UINT32_MAX)
		(void)snprintf(ids, sizeof(ids), "%" PRId32 "/%" PRId32, (int32_t)e->current.pid,
			       (int32_t)e->current.tid);
	if (e->cpu != UINT32_MAX)
		(void)snprintf(cpu, sizeof(cpu), "%03" PRIu32, e->cpu);
	put(s, "%12s [%s] %6" PRIu64 ".%09" PRIu64 ": ", ids, cpu, e->t / 1000000000,
	    e->t % 1000000000);
}

static void put_mmap(struct sideband *s, const struct ptd_event *e)
{
	char name[NAME_MAX_SHOWN + 1], id[2 * sizeof(e->build_id) + 1];

	put(s, "PERF_RECORD_%s %" PRId32 "/%" PRId32 ": [%#" PRIx64 "(%#" PRIx64 ") @ %#" PRIx64,
	    e->kind == PTD_EVENT_MMAP ? "MMAP" : "MMAP2", (int32_t)e->task.pid,
	    (int32_t)e->task.tid, e->address, e->size, e->offset);
	if (e->kind == PTD_EVENT_MMAP) {
		put(s, "]: %c %s\n", e->flags & PTD_EVENT_DATA ? 'r' : 'x',
		    printable(e->name, name));
		return;
	}

	for (size_t i = 0; i < e->build_id_size; i++)
		(void)snprintf(id + 2 * i, 3, "%02x", e->build_id[i]);
	if (e->build_id_size)
		put(s, " <%s>]: ", id);
	else
		put(s, " %02" PRIx32 ":%02" PRIx32 " %" PRIu64 " %" PRIu64 "]: ", e->major,
		    e->minor, e->inode, e->inode_generation);
	put(s, "%c%c%c%c %s\n", e->prot & PROT_READ ? 'r' : '-', e->prot & PROT_WRITE ? 'w' : '-',
	    e->prot & PROT_EXEC ? 'x' : '-', e->map_flags & MAP_SHARED ? 's' : 'p',
	    printable(e->name, name));
}

static void put_switch(struct sideband *s, const struct ptd_event *e)
{
	const bool out = e->flags & PTD_EVENT_OUT;
	const char *way = !out ? "IN" : e->flags & PTD_EVENT_PREEMPT ? "OUT preempt" : "OUT";

	if (e->kind == PTD_EVENT_SWITCH)
		put(s, "PERF_RECORD_SWITCH %s\n", way);
	else
		put(s, "PERF_RECORD_SWITCH_CPU_WIDE %-11s %s pid/tid: %5" PRId32 "/%" PRId32 "\n",
		    way, out ? "next" : "prev", (int32_t)e->other.pid, (int32_t)e->other.tid);
}

static void put_aux(struct sideband *s, const struct ptd_event *e)
{
	put(s,
	    "PERF_RECORD_AUX offset: %#" PRIx64 " size: %#" PRIx64 " flags: %#" PRIx64
	    " [%s%s%s%s]\n",
	    e->offset, e->size, e->aux_flags, e->aux_flags & PERF_AUX_FLAG_TRUNCATED ? "T" : "",
	    e->aux_flags & PERF_AUX_FLAG_OVERWRITE ? "O" : "",
	    e->aux_flags & PERF_AUX_FLAG_PARTIAL ? "P" : "",
	    e->aux_flags & PERF_AUX_FLAG_COLLISION ? "C" : "");
}

static void put_event(struct sideband *s, const struct ptd_event *e)
{
	char name[NAME_MAX_SHOWN + 1];

	switch (e->kind) {
	case PTD_EVENT_MMAP:
	case PTD_EVENT_MMAP2:
		put_mmap(s, e);
		return;
	case PTD_EVENT_COMM:
		put(s, "PERF_RECORD_COMM%s: %s:%" PRId32 "/%" PRId32 "\n",
		    e->flags & PTD_EVENT_EXEC ? " exec" : "", printable(e->name, name),
		    (int32_t)e->task.pid, (int32_t)e->task.tid);
		return;
	case PTD_EVENT_FORK:
	case PTD_EVENT_EXIT:
		put(s, "PERF_RECORD_%s(%" PRId32 ":%" PRId32 "):(%" PRId32 ":%" PRId32 ")\n",
		    e->kind == PTD_EVENT_FORK ? "FORK" : "EXIT", (int32_t)e->task.pid,
		    (int32_t)e->task.tid, (int32_t)e->other.pid, (int32_t)e->other.tid);
		return;
	case PTD_EVENT_ITRACE_START:
		put(s, "PERF_RECORD_ITRACE_START pid: %" PRId32 " tid: %" PRId32 "\n",
		    (int32_t)e->task.pid, (int32_t)e->task.tid);
		return;
	case PTD_EVENT_SWITCH:
	case PTD_EVENT_SWITCH_CPU:
		put_switch(s, e);
		return;
	case PTD_EVENT_AUX:
		put_aux(s, e);
		return;
	case PTD_EVENT_LOST:
		put(s, "PERF_RECORD_LOST lost %" PRIu64 "\n", e->size);
		return;
	case PTD_EVENT_LOST_SAMPLES:
		put(s, "PERF_RECORD_LOST_SAMPLES lost %" PRIu64 "\n", e->size);
		return;
	}
}

static struct ptd_sink *sideband_free(struct ptd_sink *sink)
{
	struct sideband *s = (struct sideband *)sink;

	if (!s)
		return NULL;
	output_deinit(&s->output);
	free(s);
	return NULL;
}

static int sideband_open(const struct ptd_sink_ops *ops, const struct ptd_sink_target *target,
			 const struct ptd_info *info, struct ptd_sink **ret_sink)
{
	struct sideband *s = calloc(1, sizeof(*s));
	int r;

	(void)info;
	if (!s)
		return -ENOMEM;
	r = output_init(&s->output, target);
	if (r < 0) {
		free(s);
		return r;
	}
	s->sink.ops = ops;
	*ret_sink = &s->sink;
	return 0;
}

static int sideband_event(struct ptd_sink *sink, const struct ptd_event *event)
{
	struct sideband *s = (struct sideband *)sink;

	put_head(s, event);
	put_event(s, event);
	return s->output.error;
}

static int sideband_finish(struct ptd_sink *sink, const struct ptd_stats *stats)
{
	(void)stats;
	return output_finish(&((struct sideband *)sink)->output);
}

const struct ptd_sink_ops sink_sideband = {
	.name = "sideband",
	.help = "the records beside the PT: mappings, names, forks, exits, switches, losses",
	.open = sideband_open,
	.event = sideband_event,
	.finish = sideband_finish,
	.free = sideband_free,
};
