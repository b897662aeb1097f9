/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Code log
 *
 * The code that one program ran that is in no file, with the times at which it changed, as the
 * software source saw it: a file of a snapshot's DIR/mem (struct ptd_code_header).
 */

#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "decoder/image/object.h"
#include "decoder/symbol/perfmap.h"
#include "ptd/snapshot.h"
#include "util/vec.h"

#define CODELOG_PIECES_MAX (1u << 22)
#define CODELOGS_MAX       65536u

/* Bytes at [start, last] from a time on. */
struct codelog_piece {
	uint64_t time; /* 0: since ever; such pieces come first, by address, and do not overlap */
	uint64_t start;
	uint64_t last;   /* inclusive */
	uint64_t offset; /* of the bytes in the file; 0: they are not known */
};

struct codelog_pieces {
	VEC(struct codelog_piece) list;
};

struct codelog {
	uint32_t pid;
	uint64_t start; /* of the program */
	struct object *object;
	struct perfmap_source names; /* its source, if the process has a perf map */
	struct codelog_pieces pieces;
};

struct codelogs {
	VEC(struct codelog) logs; /* by pid, then start */
};

/* Parse the @size bytes of a file. Return: 0; -EBADMSG if it is none; or -ENOMEM. */
_must_check_ int codelog_parse(const uint8_t *bytes, size_t size,
			       struct codelog_pieces *ret_pieces);

/*
 * Collect those in the snapshot of @objects; nothing if there are none. Files that cannot be used
 * are left out.
 *
 * @perfmaps: those of the snapshot, which name the code; they must outlive @logs
 *
 * Return: 0 or -ENOMEM.
 */
_must_check_ int codelogs_init(struct codelogs *logs, struct objects *objects,
			       struct perfmaps *perfmaps);
void codelogs_deinit(struct codelogs *logs);

/* Return: the log of the last program of @pid that began before @time; NULL if there is none. */
const struct codelog *codelogs_find(const struct codelogs *logs, uint32_t pid, uint64_t time);
