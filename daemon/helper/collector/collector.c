/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/helper/collector/collector.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "daemon/helper/collector/message.h"
#include "daemon/helper/collector/work.h"
#include "daemon/proc/process.h"
#include "util/peeruser.h"
#include "util/vec.h"

#define MS         UINT64_C(1000000)     /* in ns */
#define IDLE_NS    UINT64_C(10000000000) /* a worker without requests ends after that */
#define NO_USER    ((uid_t)-1)           /* of processes that have ended, or are not known */
#define KERNEL     ((uid_t)-2)           /* of the kernel's own files, which no user can delay */
#define POLL_ENDED UINT64_C(100000000)   /* ns between two looks for workers that have ended */
#define SPARE_NS   (200 * MS) /* that a worker gets once more if it only waits for a CPU */
#define FDS_MAX    (1 + COLLECTOR_CLIENTS_MAX + COLLECTOR_WORKERS_MAX)

struct client {
	int fd;
	uint64_t serial;
};

struct worker {
	pid_t pid;
	int fd;       /* -1: it was told to end, or killed */
	int sched_fd; /* its /proc/PID/schedstat; or -1 */
	uid_t user;
	bool reads;

	/* The request that it works on. */
	bool busy;
	uint64_t id, client; /* the request's id, and the serial of who asked */
	uint64_t until;      /* busy: when it is killed; otherwise when it is told to end */
	uint64_t begun;      /* CLOCK_MONOTONIC, in ns */
	uint64_t delay;      /* as delay_of() said then */
	bool was_spared;     /* it got SPARE_NS */
};

struct collector {
	int listen_fd;
	int sched_fd; /* its own /proc/PID/schedstat; or -1 */
	uid_t user;
	unsigned seconds;
	uint64_t until; /* CLOCK_MONOTONIC, in ns: when it stops waiting for a client */
	uint64_t serial;
	VEC(struct client) clients;
	VEC(struct worker) workers;
};

static int open_schedstat(pid_t pid)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/%d/schedstat", (int)pid);
	return open(path, O_RDONLY | O_CLOEXEC);
}

/* Return: for how long the process has waited for a CPU since it was started, in ns; 0 if that is
 * not known. */
static uint64_t read_delay(int sched_fd)
{
	uint64_t delay = 0;
	char text[128];
	ssize_t n;

	n = sched_fd < 0 ? -1 : pread(sched_fd, text, sizeof(text) - 1, 0);
	if (n <= 0)
		return 0;
	text[n] = '\0';
	return sscanf(text, "%*u %" SCNu64, &delay) == 1 ? delay : 0;
}

/* Return: for how long the worker, and the collector itself, have waited for a CPU. */
static uint64_t delay_of(const struct collector *c, const struct worker *w)
{
	return read_delay(c->sched_fd) + read_delay(w->sched_fd);
}

/* Return: for how long the request keeps the worker, in µs, without the time for which it waited
 * for a CPU: on a busy machine each answer takes long, which says nothing of the file. */
static uint32_t waited_us(const struct collector *c, const struct worker *w)
{
	const uint64_t all = clock_ns(CLOCK_MONOTONIC) - w->begun,
		       delay = delay_of(c, w) - w->delay;
	const uint64_t us = delay < all ? (all - delay) / 1000 : 0;

	return us < UINT32_MAX ? (uint32_t)us : UINT32_MAX;
}

/* Return: whether the worker has a CPU, or waits for one. */
static bool can_run(const struct worker *w)
{
	char path[64], text[PROCESS_STAT_SIZE];
	const char *fields;

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)w->pid);
	fields = process_stat(AT_FDCWD, path, text);
	return fields && fields[0] == 'R';
}

static void kill_worker(struct worker *w)
{
	(void)kill(w->pid, SIGKILL);
	w->fd = fd_close(w->fd);
	w->sched_fd = fd_close(w->sched_fd);
	w->busy = false;
}

static void collector_deinit(struct collector *c)
{
	vec_deinit_each(&c->clients, client, fd_close(client->fd));
	vec_deinit_each(&c->workers, worker, kill_worker(worker));
	(void)fd_close(c->listen_fd);
	(void)fd_close(c->sched_fd);
}

/* --- workers --------------------------------------------------------------------------------- */

/* What a worker does until the collector is gone, or does not need it any more. */
_Noreturn static void run_worker(int fd)
{
	struct pollfd wanted = { .fd = fd, .events = POLLIN };
	struct channel_message message;
	struct collector_request request;
	struct collector_answer answer;
	struct work work;
	int found, r;

	work_init(&work);
	for (;;) {
		if (poll(&wanted, 1, -1) < 0)
			continue;
		r = channel_receive(fd, COLLECTOR_VERSION, &message);
		if (r == 0)
			r = collector_read_request(&message, &request);
		if (r < 0)
			_exit(r == -EPIPE ? EXIT_SUCCESS : EXIT_FAILURE);
		work_do(&work, &request, message.fds, &answer, &found);
		if (collector_send_answer(fd, &answer, found) < 0)
			_exit(EXIT_FAILURE);
		(void)fd_close(found);
		channel_message_deinit(&message);
	}
}

/* The descriptors of the collector are not the worker's: a worker that cannot end would hold, for
 * instance, the lock of the directory. */
_Noreturn static void become_worker(int fd, pid_t parent)
{
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent || dup2(fd, STDERR_FILENO + 1) < 0 ||
	    close_range(STDERR_FILENO + 2, UINT_MAX, 0) < 0)
		_exit(EXIT_FAILURE);
	run_worker(STDERR_FILENO + 1);
}

static int start_worker(struct collector *c, uid_t user, bool reads, struct worker **ret_worker)
{
	const pid_t parent = getpid();
	int pair[2];
	pid_t pid;
	int r;

	r = vec_reserve(&c->workers, 1);
	if (r < 0)
		return r;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
		return -errno;
	pid = fork();
	if (pid == 0)
		become_worker(pair[1], parent);
	r = pid < 0 ? -errno : 0;
	(void)fd_close(pair[1]);
	if (r < 0) {
		(void)fd_close(pair[0]);
		return r;
	}
	*ret_worker = &c->workers.items[c->workers.n++];
	**ret_worker = (struct worker){ .pid = pid,
					.fd = pair[0],
					.sched_fd = open_schedstat(pid),
					.user = user,
					.reads = reads };
	return 0;
}

/* Return: 0 and a worker that has nothing to do; -EBUSY if the user has no more; or another
 * negative errno. */
static int get_worker(struct collector *c, uid_t user, bool reads, struct worker **ret_worker)
{
	unsigned n = 0;

	for (size_t i = 0; i < c->workers.n; i++) {
		struct worker *w = &c->workers.items[i];

		if (w->user != user)
			continue;
		n++;
		if (w->fd >= 0 && !w->busy && w->reads == reads) {
			*ret_worker = w;
			return 0;
		}
	}
	if (n >= COLLECTOR_WORKERS_USER_MAX || c->workers.n >= COLLECTOR_WORKERS_MAX)
		return -EBUSY;
	return start_worker(c, user, reads, ret_worker);
}

/* Forget workers that have ended. */
static void reap_workers(struct collector *c)
{
	for (size_t i = c->workers.n; i-- > 0;) {
		struct worker *w = &c->workers.items[i];

		if (w->fd < 0 && waitpid(w->pid, NULL, WNOHANG) != 0)
			*w = c->workers.items[--c->workers.n];
	}
}

/* --- clients --------------------------------------------------------------------------------- */

/* The work of the client's workers is of no use any more. */
static void drop_client(struct collector *c, struct client *client)
{
	for (size_t i = 0; i < c->workers.n; i++)
		if (c->workers.items[i].busy && c->workers.items[i].client == client->serial)
			kill_worker(&c->workers.items[i]);
	(void)fd_close(client->fd);
	*client = c->clients.items[--c->clients.n];
	if (c->clients.n == 0)
		c->until = clock_ns(CLOCK_MONOTONIC) + c->seconds * 1000 * MS;
}

static void accept_client(struct collector *c)
{
	const int fd = accept4(c->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd < 0)
		return;
	if ((!peeruser_is(fd, c->user) && !peeruser_is(fd, geteuid())) ||
	    c->clients.n == COLLECTOR_CLIENTS_MAX ||
	    vec_push(&c->clients, { .fd = fd, .serial = ++c->serial }) < 0)
		(void)fd_close(fd);
}

/* A client that does not read what it asked for is not one. */
static void answer_client(struct collector *c, uint64_t serial,
			  const struct collector_answer *answer, int fd)
{
	for (size_t i = 0; i < c->clients.n; i++) {
		struct client *client = &c->clients.items[i];

		if (client->serial != serial)
			continue;
		if (collector_send_answer(client->fd, answer, fd) < 0)
			drop_client(c, client);
		return;
	}
}

static void answer_error(struct collector *c, uint64_t serial, uint64_t id, int error)
{
	const struct collector_answer answer = { .id = id, .error = error };

	answer_client(c, serial, &answer, -1);
}

/* Return: whose workers look at what a process had that has ended. That root started it is not
 * believed: a process of root may have become a user's since, and ended before anybody knew. */
static uid_t user_of_ended(const struct collector_request *request)
{
	return request->uid > 0 && request->uid < KERNEL ? request->uid : NO_USER;
}

/* Return: the user whose workers are to do it. */
static uid_t user_of(const struct collector_request *request)
{
	uid_t user;

	if (request->verb == COLLECTOR_KERNEL_NAMES || request->verb == COLLECTOR_KERNEL_CODE)
		return KERNEL;
	if (request->pid == 0)
		return user_of_ended(request);
	return process_real_user_of(request->pid, &user) == 0 ? user : user_of_ended(request);
}

/* Such a request may take long: it does not get the worker that others wait for. */
static bool reads_bytes(const struct collector_request *request)
{
	switch (request->verb) {
	case COLLECTOR_FIND:
		return request->flags & COLLECTOR_VERIFY;
	case COLLECTOR_OPEN_PATH:
	case COLLECTOR_STAT:
	case COLLECTOR_MAPPED:
		return false;
	default:
		return true;
	}
}

static int pass_request(struct collector *c, uint64_t serial,
			const struct collector_request *request, const int *fds)
{
	const bool reads = reads_bytes(request);
	struct worker *w = NULL;
	int r;

	r = get_worker(c, user_of(request), reads, &w);
	if (r == 0)
		r = collector_send_request(w->fd, request, fds);
	if (r < 0)
		return r;
	w->busy = true;
	w->id = request->id;
	w->client = serial;
	w->begun = clock_ns(CLOCK_MONOTONIC);
	w->delay = delay_of(c, w);
	w->until = w->begun + request->timeout_ms * MS;
	w->was_spared = false;
	return 0;
}

static void serve_client(struct collector *c, struct client *client)
{
	const uint64_t serial = client->serial;
	struct channel_message message;
	struct collector_request request;
	int r;

	r = channel_receive(client->fd, COLLECTOR_VERSION, &message);
	if (r == -EAGAIN)
		return;
	if (r < 0 || collector_read_request(&message, &request) < 0) {
		drop_client(c, client);
	} else {
		r = pass_request(c, serial, &request, message.fds);
		if (r < 0)
			answer_error(c, serial, request.id, r);
	}
	channel_message_deinit(&message);
}

/* A worker that says something else than its answer is not to be used any more: what it read may
 * have taken it over. */
static void serve_worker(struct collector *c, struct worker *w)
{
	const uint64_t serial = w->client, id = w->id;
	const bool was_busy = w->busy;
	struct channel_message message;
	struct collector_answer answer;
	int r;

	r = channel_receive(w->fd, COLLECTOR_VERSION, &message);
	if (r == -EAGAIN)
		return;
	if (r == 0)
		r = collector_read_answer(&message, &answer);
	if (r == 0 && was_busy && answer.id == id && message.fds[1] < 0) {
		answer.waited_us = waited_us(c, w);
		w->busy = false;
		w->until = clock_ns(CLOCK_MONOTONIC) + IDLE_NS;
		answer_client(c, serial, &answer, message.fds[0]);
	} else {
		kill_worker(w);
		if (was_busy)
			answer_error(c, serial, id, -ECONNABORTED);
	}
	channel_message_deinit(&message);
}

/* --- the loop -------------------------------------------------------------------------------- */

/* Kill who takes too long, and let go who has had nothing to do. */
static void check_times(struct collector *c)
{
	const uint64_t now = clock_ns(CLOCK_MONOTONIC);
	struct collector_answer answer;

	for (size_t i = 0; i < c->workers.n; i++) {
		struct worker *w = &c->workers.items[i];

		if (w->fd < 0 || now < w->until)
			continue;
		if (!w->busy) {
			w->fd = fd_close(w->fd);
			w->sched_fd = fd_close(w->sched_fd);
			continue;
		}
		if (!w->was_spared && can_run(w)) {
			w->was_spared = true;
			w->until = now + SPARE_NS;
			continue;
		}
		answer = (struct collector_answer){ .id = w->id,
						    .error = -ETIMEDOUT,
						    .waited_us = waited_us(c, w) };
		kill_worker(w);
		answer_client(c, w->client, &answer, -1);
	}
}

/* Return: when something is to be done next, even if no message comes. */
static uint64_t next_time(const struct collector *c)
{
	const uint64_t now = clock_ns(CLOCK_MONOTONIC);
	uint64_t next = c->seconds > 0 && c->clients.n == 0 ? c->until : UINT64_MAX;

	for (size_t i = 0; i < c->workers.n; i++) {
		const struct worker *w = &c->workers.items[i];
		const uint64_t at = w->fd < 0 ? now + POLL_ENDED : w->until;

		next = at < next ? at : next;
	}
	return next;
}

static struct worker *find_worker(const struct collector *c, int fd)
{
	for (size_t i = 0; i < c->workers.n; i++)
		if (c->workers.items[i].fd == fd)
			return &c->workers.items[i];
	return NULL;
}

static struct client *find_client(const struct collector *c, int fd)
{
	for (size_t i = 0; i < c->clients.n; i++)
		if (c->clients.items[i].fd == fd)
			return &c->clients.items[i];
	return NULL;
}

/* Serving another client may have ended this one: the descriptor may be gone. Everything is
 * received without waiting, so that a new one with the same number does no harm. */
static void serve_fd(struct collector *c, int fd)
{
	struct client *client = find_client(c, fd);
	struct worker *worker = find_worker(c, fd);

	if (fd == c->listen_fd)
		accept_client(c);
	else if (client)
		serve_client(c, client);
	else if (worker)
		serve_worker(c, worker);
}

static size_t list_fds(const struct collector *c, struct pollfd fds[static FDS_MAX])
{
	size_t n = 0;

	fds[n++] = (struct pollfd){ .fd = c->listen_fd, .events = POLLIN };
	for (size_t i = 0; i < c->clients.n; i++)
		fds[n++] = (struct pollfd){ .fd = c->clients.items[i].fd, .events = POLLIN };
	for (size_t i = 0; i < c->workers.n; i++)
		if (c->workers.items[i].fd >= 0)
			fds[n++] =
			    (struct pollfd){ .fd = c->workers.items[i].fd, .events = POLLIN };
	return n;
}

int collector_run(int listen_fd, uid_t user, unsigned seconds)
{
	_cleanup_(collector_deinit) struct collector c = {
		.listen_fd = listen_fd,
		.sched_fd = open_schedstat(getpid()),
		.user = user,
		.seconds = seconds,
		.until = clock_ns(CLOCK_MONOTONIC) + seconds * 1000 * MS,
	};
	struct pollfd fds[FDS_MAX];

	for (;;) {
		const size_t n_fds = list_fds(&c, fds);
		const int n = poll(fds, n_fds, clock_ms_until(next_time(&c)));

		if (n < 0 && errno != EINTR)
			return -errno;
		for (size_t i = 0; n > 0 && i < n_fds; i++)
			if (fds[i].revents)
				serve_fd(&c, fds[i].fd);
		check_times(&c);
		reap_workers(&c);
		if (seconds > 0 && c.clients.n == 0 && clock_ns(CLOCK_MONOTONIC) >= c.until)
			return 0;
	}
}
