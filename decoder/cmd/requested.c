/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/cmd/requested.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "util/message.h"
#include "util/number.h"
#include "util/words.h"

#define WORDS_MAX 64

static int wrong(const char *what, const char *value)
{
	log_error("%s: \"%s\". Try: ptdecode --help", what, value);
	return -EINVAL;
}

/* The same of a verb's own option. */
static int wrong_option(const struct verb *verb, const char *what, const char *option)
{
	log_error("%s %s --%s. Try: ptdecode help %s", verb_name(verb), what, option,
		  verb_name(verb));
	return -EINVAL;
}

/* Without a value, it is how source positions are shown. */
static int note_inlines(struct request *request, const char *value)
{
	if (value && strcmp(value, "no") != 0)
		return wrong("--inlines takes no value but no", value);
	if (value)
		request->no_inlined_calls = true;
	else
		request->positions = SINK_INLINES;
	return REQUESTED_NOTED;
}

int requested_note(struct request *request, int id, const char *name, const char *value)
{
	switch (id) {
	case 'o':
		if (request->path)
			return wrong("one -o too many", value);
		request->path = value;
		return REQUESTED_NOTED;
	case VERB_OPT_LINES:
		if (request->positions == SINK_NO_POSITIONS)
			request->positions = SINK_LINES;
		return REQUESTED_NOTED;
	case VERB_OPT_INLINES:
		return note_inlines(request, value);
	default:
		break;
	}
	if (id < VERB_OPT_OF_SINK)
		return REQUESTED_OTHER;
	if (request->n_options == REQUESTED_OPTIONS_MAX)
		return wrong("too many options of a verb", name);
	request->options[request->n_options].name = name;
	request->options[request->n_options++].value = value;
	return REQUESTED_NOTED;
}

/* Return: whether @value is one of the words of @form, "ns|us|ms". */
static bool is_choice(const char *form, const char *value)
{
	const size_t n = strlen(value);

	for (const char *word = form; word; word = strchr(word, '|')) {
		word += *word == '|';
		if (n > 0 && strncmp(word, value, n) == 0 && (word[n] == '|' || !word[n]))
			return true;
	}
	return false;
}

/* Check what can be known of a value before the recording is read. */
static int check_value(const struct sink_option *o, const char *value)
{
	uint64_t n;

	if (!o->value || (strcmp(o->value, "N") == 0 && number_parse(value, UINT64_MAX, &n) == 0) ||
	    (strchr(o->value, '|') && is_choice(o->value, value)) ||
	    (strcmp(o->value, "N") != 0 && !strchr(o->value, '|')))
		return 0;
	log_error("--%s takes %s: \"%s\"", o->name, strchr(o->value, '|') ? o->value : "a number",
		  value);
	return -EINVAL;
}

static int add_options(struct requested_output *output, const struct verb *verb,
		       const struct request *request)
{
	const struct sink_option *o;

	for (size_t i = 0; i < request->n_options; i++) {
		const char *name = request->options[i].name, *value = request->options[i].value;

		if (!verb_takes(verb, name, &o))
			return wrong_option(verb, "has no option", name);
		if (check_value(o, value) < 0)
			return -EINVAL;
		output->options[i] = message_text("%s%s%s", name, value ? "=" : "", value ?: "");
		if (!output->options[i])
			return -ENOMEM;
	}
	for (o = verb->ops->options; o && o->name; o++)
		if (o->is_required && !sink_option(&output->config, o->name))
			return wrong_option(verb, "needs", o->name);
	return 0;
}

int requested_add(struct requested_outputs *outputs, const struct verb *verb,
		  const struct request *request)
{
	struct requested_output *output;

	if (outputs->n == REQUESTED_MAX)
		return wrong("too many outputs", verb_name(verb));
	if (request->positions && !(verb->properties & VERB_POSITIONS))
		return wrong_option(verb, "has no option",
				    request->positions == SINK_LINES ? "lines" : "inlines");
	if (request->no_inlined_calls && !(verb->properties & VERB_INLINES))
		return wrong_option(verb, "has no option", "inlines=no");
	if (verb->ops->directories && !request->path)
		return wrong("-o must name a directory for the format", verb_name(verb));
	output = &outputs->items[outputs->n++];
	*output = (struct requested_output){
		.ops = verb->ops,
		.path = request->path,
		.config = { .fd = -1,
			    .options = (const char *const *)output->options,
			    .positions = request->positions,
			    .no_inlined_calls = request->no_inlined_calls },
	};
	return add_options(output, verb, request);
}

/* Take the options of an output. Return: 0, and its other words begin at optind; or -EINVAL. */
static int parse_options(int argc, char **argv, struct request *request)
{
	struct option options[VERB_OPTIONS_MAX];
	const char *name;
	int id, r;

	verb_options(options);
	optind = 0; /* start over */
	while ((id = verb_next_option(argc, argv, options, &name)) != -1) {
		if (id < 0)
			return id;
		r = requested_note(request, id, name, optarg);
		if (r == REQUESTED_OTHER)
			return wrong("this is no option of one output", argv[optind - 1]);
		if (r < 0)
			return r;
	}
	return 0;
}

int requested_parse(struct requested_outputs *outputs, const char *text)
{
	char *copy = strdup(text), *argv[WORDS_MAX] = { (char[]){ "ptdecode" } };
	struct request request = {};
	const struct verb *verb;
	size_t n_words;
	int argc, r;

	if (!copy)
		return -ENOMEM;
	if (outputs->n_texts == REQUESTED_MAX) {
		free(copy);
		return wrong("too many outputs", text);
	}
	outputs->texts[outputs->n_texts++] = copy;
	argc = words_split(copy, argv + 1, ARRAY_LEN(argv) - 1);
	if (argc < 0)
		return wrong("no verb with its options", text);
	argc++;
	r = parse_options(argc, argv, &request);
	if (r < 0)
		return r;
	verb = verb_find(argv + optind, &n_words);
	if (!verb)
		return -EINVAL;
	if (argv[optind + (int)n_words])
		return wrong("this is no option of the output", argv[optind + (int)n_words]);
	if (!(verb->properties & VERB_JOINS))
		return wrong("the verb has no other beside it", verb_name(verb));
	return requested_add(outputs, verb, &request);
}

void requested_deinit(struct requested_outputs *outputs)
{
	for (size_t i = 0; i < outputs->n; i++)
		for (char **option = outputs->items[i].options; *option; option++)
			free(*option);
	for (size_t i = 0; i < outputs->n_texts; i++)
		free(outputs->texts[i]);
}
