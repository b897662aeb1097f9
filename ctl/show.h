/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Show
 *
 * Answers of the recorder, for people and for programs.
 */

#include <stdint.h>
#include <stdio.h>
#include <systemd/sd-bus.h>

#include "base/base.h"

struct client_snapshot;

/* Room for a size in words. */
#define SHOW_SIZE_MAX 32

/* "1.5 MiB". Return: @ret_text. */
const char *show_size(uint64_t bytes, char ret_text[static SHOW_SIZE_MAX]);

/*
 * Say on stderr how much a snapshot holds that was just taken, since when, and what it lacks.
 *
 * @output: the directory that it was copied to; NULL: none
 * @since_ns: when what is of interest began, on CLOCK_MONOTONIC; 0: whenever
 */
void show_taken(const struct client_snapshot *snapshot, const char *output, uint64_t since_ns);

/* Print a string of JSON. */
void show_json_string(FILE *f, const char *s);

/*
 * Print the rest of a message as one line of JSON: dictionaries, arrays, strings and numbers.
 *
 * Return: 0, or negative errno.
 */
_must_check_ int show_json(FILE *f, sd_bus_message *message);
