/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/cmd/fetcher.h"

#include <dlfcn.h>
#include <elfutils/debuginfod.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/log.h"
#include "decoder/cmd/fetch.h"
#include "util/fdpass.h"
#include "util/message.h"

/* Only this process loads it, because it brings some thirty other libraries along. */
#define LIBRARY "libdebuginfod.so.1"

/*
 * The input decides which build-ids are asked for, and may name any number of them. A question to a
 * server that does not answer takes a minute and a half; one to a server that lacks the file, a
 * moment.
 */
#define FAILURES_MAX 3u /* in a row */
#define MISSES_MAX   1024u

struct library {
	__typeof__(&debuginfod_begin) begin;
	__typeof__(&debuginfod_end) end;
	__typeof__(&debuginfod_find_executable) find_executable;
	__typeof__(&debuginfod_find_debuginfo) find_debuginfo;
	debuginfod_client *client;
};

static int load(struct library *ret_library, struct fetch_answer *answer)
{
	struct library l = {};
	void *handle = dlopen(LIBRARY, RTLD_NOW);

	if (handle) {
		l.begin = (__typeof__(l.begin))dlsym(handle, "debuginfod_begin");
		l.end = (__typeof__(l.end))dlsym(handle, "debuginfod_end");
		l.find_executable =
		    (__typeof__(l.find_executable))dlsym(handle, "debuginfod_find_executable");
		l.find_debuginfo =
		    (__typeof__(l.find_debuginfo))dlsym(handle, "debuginfod_find_debuginfo");
	}
	if (l.begin && l.end && l.find_executable && l.find_debuginfo)
		l.client = l.begin();
	if (l.client) {
		*ret_library = l;
		return 0;
	}
	(void)snprintf(answer->text, sizeof(answer->text), "cannot use " LIBRARY ": %s",
		       handle ? "out of memory, or not a library that has its functions"
			      : dlerror());
	return -ENOPKG;
}

/* How many questions went wrong so far. */
struct patience {
	unsigned n_failures, n_misses;
	bool is_over; /* no more questions are asked */
};

/* Count the answer @r: a descriptor, or negative errno. */
static void note(struct patience *patience, int r)
{
	if (r == -ENOENT)
		patience->n_misses++;
	patience->n_failures = r < 0 && r != -ENOENT ? patience->n_failures + 1 : 0;
	if (patience->n_failures == FAILURES_MAX)
		log_warning(
		    "--debuginfod: %u questions in a row failed, the last because of \"%s\": "
		    "no more are asked",
		    FAILURES_MAX, strerror(-r));
	else if (patience->n_misses == MISSES_MAX)
		log_warning("--debuginfod: %u files were not to be had: no more are asked for",
			    MISSES_MAX);
	else
		return;
	patience->is_over = true;
}

static void answer_question(const struct library *l, const struct fetch_question *question,
			    struct patience *patience, int socket)
{
	struct fetch_answer answer = { .r = -EINVAL };
	const struct buildid *id = &question->id;
	char *path = NULL;
	int fd = -1;

	/* The question comes from the confined process, so it may hold anything. */
	if (patience->is_over) {
		fd = -ENOENT;
	} else if (id->size > 0 && id->size <= BUILDID_MAX) {
		fd = question->what == PTD_FETCH_DEBUG
			 ? l->find_debuginfo(l->client, id->bytes, id->size, &path)
			 : l->find_executable(l->client, id->bytes, id->size, &path);
		note(patience, fd);
	}
	answer.r = fd < 0 ? fd : 0;
	(void)snprintf(answer.text, sizeof(answer.text), "%s", path ?: "");
	(void)!fdpass_send(socket, &answer, sizeof(answer), fd < 0 ? -1 : fd);
	(void)fd_close(fd);
	free(path);
}

_Noreturn static void serve(int socket)
{
	struct fetch_answer answer = {};
	struct fetch_question question;
	struct patience patience = {};
	struct library l = {};

	/* This process must end with the decoder, even while it waits for a server. */
	(void)prctl(PR_SET_PDEATHSIG, SIGTERM);
	answer.r = load(&l, &answer);
	(void)!fdpass_send(socket, &answer, sizeof(answer), -1);
	if (answer.r < 0)
		_exit(1);
	while (read(socket, &question, sizeof(question)) == sizeof(question))
		answer_question(&l, &question, &patience, socket);
	l.end(l.client);
	_exit(0);
}

/* The fetcher's first answer says whether it could load the library. */
static int begin(struct fetcher *f, char **reterr_message)
{
	struct fetch_answer answer = {};
	int fd, r;

	r = fetch_receive(f->socket, &answer, &fd);
	(void)fd_close(fd);
	if (r < 0)
		return message_set(reterr_message, r, "--debuginfod: %s", strerror(-r));
	if (answer.r < 0)
		return message_set(reterr_message, answer.r, "--debuginfod: %.*s",
				   (int)sizeof(answer.text) - 1, answer.text);
	return 0;
}

int fetcher_start(struct fetcher *ret_fetcher, char **reterr_message)
{
	const char *urls = getenv(DEBUGINFOD_URLS_ENV_VAR);
	struct fetcher f;
	int sockets[2], r;

	if (!urls || !urls[0])
		return message_set(reterr_message, -EINVAL,
				   "--debuginfod: the environment's " DEBUGINFOD_URLS_ENV_VAR
				   " names no server");
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) < 0)
		return message_set(reterr_message, -errno, "--debuginfod: no socket: %s",
				   strerror(errno));
	f.pid = fork();
	if (f.pid < 0) {
		r = -errno;
		(void)fd_close(sockets[0]);
		(void)fd_close(sockets[1]);
		return message_set(reterr_message, r, "--debuginfod: no process: %s", strerror(-r));
	}
	if (f.pid == 0) {
		(void)fd_close(sockets[0]);
		serve(sockets[1]);
	}
	(void)fd_close(sockets[1]);
	f.socket = sockets[0];
	r = begin(&f, reterr_message);
	if (r < 0)
		fetcher_stop(&f);
	else
		*ret_fetcher = f;
	return r;
}

void fetcher_stop(struct fetcher *fetcher)
{
	if (!fetcher->pid)
		return;
	(void)fd_close(fetcher->socket);
	while (waitpid(fetcher->pid, NULL, 0) < 0 && errno == EINTR)
		;
	*fetcher = (struct fetcher){};
}
