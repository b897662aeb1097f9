/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Traceable
 *
 * Whose process it is in the sense of ptrace: the one user, with the one group, whom the kernel
 * would let read the process by PTRACE_MODE_READ, and who could have read it ever since it executed
 * its program. The answer is no wherever more would have to be known.
 *
 * All identities of all its threads are those of one user and one group; it has no capability, and
 * can get none but by executing another program; it is dumpable, as it no longer is once it has
 * changed its credentials, unless it says so; it is in the user namespace of whoever looks; and
 * when it executed its program, it had the same user and group, and the kernel gave it no privilege
 * for that, nor could have: the file is neither set-user-ID nor set-group-ID, and has no
 * capability. Processes of root are nobody's.
 *
 * Source: ptrace(2), "Ptrace access mode checking"; getauxval(3).
 */

#include <stdint.h>
#include <sys/types.h>

#include "base/base.h"

struct traceable {
	uid_t uid;
	gid_t gid;
	uint64_t birth; /* as birth_at() says */
};

/*
 * Look at the process whose folder in /proc is open at @pid_fd.
 *
 * Return: 0; -EPERM if it is nobody's, or that is not certain; -EAGAIN if it executes a program
 *         just now, of which the kernel has not said yet what rights it has; or another negative
 *         errno: it has ended, or cannot be seen.
 */
_must_check_ int traceable_check(int pid_fd, struct traceable *ret_traceable);

/* For tests: what the auxiliary vector of @size bytes at @bytes says. Return: 0 if a program with
 * that was executed with the rights of this user and this group, and without others; -EPERM; or
 * -EAGAIN: it is not whole. */
_must_check_ int traceable_check_auxv(const void *bytes, size_t size, uid_t uid, gid_t gid);

/* For tests: the same for the text of /proc/PID/status, and 0 and @ret_n_threads. */
_must_check_ int traceable_read_status(const char *text, struct traceable *ret_traceable,
				       unsigned *ret_n_threads);
