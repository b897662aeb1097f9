/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Build-id reader
 *
 * Reads the build-ids of files for the event loop, in a thread of its own. A read may wait for a
 * disk, or for a file system that never answers, and the event loop must not. If the thread does
 * not answer in time, the build-id of the file counts as unknown, and so do those of the next files
 * until it does.
 */

#include <stdint.h>

#include "base/base.h"

struct buildid;
struct idreader;

/* Start the thread. Return: 0; -EBUSY if too many threads still wait for a disk; or another
 * negative errno. */
_must_check_ int idreader_new(struct idreader **ret_reader);

/* Free the reader without waiting for its thread, which frees what it has when its read ends.
 * Return: NULL. */
struct idreader *idreader_free(struct idreader *reader);

DEFINE_CLEANUP(struct idreader *, idreader_free);

/*
 * @fd: of the file; the call takes it over
 *
 * Return: 0 and @ret_id, as buildid_read() does; -ETIMEDOUT if it takes longer than @timeout_ns;
 *         -EBUSY if the thread still reads another file; or another negative errno.
 */
_must_check_ int idreader_read(struct idreader *reader, int fd, uint64_t timeout_ns,
			       struct buildid *ret_id);
