/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Own snapshots
 *
 * What users asked for who may see only what their own programs ran: for each of them a snapshot
 * that is limited to that (scope.is_own), is in no list, and is removed once ptd-decoder has
 * decoded it (daemon/decoder). The user reads the output from a pipe while it is written, so that
 * it takes no room; who reads slowly is waited for up to a limit.
 *
 * Each user has one at a time, and there is a limit to all. Where it is reached, the one that has
 * been decoded for longest makes way for another user's, if that is for some time. What became of a
 * user's last one is remembered until he asks for the next.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/base.h"
#include "daemon/decoder/message.h"

#define OWNS_MAX       32u /* users of whom one is remembered */
#define OWNS_RUN_MAX   12u /* that are not done, at a time */
#define OWNS_DECODE_S  300u
#define OWNS_SURE_S    30u /* of that, whatever others ask for */
#define OWNS_TEXT_SIZE DECODER_MESSAGE_SIZE

struct owns;
struct spool;
typedef struct sd_event sd_event;

struct own_result {
	bool done;
	int error;                 /* negative errno: there is no output, or not all of it */
	uint32_t status;           /* exit status of ptdecode */
	uint32_t n_missing;        /* objects that the user may not read, or that are missing */
	uint32_t n_left_out;       /* processes of which it is not known that all they ran is his */
	char text[OWNS_TEXT_SIZE]; /* what ptdecode said, or why there is no output */
};

/* An own snapshot is done. */
typedef void (*owns_done_fn)(void *userdata, const char *id, const struct own_result *result);

/*
 * @event, @spool and @runtime_dir, where the decoder's socket is, are borrowed.
 *
 * Return: 0, or negative errno.
 */
_must_check_ int owns_new(sd_event *event, struct spool *spool, const char *runtime_dir,
			  owns_done_fn done, void *userdata, struct owns **ret_owns);

/* Take back what is not done. Return: NULL. */
struct owns *owns_free(struct owns *owns);

DEFINE_CLEANUP(struct owns *, owns_free);

/*
 * Begin one for the user, whose snapshot is going to be called @id.
 *
 * Return: 0, and what the user reads the output from, which is the caller's; -EBUSY if he has one
 *         that is not done, or there are too many, and none makes way; or another negative errno.
 */
_must_check_ int owns_begin(struct owns *owns, const char *id, uid_t uid,
			    const struct decoder_wish *wish, int *ret_output);

/* The snapshot was not written: @error says why, and @text in words. */
void owns_fail(struct owns *owns, const char *id, int error, const char *text);

/* The snapshot is written. @dir_fd, which is taken over, is its directory, which is removed in the
 * end. @n_missing, @n_left_out: objects and processes that are not in it, as above */
void owns_decode(struct owns *owns, const char *id, int dir_fd, uint32_t n_missing,
		 uint32_t n_left_out);

/* Return: what became of the user's snapshot @id, valid until the next call of another function;
 *         NULL if he has none that is called so. */
const struct own_result *owns_find(const struct owns *owns, const char *id, uid_t uid);
