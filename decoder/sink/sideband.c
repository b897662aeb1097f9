/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Sideband
 *
 * One line per sideband record, in the order of time and in the words of perf script
 * (--show-mmap-events, --show-task-events, --show-switch-events, --show-lost-events):
 *
 *	 123/124     [003] 12345.678901234: PERF_RECORD_COMM exec: ls:123/124
 *
 *	pid/tid and [cpu] of the thread that ran when the record was made; '?' if the record does
 *	not say
 *	time in seconds on the recorder's clock; 0: before the recording
 *
 * Behind an EXIT stands the signal that killed the process, if the thread took it and the recorder
 * knows; perf has no such record.
 */

#include <errno.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <sys/mman.h>

#include "decoder/sink/output.h"
#include "decoder/sink/sinks.h"

#define NAME_MAX_SHOWN 2048

#define put output_printf

static const char *printable(const char *name, char ret_text[static NAME_MAX_SHOWN + 1])
{
	ret_text[output_printable(ret_text, name, NAME_MAX_SHOWN)] = '\0';
	return ret_text;
}

static void put_head(struct output *output, const struct ptd_sideband *e)
{
	char ids[32] = "?", cpu[16] = "?";

	if (e->current_tid != UINT32_MAX)
		(void)snprintf(ids, sizeof(ids), "%" PRId32 "/%" PRId32, (int32_t)e->current_pid,
			       (int32_t)e->current_tid);
	if (e->cpu != UINT32_MAX)
		(void)snprintf(cpu, sizeof(cpu), "%03" PRIu32, e->cpu);
	put(output, "%12s [%s] %6" PRIu64 ".%09" PRIu64 ": ", ids, cpu, e->t / 1000000000,
	    e->t % 1000000000);
}

static void put_mmap(struct output *output, const struct ptd_sideband *e)
{
	char name[NAME_MAX_SHOWN + 1], id[2 * sizeof(e->build_id) + 1];

	put(output,
	    "PERF_RECORD_%s %" PRId32 "/%" PRId32 ": [%#" PRIx64 "(%#" PRIx64 ") @ %#" PRIx64,
	    e->kind == PTD_SIDEBAND_MMAP ? "MMAP" : "MMAP2", (int32_t)e->pid, (int32_t)e->tid,
	    e->address, e->size, e->offset);
	if (e->kind == PTD_SIDEBAND_MMAP) {
		put(output, "]: %c %s\n", e->flags & PTD_SIDEBAND_DATA ? 'r' : 'x',
		    printable(e->name, name));
		return;
	}

	for (size_t i = 0; i < e->build_id_size; i++)
		(void)snprintf(id + 2 * i, 3, "%02x", e->build_id[i]);
	if (e->build_id_size)
		put(output, " <%s>]: ", id);
	else
		put(output, " %02" PRIx32 ":%02" PRIx32 " %" PRIu64 " %" PRIu64 "]: ", e->major,
		    e->minor, e->inode, e->inode_generation);
	put(output, "%c%c%c%c %s\n", e->prot & PROT_READ ? 'r' : '-',
	    e->prot & PROT_WRITE ? 'w' : '-', e->prot & PROT_EXEC ? 'x' : '-',
	    e->map_flags & MAP_SHARED ? 's' : 'p', printable(e->name, name));
}

static void put_switch(struct output *output, const struct ptd_sideband *e)
{
	const bool out = e->flags & PTD_SIDEBAND_OUT;
	const char *way = !out ? "IN" : e->flags & PTD_SIDEBAND_PREEMPT ? "OUT preempt" : "OUT";

	if (e->kind == PTD_SIDEBAND_SWITCH)
		put(output, "PERF_RECORD_SWITCH %s\n", way);
	else
		put(output,
		    "PERF_RECORD_SWITCH_CPU_WIDE %-11s %s pid/tid: %5" PRId32 "/%" PRId32 "\n", way,
		    out ? "next" : "prev", (int32_t)e->other_pid, (int32_t)e->other_tid);
}

static void put_aux(struct output *output, const struct ptd_sideband *e)
{
	put(output,
	    "PERF_RECORD_AUX offset: %#" PRIx64 " size: %#" PRIx64 " flags: %#" PRIx64
	    " [%s%s%s%s]\n",
	    e->offset, e->size, e->aux_flags, e->aux_flags & PERF_AUX_FLAG_TRUNCATED ? "T" : "",
	    e->aux_flags & PERF_AUX_FLAG_OVERWRITE ? "O" : "",
	    e->aux_flags & PERF_AUX_FLAG_PARTIAL ? "P" : "",
	    e->aux_flags & PERF_AUX_FLAG_COLLISION ? "C" : "");
}

static void put_life(struct output *output, const struct ptd_sideband *e)
{
	put(output, "PERF_RECORD_%s(%" PRId32 ":%" PRId32 "):(%" PRId32 ":%" PRId32 ")",
	    e->kind == PTD_SIDEBAND_FORK ? "FORK" : "EXIT", (int32_t)e->pid, (int32_t)e->tid,
	    (int32_t)e->other_pid, (int32_t)e->other_tid);
	if (e->signal)
		put(output, " signal: %" PRIu32, e->signal);
	put(output, "\n");
}

static void put_signal(struct output *output, const struct ptd_sideband *e)
{
	put(output, "signal:signal_deliver: sig=%" PRIu32, e->signal);
	if (e->code != PTD_SIDEBAND_NO_CODE)
		put(output, " code=%" PRId32, e->code);
	put(output, " sa_handler=%" PRIx64 "\n", e->address);
}

static void put_record(struct output *output, const struct ptd_sideband *e)
{
	char name[NAME_MAX_SHOWN + 1];

	switch (e->kind) {
	case PTD_SIDEBAND_MMAP:
	case PTD_SIDEBAND_MMAP2:
		put_mmap(output, e);
		return;
	case PTD_SIDEBAND_COMM:
		put(output, "PERF_RECORD_COMM%s: %s:%" PRId32 "/%" PRId32 "\n",
		    e->flags & PTD_SIDEBAND_EXEC ? " exec" : "", printable(e->name, name),
		    (int32_t)e->pid, (int32_t)e->tid);
		return;
	case PTD_SIDEBAND_FORK:
	case PTD_SIDEBAND_EXIT:
		put_life(output, e);
		return;
	case PTD_SIDEBAND_ITRACE_START:
		put(output, "PERF_RECORD_ITRACE_START pid: %" PRId32 " tid: %" PRId32 "\n",
		    (int32_t)e->pid, (int32_t)e->tid);
		return;
	case PTD_SIDEBAND_SWITCH:
	case PTD_SIDEBAND_SWITCH_CPU:
		put_switch(output, e);
		return;
	case PTD_SIDEBAND_AUX:
		put_aux(output, e);
		return;
	case PTD_SIDEBAND_LOST:
		put(output, "PERF_RECORD_LOST lost %" PRIu64 "\n", e->size);
		return;
	case PTD_SIDEBAND_LOST_SAMPLES:
		put(output, "PERF_RECORD_LOST_SAMPLES lost %" PRIu64 "\n", e->size);
		return;
	case PTD_SIDEBAND_SIGNAL:
		put_signal(output, e);
		return;
	case PTD_SIDEBAND_SYSCALL:
		put(output, "raw_syscalls:sys_enter: NR %" PRIu64 "\n", e->number);
		return;
	}
}

static int sideband_open(void *state, const struct sink_config *config, struct output *output)
{
	*(struct output **)state = output;
	return 0;
}

static int sideband_take(void *state, const struct ptd_sideband *record)
{
	struct output *output = *(struct output **)state;

	put_head(output, record);
	put_record(output, record);
	return output->error;
}

const struct sink_ops sink_sideband = {
	.name = "sideband",
	.help = "the records beside the PT: mappings, names, forks, exits, switches, losses",
	.state_size = sizeof(struct output *),
	.open = sideband_open,
	.sideband = sideband_take,
	.no_symbols = true,
};
