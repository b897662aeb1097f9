/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/cmd/verb.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "decoder/sink/answer/diff.h"
#include "decoder/sink/answer/rank.h"
#include "decoder/sink/sinks.h"
#include "ptd/snapshot.h"

/* What most verbs are. */
#define USUAL (VERB_WRITES | VERB_ENGINE | VERB_JOINS)
#define CALLS (USUAL | VERB_INLINES)

static const struct verb verbs[] = {
	{ .ops = &sink_summary, .group = VERB_ASK, .properties = USUAL },
	{ .ops = &sink_text, .group = VERB_ASK, .properties = USUAL | VERB_POSITIONS },
	{ .ops = &sink_calls, .group = VERB_ASK, .properties = CALLS | VERB_POSITIONS },
	{ .ops = &sink_functions, .group = VERB_ASK, .properties = CALLS },
	{ .ops = &sink_latency, .group = VERB_ASK, .properties = CALLS },
	{ .ops = &sink_stacks, .group = VERB_ASK, .properties = USUAL | VERB_CORE },
	{ .ops = &sink_crash, .group = VERB_ASK, .properties = USUAL | VERB_CORE },
	{ .ops = &sink_branches, .group = VERB_ASK, .properties = USUAL },
	{ .ops = &sink_probes, .group = VERB_ASK, .properties = USUAL },
	{ .ops = &diff_ops, .group = VERB_ASK, .properties = VERB_WRITES | VERB_ENGINE },
	{ .ops = &rank_ops, .group = VERB_ASK, .properties = VERB_WRITES | VERB_ENGINE },
	{ .ops = &sink_sideband, .group = VERB_ASK, .properties = USUAL },
	{ .group = VERB_ASK,
	  .name = "verify",
	  .help = "whether both engines decode the same, and where they first differ" },
	{ .ops = &sink_html, .group = VERB_OPEN, .properties = CALLS },
	{ .ops = &sink_fxt, .group = VERB_EXPORT, .properties = CALLS | VERB_POSITIONS },
	{ .ops = &sink_chrome, .group = VERB_EXPORT, .properties = CALLS | VERB_POSITIONS },
	{ .ops = &sink_collapsed, .group = VERB_EXPORT, .properties = CALLS },
	{ .ops = &sink_pprof, .group = VERB_EXPORT, .properties = CALLS | VERB_POSITIONS },
	{ .ops = &sink_callgrind, .group = VERB_EXPORT, .properties = CALLS | VERB_POSITIONS },
	{ .ops = &sink_autofdo, .group = VERB_EXPORT, .properties = USUAL },
	{ .ops = &sink_lcov, .group = VERB_EXPORT, .properties = USUAL },
	{ .ops = &sink_bolt, .group = VERB_EXPORT, .properties = USUAL },
	{ .ops = &sink_drmemtrace, .group = VERB_EXPORT, .properties = USUAL },
	{ .ops = &sink_xray, .group = VERB_EXPORT, .properties = CALLS },
	{ .ops = &sink_ovni, .group = VERB_EXPORT, .properties = CALLS },
	{ .ops = &sink_addresses, .group = VERB_EXPORT, .properties = USUAL },
};

/* Options of all verbs, or of those with some properties. */
static const struct verb_option common[] = {
	{ 'o', VERB_OUTPUT, VERB_WRITES, "output", "PATH",
	  "where to write (default: standard output)" },
	{ VERB_OPT_LINES, VERB_OUTPUT, VERB_POSITIONS, "lines", NULL, "show source lines" },
	{ VERB_OPT_INLINES, VERB_OUTPUT, VERB_INLINES, "inlines", "=no",
	  "without the calls of functions that were inlined" },
	{ VERB_OPT_INLINES, VERB_OUTPUT, VERB_POSITIONS, "inlines", NULL,
	  "show source lines, and the functions inlined there" },
	{ VERB_OPT_ALSO, VERB_DECODING, VERB_JOINS, "also", "'VERB...'",
	  "another output of the same decode: 'summary -o FILE'" },
	{ VERB_OPT_CORE, VERB_DECODING, VERB_CORE, "core", "FILE",
	  "the core file of a process that crashed" },
	{ VERB_OPT_STATE_DIR, VERB_DECODING, 0, "state-dir", "DIR",
	  "where snapshots are (" PTD_STATE_DIR_DEFAULT ")" },
	{ VERB_OPT_FORCE, VERB_DECODING, 0, "force", NULL,
	  "decode although the snapshot's hashes differ" },
	{ VERB_OPT_MAX_OUTPUT, VERB_DECODING, VERB_WRITES, "max-output", "SIZE",
	  "write no more bytes than that in all, such as 500M" },
	{ VERB_OPT_MAX_SPILL, VERB_DECODING, 0, "max-spill", "SIZE",
	  "put no more than that into temporary files (16G)" },
	{ VERB_OPT_THREADS, VERB_DECODING, 0, "threads", "N",
	  "how many threads work (default: one for each CPU)" },
	{ 'e', VERB_DECODING, VERB_ENGINE, "engine", "flow|insn",
	  "insn is slower, and is the reference (flow)" },
	{ 'h', VERB_DECODING, 0, "help", NULL, "show how ptdecode, or the verb, is used" },
	{ VERB_OPT_VERSION, VERB_DECODING, 0, "version", NULL, "show the version" },
	{ VERB_OPT_TIME, VERB_PART, 0, "time", "FROM,TO",
	  "seconds as in text, -5ms before the end, or a time (UTC)" },
	{ VERB_OPT_CPU, VERB_PART, 0, "cpu", "LIST", "what these CPUs executed: 0-3,8" },
	{ VERB_OPT_PID, VERB_PART, 0, "pid", "LIST", "what these processes executed" },
	{ VERB_OPT_ALL, VERB_PART, 0, "all", NULL,
	  "what all processes executed, though the snapshot is about some" },
	{ VERB_OPT_TID, VERB_PART, 0, "tid", "LIST", "what these threads executed" },
	{ VERB_OPT_COMM, VERB_PART, 0, "comm", "NAME", "what threads of this name executed" },
	{ VERB_OPT_SYMBOL, VERB_PART, 0, "symbol", "NAME", "instructions in this function" },
	{ VERB_OPT_OBJECT, VERB_PART, 0, "object", "NAME",
	  "instructions in this file: its path, or the end of it" },
	{ VERB_OPT_LAST, VERB_PART, 0, "last", "N",
	  "of each thread, the last N instructions of all that" },
	{ VERB_OPT_DEBUG_DIR, VERB_FILES, 0, "debug-dir", "DIR",
	  "debug files are there, then in /usr/lib/debug" },
	{ VERB_OPT_BUILDID_DIR, VERB_FILES, 0, "buildid-dir", "DIR",
	  "files by build-id are there, as perf's (~/.debug)" },
	{ VERB_OPT_SYMFS, VERB_FILES, 0, "symfs", "DIR",
	  "files are below DIR instead of at their paths" },
	{ VERB_OPT_DEBUGINFOD, VERB_FILES, 0, "debuginfod", NULL,
	  "get missing files from the servers in DEBUGINFOD_URLS" },
	{ VERB_OPT_INSTR_MAP, VERB_FILES, 0, "instr-map", "FILE",
	  "the program that a log of XRay is of" },
	{ VERB_OPT_OVNI, VERB_FILES, 0, "ovni", "DIR",
	  "show events that the program noted in this trace of ovni" },
	{ VERB_OPT_RAW_PT, VERB_RAW, 0, "raw-pt", "FILE", "the PT bytes" },
	{ VERB_OPT_RAW_PAGES, VERB_RAW, 0, "raw-pages", "ADDRFILE,CODEFILE",
	  "pages of code, and the address of each" },
	{ VERB_OPT_RAW_ELF, VERB_RAW, 0, "raw-elf", "FILE",
	  "the executable segments of an ELF file" },
	{ VERB_OPT_RAW_CODE, VERB_RAW, 0, "raw-code", "FILE@ADDR", "a file of code at an address" },
	{ VERB_OPT_FILTER, VERB_RAW, 0, "filter", "FILTER",
	  "the code that was traced: filter 0x401000/0x80" },
	{ VERB_OPT_CPU_MODEL, VERB_CPU, 0, "cpu-model", "F/M/S", "its family, model and stepping" },
	{ VERB_OPT_MTC_FREQ, VERB_CPU, 0, "mtc-freq", "N", "its MTC period" },
	{ VERB_OPT_NOM_FREQ, VERB_CPU, 0, "nom-freq", "N",
	  "its nominal frequency in units of 100 MHz" },
	{ VERB_OPT_CPUID_15, VERB_CPU, 0, "cpuid-15", "A/B", "EAX and EBX of its CPUID leaf 0x15" },
};

const char *verb_name(const struct verb *verb)
{
	return verb->ops ? verb->ops->name : verb->name;
}

static const char *help_of(const struct verb *verb)
{
	return verb->ops ? verb->ops->help : verb->help;
}

const struct verb *verb_of_name(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(verbs); i++)
		if (strcmp(verb_name(&verbs[i]), name) == 0)
			return &verbs[i];
	return NULL;
}

const struct verb *verb_find(char *const *words, size_t *ret_n_words)
{
	const bool exports = words[0] && strcmp(words[0], VERB_EXPORT_WORD) == 0;
	const char *name = exports ? words[1] : words[0];
	const struct verb *verb = name ? verb_of_name(name) : NULL;

	*ret_n_words = exports ? 2 : 1;
	if (!name)
		log_error(exports ? "export into which format? Try: ptdecode help export"
				  : "which verb? Try: ptdecode --help");
	else if (exports && (!verb || verb->group != VERB_EXPORT))
		log_error("no such format: \"%s\". Try: ptdecode help export", name);
	else if (!verb)
		log_error("no such verb: \"%s\". Try: ptdecode --help", name);
	else if (!exports && verb->group == VERB_EXPORT)
		log_error("\"%s\" is a format, so that the verb is: export %s", name, name);
	else
		return verb;
	return NULL;
}

const struct verb_option *verb_refused(const struct verb *verb, int id)
{
	const struct verb_option *refused = NULL;

	/* --inlines stands twice. */
	for (size_t i = 0; i < ARRAY_LEN(common); i++) {
		if (common[i].id != id)
			continue;
		if ((common[i].needs & verb->properties) == common[i].needs)
			return NULL;
		refused = &common[i];
	}
	return refused;
}

static bool has_option(const struct option *options, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(options[i].name, name) == 0)
			return true;
	return false;
}

/* Return: whether an option has a value, as getopt_long() wants it. */
static int arity_of(const char *value)
{
	if (!value)
		return no_argument;
	return value[0] == '=' ? optional_argument : required_argument;
}

void verb_options(struct option ret_options[static VERB_OPTIONS_MAX])
{
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_LEN(common); i++) {
		/* --inlines stands twice: with a value, and without. */
		if (has_option(ret_options, n, common[i].name))
			continue;
		ret_options[n++] = (struct option){ common[i].name, arity_of(common[i].value), NULL,
						    common[i].id };
	}
	/* One that several kinds state, such as rows, is one option. */
	for (size_t i = 0; i < ARRAY_LEN(verbs); i++) {
		const struct sink_option *o = verbs[i].ops ? verbs[i].ops->options : NULL;

		for (; o && o->name; o++) {
			if (has_option(ret_options, n, o->name))
				continue;
			assert(n + 2 < VERB_OPTIONS_MAX);
			ret_options[n] = (struct option){
				o->name,
				o->value ? required_argument : no_argument,
				NULL,
				VERB_OPT_OF_SINK + (int)n,
			};
			n++;
		}
	}
	ret_options[n++] = (struct option){ "format", required_argument, NULL, 'f' };
	ret_options[n] = (struct option){};
}

/* Say how @format, which -f takes no longer, is asked for. */
static void log_old_format(const char *format)
{
	const size_t n = strcspn(format, ":");
	const struct verb *verb = NULL;

	for (size_t i = 0; i < ARRAY_LEN(verbs); i++)
		if (strlen(verb_name(&verbs[i])) == n &&
		    strncmp(verb_name(&verbs[i]), format, n) == 0)
			verb = &verbs[i];
	if (verb)
		log_error("there is no -f: the verb is \"%s%s\". Try: ptdecode help %s",
			  verb->group == VERB_EXPORT ? VERB_EXPORT_WORD " " : "", verb_name(verb),
			  verb_name(verb));
	else
		log_error("there is no -f: a verb says what to show. Try: ptdecode --help");
}

int verb_next_option(int argc, char **argv, const struct option *options, const char **ret_name)
{
	int index = -1;
	const int id = getopt_long(argc, argv, ":o:e:hf:", options, &index);
	const char *word = optind > 0 && optind <= argc ? argv[optind - 1] : "";

	*ret_name = index >= 0 ? options[index].name : NULL;
	switch (id) {
	case 'f':
		log_old_format(optarg);
		return -EINVAL;
	case ':':
		log_error("the option needs a value: \"%s\". Try: ptdecode --help", word);
		return -EINVAL;
	case '?':
		log_error(optopt >= VERB_OPT_ALSO
			      ? "the option takes no value: \"%s\". Try: ptdecode --help"
			      : "no such option: \"%s\". Try: ptdecode --help",
			  word);
		return -EINVAL;
	default:
		return id;
	}
}

bool verb_takes(const struct verb *verb, const char *name, const struct sink_option **ret_option)
{
	for (const struct sink_option *o = verb->ops ? verb->ops->options : NULL; o && o->name;
	     o++) {
		if (strcmp(o->name, name) == 0) {
			*ret_option = o;
			return true;
		}
	}
	return false;
}

/* --- help ------------------------------------------------------------------------------------- */

static void help_option(FILE *f, const struct verb_option *o)
{
	const char letter[] = { '-', (char)o->id, ',', ' ', '\0' };
	char left[64];
	const int n = snprintf(left, sizeof(left), "%s--%s%s%s",
			       o->id > 0 && o->id < VERB_OPT_ALSO ? letter : "    ", o->name,
			       o->value && o->value[0] != '=' ? " " : "", o->value ?: "");

	if (n > 24)
		fprintf(f, "  %s\n  %24s  %s\n", left, "", o->help);
	else
		fprintf(f, "  %-24s  %s\n", left, o->help);
}

static void help_sink_option(FILE *f, const struct sink_option *o)
{
	help_option(f,
		    &(struct verb_option){ .name = o->name, .value = o->value, .help = o->help });
}

/* Print the options of a section: those of the verb; NULL: of all verbs. */
static void help_section(FILE *f, enum verb_section section, const struct verb *verb)
{
	static const char *const headings[] = {
		[VERB_DECODING] = "Decoding:",
		[VERB_PART] =
		    "A part of the recording; options with a LIST or NAME may be given several "
		    "times:",
		[VERB_FILES] = "Where files are that are not in the recording:",
		[VERB_RAW] = "A bare PT stream instead of a recording:",
		[VERB_CPU] = "The CPU that recorded, where the recording does not state it:",
	};

	if (headings[section])
		fprintf(f, "\n%s\n", headings[section]);
	for (size_t i = 0; i < ARRAY_LEN(common); i++)
		if (common[i].section == section &&
		    (!verb || (verb->properties & common[i].needs) == common[i].needs))
			help_option(f, &common[i]);
}

static void help_group(FILE *f, enum verb_group group)
{
	for (size_t i = 0; i < ARRAY_LEN(verbs); i++)
		if (verbs[i].group == group)
			fprintf(f, "  %-12s%s\n", verb_name(&verbs[i]), help_of(&verbs[i]));
}

void verb_help(FILE *f)
{
	fputs("Usage: ptdecode VERB [OPTION]... [RECORDING]\n"
	      "       ptdecode export FORMAT [OPTION]... [RECORDING]\n"
	      "       ptdecode help VERB|FORMAT\n"
	      "Decode a snapshot of ptd (a directory, an id, or latest, which is the default), or "
	      "any\n"
	      "perf.data with intel_pt (-: from standard input), into every instruction executed; "
	      "or\n"
	      "read a drmemtrace directory, which has them; or a log of XRay or ovni, which has "
	      "calls.\n"
	      "\nAsk; most of these take --json and --rows N:\n",
	      f);
	help_group(f, VERB_ASK);
	fputs("\nOpen in a browser:\n", f);
	help_group(f, VERB_OPEN);
	fputs("\nExport, by ptdecode export FORMAT:\n", f);
	help_group(f, VERB_EXPORT);
	fputs("\nOptions of all or most verbs; ptdecode help VERB shows those of one, and more:\n",
	      f);
	help_section(f, VERB_OUTPUT, NULL);
	help_section(f, VERB_DECODING, NULL);
	help_section(f, VERB_PART, NULL);
	fputs(
	    "\nExit status: 0 all was decoded, 1 failed or the engines differ, 2 wrong usage, 3 "
	    "decoded\n"
	    "with gaps because the input is damaged or code is missing (the summary says where), 4 "
	    "the\n"
	    "recording has nothing of what was asked for.\n",
	    f);
}

void verb_help_of(FILE *f, const struct verb *verb)
{
	const struct sink_option *const options = verb->ops ? verb->ops->options : NULL;

	fprintf(f, "Usage: ptdecode %s%s", verb->group == VERB_EXPORT ? VERB_EXPORT_WORD " " : "",
		verb_name(verb));
	for (const struct sink_option *o = options; o && o->name; o++)
		if (o->is_required)
			fprintf(f, " --%s %s", o->name, o->value);
	fprintf(f, " [OPTION]... %s\n\n%s\n\nOptions:\n",
		verb->ops == &diff_ops   ? "[RECORDING] [RECORDING]"
		: verb->ops == &rank_ops ? "GOOD... -- BAD..."
					 : "[RECORDING]",
		help_of(verb));
	for (const struct sink_option *o = options; o && o->name; o++)
		help_sink_option(f, o);
	for (enum verb_section section = VERB_OUTPUT; section <= VERB_CPU; section++)
		help_section(f, section, verb);
}

void verb_help_export(FILE *f)
{
	fputs("Usage: ptdecode export FORMAT [OPTION]... [RECORDING]\n\nFormats:\n", f);
	help_group(f, VERB_EXPORT);
	fputs("\nptdecode help FORMAT shows the options of a format.\n", f);
}
