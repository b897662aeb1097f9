/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Probe
 *
 * Perf events of all CPUs that wait for a condition (util/condition.h): tracepoints for signals,
 * ends of processes and want of memory, uprobes for functions. They are enabled while the probe is
 * armed. They stay open until the probe is freed, since to close a uprobe takes the kernel a
 * while; its breakpoint costs programs about a microsecond a call meanwhile.
 *
 * A thread that takes longer than a limit is found when the rings, which then have the
 * beginning and the end of each passage, are read from time to time.
 *
 * Sources: perf_event_open(2); Documentation/trace/uprobetracer.rst of the kernel.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "util/condition.h"
#include "util/vec.h"

/*
 * Which threads are on their way from one place of a program to another, and since when, to find
 * those that take longer than a limit. A passage begins when a thread enters a function. It ends
 * when the thread enters another function, or when the function returns.
 *
 * A thread has one passage at most. If it enters the first function again before the end, that
 * begins its passage anew, since what it began before was not completed. If the passage ends with
 * the return of the function, calls from within the function are part of it; the stack pointer says
 * which calls are. The passage of a thread that ends, or whose process executes another program, is
 * forgotten.
 */

/* Passages of more threads at a time are not looked at. */
#define PASSAGES_MAX 1024u

enum moment_kind {
	MOMENT_BEGIN, /* the thread enters the first function */
	MOMENT_END,   /* the thread enters the other one, or has returned */
	MOMENT_GONE,  /* the thread has ended */
	MOMENT_EXEC,  /* the process executes another program */
};

/* What a thread did. */
struct moment {
	enum moment_kind kind;
	uint32_t pid, tid;
	uint64_t time_ns;
	uint64_t sp; /* its stack pointer, if the passage ends with a return */
};

struct passages {
	uint64_t limit_ns;
	bool has_return;            /* passages end with the return of their function */
	VEC(struct moment) open;    /* the beginnings, oldest first */
	VEC(struct moment) moments; /* that were added, and not looked at */
};

void passages_deinit(struct passages *passages);

/* Forget everything: moments may be missing. */
void passages_forget(struct passages *passages);

/* Add a moment. Moments may be added in any order. Return: 0 or -ENOMEM. */
_must_check_ int passages_add(struct passages *passages, const struct moment *moment);

/*
 * Look at the moments before @now_ns, which must all have been added.
 *
 * Return: whether a passage took longer than the limit, and @ret_hit: the first such thread, and
 *         when the limit was over. Then all passages are forgotten.
 */
bool passages_find(struct passages *passages, uint64_t now_ns, struct moment *ret_hit);

#define PROBE_COMM_MAX 16 /* with its NUL */

struct collectorlink;
struct probe;

/* The thread in which the condition held, and when, on CLOCK_MONOTONIC. */
struct probe_hit {
	uint32_t pid, tid;
	uint64_t time_ns;
};

/*
 * Make the events, unarmed.
 *
 * A function is looked for in the file itself, which is opened once; the kernel gets that open file
 * and the address of a function that the file's symbol table names, never an address that a user
 * names, because a probe in the middle of an instruction changes what the program does.
 *
 * @comm: only threads of this name; NULL: all
 * @link: to the collector, which finds the file, or reads the number of a tracepoint
 *
 * Return: 0; or negative errno and @reterr_message, which the caller frees.
 */
_must_check_ int probe_new(const struct condition *condition, const char *comm,
			   struct collectorlink *link, struct probe **ret_probe,
			   char **reterr_message);
struct probe *probe_free(struct probe *probe);

DEFINE_CLEANUP(struct probe *, probe_free);

/* Let the events fire, until probe_disarm(). Return: 0, or negative errno. */
_must_check_ int probe_arm(struct probe *probe);
void probe_disarm(struct probe *probe);

/* Return: how many descriptors the probe has, and each. One can be read when its event fired. */
size_t probe_n(const struct probe *probe);
int probe_fd(const struct probe *probe, size_t i);

/* Return: how often, in ns, probe_take() is to be called, although no descriptor can be read; 0:
 * never. */
uint64_t probe_period(const struct probe *probe);

/* Take what the events wrote since the last call. Return: whether one fired, and @ret_hit, the
 * first. When a ring is full, the kernel leaves later ones out. */
bool probe_take(struct probe *probe, struct probe_hit *ret_hit);
