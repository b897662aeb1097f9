/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * ovni metadata
 *
 * The metadata of a trace of ovni, in JSON: of a process in version 1, of a stream in later ones.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/base.h"
#include "util/vec.h"

struct logwindow;
struct ovninames;

#define OVNIMETA_SIZE_MAX ((uint64_t)64 << 20) /* more bytes of one file are refused */
#define OVNIMETA_CPUS_MAX (1u << 16)           /* as are more CPUs */
#define OVNIMETA_NAME_MAX 256

struct ovnimeta {
	int64_t version; /* 0: not known; likewise: */
	int64_t pid, tid;
	bool is_thread;               /* the stream is of a thread; of version 1, it is */
	bool is_finished;             /* likewise */
	char loom[OVNIMETA_NAME_MAX]; /* "": not known */
	char comm[OVNIMETA_NAME_MAX]; /* the name of the thread, which ptdecode adds */
	VEC(uint32_t) cpus;           /* by index: the operating system's numbers */
};

/*
 * Read the file at @path. Titles and labels of marks are noted in @names.
 *
 * Return: 0; or negative errno and @reterr_message, which may be NULL.
 */
_must_check_ int ovnimeta_read(struct ovnimeta *meta, const char *path, struct logwindow *window,
			       struct ovninames *names, char **reterr_message);
void ovnimeta_deinit(struct ovnimeta *meta);
