/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Subject
 *
 * Small programs that do what is hard to decode, and always the same. Each thread that counts calls
 * subject_begin(), and subject_end() when it is done; what it executes between the two does not
 * depend on time, chance or addresses.
 */

#include <stddef.h>

struct subject {
	const char *name;
	void (*run)(void);
};

extern const struct subject subjects[];
extern const size_t n_subjects;

void subject_begin(void);
void subject_end(void);
