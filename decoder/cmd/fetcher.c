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

#include "base/log.h"
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

static void serve(int socket, void *userdata)
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
		return;
	while (read(socket, &question, sizeof(question)) == sizeof(question))
		answer_question(&l, &question, &patience, socket);
	l.end(l.client);
}

int fetcher_start(struct helper *ret_fetcher, char **reterr_message)
{
	const char *urls = getenv(DEBUGINFOD_URLS_ENV_VAR);
	struct fetch_answer answer = {};
	struct helper fetcher;
	int fd, r;

	if (!urls || !urls[0])
		return message_set(reterr_message, -EINVAL,
				   "--debuginfod: the environment's " DEBUGINFOD_URLS_ENV_VAR
				   " names no server");
	r = helper_start(serve, NULL, &fetcher);
	if (r < 0)
		return message_set(reterr_message, r, "--debuginfod: no process: %s", strerror(-r));
	/* The first answer says whether the library could be loaded. */
	r = fdpass_receive(fetcher.socket, &answer, sizeof(answer), &fd);
	(void)fd_close(fd);
	if (r == 0 && answer.r == 0) {
		*ret_fetcher = fetcher;
		return 0;
	}
	helper_stop(&fetcher);
	return message_set(reterr_message, r < 0 ? r : answer.r, "--debuginfod: %.*s",
			   (int)sizeof(answer.text) - 1, r < 0 ? strerror(-r) : answer.text);
}

int fetcher_get(void *fetcher, enum ptd_fetch what, const uint8_t *build_id, size_t size,
		char **ret_path)
{
	const int socket = ((const struct helper *)fetcher)->socket;
	struct fetch_question question = { .what = (uint8_t)what, .id.size = (uint8_t)size };
	struct fetch_answer answer;
	int r, fd;

	if (size > sizeof(question.id.bytes))
		return -ENOENT;
	memcpy(question.id.bytes, build_id, size);
	r = fdpass_ask(socket, &question, sizeof(question));
	if (r == 0)
		r = fdpass_receive(socket, &answer, sizeof(answer), &fd);
	if (r < 0)
		return r;
	if (answer.r < 0 || fd < 0) {
		(void)fd_close(fd);
		return answer.r < 0 ? answer.r : -ENOENT;
	}
	*ret_path = strndup(answer.text, sizeof(answer.text) - 1);
	if (!*ret_path) {
		(void)fd_close(fd);
		return -ENOMEM;
	}
	return fd;
}
