/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Jitdumps: one that has all kinds of records, then the same with one field spoiled in each row.
 * What is understood is written as
 *
 *	time:address+size@offset=name …
 *
 * with "~" before the address of a MOVE.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/base.h"
#include "decoder/jit/jitdump.h"
#include "decoder/symbol/ehframe.h"
#include "decoder/symbol/unwind.h"
#include "ptd/decode.h"
#include "tests/lib/jitbuild.h"
#include "tests/lib/symbolat.h"

/* Offsets in the good dump. */
#define UNWIND 40
#define LOAD_A (UNWIND + 16 + 29) /* from here on nothing is aligned */
#define LOAD_B (LOAD_A + 16 + 40 + 2 + 3)
#define MOVE_A (LOAD_B + 16 + 40 + 3 + 4)
#define CLOSE  (MOVE_A + 16 + 48)
#define END    (CLOSE + 16)

#define GOOD "10:1000+3@143=a 20:2000+4@205=bb 30:~3000+3@143=a"

static void build(struct jitbuild *b)
{
	static const uint8_t junk[29];

	jitbuild_begin(b, 0);
	assert_int_equal(jitbuild_record(b, JITBUILD_UNWIND, 9, junk, sizeof(junk)), UNWIND);
	assert_int_equal(jitbuild_load(b, 10, 0x1000, 5, "a", "AAA", 3), LOAD_A);
	assert_int_equal(jitbuild_load(b, 20, 0x2000, 6, "bb", "BBBB", 4), LOAD_B);
	assert_int_equal(jitbuild_move(b, 30, 0x1000, 0x3000, 3, 5), MOVE_A);
	assert_int_equal(jitbuild_record(b, JITBUILD_CLOSE, 40, junk, 0), CLOSE);
	assert_int_equal(b->size, END);
}

static char *render(const struct jitdump *dump)
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	assert_non_null(f);
	for (size_t i = 0; i < dump->events.n; i++) {
		const struct jitdump_event *e = &dump->events.items[i];
		const struct jitdump_load *l = &dump->loads.items[e->load];

		fprintf(f, "%s%" PRIu64 ":", i ? " " : "", e->time);
		fprintf(f, "%s%" PRIx64 "+%" PRIu64 "@%" PRIu64 "=%.*s",
			e->kind == JITDUMP_CODE_MOVE ? "~" : "", e->address, l->size, l->offset,
			l->name_size, l->name);
	}
	fclose(f);
	return text;
}

struct row {
	const char *name;
	size_t at, width; /* where the good dump is spoiled; width 0: cut off there */
	uint64_t value;
	int expected;
	const char *text; /* what is understood, or why it is refused */
	uint64_t cut_at;
	size_t n_skipped;
};

static const struct row rows[] = {
	/* What is not used: a process has the machine and the pid of the snapshot, and code is
	 * where code_addr says. */
	{ "good", 20, 4, 0x12345678, 0, GOOD, 0, 0 },
	{ "another machine", 12, 4, 3, 0, GOOD, 0, 0 },
	{ "padding", 16, 4, 0, 0, GOOD, 0, 0 },
	{ "when the file was made", 24, 8, UINT64_MAX, 0, GOOD, 0, 0 },
	{ "LOAD by another process", LOAD_B + 16, 4, 1, 0, GOOD, 0, 0 },
	{ "LOAD by another thread", LOAD_B + 20, 4, 1, 0, GOOD, 0, 0 },
	{ "LOAD with another vma", LOAD_B + 24, 8, 0x7000, 0, GOOD, 0, 0 },
	{ "MOVE by another process", MOVE_A + 16, 4, 1, 0, GOOD, 0, 0 },
	{ "MOVE by another thread", MOVE_A + 20, 4, 1, 0, GOOD, 0, 0 },
	{ "MOVE with another vma", MOVE_A + 24, 8, 0x7000, 0, GOOD, 0, 0 },
	{ "MOVE from elsewhere", MOVE_A + 32, 8, 0x7000, 0, GOOD, 0, 0 },
	{ "MOVE to elsewhere", MOVE_A + 40, 8, 0x7000, 0,
	  "10:1000+3@143=a 20:2000+4@205=bb 30:~7000+3@143=a", 0, 0 },
	{ "empty", 0, 0, 0, -EBADMSG,
	  "byte 0: too short: expected a jitdump, which begins with DTiJ", 0, 0 },
	{ "magic cut", 3, 0, 0, -EBADMSG,
	  "byte 0: too short: expected a jitdump, which begins with DTiJ", 0, 0 },
	{ "header cut", 39, 0, 0, -EBADMSG,
	  "byte 0: too short: expected a jitdump's header of 40 bytes", 0, 0 },
	{ "no magic", 0, 4, 0, -EBADMSG, "byte 0: not a jitdump: expected DTiJ", 0, 0 },
	{ "the other byte order", 0, 4, 0x4454694a, -EOPNOTSUPP,
	  "byte 0: a jitdump of the other byte order: expected DTiJ, found JiTD", 0, 0 },
	{ "version 2", 4, 4, 2, -EOPNOTSUPP, "byte 4: a jitdump of another version: expected 1", 0,
	  0 },
	{ "version 0", 4, 4, 0, -EOPNOTSUPP, "byte 4: a jitdump of another version: expected 1", 0,
	  0 },
	{ "header smaller than it is", 8, 4, 39, -EBADMSG,
	  "byte 8: a jitdump's header of an impossible size: expected 40 bytes or more, inside the "
	  "file",
	  0, 0 },
	{ "header larger than the file", 8, 4, END + 1, -EBADMSG,
	  "byte 8: a jitdump's header of an impossible size: expected 40 bytes or more, inside the "
	  "file",
	  0, 0 },
	{ "a larger header is skipped", 8, 4, LOAD_A, 0, GOOD, 0, 0 },
	{ "unknown flag", 32, 8, 2, -EOPNOTSUPP,
	  "byte 32: a jitdump with flags that are not known: expected 0 or 1", 0, 0 },
	{ "no records", 40, 0, 0, 0, "", 0, 0 },
	{ "unknown record", UNWIND, 4, 77, 0, GOOD, 0, 0 },
	{ "debug info", UNWIND, 4, JITBUILD_DEBUG, 0, GOOD, 0, 0 },
	{ "cut in a record's header", LOAD_B + 15, 0, 0, 0, "10:1000+3@143=a", LOAD_B, 0 },
	{ "cut in a record", LOAD_B + 16, 0, 0, 0, "10:1000+3@143=a", LOAD_B, 0 },
	{ "cut one byte too early", MOVE_A - 1, 0, 0, 0, "10:1000+3@143=a", LOAD_B, 0 },
	{ "cut between records", MOVE_A, 0, 0, 0, "10:1000+3@143=a 20:2000+4@205=bb", 0, 0 },
	{ "record of size 0", LOAD_B + 4, 4, 0, 0, "10:1000+3@143=a", LOAD_B, 0 },
	{ "record smaller than its header", LOAD_B + 4, 4, 15, 0, "10:1000+3@143=a", LOAD_B, 0 },
	{ "record larger than the file", LOAD_B + 4, 4, UINT32_MAX, 0, "10:1000+3@143=a", LOAD_B,
	  0 },
	{ "LOAD smaller than its fields", CLOSE, 4, JITBUILD_LOAD, 0,
	  "10:1000+3@143=a 20:2000+4@205=bb 30:~3000+3@143=a", 0, 1 },
	{ "MOVE smaller than its fields", CLOSE, 4, JITBUILD_MOVE, 0,
	  "10:1000+3@143=a 20:2000+4@205=bb 30:~3000+3@143=a", 0, 1 },
	{ "code larger than the record", LOAD_B + 40, 8, 8, 0, "10:1000+3@143=a 30:~3000+3@143=a",
	  0, 1 },
	{ "code far larger", LOAD_B + 40, 8, UINT64_MAX, 0, "10:1000+3@143=a 30:~3000+3@143=a", 0,
	  1 },
	{ "no room for the name", LOAD_B + 40, 8, 7, 0, "10:1000+3@143=a 30:~3000+3@143=a", 0, 1 },
	{ "no code", LOAD_B + 40, 8, 0, 0, "10:1000+3@143=a 30:~3000+3@143=a", 0, 0 },
	{ "name without an end", LOAD_B + 58, 1, 'x', 0, "10:1000+3@143=a 30:~3000+3@143=a", 0, 1 },
	{ "code behind the top", LOAD_B + 32, 8, UINT64_MAX - 2, 0,
	  "10:1000+3@143=a 30:~3000+3@143=a", 0, 1 },
	{ "code up to the top", LOAD_B + 32, 8, UINT64_MAX - 3, 0,
	  "10:1000+3@143=a 20:fffffffffffffffc+4@205=bb 30:~3000+3@143=a", 0, 0 },
	{ "MOVE of nobody", MOVE_A + 16 + 40, 8, 4, 0, "10:1000+3@143=a 20:2000+4@205=bb", 0, 1 },
	{ "MOVE of another size", MOVE_A + 16 + 32, 8, 4, 0, "10:1000+3@143=a 20:2000+4@205=bb", 0,
	  1 },
	{ "MOVE behind the top", MOVE_A + 16 + 24, 8, UINT64_MAX - 1, 0,
	  "10:1000+3@143=a 20:2000+4@205=bb", 0, 1 },
	{ "one index twice: the latest", LOAD_B + 48, 8, 5, 0, "10:1000+3@143=a 20:2000+4@205=bb",
	  0, 1 },
	{ "stamps out of order", LOAD_B + 8, 8, 5, 0,
	  "5:2000+4@205=bb 10:1000+3@143=a 30:~3000+3@143=a", 0, 0 },
	{ "behind a CLOSE it goes on", UNWIND, 4, JITBUILD_CLOSE, 0, GOOD, 0, 0 },
};

static void every_row(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct row *row = &rows[i];
		struct jitdump dump = { .cut_at = 12345 };
		const char *why = NULL;
		struct jitbuild b;
		uint8_t *bytes;
		int r;

		print_message("  %s\n", row->name);
		build(&b);
		if (row->width)
			memcpy(b.bytes + row->at, &row->value, row->width);
		else
			b.size = row->at;
		/* Of its very size, so that a sanitizer sees a step beyond. */
		bytes = b.size ? malloc(b.size) : NULL;
		assert_true(bytes || !b.size);
		if (b.size)
			memcpy(bytes, b.bytes, b.size);

		r = jitdump_parse(bytes, b.size, &dump, &why);
		assert_int_equal(r, row->expected);
		if (r < 0) {
			assert_string_equal(why, row->text);
			assert_int_equal(dump.cut_at, 12345);
		} else {
			_cleanup_(freep) char *text = render(&dump);

			assert_string_equal(text, row->text);
			assert_int_equal(dump.cut_at, row->cut_at);
			assert_int_equal(dump.n_skipped, row->n_skipped);
			assert_false(dump.time_is_tsc);
			jitdump_deinit(&dump);
		}
		free(bytes);
	}
}

static void tsc_stamps(void **state)
{
	struct jitdump dump;
	const char *why;
	struct jitbuild b;

	(void)state;
	jitbuild_begin(&b, 1);
	assert_int_equal(jitdump_parse(b.bytes, b.size, &dump, &why), 0);
	assert_true(dump.time_is_tsc);
	jitdump_deinit(&dump);
}

static void long_names_are_cut(void **state)
{
	static uint8_t bytes[40 + 56 + 70000];
	static const uint64_t load[] = { UINT64_C(70056) << 32, 1, 0, 0, 0x1000, 1, 0 };
	struct jitdump dump;
	const char *why;
	struct jitbuild b;

	(void)state;
	jitbuild_begin(&b, 0);
	memset(bytes, 'x', sizeof(bytes));
	memcpy(bytes, b.bytes, b.size);
	memcpy(bytes + b.size, load, sizeof(load));
	bytes[sizeof(bytes) - 2] = 0;
	assert_int_equal(jitdump_parse(bytes, sizeof(bytes), &dump, &why), 0);
	assert_int_equal(dump.loads.n, 1);
	assert_int_equal(dump.loads.items[0].name_size, JITDUMP_NAME_MAX);
	jitdump_deinit(&dump);
}

/* The names are those of the loads, by the offsets of their code; a move changes nothing. */
static void names_by_offset(void **state)
{
	struct jitdump dump;
	const char *why;
	struct jitbuild b;

	(void)state;
	build(&b);
	assert_int_equal(jitdump_parse(b.bytes, b.size, &dump, &why), 0);
	assert_int_equal(dump.loads.n, 2);
	for (size_t i = 0; i < 2; i++) {
		const struct jitdump_load *l = &dump.loads.items[i];

		symbolat_expect(&dump.symbols, l->offset - 1, "");
		symbolat_expect(&dump.symbols, l->offset, i ? "bb" : "a");
		symbolat_expect(&dump.symbols, l->offset + l->size - 1, i ? "bb" : "a");
		symbolat_expect(&dump.symbols, l->offset + l->size, "");
	}
	jitdump_deinit(&dump);
}

struct line_row {
	const char *title;
	struct jitbuild_line lines[4]; /* of 16 bytes of code at 0x1000 */
	const char *text;              /* of the bytes 0, 4, 8, 12 */
};

static const struct line_row line_rows[] = {
	{ "true addresses", { { 0x1000, 1, "a" }, { 0x1008, 2, "b" } }, "a:1 a:1 b:2 b:2 " },
	{ "no line at the start", { { 0x1004, 1, "a" } }, "? a:1 a:1 a:1 " },
	{ "lines that begin before the code",
	  { { 0xfce, 1, "a" }, { 0x1004, 2, "a" }, { 0x1010, 3, "a" } },
	  "a:1 a:2 a:2 a:2 " },
	{ "an ELF header is added",
	  { { 0x1040, 1, "a" }, { 0x104c, 2, "a" } },
	  "a:1 a:1 a:1 a:2 " },
	{ "far from the start", { { 0x1041, 1, "a" } }, "? ? ? ? " },
	{ "the same file",
	  { { 0x1000, 1, "a" }, { 0x1004, 2, "\xff" }, { 0x1008, 3, "b" } },
	  "a:1 a:2 b:3 b:3 " },
	{ "the same as nothing", { { 0x1000, 1, "\xff" } }, "?:1 ?:1 ?:1 ?:1 " },
	{ "not in order",
	  { { 0x1000, 1, "a" }, { 0x100c, 3, "a" }, { 0x1004, 2, "a" } },
	  "a:1 a:2 a:2 a:3 " },
	{ "the last of several", { { 0x1000, 1, "a" }, { 0x1000, 2, "a" } }, "a:2 a:2 a:2 a:2 " },
};

/* Write the lines of @load, at each fourth byte. */
static char *render_lines(struct jitdump *dump, const struct jitdump_load *load)
{
	struct ptd_position positions[PTD_POSITIONS_MAX];
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	assert_non_null(f);
	for (uint64_t at = 0; at < load->size; at += 4) {
		const int n =
		    dump->symbols.ops->positions(&dump->symbols, load->offset + at, positions);

		assert_in_range(n, 0, 1);
		assert_true(n == 0 || positions[0].column == positions[0].line + 6);
		if (n == 1)
			fprintf(f, "%s:%" PRIu32 " ", positions[0].file ?: "?", positions[0].line);
		else
			fprintf(f, "? ");
	}
	fclose(f);
	return text;
}

static void lines(void **state)
{
	static const uint8_t code[16];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(line_rows); i++) {
		_cleanup_(freep) char *first = NULL, *second = NULL;
		struct jitdump dump;
		const char *why;
		struct jitbuild b;
		size_t n = 0;

		print_message("  %s\n", line_rows[i].title);
		while (n < ARRAY_LEN(line_rows[i].lines) && line_rows[i].lines[n].file)
			n++;
		jitbuild_begin(&b, 0);
		jitbuild_debug(&b, 9, 0x1000, line_rows[i].lines, n);
		jitbuild_record(&b, JITBUILD_MOVE, 9, code, sizeof(code));
		jitbuild_load(&b, 10, 0x1000, 5, "f", code, sizeof(code));
		/* Other code at that address has no lines. */
		jitbuild_load(&b, 20, 0x1000, 6, "g", code, sizeof(code));
		assert_int_equal(jitdump_parse(b.bytes, b.size, &dump, &why), 0);
		assert_int_equal(dump.loads.n, 2);
		first = render_lines(&dump, &dump.loads.items[0]);
		second = render_lines(&dump, &dump.loads.items[1]);
		assert_string_equal(first, line_rows[i].text);
		assert_string_equal(second, "? ? ? ? ");
		jitdump_deinit(&dump);
	}
}

/* What is behind the last line that is stated is none, whatever it looks like. */
static void lines_as_many_as_stated(void **state)
{
	static const struct jitbuild_line two[] = { { 0x1000, 1, "a" }, { 0x1008, 2, "b" } };
	static const uint8_t code[16];

	(void)state;
	for (uint64_t n = 0; n <= 3; n++) {
		static const char *const expected[] = { "? ? ? ? ", "a:1 a:1 a:1 a:1 ",
							"a:1 a:1 b:2 b:2 ", "a:1 a:1 b:2 b:2 " };
		_cleanup_(freep) char *text = NULL;
		struct jitdump dump;
		const char *why;
		struct jitbuild b;
		size_t at;

		jitbuild_begin(&b, 0);
		at = jitbuild_debug(&b, 9, 0x1000, two, ARRAY_LEN(two));
		memcpy(b.bytes + at + 24, &n, sizeof(n));
		jitbuild_load(&b, 10, 0x1000, 5, "f", code, sizeof(code));
		assert_int_equal(jitdump_parse(b.bytes, b.size, &dump, &why), 0);
		text = render_lines(&dump, &dump.loads.items[0]);
		assert_string_equal(text, expected[n]);
		jitdump_deinit(&dump);
	}
}

/* Unwinding information: .eh_frame of a function of 16 bytes. Its second byte saves rbp. */
/* clang-format off */
static const uint8_t frames[] = {
	/* Common: up to the encoding; CFA = rsp + 8, the return address is at CFA - 8. */
	20, 0, 0, 0, 0, 0, 0, 0, 3, 'z', 'R', 0, 1, 0x78, 16, 1, 0x1b,
	0x0c, 7, 8, 0x90, 1, 0, 0,
	/* Its own: push rbp; mov rsp, rbp. */
	24, 0, 0, 0, 28, 0, 0, 0, 0xc0, 0xff, 0xff, 0xff, 16, 0, 0, 0, 0,
	0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6, 0, 0, 0,
};
/* clang-format on */
static const uint8_t frames_header[20] = { 1, 0x1b, 3, 0x3b };

/* How the function is unwound. */
enum unwinding { NOT, BY_FRAMES, BY_RBP };

struct unwinding_row {
	const char *title;
	bool is_first, is_last;                       /* where the header is */
	uint64_t data_more, header_size, mapped_size; /* data_more: than there is */
	size_t n_cut;                                 /* bytes of the record */
	enum unwinding expected;
	size_t n_skipped;
	uint8_t range;
};

static const struct unwinding_row unwinding_rows[] = {
	{ "the header first", true, false, 0, 20, 72, 0, BY_FRAMES, 0, 16 },
	{ "the header last", false, true, 0, 20, 72, 0, BY_FRAMES, 0, 16 },
	{ "no header", false, false, 0, 0, 52, 0, BY_FRAMES, 0, 16 },
	{ "another size is mapped", true, false, 0, 20, 80, 0, BY_FRAMES, 0, 16 },
	{ "not mapped", true, false, 0, 20, 0, 0, BY_RBP, 0, 16 },
	{ "not mapped, and nothing but the header", true, false, UINT64_C(-52), 20, 0, 0, BY_RBP, 0,
	  16 },
	{ "not mapped, and no header", false, false, 0, 0, 0, 0, NOT, 0, 16 },
	{ "a header alone", true, false, 0, 72, 72, 0, NOT, 0, 16 },
	{ "more data than the record has", true, false, 1, 20, 72, 0, NOT, 1, 16 },
	{ "far more", true, false, UINT64_MAX - 72, 20, 72, 0, NOT, 1, 16 },
	{ "a header larger than the data", true, false, 0, 73, 72, 0, NOT, 1, 16 },
	{ "smaller than its fields", true, false, 0, 20, 72, 73, NOT, 1, 16 },
	{ "frames cut off", true, false, UINT64_C(-20), 20, 72, 0, NOT, 0, 16 },
	{ "a shorter function", true, false, 0, 20, 72, 0, NOT, 0, 5 },
	{ "an empty function", true, false, 0, 20, 72, 0, NOT, 0, 0 },
};

static size_t put_unwinding(struct jitbuild *b, const struct unwinding_row *row)
{
	struct jitbuild p = {};
	const size_t n_headers = (size_t)row->is_first + row->is_last;

	jitbuild_u64(&p, n_headers * sizeof(frames_header) + sizeof(frames) + row->data_more);
	jitbuild_u64(&p, row->header_size);
	jitbuild_u64(&p, row->mapped_size);
	if (row->is_first)
		jitbuild_put(&p, frames_header, sizeof(frames_header));
	jitbuild_put(&p, frames, sizeof(frames));
	p.bytes[p.size - sizeof(frames) + 36] = row->range;
	if (row->is_last)
		jitbuild_put(&p, frames_header, sizeof(frames_header));
	return jitbuild_record(b, JITBUILD_UNWIND, 9, p.bytes, (uint32_t)(p.size - row->n_cut));
}

/* The stack from 0x7000 on: a saved rbp, and a return address. */
static bool read_stack(void *userdata, uint64_t address, void *ret_bytes, size_t size)
{
	static const uint64_t stack[] = { 0x1234, 0x5678 };

	(void)userdata;
	if (address < 0x7000 || address - 0x7000 > sizeof(stack) - size)
		return false;
	memcpy(ret_bytes, (const uint8_t *)stack + (address - 0x7000), size);
	return true;
}

/* Behind its fourth byte the function is unwound by rbp; at its first one, by rsp if it has frames.
 */
static void check_entry(const struct ehframe_entry *entry, const struct jitdump_load *load,
			enum unwinding expected)
{
	const struct unwind_memory memory = { .read = read_stack };
	struct unwind_frame frame = { .known = (1u << _UNWIND_REGS) - 1 }, caller;

	assert_int_equal(entry->start, load->offset);
	assert_int_equal(entry->end, load->offset + 16);
	assert_int_equal(entry->code_factor, 1);
	assert_int_equal(entry->data_factor, -8);
	assert_int_equal(entry->return_register, UNWIND_RIP);
	assert_false(entry->is_signal);
	frame.regs[6] = 0x7000;
	frame.regs[UNWIND_RSP] = 0x6f00;
	assert_int_equal(unwind_frame(entry, load->offset + 5, &frame, &memory, &caller), 0);
	assert_int_equal(caller.regs[6], 0x1234);
	assert_int_equal(caller.regs[UNWIND_RSP], 0x7010);
	assert_int_equal(caller.regs[UNWIND_RIP], 0x5678);
	frame.regs[UNWIND_RSP] = 0x7008;
	assert_int_equal(unwind_frame(entry, load->offset, &frame, &memory, &caller), 0);
	assert_int_equal(caller.regs[6], expected == BY_RBP ? 0x1234 : 0x7000);
	assert_int_equal(caller.regs[UNWIND_RSP], 0x7010);
	assert_int_equal(caller.regs[UNWIND_RIP], 0x5678);
}

static void unwinding(void **state)
{
	static const uint8_t code[16];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(unwinding_rows); i++) {
		const struct unwinding_row *row = &unwinding_rows[i];
		const struct jitdump_load *load;
		struct ehframe_entry entry;
		struct jitdump dump;
		const char *why;
		struct jitbuild b;

		print_message("  %s\n", row->title);
		jitbuild_begin(&b, 0);
		jitbuild_load(&b, 9, 0x800, 3, "e", code, sizeof(code));
		(void)put_unwinding(&b, row);
		jitbuild_load(&b, 10, 0x1000, 4, "f", code, sizeof(code));
		jitbuild_load(&b, 20, 0x2000, 5, "g", code, sizeof(code));
		/* That of a function without code is not of the next one. */
		(void)put_unwinding(&b, row);
		jitbuild_load(&b, 30, 0x3000, 6, "h", code, 0);
		jitbuild_load(&b, 40, 0x4000, 7, "i", code, sizeof(code));
		assert_int_equal(jitdump_parse(b.bytes, b.size, &dump, &why), 0);
		assert_int_equal(dump.loads.n, 4);
		assert_int_equal(dump.n_skipped, 2 * row->n_skipped);
		load = &dump.loads.items[1];
		assert_int_equal(dump.symbols.ops->entry(&dump.symbols, load->offset + 5, &entry),
				 row->expected != NOT);
		if (row->expected != NOT)
			check_entry(&entry, load, row->expected);
		for (size_t k = 0; k < dump.loads.n; k++)
			assert_true(k == 1 ||
				    !dump.symbols.ops->entry(&dump.symbols,
							     dump.loads.items[k].offset, &entry));
		assert_false(dump.symbols.ops->entry(&dump.symbols, load->offset + 16, &entry));
		assert_false(dump.symbols.ops->entry(&dump.symbols, load->offset - 1, &entry));
		jitdump_deinit(&dump);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_row),
		cmocka_unit_test(tsc_stamps),
		cmocka_unit_test(long_names_are_cut),
		cmocka_unit_test(names_by_offset),
		cmocka_unit_test(lines),
		cmocka_unit_test(lines_as_many_as_stated),
		cmocka_unit_test(unwinding),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
