/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/decoder/owns.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "daemon/decoder/link.h"
#include "daemon/helper/helper.h"
#include "daemon/spool/spool.h"

#define SURE_NS (OWNS_SURE_S * UINT64_C(1000000000))

struct own {
	struct owns *owns;    /* borrowed */
	char id[SNAPID_SIZE]; /* "": the place is free */
	uid_t uid;
	struct decoder_wish wish;
	int output_fd;     /* the end that is written to */
	bool has_snapshot; /* there is a directory to remove */
	struct decoding *decoding;
	uint64_t decoded_since; /* CLOCK_MONOTONIC, in ns; 0: it is not decoded yet */
	struct own_result result;
};

struct owns {
	sd_event *event;     /* borrowed */
	struct spool *spool; /* borrowed */
	struct helper helper;
	owns_done_fn done;
	void *userdata; /* of @done, borrowed */
	struct own items[OWNS_MAX];
};

int owns_new(sd_event *event, struct spool *spool, const char *runtime_dir, owns_done_fn done,
	     void *userdata, struct owns **ret_owns)
{
	struct owns *o = malloc(sizeof(*o));
	int r;

	if (!o)
		return -ENOMEM;
	*o = (struct owns){ .event = event, .spool = spool, .done = done, .userdata = userdata };
	for (size_t i = 0; i < OWNS_MAX; i++)
		o->items[i] = (struct own){ .owns = o, .output_fd = -1 };
	r = helper_init(&o->helper, runtime_dir, "decoder", "ptd-decoder");
	if (r < 0) {
		free(o);
		return r;
	}
	*ret_owns = o;
	return 0;
}

/* Nothing of the snapshot is left, and the reader of the output sees its end. */
static void settle_own(struct own *own)
{
	own->decoding = decoding_free(own->decoding);
	own->output_fd = fd_close(own->output_fd);
	if (own->has_snapshot)
		spool_abort(own->owns->spool, own->id);
	own->has_snapshot = false;
	own->result.done = true;
}

struct owns *owns_free(struct owns *owns)
{
	if (!owns)
		return NULL;
	for (size_t i = 0; i < OWNS_MAX; i++)
		settle_own(&owns->items[i]);
	free(owns);
	return NULL;
}

static bool is_running(const struct own *own)
{
	return own->id[0] && !own->result.done;
}

/* Find a place for the user: his own, or a free one, or that of another who is done. Return: NULL
 * if there is none. */
static struct own *find_place(struct owns *o, uid_t uid)
{
	struct own *place = NULL;

	for (size_t i = 0; i < OWNS_MAX; i++) {
		struct own *own = &o->items[i];

		if (own->id[0] && own->uid == uid)
			return is_running(own) ? NULL : own;
		if (!own->id[0] || (!place && !is_running(own)))
			place = own;
	}
	return place;
}

static bool are_too_many(const struct owns *o)
{
	unsigned n = 0;

	for (size_t i = 0; i < OWNS_MAX; i++)
		n += is_running(&o->items[i]);
	return n >= OWNS_RUN_MAX;
}

static struct own *find_own(struct owns *o, const char *id)
{
	for (size_t i = 0; i < OWNS_MAX; i++)
		if (is_running(&o->items[i]) && strcmp(o->items[i].id, id) == 0)
			return &o->items[i];
	return NULL;
}

static void fail_own(struct own *own, int error, const char *text)
{
	own->result.error = error;
	(void)snprintf(own->result.text, sizeof(own->result.text), "%s", text);
	settle_own(own);
	own->owns->done(own->owns->userdata, own->id, &own->result);
}

void owns_fail(struct owns *owns, const char *id, int error, const char *text)
{
	struct own *own = find_own(owns, id);

	if (own)
		fail_own(own, error, text);
}

/* Give up the one that has been decoded for longest, if that is long enough. Return: whether there
 * is one. Whoever reads slowly would keep others waiting otherwise. */
static bool make_way(struct owns *o)
{
	struct own *longest = NULL;

	for (size_t i = 0; i < OWNS_MAX; i++) {
		struct own *own = &o->items[i];

		if (is_running(own) && own->decoded_since > 0 &&
		    (!longest || own->decoded_since < longest->decoded_since))
			longest = own;
	}
	if (!longest || clock_ns(CLOCK_MONOTONIC) - longest->decoded_since < SURE_NS)
		return false;
	fail_own(longest, -ETIMEDOUT,
		 "decoding, or reading the output, takes too long, and others wait: ask for less "
		 "of it");
	return true;
}

int owns_begin(struct owns *owns, const char *id, uid_t uid, const struct decoder_wish *wish,
	       int *ret_output)
{
	struct own *own = find_place(owns, uid);
	int fds[2];

	if (!own || (are_too_many(owns) && !make_way(owns)))
		return -EBUSY;
	if (pipe2(fds, O_CLOEXEC) < 0)
		return -errno;
	*own = (struct own){ .owns = owns, .uid = uid, .wish = *wish, .output_fd = fds[1] };
	(void)snprintf(own->id, sizeof(own->id), "%s", id);
	*ret_output = fds[0];
	return 0;
}

static const char *why_failed(int error)
{
	switch (error) {
	case -ETIMEDOUT:
		return "decoding, or reading the output, takes too long: ask for less of it";
	case -EPIPE:
		return "the output was not read";
	case -ENOENT:
	case -ECONNREFUSED:
		return "ptd-decoder does not run";
	case -ENOEXEC:
		return "ptdecode cannot be executed";
	default:
		return "ptd-decoder or ptdecode has ended, or did not answer";
	}
}

static void on_decoded(void *userdata, const struct decoder_answer *answer)
{
	struct own *own = userdata;

	if (answer->error < 0) {
		fail_own(own, answer->error, why_failed(answer->error));
		return;
	}
	own->result.status = answer->status;
	(void)snprintf(own->result.text, sizeof(own->result.text), "%s", answer->message);
	settle_own(own);
	own->owns->done(own->owns->userdata, own->id, &own->result);
}

void owns_decode(struct owns *owns, const char *id, int dir_fd, uint32_t n_missing,
		 uint32_t n_left_out)
{
	_cleanup_(fd_closep) int dir = dir_fd;
	struct own *own = find_own(owns, id);
	struct decoder_request request = { .timeout_s = OWNS_DECODE_S };
	int r;

	if (!own) {
		spool_abort(owns->spool, id);
		return;
	}
	own->has_snapshot = true;
	own->result.n_missing = n_missing;
	own->result.n_left_out = n_left_out;
	request.wish = own->wish;
	r = decoding_new(owns->event, &owns->helper, &request, (int[]){ dir, own->output_fd },
			 on_decoded, own, &own->decoding);
	if (r < 0) {
		fail_own(own, r, why_failed(r));
		return;
	}
	own->decoded_since = clock_ns(CLOCK_MONOTONIC);
	/* The end of the output is that of the decoder's. */
	own->output_fd = fd_close(own->output_fd);
}

const struct own_result *owns_find(const struct owns *owns, const char *id, uid_t uid)
{
	for (size_t i = 0; i < OWNS_MAX; i++)
		if (owns->items[i].id[0] && owns->items[i].uid == uid &&
		    strcmp(owns->items[i].id, id) == 0)
			return &owns->items[i].result;
	return NULL;
}
