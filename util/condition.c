/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "util/condition.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/number.h"
#include "util/timespan.h"

static int parse_signal(const char *text, struct condition *condition)
{
	const char *name = strncmp(text, "SIG", 3) == 0 ? text + 3 : text;
	uint64_t n;

	for (int i = 1; i < NSIG; i++) {
		const char *known = sigabbrev_np(i);

		if (known && strcmp(known, name) == 0) {
			condition->number = (uint32_t)i;
			return 0;
		}
	}
	if (number_parse(text, NSIG - 1, &n) < 0 || n == 0)
		return -EINVAL;
	condition->number = (uint32_t)n;
	return 0;
}

static int parse_status(const char *text, struct condition *condition)
{
	uint64_t n = CONDITION_ANY_STATUS;

	if (strcmp(text, "failure") != 0 && number_parse(text, UINT8_MAX, &n) < 0)
		return -EINVAL;
	condition->number = (uint32_t)n;
	return 0;
}

static int parse_function(const char *text, struct condition *condition)
{
	const char *at = strchr(text, '@');
	const size_t n = at ? (size_t)(at - text) : strlen(text);

	if (n == 0 || (at && !at[1]) || strlen(text) >= CONDITION_TEXT_MAX)
		return -EINVAL;
	condition->function = strndup(text, n);
	condition->object = at ? strdup(at + 1) : NULL;
	if (condition->function && (!at || condition->object))
		return 0;
	condition_deinit(condition);
	return -ENOMEM;
}

/* Parse TIME:FUNCTION[,OTHER]@OBJECT. */
static int parse_longer(const char *text, struct condition *condition)
{
	_cleanup_(freep) char *time = NULL;
	const char *colon = strchr(text, ':');
	char *comma;
	int r;

	time = colon ? strndup(text, (size_t)(colon - text)) : NULL;
	if (!time)
		return colon ? -ENOMEM : -EINVAL;
	r = timespan_parse(time, &condition->limit_ns);
	if (r < 0 || condition->limit_ns == 0)
		return -EINVAL;
	r = parse_function(colon + 1, condition);
	comma = r == 0 ? strchr(condition->function, ',') : NULL;
	if (!comma)
		return r;
	*comma = '\0';
	condition->until = strdup(comma + 1);
	r = condition->until ? 0 : -ENOMEM;
	if (r == 0 && (!condition->function[0] || !condition->until[0] ||
		       strcmp(condition->function, condition->until) == 0))
		r = -EINVAL;
	if (r < 0)
		condition_deinit(condition);
	return r;
}

static const struct {
	const char *word;
	enum condition_kind kind;
	/* Parses what is behind the word and a colon; NULL: the word stands alone. */
	int (*parse)(const char *text, struct condition *condition);
} kinds[] = {
	{ "oom", CONDITION_OOM, NULL },
	{ "core", CONDITION_CORE, NULL },
	{ "enter", CONDITION_ENTER, parse_function },
	{ "return", CONDITION_RETURN, parse_function },
	{ "longer", CONDITION_LONGER, parse_longer },
	{ "signal", CONDITION_SIGNAL, parse_signal },
	{ "exit", CONDITION_EXIT, parse_status },
};

int condition_parse(const char *text, struct condition *ret_condition)
{
	const size_t n = strcspn(text, ":");

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		struct condition condition = { .kind = kinds[i].kind };
		int r = 0;

		if (strncmp(text, kinds[i].word, n) != 0 || kinds[i].word[n] ||
		    !text[n] != !kinds[i].parse)
			continue;
		if (kinds[i].parse)
			r = kinds[i].parse(text + n + 1, &condition);
		if (r == 0)
			*ret_condition = condition;
		return r;
	}
	return -EINVAL;
}

void condition_deinit(struct condition *condition)
{
	free(condition->function);
	free(condition->object);
	free(condition->until);
	*condition = (struct condition){};
}
