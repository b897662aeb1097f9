/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "ctl/own.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/log.h"
#include "ctl/client.h"
#include "ctl/show.h"
#include "ctl/unpack.h"
#include "ctl/verb.h"
#include "ptd/control.h"
#include "util/fullwrite.h"
#include "util/ptdecode.h"

#define COPY_SIZE ((size_t)64 << 10)

static const char *name_of(const struct own_wish *wish)
{
	return wish->output ? wish->output : "standard output";
}

static int cannot_write(const struct own_wish *wish, int r)
{
	errno = -r;
	log_error("%s: cannot write: %m", name_of(wish));
	return EXIT_FAILED;
}

/* Return: whether the output comes as an archive of a directory. */
static bool is_archived(const struct own_wish *wish)
{
	return wish->format && ptdecode_format_is(wish->format, PTD_CONTROL_ARCHIVED);
}

int own_check(const struct own_wish *wish)
{
	const bool archived = is_archived(wish);
	int fd;

	if (archived && !wish->output && isatty(STDOUT_FILENO)) {
		log_error("-f %s makes a directory: -o DIRECTORY says where. Into a pipe, it is "
			  "written as a tar archive",
			  wish->format);
		return EXIT_USAGE;
	}
	if (!wish->output)
		return EXIT_OK;
	if (archived)
		return unpack_check(wish->output);
	fd = open(wish->output, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOCTTY, 0600);
	if (fd < 0)
		return cannot_write(wish, -errno);
	(void)fd_close(fd);
	return EXIT_OK;
}

/* Copy what ptdecode writes, as it comes. */
static int copy_output(int from, int to)
{
	_cleanup_(freep) uint8_t *bytes = malloc(COPY_SIZE);
	ssize_t n;
	int r = bytes ? 0 : -ENOMEM;

	while (r == 0 && (n = read(from, bytes, COPY_SIZE)) != 0) {
		if (n < 0 && errno != EINTR)
			return -errno;
		if (n > 0)
			r = fullwrite(to, bytes, (size_t)n);
	}
	return r;
}

static int write_file(const char *path, int from)
{
	_cleanup_(fd_closep) int fd =
	    open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOCTTY, 0600);
	int r;

	if (fd < 0)
		return -errno;
	r = copy_output(from, fd);
	return r == 0 && fsync(fd) < 0 && errno != EINVAL && errno != EROFS ? -errno : r;
}

/* Write what comes. @ret_unpack: a directory that was made of it. Return: an exit status. */
static int write_output(const struct own_wish *wish, int from, struct unpack *ret_unpack)
{
	int r;

	if (wish->output && is_archived(wish))
		return unpack_from(from, wish->output, ret_unpack);
	r = wish->output ? write_file(wish->output, from) : copy_output(from, STDOUT_FILENO);
	return r < 0 ? cannot_write(wish, r) : EXIT_OK;
}

static int show_result(sd_bus_message *reply, bool json)
{
	uint32_t status = PTDECODE_FAILED, n_missing = 0, n_left_out = 0;
	const char *messages = "";
	const struct client_field fields[] = {
		{ "status", 'u', &status },
		{ "messages", 's', &messages },
		{ "objects_missing", 'u', &n_missing },
		{ "processes_left_out", 'u', &n_left_out },
	};
	int r;

	r = client_read_fields(reply, fields, ARRAY_LEN(fields));
	if (r >= 0 && json) {
		r = sd_bus_message_rewind(reply, true);
		if (r >= 0)
			r = show_json(stderr, reply);
	} else if (r >= 0) {
		fputs(messages, stderr);
		if (n_missing > 0)
			log_notice(
			    "%u file%s that ran %s left out: you may not read %s, or %s gone",
			    n_missing, plural(n_missing), n_missing == 1 ? "is" : "are",
			    n_missing == 1 ? "it" : "them", n_missing == 1 ? "it is" : "they are");
		if (n_left_out > 0)
			log_notice("%u process%s left out, or not shown from beginning to end: "
				   "the recorder did not know in time whether you may see %s",
				   n_left_out, n_left_out == 1 ? " is" : "es are",
				   n_left_out == 1 ? "it" : "them");
	}
	if (r < 0)
		return client_bad_reply("WaitOwn", r);
	return status == PTDECODE_OK || status == PTDECODE_GAPS ? EXIT_OK
	       : status == PTDECODE_USAGE                       ? EXIT_USAGE
								: EXIT_FAILED;
}

/* What became of it is asked for before the output is read: ptd cuts off a client who may see only
 * his own, and asks for nothing. */
int own_decode(sd_bus *bus, const struct own_wish *wish, bool json)
{
	_cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL, *result = NULL;
	struct client_pending pending;
	struct unpack unpack = {};
	int output, r, written;
	const char *id;

	r = client_call(bus, "TakeOwn", &reply, "sa{sv}", wish->format, 5, "since", "t",
			wish->since_ns, "pid", "u", wish->pid, "tid", "u", wish->tid, "last", "t",
			wish->last, "time", "s", wish->time ? wish->time : "");
	if (r != EXIT_OK)
		return r;
	r = sd_bus_message_read(reply, "sh", &id, &output); /* both borrowed from the message */
	if (r < 0)
		return client_bad_reply("TakeOwn", r);
	r = client_begin(bus, "WaitOwn", &pending, "s", id);
	if (r == EXIT_OK)
		r = sd_bus_flush(bus) < 0 ? EXIT_UNREACHABLE : EXIT_OK;
	if (r != EXIT_OK)
		return r;
	written = write_output(wish, output, &unpack);
	r = written == EXIT_OK ? client_finish(&pending, &result) : written;
	if (r == EXIT_OK)
		r = show_result(result, json);
	if (r != EXIT_OK)
		unpack_undo(&unpack);
	return r;
}
