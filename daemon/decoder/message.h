/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Decoder message
 *
 * What ptd and ptd-decoder say to each other, over a SOCK_SEQPACKET socket: one request with two
 * descriptors, the directory of a snapshot and what the output is written to, and one answer. ptd
 * takes the decoding back by closing the connection.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/base.h"

#define DECODER_VERSION      1u
#define DECODER_FORMAT_SIZE  256u /* with the NUL, as the next one */
#define DECODER_TIME_SIZE    128u
#define DECODER_MESSAGE_SIZE 2048u
#define DECODER_TIMEOUT_MAX  3600u /* s */
#define DECODER_FDS          2u    /* the directory, the output */

/* Options of ptdecode: see ptdecode(1). */
struct decoder_wish {
	char format[DECODER_FORMAT_SIZE]; /* -f; "": none */
	char time[DECODER_TIME_SIZE];     /* --time; "": all */
	uint32_t pid, tid;                /* --pid, --tid; 0: all */
	uint64_t last;                    /* --last; 0: all */
};

struct decoder_request {
	uint32_t version;
	uint32_t timeout_s; /* after which the decoder gives up */
	struct decoder_wish wish;
};

struct decoder_answer {
	uint32_t version;
	int32_t error;   /* negative errno: there is no output, or not all of it */
	uint32_t status; /* exit status of ptdecode */
	uint32_t zero;
	char message[DECODER_MESSAGE_SIZE]; /* what it said, cut */
};

/* Return: whether the wish is one that may be made: its texts end, and are printable ASCII. */
bool decoder_wish_is_good(const struct decoder_wish *wish);

/* Return: whether ptd can mean the request. */
bool decoder_request_is_good(const struct decoder_request *request);

/* Return: whether the decoder can mean the answer. Its message is made printable. */
bool decoder_answer_is_good(struct decoder_answer *answer);

/* Send a request with its descriptors, which stay the caller's. Return: 0, or negative errno. */
_must_check_ int decoder_send_request(int socket, const struct decoder_request *request,
				      const int fds[static DECODER_FDS]);

/* Receive a request, with descriptors that are the caller's. Return: 0; -EBADMSG if it is none; or
 * another negative errno. */
_must_check_ int decoder_receive_request(int socket, struct decoder_request *ret_request,
					 int ret_fds[static DECODER_FDS]);
