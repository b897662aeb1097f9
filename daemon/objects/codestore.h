/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Code store
 *
 * The code that programs handed over as it ran (daemon/plugin/coderecord.h). A snapshot may need
 * code that was translated long before, and that the program has freed since, or whose program has
 * ended. For each program the store has the first bytes at each address, by page, and the changes
 * since, by time. A forked child shares the code of its parent.
 *
 * The store has a limit in bytes. To stay below it, the store forgets the code of programs that
 * have ended, the oldest first, and then refuses new code. Each user has a share of it
 * (daemon/share/share.h), but only code of programs that have ended is given back. For a change
 * that was forgotten, refused or lost, the store still knows the place and the time since which the
 * bytes there are unknown, so that a decoder does not take older code for what ran.
 *
 * One thread adds code; other threads may read the store at the same time.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/base.h"

struct codestore;
struct share;

/* Make an empty store for up to @bytes_max bytes. Return: 0 or -ENOMEM. */
_must_check_ int codestore_new(uint64_t bytes_max, struct codestore **ret_store);

/* Return: NULL. */
struct codestore *codestore_free(struct codestore *store);

DEFINE_CLEANUP(struct codestore *, codestore_free);

/* Get a copy of the account of bytes. */
void codestore_get_share(struct codestore *store, struct share *ret_share);

/* Set another limit. Code that exceeds it already stays. */
void codestore_set_max(struct codestore *store, uint64_t bytes_max);

/*
 * Add @size bytes of whole code records.
 *
 * Return: 0; -ENOBUFS if some records were refused; -ENOMEM; or -EBADMSG if records are malformed.
 *         In the last two cases everything is lost, as by codestore_lose().
 */
_must_check_ int codestore_add(struct codestore *store, const uint8_t *bytes, size_t size);

/* Return: about how many bytes the store has. */
uint64_t codestore_size(struct codestore *store);

/* Records were lost that may have changed any code of any program: from now on, the bytes of all
 * code are unknown. */
void codestore_lose(struct codestore *store);

/* One program in the store. */
struct codestore_program {
	uint64_t serial; /* a number that increases from one program to the next */
	uint32_t pid;
	uid_t uid;          /* whose program handed the code over */
	uint64_t start;     /* when it began, on CLOCK_MONOTONIC in ns */
	uint64_t n_refused; /* records */
};

/* Find the program with the next higher serial number. *@program is all zeros at first. Return:
 * whether there is one. */
bool codestore_next(struct codestore *store, struct codestore_program *program);

/*
 * Copy the code of the program, in the format of a snapshot's file (struct ptd_code_header). If the
 * code was forgotten, or takes more than @size_max bytes, the copy has only the places and times of
 * changes.
 *
 * Return: 1 if the copy has all code and 0 if not, and @ret_bytes, which the caller frees; -ENOENT
 *         if the store does not have the program any more; or -ENOMEM.
 */
_must_check_ int codestore_copy(struct codestore *store, const struct codestore_program *program,
				uint64_t size_max, uint8_t **ret_bytes, size_t *ret_size);
