/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/helper/keeper/link.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "daemon/helper/helper.h"
#include "daemon/helper/keeper/message.h"
#include "util/peeruser.h"
#include "util/vec.h"

/* A keeper that serves a ptd that is just ending answers when that has ended. */
#define ANSWER_SECONDS 5

struct given {
	struct keeper_message message;
	int fd; /* the link's if the keeper gave it, or the source's */
};

struct keeperlink {
	struct helper helper;
	unsigned seconds;
	bool settled;
	VEC(struct given) old; /* what an earlier ptd gave and was not taken */
	VEC(struct given) new;
};

static void forget_old(struct keeperlink *link)
{
	vec_deinit_each(&link->old, thing, fd_close(thing->fd));
}

static int connect_keeper(struct keeperlink *link, bool start)
{
	int r = start ? helper_start_and_connect(&link->helper, ANSWER_SECONDS)
		      : helper_connect(&link->helper, ANSWER_SECONDS);

	if (r == 0 && !peeruser_is(link->helper.fd, geteuid())) {
		link->helper.fd = fd_close(link->helper.fd);
		r = -EPERM;
	}
	return r;
}

/* Wait for an answer, and take what comes before it. */
static int await_done(struct keeperlink *link)
{
	for (;;) {
		_cleanup_(fd_closep) int fd = -1;
		struct keeper_message message;
		int r;

		r = keeper_receive(link->helper.fd, &message, &fd);
		if (r < 0)
			return r;
		if (message.verb == KEEPER_DONE && fd < 0)
			return message.status;
		if (message.verb != KEEPER_KEPT || fd < 0)
			return -EBADMSG;
		r = link->old.n < KEEPER_THINGS_MAX
			? vec_push(&link->old, { .message = message, .fd = fd })
			: -ENOSPC;
		if (r < 0)
			return r;
		fd = -1;
	}
}

/* After an error, what cannot be kept now is given to the next keeper. */
static int ask_keeper(struct keeperlink *link, const struct keeper_message *message, int fd)
{
	const int r = keeper_send(link->helper.fd, message, fd);

	return r < 0 ? r : await_done(link);
}

/* --- life ------------------------------------------------------------------------------------- */

/* A keeper that has nothing of us yet gets everything. */
static int give_all(struct keeperlink *link)
{
	const struct keeper_message wait = { .verb = KEEPER_WAIT, .seconds = link->seconds };
	int r = ask_keeper(link, &wait, -1);

	for (size_t i = 0; r == 0 && i < link->new.n; i++)
		r = ask_keeper(link, &link->new.items[i].message, link->new.items[i].fd);
	return r;
}

int keeperlink_new(const char *runtime_dir, unsigned seconds, struct keeperlink **ret_link)
{
	const struct keeper_message give = { .verb = KEEPER_GIVE };
	_cleanup_(keeperlink_freep) struct keeperlink *link = malloc(sizeof(*link));
	int r;

	if (!link)
		return -ENOMEM;
	*link = (struct keeperlink){ .seconds = seconds, .helper.fd = -1 };
	r = helper_init(&link->helper, runtime_dir, "keeper", "the rings would not outlive ptd");
	if (r < 0)
		return r;
	if (connect_keeper(link, false) == 0) {
		r = ask_keeper(link, &give, -1);
		if (r < 0) {
			helper_leave(&link->helper, r);
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
	(void)fd_close(link->helper.fd);
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
	struct keeper_message drop = { .verb = KEEPER_DROP };

	(void)snprintf(drop.name, sizeof(drop.name), "%s", name);
	return ask_keeper(link, &drop, -1);
}

void keeperlink_drop_rest(struct keeperlink *link)
{
	int r = 0;

	if (!link)
		return;
	for (size_t i = 0; r == 0 && link->helper.fd >= 0 && i < link->old.n; i++)
		r = drop_name(link, link->old.items[i].message.name);
	forget_old(link);
	if (r < 0)
		helper_leave(&link->helper, r);
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
	struct keeper_message message = { .verb = KEEPER_KEEP,
					  .data_size = what->data_size,
					  .aux_size = what->aux_size };
	size_t i;
	int r = 0;

	if (!link)
		return 0;
	(void)snprintf(message.name, sizeof(message.name), "%s", name);
	(void)snprintf(message.form, sizeof(message.form), "%s", form);
	i = find_new(link, name);
	if (i == link->new.n) {
		r = vec_push(&link->new, {});
		if (r < 0)
			return r;
	}
	link->new.items[i] = (struct given){ .message = message, .fd = what->fd };
	if (link->settled && link->helper.fd >= 0)
		r = ask_keeper(link, &message, what->fd);
	if (r < 0)
		helper_leave(&link->helper, r);
	return 0;
}

void keeperlink_drop(struct keeperlink *link, const char *name)
{
	const size_t i = link ? find_new(link, name) : 0;
	int r = 0;

	if (!link || i == link->new.n)
		return;
	link->new.items[i] = link->new.items[--link->new.n];
	if (link->helper.fd >= 0)
		r = drop_name(link, name);
	/* It may not have been given yet. */
	if (r < 0 && r != -ENOENT)
		helper_leave(&link->helper, r);
}

static void reach_keeper(struct keeperlink *link)
{
	int r = link->helper.fd < 0 ? connect_keeper(link, true) : 0;

	if (r == 0)
		r = give_all(link);
	if (r < 0)
		helper_leave(&link->helper, r);
	else
		link->helper.said = false;
}

void keeperlink_settle(struct keeperlink *link)
{
	keeperlink_drop_rest(link);
	link->settled = true;
	if (link->seconds == 0 || link->new.n == 0) {
		link->helper.fd = fd_close(link->helper.fd);
		return;
	}
	reach_keeper(link);
}

void keeperlink_set_seconds(struct keeperlink *link, unsigned seconds)
{
	const struct keeper_message wait = { .verb = KEEPER_WAIT, .seconds = seconds };
	int r = 0;

	link->seconds = seconds;
	if (link->helper.fd >= 0)
		r = ask_keeper(link, &wait, -1);
	if (r < 0)
		helper_leave(&link->helper, r);
	else if (seconds == 0)
		link->helper.fd = fd_close(link->helper.fd);
}

void keeperlink_look_after(struct keeperlink *link)
{
	struct pollfd wanted = { .fd = link->helper.fd };

	(void)helper_has_ended(&link->helper);
	if (link->seconds == 0 || link->new.n == 0)
		return;
	if (link->helper.fd >= 0 && poll(&wanted, 1, 0) == 0)
		return;
	link->helper.fd = fd_close(link->helper.fd);
	reach_keeper(link);
}
