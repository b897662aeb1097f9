/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "ctl/client.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "ctl/verb.h"
#include "ptd/control.h"
#include "util/vec.h"

#define SECOND_US         UINT64_C(1000000)
#define RECONNECT_SECONDS 20u /* a service is started again after a second */

static int unreachable(const char *path, int r)
{
	(void)log_error_errno(r, "cannot reach ptd at %s: %m", path);
	if (r == -EACCES)
		log_error("the mode of the socket, or of a directory above it, keeps you away");
	if (r == -ENOENT || r == -ECONNREFUSED)
		log_error("is it running? (systemctl start ptd, or ptd --runtime-dir DIR and "
			  "ptctl --socket DIR/control)");
	return r == -EACCES || r == -EPERM ? EXIT_DENIED : EXIT_UNREACHABLE;
}

static int open_socket(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd, r;

	if (strlen(path) >= sizeof(address.sun_path))
		return -ENAMETOOLONG;
	strcpy(address.sun_path, path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	do
		r = connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0 ? -errno
											: 0;
	while (r == -EINTR);
	if (r < 0) {
		(void)fd_close(fd);
		return r;
	}
	return fd;
}

/* Takes the descriptor, or reports the error that it is. */
static int start_bus(const char *socket, int fd, sd_bus **ret_bus)
{
	_cleanup_(sd_bus_unrefp) sd_bus *bus = NULL;
	int r;

	if (fd < 0)
		return unreachable(socket, fd);
	r = sd_bus_new(&bus);
	if (r >= 0)
		r = sd_bus_set_fd(bus, fd, fd);
	if (r < 0) {
		(void)fd_close(fd);
		return unreachable(socket, r);
	}
	r = sd_bus_negotiate_fds(bus, true);
	if (r >= 0)
		r = sd_bus_start(bus);
	if (r < 0)
		return unreachable(socket, r);
	*ret_bus = TAKE(bus);
	return EXIT_OK;
}

int client_probe(const char *socket)
{
	int fd = open_socket(socket);

	if (fd < 0)
		return fd;
	(void)fd_close(fd);
	return 0;
}

int client_connect(const char *socket, sd_bus **ret_bus)
{
	return start_bus(socket, open_socket(socket), ret_bus);
}

bool client_is_closed(sd_bus *bus)
{
	struct pollfd wanted = { .fd = sd_bus_get_fd(bus) };

	return wanted.fd < 0 || (poll(&wanted, 1, 0) == 1 && wanted.revents != 0);
}

int client_reconnect(const char *socket, sd_bus **bus, bool *ret_is_other)
{
	sd_bus *other;
	int fd, r;

	*ret_is_other = false;
	if (!client_is_closed(*bus))
		return EXIT_OK;
	fd = open_socket(socket);
	if (fd == -ENOENT || fd == -ECONNREFUSED)
		log_notice("ptd went away: waiting %u s for the next one", RECONNECT_SECONDS);
	for (unsigned i = 0; i < RECONNECT_SECONDS * 10 && (fd == -ENOENT || fd == -ECONNREFUSED);
	     i++) {
		(void)nanosleep(&(struct timespec){ .tv_nsec = 100000000 }, NULL);
		fd = open_socket(socket);
	}
	r = start_bus(socket, fd, &other);
	if (r != EXIT_OK)
		return r;
	(void)sd_bus_flush_close_unref(*bus);
	*bus = other;
	*ret_is_other = true;
	return EXIT_OK;
}

static bool gone(const sd_bus_error *error, int r)
{
	return r == -ECONNRESET || r == -ENOTCONN || r == -EPIPE ||
	       sd_bus_error_has_name(error, SD_BUS_ERROR_NO_REPLY);
}

static int exit_status(const sd_bus_error *error, int r)
{
	if (sd_bus_error_has_name(error, PTD_ERROR_BUSY))
		return EXIT_BUSY;
	if (sd_bus_error_has_name(error, PTD_ERROR_NO_SNAPSHOT))
		return EXIT_NO_SNAPSHOT;
	return gone(error, r) ? EXIT_UNREACHABLE : EXIT_FAILED;
}

/* A call whose reply is waited for. */
struct client_pending {
	sd_bus *bus; /* borrowed */
	sd_bus_message *reply;
};

static int on_answer(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
	struct client_pending *pending = userdata;

	pending->reply = sd_bus_message_ref(m);
	return 0;
}

/* Wait for the reply without a time limit, because a snapshot takes as long as the disk takes. On a
 * terminal, the user sees the waiting time after a second. */
static int wait_answer(struct client_pending *p, sd_bus_error *error, sd_bus_message **ret_reply)
{
	const bool tell = isatty(STDERR_FILENO);
	unsigned seconds = 0;
	int r = 0;

	while (r >= 0 && !p->reply) {
		r = sd_bus_process(p->bus, NULL);
		if (r != 0)
			continue;
		r = sd_bus_wait(p->bus, SECOND_US);
		if (r == -EINTR) /* a preloaded library may have timers */
			r = 1;
		if (r == 0 && tell)
			fprintf(stderr, "\rptctl: waiting for ptd, %u s ", ++seconds);
	}
	if (seconds > 0)
		fputs("\r\033[K", stderr);
	if (r < 0)
		return r;
	if (sd_bus_message_is_method_error(p->reply, NULL)) {
		r = sd_bus_error_copy(error, sd_bus_message_get_error(p->reply));
		p->reply = sd_bus_message_unref(p->reply);
		return r;
	}
	*ret_reply = TAKE(p->reply);
	return 0;
}

static int report_failed(const char *method, const sd_bus_error *error, int r)
{
	if (gone(error, r)) {
		log_error("%s: ptd went away, it stopped or was killed: its log says why "
			  "(journalctl -u ptd)",
			  method);
	} else if (sd_bus_error_is_set(error)) {
		log_error("%s", error->message ? error->message : error->name);
	} else {
		(void)log_error_errno(r, "%s: no answer from ptd: %m", method);
	}
	return exit_status(error, r);
}

int client_call(sd_bus *bus, const char *method, sd_bus_message **ret_reply, const char *types, ...)
{
	_cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
	_cleanup_(sd_bus_message_unrefp) sd_bus_message *call = NULL;
	struct client_pending pending = { .bus = bus };
	va_list ap;
	int r;

	va_start(ap, types);
	r = sd_bus_message_new_method_call(bus, &call, NULL, PTD_CONTROL_OBJECT,
					   PTD_CONTROL_INTERFACE, method);
	if (r >= 0)
		r = sd_bus_message_appendv(call, types, ap);
	va_end(ap);
	if (r >= 0)
		r = sd_bus_call_async(bus, NULL, call, on_answer, &pending, UINT64_MAX);
	if (r >= 0)
		r = wait_answer(&pending, &error, ret_reply);
	return r >= 0 ? EXIT_OK : report_failed(method, &error, r);
}

int client_bad_reply(const char *method, int r)
{
	return log_errno_as(EXIT_FAILED, r, "%s: cannot make sense of ptd's answer: %m", method);
}

int client_open_snapshot(sd_bus *bus, const char *id, int *ret_fd)
{
	_cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
	int fd, r;

	r = client_call(bus, "OpenSnapshot", &reply, "s", id);
	if (r != EXIT_OK)
		return r;
	r = sd_bus_message_read(reply, "h", &fd); /* borrowed from the message */
	if (r < 0)
		return client_bad_reply("OpenSnapshot", r);
	*ret_fd = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	if (*ret_fd < 0)
		return log_as(EXIT_FAILED, "cannot open snapshot %s: %m", id);
	return EXIT_OK;
}

/* The type of a field that is a list of what was refused. */
#define FIELD_REFUSED 'R'

struct refused_list {
	VEC(struct client_refused) vec;
};

/* Read the value of "refused". */
static int read_refused(sd_bus_message *message, struct refused_list *list)
{
	int r;

	if ((r = sd_bus_message_enter_container(message, 'v', "aa{sv}")) < 0 ||
	    (r = sd_bus_message_enter_container(message, 'a', "a{sv}")) < 0)
		return r;
	while ((r = sd_bus_message_at_end(message, false)) == 0) {
		struct client_refused refused = { .what = "?", .reason = "" };
		const struct client_field fields[] = { { "what", 's', &refused.what },
						       { "reason", 's', &refused.reason },
						       { "uid", 'u', &refused.uid },
						       { "times", 't', &refused.times } };

		r = client_read_fields(message, fields, ARRAY_LEN(fields));
		if (r == 0)
			r = vec_push(&list->vec, refused);
		if (r < 0)
			return r;
	}
	if (r < 0 || (r = sd_bus_message_exit_container(message)) < 0)
		return r;
	return sd_bus_message_exit_container(message);
}

/* The next value in the message is a variant. */
static int read_field(sd_bus_message *m, const char *key, const struct client_field *fields,
		      size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(fields[i].key, key) == 0)
			return fields[i].type == FIELD_REFUSED
				   ? read_refused(m, fields[i].value)
				   : sd_bus_message_read(m, "v", (char[]){ fields[i].type, 0 },
							 fields[i].value);
	return sd_bus_message_skip(m, "v");
}

int client_read_fields(sd_bus_message *message, const struct client_field *fields, size_t n_fields)
{
	const char *key;
	int r;

	r = sd_bus_message_enter_container(message, 'a', "{sv}");
	while (r >= 0 && (r = sd_bus_message_enter_container(message, 'e', "sv")) > 0) {
		r = sd_bus_message_read(message, "s", &key);
		if (r >= 0)
			r = read_field(message, key, fields, n_fields);
		if (r >= 0)
			r = sd_bus_message_exit_container(message);
	}
	if (r >= 0)
		r = sd_bus_message_exit_container(message);
	return r < 0 ? r : 0;
}

int client_read_refused(sd_bus_message *message, struct client_refused **ret_list, size_t *ret_n)
{
	struct refused_list list = {};
	const struct client_field fields[] = { { "refused", FIELD_REFUSED, &list } };
	int r;

	r = sd_bus_message_rewind(message, true);
	if (r >= 0)
		r = client_read_fields(message, fields, ARRAY_LEN(fields));
	if (r < 0) {
		vec_deinit(&list.vec);
		return r;
	}
	*ret_list = list.vec.items;
	*ret_n = list.vec.n;
	return 0;
}

void client_snapshot_deinit(struct client_snapshot *snapshot)
{
	free(snapshot->id);
	free(snapshot->path);
	*snapshot = (struct client_snapshot){};
}

int client_snapshot(sd_bus *bus, const struct client_scope *scope, sd_bus_message **ret_reply,
		    struct client_snapshot *ret_snapshot)
{
	_cleanup_(sd_bus_message_unrefp) sd_bus_message *taken = NULL, *done = NULL;
	const char *id = "", *path = "";
	struct client_snapshot s = {};
	const struct client_field fields[] = {
		{ "path", 's', &path },
		{ "bytes", 't', &s.bytes },
		{ "pt_bytes", 't', &s.bytes_pt },
		{ "pt_overwritten", 't', &s.bytes_overwritten },
		{ "complete_since", 't', &s.complete_since_ns },
		{ "taken", 't', &s.taken_ns },
		{ "objects_missing", 'u', &s.n_missing },
		{ "objects_without_room", 'u', &s.n_without_room },
	};
	int r;

	r = client_call(bus, "TakeSnapshot", &taken, "a{sv}", 10, "since", "t", scope->since_ns,
			"pid", "u", scope->pid, "cgroup", "s", scope->cgroup ? scope->cgroup : "",
			"cpus", "s", scope->cpus ? scope->cpus : "", "command", "s", scope->command,
			"command_pid", "u", scope->command_pid, "started", "t", scope->started_ns,
			"trigger", "s", scope->trigger, "trigger_tid", "u", scope->trigger_tid,
			"trigger_time", "t", scope->trigger_ns);
	if (r != EXIT_OK)
		return r;
	r = sd_bus_message_read(taken, "s", &id);
	if (r < 0)
		return client_bad_reply("TakeSnapshot", r);
	r = client_call(bus, "WaitSnapshot", &done, "s", id);
	if (r != EXIT_OK)
		return r;
	r = client_read_fields(done, fields, ARRAY_LEN(fields));
	if (r < 0)
		return client_bad_reply("WaitSnapshot", r);

	s.id = strdup(id);
	s.path = strdup(path);
	if (!s.id || !s.path) {
		client_snapshot_deinit(&s);
		return client_bad_reply("WaitSnapshot", -ENOMEM);
	}
	if (ret_reply)
		*ret_reply = TAKE(done);
	*ret_snapshot = s;
	return EXIT_OK;
}

int client_source(sd_bus *bus, struct client_source *ret_source)
{
	_cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
	struct client_source source = {};
	const char *name = "";
	const struct client_field fields[] = { { "source", 's', &name },
					       { "aux_size", 't', &source.aux_size },
					       { "rings_since", 't', &source.rings_ns } };
	int r;

	r = client_call(bus, "GetStatus", &reply, "");
	if (r != EXIT_OK)
		return r;
	r = client_read_fields(reply, fields, ARRAY_LEN(fields));
	if (r < 0)
		return client_bad_reply("GetStatus", r);
	source.is_emulated = strcmp(name, "emu") == 0;
	*ret_source = source;
	return EXIT_OK;
}
