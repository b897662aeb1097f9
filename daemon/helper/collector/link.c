/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/helper/collector/link.h"

#include <ctype.h>
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "daemon/helper/helper.h"
#include "daemon/proc/process.h"
#include "util/cancel.h"

#define MS        UINT64_C(1000000) /* in ns */
#define GRACE_MS  500u              /* in which the collector itself says that it took too long */
#define CANCEL_MS 50                /* between two looks whether to give up */
#define AGAIN_NS  UINT64_C(1000000000) /* between two attempts, at first; then twice as long */
#define SOON_NS   (50 * MS)            /* to a collector that is being started */
#define AGAIN_MAX UINT64_C(16000000000)

/* A thread that must not wait long may spend this part of its time on waiting for answers that take
 * longer than usual, and so much at once. */
#define SPARE_PART 10u
#define SPARE_MAX  ((int64_t)(500 * MS))
#define USUAL      (5 * MS)

struct collectorlink {
	struct helper helper;
	uint64_t last_id;
	uint64_t begun, until; /* the last request, and when it is given up; 0: it is settled */
	uint64_t again;        /* CLOCK_MONOTONIC, in ns: there is no other attempt before */
	uint64_t again_ns;     /* between two attempts now */
	uint64_t start_again;  /* when another collector may be started */

	bool thrifty;      /* it counts how long the thread waits */
	int64_t spare_ns;  /* that it may still wait; negative: it waited longer than that */
	uint64_t spare_at; /* CLOCK_MONOTONIC, in ns: when that was counted */
};

static void leave_collector(struct collectorlink *link, int error)
{
	helper_leave(&link->helper, error);
	link->again = clock_ns(CLOCK_MONOTONIC) + link->again_ns;
	link->again_ns = link->again_ns < AGAIN_MAX / 2 ? 2 * link->again_ns : AGAIN_MAX;
}

/* The event loop calls this, which does not wait for a collector that is being started. */
static int connect_collector(struct collectorlink *link)
{
	const uint64_t now = clock_ns(CLOCK_MONOTONIC);
	int r;

	if (link->helper.fd >= 0)
		return 0;
	if (now < link->again)
		return -ENOTCONN;
	(void)helper_has_ended(&link->helper);
	r = helper_connect(&link->helper, 0);
	if (r == 0)
		return 0;
	if (helper_is_to_start(r) && now >= link->start_again) {
		(void)!helper_start(&link->helper);
		link->start_again = now + link->again_ns;
	}
	leave_collector(link, r);
	/* It ends unless a client connects soon. */
	if (!helper_has_ended(&link->helper))
		link->again = now + SOON_NS;
	return -ENOTCONN;
}

int collectorlink_new(const char *runtime_dir, bool thrifty, struct collectorlink **ret_link)
{
	_cleanup_(collectorlink_freep) struct collectorlink *link = malloc(sizeof(*link));
	int r;

	if (!link)
		return -ENOMEM;
	*link = (struct collectorlink){ .helper.fd = -1,
					.again_ns = AGAIN_NS,
					.thrifty = thrifty,
					.spare_ns = SPARE_MAX,
					.spare_at = clock_ns(CLOCK_MONOTONIC) };
	r = helper_init(&link->helper, runtime_dir, "collector",
			thrifty ? "files that programs execute are not copied until it is" : NULL);
	if (r < 0)
		return r;
	r = helper_start_and_connect(&link->helper, 0);
	if (r < 0)
		leave_collector(link, r);
	*ret_link = TAKE(link);
	return 0;
}

struct collectorlink *collectorlink_free(struct collectorlink *link)
{
	if (!link)
		return NULL;
	(void)fd_close(link->helper.fd);
	free(link);
	return NULL;
}

/* Receive the answer to the last request. Return: 0; -EAGAIN if it has not come; -EBADMSG or
 * another negative errno if the collector is of no use any more. */
static int receive_answer(struct collectorlink *link, struct collector_answer *ret_answer,
			  int *ret_fd)
{
	_cleanup_(channel_message_deinit) struct channel_message message;
	struct collector_answer answer;
	int r;

	r = channel_receive(link->helper.fd, COLLECTOR_VERSION, &message);
	if (r == 0)
		r = collector_read_answer(&message, &answer);
	if (r == 0 && answer.id != link->last_id)
		r = -EBADMSG;
	if (r < 0)
		return r;
	*ret_answer = answer;
	*ret_fd = message.fds[0];
	message.fds[0] = -1;
	return 0;
}

/* Return: 0; -ECANCELED; -ETIMEDOUT if nothing has come until then; or as receive_answer(). */
static int await_answer(struct collectorlink *link, uint64_t until, const atomic_bool *cancel,
			struct collector_answer *ret_answer, int *ret_fd)
{
	struct pollfd wanted = { .fd = link->helper.fd, .events = POLLIN };
	int r = -EAGAIN;

	while (r == -EAGAIN) {
		int left_ms;

		if (cancel_asked(cancel))
			return -ECANCELED;
		left_ms = clock_ms_until(until);
		if (poll(&wanted, 1, left_ms < CANCEL_MS ? left_ms : CANCEL_MS) > 0)
			r = receive_answer(link, ret_answer, ret_fd);
		else if (left_ms == 0)
			return -ETIMEDOUT;
	}
	return r;
}

/* Return: whether the thread may wait for another answer. */
static bool may_wait(struct collectorlink *link, uint64_t now)
{
	if (!link->thrifty)
		return true;
	link->spare_ns += (int64_t)((now - link->spare_at) / SPARE_PART);
	link->spare_ns = link->spare_ns < SPARE_MAX ? link->spare_ns : SPARE_MAX;
	link->spare_at = now;
	return link->spare_ns > 0;
}

/* Count for how long the thread waited for what was asked for, not for a CPU. */
static void count_wait(struct collectorlink *link, uint64_t waited_ns)
{
	if (waited_ns <= USUAL)
		return;
	link->spare_ns -= (int64_t)waited_ns;
	link->spare_ns = link->spare_ns > -SPARE_MAX ? link->spare_ns : -SPARE_MAX;
}

int collectorlink_begin(struct collectorlink *link, struct collector_request *request,
			const int *fds)
{
	int r = -EPIPE;

	if (request->path && strlen(request->path) >= CHANNEL_TEXT_MAX)
		return -ENAMETOOLONG;
	/* Its answer would be taken for that of the next request. */
	if (link->until > 0)
		link->helper.fd = fd_close(link->helper.fd);
	link->until = 0;
	link->begun = clock_ns(CLOCK_MONOTONIC);
	if (!may_wait(link, link->begun))
		return -EBUSY;
	request->id = ++link->last_id;
	/* If the collector has ended, another one may have taken its place, and must not be waited
	 * for. */
	for (unsigned tries = 2; tries > 0 && (r == -EPIPE || r == -ECONNRESET); tries--) {
		r = connect_collector(link);
		if (r < 0)
			return r;
		r = collector_send_request(link->helper.fd, request, fds);
		if (r == -EPIPE || r == -ECONNRESET)
			link->helper.fd = fd_close(link->helper.fd);
	}
	if (r < 0) {
		leave_collector(link, r);
		return -ENOTCONN;
	}
	link->until = link->begun + (request->timeout_ms + GRACE_MS) * MS;
	return 0;
}

/* What became of a request. @r: of await_answer(). */
static int settle(struct collectorlink *link, int r, const struct collector_answer *answer, int fd,
		  struct collector_answer *ret_answer, int *ret_fd)
{
	link->until = 0;
	count_wait(link, r == 0 ? answer->waited_us * UINT64_C(1000)
				: clock_ns(CLOCK_MONOTONIC) - link->begun);
	if (r == -ECANCELED) {
		link->helper.fd = fd_close(link->helper.fd);
		return r;
	}
	if (r < 0) {
		leave_collector(link, r);
		return -ENOTCONN;
	}
	link->helper.said = false;
	link->again_ns = AGAIN_NS;
	if (answer->error < 0 || !ret_fd)
		fd = fd_close(fd);
	if (answer->error < 0)
		return answer->error;
	if (ret_answer)
		*ret_answer = *answer;
	if (ret_fd)
		*ret_fd = fd;
	return 0;
}

int collectorlink_finish(struct collectorlink *link, uint64_t wait_ns,
			 struct collector_answer *ret_answer, int *ret_fd)
{
	const uint64_t now = clock_ns(CLOCK_MONOTONIC);
	const bool is_last = link->until <= now || wait_ns >= link->until - now;
	struct collector_answer answer;
	int fd = -1, r;

	r = await_answer(link, is_last ? link->until : now + wait_ns, NULL, &answer, &fd);
	return r == -ETIMEDOUT && !is_last ? -EAGAIN
					   : settle(link, r, &answer, fd, ret_answer, ret_fd);
}

int collectorlink_ask(struct collectorlink *link, struct collector_request *request, const int *fds,
		      const atomic_bool *cancel, struct collector_answer *ret_answer, int *ret_fd)
{
	struct collector_answer answer;
	int fd = -1, r;

	r = collectorlink_begin(link, request, fds);
	if (r < 0)
		return r;
	r = await_answer(link, link->until, cancel, &answer, &fd);
	return settle(link, r, &answer, fd, ret_answer, ret_fd);
}

/* --- small file ------------------------------------------------------------------------------- */

#define TIMEOUT_MS 200u

static int open_file(struct collectorlink *link, const char *path, int *ret_fd)
{
	struct collector_request request = { .verb = COLLECTOR_OPEN_PATH,
					     .timeout_ms = TIMEOUT_MS,
					     .path = path };

	return collectorlink_ask(link, &request, NULL, NULL, NULL, ret_fd);
}

static int copy_file(struct collectorlink *link, int from, int to)
{
	const int fds[CHANNEL_FDS_MAX] = { from, to };
	struct collector_request request = {
		.verb = COLLECTOR_COPY,
		.flags = COLLECTOR_FIRST,
		.timeout_ms = TIMEOUT_MS,
		.size_max = SMALLFILE_MAX - 1,
	};

	return collectorlink_ask(link, &request, fds, NULL, NULL, NULL);
}

int smallfile_read(struct collectorlink *link, const char *path,
		   char ret_text[static SMALLFILE_MAX])
{
	_cleanup_(fd_closep) int from = -1, to = memfd_create("smallfile", MFD_CLOEXEC);
	ssize_t n;
	int r;

	if (to < 0)
		return -errno;
	r = open_file(link, path, &from);
	if (r == 0)
		r = copy_file(link, from, to);
	if (r < 0)
		return r;
	n = pread(to, ret_text, SMALLFILE_MAX - 1, 0);
	if (n < 0)
		return -errno;
	while (n > 0 && isspace((unsigned char)ret_text[n - 1]))
		n--;
	ret_text[n] = '\0';
	return 0;
}

/* --- hung users ------------------------------------------------------------------------------- */

void hungusers_deinit(struct hungusers *hung)
{
	map_deinit(&hung->users);
	*hung = (struct hungusers){};
}

void hungusers_note(struct hungusers *hung, uint32_t pid)
{
	uid_t user;

	if (process_real_user_of(pid, &user) == 0)
		hungusers_note_user(hung, user);
}

bool hungusers_has(const struct hungusers *hung, uint32_t pid)
{
	uid_t user;

	return hung->users.n_used > 0 && process_real_user_of(pid, &user) == 0 &&
	       hungusers_has_user(hung, user);
}

void hungusers_note_user(struct hungusers *hung, uid_t user)
{
	(void)!map_put(&hung->users, user, 1);
}

bool hungusers_has_user(const struct hungusers *hung, uid_t user)
{
	return map_get(&hung->users, user);
}
