/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Small file
 *
 * Has the collector read a small file that ptd may not read, such as those of tracefs.
 */

#include <stddef.h>

#include "base/base.h"

#define SMALLFILE_MAX 64u /* bytes, with the NUL */

struct collectorlink;

/* Read the text of the file at @path, without white space at its end, or its beginning if it is
 * longer. Return: 0; or as collectorlink_ask(). */
_must_check_ int smallfile_read(struct collectorlink *link, const char *path,
				char ret_text[static SMALLFILE_MAX]);
