/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Keeper message
 *
 * What ptd and its keeper say to each other: messages of one size over a SOCK_SEQPACKET socket,
 * each with at most one descriptor. ptd asks, and the keeper answers each request with one
 * KEEPER_DONE; before that, KEEPER_GIVE is answered with one KEEPER_KEPT for each thing that is
 * kept.
 */

#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "base/base.h"

#define KEEPER_VERSION   2u
#define KEEPER_NAME_SIZE 32u  /* with the NUL */
#define KEEPER_FORM_SIZE 256u /* with the NUL */

/* Enough for the events of 1024 CPUs. */
#define KEEPER_THINGS_MAX 4096u

enum keeper_verb {
	KEEPER_KEEP = 1, /* keep the descriptor under @name, in the place of what has that name */
	KEEPER_DROP,     /* close what is kept under @name */
	KEEPER_GIVE,     /* pass everything that is kept */
	KEEPER_WAIT,     /* keep it for @seconds after the connection has ended */
	KEEPER_DONE,     /* the answer; @status is 0 or negative errno */
	KEEPER_KEPT,     /* one thing that is kept, with its descriptor */
	_KEEPER_VERBS,
};

struct keeper_message {
	uint32_t version;
	uint32_t verb; /* enum keeper_verb */
	int32_t status;
	uint32_t seconds;
	uint64_t data_size; /* bytes of the rings of a perf event; 0: it is none */
	uint64_t aux_size;
	char name[KEEPER_NAME_SIZE]; /* which of the things of ptd it is: "pool" */
	char form[KEEPER_FORM_SIZE]; /* how it is laid out, for ptd to compare */
};

/* Return: 0, or -EBADMSG if the other side cannot mean this message. */
_must_check_ static inline int keeper_message_check(const struct keeper_message *message)
{
	/* No ring is larger. */
	const uint64_t size_max = UINT64_C(1) << 40;
	const int has_name = message->verb == KEEPER_KEEP || message->verb == KEEPER_DROP ||
			     message->verb == KEEPER_KEPT;

	if (message->version != KEEPER_VERSION || message->verb == 0 ||
	    message->verb >= _KEEPER_VERBS || message->status > 0 ||
	    !memchr(message->name, 0, sizeof(message->name)) ||
	    !memchr(message->form, 0, sizeof(message->form)) ||
	    (message->name[0] != 0) != has_name || message->data_size > size_max ||
	    message->aux_size > size_max)
		return -EBADMSG;
	return 0;
}
