/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Log
 *
 * Messages of the programs to their user: one line each on standard error. If standard error is the
 * journal, the line begins with the syslog level ("<3>…"), so that the entry gets its priority.
 * Library code does not log; it returns errors.
 *
 * Many messages have names of files and threads, which other users choose. Control characters are
 * therefore replaced; otherwise a name could forge lines of the log, or control a terminal.
 */

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>

#include "base/base.h"
#include "base/printable.h"

/*
 * Print one message at @level (LOG_ERR, LOG_WARNING, LOG_NOTICE, LOG_INFO, LOG_DEBUG). %m prints
 * errno, which does not change.
 */
_printf_(2, 3) static inline void log_at(int level, const char *format, ...)
{
	const int saved = errno;
	char line[2048];
	va_list ap;

	va_start(ap, format);
	errno = saved;
	(void)vsnprintf(line, sizeof(line), format, ap);
	va_end(ap);
	printable_clean(line, strlen(line));

	if (getenv("JOURNAL_STREAM"))
		fprintf(stderr, "<%d>%s\n", level, line);
	else
		fprintf(stderr, "%s: %s\n", program_invocation_short_name, line);
	errno = saved;
}

#define log_error(...)   log_at(LOG_ERR, __VA_ARGS__)
#define log_warning(...) log_at(LOG_WARNING, __VA_ARGS__)
#define log_notice(...)  log_at(LOG_NOTICE, __VA_ARGS__)
#define log_info(...)    log_at(LOG_INFO, __VA_ARGS__)

/* Log at @level, with %m for the negative errno @r, and return @r. */
#define log_errno(level, r, ...)            \
	({                                  \
		const int _r = (r);         \
		errno = -_r;                \
		log_at(level, __VA_ARGS__); \
		_r;                         \
	})

/* return log_error_errno(r, "…: %m") */
#define log_error_errno(r, ...)   log_errno(LOG_ERR, r, __VA_ARGS__)
#define log_warning_errno(r, ...) log_errno(LOG_WARNING, r, __VA_ARGS__)

/* Log an error, in the second one with %m for the negative errno @r, and return @value. */
#define log_as(value, ...)          (log_error(__VA_ARGS__), (value))
#define log_errno_as(value, r, ...) (errno = -(r), log_error(__VA_ARGS__), (value))
