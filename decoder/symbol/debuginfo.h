/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Debug information
 *
 * The source positions of an ELF file's code, and the functions that the compiler inlined into
 * others. They are in the DWARF sections of the file, which libdw reads.
 *
 * libdw opens no file here: it is given an ELF handle whose bytes have been read, and where DWARF
 * refers to another file (dwz's alternate file), that is opened before, or the DWARF is not used.
 * Parts that a compiler left in .dwo files are not looked for. Sections that are too large for a
 * real program are not used, and functions that are nested too deeply are left out. If libdw
 * runs out of memory, the rest of the DWARF is not used.
 *
 * What has been read stays in memory: the DWARF sections at the first call, and of each compiled
 * file that is asked about its lines and functions.
 *
 * Threads: one at a time for each debug information.
 */

#include <stdint.h>

#include "base/base.h"
#include "ptd/decode.h"

struct debugfile_places;
struct debuginfo;
struct filebytes;

/*
 * Open the DWARF of the ELF file @file, which must outlive it. @places is where an alternate file
 * may be; NULL: nowhere.
 *
 * Return: 0, and @ret_debuginfo is NULL if there is no DWARF that can be used; or -ENOMEM.
 */
_must_check_ int debuginfo_new(struct filebytes *file, const struct debugfile_places *places,
			       struct debuginfo **ret_debuginfo);
struct debuginfo *debuginfo_free(struct debuginfo *debuginfo);

/*
 * Find the source positions of the code at @address, as ptd_decoder_positions() does. Their strings
 * belong to @debuginfo.
 *
 * Return: how many there are; or -ENOMEM.
 */
_must_check_ int debuginfo_find(struct debuginfo *debuginfo, uint64_t address,
				struct ptd_position ret_positions[static PTD_POSITIONS_MAX]);

/*
 * Find the innermost function that was inlined at @address, as ptd_decoder_inlined() does. It
 * belongs to @debuginfo.
 *
 * Return: 1; 0: the address is in no function that is known; or -ENOMEM.
 */
_must_check_ int debuginfo_inlined(struct debuginfo *debuginfo, uint64_t address,
				   const struct ptd_inlined **ret_inlined, uint64_t *ret_end);

/*
 * Get the rows of all line tables, as ptd_decoder_lines() does. The table belongs to @debuginfo.
 * Of more than 2^24 rows, which no program has, the rest is left out.
 *
 * Return: 0 or -ENOMEM.
 */
_must_check_ int debuginfo_lines(struct debuginfo *debuginfo, struct ptd_line_table *ret_table);

DEFINE_CLEANUP(struct debuginfo *, debuginfo_free);
