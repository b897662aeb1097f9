/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "tests/judge/judge.h"

#include <inttypes.h>

/* Return: whether tools see the record, and so count it. */
static bool is_visible(const struct record *rec)
{
	switch (rec->type) {
	case RECORD_THREAD:
	case RECORD_PID:
	case RECORD_HEADER:
	case RECORD_FOOTER:
	case RECORD_ENCODING:
		return false;
	case RECORD_MARKER:
		return rec->size != MARKER_TARGET && rec->size != MARKER_ORDINAL;
	default:
		return true;
	}
}

int judge_component(struct judge *judge)
{
	if (judge->chunk_step != CHUNK_END)
		judge_fault(judge, "the component before does not end with marker 21 (footer)");
	if (judge->n_chunk_insns != judge->chunk_insns)
		judge_fault(judge,
			    "the component before has %" PRIu64
			    " instructions, but marker 20 states chunks of %" PRIu64,
			    judge->n_chunk_insns, judge->chunk_insns);
	judge->chunk++;
	judge->n_chunk_insns = 0;
	judge->chunk_step = CHUNK_ORDINAL;
	codes_deinit(&judge->codes);
	return codes_init(&judge->codes);
}

/* One of the three records with which a component begins; tools do not see them. */
static bool judge_copies(struct judge *judge, const struct record *rec)
{
	static const struct {
		uint16_t kind;
		const char *name;
	} copies[] = {
		[CHUNK_ORDINAL] = { MARKER_ORDINAL, "marker 22, the number of records before" },
		[CHUNK_TIME] = { MARKER_TIME, "a copy of the last timestamp" },
		[CHUNK_CPU] = { MARKER_CPU, "a copy of the last cpu" },
	};
	const uint64_t values[] = {
		[CHUNK_ORDINAL] = judge->n_visible,
		[CHUNK_TIME] = judge->time,
		[CHUNK_CPU] = judge->cpu,
	};
	const enum chunk_step step = judge->chunk_step;

	if (!record_is_marker(rec, copies[step].kind)) {
		judge_fault(judge, "a component has %s here", copies[step].name);
		judge->chunk_step = CHUNK_BODY;
		return false;
	}
	if (rec->addr != values[step])
		judge_fault(judge, "%s is %" PRIu64 ", not %" PRIu64, copies[step].name,
			    values[step], rec->addr);
	judge->chunk_step = step == CHUNK_CPU ? CHUNK_BODY : step + 1;
	return true;
}

bool judge_chunk(struct judge *judge, const struct record *rec)
{
	if (judge->chunk_step == CHUNK_END) {
		judge_fault(judge, "something follows marker 21 (footer) in its component");
		judge->chunk_step = CHUNK_BODY;
	}
	if (judge->chunk_step != CHUNK_BODY && judge_copies(judge, rec))
		return true;
	judge->n_visible += is_visible(rec);
	if (!judge->is_zip)
		return false;
	if (record_is_insn(rec) && judge->chunk_insns &&
	    ++judge->n_chunk_insns == judge->chunk_insns + 1)
		judge_fault(judge,
			    "the component has more than the %" PRIu64
			    " instructions that marker 20 states",
			    judge->chunk_insns);
	if (record_is_marker(rec, MARKER_CHUNK_FOOTER)) {
		if (rec->addr != judge->chunk)
			judge_fault(judge,
				    "marker 21 (footer) carries the component's number, %" PRIu64
				    ", not %" PRIu64,
				    judge->chunk, rec->addr);
		judge->chunk_step = CHUNK_END;
	}
	return false;
}
