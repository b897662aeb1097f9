/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "ctl/crash.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <systemd/sd-journal.h>
#include <time.h>

#include "base/log.h"
#include "ctl/client.h"
#include "ctl/decode.h"
#include "ctl/show.h"
#include "ctl/verb.h"
#include "ptd/snapshot.h"
#include "util/condition.h"
#include "util/message.h"
#include "util/number.h"
#include "util/regular.h"
#include "util/snapid.h"
#include "util/textfile.h"
#include "util/vec.h"

/* --- core dump -------------------------------------------------------------------------------- */

/*
 * What the journal says about a process that crashed. systemd-coredump(8) writes an entry for each
 * core dump, and coredumpctl(1) lists them.
 *
 * Source: systemd.journal-fields(7), coredumpctl(1).
 */

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

static void coredump_deinit(struct coredump *core);

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
	text = message_text("%s=%s", field, match);
	return text ? sd_journal_add_match(journal, text, 0) : -ENOMEM;
}

/*
 * Find the newest entry.
 *
 * @directory: of journal files; NULL: those of this machine
 * @match: the number of the process, the path of its program, or its name; NULL: any
 *
 * Return: 0; -ENODATA if there is none that the caller may read; or another negative errno.
 */
static int coredump_init(struct coredump *coredump, const char *directory, const char *match)
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

static void coredump_deinit(struct coredump *coredump)
{
	free(coredump->comm);
	free(coredump->exe);
	free(coredump->signal);
	free(coredump->core_file);
	*coredump = (struct coredump){};
}

/* --- crash ------------------------------------------------------------------------------------ */

#define LINE_SIZE_MAX 8192

/* A thread whose crash is a condition is stopped until its snapshot is there, and dumped then. */
#define BEFORE_SECONDS 60u

/* Manifests to read, at most. */
#define LOOKED_AT_MAX 64

/* A snapshot that may have the process. */
struct candidate {
	char id[SNAPID_SIZE];
	int dir_fd;
	bool is_triggered; /* taken because the process crashed */
	uint32_t tid;      /* in which thread that held; 0: not known */
};

static void candidate_deinit(struct candidate *candidate)
{
	candidate->dir_fd = fd_close(candidate->dir_fd);
}

/* --- the snapshot ----------------------------------------------------------------------------- */

/* What the manifest says of the process. */
struct verdict {
	const struct coredump *coredump;
	bool is_limited, is_in_scope, is_command, is_crash;
	uint32_t trigger_tid;
};

/* Return: whether the number @pid is in the list of numbers with commas between them. */
static bool has_pid(char *list, uint32_t pid)
{
	char *one;
	uint64_t n;

	while ((one = strsep(&list, ",")))
		if (number_parse(one, UINT32_MAX, &n) == 0 && n == pid)
			return true;
	return false;
}

/* Return: whether the condition @text holds when the signal @number kills a process. */
static bool is_crash(const char *text, int number)
{
	struct condition condition;
	bool holds;

	if (condition_parse(text, &condition) < 0)
		return false;
	holds = condition.kind == CONDITION_CORE ||
		(condition.kind == CONDITION_SIGNAL &&
		 (number == 0 || condition.number == (uint32_t)number));
	condition_deinit(&condition);
	return holds;
}

static void judge_line(struct verdict *verdict, const char *key, char *value)
{
	const uint32_t pid = verdict->coredump->pid;
	uint64_t n;

	if (strcmp(key, "scope_pid") == 0 || strcmp(key, "scope_pids") == 0) {
		verdict->is_limited = true;
		verdict->is_in_scope = verdict->is_in_scope || has_pid(value, pid);
	} else if (strcmp(key, "command_pid") == 0) {
		verdict->is_command = has_pid(value, pid);
	} else if (strcmp(key, "trigger") == 0) {
		verdict->is_crash = is_crash(value, verdict->coredump->signal_number);
	} else if (strcmp(key, "trigger_tid") == 0 && number_parse(value, UINT32_MAX, &n) == 0) {
		verdict->trigger_tid = (uint32_t)n;
	}
}

/* Read the manifest in the directory @dir_fd. Return: 0, or negative errno. */
static int judge(int dir_fd, struct verdict *verdict)
{
	_cleanup_(textfile_closep) FILE *f = NULL;
	char line[LINE_SIZE_MAX];
	int r;

	r = textfile_from(regular_open(dir_fd, PTD_SNAPSHOT_MANIFEST, O_NOFOLLOW), "r", &f);
	if (r < 0)
		return r;
	while (fgets(line, sizeof(line), f)) {
		char *value = strchr(line, '=');

		if (!value)
			continue;
		*value++ = 0;
		value[strcspn(value, "\n")] = 0;
		judge_line(verdict, line, value);
	}
	return ferror(f) ? -EIO : 0;
}

/* Look whether the snapshot @id fits the crash better than @best. Return: an exit status. */
static int consider(sd_bus *bus, const char *id, const struct coredump *coredump,
		    struct candidate *best)
{
	struct verdict verdict = { .coredump = coredump };
	struct candidate candidate = { .dir_fd = -1 };
	int r;

	r = client_open_snapshot(bus, id, &candidate.dir_fd);
	/* It was removed meanwhile. */
	if (r != EXIT_OK)
		return r == EXIT_NO_SNAPSHOT ? EXIT_OK : r;
	r = judge(candidate.dir_fd, &verdict);
	candidate.is_triggered = verdict.is_command && verdict.is_crash;
	candidate.tid = candidate.is_triggered ? verdict.trigger_tid : 0;
	(void)snprintf(candidate.id, sizeof(candidate.id), "%s", id);
	/* The first one after the crash is the one whose rings reach back furthest. One of the same
	 * second may have been taken before the crash. */
	if (r < 0 || (verdict.is_limited && !verdict.is_in_scope) ||
	    (!candidate.is_triggered &&
	     (snapid_time(id) < coredump->time ||
	      (best->dir_fd >= 0 && snapid_time(best->id) > coredump->time)))) {
		candidate_deinit(&candidate);
		return EXIT_OK;
	}
	candidate_deinit(best);
	*best = candidate;
	return EXIT_OK;
}

/* Read the id of the next snapshot of the list. Return: whether there is one, or negative errno. */
static int next_id(sd_bus_message *list, const char **ret_id)
{
	const struct client_field fields[] = { { "id", 's', ret_id } };
	int r;

	r = sd_bus_message_at_end(list, false);
	if (r != 0)
		return r < 0 ? r : 0;
	*ret_id = "";
	r = client_read_fields(list, fields, ARRAY_LEN(fields));
	return r < 0 ? r : 1;
}

/* Find the snapshot of the crash. Return: an exit status; @ret_best has no directory if there is
 * none. */
static int find_snapshot(sd_bus *bus, const struct coredump *coredump, struct candidate *ret_best)
{
	_cleanup_(sd_bus_message_unrefp) sd_bus_message *list = NULL;
	const char *id;
	unsigned n = 0;
	int r, more;

	r = client_call(bus, "ListSnapshots", &list, "");
	if (r != EXIT_OK)
		return r;
	more = sd_bus_message_enter_container(list, 'a', "a{sv}");
	while (more >= 0 && (more = next_id(list, &id)) > 0) {
		if (snapid_time(id) + BEFORE_SECONDS < coredump->time || n == LOOKED_AT_MAX)
			continue;
		n++;
		r = consider(bus, id, coredump, ret_best);
		if (r != EXIT_OK || ret_best->is_triggered)
			return r;
	}
	return more < 0 ? client_bad_reply("ListSnapshots", more) : EXIT_OK;
}

/* --- what is printed -------------------------------------------------------------------------- */

static void print_number(struct show_pairs *pairs, const char *key, uint32_t n)
{
	char text[16];

	(void)snprintf(text, sizeof(text), "%" PRIu32, n);
	show_pair(pairs, key, n > 0 ? text : NULL);
}

static void print_crash(const struct coredump *coredump, const struct candidate *snapshot,
			uint32_t tid, bool json)
{
	struct show_pairs pairs = { .json = json };
	const time_t at = (time_t)coredump->time;
	char text[64] = "?";
	struct tm tm;

	if (gmtime_r(&at, &tm))
		(void)strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &tm);
	show_pair(&pairs, "time", text);
	print_number(&pairs, "pid", coredump->pid);
	print_number(&pairs, "tid", tid);
	show_pair(&pairs, "comm", coredump->comm);
	show_pair(&pairs, "exe", coredump->exe);
	show_pair(&pairs, "signal", coredump->signal);
	show_pair(&pairs, "core", coredump->core_file);
	show_pair(&pairs, "snapshot", snapshot->dir_fd >= 0 ? snapshot->id : NULL);
	show_pairs_end(&pairs);
}

/* Show the last instructions of the thread @tid, or if it is 0, of each thread of the process. */
static int show_instructions(const struct candidate *snapshot, uint32_t pid, uint32_t tid,
			     uint32_t n_last)
{
	char who[16], last[16];
	const char *const words[] = { "text", tid ? "--tid" : "--pid", who, "--last", last, NULL };
	int status, r;

	(void)snprintf(who, sizeof(who), "%" PRIu32, tid ? tid : pid);
	(void)snprintf(last, sizeof(last), "%" PRIu32, n_last);
	r = decode_run(snapshot->dir_fd, words, &status);
	return r == EXIT_OK && status == 0 ? EXIT_OK : EXIT_FAILED;
}

static int show_found(const struct context *context, const struct crash_wish *wish,
		      const struct coredump *coredump, const struct candidate *snapshot)
{
	const uint32_t tid = coredump->tid ? coredump->tid : snapshot->tid;

	print_crash(coredump, snapshot, tid, context->json);
	if (snapshot->dir_fd < 0)
		return log_as(EXIT_NO_SNAPSHOT,
			      "no snapshot has process %" PRIu32 ", which crashed", coredump->pid);
	if (context->json)
		return EXIT_OK;
	if (tid == 0)
		log_notice("which thread crashed is not known: showing all of the process");
	putchar('\n');
	return show_instructions(snapshot, coredump->pid, tid, wish->n_last);
}

int crash_show(const struct context *context, const struct crash_wish *wish)
{
	_cleanup_(sd_bus_flush_close_unrefp) sd_bus *bus = NULL;
	struct candidate best = { .dir_fd = -1 };
	struct coredump coredump;
	int r;

	r = coredump_init(&coredump, wish->journal, wish->match);
	if (r == -ENODATA)
		return log_as(EXIT_FAILED, "the journal has no core dump%s%s that you may see",
			      wish->match ? " of " : "", wish->match ? wish->match : "");
	if (r < 0)
		return log_errno_as(EXIT_FAILED, r, "cannot read core dumps from the journal: %m");
	r = client_connect(context->socket, &bus);
	if (r == EXIT_OK)
		r = find_snapshot(bus, &coredump, &best);
	if (r == EXIT_OK)
		r = show_found(context, wish, &coredump, &best);
	candidate_deinit(&best);
	coredump_deinit(&coredump);
	return r;
}
