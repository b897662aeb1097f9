/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Show
 *
 * Prints replies of the recorder, for people and as JSON for programs.
 */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <systemd/sd-bus.h>

#include "base/base.h"

struct client_snapshot;

/* Bytes of a size in words. */
#define SHOW_SIZE_MAX 32

/* Write a size as "1.5 MiB". Return: @ret_text. */
const char *show_size(uint64_t bytes, char ret_text[static SHOW_SIZE_MAX]);

/*
 * Report on standard error how much PT a new snapshot has, since when it is complete, and what it
 * misses.
 *
 * @output: the directory to which it was copied, or NULL
 * @since_ns: when the recorded command began, on CLOCK_MONOTONIC; 0: not known
 */
void show_taken(const struct client_snapshot *snapshot, const char *output, uint64_t since_ns);

/*
 * Report on standard error, before anything else is said of a new snapshot, that ptd had no room to
 * keep files that it needs.
 *
 * Return: EXIT_OK, or EXIT_NO_ROOM if so.
 */
_must_check_ int show_without_room(const struct client_snapshot *snapshot);

/* What is printed in pairs: one line for each, or, if @json, an object. */
struct show_pairs {
	bool json;
	bool has_some; /* is set */
};

/* Print a pair, but none if @value is NULL. */
void show_pair(struct show_pairs *pairs, const char *key, const char *value);
void show_pairs_end(const struct show_pairs *pairs);

/* Print a string as JSON. */
void show_json_string(FILE *f, const char *s);

/*
 * Print the rest of a message as one line of JSON: dictionaries, arrays, strings and numbers.
 *
 * Return: 0, or negative errno.
 */
_must_check_ int show_json(FILE *f, sd_bus_message *message);

/* Print the reply to @method from its beginning in the same way. An error is reported on standard
 * error. Return: an exit status. */
_must_check_ int show_reply(FILE *f, sd_bus_message *reply, const char *method);
