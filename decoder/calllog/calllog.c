/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/calllog/calllog.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "util/message.h"

int calllog_complain(struct calllog *log, const char *path, uint64_t offset, const char *fault)
{
	const bool is_last = log->n_complaints == CALLLOG_COMPLAINTS_MAX - 1;
	const char *copy;
	char *text;

	if (log->n_complaints == CALLLOG_COMPLAINTS_MAX)
		return 0;
	if (asprintf(&text, "%s: byte %" PRIu64 ": %s%s", path, offset, fault,
		     is_last ? "; and more is wrong" : "") < 0)
		return -ENOMEM;
	copy = arena_strdup(&log->texts, text);
	free(text);
	if (!copy)
		return -ENOMEM;
	log->complaints[log->n_complaints++] = copy;
	return 0;
}

int calllog_check(const struct calllog *log, const char *path, const char *what,
		  char **reterr_message)
{
	if (log->n_calls > 0)
		return 0;
	if (log->n_complaints > 0)
		return message_set(reterr_message, -EBADMSG, "%s", log->complaints[0]);
	return message_set(reterr_message, -EBADMSG, "%s: has no %s", path, what);
}

struct calllog *calllog_free(struct calllog *log)
{
	if (!log)
		return NULL;
	vec_deinit(&log->lanes);
	arena_deinit(&log->texts);
	log->ops->free(log);
	return NULL;
}
