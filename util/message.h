/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Messages
 *
 * The text for the user that accompanies a negative errno, and other texts that are made.
 */

#include <stdarg.h>
#include <stdio.h>

#include "base/base.h"

/*
 * Format a message into @reterr_message, which the caller frees; it is NULL if there is no memory.
 *
 * Return: @r, so that a function can return the result of this one.
 */
_printf_(3, 4) static inline int message_set(char **reterr_message, int r, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	if (vasprintf(reterr_message, format, ap) < 0)
		*reterr_message = NULL;
	va_end(ap);
	return r;
}

/* Return: the text, which the caller frees; NULL if there is no memory. */
_printf_(1, 2) static inline char *message_text(const char *format, ...)
{
	va_list ap;
	char *text;

	va_start(ap, format);
	if (vasprintf(&text, format, ap) < 0)
		text = NULL;
	va_end(ap);
	return text;
}
