/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Call frame information
 *
 * Where the functions of an ELF file begin and end, according to its .eh_frame. That section says
 * how to unwind the stack, so it stays in a file that was stripped of its symbols. It has an entry
 * (FDE) for each piece of code that was assembled as one function, with its first address and its
 * size. The part of a function that a compiler moved elsewhere (.cold) has an entry of its own.
 *
 * Linkers add .eh_frame_hdr, a table of the entries sorted by address. With this table only the
 * entry that is asked for is read, so a file with a hundred thousand entries costs no more than a
 * small one. Without it all entries are read when the first function is asked for.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/base.h"
#include "base/cursor.h"

struct ehframe;
struct filebytes;

/*
 * Find the call frame information of the ELF file @file, which must outlive it. A file that has
 * none, or is no ELF file, has no functions.
 *
 * Return: 0 or -ENOMEM.
 */
_must_check_ int ehframe_new(struct filebytes *file, struct ehframe **ret_ehframe);
struct ehframe *ehframe_free(struct ehframe *ehframe);

/*
 * Find the function around @address, an address as the file was linked.
 *
 * Return: whether there is one. It begins at @ret_start and ends before @ret_end; otherwise there
 *         is no function from @ret_start up to @ret_end. @address always lies between the two.
 */
bool ehframe_find(const struct ehframe *ehframe, uint64_t address, uint64_t *ret_start,
		  uint64_t *ret_end);

/* The entry of a function, and what it has in common with others. All bytes are the file's. */
struct ehframe_entry {
	uint64_t start, end; /* of the function; the end is exclusive */
	uint64_t code_factor;
	int64_t data_factor;
	uint64_t return_register;
	bool is_signal; /* a signal interrupted the caller: it made no call */

	/* How the caller's registers are found: instructions that hold for the whole function, and
	 * then those of this one. */
	struct cursor common, own;
};

/*
 * Find the entry of the function around @address, an address as the file was linked.
 *
 * Return: whether there is one that can be read.
 */
bool ehframe_find_entry(const struct ehframe *ehframe, uint64_t address,
			struct ehframe_entry *ret_entry);

/*
 * Read the call frame information of one function, the @size bytes at @bytes of an .eh_frame that
 * is in no ELF file. The addresses in it do not count: the function begins at 0.
 *
 * Return: whether the first entry can be read. Its bytes are those at @bytes.
 */
bool ehframe_read_entry(const uint8_t *bytes, size_t size, struct ehframe_entry *ret_entry);

DEFINE_CLEANUP(struct ehframe *, ehframe_free);
