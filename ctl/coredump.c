/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "ctl/coredump.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <systemd/sd-journal.h>

#include "util/number.h"

#define US_PER_S 1000000

/* SD_MESSAGE_COREDUMP_STR of <systemd/sd-messages.h>, as a match. */
#define IS_COREDUMP "MESSAGE_ID=fc2e22bc6ee647b6b90729ab34a250b1"

/* Get a copy of the field @name of the entry. Return: 0, and NULL if there is none; or -ENOMEM. */
static int copy_field(sd_journal *journal, const char *name, char **ret_text)
{
	const size_t skip = strlen(name) + 1; /* NAME= */
	const void *data;
	size_t size;

	if (sd_journal_get_data(journal, name, &data, &size) < 0 || size <= skip)
		return 0;
	*ret_text = strndup((const char *)data + skip, size - skip);
	return *ret_text ? 0 : -ENOMEM;
}

/* Return: the number in the field @name; 0 if there is none. */
static uint64_t read_number(sd_journal *journal, const char *name, uint64_t max)
{
	_cleanup_(freep) char *text = NULL;
	uint64_t n;

	if (copy_field(journal, name, &text) < 0 || !text || number_parse(text, max, &n) < 0)
		return 0;
	return n;
}

static int read_entry(sd_journal *journal, struct coredump *coredump)
{
	uint64_t now_us;
	int r;

	coredump->pid = (uint32_t)read_number(journal, "COREDUMP_PID", UINT32_MAX);
	coredump->tid = (uint32_t)read_number(journal, "COREDUMP_TID", UINT32_MAX);
	coredump->signal_number = (int)read_number(journal, "COREDUMP_SIGNAL", INT32_MAX);
	coredump->time =
	    (int64_t)(read_number(journal, "COREDUMP_TIMESTAMP", INT64_MAX) / US_PER_S);
	if (coredump->pid == 0)
		return -EBADMSG;
	if (coredump->time == 0) {
		r = sd_journal_get_realtime_usec(journal, &now_us);
		if (r < 0)
			return r;
		coredump->time = (int64_t)(now_us / US_PER_S);
	}
	r = copy_field(journal, "COREDUMP_COMM", &coredump->comm);
	if (r == 0)
		r = copy_field(journal, "COREDUMP_EXE", &coredump->exe);
	if (r == 0)
		r = copy_field(journal, "COREDUMP_SIGNAL_NAME", &coredump->signal);
	if (r == 0)
		r = copy_field(journal, "COREDUMP_FILENAME", &coredump->core_file);
	return r;
}

static int add_match(sd_journal *journal, const char *match)
{
	_cleanup_(freep) char *text = NULL;
	const char *field = "COREDUMP_COMM";
	uint64_t n;

	if (strchr(match, '/'))
		field = "COREDUMP_EXE";
	else if (number_parse(match, UINT32_MAX, &n) == 0)
		field = "COREDUMP_PID";
	if (asprintf(&text, "%s=%s", field, match) < 0) {
		text = NULL;
		return -ENOMEM;
	}
	return sd_journal_add_match(journal, text, 0);
}

int coredump_init(struct coredump *coredump, const char *directory, const char *match)
{
	_cleanup_(sd_journal_closep) sd_journal *journal = NULL;
	struct coredump found = {};
	int r;

	r = directory ? sd_journal_open_directory(&journal, directory, 0)
		      : sd_journal_open(&journal, SD_JOURNAL_LOCAL_ONLY);
	if (r >= 0)
		r = sd_journal_add_match(journal, IS_COREDUMP, 0);
	if (r >= 0 && match)
		r = add_match(journal, match);
	if (r >= 0)
		r = sd_journal_seek_tail(journal);
	if (r >= 0)
		r = sd_journal_previous(journal);
	if (r <= 0)
		return r < 0 ? r : -ENODATA;
	r = read_entry(journal, &found);
	if (r < 0) {
		coredump_deinit(&found);
		return r;
	}
	*coredump = found;
	return 0;
}

void coredump_deinit(struct coredump *coredump)
{
	free(coredump->comm);
	free(coredump->exe);
	free(coredump->signal);
	free(coredump->core_file);
	*coredump = (struct coredump){};
}
