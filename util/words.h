/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Words
 *
 * A command in one text, such as "latency --function='operator new'", as the words that it has for
 * a shell.
 */

#include <stddef.h>

#include "base/base.h"

/*
 * Cut @text into words at its blanks. A blank between quotes ('' or "") or after a backslash
 * belongs to its word; the quotes and the backslash do not. The words lie in @text, and NULL ends
 * @ret_words.
 *
 * Return: how many words there are; -EINVAL (a quote does not end); -E2BIG (there are @max words or
 *         more).
 */
_must_check_ int words_split(char *text, char **ret_words, size_t max);
