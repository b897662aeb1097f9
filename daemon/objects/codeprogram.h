/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Code program
 *
 * The code of one program in the code store (daemon/objects/codestore.h): the first bytes at each
 * address, by page, and the changes since, by time. A forked child shares pages and changes with
 * its parent. Of code that was forgotten, refused or lost a program keeps the places, and since
 * when the bytes there are unknown.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/base.h"
#include "daemon/objects/codestore.h"
#include "daemon/share/share.h"
#include "util/vec.h"

/*
 * Pages in which a program changed its code to something that is not known. A decoder has to treat
 * them as unknown from that time on; otherwise it would take the earlier bytes, most often those of
 * a file, for what ran.
 */

#define LOSTCODE_MAX 4096u /* ranges; if there are more, neighbours are joined */

/* Whole pages. */
struct lostcode_range {
	uint64_t start;
	uint64_t last; /* inclusive */
	uint64_t time; /* the bytes are unknown from this time on */
};

struct lostcode {
	VEC(struct lostcode_range) ranges; /* by address; no two touch each other */
};

void lostcode_deinit(struct lostcode *lost);

/* Add the @size bytes at @address, which are unknown from @time on. They do not wrap around the end
 * of the address space. Return: 0 or -ENOMEM. */
_must_check_ int lostcode_add(struct lostcode *lost, uint64_t address, uint64_t size,
			      uint64_t time);

/* Add all ranges of @other. Return: 0 or -ENOMEM. */
_must_check_ int lostcode_add_all(struct lostcode *lost, const struct lostcode *other);

struct codechange;
struct codeimage;
struct codepage;
struct coderecord;

/* The account of all programs, and who makes room in it. */
struct coderoom {
	struct share share; /* bytes */
	/* Have room for @size more bytes of the user. Return: 0; -ENOBUFS if there is none for
	 * them; or -ENOMEM. */
	int (*make)(void *userdata, uid_t uid, size_t size);
	void *userdata; /* borrowed */
};

struct codeprogram {
	struct codestore_program info; /* as the store's users get it */

	VEC(struct codepage *) pages;     /* by address */
	VEC(struct codechange *) changes; /* by time */
	size_t n_unknown;                 /* changes */

	/* The program has no pages and changes, and gets none any more. Only the places of changes
	 * are known. */
	bool given_up;
	struct lostcode lost;
};

/* Free the program, whose fields may be all zeros. Return: NULL. */
struct codeprogram *codeprogram_free(struct coderoom *room, struct codeprogram *program);

/* Give the child, which is new, the code that its parent had at @time. Return: 0; -ENOBUFS if it
 * does not have all of it; or -ENOMEM. */
_must_check_ int codeprogram_inherit(struct coderoom *room, struct codeprogram *child,
				     const struct codeprogram *parent, uint64_t time);

/* Add the code of a record, new or changed. Return: 0; -ENOBUFS if some of the bytes were refused;
 * or -ENOMEM. */
_must_check_ int codeprogram_add(struct coderoom *room, struct codeprogram *program,
				 const struct coderecord *record, const uint8_t *bytes);

/* Refuse the bytes of @record, which may have replaced known bytes. Return: 0 or -ENOMEM. */
_must_check_ int codeprogram_refuse(struct coderoom *room, struct codeprogram *program,
				    const struct coderecord *record);

/* The bytes at @address are unknown since @time. Return: 0 or -ENOMEM. */
_must_check_ int codeprogram_lose(struct coderoom *room, struct codeprogram *program,
				  uint64_t address, uint64_t size, uint64_t time);

/* Forget the program's code except the places of changes. Return: 0 or -ENOMEM. */
_must_check_ int codeprogram_give_up(struct coderoom *room, struct codeprogram *program);

/* Say less of what was lost, to have room. Return: whether that is possible. */
bool codeprogram_join_lost(struct coderoom *room, struct codeprogram *program);

/* Make an image of all code, or of the places of changes only. Return: 0; CODEIMAGE_FULL; or
 * -ENOMEM. */
_must_check_ int codeprogram_make_image(const struct codeprogram *program, struct codeimage *image);
_must_check_ int codeprogram_make_lost_image(const struct codeprogram *program,
					     struct codeimage *image);
