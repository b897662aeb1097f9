/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * User pool
 *
 * The pool of one user (daemon/emu/pool.h), as the daemon sees it: memory to which the user's
 * programs under QEMU write. They can overwrite it with anything at any time. Therefore only heads
 * and bytes of rings are read from it, both are checked, the layout is the copy that was made
 * before any program saw the pool, and what the records say is believed about the user's own
 * processes only (daemon/soft/poolrecords.h).
 *
 * The event loop calls all functions but those under "rings", which the thread of a snapshot calls.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/base.h"
#include "daemon/emu/pool.h"
#include "daemon/source/source.h"

struct kept_pool;
struct poolasker;
struct poolclaims;
struct poolrings;
struct userpool;

struct userpool_options {
	uint32_t number; /* its place among the pools */
	uid_t uid;
	const struct emu_pool_layout *layout; /* copied */
	struct poolclaims *claims;            /* borrowed */
	struct poolasker *asker;              /* borrowed */
	struct kept_pool *kept;               /* what of it is to be kept; borrowed */
};

/* Make a pool, and what is kept of it. Return: 0, or negative errno. */
_must_check_ int userpool_new(const struct userpool_options *options, struct userpool **ret_pool);

/* Go on with the pool @fd of an earlier process, and what that kept of it. Return: 0, and @fd is
 * the pool's; -EBADMSG if it is no such pool; or another negative errno. */
_must_check_ int userpool_resume(const struct userpool_options *options, int fd,
				 struct userpool **ret_pool);

/* Return: NULL. */
struct userpool *userpool_free(struct userpool *pool);

DEFINE_CLEANUP(struct userpool *, userpool_free);

/* Return: the pool's descriptor, which stays the pool's. */
int userpool_fd(const struct userpool *pool);

uid_t userpool_uid(const struct userpool *pool);

/* Return: bytes of its memory. */
uint64_t userpool_size(const struct userpool *pool);

/* Return: its rings, which stay the pool's, as programs write them. */
struct poolrings *userpool_rings(struct userpool *pool);

/* Note that the pool is given to a program; it will write MTC and CYC packets if @timing. */
void userpool_share(struct userpool *pool, bool timing);

/* Return: whether something may be writing to the pool. */
bool userpool_is_active(struct userpool *pool);

/* Return: whether no living process is known to write to the pool, and nothing was written to it
 * for a while. */
bool userpool_is_at_rest(struct userpool *pool, uint64_t now_ns);

/* Return: whether the programs say that code found no room in the ring of code, or that threads ran
 * unrecorded since no CPU was free. */
bool userpool_lost_code(const struct userpool *pool);
bool userpool_was_exhausted(const struct userpool *pool);

/* Return: how many records were left out that the user has no right to write. */
uint64_t userpool_n_refused(const struct userpool *pool);

/* What was drained of a stream is appended to these bytes. */
struct userpool_bytes {
	uint8_t *bytes;
	size_t size;
};

/*
 * Take what was written to a stream since the last call, without what is not believed.
 *
 * @ret_n_lost: of SOURCE_TASKS: records that were lost
 *
 * Return: 0; or -ENOMEM: task records stay for a later call, and code is lost.
 */
_must_check_ int userpool_drain(struct userpool *pool, enum source_stream stream,
				struct userpool_bytes *bytes, uint64_t *ret_n_lost);

/* Let programs use the room again of what was drained. To be called when the kept state, which says
 * what was drained, has been published. */
void userpool_give_room(struct userpool *pool);

/* --- rings --- */

/* Return: whether a program was asked to write MTC and CYC packets. */
bool userpool_has_timing(const struct userpool *pool);

/* Copy switch records or events, as the operations of struct source_ops do, without what is not
 * believed. CPUs of the pool count from 0. */
_must_check_ int userpool_copy_switches(struct userpool *pool, uint32_t cpu, uint64_t since_ns,
					uint8_t **ret_bytes, size_t *ret_size, bool *ret_cut);
_must_check_ int userpool_copy_events(struct userpool *pool, uint32_t cpu, uint64_t since_ns,
				      struct source_event **ret_events, size_t *ret_n);
