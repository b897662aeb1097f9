/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Logged
 *
 * What the code under test says on stderr, for units that see to it that it is said.
 */

/* From now on, until logged_end(), stderr is a text in memory. */
void logged_begin(void);

/* Return: what was said since, the module's until the next logged_begin(). */
const char *logged_end(void);
