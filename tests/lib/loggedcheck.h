/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Checking of logged calls
 *
 * Reads a log of calls that may be damaged, and aborts unless it is refused with a
 * message, or its calls nest.
 */

/* @map is the ELF file that names the functions; or NULL. */
void loggedcheck(const char *input, const char *map);
