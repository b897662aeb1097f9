/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The whole decoder with its calls failing, one after another: it says so, or what it prints is
 * what it prints anyway. Inputs are all golden cases.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <glob.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "ptd/decode.h"
#include "ptd/snapshot.h"
#include "tests/lib/failing.h"
#include "tests/lib/golden.h"
#include "tests/lib/golden_input.h"
#include "tests/lib/perfbuild.h"
#include "tests/lib/sanitized.h"
#include "tests/lib/tempdir.h"
#include "tests/lib/transcript.h"

struct decoding {
	struct golden *golden;
	struct golden_input input;
	char *expected;
	char *text;
	unsigned n_messages; /* of ptd_decoder_next() */
};

static int print(struct ptd_decoder *decoder, const struct decoding *d, char **ret_text)
{
	size_t size;
	FILE *f = open_memstream(ret_text, &size);
	int r;

	assert_non_null(f);
	r = transcript_print(decoder, d->input.options.input, d->golden->names, f);
	assert_int_equal(fclose(f), 0);
	return r;
}

static int decode(void *userdata)
{
	struct decoding *d = userdata;
	struct ptd_decoder *decoder = NULL;
	char *message = NULL;
	int r;

	d->text = NULL;
	r = ptd_decoder_new(&d->input.options, &decoder, &message);
	if (r < 0) {
		assert_null(decoder);
		free(message);
		return r;
	}
	assert_null(message);
	r = print(decoder, d, &d->text);
	if (ptd_decoder_message(decoder)) {
		const struct ptd_batch *batch;

		assert_non_null(strstr(ptd_decoder_message(decoder), "out of memory")
				    ?: strstr(ptd_decoder_message(decoder), ": at byte "));
		assert_int_equal(ptd_decoder_next(decoder, &batch), r);
		d->n_messages++;
	}
	(void)ptd_decoder_free(decoder);
	if (r < 0)
		free(d->text);
	return r;
}

/* Return: the next instruction's address at or behind @text, or NULL; @text becomes what is behind
 * it. */
static const char *next_insn(const char **text, size_t *ret_size)
{
	for (;;) {
		const char *word = *text + strspn(*text, " \n");
		const size_t n = strcspn(word, " \n");

		*text = word + n;
		if (n == 0)
			return NULL;
		*ret_size = strspn(word, "0123456789abcdef");
		if (*ret_size >= 6)
			return word;
		*text += strcspn(*text, "\n"); /* a line of something else */
	}
}

/* Return: how much is said to be missing: bytes that were lost or nobody's who is asked for, and
 * gaps. */
static uint64_t count_missing(const char *text)
{
	uint64_t lost = 0, out_of_scope = 0;

	for (const char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		(void)sscanf(line, "in %*u decoded %*u lost %" SCNu64 " out of scope %" SCNu64,
			     &lost, &out_of_scope);
	}
	for (const char *gap = text; (gap = strstr(gap, "gap ")); gap++)
		lost++;
	return lost + out_of_scope;
}

/* The reason of a gap may be another. */
static bool is_same_but_gaps(const char *a, const char *b)
{
	while (*a && *b) {
		const size_t n = strcspn(a, "\n") + 1, m = strcspn(b, "\n") + 1;

		if ((n != m || strncmp(a, b, n) != 0) &&
		    (strncmp(a, "gap ", 4) != 0 || strncmp(b, "gap ", 4) != 0))
			return false;
		a += n;
		b += m;
	}
	return *a == *b;
}

static void fail_with(const struct decoding *d, const char *what)
{
	fail_msg("%s failed, and %s. Expected\n%sbut there was\n%s", failing_name(), what,
		 d->expected, d->text);
}

/* What could not be had, a file say, is said to be missing, or has not its own name; but what is
 * printed is what ran, in its order. */
static void is_as_expected(void *userdata)
{
	const struct decoding *d = userdata;
	const char *got = d->text, *expected = d->expected, *insn, *other;
	unsigned n_left_out = 0;
	size_t size, other_size;

	while ((other = next_insn(&expected, &other_size))) {
		const char *rest = got;

		insn = next_insn(&rest, &size);
		if (insn && size == other_size && memcmp(insn, other, size) == 0)
			got = rest;
		else
			n_left_out++;
	}
	if (next_insn(&got, &size))
		fail_with(d, "something else is printed");
	if (n_left_out > 0 && count_missing(d->text) <= count_missing(d->expected))
		fail_with(d, "nothing is said of what is left out");
	if (!failing_name() && strcmp(d->text, d->expected) != 0)
		fail_with(d, "it comes out otherwise");
	/* For want of memory something may be missing; but what it is called is not. */
	if (failing_is_memory() && count_missing(d->text) <= count_missing(d->expected) &&
	    !is_same_but_gaps(d->text, d->expected))
		fail_with(d, "it comes out otherwise");
	free(d->text);
}

static void golden_cases(void **state)
{
	unsigned n_messages = 0;
	glob_t cases;

	(void)state;
	assert_int_equal(glob("tests/golden/*.case", 0, NULL, &cases), 0);
	/* tools/golden decodes all of them without failing calls. */
	for (size_t i = 0; i < cases.gl_pathc; i += IS_SANITIZED ? 12 : 4) {
		char dir[TEMPDIR_SIZE];
		struct decoding d = {};
		unsigned line;

		print_message("  %s\n", cases.gl_pathv[i]);
		tempdir_make("pipeline", dir);
		assert_int_equal(golden_read(cases.gl_pathv[i], &d.golden, &line), 0);
		assert_int_equal(golden_input_write(d.golden, dir, &d.input), 0);
		assert_int_equal(decode(&d), 0);
		d.expected = d.text;
		failing_each(decode, is_as_expected, &d);
		n_messages += d.n_messages;
		free(d.expected);
		(void)golden_free(d.golden);
		tempdir_remove(dir);
	}
	globfree(&cases);
	assert_true(n_messages > 10);
}

/* An input that is cut off while it is decoded is an error, a bare stream, too; one that is removed
 * is as it was. */
static void cut_off(void **state)
{
	static const char cut[] = ": became shorter while it was decoded: it had ";
	const struct {
		const char *golden;
		bool is_bare;
		const char *message; /* NULL: it is removed, and there is no error */
	} rows[] = {
		{ "tests/golden/exec.case", false, NULL },
		{ "tests/golden/exec.case", false, cut },
		{ "tests/golden/exec.case", true, cut },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct ptd_decoder *decoder = NULL;
		const struct ptd_batch *batch;
		char dir[TEMPDIR_SIZE], path[512];
		struct decoding d = {};
		unsigned line;
		int r;

		tempdir_make("pipeline", dir);
		assert_int_equal(golden_read(rows[i].golden, &d.golden, &line), 0);
		assert_int_equal(golden_input_write(d.golden, dir, &d.input), 0);
		(void)snprintf(path, sizeof(path), "%s/%s", dir, d.input.data);
		if (rows[i].is_bare)
			d.input.options =
			    (struct ptd_options){ .size = sizeof(d.input.options), .raw_pt = path };
		assert_int_equal(ptd_decoder_new(&d.input.options, &decoder, NULL), 0);
		if (rows[i].message)
			assert_int_equal(truncate(path, 100), 0);
		else
			assert_int_equal(unlink(path), 0);
		while ((r = ptd_decoder_next(decoder, &batch)) == 0)
			;
		assert_int_equal(r, rows[i].message ? -ESTALE : PTD_END);
		if (rows[i].message)
			assert_non_null(strstr(ptd_decoder_message(decoder), rows[i].message));
		ptd_decoder_free(decoder);
		(void)golden_free(d.golden);
		tempdir_remove(dir);
	}
}

struct opening {
	unsigned n, n_wanted;
	uint64_t done, total;
};

static int opening(void *userdata, uint64_t done, uint64_t total)
{
	struct opening *o = userdata;

	assert_true(done >= o->done && done <= total && total > 0);
	o->done = done;
	o->total = total;
	return ++o->n > o->n_wanted;
}

/* Opening says how far it is, up to the end, and stops when the caller has enough. */
static void progress(void **state)
{
	struct opening wanted = { .n_wanted = UINT_MAX };
	struct ptd_decoder *decoder = NULL;
	uint64_t done, total, before = 0;
	const struct ptd_batch *batch;
	char dir[TEMPDIR_SIZE];
	struct decoding d = {};
	unsigned line;

	(void)state;
	tempdir_make("pipeline", dir);
	assert_int_equal(golden_read("tests/golden/exec.case", &d.golden, &line), 0);
	assert_int_equal(golden_input_write(d.golden, dir, &d.input), 0);
	d.input.options.opening = opening;
	d.input.options.userdata = &wanted;
	assert_int_equal(ptd_decoder_new(&d.input.options, &decoder, NULL), 0);
	assert_true(wanted.n > 0);

	/* While decoding, it grows to the total. */
	while (ptd_decoder_next(decoder, &batch) == 0) {
		ptd_decoder_progress(decoder, &done, &total);
		assert_true(done >= before && done <= total);
		before = done;
	}
	ptd_decoder_progress(decoder, &done, &total);
	assert_int_equal(total, done);
	assert_true(total > 0);
	decoder = ptd_decoder_free(decoder);

	for (unsigned i = 0; i < wanted.n; i++) {
		struct opening some = { .n_wanted = i };
		_cleanup_(freep) char *message = NULL;

		d.input.options.userdata = &some;
		assert_int_equal(ptd_decoder_new(&d.input.options, &decoder, &message), -ECANCELED);
		assert_null(decoder);
		assert_non_null(strstr(message, "cancel"));
	}
	(void)golden_free(d.golden);
	tempdir_remove(dir);
}

/* What could not be used of a recording is said, with its name. */
static void complaints(void **state)
{
	static struct perfbuild b;
	_cleanup_(freep) char *path = NULL, *expected = NULL;
	struct ptd_decoder *decoder = NULL;
	const struct ptd_info *info;
	char dir[TEMPDIR_SIZE];

	(void)state;
	tempdir_make("pipeline", dir);
	perfbuild_begin(&b, false);
	perfbuild_filter(&b, "some filter");
	perfbuild_end(&b);
	tempdir_put(dir, "perf.data", b.bytes, b.size);
	assert_true(asprintf(&path, "%s/perf.data", dir) > 0);
	assert_true(
	    asprintf(&expected,
		     "%s: its address filter is not used: it is none that perf record writes",
		     path) > 0);

	assert_int_equal(ptd_decoder_new(&(struct ptd_options){ .size = sizeof(struct ptd_options),
								.input = path },
					 &decoder, NULL),
			 0);
	info = ptd_decoder_info(decoder);
	assert_int_equal(info->n_complaints, 1);
	assert_string_equal(info->complaints[0], expected);
	(void)ptd_decoder_free(decoder);
	tempdir_remove(dir);
}

/* Open the bare stream of @d with @filter, for a CPU of family 6 and @model. */
static int open_bare(const struct decoding *d, const char *filter, uint8_t model,
		     struct ptd_decoder **ret_decoder, char **reterr_message)
{
	struct ptd_options options = d->input.options;

	options.raw_filter = filter;
	options.cpu_family = 6;
	options.cpu_model = model;
	return ptd_decoder_new(&options, ret_decoder, reterr_message);
}

/* What the user says of a bare stream's CPU and its filter is checked. */
static void bare(void **state)
{
	static const char *const wrong[] = { "", "filter 0x1/0x0", "filter 0x1/0x1@/x", "0x1/0x1" };
	struct ptd_decoder *decoder = NULL;
	const struct ptd_info *info;
	char dir[TEMPDIR_SIZE];
	struct decoding d = {};
	unsigned line;

	(void)state;
	tempdir_make("pipeline", dir);
	assert_int_equal(golden_read("tests/golden/branches.case", &d.golden, &line), 0);
	assert_int_equal(golden_input_write(d.golden, dir, &d.input), 0);
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
		_cleanup_(freep) char *message = NULL;

		assert_int_equal(open_bare(&d, wrong[i], 0x5e, &decoder, &message), -EINVAL);
		assert_non_null(strstr(message, ": expected such as filter 0x401000/0x80"));
	}

	assert_int_equal(open_bare(&d, "filter 0x401000/0x80", 0x5e, &decoder, NULL), 0);
	assert_int_equal(ptd_decoder_info(decoder)->n_complaints, 0);
	decoder = ptd_decoder_free(decoder);

	assert_int_equal(open_bare(&d, NULL, 0xff, &decoder, NULL), 0);
	info = ptd_decoder_info(decoder);
	assert_int_equal(info->n_complaints, 1);
	assert_non_null(strstr(info->complaints[0], ": the model of its CPU is not known"));
	(void)ptd_decoder_free(decoder);
	(void)golden_free(d.golden);
	tempdir_remove(dir);
}

/* Without symbols, no instruction has one, and nothing else is different. */
static void no_symbols(void **state)
{
	struct ptd_decoder *decoder = NULL;
	uint64_t n[2] = {}, n_named[2] = {};
	const struct ptd_batch *batch;
	char dir[TEMPDIR_SIZE];
	struct decoding d = {};
	unsigned line;

	(void)state;
	tempdir_make("pipeline", dir);
	assert_int_equal(golden_read("tests/golden/ksymbol-names.case", &d.golden, &line), 0);
	assert_int_equal(golden_input_write(d.golden, dir, &d.input), 0);
	for (size_t without = 0; without < 2; without++) {
		d.input.options.no_symbols = without;
		assert_int_equal(ptd_decoder_new(&d.input.options, &decoder, NULL), 0);
		while (ptd_decoder_next(decoder, &batch) == 0) {
			for (size_t i = 0; i < batch->n_runs; i++) {
				const struct ptd_run *run = &batch->runs[i];

				n[without] += run->n;
				n_named[without] +=
				    run->block->insns[run->first].symbol != PTD_NO_SYMBOL;
			}
		}
		decoder = ptd_decoder_free(decoder);
	}
	assert_true(n[0] > 0 && n_named[0] > 0);
	assert_int_equal(n[1], n[0]);
	assert_int_equal(n_named[1], 0);
	(void)golden_free(d.golden);
	tempdir_remove(dir);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(golden_cases), cmocka_unit_test(progress),
		cmocka_unit_test(complaints),   cmocka_unit_test(cut_off),
		cmocka_unit_test(bare),         cmocka_unit_test(no_symbols),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
