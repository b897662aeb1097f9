/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * FDR log
 *
 * A flight data recorder file, or a directory of such files, as a log of calls (calllog.h).
 * Functions have numbers there. An ELF file, the program itself or one that was written with the
 * log, says which function a number is.
 */

#include <stdbool.h>

#include "base/base.h"

struct calllog;
struct objects;
struct resolver;

/* More files of one directory, or functions, are refused. */
#define FDRLOG_FILES_MAX     (1u << 17)
#define FDRLOG_FUNCTIONS_MAX (1u << 20)
/* More different arguments and events of one log are shown without their values. */
#define FDRLOG_EVENTS_MAX (1u << 16)

/* Return: whether @path is such a file, or a directory with one called xray-log.*. */
bool fdrlog_is(const char *path);

/*
 * Open the file or directory @path. @map is the ELF file that names its functions; NULL: that is
 * map.elf in the directory, if it is there. Objects are added to @objects; both this and @resolver
 * are borrowed.
 *
 * Return: 0; or negative errno and @reterr_message.
 */
_must_check_ int fdrlog_open(const char *path, const char *map, struct objects *objects,
			     struct resolver *resolver, struct calllog **ret_log,
			     char **reterr_message);
