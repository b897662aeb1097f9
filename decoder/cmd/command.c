/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/cmd/command.h"

#include <assert.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "decoder/cmd/snapname.h"
#include "decoder/sink/answer/diff.h"
#include "ptd/snapshot.h"
#include "util/number.h"

static void usage_of_sink(FILE *f, const struct ptd_sink_ops *ops)
{
	fprintf(f, "                          %-12s%s\n", ops->name, ops->help);
	for (const struct ptd_sink_option *o = ops->options; o && o->name; o++)
		fprintf(f, "                          %-12s:%s%s%s\n", "", o->name,
			o->is_flag ? "  " : "=", o->help);
}

static void usage(FILE *f)
{
	fprintf(f,
		"Usage: ptdecode [OPTION]... INPUT\n"
		"       ptdecode [OPTION]... -f diff INPUT [INPUT]\n"
		"       ptdecode [OPTION]... --raw-pt FILE CODE...\n"
		"Decode a snapshot of ptd (a directory, an id, or latest), or any perf.data with\n"
		"intel_pt (-: from standard input), into every instruction executed; or read a\n"
		"drmemtrace directory, which has them; or a log of XRay or ovni, which has\n"
		"calls only.\n"
		"\n"
		"  -f, --format NAME     what to write; may be given several times, each with "
		"its -o:\n");
	for (size_t i = 0; ptd_sink_at(i); i++)
		usage_of_sink(f, ptd_sink_at(i));
	usage_of_sink(f, &diff_ops);
	fprintf(
	    f,
	    "  -o, --output PATH     where to write the format before it (default: standard "
	    "output)\n"
	    "  -e, --engine NAME     flow (default) or insn (slower, the reference)\n"
	    "      --verify          write nothing but where the engines first differ\n"
	    "      --debug-dir DIR   look there for separate debug files, then in /usr/lib/debug\n"
	    "      --lines           show the source line of each instruction (format text) or "
	    "function\n"
	    "                        (format calls)\n"
	    "      --inlines         the same, and the functions that were inlined there\n"
	    "      --buildid-dir DIR look there for files by build-id; laid out as perf's, which "
	    "is the\n"
	    "                        default: ~/.debug\n"
	    "      --symfs DIR       look for files below DIR instead of at their paths\n"
	    "      --debuginfod      get what is missing from the servers that the environment's\n"
	    "                        DEBUGINFOD_URLS names; without this, nothing is asked of "
	    "anybody\n"
	    "      --core FILE       the core file of a process that crashed (formats crash and "
	    "stacks)\n"
	    "      --instr-map FILE  the program whose functions a log of XRay has, with its "
	    "names\n"
	    "      --ovni DIR        a trace of ovni that the recorded programs wrote: show its "
	    "events in\n"
	    "                        the threads that noted them\n"
	    "      --state-dir DIR   look there for a snapshot that is named by its id or as "
	    "latest\n"
	    "                        (or $PTD_STATE_DIR; " PTD_STATE_DIR_DEFAULT ")\n"
	    "      --force           decode although the snapshot's hashes differ\n"
	    "      --max-output SIZE write no more bytes than that, in all outputs together (as "
	    "500M)\n"
	    "      --max-spill SIZE  put no more bytes than that into temporary files (default: "
	    "16G)\n"
	    "      --threads N       how many threads work (default: one for each CPU)\n"
	    "      --cpu-model F/M/S family, model and stepping of the recording CPU\n"
	    "      --mtc-freq N      MTC period of the recording\n"
	    "      --nom-freq N      nominal frequency of the recording CPU, in units of 100 MHz\n"
	    "      --cpuid-15 A/B    EAX and EBX of its CPUID leaf 0x15\n"
	    "  -h, --help            this text\n"
	    "      --version         the version\n"
	    "\n"
	    "A part of the trace; options with a LIST or NAME may be given several times:\n"
	    "      --time FROM,TO    from FROM on and before TO, each in seconds as text has them, "
	    "as\n"
	    "                        -5ms before the end, or as a time of day (UTC); or empty\n"
	    "      --cpu LIST        what these CPUs executed: 0-3,8\n"
	    "      --pid LIST        what these processes executed\n"
	    "      --tid LIST        what these threads executed\n"
	    "      --comm NAME       what threads of this name executed\n"
	    "      --symbol NAME     instructions in this function\n"
	    "      --object NAME     instructions in this file: its path, or the last part of it\n"
	    "      --last N          of each thread the last N instructions of what else is asked "
	    "for\n"
	    "\n"
	    "A bare PT stream:\n"
	    "      --raw-pt FILE                 the PT bytes\n"
	    "      --raw-pages ADDRFILE,CODEFILE 4 KiB pages of code, and the address of each\n"
	    "      --raw-elf FILE                the executable segments of an ELF file\n"
	    "      --raw-code FILE@ADDR          a file of code at an address\n"
	    "      --filter FILTER               the code that was traced, as filter "
	    "0x401000/0x80\n"
	    "\n"
	    "Exit status: 0 all was decoded, 1 failed or the engines differ, 2 wrong usage, 3 "
	    "decoded\n"
	    "with gaps because the input is damaged or code is missing (the summary says "
	    "where).\n");
}

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

/* @format belongs to the command line and is cut up here. */
static int add_output(struct command *c, char *format)
{
	const int r = requested_add(&c->outputs, format, &diff_ops);

	if (r < 0)
		return PTDECODE_USAGE;
	c->diff = c->diff || c->outputs.items[c->outputs.n - 1].ops == &diff_ops;
	return 0;
}

static int set_output_path(struct command *c, const char *path)
{
	return requested_set_path(&c->outputs, path) < 0 ? PTDECODE_USAGE : 0;
}

enum {
	OPT_FORCE = 256,
	OPT_MAX_OUTPUT,
	OPT_MAX_SPILL,
	OPT_THREADS,
	OPT_DEBUG_DIR,
	OPT_LINES,
	OPT_INLINES,
	OPT_BUILDID_DIR,
	OPT_SYMFS,
	OPT_DEBUGINFOD,
	OPT_CORE,
	OPT_INSTR_MAP,
	OPT_OVNI,
	OPT_CPU_MODEL,
	OPT_MTC_FREQ,
	OPT_NOM_FREQ,
	OPT_CPUID_15,
	OPT_RAW_PT,
	OPT_RAW_PAGES,
	OPT_RAW_ELF,
	OPT_RAW_CODE,
	OPT_FILTER,
	OPT_STATE_DIR,
	OPT_TIME,
	OPT_CPU,
	OPT_PID,
	OPT_TID,
	OPT_COMM,
	OPT_SYMBOL,
	OPT_OBJECT,
	OPT_LAST,
	OPT_VERIFY,
	OPT_VERSION,
};

static const struct option long_options[] = {
	{ "format", required_argument, NULL, 'f' },
	{ "output", required_argument, NULL, 'o' },
	{ "engine", required_argument, NULL, 'e' },
	{ "verify", no_argument, NULL, OPT_VERIFY },
	{ "debug-dir", required_argument, NULL, OPT_DEBUG_DIR },
	{ "lines", no_argument, NULL, OPT_LINES },
	{ "inlines", no_argument, NULL, OPT_INLINES },
	{ "buildid-dir", required_argument, NULL, OPT_BUILDID_DIR },
	{ "symfs", required_argument, NULL, OPT_SYMFS },
	{ "debuginfod", no_argument, NULL, OPT_DEBUGINFOD },
	{ "core", required_argument, NULL, OPT_CORE },
	{ "instr-map", required_argument, NULL, OPT_INSTR_MAP },
	{ "ovni", required_argument, NULL, OPT_OVNI },
	{ "force", no_argument, NULL, OPT_FORCE },
	{ "max-output", required_argument, NULL, OPT_MAX_OUTPUT },
	{ "max-spill", required_argument, NULL, OPT_MAX_SPILL },
	{ "threads", required_argument, NULL, OPT_THREADS },
	{ "cpu-model", required_argument, NULL, OPT_CPU_MODEL },
	{ "mtc-freq", required_argument, NULL, OPT_MTC_FREQ },
	{ "nom-freq", required_argument, NULL, OPT_NOM_FREQ },
	{ "cpuid-15", required_argument, NULL, OPT_CPUID_15 },
	{ "raw-pt", required_argument, NULL, OPT_RAW_PT },
	{ "raw-pages", required_argument, NULL, OPT_RAW_PAGES },
	{ "raw-elf", required_argument, NULL, OPT_RAW_ELF },
	{ "raw-code", required_argument, NULL, OPT_RAW_CODE },
	{ "filter", required_argument, NULL, OPT_FILTER },
	{ "state-dir", required_argument, NULL, OPT_STATE_DIR },
	{ "time", required_argument, NULL, OPT_TIME },
	{ "cpu", required_argument, NULL, OPT_CPU },
	{ "pid", required_argument, NULL, OPT_PID },
	{ "tid", required_argument, NULL, OPT_TID },
	{ "comm", required_argument, NULL, OPT_COMM },
	{ "symbol", required_argument, NULL, OPT_SYMBOL },
	{ "object", required_argument, NULL, OPT_OBJECT },
	{ "last", required_argument, NULL, OPT_LAST },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, OPT_VERSION },
	{},
};

static int parse_ids(const char *option, const char *text, struct asked_ids *ids)
{
	const int r = asked_add_ids(ids, text);

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
	const int r = asked_add_name(names, name);

	return r < 0 ? report(r, NULL) : 0;
}

/* Parse an option by which a part of the trace is asked for. Return: an exit status. */
static int parse_part(struct command *c, int option)
{
	struct asked *asked = &c->asked;

	switch (option) {
	case OPT_TIME:
		c->options.part.time = optarg;
		return 0;
	case OPT_CPU:
		return parse_ids("--cpu takes a list of CPUs, as 0-3,8", optarg, &asked->cpus);
	case OPT_PID:
		return parse_ids("--pid takes a list of processes, as 17,23", optarg, &asked->pids);
	case OPT_TID:
		return parse_ids("--tid takes a list of threads, as 17,23", optarg, &asked->tids);
	case OPT_COMM:
		return parse_name(optarg, &asked->comms);
	case OPT_SYMBOL:
		return parse_name(optarg, &asked->symbols);
	case OPT_LAST:
		return parse_last(optarg, &c->options.part.last);
	default:
		return parse_name(optarg, &asked->objects);
	}
}

/* Return: an exit status. --help and --version end the process. */
static int parse_option(struct command *c, int option)
{
	switch (option) {
	case 'f':
		return add_output(c, optarg);
	case 'o':
		return set_output_path(c, optarg);
	case 'e':
		c->options.engine = optarg;
		return ptd_engine_exists(optarg) ? 0 : wrong("no such engine", optarg);
	case OPT_VERIFY:
		c->verify = true;
		return 0;
	case OPT_DEBUG_DIR:
		c->options.debug_dir = optarg;
		return 0;
	case OPT_LINES:
	case OPT_INLINES:
		if (option == OPT_INLINES || c->positions == PTD_SHOW_NO_POSITIONS)
			c->positions = option == OPT_LINES ? PTD_SHOW_LINES : PTD_SHOW_INLINES;
		return 0;
	case OPT_BUILDID_DIR:
		c->options.buildid_dir = optarg;
		return 0;
	case OPT_SYMFS:
		c->options.symfs = optarg;
		return 0;
	case OPT_CORE:
		c->options.core = optarg;
		return 0;
	case OPT_INSTR_MAP:
		c->options.instr_map = optarg;
		return 0;
	case OPT_OVNI:
		c->options.ovni = optarg;
		return 0;
	case OPT_DEBUGINFOD:
		c->debuginfod = true;
		return 0;
	case OPT_FORCE:
		c->options.force = true;
		return 0;
	case OPT_MAX_OUTPUT:
		return parse_size("--max-output takes a number of bytes, as 500M", optarg,
				  &c->max_output);
	case OPT_MAX_SPILL:
		return parse_size("--max-spill takes a number of bytes, as 500M", optarg,
				  &c->options.max_spill);
	case OPT_THREADS:
		return parse_threads(c, optarg);
	case OPT_CPU_MODEL:
		return parse_cpu_model(&c->options, optarg);
	case OPT_MTC_FREQ:
		return parse_byte("--mtc-freq takes a number", optarg, &c->options.mtc_freq);
	case OPT_NOM_FREQ:
		return parse_byte("--nom-freq takes a number", optarg, &c->options.nom_freq);
	case OPT_CPUID_15:
		return parse_cpuid_15(&c->options, optarg);
	case OPT_RAW_PT:
		c->options.raw_pt = optarg;
		return 0;
	case OPT_RAW_PAGES:
		return parse_pages(c, optarg);
	case OPT_RAW_ELF:
		return add_code(c, &(struct command_code){ .kind = COMMAND_ELF, .path = optarg });
	case OPT_RAW_CODE:
		return parse_code(c, optarg);
	case OPT_FILTER:
		c->options.raw_filter = optarg;
		return 0;
	case OPT_STATE_DIR:
		c->state_dir = optarg;
		return 0;
	case OPT_TIME:
	case OPT_CPU:
	case OPT_PID:
	case OPT_TID:
	case OPT_COMM:
	case OPT_SYMBOL:
	case OPT_OBJECT:
	case OPT_LAST:
		return parse_part(c, option);
	case 'h':
		usage(stdout);
		exit(PTDECODE_OK);
	case OPT_VERSION:
		printf("ptdecode %s\n", ptd_version());
		exit(PTDECODE_OK);
	default:
		fputs("Try: ptdecode --help\n", stderr); /* getopt has said why */
		return PTDECODE_USAGE;
	}
}

/* Look for files in ~/.debug, where perf keeps copies of the files that it recorded. */
static int default_buildid_dir(struct command *c)
{
	const char *home = secure_getenv("HOME");

	if (!home || home[0] != '/')
		return 0;
	if (asprintf(&c->home_debug, "%s/.debug", home) < 0) {
		c->home_debug = NULL;
		return -ENOMEM;
	}
	c->options.buildid_dir = c->home_debug;
	return 0;
}

/* If the input is no file but can be the name of a snapshot, use that snapshot. */
static int find_snapshot(const struct command *c, const char **input, char **ret_snapshot)
{
	const char *from_env = getenv("PTD_STATE_DIR"), *state_dir = c->state_dir;
	char *message = NULL;
	int r;

	if (!*input || !snapname_is(*input))
		return PTDECODE_OK;
	if (!state_dir)
		state_dir = from_env && from_env[0] ? from_env : PTD_STATE_DIR_DEFAULT;
	r = snapname_find(*input, state_dir, ret_snapshot, &message);
	if (r < 0)
		return report(r, message);
	*input = *ret_snapshot;
	return PTDECODE_OK;
}

static int check_diff(const struct command *c)
{
	const char *const inputs[] = { c->options.input, c->other_input };
	const struct ptd_sink_config *config = &c->outputs.items[0].config;

	if (!c->diff)
		return PTDECODE_OK;
	if (c->outputs.n > 1)
		return wrong("-f diff is the only format, if it is one", NULL);
	if (!c->options.input || (!c->other_input && !ptd_sink_option(config, "function")))
		return wrong("-f diff compares two inputs, or executions of a function in one",
			     NULL);
	for (size_t i = 0; i < ARRAY_LEN(inputs) && inputs[i]; i++) {
		if (!inputs[i][0])
			return wrong("the name of the input is empty", NULL);
		if (strcmp(inputs[i], "-") == 0)
			return wrong("-f diff reads its inputs more than once", inputs[i]);
	}
	return PTDECODE_OK;
}

/* Check what goes with what: the first rule that is broken is reported. */
static int check_rules(const struct command *c)
{
	const struct ptd_options *o = &c->options;
	const struct {
		bool is_broken;
		const char *message, *argument;
	} rules[] = {
		{ o->input && o->raw_pt, "--raw-pt takes the place of an input", o->input },
		{ o->input && !o->input[0], "the name of the input is empty", NULL },
		{ !o->input && !o->raw_pt,
		  "expected a snapshot, a perf.data file, a drmemtrace directory, or --raw-pt",
		  NULL },
		{ o->input && c->code.n > 0,
		  "--raw-pages, --raw-elf and --raw-code go with --raw-pt", o->input },
		{ o->core && o->raw_pt, "--core goes with a recording", o->core },
		{ o->ovni && o->raw_pt, "--ovni goes with a recording", o->ovni },
		{ o->input && o->raw_filter, "--filter goes with --raw-pt", o->raw_filter },
		{ c->verify && (c->outputs.n > 0 || o->engine),
		  "--verify decodes with both engines, and writes no format", NULL },
		{ c->verify && c->positions, "--lines and --inlines go with a format", NULL },
		{ c->verify && o->input && strcmp(o->input, "-") == 0,
		  "--verify reads its input twice", o->input },
	};

	for (size_t i = 0; i < ARRAY_LEN(rules); i++)
		if (rules[i].is_broken)
			return wrong(rules[i].message, rules[i].argument);
	return PTDECODE_OK;
}

/* Take the inputs, which follow the options. */
static int take_inputs(struct command *c, int argc, char **argv)
{
	if (optind < argc)
		c->options.input = argv[optind++];
	if (optind < argc && c->diff)
		c->other_input = argv[optind++];
	return optind < argc ? wrong("one input at a time", argv[optind]) : PTDECODE_OK;
}

int command_parse(struct command *c, int argc, char **argv)
{
	int option, status = PTDECODE_OK;

	*c = (struct command){};
	c->options.size = sizeof(c->options);
	while (status == PTDECODE_OK &&
	       (option = getopt_long(argc, argv, "f:o:e:h", long_options, NULL)) != -1)
		status = parse_option(c, option);
	if (status == PTDECODE_OK)
		status = take_inputs(c, argc, argv);
	if (status == PTDECODE_OK)
		status = check_rules(c);
	if (status != PTDECODE_OK)
		return status;
	asked_fill_in(&c->asked, &c->options.part);
	if (c->outputs.n == 0 && !c->verify)
		(void)add_output(c, "text");
	if (requested_check(&c->outputs) < 0)
		return PTDECODE_USAGE;
	status = check_diff(c);
	if (status == PTDECODE_OK)
		status = find_snapshot(c, &c->options.input, &c->snapshots[0]);
	if (status == PTDECODE_OK)
		status = find_snapshot(c, &c->other_input, &c->snapshots[1]);
	if (status != PTDECODE_OK)
		return status;
	if (!c->options.buildid_dir && default_buildid_dir(c) < 0)
		return report(-ENOMEM, NULL);
	return PTDECODE_OK;
}

void command_deinit(struct command *c)
{
	vec_deinit(&c->code);
	asked_deinit(&c->asked);
	rawcode_deinit(&c->raw_code);
	free(c->home_debug);
	for (size_t i = 0; i < ARRAY_LEN(c->snapshots); i++)
		free(c->snapshots[i]);
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
