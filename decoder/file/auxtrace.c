/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/file/auxtrace.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* perf pads a piece to 8 bytes, and its offset then steps by less than its size. */
#define PADDING_MAX 7u

/*
 * Where the bits are in RTIT_CTL, and so in attr.config: for files whose AUXTRACE_INFO is too short
 * to say it.
 */
static const uint64_t rtit_ctl[_PERFABI_PT_SLOTS_FIXED] = {
	[PERFABI_PT_TSC_BIT] = 0x400,         [PERFABI_PT_NORETCOMP_BIT] = 0x800,
	[PERFABI_PT_MTC_BIT] = 0x200,         [PERFABI_PT_CYC_BIT] = 0x2,
	[PERFABI_PT_MTC_FREQ_BITS] = 0x3c000,
};

int auxtrace_info_read(struct cursor body, struct auxtrace_info *ret_info)
{
	struct auxtrace_info info = {};
	uint32_t reserved;
	int r;

	r = cursor_get(&body, sizeof(info.type), &info.type);
	if (r < 0)
		return r;
	r = cursor_get(&body, sizeof(reserved), &reserved);
	if (r < 0)
		return r;

	for (size_t i = 0; i < _PERFABI_PT_SLOTS_FIXED; i++)
		if (cursor_get(&body, sizeof(info.slots[i]), &info.slots[i]) < 0)
			break;

	*ret_info = info;
	return 0;
}

/* The bits of @config that @slot masks, as a number. */
static uint64_t field(const struct auxtrace_info *info, enum perfabi_pt_slot slot, uint64_t config)
{
	const uint64_t mask = info->slots[slot] ?: rtit_ctl[slot];

	return (config & mask) >> __builtin_ctzll(mask);
}

static int clock_from_info(const struct auxtrace_info *info, struct clock_conv *ret_clock)
{
	const uint64_t *slots = info->slots;

	if (!slots[PERFABI_PT_CAP_USER_TIME_ZERO]) {
		*ret_clock = (struct clock_conv){};
		return 0;
	}
	if (slots[PERFABI_PT_TIME_SHIFT] > CLOCK_SHIFT_MAX || !slots[PERFABI_PT_TIME_MULT] ||
	    slots[PERFABI_PT_TIME_MULT] > UINT32_MAX)
		return -EBADMSG;

	*ret_clock = (struct clock_conv){
		.valid = true,
		.shift = (uint16_t)slots[PERFABI_PT_TIME_SHIFT],
		.mult = (uint32_t)slots[PERFABI_PT_TIME_MULT],
		.zero = slots[PERFABI_PT_TIME_ZERO],
	};
	return 0;
}

int auxtrace_facts(const struct auxtrace_info *info, const struct perfattrs *attrs,
		   struct trace_facts *facts)
{
	const uint64_t *slots = info->slots;
	const struct perfattr *pt = NULL;
	int r;

	for (size_t i = 0; i < attrs->list.n && !pt; i++)
		if (attrs->list.items[i].type == slots[PERFABI_PT_PMU_TYPE])
			pt = &attrs->list.items[i];
	if (!pt)
		return -ENOENT;

	r = clock_from_info(info, &facts->clock);
	if (r < 0)
		return r;

	facts->snapshot_mode = slots[PERFABI_PT_SNAPSHOT_MODE] != 0;
	facts->has_tsc = field(info, PERFABI_PT_TSC_BIT, pt->config) != 0;
	facts->has_mtc = field(info, PERFABI_PT_MTC_BIT, pt->config) != 0;
	facts->has_cyc = field(info, PERFABI_PT_CYC_BIT, pt->config) != 0;
	facts->return_compression = field(info, PERFABI_PT_NORETCOMP_BIT, pt->config) == 0;
	facts->mtc_freq = (uint8_t)field(info, PERFABI_PT_MTC_FREQ_BITS, pt->config);
	facts->nom_freq = slots[PERFABI_PT_MAX_NONTURBO_RATIO] > UINT8_MAX
			      ? 0
			      : (uint8_t)slots[PERFABI_PT_MAX_NONTURBO_RATIO];
	facts->tsc_ctc_n = (uint32_t)slots[PERFABI_PT_TSC_CTC_N];
	facts->tsc_ctc_d = (uint32_t)slots[PERFABI_PT_TSC_CTC_D];
	return 0;
}

void auxtrace_cpuid(const char *cpuid, struct trace_facts *facts)
{
	unsigned int family, model, stepping;
	int n = 0;

	if (sscanf(cpuid, "GenuineIntel,%3u,%3u,%3u%n", &family, &model, &stepping, &n) != 3)
		return;
	if (cpuid[n] || model > UINT8_MAX || stepping > UINT8_MAX)
		return;

	facts->cpu_family = (uint16_t)family;
	facts->cpu_model = (uint8_t)model;
	facts->cpu_stepping = (uint8_t)stepping;
}

/* By buffer; the pieces of one buffer in the order of the file. */
static int compare_pieces(const void *pa, const void *pb)
{
	const struct auxtrace_piece *a = pa, *b = pb;
	const uint32_t cpu_a = (uint32_t)a->cpu, cpu_b = (uint32_t)b->cpu;
	const uint32_t tid_a = (uint32_t)a->tid, tid_b = (uint32_t)b->tid;

	if (cpu_a != cpu_b)
		return cpu_a < cpu_b ? -1 : 1;
	if (tid_a != tid_b)
		return tid_a < tid_b ? -1 : 1;
	if (a->idx != b->idx)
		return a->idx < b->idx ? -1 : 1;
	if (a->span.file_offset != b->span.file_offset)
		return a->span.file_offset < b->span.file_offset ? -1 : 1;
	return 0;
}

static bool same_buffer(const struct auxtrace_piece *a, const struct auxtrace_piece *b)
{
	return a->cpu == b->cpu && a->tid == b->tid && a->idx == b->idx;
}

/*
 * How many bytes at the end of @before are only padding, if @next goes on behind it without a hole;
 * -1 if bytes are missing between them.
 *
 * An offset that steps back is none (some writers leave them all 0): such pieces are one stream by
 * their order alone, as perf reads them.
 */
static int padding_between(const struct trace_span *before, const struct trace_span *next)
{
	const uint64_t end = before->offset + before->size;
	const uint64_t surplus = end - next->offset;

	if (next->offset > end)
		return -1;
	if (surplus > PADDING_MAX || surplus > before->size)
		return 0;
	for (uint64_t i = 0; i < surplus; i++)
		if (before->bytes[before->size - 1 - i])
			return 0;
	return (int)surplus;
}

/* Put the bytes of @n pieces, between which none are missing, together to one span. */
static int join(const struct auxtrace_piece *pieces, size_t n, struct trace_span *ret_span)
{
	struct trace_span span = pieces[0].span;
	size_t size = 0;

	if (n == 1) {
		*ret_span = span;
		return 0;
	}

	for (size_t i = 0; i < n; i++)
		size += pieces[i].span.size;
	span.joined = malloc(size ?: 1);
	if (!span.joined)
		return -ENOMEM;

	size = 0;
	for (size_t i = 0; i < n; i++) {
		const struct trace_span *s = &pieces[i].span;
		const int padding = i + 1 < n ? padding_between(s, &pieces[i + 1].span) : 0;

		memcpy(span.joined + size, s->bytes, s->size - (size_t)padding);
		size += s->size - (size_t)padding;
	}

	span.bytes = span.joined;
	span.size = size;
	span.reference = pieces[n - 1].span.reference;
	*ret_span = span;
	return 0;
}

/* Fill the spans of @queue, for which there is room, from its @n pieces. */
static int fill_queue(const struct auxtrace_piece *pieces, size_t n, bool snapshot_mode,
		      struct trace_queue *queue)
{
	int r;

	for (size_t i = 0, next; i < n; i = next) {
		for (next = i + 1; next < n && !snapshot_mode; next++)
			if (padding_between(&pieces[next - 1].span, &pieces[next].span) < 0)
				break;

		r = join(pieces + i, next - i, &queue->spans[queue->n_spans]);
		if (r < 0)
			return r;
		queue->n_spans++;
	}
	return 0;
}

int auxtrace_queues(struct auxtrace_piece *pieces, size_t n_pieces,
		    const struct auxtrace_info *info, struct trace *trace)
{
	const bool per_cpu = info->slots[PERFABI_PT_PER_CPU_MMAPS] != 0;
	size_t n_queues = 0;
	int r;

	/* perf names a task in per-cpu pieces, too, and the cpu it knows of in per-thread ones. */
	for (size_t i = 0; i < n_pieces; i++) {
		if (pieces[i].cpu >= 0 && (per_cpu || pieces[i].tid < 0))
			pieces[i].tid = -1;
		else
			pieces[i].cpu = -1;
	}
	if (n_pieces)
		qsort(pieces, n_pieces, sizeof(*pieces), compare_pieces);

	for (size_t i = 0; i < n_pieces; i++)
		n_queues += i == 0 || !same_buffer(&pieces[i - 1], &pieces[i]);
	trace->queues = calloc(n_queues ?: 1, sizeof(*trace->queues));
	if (!trace->queues)
		return -ENOMEM;

	for (size_t i = 0, next; i < n_pieces; i = next) {
		struct trace_queue *queue = &trace->queues[trace->n_queues];

		for (next = i + 1; next < n_pieces && same_buffer(&pieces[i], &pieces[next]);)
			next++;
		*queue = (struct trace_queue){
			.idx = pieces[i].idx,
			.cpu = (uint32_t)pieces[i].cpu,
			.tid = (uint32_t)pieces[i].tid,
			.spans = calloc(next - i, sizeof(*queue->spans)),
		};
		if (!queue->spans)
			return -ENOMEM;
		trace->n_queues++;

		r = fill_queue(pieces + i, next - i, trace->facts.snapshot_mode, queue);
		if (r < 0)
			return r;
	}
	return 0;
}
