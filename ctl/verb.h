/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Verb
 *
 * The verbs of ptctl. Each has a file of its own and a line in the table of main.c.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"

/* Exit statuses; ptctl(1) promises them. */
enum {
	EXIT_OK = 0,
	EXIT_FAILED = 1,
	EXIT_USAGE = 2,
	EXIT_UNREACHABLE = 3,
	EXIT_DENIED = 4,
	EXIT_BUSY = 5,
	EXIT_NO_SNAPSHOT = 6,
	EXIT_NO_ROOM = 7, /* there is a snapshot, but without files that it needs */

	/* Of the verb record, as of env(1). Lower ones are those of the recorded program. */
	EXIT_NOT_KEPT = 124,     /* EXIT_NO_ROOM */
	EXIT_NOT_RECORDED = 125, /* ptctl or ptd failed */
	EXIT_CANNOT_EXECUTE = 126,
	EXIT_NOT_FOUND = 127,
	EXIT_SIGNAL = 128, /* plus the signal's number */
};

struct context {
	const char *socket; /* path of the control socket */
	bool is_named;      /* the user has named it, and means no other recorder */
	bool is_private;    /* its recorder is the caller's own, and no other takes its place */
	bool json;          /* print JSON */
};

/*
 * Each function parses its arguments (argv[0] is the verb) and reports errors on standard
 * error.
 *
 * Return: the exit status. Statuses below EXIT_NOT_KEPT of verb_record() are those of the
 *         recorded program.
 */
int verb_status(const struct context *context, int argc, char **argv);
int verb_metrics(const struct context *context, int argc, char **argv);
int verb_pause(const struct context *context, int argc, char **argv);
int verb_resume(const struct context *context, int argc, char **argv);
int verb_reload(const struct context *context, int argc, char **argv);
int verb_snapshot(const struct context *context, int argc, char **argv);
int verb_info(const struct context *context, int argc, char **argv);
int verb_list(const struct context *context, int argc, char **argv);
int verb_rm(const struct context *context, int argc, char **argv);
int verb_keep(const struct context *context, int argc, char **argv);
int verb_trigger(const struct context *context, int argc, char **argv);
int verb_check(const struct context *context, int argc, char **argv);
int verb_record(const struct context *context, int argc, char **argv);

struct sd_bus_message;

/* Do what verbs without arguments do: call @method, and print the reply, as JSON if that is asked
 * for, or by @print, which returns an exit status; NULL: there is nothing to print. */
int verb_call(const struct context *context, int argc, char **argv, const char *method,
	      int (*print)(struct sd_bus_message *reply));

/* An option of a verb, and where its argument goes: to the one of these that is not NULL. */
struct verb_option {
	const char *name;
	char letter; /* its short form; 0: it has none */
	bool *flag;  /* it has no argument */
	const char **text;
	uint32_t *number;                              /* from 1 on */
	const char *what;                              /* "number of snapshots" */
	int (*read)(const char *text, void *userdata); /* 0; or -EINVAL, which was reported */
	void *userdata;
};

/*
 * Parse the options.
 *
 * @in_order: they all stand before the other arguments
 *
 * Return: index of the first argument that is no option; or -EINVAL, which was reported.
 */
_must_check_ int verb_parse(int argc, char **argv, const struct verb_option *options, size_t n,
			    bool in_order);

/* Read a number from 1 on for an argument of @verb. @what: "number of snapshots". Return: 0;
 * or -EINVAL, which was reported. */
_must_check_ int verb_parse_number(const char *verb, const char *what, const char *text,
				   uint32_t *ret_number);
