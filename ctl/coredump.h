/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Core dump
 *
 * What the journal says about a process that crashed. systemd-coredump(8) writes an entry for each
 * core dump, and coredumpctl(1) lists them.
 *
 * Source: systemd.journal-fields(7), coredumpctl(1).
 */

#include <stdint.h>

#include "base/base.h"

struct coredump {
	uint32_t pid;
	uint32_t tid;      /* the thread that crashed; 0: the entry does not say it */
	int64_t time;      /* of the crash, in s since 1970 */
	int signal_number; /* 0: not known */
	char *comm;        /* name of the process; NULL: not known, likewise below */
	char *exe;         /* path of its program */
	char *signal;      /* such as SIGSEGV */
	char *core_file;   /* path of the core, which may be compressed or removed */
};

/*
 * Find the newest entry.
 *
 * @directory: of journal files; NULL: those of this machine
 * @match: the number of the process, the path of its program, or its name; NULL: any
 *
 * Return: 0; -ENODATA if there is none that the caller may read; or another negative errno.
 */
_must_check_ int coredump_init(struct coredump *coredump, const char *directory, const char *match);
void coredump_deinit(struct coredump *coredump);
