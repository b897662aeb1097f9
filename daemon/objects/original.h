/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Original
 *
 * The file that a record says is mapped, before it is copied. The collector finds the file
 * (daemon/helper/collector/link.h), and can say later whether the file at the path is still the
 * same one. A record is only a claim: a file is accepted if it is a regular file, has the build-id
 * in the record, and the process in the record has it mapped or may read it
 * (daemon/proc/mappedfile.h).
 *
 * ptd gets a descriptor that only stands for the file (O_PATH): whatever the file's disk does, the
 * descriptor can be kept, passed on and closed without waiting.
 *
 * The vDSO has no file. The kernel maps the same vDSO into all 64-bit x86 programs, so a copy of
 * the daemon's own is used.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/base.h"

struct collector_answer;
struct collectorlink;
struct record_mmap2;

/* The identity of a file. A file that was written to, or replaced, has another identity. */
struct original {
	bool found;
	uid_t uid; /* its owner */
	uint64_t dev, ino, size;
	int64_t mtime_ns, ctime_ns;
};

/* Return: whether both are the same file; false if one was not found. */
bool original_equal(const struct original *a, const struct original *b);

/* Return: the file that the collector's answer names. */
struct original original_of(const struct collector_answer *answer);

/* How the file is looked for. */
enum original_way {
	/* Only to know which one it is: whether it can be copied is not checked. The writer of the
	 * record learns nothing from that. */
	ORIGINAL_LOOK,
	/* To copy it. The build-id is compared later. To be used in the event loop, since no file
	 * is opened. */
	ORIGINAL_TAKE,
	/* To copy it. The build-id is compared, which reads files. */
	ORIGINAL_VERIFY,
	/* Only to know whether it is an ELF file that could be copied. */
	ORIGINAL_IS_ELF,
	/* To copy it, if it is a jitdump or has nothing in it yet. */
	ORIGINAL_JITDUMP,
	/* The same, if it is known that @user started the process: one of theirs, too, that others
	 * may not read. */
	ORIGINAL_OWN_JITDUMP,
};

/*
 * Find the mapped file.
 *
 * @is_claimed: a program wrote the record, not the kernel
 * @user: who started the process in the record, should it have ended; 0: root, or not known
 * @cancel: gives up once this is true; may be NULL
 * @ret_fd: with ORIGINAL_TAKE, ORIGINAL_VERIFY and ORIGINAL_JITDUMP a descriptor, which is the
 *          caller's; otherwise -1
 *
 * Return: 0; -ESTALE if another file was found than the mapped one; -ENOEXEC if it is no regular
 *         file, or not what it is to be; -EACCES if the process may not read it; -ECANCELED; an
 *         error of collectorlink_ask(): collectorlink_may_retry() tells those that say
 *         nothing of the file; or another negative errno.
 */
_must_check_ int original_find(struct collectorlink *link, enum original_way way, bool is_claimed,
			       const struct record_mmap2 *mmap, uid_t user,
			       const atomic_bool *cancel, int *ret_fd,
			       struct original *ret_original);
