/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Lease
 *
 * A thread's ownership of a virtual CPU. A thread takes a CPU when it enters user code and gives it
 * back when it leaves. It prefers the CPU that it had last. If as many CPUs as may be in use are in
 * use, it waits, but only a little: the owner of a CPU may itself wait for this thread, in QEMU. A
 * CPU whose owner was killed is taken away from it.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/base.h"
#include "daemon/plugin/attach.h"
#include "daemon/plugin/poolrecord.h"

struct lease {
	const struct attach *attach; /* borrowed */
	struct poolrecord_who who;   /* cpu: the one the thread has, or had last */
	uint8_t mode;                /* of the thread's code: 64 or 32 */
	bool held;
	bool lost;            /* packets are missing; those of the next CPU must say so */
	uint64_t since_ns;    /* when the CPU was taken */
	struct encode encode; /* while @held; its state is in shared memory otherwise */
};

enum lease_manner {
	LEASE_WAIT,  /* wait a little if there is no CPU */
	LEASE_YIELD, /* let waiting threads go first */
	LEASE_TRY,   /* do not wait */
};

/* There is no CPU. */
enum {
	LEASE_NONE = 1,
};

/*
 * Take a CPU and write the switch record for the thread. Packets of the CPU are off.
 *
 * Return: 0; or LEASE_NONE if there is no CPU, and the thread must run unrecorded.
 */
_must_check_ int lease_take(struct lease *lease, enum lease_manner manner);

/*
 * Give the CPU back. Its packets must be off, and their head is published here. With @idle the
 * switch record of an idle CPU is written at once, for a thread that is about to end.
 */
void lease_give(struct lease *lease, bool idle);

/* Return: whether a thread waits for a CPU at the time @now_ns. */
bool lease_wanted(const struct attach *attach, uint64_t now_ns);

static inline struct emu_cpu *lease_cpu(const struct lease *lease)
{
	return attach_cpu(lease->attach, lease->who.cpu);
}
