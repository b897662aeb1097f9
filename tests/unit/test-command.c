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
#include "tests/lib/logged.h"

/* A command line, to be cut in two where the parser likes. */
struct line {
	char text[256];
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
		{ "", "expected a snapshot, a perf.data file, a drmemtrace directory, or --raw-pt. "
		      "Try: ptdecode --help" },
		{ "''", "the name of the input is empty" },
		{ "a b", "one input at a time: \"b\"" },
		{ "--raw-pt a b", "--raw-pt takes the place of an input: \"b\"" },
		{ "--raw-elf a b",
		  "--raw-pages, --raw-elf and --raw-code go with --raw-pt: \"b\"" },
		{ "--filter x b", "--filter goes with --raw-pt: \"x\"" },
		{ "--core x --raw-pt a", "--core goes with a recording: \"x\"" },
		{ "--ovni x --raw-pt a", "--ovni goes with a recording: \"x\"" },
		{ "-f nothing a", "no such format: \"nothing\"" },
		{ "-f summary:row=1 a", "no such option of the format: \"row=1\"" },
		{ "-f summary:rows a", "no such option of the format: \"rows\"" },
		{ "-f summary:json=1 a", "no such option of the format: \"json=1\"" },
		{ "-f latency a", "the format needs an option: \"function\"" },
		{ "-f latency:rows=3 a", "the format needs an option: \"function\"" },
		{ "-f summary: a", "no such option of the format: \"\"" },
		{ "-f text:rows=1 a", "no such option of the format: \"rows=1\"" },
		{ "-f summary:rows=1,rows=1,rows=1,rows=1,rows=1,rows=1,rows=1,rows=1,rows=1 a",
		  "too many options of a format" },
		{ "-o x -f text a", "-o belongs behind the -f it is for: \"x\"" },
		{ "-f text -o x -o y a", "one -o too many: \"y\"" },
		{ "-f drmemtrace a", "a directory must be named by -o for format: \"drmemtrace\"" },
		{ "-f text -f drmemtrace a", "a directory must be named" },
		{ "-f text -f text -f text -f text -f text -f text -f text -f text -f text a",
		  "too many formats" },
		{ "--verify -f text a",
		  "--verify decodes with both engines, and writes no format" },
		{ "--verify -e flow a",
		  "--verify decodes with both engines, and writes no format" },
		{ "--verify -", "--verify reads its input twice: \"-\"" },
		{ "--verify --lines a", "--lines and --inlines go with a format" },
		{ "-f diff a", "-f diff compares two inputs, or executions of a function in one" },
		{ "-f diff a b c", "one input at a time: \"c\"" },
		{ "-f diff -f text a b", "-f diff is the only format, if it is one" },
		{ "-f text -f diff a b", "-f diff is the only format, if it is one" },
		{ "-f diff a -", "-f diff reads its inputs more than once: \"-\"" },
		{ "-f diff a ''", "the name of the input is empty" },
		{ "-f diff --raw-pt a b c", "--raw-pt takes the place of an input" },
		{ "-f diff --raw-pt a", "-f diff compares two inputs" },
		{ "-f diff:function=f --raw-pt a", "-f diff compares two inputs" },
		{ "-e fast a", "no such engine: \"fast\"" },
		{ "--fast a", "Try: ptdecode --help" },
		{ "--cpu-model 6/85 a", "--cpu-model takes family/model/stepping: \"6/85\"" },
		{ "--cpu-model 0/85/4 a", "--cpu-model takes" },
		{ "--cpu-model 6/256/4 a", "--cpu-model takes" },
		{ "--cpu-model 6/85/4/1 a", "--cpu-model takes" },
		{ "--cpu-model 6//4 a", "--cpu-model takes" },
		{ "--mtc-freq 256 a", "--mtc-freq takes a number: \"256\"" },
		{ "--mtc-freq '' a", "--mtc-freq takes a number" },
		{ "--nom-freq x a", "--nom-freq takes a number: \"x\"" },
		{ "--cpuid-15 2 a", "--cpuid-15 takes EAX/EBX: \"2\"" },
		{ "--cpuid-15 2/4294967296 a", "--cpuid-15 takes" },
		{ "--raw-pages a", "--raw-pages takes ADDRFILE,CODEFILE: \"a\"" },
		{ "--raw-code a", "--raw-code takes FILE@ADDR: \"a\"" },
		{ "--raw-code a@", "--raw-code takes FILE@ADDR: \"a@\"" },
		{ "--raw-code a@-1", "--raw-code takes" },
		{ "--raw-code a@1x", "--raw-code takes" },
		{ "--raw-code a@18446744073709551616", "--raw-code takes" },
		{ "--max-output 0 a", "--max-output takes a number of bytes, as 500M: \"0\"" },
		{ "--max-output -1 a", "--max-output takes" },
		{ "--max-output 5X a", "--max-output takes" },
		{ "--max-output 5MM a", "--max-output takes" },
		{ "--max-output M a", "--max-output takes" },
		{ "--max-output 8388608T a", "--max-output takes" },
		{ "--max-output 99999999999999999999 a", "--max-output takes" },
		{ "--max-spill 5k a", "--max-spill takes" },
		{ "--cpu 6/85/4 a", "--cpu takes a list of CPUs, as 0-3,8: \"6/85/4\"" },
		{ "--cpu 1- a", "--cpu takes" },
		{ "--cpu 3-1 a", "--cpu takes" },
		{ "--pid '' a", "--pid takes a list of processes, as 17,23" },
		{ "--pid 1,,2 a", "--pid takes" },
		{ "--pid 4294967295 a", "--pid takes" },
		{ "--tid -1 a", "--tid takes a list of threads, as 17,23: \"-1\"" },
		{ "--tid 0-65536 a", "--tid takes" },
		{ "--last 0 a", "--last takes a number of instructions: \"0\"" },
		{ "--last -1 a", "--last takes" },
		{ "--last 5k a", "--last takes" },
		{ "--threads 0 a", "--threads takes a number from 1 to 256" },
		{ "--threads 257 a", "--threads takes" },
		{ "--threads 2x a", "--threads takes" },
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
	c = parse_well(&l,
		       "--cpu-model 6/0x55/4 --mtc-freq 3 --nom-freq 255 --cpuid-15 2/4294967295 "
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

	c = parse_well(&l, "--max-output 8388607T --max-spill 2M ./a");
	assert_int_equal(c->max_output, UINT64_C(8388607) << 40);
	assert_int_equal(c->options.max_spill, 2 << 20);
	command_deinit(&l.command);
	c = parse_well(&l, "--max-output 4G --cpu-model 255/255/255 ./a");
	assert_int_equal(c->max_output, UINT64_C(4) << 30);
	assert_int_equal(c->options.cpu_family, 255);
	command_deinit(&l.command);
}

static void part(void **state)
{
	const struct ptd_part *p;
	struct line l;

	(void)state;
	p = &parse_well(&l, "--time -5s,-1s --cpu 0-2,8 --pid 1 --pid 2,3 --tid 0-65535 --comm a "
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
	c = parse_well(&l,
		       "--force --debuginfod --debug-dir D --buildid-dir B --symfs S -e insn ./a");
	assert_true(c->options.force);
	assert_true(c->debuginfod);
	assert_string_equal(c->options.debug_dir, "D");
	assert_string_equal(c->options.buildid_dir, "B");
	assert_string_equal(c->options.symfs, "S");
	assert_string_equal(c->options.engine, "insn");
	command_deinit(&l.command);

	/* perf's own place for files by their build-ids, where there is one. */
	assert_int_equal(setenv("HOME", "/h", 1), 0);
	c = parse_well(&l, "./a");
	assert_false(c->options.force || c->debuginfod);
	assert_string_equal(c->options.buildid_dir, "/h/.debug");
	command_deinit(&l.command);
	assert_int_equal(setenv("HOME", "relative", 1), 0);
	c = parse_well(&l, "./a");
	assert_null(c->options.buildid_dir);
	command_deinit(&l.command);
}

static void outputs(void **state)
{
	const struct command *c;
	struct line l;

	(void)state;
	c = parse_well(&l, "./a");
	assert_int_equal(c->outputs.n, 1);
	assert_string_equal(c->outputs.items[0].ops->name, "text");
	assert_null(c->outputs.items[0].path);
	command_deinit(&l.command);

	c = parse_well(&l, "-f summary -f drmemtrace -o x ./a --format addresses --output y");
	assert_int_equal(c->outputs.n, 3);
	assert_string_equal(c->outputs.items[0].ops->name, "summary");
	assert_null(c->outputs.items[0].path);
	assert_string_equal(c->outputs.items[1].ops->name, "drmemtrace");
	assert_string_equal(c->outputs.items[1].path, "x");
	assert_string_equal(c->outputs.items[2].ops->name, "addresses");
	assert_string_equal(c->outputs.items[2].path, "y");
	assert_string_equal(c->options.input, "./a");
	command_deinit(&l.command);

	c = parse_well(&l, "-f summary:rows=3,rows=4,json -f text ./a");
	assert_int_equal(c->outputs.n, 2);
	assert_string_equal(c->outputs.items[0].options[0], "rows=3");
	assert_string_equal(c->outputs.items[0].options[1], "rows=4");
	assert_string_equal(c->outputs.items[0].options[2], "json");
	assert_null(c->outputs.items[0].options[3]);
	assert_null(c->outputs.items[1].options[0]);
	command_deinit(&l.command);

	c = parse_well(&l, "-f text -f text -f text -f text -f text -f text -f text -f text ./a");
	assert_int_equal(c->outputs.n, REQUESTED_MAX);
	command_deinit(&l.command);
}

static void raw(void **state)
{
	const struct command *c;
	struct line l;

	(void)state;
	c = parse_well(&l,
		       "--raw-pt P --raw-elf E --raw-pages A,C --raw-code F@x@0x401000 --filter f");
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
	status = parse(l, "--raw-pt P --raw-elf E --raw-code F@1");
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
		cmocka_unit_test(wrong_ones),
		cmocka_unit_test(numbers),
		cmocka_unit_test(part),
		cmocka_unit_test(places),
		cmocka_unit_test(outputs),
		cmocka_unit_test(raw),
		cmocka_unit_test(calls_that_fail),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
