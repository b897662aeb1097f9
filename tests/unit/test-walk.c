/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The walk over packets: each row is a stream, and what the walk makes of it without any code. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/base.h"
#include "decoder/pt/walk.h"
#include "tests/lib/packets.h"

#define LINES_MAX 24

static const char *const kinds[] = {
	[WALK_ENABLED] = "on",        [WALK_DISABLED] = "off",
	[WALK_ASYNC] = "async",       [WALK_ASYNC_DISABLED] = "async-off",
	[WALK_OVERFLOW] = "overflow", [WALK_MODE] = "mode",
	[WALK_TSX] = "tsx",           [WALK_PAGING] = "paging",
	[WALK_VMCS] = "vmcs",         [WALK_NOTHING] = "nothing",
};

struct row {
	const char *name, *expected;
	uint16_t model; /* of family 6; 0: no errata */
	const char *lines[LINES_MAX];
};

static const struct row rows[] = {
	{ "branches",
	  "sync@0 on 401000 t=5 tnt 2 tip 401234 off end",
	  0,
	  { "psb", "tsc 5", "psbend", "tip.pge 401000", "tnt 10", "tip16 1234", "tip.pgd0" } },
	{ "before the first PSB", "sync@2 end", 0, { "pad", "pad", "psb", "psbend" } },
	{ "a PSB+ that says where execution is, and what it repeats",
	  "sync@0 ip 401000 cbr 16 t=5 paging 3000 0 before 401000 vmcs 7000 0 before 401000 "
	  "mode 64 before 401000 tnt 1 end",
	  0,
	  { "psb", "tsc 5", "cbr 10", "pip 3000", "vmcs 7", "mode.exec 64", "fup 401000", "psbend",
	    "tnt 1" } },
	{ "a broken PSB+ is passed over", "sync@18 end", 0, { "psb", "stop", "psb", "psbend" } },
	{ "an interruption, and what it changes",
	  "sync@0 ip 401000 async 401001 to 402000 t=7 vmcs 7000 before 402000 paging 3000 1 "
	  "before 402000 mode 32 before 402000 end",
	  0,
	  { "psb", "fup 401000", "psbend", "tsc 7", "fup 401001", "pip 3000 nr", "vmcs 7",
	    "mode.exec 32", "tip 402000" } },
	{ "an interruption that packets end at",
	  "sync@0 ip 401000 async-off 401001 end",
	  0,
	  { "psb", "fup 401000", "psbend", "fup 401001", "tip.pgd0" } },
	{ "a mode behind a branch",
	  "sync@0 ip 401000 tip 402000 mode 16 before 402000 end",
	  0,
	  { "psb", "fup 401000", "psbend", "mode.exec 16", "tip 402000" } },
	{ "a transaction that is aborted",
	  "sync@0 ip 401000 tsx 1 before 401001 tsx 2 before 401005 async 401005 to 401010 end",
	  0,
	  { "psb", "fup 401000", "psbend", "mode.tsx begin", "fup 401001", "mode.tsx abort",
	    "fup 401005", "tip 401010" } },
	{ "marks with an address, behind an instruction, and without either",
	  "sync@0 ip 401000 mwait before 401001 pwre before 401002 exstop before 401002 ptwrite "
	  "behind 401003 "
	  "ptwrite next exstop pebs before 401004 end",
	  0,
	  { "psb", "fup 401000", "psbend", "mwait 1 2", "fup 401001", "pwre 1 2", "exstop ip",
	    "fup 401002", "ptw4 1 ip", "fup 401003", "ptw4 1", "exstop", "bbp 1", "bip 0 4",
	    "bep ip", "fup 401004" } },
	{ "overflows: on, off, and at the end",
	  "sync@0 ip 401000 overflow 401002 tnt 1 overflow t=9 on 401003 overflow end",
	  0,
	  { "psb", "fup 401000", "psbend", "ovf", "tsc 9", "fup 401002", "tnt 1", "ovf",
	    "tip.pge 401003", "ovf" } },
	{ "an overflow takes the address of what waited",
	  "sync@0 ip 401000 exstop overflow 401002 tip 401004 end",
	  0,
	  { "psb", "fup 401000", "psbend", "exstop ip", "mode.exec 16", "ovf", "fup 401002",
	    "tip 401004" } },
	{ "what waits while packets are off has no address",
	  "sync@0 ip 401000 off mwait pwre exstop on 401002 async-off 401003 end",
	  0,
	  { "psb", "fup 401000", "psbend", "tip.pgd0", "mwait 2 1", "pwre 2 1", "exstop",
	    "tip.pge 401002", "fup 401003", "tip.pgd0" } },
	{ "packets are on before the FUP that an event waits for",
	  "sync@0 mwait on 401002 end",
	  0,
	  { "psb", "psbend", "mwait 2 1", "tip.pge 401002" } },
	{ "event trace: a flag that changes, and notes",
	  "sync@0 ip 401000 nothing before 401001 note cfe@38 tip 401002 end",
	  0,
	  { "psb", "fup 401000", "psbend", "mode.exec 64 if", "fup 401001", "cfe 2 0",
	    "tip 401002" } },
	{ "unknown bytes", "sync@0 bad packet@18", 0, { "psb", "psbend", "bytes 02 ff" } },
	{ "a packet that is cut off", "sync@0 cut@18", 0, { "psb", "psbend", "bytes 6d 00" } },
	{ "time that is cut off", "sync@0 end", 0, { "psb", "psbend", "bytes 19 00" } },
	{ "a FUP without an address", "sync@0 bad flow@18", 0, { "psb", "psbend", "fup0" } },
	{ "too many that wait",
	  "sync@0 bad packet@18",
	  0,
	  { "psb", "psbend", "mode.exec 64", "mode.exec 64", "mode.exec 64", "mode.exec 64",
	    "mode.exec 64", "mode.exec 64", "mode.exec 64", "mode.exec 64", "mode.exec 64",
	    "tip.pge 401000" } },
	{ "BDM70: a FUP too many in a PSB+",
	  "sync@0 on 401000 end",
	  0x3d,
	  { "psb", "fup 401002", "psbend", "tip.pge 401000" } },
	{ "SKD010: no FUP behind an overflow",
	  "sync@0 ip 401000 overflow 401002 tnt 1 end",
	  0x5e,
	  { "psb", "fup 401000", "psbend", "ovf", "tip 401002", "tnt 1" } },
	{ "APL12: a FUP behind an overflow although packets are off",
	  "sync@0 overflow on 401000 end",
	  0x5c,
	  { "psb", "psbend", "ovf", "fup 401002", "tip.pge 401000" } },
};

static void put_event(FILE *f, const struct walk_event *event, uint64_t *t)
{
	if (event->kind == WALK_MARK)
		fprintf(f, "%s", ptd_mark_kind_name(event->mark));
	else
		fprintf(f, "%s", kinds[event->kind]);
	if (event->kind == WALK_MARK && event->mark == PTD_MARK_CBR)
		fprintf(f, " %" PRIu64, event->value);
	else if (event->kind == WALK_MODE)
		fprintf(f, " %" PRIu64, event->value);
	else if (event->kind == WALK_TSX)
		fprintf(f, " %" PRIu64, event->value);
	else if (event->kind == WALK_PAGING || (event->kind == WALK_VMCS && event->is_status))
		fprintf(f, " %" PRIx64 " %" PRIx64, event->value, event->extra);
	else if (event->kind == WALK_VMCS)
		fprintf(f, " %" PRIx64, event->value);
	if (event->place == WALK_BEFORE && event->kind != WALK_ASYNC &&
	    event->kind != WALK_ASYNC_DISABLED)
		fprintf(f, " before");
	else if (event->place == WALK_BEHIND)
		fprintf(f, " behind");
	else if (event->place == WALK_NEXT && event->kind != WALK_DISABLED)
		fprintf(f, " next");
	if (event->has_ip)
		fprintf(f, " %" PRIx64, event->ip);
	if (event->kind == WALK_ASYNC)
		fprintf(f, " to %" PRIx64, event->to);
	if (event->t && event->t != *t)
		fprintf(f, " t=%" PRIu64, *t = event->t);
	fputc(' ', f);
}

/* Return: whether it goes on. */
static bool put_next(FILE *f, struct walk *walk, uint64_t *t)
{
	struct walk_event event;
	uint64_t bits, ip;
	unsigned n;

	if (walk->n_notes > 0 && walk->notes[0].next < UINT64_MAX) {
		const struct walk_note note = walk_take_note(walk);

		fprintf(f, "note %s@%" PRIu64 " ", ptd_mark_kind_name(note.kind), note.next);
		return true;
	}
	switch (walk_ahead(walk)) {
	case WALK_TNT:
		/* Whatever can be taken quickly is the same. */
		if (!walk_quick_tnt(walk, &bits, &n))
			n = walk_take_tnt(walk, &bits);
		fprintf(f, "tnt %u ", n);
		return true;
	case WALK_TIP:
		if (walk->n_notes > 0)
			return true;
		if (!walk_quick_tip(walk, &ip))
			assert_true(walk_take_tip(walk, &ip));
		fprintf(f, "tip %" PRIx64 " ", ip);
		return true;
	case WALK_EVENT:
		if (!walk_take_event(walk, &event))
			break;
		put_event(f, &event, t);
		return true;
	case WALK_END:
		fprintf(f, "end");
		return false;
	case WALK_ON:
		fail();
		break;
	case WALK_ERROR:
		break;
	}
	fprintf(f, "%s@%" PRIu64,
		walk->error == PTD_GAP_BAD_PACKET ? "bad packet"
		: walk->error == PTD_GAP_BAD_FLOW ? "bad flow"
						  : "cut",
		walk_used(walk));
	return false;
}

static size_t write_row(const struct row *row, uint8_t *to)
{
	size_t size = 0;

	for (size_t i = 0; i < LINES_MAX && row->lines[i]; i++) {
		const int n = packets_write(row->lines[i], to + size);

		assert_true(n > 0);
		size += (size_t)n;
	}
	return size;
}

/*
 * Behind the packets are so many bytes that they can be taken quickly, or none. @window: how many
 * bytes are in memory at once; 0: all.
 */
static char *walk_row(const struct row *row, size_t padding, size_t window)
{
	uint8_t *bytes = calloc(1, 64 * LINES_MAX + padding);
	const size_t size = write_row(row, bytes) + padding;
	struct walk walk;
	uint64_t offset, t = 0;
	uint32_t errata;
	char *text = NULL;
	size_t text_size;
	bool has_ip;
	FILE *f = open_memstream(&text, &text_size);

	assert_non_null(bytes);
	assert_non_null(f);
	(void)errata_find(6, (uint8_t)row->model, &errata);
	walk_init(&walk, &(struct walk_config){ .pt = fileparts_in_memory(bytes, size),
						.window = window,
						.has_events = true,
						.errata = errata });
	assert_true(walk_sync(&walk, 0, &offset, &has_ip));
	fprintf(f, "sync@%" PRIu64 " ", offset);
	if (has_ip)
		fprintf(f, "ip %" PRIx64 " ", walk.last_ip);
	while (put_next(f, &walk, &t))
		;
	fclose(f);
	assert_int_equal(walk_read_error(&walk), 0);
	walk_deinit(&walk);
	free(bytes);
	return text;
}

static void every_row(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char *text = walk_row(&rows[i], 0, 0);

		print_message("  %s: %s\n", rows[i].name, text);
		assert_string_equal(text, rows[i].expected);
		free(text);
	}
}

/* The quick ways give what the slow ones do. */
static void quickly(void **state)
{
	char *text = walk_row(&rows[0], 64, 0);

	(void)state;
	assert_string_equal(text, rows[0].expected);
	free(text);
}

/* Whatever the window holds, packets that begin in it and end behind it are the same. */
static void in_small_windows(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		for (size_t n = WALK_WINDOW_MIN; n < 2 * (size_t)WALK_WINDOW_MIN; n++) {
			char *text = walk_row(&rows[i], 0, n);

			assert_string_equal(text, rows[i].expected);
			free(text);
		}
	}
}

/* A file that was cut off ends the walk with an error, not with what an end would be. */
static void cut_while_read(void **state)
{
	static const struct row row = {
		.lines = { "psb", "fup 401000", "psbend", "tip 402000", "tip 403000", "tip 404000",
			   "tip 405000", "tip 406000", "tip 407000", "tip 408000", "tip 409000" },
	};
	uint8_t bytes[64 * LINES_MAX];
	const size_t size = write_row(&row, bytes);
	const int fd = memfd_create("test", MFD_CLOEXEC);
	const struct filepart part = { .fd = fd };
	uint64_t offset, ip, n = 0;
	struct walk walk;
	bool has_ip;

	(void)state;
	assert_true(write(fd, bytes, size) == (ssize_t)size);
	walk_init(&walk, &(struct walk_config){ .pt = { .size = size, .parts = &part, .n = 1 },
						.window = WALK_WINDOW_MIN });
	assert_true(walk_sync(&walk, 0, &offset, &has_ip));
	assert_int_equal(ftruncate(fd, (off_t)size - 1), 0);
	for (; walk_ahead(&walk) == WALK_TIP; n++)
		assert_true(walk_take_tip(&walk, &ip));
	assert_int_equal(walk_read_error(&walk), -ESTALE);
	assert_true(n > 0 && n < 8);
	walk_deinit(&walk);
	close(fd);
}

/* Behind an error: the next packet that says where execution is, and what is known there. */
static void recovers(void **state)
{
	static const struct row row = {
		.lines = { "psb",          "tsc 5",          "psbend",
			   "mode.exec 32", "tip.pge 401000", "tnt 1",
			   "tsc 9",        "tip 402000",     "tip.pgd0",
			   "tip 403000",   "fup 403000",     "tip.pge 404000",
			   "ovf",          "fup 405000",     "tnt 1",
			   "ptw4 1 ip",    "cyc 3",          "fup 405001",
			   "psb",          "tip 406000" },
	};
	static const uint64_t points[] = { 0x401000, 0x402000, 0x404000, 0x405000, 0x405001 };
	uint8_t bytes[64 * LINES_MAX];
	struct walk_point point;
	struct walk_event event;
	struct walk walk;
	uint64_t offset;
	bool has_ip;

	(void)state;
	walk_init(&walk, &(struct walk_config){
			     .pt = fileparts_in_memory(bytes, write_row(&row, bytes)) });
	assert_true(walk_sync(&walk, 0, &offset, &has_ip));
	assert_false(has_ip);
	for (size_t i = 0; i < ARRAY_LEN(points); i++) {
		assert_true(walk_recover(&walk, &point));
		assert_true(point.ip == points[i]);
		assert_int_equal(point.asks, i < 3);
		walk_resume(&walk, &point);
		assert_int_equal(walk_ahead(&walk), WALK_EVENT);
		assert_true(walk_take_event(&walk, &event));
		assert_int_equal(event.kind, WALK_MODE);
		assert_int_equal(event.value, 32);
		assert_true(event.is_status && event.ip == points[i]);
	}
	/* The walk stands before the event that the last FUP belongs to, and goes on there once. */
	assert_int_equal(walk_ahead(&walk), WALK_EVENT);
	assert_true(walk_take_event(&walk, &event));
	assert_true(event.kind == WALK_MARK && event.ip == 0x405001);
	walk.offset = point.offset;
	/* The last PSB+ has no PSBEND: where packets are off, its TIP says nothing. */
	assert_false(walk_recover(&walk, &point));
	assert_true(walk.offset == walk.size);
	assert_false(walk_sync(&walk, 0x100, &offset, &has_ip));
	assert_true(offset == walk.size);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_row),        cmocka_unit_test(quickly),
		cmocka_unit_test(in_small_windows), cmocka_unit_test(cut_while_read),
		cmocka_unit_test(recovers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
