/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "util/words.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n';
}

/* Move the word at @from, without its quotes, to @to. Return: where the text goes on; NULL: a quote
 * does not end. */
static char *take_word(char *from, char *to)
{
	char quote = '\0';

	for (; *from && (quote || !is_blank(*from)); from++) {
		if (quote ? *from == quote : *from == '\'' || *from == '"') {
			quote = quote ? '\0' : *from;
			continue;
		}
		if (*from == '\\' && quote != '\'' && from[1])
			from++;
		*to++ = *from;
	}
	if (quote)
		return NULL;
	/* @to may be where the blank behind the word is. */
	if (*from)
		*from++ = '\0';
	*to = '\0';
	return from;
}

int words_split(char *text, char **ret_words, size_t max)
{
	size_t n = 0;

	for (;;) {
		char *word;

		text += strspn(text, " \t\n");
		if (!*text)
			break;
		if (n + 1 >= max)
			return -E2BIG;
		word = text;
		text = take_word(text, word);
		if (!text)
			return -EINVAL;
		ret_words[n++] = word;
	}
	ret_words[n] = NULL;
	return (int)n;
}
