/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Kernel
 *
 * The kernel's address space over time: what the directory of the recording has of its code and
 * modules (kcore.h), and what records say of code that changed (kernelchange.h). That which changes
 * has bytes where the records and the copy of the memory agree on them (history.h), and none
 * elsewhere.
 *
 * A change holds from its record's time on. The kernel makes the record while whoever comes there
 * runs into a breakpoint, so neither what is before nor what is behind is run then.
 */

#include "base/base.h"
#include "decoder/image/object.h"
#include "decoder/image/space.h"
#include "decoder/kernel/kcore.h"
#include "decoder/kernel/kernelchange.h"
#include "decoder/kernel/made.h"
#include "decoder/trace/trace.h"

struct kernel {
	struct kcore kcore;
	struct made made;             /* versions of what changed */
	struct kernelchanges changes; /* of which only what is made of them stays */
	struct space *space; /* with all of it; NULL if nothing is known of the kernel's code */
};

/*
 * Read all records of @trace that are about the kernel's code. @trace and @objects must outlive it.
 *
 * Return: 0 or -ENOMEM; then, too, it is to be freed.
 */
_must_check_ int kernel_init(struct kernel *kernel, const struct trace *trace,
			     struct objects *objects);
void kernel_deinit(struct kernel *kernel);
