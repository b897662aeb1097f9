/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Code log
 *
 * The code that one program ran and that is in no file, with the times at which it changed. The
 * software source sees every change and writes the log to a file of DIR/mem (struct
 * ptd_code_header).
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "decoder/image/object.h"
#include "decoder/jit/memfile.h"
#include "decoder/symbol/perfmap.h"
#include "ptd/snapshot.h"
#include "util/vec.h"

#define CODELOG_PIECES_MAX (1u << 22)

/* From @time on, the memory from @start to @last has these bytes. */
struct codelog_piece {
	/* In ns. 0: the bytes when the log began; such pieces come first, by address, and do not
	 * overlap. */
	uint64_t time;
	uint64_t start;
	uint64_t last;   /* inclusive */
	uint64_t offset; /* of the bytes in the file; 0: the bytes are not known */
	bool is_last;    /* no later piece is of the same memory, in part or whole */
};

struct codelog_pieces {
	VEC(struct codelog_piece) list;
};

struct codelog {
	uint32_t pid;
	uint64_t start; /* when the program began, in ns */
	/* Of the pieces that are not last, and of those that are; borrowed. */
	struct object *object, *last_object;
	struct perfmap_source names, last_names; /* which these point to */
	struct codelog_pieces pieces;
};

struct codelogs {
	VEC(struct codelog) logs; /* by pid, then start */
};

/*
 * Parse the head of a code log, of @size bytes: all that comes before the code. The log has
 * @file_size bytes.
 *
 * Return: 0, and @ret_pieces, whose list the caller frees; -EBADMSG if the bytes are no code log;
 *         -ENOMEM.
 */
_must_check_ int codelog_parse(const uint8_t *bytes, size_t size, uint64_t file_size,
			       struct codelog_pieces *ret_pieces);

/*
 * Load the code logs among @files; files that cannot be used are left out. The objects of @files
 * and @perfmaps, which name the code, must outlive @logs.
 *
 * Return: 0 or -ENOMEM.
 */
_must_check_ int codelogs_init(struct codelogs *logs, const struct memfiles *files,
			       struct perfmaps *perfmaps);
void codelogs_deinit(struct codelogs *logs);

/*
 * Return: the log of the last program of process @pid that began before @time (ns); NULL if there
 *         is none.
 */
const struct codelog *codelogs_find(const struct codelogs *logs, uint32_t pid, uint64_t time);
