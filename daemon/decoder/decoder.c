/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/decoder/decoder.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "daemon/decoder/archive.h"
#include "daemon/decoder/message.h"
#include "ptd/control.h"
#include "util/peeruser.h"
#include "util/ptdecode.h"

#define SECOND_NS   UINT64_C(1000000000)
#define PATIENCE_S  5 /* for a request, once ptd is connected */
#define NICE        10
#define ARGS_MAX    24u
#define NUMBER_SIZE 24u

#define STATUS_NOT_EXECUTED 127

/* What the temporary files of one decoding may have, and what the files of a directory: they may be
 * memory. */
#define SPILL_MAX  "256M"
#define OUTPUT_MAX "256M"

/* --- programs --------------------------------------------------------------------------------- */

struct arguments {
	const char *items[ARGS_MAX];
	size_t n;
	char numbers[3][NUMBER_SIZE];
	size_t n_numbers;
};

static void add_argument(struct arguments *a, const char *option, const char *value)
{
	a->items[a->n++] = option;
	a->items[a->n++] = value;
}

static void add_number(struct arguments *a, const char *option, uint64_t number)
{
	char *text = a->numbers[a->n_numbers];

	if (number == 0)
		return;
	a->n_numbers++;
	(void)snprintf(text, NUMBER_SIZE, "%" PRIu64, number);
	add_argument(a, option, text);
}

/* A program that works for a request. */
struct program {
	const char *path;
	struct arguments arguments;
	int dir_fd;    /* its working directory */
	int output_fd; /* its standard output; -1: nothing is read of it */
};

/* Become the program. */
static void execute(const struct program *program, int message_fd)
{
	static const char *const environment[] = { "LC_ALL=C.UTF-8", "PATH=/usr/bin:/bin", NULL };
	const int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	const int output_fd = program->output_fd < 0 ? null_fd : program->output_fd;

	/* It ends with the process that watches it. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || null_fd < 0 || dup2(null_fd, 0) < 0 ||
	    dup2(output_fd, 1) < 0 || dup2(message_fd, 2) < 0 || fchdir(program->dir_fd) < 0)
		_exit(STATUS_NOT_EXECUTED);
	(void)close_range(3, UINT32_MAX, CLOSE_RANGE_CLOEXEC);
	(void)execve(program->path, (char *const *)(uintptr_t)program->arguments.items,
		     (char *const *)(uintptr_t)environment);
	_exit(STATUS_NOT_EXECUTED);
}

/* Take what the program says; what has no room is dropped. Return: whether it may say more. */
static bool take_message(int fd, struct decoder_answer *answer)
{
	const size_t n = strlen(answer->message), room = sizeof(answer->message) - 1 - n;
	char dropped[512];
	const ssize_t more =
	    room > 0 ? read(fd, answer->message + n, room) : read(fd, dropped, sizeof(dropped));

	return more > 0 || (more < 0 && (errno == EINTR || errno == EAGAIN));
}

/* Who asked, and until when he waits (CLOCK_MONOTONIC, ns). */
struct asker {
	int socket;
	uint64_t until;
};

/* Wait until the program has closed @message_fd, which it does when it ends. Return: 0; -ETIMEDOUT;
 * or -ECANCELED if ptd has closed the connection. */
static int watch(const struct asker *asker, int message_fd, struct decoder_answer *answer)
{
	for (;;) {
		struct pollfd wanted[] = { { .fd = asker->socket, .events = POLLIN },
					   { .fd = message_fd, .events = POLLIN } };
		const uint64_t now = clock_ns(CLOCK_MONOTONIC);

		if (now >= asker->until)
			return -ETIMEDOUT;
		if (poll(wanted, ARRAY_LEN(wanted), (int)((asker->until - now) / 1000000) + 1) < 0)
			continue;
		if (wanted[0].revents)
			return -ECANCELED;
		if (wanted[1].revents && !take_message(message_fd, answer))
			return 0;
	}
}

/* Run the program until it ends. Return: its exit status, or negative errno. */
static int run(const struct program *program, const struct asker *asker,
	       struct decoder_answer *answer)
{
	int pipe_fds[2], status = 0, r;
	pid_t pid;

	if (pipe2(pipe_fds, O_CLOEXEC) < 0)
		return -errno;
	pid = fork();
	if (pid == 0)
		execute(program, pipe_fds[1]);
	r = pid < 0 ? -errno : 0;
	(void)fd_close(pipe_fds[1]);
	if (pid > 0) {
		r = watch(asker, pipe_fds[0], answer);
		if (r < 0)
			(void)kill(pid, SIGKILL);
		while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
			;
	}
	(void)fd_close(pipe_fds[0]);
	if (r < 0)
		return r;
	/* SIGPIPE: nobody reads any more. */
	if (!WIFEXITED(status))
		return WTERMSIG(status) == SIGPIPE ? -EPIPE : -ECHILD;
	return WEXITSTATUS(status) == STATUS_NOT_EXECUTED ? -ENOEXEC : WEXITSTATUS(status);
}

/* --- one decoding ----------------------------------------------------------------------------- */

/* @directory: what it is to make, in a format that is a directory; or NULL. */
static void prepare_ptdecode(struct program *p, const struct decoder_wish *wish,
			     const char *directory)
{
	struct arguments *a = &p->arguments;

	a->items[a->n++] = "ptdecode";
	add_argument(a, "--threads", "1");
	add_argument(a, "--max-spill", SPILL_MAX);
	add_argument(a, "-f", wish->format);
	add_number(a, "--pid", wish->pid);
	add_number(a, "--tid", wish->tid);
	add_number(a, "--last", wish->last);
	if (wish->time[0])
		add_argument(a, "--time", wish->time);
	if (directory) {
		add_argument(a, "--max-output", OUTPUT_MAX);
		add_argument(a, "-o", directory);
	}
	add_argument(a, "--", ".");
}

/* Have all that is in the directory @path written to @output_fd. Return: as run(). */
static int pack(const char *path, int output_fd, const struct asker *asker,
		struct decoder_answer *answer)
{
	_cleanup_(fd_closep) int dir_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	const struct program tar = {
		.path = "/usr/bin/tar",
		.arguments.items = { "tar", "--sort=name", "--owner=0", "--group=0",
				     "--numeric-owner", "-cf", "-", "--", "." },
		.dir_fd = dir_fd,
		.output_fd = output_fd,
	};

	return dir_fd < 0 ? -errno : run(&tar, asker, answer);
}

/* Return: ptdecode's exit status, or negative errno. */
static int decode_directory(struct program *ptdecode, const struct decoder_wish *wish,
			    const struct asker *asker, struct decoder_answer *answer)
{
	_cleanup_(archive_deinit) struct archive archive = {};
	const int output_fd = ptdecode->output_fd;
	int status, r;

	r = archive_init(&archive);
	if (r < 0)
		return r;
	prepare_ptdecode(ptdecode, wish, archive.made);
	ptdecode->output_fd = -1;
	status = run(ptdecode, asker, answer);
	/* What it made in spite of an error is not whole. */
	if (status != PTDECODE_OK && status != PTDECODE_GAPS)
		return status;
	r = pack(archive.made, output_fd, asker, answer);
	return r == 0 ? status : r < 0 ? r : -EIO;
}

/* Return: ptdecode's exit status, or negative errno. */
static int decode(const char *ptdecode, const struct decoder_request *request,
		  const int fds[static DECODER_FDS], int socket, struct decoder_answer *answer)
{
	const struct asker asker = {
		.socket = socket,
		.until = clock_ns(CLOCK_MONOTONIC) + request->timeout_s * SECOND_NS,
	};
	struct program p = { .path = ptdecode, .dir_fd = fds[0], .output_fd = fds[1] };

	if (ptdecode_format_is(request->wish.format, PTD_CONTROL_ARCHIVED))
		return decode_directory(&p, &request->wish, &asker, answer);
	prepare_ptdecode(&p, &request->wish, NULL);
	return run(&p, &asker, answer);
}

/* What the process of one connection does. The reader of the output sees its end when that process
 * has ended. */
static void serve_one(int socket, const char *ptdecode)
{
	const struct timeval patience = { .tv_sec = PATIENCE_S };
	struct decoder_answer answer = { .version = DECODER_VERSION };
	int fds[DECODER_FDS] = { -1, -1 };
	struct decoder_request request;
	int r;

	if (setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) < 0 ||
	    decoder_receive_request(socket, &request, fds) < 0)
		return;
	r = decode(ptdecode, &request, fds, socket, &answer);
	answer.error = r < 0 ? r : 0;
	answer.status = r < 0 ? 0 : (uint32_t)r;
	(void)send(socket, &answer, sizeof(answer), MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* --- all of them ------------------------------------------------------------------------------ */

int decoder_drop_rights(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	const struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {};
	const struct rlimit no_core = {};

	/* Root executes programs with all that is in the bounding set. Who may not take from that
	 * set has none that a program could get. */
	for (unsigned long i = 0; prctl(PR_CAPBSET_READ, i, 0, 0, 0) >= 0; i++)
		(void)prctl(PR_CAPBSET_DROP, i, 0, 0, 0);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || syscall(SYS_capset, &header, none) < 0 ||
	    setrlimit(RLIMIT_CORE, &no_core) < 0)
		return -errno;
	(void)setpriority(PRIO_PROCESS, 0, NICE);
	return 0;
}

static bool is_served(int socket, uid_t user)
{
	return peeruser_is(socket, user) || peeruser_is(socket, geteuid());
}

/* Start a process for a new connection. Return: whether one was started. */
static bool admit(int listen_fd, uid_t user, const char *program, unsigned n_running)
{
	_cleanup_(fd_closep) int socket = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC);
	pid_t pid;

	if (socket < 0 || n_running >= DECODER_RUNNING_MAX || !is_served(socket, user))
		return false;
	pid = fork();
	if (pid == 0) {
		(void)close(listen_fd);
		serve_one(socket, program);
		_exit(0);
	}
	return pid > 0;
}

int decoder_serve(int listen_fd, uid_t user, unsigned seconds, const char *program)
{
	uint64_t idle_since = clock_ns(CLOCK_MONOTONIC);
	unsigned n_running = 0;

	for (;;) {
		struct pollfd wanted = { .fd = listen_fd, .events = POLLIN };

		if (poll(&wanted, 1, seconds > 0 || n_running > 0 ? 1000 : -1) < 0 &&
		    errno != EINTR)
			return -errno;
		while (n_running > 0 && waitpid(-1, NULL, WNOHANG) > 0) {
			n_running--;
			idle_since = clock_ns(CLOCK_MONOTONIC);
		}
		if (wanted.revents & POLLIN)
			n_running += admit(listen_fd, user, program, n_running);
		else if (seconds > 0 && n_running == 0 &&
			 clock_ns(CLOCK_MONOTONIC) > idle_since + seconds * SECOND_NS)
			return 0;
	}
}
