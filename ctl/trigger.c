/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "ctl/trigger.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include "base/log.h"
#include "ctl/client.h"
#include "ctl/copyout.h"
#include "ctl/show.h"
#include "ctl/verb.h"
#include "util/peeruser.h"
#include "util/qemuoption.h"
#include "util/quietthread.h"

#define BACKLOG 128

/* Of a socket's name, with a NUL that the kernel does not count. */
#define NAME_SIZE sizeof(((struct sockaddr_un *)0)->sun_path)

struct trigger {
	const struct trigger_wish *wish; /* borrowed */
	char *options;
	int listen_fd;
	bool is_listening; /* the thread runs; until it has ended the rest belongs to it */
	pthread_t thread;
	uint32_t n_taken;
	int status; /* exit status of the first snapshot that failed */
};

/* Write what held, such as "exit:failure (3)". */
static void describe_event(const struct trigger_wish *wish, const struct condition_event *event,
			   char ret_text[static CLIENT_TRIGGER_SIZE])
{
	const char *text = wish->conditions[event->index];

	if (strcmp(text, "exit:failure") == 0)
		(void)snprintf(ret_text, CLIENT_TRIGGER_SIZE, "exit:%" PRIu32, event->number);
	else
		(void)snprintf(ret_text, CLIENT_TRIGGER_SIZE, "%s", text);
}

static int show_snapshot(const struct trigger_wish *wish, sd_bus_message *reply,
			 const struct client_snapshot *snapshot, const struct client_scope *scope)
{
	if (!wish->context->json) {
		log_notice("%s: thread %" PRIu32 " of process %" PRIu32, scope->trigger,
			   scope->trigger_tid, scope->command_pid);
		show_taken(snapshot, wish->output, scope->started_ns);
		return EXIT_OK;
	}
	return show_reply(stderr, reply, "WaitSnapshot");
}

/* Take a snapshot because of @event. @answer is sent to @fd as soon as it is taken. */
static int take_snapshot(const struct trigger_wish *wish, const struct condition_event *event,
			 int fd, uint8_t answer)
{
	_cleanup_(sd_bus_flush_close_unrefp) sd_bus *bus = NULL;
	_cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
	_cleanup_(client_snapshot_deinit) struct client_snapshot snapshot = {};
	struct client_scope scope = *wish->scope;
	int kept = EXIT_OK, r;

	describe_event(wish, event, scope.trigger);
	scope.trigger_tid = event->tid;
	scope.trigger_ns = event->time_ns;
	scope.command_pid = event->pid;
	r = client_connect(wish->context->socket, &bus);
	if (r == EXIT_OK)
		r = client_snapshot(bus, &scope, &reply, &snapshot);
	(void)send(fd, &answer, sizeof(answer), MSG_NOSIGNAL | MSG_DONTWAIT);
	if (r == EXIT_OK)
		kept = show_without_room(&snapshot);
	if (r == EXIT_OK && wish->output)
		r = copyout_snapshot(bus, snapshot.id, wish->output);
	if (r == EXIT_OK)
		r = show_snapshot(wish, reply, &snapshot, &scope);
	return r == EXIT_OK ? kept : r;
}

static void serve(struct trigger *trigger, int fd)
{
	const struct trigger_wish *wish = trigger->wish;
	const bool is_over = trigger->n_taken >= wish->count;
	uint8_t answer = trigger->n_taken + 1 >= wish->count ? CONDITION_OVER : CONDITION_GO_ON;
	const struct timeval patience = { .tv_sec = 1 };
	struct condition_event event;
	int r;

	(void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	/* Only processes of the same user are believed. */
	if (!peeruser_is(fd, geteuid()) ||
	    recv(fd, &event, sizeof(event), MSG_TRUNC) != sizeof(event) ||
	    event.index >= wish->n_conditions)
		return;
	if (is_over) {
		(void)send(fd, &answer, sizeof(answer), MSG_NOSIGNAL | MSG_DONTWAIT);
		return;
	}
	trigger->n_taken++;
	r = take_snapshot(wish, &event, fd, answer);
	if (trigger->status == EXIT_OK)
		trigger->status = r;
}

/* The thread. It ends when accept() fails, because the socket was shut down. */
static void *listen_for_events(void *userdata)
{
	struct trigger *trigger = userdata;

	for (;;) {
		const int fd = accept4(trigger->listen_fd, NULL, NULL, SOCK_CLOEXEC);

		if (fd < 0 && (errno == EINTR || errno == ECONNABORTED))
			continue;
		if (fd < 0)
			return NULL;
		serve(trigger, fd);
		(void)fd_close(fd);
	}
}

/* Listen at a name in the abstract namespace that the kernel chooses. */
static int open_socket(struct trigger *trigger, char ret_name[static NAME_SIZE])
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	socklen_t size = sizeof(address);
	size_t n;

	trigger->listen_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (trigger->listen_fd < 0 ||
	    bind(trigger->listen_fd, (const struct sockaddr *)&address,
		 sizeof(address.sun_family)) < 0 ||
	    listen(trigger->listen_fd, BACKLOG) < 0 ||
	    getsockname(trigger->listen_fd, (struct sockaddr *)&address, &size) < 0)
		return -errno;
	n = size - offsetof(struct sockaddr_un, sun_path) - 1;
	memcpy(ret_name, address.sun_path + 1, n);
	ret_name[n] = '\0';
	return 0;
}

static int make_options(struct trigger *trigger, const char *name)
{
	const struct trigger_wish *wish = trigger->wish;
	size_t size = strlen(name) + sizeof(",when=,trigger=");
	char *to;

	for (uint32_t i = 0; i < wish->n_conditions; i++)
		size += qemuoption_size(wish->conditions[i]) + 1;
	trigger->options = to = malloc(size);
	if (!to)
		return -ENOMEM;
	to = stpcpy(to, ",when=");
	for (uint32_t i = 0; i < wish->n_conditions; i++) {
		if (i > 0)
			*to++ = CONDITION_SEPARATOR;
		to = qemuoption_put(to, wish->conditions[i]);
	}
	to = stpcpy(to, ",trigger=");
	(void)stpcpy(to, name);
	return 0;
}

int trigger_new(const struct trigger_wish *wish, struct trigger **ret_trigger)
{
	_cleanup_(trigger_freep) struct trigger *trigger = calloc(1, sizeof(*trigger));
	char name[NAME_SIZE];
	int r = -ENOMEM;

	if (trigger) {
		trigger->wish = wish;
		trigger->status = EXIT_OK;
		r = open_socket(trigger, name);
	}
	if (r == 0)
		r = make_options(trigger, name);
	if (r == 0)
		r = quietthread_start(&trigger->thread, NULL, listen_for_events, trigger);
	if (r < 0)
		return log_error_errno(r, "--when: cannot listen for the program: %m");
	trigger->is_listening = true;
	*ret_trigger = TAKE(trigger);
	return 0;
}

const char *trigger_options(const struct trigger *trigger)
{
	return trigger->options;
}

static void stop_listening(struct trigger *trigger)
{
	if (!trigger->is_listening)
		return;
	(void)shutdown(trigger->listen_fd, SHUT_RDWR);
	(void)pthread_join(trigger->thread, NULL);
	trigger->is_listening = false;
}

int trigger_finish(struct trigger *trigger, uint32_t *ret_n_taken)
{
	stop_listening(trigger);
	*ret_n_taken = trigger->n_taken;
	return trigger->status;
}

struct trigger *trigger_free(struct trigger *trigger)
{
	if (!trigger)
		return NULL;
	stop_listening(trigger);
	trigger->listen_fd = fd_close(trigger->listen_fd);
	free(trigger->options);
	free(trigger);
	return NULL;
}
