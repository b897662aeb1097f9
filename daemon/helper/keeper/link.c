/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/helper/keeper/link.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "daemon/helper/helper.h"
#include "daemon/helper/keeper/message.h"
#include "util/fdpass.h"
#include "util/peeruser.h"
#include "util/vec.h"

#define PROGRAM "ptd-keeper"

/* A keeper that serves a ptd that is just ending answers when that has ended. */
#define ANSWER_SECONDS 5

struct given {
	struct keeper_message message;
	int fd; /* the link's if the keeper gave it, or the source's */
};

struct keeperlink {
	struct helper helper;
	unsigned seconds;
	int fd;    /* -1: not connected */
	bool said; /* that there is no keeper */
	bool settled;
	VEC(struct given) old; /* what an earlier ptd gave and was not taken */
	VEC(struct given) new;
};

static void forget_old(struct keeperlink *link)
{
	for (size_t i = 0; i < link->old.n; i++)
		(void)fd_close(link->old.items[i].fd);
	vec_deinit(&link->old);
}

static int connect_keeper(struct keeperlink *link, bool start)
{
	_cleanup_(fd_closep) int fd = -1;
	int r = helper_connect(&link->helper, ANSWER_SECONDS, &fd);

	if (start && (r == -ENOENT || r == -ECONNREFUSED) && helper_is_ours())
		r = helper_start_and_connect(&link->helper, ANSWER_SECONDS, &fd);
	if (r == 0 && !peeruser_is(fd, geteuid()))
		r = -EPERM;
	if (r < 0)
		return r;
	link->fd = fd;
	fd = -1;
	return 0;
}

/* Wait for an answer, and take what comes before it. */
static int await_done(struct keeperlink *link)
{
	for (;;) {
		struct keeper_message message;
		int fd, r;

		r = fdpass_receive(link->fd, &message, sizeof(message), &fd);
		if (r == 0)
			r = keeper_message_check(&message);
		if (r == 0 && message.verb == KEEPER_KEPT && fd >= 0)
			r = link->old.n < KEEPER_THINGS_MAX
				? vec_push(&link->old, { .message = message, .fd = fd })
				: -ENOSPC;
		else if (r == 0 && message.verb == KEEPER_DONE && fd < 0)
			return message.status;
		else if (r == 0)
			r = -EBADMSG;
		if (r < 0) {
			(void)fd_close(fd);
			return r;
		}
	}
}

static int ask_keeper(struct keeperlink *link, const struct keeper_message *message, int fd)
{
	const int r = fdpass_send(link->fd, message, sizeof(*message), fd);

	return r < 0 ? r : await_done(link);
}

static struct keeper_message request(enum keeper_verb verb, unsigned seconds)
{
	return (struct keeper_message){
		.version = KEEPER_VERSION,
		.verb = verb,
		.seconds = seconds,
	};
}

/* The connection is of no use any more. What cannot be kept now is given to the next keeper. */
static void leave_keeper(struct keeperlink *link, int error)
{
	link->fd = fd_close(link->fd);
	if (link->said)
		return;
	errno = -error;
	log_warning("%s: the keeper is not there: the rings would not outlive ptd: %m",
		    link->helper.address.sun_path);
	link->said = true;
}

/* --- life ------------------------------------------------------------------------------------- */

/* A keeper that has nothing of us yet gets everything. */
static int give_all(struct keeperlink *link)
{
	const struct keeper_message wait = request(KEEPER_WAIT, link->seconds);
	int r = ask_keeper(link, &wait, -1);

	for (size_t i = 0; r == 0 && i < link->new.n; i++)
		r = ask_keeper(link, &link->new.items[i].message, link->new.items[i].fd);
	return r;
}

int keeperlink_new(const char *runtime_dir, unsigned seconds, struct keeperlink **ret_link)
{
	const struct keeper_message give = request(KEEPER_GIVE, 0);
	_cleanup_(keeperlink_freep) struct keeperlink *link = malloc(sizeof(*link));
	int r;

	if (!link)
		return -ENOMEM;
	*link = (struct keeperlink){ .seconds = seconds, .fd = -1 };
	r = helper_init(&link->helper, runtime_dir, "keeper", PROGRAM);
	if (r < 0)
		return r;
	if (connect_keeper(link, false) == 0) {
		r = ask_keeper(link, &give, -1);
		if (r < 0) {
			leave_keeper(link, r);
			forget_old(link);
		}
	}
	*ret_link = TAKE(link);
	return 0;
}

struct keeperlink *keeperlink_free(struct keeperlink *link)
{
	if (!link)
		return NULL;
	forget_old(link);
	vec_deinit(&link->new);
	(void)fd_close(link->fd);
	free(link);
	return NULL;
}

bool keeperlink_take(struct keeperlink *link, const char *name, const char *form,
		     struct keepable *ret_kept)
{
	for (size_t i = 0; link && link->seconds > 0 && i < link->old.n; i++) {
		struct given *given = &link->old.items[i];

		if (strcmp(given->message.name, name) != 0 ||
		    strcmp(given->message.form, form) != 0)
			continue;
		*ret_kept = (struct keepable){ .fd = given->fd,
					       .data_size = given->message.data_size,
					       .aux_size = given->message.aux_size };
		*given = link->old.items[--link->old.n];
		return true;
	}
	return false;
}

static int drop_name(struct keeperlink *link, const char *name)
{
	struct keeper_message drop = request(KEEPER_DROP, 0);

	(void)snprintf(drop.name, sizeof(drop.name), "%s", name);
	return ask_keeper(link, &drop, -1);
}

void keeperlink_drop_rest(struct keeperlink *link)
{
	int r = 0;

	if (!link)
		return;
	for (size_t i = 0; r == 0 && link->fd >= 0 && i < link->old.n; i++)
		r = drop_name(link, link->old.items[i].message.name);
	forget_old(link);
	if (r < 0)
		leave_keeper(link, r);
}

/* Return: the index of what is given under @name; the number of all if there is none. */
static size_t find_new(const struct keeperlink *link, const char *name)
{
	size_t i = 0;

	while (i < link->new.n && strcmp(link->new.items[i].message.name, name) != 0)
		i++;
	return i;
}

int keeperlink_keep(struct keeperlink *link, const char *name, const char *form,
		    const struct keepable *what)
{
	struct keeper_message message = request(KEEPER_KEEP, 0);
	size_t i;
	int r = 0;

	if (!link)
		return 0;
	message.data_size = what->data_size;
	message.aux_size = what->aux_size;
	(void)snprintf(message.name, sizeof(message.name), "%s", name);
	(void)snprintf(message.form, sizeof(message.form), "%s", form);
	i = find_new(link, name);
	if (i == link->new.n) {
		r = vec_push(&link->new, {});
		if (r < 0)
			return r;
	}
	link->new.items[i] = (struct given){ .message = message, .fd = what->fd };
	if (link->settled && link->fd >= 0)
		r = ask_keeper(link, &message, what->fd);
	if (r < 0)
		leave_keeper(link, r);
	return 0;
}

void keeperlink_drop(struct keeperlink *link, const char *name)
{
	const size_t i = link ? find_new(link, name) : 0;
	int r = 0;

	if (!link || i == link->new.n)
		return;
	link->new.items[i] = link->new.items[--link->new.n];
	if (link->fd >= 0)
		r = drop_name(link, name);
	/* It may not have been given yet. */
	if (r < 0 && r != -ENOENT)
		leave_keeper(link, r);
}

void keeperlink_settle(struct keeperlink *link)
{
	int r = 0;

	keeperlink_drop_rest(link);
	link->settled = true;
	if (link->seconds == 0 || link->new.n == 0) {
		link->fd = fd_close(link->fd);
		return;
	}
	if (link->fd < 0)
		r = connect_keeper(link, true);
	if (r == 0)
		r = give_all(link);
	if (r < 0)
		leave_keeper(link, r);
}

void keeperlink_set_seconds(struct keeperlink *link, unsigned seconds)
{
	const struct keeper_message wait = request(KEEPER_WAIT, seconds);
	int r = 0;

	link->seconds = seconds;
	if (link->fd >= 0)
		r = ask_keeper(link, &wait, -1);
	if (r < 0)
		leave_keeper(link, r);
	else if (seconds == 0)
		link->fd = fd_close(link->fd);
}

void keeperlink_look_after(struct keeperlink *link)
{
	struct pollfd wanted = { .fd = link->fd };
	int r = 0;

	(void)helper_has_ended(&link->helper);
	if (link->seconds == 0 || link->new.n == 0)
		return;
	if (link->fd >= 0 && poll(&wanted, 1, 0) == 0)
		return;
	link->fd = fd_close(link->fd);
	r = connect_keeper(link, true);
	if (r == 0)
		r = give_all(link);
	if (r < 0)
		leave_keeper(link, r);
	else
		link->said = false;
}
