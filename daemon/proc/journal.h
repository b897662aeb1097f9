/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Journal
 *
 * Messages of the daemon that programs look for, and that journalctl -x explains: entries of
 * the journal with a MESSAGE_ID and fields of their own. Each id (PTD_MESSAGE_…, ptd/control.h) has
 * a text in systemd/ptd.catalog.
 */

#include <stddef.h>

#include "base/base.h"

/* More fields of a message are left out. */
#define JOURNAL_FIELDS_MAX 8

struct journal_field {
	const char *name;
	const char *value; /* NULL: the field is left out */
};

/*
 * Log a message at @level, with @n_fields fields, if standard error is the journal; otherwise as
 * log_at() does. %m prints errno, which does not change.
 */
_printf_(5, 6) void journal_log(int level, const char *message_id,
				const struct journal_field *fields, size_t n_fields,
				const char *format, ...);

/* The same with one field. */
#define journal_log_one(level, message_id, name, value, ...)                                    \
	journal_log((level), (message_id), &(const struct journal_field){ (name), (value) }, 1, \
		    __VA_ARGS__)
