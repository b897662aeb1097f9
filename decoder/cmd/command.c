/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/cmd/command.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "decoder/cmd/verb.h"
#include "decoder/sink/answer/diff.h"
#include "decoder/sink/answer/rank.h"
#include "ptd/control.h"
#include "ptd/snapshot.h"
#include "util/message.h"
#include "util/number.h"
#include "util/snapid.h"

/* --- snapname --------------------------------------------------------------------------------- */

/*
 * An input that is named as in ptctl, by a snapshot's id or as the latest snapshot, is found in the
 * recorder's state directory. The recorder is not asked and need not run.
 */

/* Return: whether @input can be the name of a snapshot, and no file has that name. */
static bool snapname_is(const char *input)
{
	/* "-" is standard input. */
	return strcmp(input, "-") != 0 &&
	       (snapid_valid(input) || strcmp(input, SNAPID_LATEST) == 0) &&
	       access(input, F_OK) < 0 && errno == ENOENT;
}

/* Find the id of the snapshot @name, which may be the latest one. */
static int find_id(const char *directory, const char *name, char ret_id[static SNAPID_SIZE])
{
	_cleanup_(fd_closep) int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	if (strcmp(name, SNAPID_LATEST) == 0)
		return snapid_latest(fd, ret_id);
	if (faccessat(fd, name, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	(void)snprintf(ret_id, SNAPID_SIZE, "%s", name);
	return 0;
}

/*
 * Find the snapshot @name in the state directory @state_dir.
 *
 * Return: 0 and @ret_path; or negative errno and @reterr_message. The caller frees either.
 */
static int snapname_find(const char *name, const char *state_dir, char **ret_path,
			 char **reterr_message)
{
	_cleanup_(freep) char *directory = NULL;
	char id[SNAPID_SIZE];
	int r;

	directory = message_text("%s/" PTD_STATE_SNAPSHOTS, state_dir);
	if (!directory)
		return -ENOMEM;
	r = find_id(directory, name, id);
	if (r == -ENOENT)
		return message_set(reterr_message, r,
				   "%s: there is no file of that name, and no such snapshot in %s",
				   name, directory);
	if (r == -EACCES)
		return message_set(reterr_message, r,
				   "%s: cannot look for it in %s: %s: only root and members of the "
				   "group " PTD_CONTROL_GROUP " may",
				   name, directory, strerror(-r));
	if (r < 0)
		return message_set(reterr_message, r, "%s: cannot look for it in %s: %s", name,
				   directory, strerror(-r));
	*ret_path = message_text("%s/%s", directory, id);
	return *ret_path ? 0 : -ENOMEM;
}

/* --- command ---------------------------------------------------------------------------------- */

/* Log what is wrong. @value is what the user gave instead; NULL: nothing. */
static int wrong(const char *what, const char *value)
{
	if (value)
		log_error("%s: \"%s\". Try: ptdecode --help", what, value);
	else
		log_error("%s. Try: ptdecode --help", what);
	return PTDECODE_USAGE;
}

/* Parse "A/B/C" or "A/B". Return: whether @text is @n numbers, each at most @max. */
static bool parse_numbers(const char *text, uint32_t *ret_numbers, size_t n, uint64_t max)
{
	for (size_t i = 0; i < n; i++) {
		unsigned long long value;
		char *end;

		errno = 0;
		value = strtoull(text, &end, 0);
		if (errno || end == text || value > max || *end != (i + 1 < n ? '/' : '\0'))
			return false;
		ret_numbers[i] = (uint32_t)value;
		text = end + 1;
	}
	return true;
}

static int parse_cpu_model(struct ptd_options *o, const char *text)
{
	uint32_t n[3];

	if (!parse_numbers(text, n, 3, UINT8_MAX) || n[0] == 0)
		return wrong("--cpu-model takes family/model/stepping", text);
	o->cpu_family = (uint16_t)n[0];
	o->cpu_model = (uint8_t)n[1];
	o->cpu_stepping = (uint8_t)n[2];
	return 0;
}

static int parse_byte(const char *option, const char *text, uint8_t *ret_value)
{
	uint32_t n;

	if (!parse_numbers(text, &n, 1, UINT8_MAX))
		return wrong(option, text);
	*ret_value = (uint8_t)n;
	return 0;
}

static int parse_threads(struct command *c, const char *text)
{
	uint32_t n;

	static_assert(PTD_THREADS_MAX == 256, "the message says so");
	if (!parse_numbers(text, &n, 1, PTD_THREADS_MAX) || n == 0)
		return wrong("--threads takes a number from 1 to 256", text);
	c->n_threads = n;
	return 0;
}

static int parse_cpuid_15(struct ptd_options *o, const char *text)
{
	uint32_t n[2];

	if (!parse_numbers(text, n, 2, UINT32_MAX))
		return wrong("--cpuid-15 takes EAX/EBX", text);
	o->cpuid_15_eax = n[0];
	o->cpuid_15_ebx = n[1];
	return 0;
}

void command_log(int r, char *message)
{
	if (message)
		log_error("%s", message);
	else
		(void)log_error_errno(r, "%m");
	free(message);
}

static int report(int r, char *message)
{
	command_log(r, message);
	return PTDECODE_FAILED;
}

static int add_code(struct command *c, const struct command_code *code)
{
	const int r = vec_push(&c->code, *code);

	return r < 0 ? report(r, NULL) : 0;
}

/* @text belongs to the command line and is cut in two here. */
static int parse_pages(struct command *c, char *text)
{
	char *comma = strchr(text, ',');

	if (!comma)
		return wrong("--raw-pages takes ADDRFILE,CODEFILE", text);
	*comma = '\0';
	return add_code(c, &(struct command_code){
			       .kind = COMMAND_PAGES, .path = comma + 1, .address_path = text });
}

static int parse_code(struct command *c, char *text)
{
	char *at = strrchr(text, '@'), *end;
	uint64_t address;

	if (!at)
		return wrong("--raw-code takes FILE@ADDR", text);
	errno = 0;
	address = strtoull(at + 1, &end, 0);
	if (errno || end == at + 1 || *end || at[1] == '-')
		return wrong("--raw-code takes FILE@ADDR", text);
	*at = '\0';
	return add_code(
	    c, &(struct command_code){ .kind = COMMAND_FILE, .path = text, .address = address });
}

/* Parse a number of bytes that is not 0; it may end with K, M, G or T (powers of 1024). */
static int parse_size(const char *option, const char *text, uint64_t *ret_size)
{
	uint64_t n;

	if (number_parse_bytes(text, INT64_MAX, &n) < 0 || n == 0)
		return wrong(option, text);
	*ret_size = n;
	return 0;
}

/* Read the id at @at, and go behind it. Return: whether there is one that can be known. */
static bool read_id(const char **at, uint32_t *ret_id)
{
	unsigned long long n;
	char *end;

	if (**at < '0' || **at > '9')
		return false;
	errno = 0;
	n = strtoull(*at, &end, 10);
	if (errno || n >= PTD_ID_UNKNOWN)
		return false;
	*at = end;
	*ret_id = (uint32_t)n;
	return true;
}

/* Add the numbers of @text, such as "3" or "0-3,8". Return: 0; -EINVAL if it is no such list, or
 * asks for too many; -ENOMEM. */
static int add_ids(struct asked_ids *ids, const char *text)
{
	for (;; text++) {
		uint32_t first, last;

		if (!read_id(&text, &first))
			return -EINVAL;
		last = first;
		if (*text == '-') {
			text++;
			if (!read_id(&text, &last) || last < first)
				return -EINVAL;
		}
		if (last - first >= ASKED_IDS_MAX - ids->n)
			return -EINVAL;
		for (uint32_t id = first; id <= last; id++) {
			const int r = vec_push(ids, id);

			if (r < 0)
				return r;
		}
		if (*text != ',')
			return *text ? -EINVAL : 0;
	}
}

static int parse_ids(const char *option, const char *text, struct asked_ids *ids)
{
	const int r = add_ids(ids, text);

	if (r == -EINVAL)
		return wrong(option, text);
	return r < 0 ? report(r, NULL) : 0;
}

static int parse_last(const char *text, uint64_t *ret_last)
{
	uint64_t n;

	if (number_parse(text, UINT64_MAX, &n) < 0 || n == 0)
		return wrong("--last takes a number of instructions", text);
	*ret_last = n;
	return 0;
}

static int parse_name(const char *name, struct asked_names *names)
{
	const int r = vec_push(names, name);

	return r < 0 ? report(r, NULL) : 0;
}

/* Options whose value is kept as it is, and where. */
static const struct {
	int id;
	size_t offset; /* in struct command */
} kept[] = {
	{ 'e', offsetof(struct command, options.engine) },
	{ VERB_OPT_TIME, offsetof(struct command, options.part.time) },
	{ VERB_OPT_DEBUG_DIR, offsetof(struct command, options.debug_dir) },
	{ VERB_OPT_BUILDID_DIR, offsetof(struct command, options.buildid_dir) },
	{ VERB_OPT_SYMFS, offsetof(struct command, options.symfs) },
	{ VERB_OPT_CORE, offsetof(struct command, options.core) },
	{ VERB_OPT_INSTR_MAP, offsetof(struct command, options.instr_map) },
	{ VERB_OPT_OVNI, offsetof(struct command, options.ovni) },
	{ VERB_OPT_RAW_PT, offsetof(struct command, options.raw_pt) },
	{ VERB_OPT_FILTER, offsetof(struct command, options.raw_filter) },
	{ VERB_OPT_STATE_DIR, offsetof(struct command, state_dir) },
};

/* Parse an option of the whole decode. Return: an exit status. --version ends the process. */
static int parse_option(struct command *c, int option)
{
	for (size_t i = 0; i < ARRAY_LEN(kept); i++)
		if (kept[i].id == option)
			*(const char **)((char *)c + kept[i].offset) = optarg;
	switch (option) {
	case VERB_OPT_ALSO:
		if (c->n_also == ARRAY_LEN(c->also))
			return wrong("too many outputs", optarg);
		c->also[c->n_also++] = optarg;
		return 0;
	case 'e':
		return ptd_engine_exists(optarg) ? 0 : wrong("no such engine", optarg);
	case 'h':
		c->help = true;
		return 0;
	case VERB_OPT_DEBUGINFOD:
		c->debuginfod = true;
		return 0;
	case VERB_OPT_FORCE:
		c->options.force = true;
		return 0;
	case VERB_OPT_MAX_OUTPUT:
		return parse_size("--max-output takes a number of bytes, as 500M", optarg,
				  &c->max_output);
	case VERB_OPT_MAX_SPILL:
		return parse_size("--max-spill takes a number of bytes, as 500M", optarg,
				  &c->options.max_spill);
	case VERB_OPT_THREADS:
		return parse_threads(c, optarg);
	case VERB_OPT_CPU_MODEL:
		return parse_cpu_model(&c->options, optarg);
	case VERB_OPT_MTC_FREQ:
		return parse_byte("--mtc-freq takes a number", optarg, &c->options.mtc_freq);
	case VERB_OPT_NOM_FREQ:
		return parse_byte("--nom-freq takes a number", optarg, &c->options.nom_freq);
	case VERB_OPT_CPUID_15:
		return parse_cpuid_15(&c->options, optarg);
	case VERB_OPT_CPU:
		return parse_ids("--cpu takes a list of CPUs, as 0-3,8", optarg, &c->asked.cpus);
	case VERB_OPT_PID:
		return parse_ids("--pid takes a list of processes, as 17,23", optarg,
				 &c->asked.pids);
	case VERB_OPT_ALL:
		c->options.all_processes = true;
		return 0;
	case VERB_OPT_TID:
		return parse_ids("--tid takes a list of threads, as 17,23", optarg, &c->asked.tids);
	case VERB_OPT_COMM:
		return parse_name(optarg, &c->asked.comms);
	case VERB_OPT_SYMBOL:
		return parse_name(optarg, &c->asked.symbols);
	case VERB_OPT_OBJECT:
		return parse_name(optarg, &c->asked.objects);
	case VERB_OPT_LAST:
		return parse_last(optarg, &c->options.part.last);
	case VERB_OPT_RAW_PAGES:
		return parse_pages(c, optarg);
	case VERB_OPT_RAW_ELF:
		return add_code(c, &(struct command_code){ .kind = COMMAND_ELF, .path = optarg });
	case VERB_OPT_RAW_CODE:
		return parse_code(c, optarg);
	case VERB_OPT_VERSION:
		printf("ptdecode %s\n", ptd_version());
		exit(PTDECODE_OK);
	default:
		return 0;
	}
}

/* Look for files in ~/.debug, where perf keeps copies of the files that it recorded. */
static int default_buildid_dir(struct command *c)
{
	const char *home = secure_getenv("HOME");

	if (!home || home[0] != '/')
		return 0;
	c->options.buildid_dir = c->home_debug = message_text("%s/.debug", home);
	return c->home_debug ? 0 : -ENOMEM;
}

/*
 * If the input is no file but can be the name of a snapshot, use that snapshot. Without an input,
 * use the latest one.
 */
static int find_snapshot(struct command *c, const char **input)
{
	const char *from_env = getenv("PTD_STATE_DIR"), *state_dir = c->state_dir;
	char *message = NULL, *found = NULL;
	int r;

	if (*input && !snapname_is(*input))
		return PTDECODE_OK;
	if (!state_dir)
		state_dir = from_env && from_env[0] ? from_env : PTD_STATE_DIR_DEFAULT;
	r = snapname_find(*input ?: SNAPID_LATEST, state_dir, &found, &message);
	if (r == 0)
		r = vec_push(&c->snapshots, found);
	if (r < 0) {
		free(found);
		return report(r, message);
	}
	*input = found;
	return PTDECODE_OK;
}

static int find_snapshots(struct command *c)
{
	int status = PTDECODE_OK;

	if (!c->options.raw_pt)
		status = find_snapshot(c, &c->options.input);
	for (size_t i = 0; i < c->others.n && status == PTDECODE_OK; i++)
		status = find_snapshot(c, &c->others.items[i]);
	return status;
}

/* Check what is ranked. */
static int check_rank(const struct command *c, const struct sink_config *config)
{
	const char *bad = sink_option(config, "bad");
	enum rank_kind kind;
	const char *function;

	if (sink_option(config, "function"))
		return bad || c->n_behind > 0 || c->others.n > 0 || c->options.raw_pt
			   ? wrong("rank takes one recording with --function", NULL)
			   : PTDECODE_OK;
	if (bad && rank_kind_of(bad, &kind, &function) < 0)
		return wrong("rank takes --bad crash or --bad enter:NAME", bad);
	if (bad && (c->n_behind > 0 || c->others.n == 0))
		return wrong("rank takes recordings, of which --bad says which are bad ones, "
			     "without --",
			     NULL);
	for (size_t i = 0; i < c->others.n; i++)
		if (strcmp(c->others.items[i], "--") == 0)
			return wrong("rank takes one --", NULL);
	if (c->options.raw_pt || (!bad && (c->n_behind == 0 || c->n_behind > c->others.n)))
		return wrong("rank takes recordings of good runs, --, and recordings of bad runs",
			     NULL);
	return PTDECODE_OK;
}

/* Check what is compared. */
static int check_others(const struct command *c)
{
	const struct sink_config *config = &c->outputs.items[0].config;

	if (c->diff &&
	    (c->options.raw_pt || (c->others.n == 0 && !sink_option(config, "function"))))
		return wrong("diff compares two recordings, or executions of a --function in one",
			     NULL);
	if (c->rank && check_rank(c, config) != PTDECODE_OK)
		return PTDECODE_USAGE;
	if (!c->diff && !c->rank)
		return PTDECODE_OK;
	for (size_t i = 0; i <= c->others.n; i++) {
		const char *input = i == 0 ? c->options.input : c->others.items[i - 1];

		if (input && strcmp(input, "-") == 0)
			return wrong("what is compared is read from files", input);
	}
	return PTDECODE_OK;
}

/* Check what goes with what: the first rule that is broken is reported. */
static int check_rules(const struct command *c)
{
	const struct ptd_options *o = &c->options;
	bool is_empty = o->input && !o->input[0];
	for (size_t i = 0; i < c->others.n; i++)
		is_empty = is_empty || !c->others.items[i][0];
	const struct {
		bool is_broken;
		const char *message, *argument;
	} rules[] = {
		{ o->input && o->raw_pt, "--raw-pt takes the place of a recording", o->input },
		{ is_empty, "the name of the recording is empty", NULL },
		{ !o->raw_pt && c->code.n > 0,
		  "--raw-pages, --raw-elf and --raw-code go with --raw-pt", o->input },
		{ o->core && o->raw_pt, "--core goes with a recording", o->core },
		{ o->ovni && o->raw_pt, "--ovni goes with a recording", o->ovni },
		{ !o->raw_pt && o->raw_filter, "--filter goes with --raw-pt", o->raw_filter },
		{ c->verify && o->input && strcmp(o->input, "-") == 0,
		  "verify reads its recording twice", o->input },
	};

	for (size_t i = 0; i < ARRAY_LEN(rules); i++)
		if (rules[i].is_broken)
			return wrong(rules[i].message, rules[i].argument);
	return PTDECODE_OK;
}

/* Take the recordings, which follow the verb. */
static int take_inputs(struct command *c, char *const *words)
{
	if (*words)
		c->options.input = *words++;
	while (*words && (c->rank || (c->diff && c->others.n == 0)))
		if (vec_push(&c->others, *words++) < 0)
			return report(-ENOMEM, NULL);
	return *words ? wrong("one recording at a time", *words) : PTDECODE_OK;
}

/* Print the help that @words ask for, and end the process. Return: PTDECODE_USAGE, after the error
 * was logged. */
static int show_help(char *const *words)
{
	const struct verb *verb;

	if (!words[0]) {
		verb_help(stdout);
		exit(PTDECODE_OK);
	}
	if (strcmp(words[0], VERB_EXPORT_WORD) == 0) {
		words++;
		if (!words[0]) {
			verb_help_export(stdout);
			exit(PTDECODE_OK);
		}
	}
	verb = verb_of_name(words[0]);
	if (!verb)
		return wrong("no such verb or format", words[0]);
	verb_help_of(stdout, verb);
	exit(PTDECODE_OK);
}

/* Check that the verb takes the options of the whole decode that were given. */
static int check_options(const struct verb *verb, const bool *given)
{
	for (int id = 0; id < VERB_OPT_OF_SINK; id++) {
		const struct verb_option *o = given[id] ? verb_refused(verb, id) : NULL;

		if (o) {
			log_error("%s has no option --%s. Try: ptdecode help %s", verb_name(verb),
				  o->name, verb_name(verb));
			return PTDECODE_USAGE;
		}
	}
	return PTDECODE_OK;
}

/* Take the words that are no options: a verb, and recordings; and add the outputs. */
static int take_words(struct command *c, char *const *words, const struct request *request,
		      const bool *given)
{
	const struct verb *verb;
	size_t n_words;
	int r = 0, status;

	if (words[0] && strcmp(words[0], "help") == 0)
		return show_help(words + 1);
	if (c->help)
		return show_help(words);
	verb = verb_find(words, &n_words);
	if (!verb)
		return PTDECODE_USAGE;
	c->verify = !verb->ops;
	c->diff = verb->ops == &diff_ops;
	c->rank = verb->ops == &rank_ops;
	status = check_options(verb, given);
	if (status == PTDECODE_OK)
		status = take_inputs(c, words + n_words);
	if (status == PTDECODE_OK)
		status = check_rules(c);
	if (status != PTDECODE_OK)
		return status;
	if (verb->ops)
		r = requested_add(&c->outputs, verb, request);
	else if (request->n_options > 0)
		return wrong("verify has no such option", request->options[0].name);
	for (size_t i = 0; r == 0 && i < c->n_also; i++)
		r = requested_parse(&c->outputs, c->also[i]);
	if (r < 0)
		return r == -EINVAL ? PTDECODE_USAGE : report(r, NULL);
	return check_others(c);
}

/* The part of the trace that is asked for borrows the lists. */
static void fill_in_part(struct command *c)
{
	struct ptd_part *part = &c->options.part;

	part->cpus = c->asked.cpus.items;
	part->n_cpus = c->asked.cpus.n;
	part->pids = c->asked.pids.items;
	part->n_pids = c->asked.pids.n;
	part->tids = c->asked.tids.items;
	part->n_tids = c->asked.tids.n;
	part->comms = c->asked.comms.items;
	part->n_comms = c->asked.comms.n;
	part->symbols = c->asked.symbols.items;
	part->n_symbols = c->asked.symbols.n;
	part->objects = c->asked.objects.items;
	part->n_objects = c->asked.objects.n;
}

/* Return: 0 or -ENOMEM. */
static int list_inputs(struct command *c)
{
	const struct ptd_options *o = &c->options;
	const char *const named[] = { o->input, o->raw_pt, o->core, o->instr_map, o->ovni };
	int r = 0;

	for (size_t i = 0; i < ARRAY_LEN(named) && r == 0; i++)
		if (named[i])
			r = vec_push(&c->inputs, named[i]);
	for (size_t i = 0; i < c->others.n && r == 0; i++)
		r = vec_push(&c->inputs, c->others.items[i]);
	for (size_t i = 0; i < c->code.n && r == 0; i++) {
		r = vec_push(&c->inputs, c->code.items[i].path);
		if (r == 0 && c->code.items[i].address_path)
			r = vec_push(&c->inputs, c->code.items[i].address_path);
	}
	return r;
}

/* Return: how many words stand behind the first "--". (getopt_long() moves words that stand before
 * it behind it.) */
static size_t count_behind(int argc, char *const *argv)
{
	for (int i = 1; i < argc; i++)
		if (strcmp(argv[i], "--") == 0)
			return (size_t)(argc - i - 1);
	return 0;
}

int command_parse(struct command *c, int argc, char **argv)
{
	struct option options[VERB_OPTIONS_MAX];
	bool given[VERB_OPT_OF_SINK] = {};
	struct request request = {};
	int id, r, status = PTDECODE_OK;
	const char *name;

	*c = (struct command){};
	c->options.size = sizeof(c->options);
	c->n_behind = count_behind(argc, argv);
	verb_options(options);
	while (status == PTDECODE_OK && (id = verb_next_option(argc, argv, options, &name)) != -1) {
		if (id < 0)
			return PTDECODE_USAGE;
		r = requested_note(&request, id, name, optarg);
		if (r == REQUESTED_OTHER)
			status = parse_option(c, id);
		else if (r < 0)
			status = PTDECODE_USAGE;
		if (id < VERB_OPT_OF_SINK)
			given[id] = true;
	}
	if (status == PTDECODE_OK)
		status = take_words(c, argv + optind, &request, given);
	if (status == PTDECODE_OK)
		status = find_snapshots(c);
	if (status != PTDECODE_OK)
		return status;
	fill_in_part(c);
	if ((!c->options.buildid_dir && default_buildid_dir(c) < 0) || list_inputs(c) < 0)
		return report(-ENOMEM, NULL);
	return PTDECODE_OK;
}

void command_deinit(struct command *c)
{
	vec_deinit(&c->code);
	vec_deinit(&c->inputs);
	vec_deinit(&c->asked.cpus);
	vec_deinit(&c->asked.pids);
	vec_deinit(&c->asked.tids);
	vec_deinit(&c->asked.comms);
	vec_deinit(&c->asked.symbols);
	vec_deinit(&c->asked.objects);
	requested_deinit(&c->outputs);
	rawcode_deinit(&c->raw_code);
	free(c->home_debug);
	vec_deinit(&c->others);
	vec_deinit_each(&c->snapshots, path, free(*path));
}

static int read_code(struct rawcode *raw, const struct command_code *code, char **reterr_message)
{
	switch (code->kind) {
	case COMMAND_PAGES:
		return rawcode_add_pages(raw, code->address_path, code->path, reterr_message);
	case COMMAND_ELF:
		return rawcode_add_elf(raw, code->path, reterr_message);
	default:
		return rawcode_add_file(raw, code->path, code->address, reterr_message);
	}
}

int command_read_code(struct command *c)
{
	for (size_t i = 0; i < c->code.n; i++) {
		char *message = NULL;
		const int r = read_code(&c->raw_code, &c->code.items[i], &message);

		if (r < 0) {
			command_log(r, message);
			return r;
		}
	}
	c->options.raw_code = c->raw_code.items;
	c->options.n_raw_code = c->raw_code.n;
	return 0;
}
