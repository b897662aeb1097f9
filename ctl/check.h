/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Check
 *
 * Finds what a machine lacks for recording by PT and with the software source. What is not read
 * from files is in struct check_machine, so that tests can be any machine.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"

#define CHECK_ROWS_MAX 16
#define CHECK_TEXT_MAX 256

struct check_machine {
	const char *root;    /* stands before the paths of /proc and /sys; "": there they are */
	const char *release; /* of the kernel */
	uint32_t n_cpus;     /* that are online */
	uint64_t memlock;    /* bytes that the caller may lock in memory; UINT64_MAX: any number */
	bool is_ptd_there;   /* a recorder answers */

	/* Try to have PT, whose PMU has this type, for the caller alone. Return: 0 or negative
	 * errno. */
	int (*try_pt)(uint32_t type);

	const char *emulator; /* its path, or its name if none was found */
	int emulator_error;   /* 0, or why it cannot record, as of emulator_probe() */
	const char *plugin;
	int plugin_error; /* 0, or why it cannot be read */
	int shared_error; /* 0, or why no shared memory can be made */
};

enum check_state {
	CHECK_OK,
	CHECK_NOTE,    /* less can be recorded, or may be */
	CHECK_MISSING, /* the source cannot record */
};

struct check_row {
	bool is_emulated; /* of the software source */
	const char *what;
	enum check_state state;
	char found[CHECK_TEXT_MAX];
	char remedy[CHECK_TEXT_MAX]; /* "": none is needed */
};

struct check {
	struct check_row rows[CHECK_ROWS_MAX];
	size_t n_rows;
	bool has_pt, has_emulated; /* what can record */
};

/* Look at all of it. */
void check_machine(const struct check_machine *machine, struct check *ret_check);
