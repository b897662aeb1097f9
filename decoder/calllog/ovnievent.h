/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * ovni event
 *
 * The events of a stream of ovni (decoder/util/ovni.h), one by one.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/base.h"
#include "base/cursor.h"
#include "decoder/util/ovni.h"

struct ovnievent {
	char letters[OVNI_LETTERS + 1]; /* with a NUL */
	uint64_t clock;
	uint8_t size; /* of the payload */
	uint8_t payload[OVNI_PAYLOAD_MAX];
	bool is_jumbo;
	uint32_t n_data;  /* bytes of a jumbo event's data, which follow */
	bool is_reversed; /* the machine that wrote it has the other order of bytes */
};

/*
 * Get an event, but for the data of a jumbo event.
 *
 * Return: 0; -ENODATA: the bytes end in it; or -EBADMSG and @reterr_fault.
 */
_must_check_ int ovnievent_get(struct cursor *c, bool is_reversed, struct ovnievent *ret_event,
			       const char **reterr_fault);

/* Return: the number of 4 or 8 bytes at @at in the payload; 0: the payload is too short. */
uint32_t ovnievent_u32(const struct ovnievent *event, size_t at);
uint64_t ovnievent_u64(const struct ovnievent *event, size_t at);
