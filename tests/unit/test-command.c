/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Command lines of ptdecode: what they ask for, or what is said of them. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decoder/cmd/command.h"
#include "tests/lib/failing.h"
#include "tests/lib/kinds.h"
#include "tests/lib/logged.h"

/* A command line, to be cut in two where the parser likes; a _ is a blank within a word. */
struct line {
	char text[512];
	char *argv[32];
	int argc;
	struct command command;
};

static int parse(struct line *l, const char *words)
{
	char *rest;
	int status;

	(void)snprintf(l->text, sizeof(l->text), "ptdecode %s", words);
	l->argc = 0;
	for (char *word = strtok_r(l->text, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
		assert_true(l->argc + 1 < (int)ARRAY_LEN(l->argv));
		for (char *blank = word; (blank = strchr(blank, '_'));)
			*blank = ' ';
		l->argv[l->argc++] = strcmp(word, "''") == 0 ? word + 2 : word;
	}
	l->argv[l->argc] = NULL;
	optind = 0; /* start over */
	status = command_parse(&l->command, l->argc, l->argv);
	return status;
}

static void wrong_ones(void **state)
{
	static const struct {
		const char *words, *said;
	} rows[] = {
		{ "", "which verb? Try: ptdecode --help" },
		{ "show a", "no such verb: \"show\". Try: ptdecode --help" },
		{ "a", "no such verb: \"a\"" },
		{ "''", "no such verb: \"\"" },
		{ "export", "export into which format? Try: ptdecode help export" },
		{ "export text a", "no such format: \"text\". Try: ptdecode help export" },
		{ "fxt a", "\"fxt\" is a format, so that the verb is: export fxt" },
		{ "help nothing", "no such verb or format: \"nothing\"" },
		{ "nothing --help", "no such verb or format: \"nothing\"" },
		{ "-f calls:json a",
		  "there is no -f: the verb is \"calls\". Try: ptdecode help calls" },
		{ "a -ffxt", "there is no -f: the verb is \"export fxt\". Try: ptdecode help fxt" },
		{ "--format diff a b", "there is no -f: the verb is \"diff\"" },
		{ "-f call a", "there is no -f: a verb says what to show. Try: ptdecode --help" },
		{ "text ''", "the name of the recording is empty" },
		{ "text a b", "one recording at a time: \"b\"" },
		{ "text --raw-pt a b", "--raw-pt takes the place of a recording: \"b\"" },
		{ "text --raw-elf a b",
		  "--raw-pages, --raw-elf and --raw-code go with --raw-pt: \"b\"" },
		{ "text --raw-elf a", "--raw-pages, --raw-elf and --raw-code go with --raw-pt" },
		{ "text --filter x b", "--filter goes with --raw-pt: \"x\"" },
		{ "crash --core x --raw-pt a", "--core goes with a recording: \"x\"" },
		{ "text --ovni x --raw-pt a", "--ovni goes with a recording: \"x\"" },
		{ "text --fast a", "no such option: \"--fast\". Try: ptdecode --help" },
		{ "text -x a", "no such option: \"-x\"" },
		{ "text a --last", "the option needs a value: \"--last\"" },
		{ "text a -o", "the option needs a value: \"-o\"" },
		{ "summary --json=1 a", "the option takes no value: \"--json=1\"" },
		{ "text --force=1 a", "the option takes no value: \"--force=1\"" },
		{ "text --rows=1 a", "text has no option --rows. Try: ptdecode help text" },
		{ "--max-depth 1 a summary", "no such verb: \"a\"" },
		{ "--max-depth 1 summary a", "summary has no option --max-depth" },
		{ "summary --lines a",
		  "summary has no option --lines. Try: ptdecode help summary" },
		{ "functions --inlines a", "functions has no option --inlines" },
		{ "calls --core x a", "calls has no option --core. Try: ptdecode help calls" },
		{ "diff --also text a b", "diff has no option --also. Try: ptdecode help diff" },
		{ "latency a", "latency needs --function. Try: ptdecode help latency" },
		{ "latency --rows=3 a", "latency needs --function" },
		{ "export bolt a", "bolt needs --binary. Try: ptdecode help bolt" },
		{ "summary --rows=1x a", "--rows takes a number: \"1x\"" },
		{ "summary --rows= a", "--rows takes a number: \"\"" },
		{ "export drmemtrace -o x --compress=zi a", "--compress takes zip|none: \"zi\"" },
		{ "export collapsed --unit= a", "--unit takes ns|us|ms|s|instructions: \"\"" },
		{ "summary --rows=1 --rows=1 --rows=1 --rows=1 --rows=1 --rows=1 --rows=1 --rows=1 "
		  "--rows=1 a",
		  "too many options of a verb: \"rows\"" },
		{ "text -o x -o y a", "one -o too many: \"y\"" },
		{ "export drmemtrace a",
		  "-o must name a directory for the format: \"drmemtrace\"" },
		{ "text --also export_drmemtrace a", "-o must name a directory" },
		{ "text --also calls_--row=1_x a", "this is no option of the output: \"x\"" },
		{ "text --also calls_--pid=1 a", "this is no option of one output: \"--pid=1\"" },
		{ "text --also calls_--rows=1 a", "calls has no option --rows" },
		{ "text --also summary_--lines a", "summary has no option --lines" },
		{ "text --also latency a", "latency needs --function" },
		{ "text --also '' a", "which verb?" },
		{ "text --also diff a", "the verb has no other beside it: \"diff\"" },
		{ "text --also verify a", "the verb has no other beside it: \"verify\"" },
		{ "text --also \"calls a", "no verb with its options: \"\"calls\"" },
		{ "text --also text --also text --also text --also text --also text --also text "
		  "--also text --also text a",
		  "too many outputs: \"text\"" },
		{ "text --also text --also text --also text --also text --also text --also text "
		  "--also text --also text --also text a",
		  "too many outputs: \"text\"" },
		{ "verify -o x a", "verify has no option --output. Try: ptdecode help verify" },
		{ "verify -e flow a", "verify has no option --engine" },
		{ "verify --also text a", "verify has no option --also" },
		{ "verify --rows=1 a", "verify has no such option: \"rows\"" },
		{ "verify -", "verify reads its recording twice: \"-\"" },
		{ "verify --lines a", "verify has no option --lines" },
		{ "diff a", "diff compares two recordings, or executions of a --function in one" },
		{ "diff", "diff compares two recordings" },
		{ "diff a b c", "one recording at a time: \"c\"" },
		{ "diff a -", "what is compared is read from files: \"-\"" },
		{ "rank", "rank takes recordings of good runs, --, and recordings of bad runs" },
		{ "rank a b", "rank takes recordings of good runs" },
		{ "rank a --", "rank takes recordings of good runs" },
		{ "rank -- a b", "rank takes recordings of good runs" },
		{ "rank a -- b -", "what is compared is read from files: \"-\"" },
		{ "rank a -- ''", "the name of the recording is empty" },
		{ "rank --bad crash a",
		  "rank takes recordings, of which --bad says which are bad ones" },
		{ "rank --bad crash a -- b", "rank takes recordings, of which --bad says" },
		{ "rank --function=f a b", "rank takes one recording with --function" },
		{ "rank --function=f -- a", "rank takes one recording with --function" },
		{ "rank --bad enter: a b",
		  "rank takes --bad crash or --bad enter:NAME: \"enter:\"" },
		{ "rank --raw-pt p -- a", "--raw-pt takes the place of a recording" },
		{ "diff a ''", "the name of the recording is empty" },
		{ "diff --raw-pt a b c", "--raw-pt takes the place of a recording" },
		{ "diff --raw-pt a", "diff compares two recordings" },
		{ "diff --function=f --raw-pt a", "diff compares two recordings" },
		{ "text -e fast a", "no such engine: \"fast\"" },
		{ "text --cpu-model 6/85 a", "--cpu-model takes family/model/stepping: \"6/85\"" },
		{ "text --cpu-model 0/85/4 a", "--cpu-model takes" },
		{ "text --cpu-model 6/256/4 a", "--cpu-model takes" },
		{ "text --cpu-model 6/85/4/1 a", "--cpu-model takes" },
		{ "text --cpu-model 6//4 a", "--cpu-model takes" },
		{ "text --mtc-freq 256 a", "--mtc-freq takes a number: \"256\"" },
		{ "text --mtc-freq '' a", "--mtc-freq takes a number" },
		{ "text --nom-freq x a", "--nom-freq takes a number: \"x\"" },
		{ "text --cpuid-15 2 a", "--cpuid-15 takes EAX/EBX: \"2\"" },
		{ "text --cpuid-15 2/4294967296 a", "--cpuid-15 takes" },
		{ "text --raw-pages a", "--raw-pages takes ADDRFILE,CODEFILE: \"a\"" },
		{ "text --raw-code a", "--raw-code takes FILE@ADDR: \"a\"" },
		{ "text --raw-code a@", "--raw-code takes FILE@ADDR: \"a@\"" },
		{ "text --raw-code a@-1", "--raw-code takes" },
		{ "text --raw-code a@1x", "--raw-code takes" },
		{ "text --raw-code a@18446744073709551616", "--raw-code takes" },
		{ "text --max-output 0 a", "--max-output takes a number of bytes, as 500M: \"0\"" },
		{ "text --max-output -1 a", "--max-output takes" },
		{ "text --max-output 5X a", "--max-output takes" },
		{ "text --max-output 5MM a", "--max-output takes" },
		{ "text --max-output M a", "--max-output takes" },
		{ "text --max-output 8388608T a", "--max-output takes" },
		{ "text --max-output 99999999999999999999 a", "--max-output takes" },
		{ "text --max-spill 5k a", "--max-spill takes" },
		{ "text --cpu 6/85/4 a", "--cpu takes a list of CPUs, as 0-3,8: \"6/85/4\"" },
		{ "text --cpu 1- a", "--cpu takes" },
		{ "text --cpu 3-1 a", "--cpu takes" },
		{ "text --pid '' a", "--pid takes a list of processes, as 17,23" },
		{ "text --pid 1,,2 a", "--pid takes" },
		{ "text --pid 4294967295 a", "--pid takes" },
		{ "text --tid -1 a", "--tid takes a list of threads, as 17,23: \"-1\"" },
		{ "text --tid 0-65536 a", "--tid takes" },
		{ "text --last 0 a", "--last takes a number of instructions: \"0\"" },
		{ "text --last -1 a", "--last takes" },
		{ "text --last 5k a", "--last takes" },
		{ "text --threads 0 a", "--threads takes a number from 1 to 256" },
		{ "text --threads 257 a", "--threads takes" },
		{ "text --threads 2x a", "--threads takes" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct line l;
		const char *said;
		int status;

		logged_begin();
		status = parse(&l, rows[i].words);
		said = logged_end();
		command_deinit(&l.command);
		if (status != PTDECODE_USAGE || !strstr(said, rows[i].said))
			fail_msg("ptdecode %s: status %d: %s", rows[i].words, status, said);
	}
}

static const struct command *parse_well(struct line *l, const char *words)
{
	logged_begin();
	if (parse(l, words) != PTDECODE_OK)
		fail_msg("ptdecode %s: %s", words, logged_end());
	assert_string_equal(logged_end(), "");
	return &l->command;
}

static void numbers(void **state)
{
	const struct command *c;
	struct line l;

	(void)state;
	c = parse_well(
	    &l, "text --cpu-model 6/0x55/4 --mtc-freq 3 --nom-freq 255 --cpuid-15 2/4294967295 "
		"--max-output 5 --max-spill 3K --threads 256 ./a");
	assert_int_equal(c->options.size, sizeof(c->options));
	assert_string_equal(c->options.input, "./a");
	assert_int_equal(c->options.cpu_family, 6);
	assert_int_equal(c->options.cpu_model, 85);
	assert_int_equal(c->options.cpu_stepping, 4);
	assert_int_equal(c->options.mtc_freq, 3);
	assert_int_equal(c->options.nom_freq, 255);
	assert_int_equal(c->options.cpuid_15_eax, 2);
	assert_int_equal(c->options.cpuid_15_ebx, UINT32_MAX);
	assert_int_equal(c->max_output, 5);
	assert_int_equal(c->n_threads, 256);
	assert_int_equal(c->options.max_spill, 3 << 10);
	command_deinit(&l.command);

	c = parse_well(&l, "text --max-output 8388607T --max-spill 2M ./a");
	assert_int_equal(c->max_output, UINT64_C(8388607) << 40);
	assert_int_equal(c->options.max_spill, 2 << 20);
	command_deinit(&l.command);
	c = parse_well(&l, "text --max-output 4G --cpu-model 255/255/255 ./a");
	assert_int_equal(c->max_output, UINT64_C(4) << 30);
	assert_int_equal(c->options.cpu_family, 255);
	command_deinit(&l.command);
}

static void part(void **state)
{
	const struct ptd_part *p;
	struct line l;

	(void)state;
	p = &parse_well(&l,
			"text --time -5s,-1s --cpu 0-2,8 --pid 1 --pid 2,3 --tid 0-65535 --comm a "
			"--symbol f --object o --object /p --last 1000 ./a")
		 ->options.part;
	assert_string_equal(p->time, "-5s,-1s");
	assert_int_equal(p->n_cpus, 4);
	assert_int_equal(p->cpus[2], 2);
	assert_int_equal(p->cpus[3], 8);
	assert_int_equal(p->n_pids, 3);
	assert_int_equal(p->pids[2], 3);
	assert_int_equal(p->n_tids, 65536);
	assert_int_equal(p->n_comms, 1);
	assert_string_equal(p->comms[0], "a");
	assert_string_equal(p->symbols[0], "f");
	assert_int_equal(p->n_objects, 2);
	assert_string_equal(p->objects[1], "/p");
	assert_int_equal(p->last, 1000);
	command_deinit(&l.command);
}

static void places(void **state)
{
	const struct command *c;
	struct line l;

	(void)state;
	c = parse_well(
	    &l, "text --force --debuginfod --debug-dir D --buildid-dir B --symfs S -e insn ./a");
	assert_true(c->options.force);
	assert_true(c->debuginfod);
	assert_string_equal(c->options.debug_dir, "D");
	assert_string_equal(c->options.buildid_dir, "B");
	assert_string_equal(c->options.symfs, "S");
	assert_string_equal(c->options.engine, "insn");
	command_deinit(&l.command);

	/* perf's own place for files by their build-ids, where there is one. */
	assert_int_equal(setenv("HOME", "/h", 1), 0);
	c = parse_well(&l, "text ./a");
	assert_false(c->options.force || c->debuginfod);
	assert_string_equal(c->options.buildid_dir, "/h/.debug");
	command_deinit(&l.command);
	assert_int_equal(setenv("HOME", "relative", 1), 0);
	c = parse_well(&l, "text ./a");
	assert_null(c->options.buildid_dir);
	command_deinit(&l.command);
}

static void outputs(void **state)
{
	const struct command *c;
	struct line l;

	(void)state;
	c = parse_well(&l, "text ./a");
	assert_int_equal(c->outputs.n, 1);
	assert_string_equal(c->outputs.items[0].ops->name, "text");
	assert_null(c->outputs.items[0].path);
	assert_null(c->outputs.items[0].options[0]);
	command_deinit(&l.command);

	c = parse_well(&l, "--json summary --also export_drmemtrace_-o_x ./a --rows=3 "
			   "--also export_addresses_--output_y --rows 4");
	assert_int_equal(c->outputs.n, 3);
	assert_string_equal(c->outputs.items[0].ops->name, "summary");
	assert_null(c->outputs.items[0].path);
	assert_string_equal(c->outputs.items[0].options[0], "json");
	assert_string_equal(c->outputs.items[0].options[1], "rows=3");
	assert_string_equal(c->outputs.items[0].options[2], "rows=4");
	assert_null(c->outputs.items[0].options[3]);
	assert_ptr_equal(c->outputs.items[0].config.options, c->outputs.items[0].options);
	assert_string_equal(c->outputs.items[1].ops->name, "drmemtrace");
	assert_string_equal(c->outputs.items[1].path, "x");
	assert_null(c->outputs.items[1].options[0]);
	assert_string_equal(c->outputs.items[2].ops->name, "addresses");
	assert_string_equal(c->outputs.items[2].path, "y");
	assert_string_equal(c->options.input, "./a");
	command_deinit(&l.command);

	c = parse_well(&l, "calls --inlines --lines --also text_--lines --also functions ./a");
	assert_int_equal(c->outputs.items[0].config.positions, SINK_INLINES);
	assert_int_equal(c->outputs.items[1].config.positions, SINK_LINES);
	assert_int_equal(c->outputs.items[2].config.positions, SINK_NO_POSITIONS);
	command_deinit(&l.command);

	c = parse_well(&l, "latency --also latency_--function='operator_new' --function f ./a");
	assert_string_equal(c->outputs.items[0].options[0], "function=f");
	assert_string_equal(c->outputs.items[1].options[0], "function=operator new");
	command_deinit(&l.command);

	c = parse_well(&l, "text --also text --also text --also text --also text --also text "
			   "--also text --also text ./a");
	assert_int_equal(c->outputs.n, REQUESTED_MAX);
	command_deinit(&l.command);

	c = parse_well(&l, "verify ./a");
	assert_true(c->verify && !c->diff && c->outputs.n == 0);
	command_deinit(&l.command);
	c = parse_well(&l, "diff ./a ./b");
	assert_true(c->diff && !c->verify);
	assert_int_equal(c->others.n, 1);
	assert_string_equal(c->others.items[0], "./b");
	command_deinit(&l.command);
	c = parse_well(&l, "rank --rows 5 ./a ./b -- ./c");
	assert_true(c->rank && !c->diff);
	assert_int_equal(c->others.n, 2);
	assert_int_equal(c->n_behind, 1);
	assert_string_equal(c->options.input, "./a");
	assert_string_equal(c->others.items[1], "./c");
	command_deinit(&l.command);
	c = parse_well(&l, "crash --core C ./a");
	assert_string_equal(c->options.core, "C");
	command_deinit(&l.command);
}

/* Each kind of sink has a verb; no two options of one name differ in whether they take a value. */
static void table(void **state)
{
	const struct sink_option *o;
	const struct verb *verb;
	size_t n_sinks = 0;

	(void)state;
	for (; sink_at(n_sinks); n_sinks++) {
		verb = verb_of_name(sink_at(n_sinks)->name);
		assert_non_null(verb);
		assert_ptr_equal(verb->ops, sink_at(n_sinks));
		for (o = verb->ops->options; o && o->name; o++) {
			struct option all[VERB_OPTIONS_MAX];
			size_t k = 0;

			verb_options(all);
			while (strcmp(all[k].name, o->name) != 0)
				k++;
			assert_true(all[k].val >= VERB_OPT_OF_SINK);
			assert_int_equal(all[k].has_arg == required_argument, o->value != NULL);
			assert_non_null(o->help);
		}
	}
	assert_true(n_sinks > 15);
}

static void raw(void **state)
{
	const struct command *c;
	struct line l;

	(void)state;
	c = parse_well(
	    &l, "text --raw-pt P --raw-elf E --raw-pages A,C --raw-code F@x@0x401000 --filter f");
	assert_null(c->options.input);
	assert_string_equal(c->options.raw_pt, "P");
	assert_string_equal(c->options.raw_filter, "f");
	assert_int_equal(c->code.n, 3);
	assert_int_equal(c->code.items[0].kind, COMMAND_ELF);
	assert_string_equal(c->code.items[0].path, "E");
	assert_int_equal(c->code.items[1].kind, COMMAND_PAGES);
	assert_string_equal(c->code.items[1].path, "C");
	assert_string_equal(c->code.items[1].address_path, "A");
	assert_int_equal(c->code.items[2].kind, COMMAND_FILE);
	assert_string_equal(c->code.items[2].path, "F@x");
	assert_int_equal(c->code.items[2].address, 0x401000);
	command_deinit(&l.command);
}

static int parse_some(void *userdata)
{
	struct line *l = userdata;
	int status;

	logged_begin();
	status =
	    parse(l, "calls --json --raw-pt P --raw-elf E --raw-code F@1 --also summary_--rows=3");
	(void)logged_end();
	if (status != PTDECODE_OK)
		command_deinit(&l->command);
	assert_in_range(status, PTDECODE_OK, PTDECODE_FAILED);
	return -status;
}

static void is_parsed(void *userdata)
{
	struct line *l = userdata;

	assert_int_equal(l->command.code.n, 2);
	assert_string_equal(l->command.options.buildid_dir, "/h/.debug");
	command_deinit(&l->command);
}

static void calls_that_fail(void **state)
{
	struct line l;

	(void)state;
	assert_int_equal(setenv("HOME", "/h", 1), 0);
	failing_each(parse_some, is_parsed, &l);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(wrong_ones), cmocka_unit_test(numbers),
		cmocka_unit_test(part),       cmocka_unit_test(places),
		cmocka_unit_test(outputs),    cmocka_unit_test(table),
		cmocka_unit_test(raw),        cmocka_unit_test(calls_that_fail),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
