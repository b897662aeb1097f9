/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Mapping table of a trace
 *
 * aux/mappings.tsv of a drmemtrace directory: where processes had mapped files. See
 * ptd-drmemtrace(5).
 */

#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "util/map.h"
#include "util/vec.h"

struct mappingtable_row {
	uint64_t pid;
	const char *object,
	    *build_id;   /* borrowed from the text, as the table of symbols has them */
	uint64_t base;   /* address at run time = address as linked + base */
	uint32_t before; /* index of an earlier mapping of the same, plus 1; 0: none */
};

struct mappingtable {
	char *text; /* of the file, cut up into strings */
	VEC(struct mappingtable_row) rows;
	struct map latest; /* hash of process and object → index of the last row */
};

/*
 * Read the table at @path.
 *
 * Return: 0; -EBADMSG and @ret_line, the number of the line that is not as it should be; -EFBIG if
 *         the file is too large; or another negative errno.
 */
_must_check_ int mappingtable_read(const char *path, struct mappingtable *ret_table,
				   size_t *ret_line);
void mappingtable_deinit(struct mappingtable *table);

/* Return: where process @pid had mapped the object last; the mapping before @row, if that is not
 *         NULL; NULL: there is none. */
const struct mappingtable_row *mappingtable_find(const struct mappingtable *table, uint64_t pid,
						 const char *object, const char *build_id,
						 const struct mappingtable_row *row);
