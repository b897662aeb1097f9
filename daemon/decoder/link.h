/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Decoder link
 *
 * ptd's side of ptd-decoder: a decoding that was asked for, in the event loop. If no decoder
 * serves, one is started, unless a service manager runs ptd, whose business that is.
 */

#include "base/base.h"
#include "daemon/decoder/message.h"

struct decoding;
struct helper;
typedef struct sd_event sd_event;

/* The decoding is over, whatever came of it: @answer->error says that. The decoding is to be
 * freed. */
typedef void (*decoding_done_fn)(void *userdata, const struct decoder_answer *answer);

/*
 * Have a snapshot decoded.
 *
 * @helper: the decoder; borrowed for the call
 * @request: whose version is set
 * @fds: the directory of the snapshot, and what the output is written to; both stay the caller's
 * @done: is not called before this returns
 *
 * Return: 0; -ENOENT or -ECONNREFUSED if no decoder serves; or another negative errno.
 */
_must_check_ int decoding_new(sd_event *event, struct helper *helper,
			      struct decoder_request *request, const int fds[static DECODER_FDS],
			      decoding_done_fn done, void *userdata,
			      struct decoding **ret_decoding);

/* Take the decoding back, if it is not over. Return: NULL. */
struct decoding *decoding_free(struct decoding *decoding);

DEFINE_CLEANUP(struct decoding *, decoding_free);
