/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * ovni calls
 *
 * What the events of one stream of ovni say as calls. The following is entered and left: a value of
 * a mark that is pushed and popped; a task while it is executed, under the name of its type; and a
 * region of a runtime's model, such as a call of MPI. Other events, and values of marks that are
 * set, are entered and left at once. Events about the life of the thread say on which CPU it is.
 */

#include <stdint.h>

#include "base/base.h"
#include "decoder/calllog/ovnievent.h"
#include "util/vec.h"

struct ovninames;

#define OVNICALLS_TASKS_MAX (1u << 17) /* that a thread executes at a time; more have no type */

enum ovnicall_kind {
	OVNICALL_NONE,
	OVNICALL_ENTER,
	OVNICALL_LEAVE,
	OVNICALL_POINT, /* both at once */
	OVNICALL_CPU,   /* the thread is on another CPU */
};

struct ovnicall {
	enum ovnicall_kind kind;
	uint32_t name; /* of what is entered or left */
	int32_t cpu;   /* of OVNICALL_CPU: its index; -1: not known */
};

/* A task, and its type: keys of ovninames.h. */
struct ovnitask {
	uint64_t task, type;
};

/* What is remembered of a stream. */
struct ovnicalls {
	uint32_t process;
	struct ovnitask made;         /* by the last event; .task is 0 if that made none */
	VEC(struct ovnitask) running; /* the innermost is the last */
};

/* Begin at the start of the stream. */
void ovnicalls_begin(struct ovnicalls *calls);
void ovnicalls_deinit(struct ovnicalls *calls);

/*
 * Take the next event. @data are the first @n_data bytes of a jumbo event's data. What it says of
 * names and tasks is noted in @names.
 *
 * Return: 0; -EFBIG: there are too many names or tasks; or -ENOMEM.
 */
_must_check_ int ovnicalls_take(struct ovnicalls *calls, struct ovninames *names,
				const struct ovnievent *event, const uint8_t *data, size_t n_data,
				struct ovnicall *ret_call);
