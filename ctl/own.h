/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Own snapshot
 *
 * Has ptd take a snapshot of what the caller's own programs ran, and decode it. Any user may ask
 * for that. The functions report errors on standard error and return an exit status of verb.h.
 */

#include <stdbool.h>
#include <stdint.h>
#include <systemd/sd-bus.h>

#include "base/base.h"

struct own_wish {
	const char *format; /* of ptdecode; NULL: nothing is to be decoded */
	const char
	    *output;      /* file, or directory of a format that makes one; NULL: standard output */
	const char *time; /* as the next ones, as of ptdecode; NULL or 0: all */
	uint32_t pid, tid;
	uint64_t last;
	uint64_t since_ns; /* CLOCK_MONOTONIC; as of struct client_scope */
};

/* Check that the output can be written. Nothing is changed. */
_must_check_ int own_check(const struct own_wish *wish);

/* Take the snapshot and write the output. @json: print what ptd says of it as JSON on standard
 * error. */
_must_check_ int own_decode(sd_bus *bus, const struct own_wish *wish, bool json);
