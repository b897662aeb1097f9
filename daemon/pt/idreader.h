/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Build-id reader
 *
 * Reads the build-ids of files for the event loop, in a thread of its own: a read may wait for a
 * disk, or for a file system that does not answer at all, and the event loop must not. If the
 * thread does not answer in time, the file's build-id is taken as unknown, and so are those of the
 * files that follow until it does.
 */

#include <stdint.h>

#include "base/base.h"

struct buildid;
struct idreader;

/* Return: 0; -EBUSY if too many still wait for a disk; or another negative errno. */
_must_check_ int idreader_new(struct idreader **ret_reader);

/* Does not wait for the thread, which frees what it has when it comes back. Return: NULL. */
struct idreader *idreader_free(struct idreader *reader);

DEFINE_CLEANUP(struct idreader *, idreader_free);

/*
 * @fd: of the file; taken over
 *
 * Return: 0 and @ret_id, as buildid_read() does; -ETIMEDOUT if it takes longer than @timeout_ns;
 *         -EBUSY if the thread still reads another; or another negative errno.
 */
_must_check_ int idreader_read(struct idreader *reader, int fd, uint64_t timeout_ns,
			       struct buildid *ret_id);
