/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Agreement
 *
 * Compares what was decoded of a thread with what it executed when it was stepped.
 */

/* Compare the addresses in the file @truth with those that @decoded has between subject_begin() and
 * subject_end(), and print how many are equal and where they differ. "-": hexadecimal lines of
 * standard input. Return: 0 if they are equal; 1 if not. Ends the process if it cannot read. */
int agree(const char *truth, const char *decoded);
