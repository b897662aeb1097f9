/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Unwinding
 *
 * Finds the registers of a function's caller by the call frame information of the function (see
 * ehframe.h), for x86-64. Nothing is guessed: where the information does not say how, or the memory
 * that it names is not known, unwinding ends.
 *
 * Sources: DWARF 5, 6.4 and 2.5; the x86-64 psABI for the numbers of the registers.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"

struct ehframe_entry;

/* Registers by the numbers that DWARF gives them. */
enum {
	UNWIND_RBP = 6,
	UNWIND_RSP = 7,
	UNWIND_RIP = 16,
	_UNWIND_REGS,
};

struct unwind_frame {
	uint64_t regs[_UNWIND_REGS];
	uint32_t known; /* which of them are, a bit each */
};

/* The memory of the thread. Return: whether all @size bytes at @address are known. */
struct unwind_memory {
	bool (*read)(void *userdata, uint64_t address, void *ret_bytes, size_t size);
	void *userdata;
};

enum {
	UNWIND_END = 1, /* the function is the outermost one of its thread */
};

/*
 * Find the registers of the caller.
 *
 * @entry: of the function
 * @address: where it is, as it was linked
 *
 * Return: 0 and @ret_caller; UNWIND_END; or -EBADMSG if it is not known how.
 */
_must_check_ int unwind_frame(const struct ehframe_entry *entry, uint64_t address,
			      const struct unwind_frame *frame, const struct unwind_memory *memory,
			      struct unwind_frame *ret_caller);

/*
 * Return: whether the code of @entry begins inside a function whose beginning is elsewhere. Where a
 *         function begins, the stack holds nothing but the return address, and each register has
 *         the value that it has in the caller. In the middle of most functions that is not so: a
 *         part is not always known as one.
 */
bool unwind_begins_inside(const struct ehframe_entry *entry);
