/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * History
 *
 * The bytes of a range of code over time. A history is computed from changes that each state
 * what some part of the range was before it and is after it; and from one copy of the whole range,
 * made at one moment.
 *
 * Between two changes, a byte is known if the value after the first equals the value before the
 * second, or if one of the two states no value. If the two contradict each other, something
 * happened in between that no record states, at an unknown time: then the byte is unknown between
 * them. The copy is treated like a change of the whole range, so it does not matter whether the
 * copy is older than the changes or younger.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "decoder/image/object.h"
#include "util/vec.h"

/* The value of a byte of code: below 0x100, or one of these. */
#define HISTORY_ANY  UINT16_C(0x100) /* there is code, but its value is not known */
#define HISTORY_NONE UINT16_C(0x200) /* there is no code, or its value is unknown */

#define HISTORY_SIZE_MAX (UINT64_C(1) << 20) /* bytes of a range */
#define HISTORY_CHANGED_MAX \
	(UINT64_C(1) << 25) /* bytes of all changes together: each of them is kept in memory */

/* The values before or after a change: @size bytes are given, all others have the value @fill. */
struct history_bytes {
	const uint8_t *bytes; /* borrowed */
	uint64_t size;
	uint16_t fill; /* HISTORY_ANY or HISTORY_NONE */
};

struct history_change {
	uint64_t time;  /* ns */
	uint64_t start; /* of the changed part, counted from the beginning of the range */
	uint64_t size;
	struct history_bytes before, after;

	/* The change also states which object the code belongs to before it and after it; NULL: no
	 * object in particular. */
	bool sets_owner;
	const struct object *owner_before;
	const struct object *owner_after;
};

struct history {
	VEC(struct history_change) changes; /* by time; filled in by the caller */

	/* All other fields are private. */
	uint64_t size;        /* of the range */
	const uint16_t *copy; /* borrowed */
	bool copy_is_first;
	size_t next; /* index of the change that begins the next version */
	bool began;
	uint16_t *left, *right;       /* each byte's value as given before and after a moment */
	const struct object **owners; /* of each byte */
	VEC(uint16_t)
	undone; /* values of @right that the changes replaced, the last change first */
};

/*
 * Go to time 0 of the history that @history->changes and @copy make. The range has @size bytes.
 * @copy, one value for each of them, is borrowed until the end. It was made after all changes of
 * time 0 if @copy_is_first, else after all changes.
 *
 * @work: how many bytes of versions and changes may still be looked at; what this history needs is
 *        subtracted.
 *
 * Return: 0; -E2BIG if @work does not suffice, or the range or its changes are too large; -ENOMEM.
 */
_must_check_ int history_begin(struct history *history, uint64_t size, const uint16_t *copy,
			       bool copy_is_first, uint64_t *work);

/* Free all that @history has, its changes too. */
void history_deinit(struct history *history);

/*
 * Go to the next version of the range; the first call goes to the version of time 0.
 *
 * Return: whether there is a next version; then @ret_time is the time in ns from which it holds.
 */
_must_check_ bool history_next(struct history *history, uint64_t *ret_time);

/* Return: the value of byte @i of the current version; HISTORY_ANY or more if it is unknown. */
uint16_t history_byte(const struct history *history, uint64_t i);

/* Return: the object that byte @i of the current version belongs to; NULL: none in particular. */
const struct object *history_owner(const struct history *history, uint64_t i);
