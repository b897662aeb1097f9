/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Captured log
 *
 * Captures what the code under test writes to stderr, for units that check its messages.
 */

/* Write stderr to memory from now on, until logged_end(). */
void logged_begin(void);

/* Return: what was written since; it stays the module's and valid until the next logged_begin(). */
const char *logged_end(void);
