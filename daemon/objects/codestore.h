/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Code store
 *
 * The code that programs handed over as it ran (daemon/emu/coderecord.h), since a snapshot's window
 * may begin long after it was translated, and a program may have freed it, or be gone. Of each
 * program there are the first bytes that were anywhere, by page, and the changes since, by time. A
 * fork shares what its parent had.
 *
 * The store has a limit. To stay below it, the code of programs that have ended is forgotten, the
 * oldest first; then what comes is refused. Of a change that was forgotten, refused or lost it is
 * kept where it was, and that the bytes are not known from its time on.
 *
 * It may be added to by one thread, and be read by others at the same time.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"

struct codestore;

/* Make an empty one of up to @bytes_max bytes. Return: 0 or -ENOMEM. */
_must_check_ int codestore_new(uint64_t bytes_max, struct codestore **ret_store);

/* Return: NULL. */
struct codestore *codestore_free(struct codestore *store);

DEFINE_CLEANUP(struct codestore *, codestore_free);

/* Change the limit; what is there already stays. */
void codestore_set_max(struct codestore *store, uint64_t bytes_max);

/*
 * Add @size bytes of code records, whole ones.
 *
 * Return: 0; -ENOBUFS if some were refused; -ENOMEM; or -EBADMSG if they make no sense. The last
 *         two are as codestore_lose().
 */
_must_check_ int codestore_add(struct codestore *store, const uint8_t *bytes, size_t size);

/* Return: about how many bytes there are. */
uint64_t codestore_size(struct codestore *store);

/* Something was lost that may replace any code of any program: none is known from now on. */
void codestore_lose(struct codestore *store);

/* What the store has of one program. */
struct codestore_program {
	uint64_t serial; /* a number that increases from one program to the next */
	uint32_t pid;
	uint64_t start;     /* when it began, on CLOCK_MONOTONIC in ns */
	uint64_t n_refused; /* records */
};

/* Return: whether there is a program with a higher serial number; the first such is in
 * *@program. At first that is zeros. */
bool codestore_next(struct codestore *store, struct codestore_program *program);

/*
 * Copy the code of the program, in the form of a snapshot's file (struct ptd_code_header). If it
 * was forgotten or takes more than @size_max bytes, there is only where it was changed.
 *
 * Return: 1 if all is there, 0 if not, and @ret_bytes, which the caller frees; -ENOENT if there is
 *         no such program any more; or -ENOMEM.
 */
_must_check_ int codestore_copy(struct codestore *store, const struct codestore_program *program,
				uint64_t size_max, uint8_t **ret_bytes, size_t *ret_size);
