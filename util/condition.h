/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Condition
 *
 * What a snapshot is taken for: `ptctl trigger` waits for it on the whole machine, `ptctl record
 * --when` in a program that the software source records.
 *
 *	enter:FUNCTION[@OBJECT]	a thread enters the function. FUNCTION is the name in the symbol
 *				table of an ELF file, OBJECT the path of that file, or the path's
 *				last part; without it, any file that the program maps
 *	return:FUNCTION@OBJECT	a thread returns from it
 *	longer:TIME:FUNCTION@OBJECT
 *				a thread has not returned from the function within the time, which
 *				is a time span such as 20ms
 *	longer:TIME:FUNCTION,OTHER@OBJECT
 *				a thread that entered FUNCTION has not entered OTHER within the time
 *	signal:NAME		a thread takes the signal, whether a handler or the end of the
 *				process follows. NAME as SEGV, SIGSEGV or 11
 *	exit:STATUS		a process ends by exit() with that status; exit:failure is any
 *				status but 0
 *	core			a process is killed by a signal of those for which the kernel dumps
 *				core, whether or not a limit keeps it from being written
 *	oom			the kernel ends a process because there is no memory left
 *
 * ptctl record passes the conditions, as text, to the plugin of QEMU. When one holds, the thread
 * says so over a socket of ptctl in the abstract namespace, and waits for the answer, so that its
 * last instructions are the newest ones when the rings are copied.
 */

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/base.h"

#define CONDITIONS_MAX       16
#define CONDITION_TEXT_MAX   4096 /* of one, with its NUL */
#define CONDITION_SEPARATOR  '+'  /* between the conditions in the plugin's option */
#define CONDITION_ANY_STATUS UINT32_MAX

enum condition_kind {
	CONDITION_ENTER,
	CONDITION_SIGNAL,
	CONDITION_EXIT,
	CONDITION_RETURN,
	CONDITION_LONGER,
	CONDITION_CORE,
	CONDITION_OOM,
};

struct condition {
	enum condition_kind kind;
	char *function;    /* of CONDITION_ENTER, CONDITION_RETURN and CONDITION_LONGER */
	char *object;      /* likewise; NULL: any */
	char *until;       /* OTHER of CONDITION_LONGER; NULL: until the function returns */
	uint64_t limit_ns; /* of CONDITION_LONGER */
	uint32_t number;   /* the signal or the status; CONDITION_ANY_STATUS: any but 0 */
};

/* What a thread says when a condition holds: one packet. */
struct condition_event {
	uint32_t index; /* of the condition */
	uint32_t pid, tid;
	uint32_t number;  /* the signal or the status */
	uint64_t time_ns; /* on the records' clock */
	uint64_t ip;      /* of the instruction that the thread was about to execute; 0: none */
};

/* The answer: one byte. */
enum condition_answer {
	CONDITION_GO_ON = 1, /* other conditions, or this one again, may be told */
	CONDITION_OVER,      /* no condition is of interest any more */
};

/*
 * Parse a condition.
 *
 * Return: 0, and @ret_condition is to be deinitialized; -EINVAL if @text is none; or -ENOMEM.
 */
_must_check_ int condition_parse(const char *text, struct condition *ret_condition);
void condition_deinit(struct condition *condition);
