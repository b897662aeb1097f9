/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Lease
 *
 * A thread's hold on a virtual CPU. It takes one when it enters user code and gives it back when it
 * leaves. It prefers the one it had; if all that may be busy are, it waits a little, but never
 * long: whoever has one may itself be waiting for this thread, in QEMU. A CPU whose owner was
 * killed is taken from it.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/base.h"
#include "daemon/emu/attach.h"
#include "daemon/emu/poolrecord.h"

struct lease {
	const struct attach *attach; /* borrowed */
	struct poolrecord_who who;   /* cpu: the one it has, or had last */
	uint8_t mode;                /* of the thread's code: 64 or 32 */
	bool held;
	bool lost;            /* packets are missing: the next CPU's must say so */
	uint64_t since_ns;    /* of @held */
	struct encode encode; /* while @held; its state is in shared memory otherwise */
};

enum lease_manner {
	LEASE_WAIT,  /* a little, if there is none */
	LEASE_YIELD, /* let those who wait go first */
	LEASE_TRY,   /* do not wait */
};

/*
 * Take a CPU and say in the sideband that the thread runs on it. Packets of the CPU are off.
 *
 * Return: 0; or LEASE_NONE if there is none: the thread must run untraced.
 */
_must_check_ int lease_take(struct lease *lease, enum lease_manner manner);
enum {
	LEASE_NONE = 1,
};

/*
 * Give the CPU back; its packets must be off and are published here. With @idle its ring says so at
 * once, which is for threads that are about to end.
 */
void lease_give(struct lease *lease, bool idle);

/* Return: whether somebody waits for a CPU, now that the time is @now_ns. */
bool lease_wanted(const struct attach *attach, uint64_t now_ns);

static inline struct emu_cpu *lease_cpu(const struct lease *lease)
{
	return attach_cpu(lease->attach, lease->who.cpu);
}
