/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Calls made by hand
 *
 * The call stream of one thread on one stack, for tests: what is entered and left, with what the
 * layer would say of each.
 */

#include <stddef.h>
#include <stdint.h>

#include "ptd/calls.h"

enum callmade_name {
	CALLMADE_MAIN, /* "main" of /bin/demo */
	CALLMADE_F,    /* "f" of /bin/demo */
	CALLMADE_G,    /* "ns::g(int)" of /lib/libg.so */
	CALLMADE_JIT,  /* "[anon]+0x10" of [anon] */
	_CALLMADE_NAMES,
};

extern const struct ptd_function callmade_functions[_CALLMADE_NAMES];

struct callmade {
	struct ptd_call_thread thread;
	struct ptd_call_batch batch; /* what was made since callmade_clear() */
	struct ptd_call calls[64];
	int32_t first_depth; /* of the next function that is entered when none is open */
	struct {
		struct ptd_call enter;
		uint64_t t_inner, n_insns_inner; /* in what it called */
	} open[32];
	size_t n_open;
};

/* Thread 10/@tid, "demo", which has the id and stack @id. */
void callmade_init(struct callmade *made, uint32_t id, uint32_t tid);

/* At the time @t, when the thread had executed @n_insns instructions. */
void callmade_enter(struct callmade *made, enum callmade_name name, enum ptd_call_how how,
		    uint64_t t, uint64_t n_insns);
void callmade_leave(struct callmade *made, enum ptd_call_how how, uint64_t t, uint64_t n_insns);

/* Forget what was made, but not what is open. */
void callmade_clear(struct callmade *made);
