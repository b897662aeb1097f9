/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * History
 *
 * The bytes of a range of code over time, of which events say what was there before and after them,
 * each for a part of it; and of which, at one moment, a copy was made.
 *
 * Between two events a byte is known if what the first left there is what the second found, or if
 * one of the two does not say. Where they contradict each other something happened that nobody told
 * of, and it is not known when: then nothing is known. So it does not matter whether the copy is
 * older than the events or younger.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "decoder/image/object.h"
#include "util/vec.h"

/* What a byte is: less than these, or */
#define HISTORY_ANY  UINT16_C(0x100) /* there is code, but it is not said which */
#define HISTORY_NONE UINT16_C(0x200) /* there is no code, or it is not known */

#define HISTORY_SIZE_MAX (UINT64_C(1) << 20) /* of a range */
#define HISTORY_EVENTS_MAX \
	(UINT64_C(1) << 25) /* bytes that all its events are about: each is kept */

/* Bytes as an event has them: the first @size are said, the others are @rest. */
struct history_bytes {
	const uint8_t *bytes;
	uint64_t size;
	uint16_t rest;
};

struct history_event {
	uint64_t time;
	uint64_t start; /* of the part of the range, from its beginning on */
	uint64_t size;
	struct history_bytes before, after;
	bool names;                     /* it changes who the code is of, too: */
	const struct object *before_is; /* NULL: of nobody in particular, like the next */
	const struct object *after_is;
};

struct history {
	VEC(struct history_event) events; /* of one range, by time */

	/* The rest is the history's own. */
	uint64_t size;        /* of the range */
	const uint16_t *copy; /* of it; borrowed */
	bool copy_is_first;
	size_t next; /* event */
	bool began;
	uint16_t *left, *right;       /* what is said of each byte before and after a moment */
	const struct object **owners; /* of each byte */
	VEC(uint16_t) undone; /* of right: for each event what comes behind it, last first */
};

/*
 * Begin at time 0 with the events that @history has, of a range of @size bytes. Of these @copy says
 * what they were: if @copy_is_first when all events of time 0 had happened, otherwise after all. It
 * is borrowed.
 *
 * @work: so many bytes of versions and events may be looked at; what is needed for all is taken
 *	away
 *
 * Return: 0; -E2BIG if that is more, or the range or its events are too large; -ENOMEM.
 */
_must_check_ int history_begin(struct history *history, uint64_t size, const uint16_t *copy,
			       bool copy_is_first, uint64_t *work);
void history_deinit(struct history *history);

/* Step to the next version; the first is of time 0. Return: false if there is none. */
_must_check_ bool history_next(struct history *history, uint64_t *ret_time);

/* Return: byte @i of this version, if less than HISTORY_ANY; nobody knows it otherwise. */
uint16_t history_byte(const struct history *history, uint64_t i);

/* Return: whose code byte @i is in this version; NULL: nobody's in particular. */
const struct object *history_owner(const struct history *history, uint64_t i);
