/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Jitdump
 *
 * What a JIT compiler wrote about the code it made (jit-PID.dump): which function it put where and
 * when, with the bytes, and what became of it. One pass over the file's bytes; the file may still
 * have been growing when it was copied, so that it ends anywhere.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "decoder/symbol/source.h"
#include "util/vec.h"

#define JITDUMP_EVENTS_MAX (1u << 22) /* the largest dump seen had 16 000 */
#define JITDUMP_NAME_MAX   4095       /* longer names are cut */

/* One function that was loaded. */
struct jitdump_load {
	uint64_t address;
	uint64_t size;
	uint64_t offset;  /* of its code in the file */
	uint64_t index;   /* the writer's number for it */
	uint32_t tid;     /* as the writer says: not always a tid */
	const char *name; /* in the file's bytes; not ended by 0 after @name_size if it was cut */
	uint16_t name_size;
};

enum jitdump_kind {
	JITDUMP_LOAD,
	JITDUMP_MOVE,
	JITDUMP_CLOSE, /* the last event, if there is one */
};

struct jitdump_event {
	uint64_t time; /* CLOCK_MONOTONIC in ns; TSC ticks if the dump says so */
	uint64_t address;
	uint32_t load;  /* index in loads */
	uint32_t order; /* its place in the file */
	enum jitdump_kind kind;
};

struct jitdump {
	/* The names of the code, by its offset in the file, which stays when the code is moved. */
	struct symbol_source symbols;

	bool time_is_tsc;
	VEC(struct jitdump_load) loads;   /* in file order */
	VEC(struct jitdump_event) events; /* by time; equal times in file order */

	/* Records whose fields contradict each other, or name what was not loaded. */
	size_t n_skipped;
	/* 0: the file is whole. Else the offset of the record in which it ends. */
	uint64_t cut_at;
};

/*
 * Parse the @size bytes at @bytes, which must outlive @ret_dump.
 *
 * Return: 0, also if the file is cut; -EBADMSG if it is no jitdump; -EOPNOTSUPP if it is one that
 *         this reader does not know: written on a machine of the other byte order, a later version,
 *         flags without a known meaning; with @reterr_why, a constant text that says so; -ENOMEM.
 */
_must_check_ int jitdump_parse(const uint8_t *bytes, size_t size, struct jitdump *ret_dump,
			       const char **reterr_why);
void jitdump_deinit(struct jitdump *dump);
