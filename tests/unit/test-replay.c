/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * What a code log makes of an address space: a snapshot with the log of a program, mappings of all
 * kinds, and for each row what is visible at a time, byte by byte, and of which object.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "decoder/image/layout.h"
#include "decoder/jit/memfile.h"
#include "decoder/jit/replay.h"
#include "tests/lib/tempdir.h"

#define PIECES_MAX 8

/* Pieces of a log as text: "TIME@ADDRESS:BYTES", or "TIME@ADDRESS:?N" if N are not known. */
static void put_log(const char *dir, const char *name, const char *const *pieces)
{
	static uint8_t file[4096];
	struct ptd_code_header header = { .magic = PTD_CODE_MAGIC, .version = PTD_CODE_VERSION };
	size_t n = 0, size;

	while (n < PIECES_MAX && pieces[n])
		n++;
	header.n_pieces = (uint32_t)n;
	memcpy(file, &header, sizeof(header));
	size = sizeof(header) + n * sizeof(struct ptd_code_piece);
	for (size_t i = 0; i < n; i++) {
		struct ptd_code_piece p = {};
		unsigned time, address, unknown = 0;
		char code[64];

		assert_int_equal(sscanf(pieces[i], "%u@%x:%63s", &time, &address, code), 3);
		p.time = time;
		p.address = address;
		p.offset = size;
		p.size = strlen(code);
		if (sscanf(code, "?%u", &unknown) == 1) {
			p.offset = 0;
			p.size = unknown;
		} else {
			memcpy(file + size, code, p.size);
			size += p.size;
		}
		memcpy(file + sizeof(header) + i * sizeof(p), &p, sizeof(p));
	}
	tempdir_put(dir, name, file, size);
}

/* What is at 0x1000..0x1007 at a generation: bytes, '?' where they are not known, '.' where nothing
 * is; and the first letters of the objects' names. */
static void look(const struct space *space, uint64_t time, char ret_bytes[9], char ret_names[9])
{
	struct layout layout;

	layout_init(&layout, space);
	while (layout.generation < space_generation(space, time))
		assert_int_equal(layout_advance(&layout), 0);
	for (size_t i = 0; i < 8; i++) {
		const uint64_t address = 0x1000 + i;
		const struct extent *e = layout_find(&layout, address);

		ret_bytes[i] = ret_names[i] = '.';
		if (!e)
			continue;
		ret_names[i] =
		    e->object->id.name[0] == '[' ? e->object->id.name[1] : e->object->id.name[0];
		ret_bytes[i] =
		    e->object->state == OBJECT_OK
			? (char)*object_bytes(e->object, e->offset + (address - e->start), 1)
			: '?';
	}
	ret_bytes[8] = ret_names[8] = '\0';
	layout_deinit(&layout);
}

/*
 * Mappings as text: kind (F file, M memory, J JIT, E early), time, and the bytes there from 0x1000
 * on, of which '-' are not mapped; memory has none.
 */
static const struct row {
	const char *name;
	const char *maps[4];
	const char *pieces[PIECES_MAX];
	uint64_t time;
	const char *bytes, *names;
} rows[] = {
	{ "memory has the first bytes since it was mapped",
	  { "M10 mmmmmmmm" },
	  { "0@1000:abcd" },
	  10,
	  "abcd????",
	  "aaaaaaaa" },
	{ "and before that nothing",
	  { "M10 mmmmmmmm" },
	  { "0@1000:abcd" },
	  9,
	  "........",
	  "........" },
	{ "changes from their time on",
	  { "M10 mmmmmmmm" },
	  { "0@1000:abcd", "20@1002:CDEF" },
	  20,
	  "abCDEF??",
	  "aaaaaaaa" },
	{ "not before",
	  { "M10 mmmmmmmm" },
	  { "0@1000:abcd", "20@1002:CDEF" },
	  19,
	  "abcd????",
	  "aaaaaaaa" },
	{ "and back",
	  { "M10 mmmmmmmm" },
	  { "0@1000:abcd", "20@1002:CD", "30@1002:cd" },
	  30,
	  "abcd????",
	  "aaaaaaaa" },
	{ "what was refused is not known",
	  { "M10 mmmmmmmm" },
	  { "0@1000:abcdefgh", "20@1002:?2" },
	  20,
	  "ab??efgh",
	  "aaaaaaaa" },
	{ "memory that is mapped again has it still",
	  { "M10 mmmmmmmm", "M30 mmmmmmmm" },
	  { "0@1000:abcd", "20@1001:B" },
	  30,
	  "aBcd????",
	  "aaaaaaaa" },
	{ "first bytes say nothing of a file",
	  { "F10 filefile" },
	  { "0@1000:abcd" },
	  10,
	  "filefile",
	  "FFFFFFFF" },
	{ "changes do",
	  { "F10 filefile" },
	  { "0@1000:abcd", "20@1001:IL" },
	  20,
	  "fILefile",
	  "FaaFFFFF" },
	{ "if they are none, the file's name stays",
	  { "F10 filefile" },
	  { "20@1001:IL", "30@1000:file" },
	  30,
	  "filefile",
	  "FFFFFFFF" },
	{ "a file that is mapped again keeps its changes",
	  { "F10 filefile", "F30 filefile" },
	  { "20@1001:IL" },
	  30,
	  "fILefile",
	  "FaaFFFFF" },
	{ "memory after a file",
	  { "F10 filefile", "M20 mmmmmmmm" },
	  { "0@1000:abcd" },
	  20,
	  "abcd????",
	  "aaaaaaaa" },
	{ "a file after memory",
	  { "M10 mmmmmmmm", "F20 filefile" },
	  { "0@1000:abcd" },
	  20,
	  "filefile",
	  "FFFFFFFF" },
	{ "what a JIT noted as it ran has its name",
	  { "M10 mmmmmmmm", "J20 --cdef--" },
	  { "0@1000:abcdefgh" },
	  20,
	  "abcdefgh",
	  "aaJJJJaa" },
	{ "what it noted otherwise is as it ran, and has the name, too",
	  { "M10 mmmmmmmm", "J20 --cdxf--" },
	  { "0@1000:abcdefgh" },
	  20,
	  "abcdefgh",
	  "aajjjjaa" },
	{ "what it noted and nobody ran stays",
	  { "M10 mmmmmmmm", "J20 --cdxf--" },
	  { "0@1000:ab" },
	  20,
	  "abcdxf??",
	  "aaJJJJaa" },
	{ "noted before it ran",
	  { "M10 mmmmmmmm", "J20 cdef----" },
	  { "0@1000:abcd", "30@1000:cdef" },
	  30,
	  "cdef????",
	  "JJJJaaaa" },
	{ "until then the other code is there",
	  { "M10 mmmmmmmm", "J20 cdef----" },
	  { "0@1000:abcd", "30@1000:cdef" },
	  20,
	  "abcd????",
	  "jjjjaaaa" },
	{ "noted when it had run: early",
	  { "M10 mmmmmmmm", "E10 --cd----", "J20 --cd----" },
	  { "0@1000:abcd" },
	  10,
	  "abcd????",
	  "aaEEaaaa" },
	{ "nothing is mapped, but it ran",
	  { "M10 --------" },
	  { "20@1000:ab" },
	  20,
	  "ab......",
	  "aa......" },
	{ "changes before the first mapping count from that on",
	  { "M10 mmmmmmmm" },
	  { "0@1000:abcd", "5@1000:AB" },
	  10,
	  "ABcd????",
	  "aaaaaaaa" },
};

static struct symbol_list jit_names;

static void map(struct space *space, struct objects *objects, const char *dir, const char *text)
{
	static unsigned n_files;
	static const char kinds[] = "FMJE";
	const char kind = text[0];
	const struct object *none;
	struct object *object;
	struct mapping m = { .kind = (enum mapping_kind)(strchr(kinds, kind) - kinds) };
	char name[TEMPDIR_SIZE], path[2 * TEMPDIR_SIZE], code[9];
	unsigned time;

	assert_int_equal(sscanf(text + 1, "%u %8s", &time, code), 2);
	m.time = time;
	m.start = 0x1000 + strspn(code, "-");
	m.size = strcspn(code + strspn(code, "-"), "-");
	if (m.size == 0) {
		strcpy(code, "mmmmmmmm");
		m.start = 0x8000;
		m.size = 8;
	}
	(void)snprintf(name, sizeof(name), "file-%u", kind == 'F' ? 0 : ++n_files);
	tempdir_put(dir, name, code + strspn(code, "-"), m.size);
	(void)snprintf(path, sizeof(path), "%s/%s", dir, name);
	assert_int_equal(objects_find(objects, "//anon", NULL, &none), 0);
	m.object = none;
	if (kind != 'M') {
		assert_int_equal(objects_add_memory(objects, path, (char[]){ kind, 0 }, &object),
				 0);
		m.object = object;
		if (kind != 'F')
			object->symbols = &jit_names.source;
	}
	assert_int_equal(space_map(space, &m), 0);
}

static void load_logs(struct codelogs *logs, struct objects *objects, struct perfmaps *perfmaps)
{
	struct memfiles files;

	assert_int_equal(memfiles_init(&files, objects), 0);
	assert_int_equal(codelogs_init(logs, &files, perfmaps), 0);
	memfiles_deinit(&files);
}

static void is_as_it_ran(void **state)
{
	char dir[TEMPDIR_SIZE], bytes[9], names[9];

	(void)state;
	symbol_list_init(&jit_names);
	assert_int_equal(symbol_list_add(&jit_names, 0, 8, "name", 4, NULL), 0);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		_cleanup_(objects_freep) struct objects *objects = NULL;
		_cleanup_(space_freep) struct space *space = NULL;
		const struct codelog *log;
		struct perfmaps perfmaps;
		struct codelogs logs;
		struct replay replay;

		print_message("  %s\n", rows[i].name);
		tempdir_make("test-replay", dir);
		put_log(dir, "mem/7-100.code", rows[i].pieces);
		assert_int_equal(objects_new(dir, &objects), 0);
		perfmaps_init(&perfmaps, dir);
		load_logs(&logs, objects, &perfmaps);
		assert_int_equal(replay_init(&replay, objects), 0);
		assert_int_equal(space_new(0, NULL, 0, &space), 0);
		for (size_t k = 0; k < ARRAY_LEN(rows[i].maps) && rows[i].maps[k]; k++)
			map(space, objects, dir, rows[i].maps[k]);
		log = codelogs_find(&logs, 7, UINT64_MAX);
		assert_non_null(log);
		assert_int_equal(replay_log(&replay, space, log), 0);
		assert_true(space_is_exact(space));
		look(space, rows[i].time, bytes, names);
		assert_string_equal(bytes, rows[i].bytes);
		assert_string_equal(names, rows[i].names);
		replay_deinit(&replay);
		codelogs_deinit(&logs);
		perfmaps_deinit(&perfmaps);
		tempdir_remove(dir);
	}
	symbol_list_deinit(&jit_names);
}

/* Return: how many mappings there are when a log with these pieces was replayed over memory. */
static size_t count_mappings(const char *const *pieces)
{
	_cleanup_(objects_freep) struct objects *objects = NULL;
	_cleanup_(space_freep) struct space *space = NULL;
	char dir[TEMPDIR_SIZE], bytes[9], names[9];
	struct perfmaps perfmaps;
	struct codelogs logs;
	struct replay replay;
	size_t n;

	tempdir_make("test-replay", dir);
	put_log(dir, "mem/7-100.code", pieces);
	assert_int_equal(objects_new(dir, &objects), 0);
	perfmaps_init(&perfmaps, dir);
	load_logs(&logs, objects, &perfmaps);
	assert_int_equal(replay_init(&replay, objects), 0);
	assert_int_equal(space_new(0, NULL, 0, &space), 0);
	map(space, objects, dir, "M10 mmmmmmmm");
	assert_int_equal(replay_log(&replay, space, codelogs_find(&logs, 7, UINT64_MAX)), 0);
	look(space, 10, bytes, names);
	assert_string_equal(bytes, "abcdefgh");
	n = space_generation(space, UINT64_MAX);
	replay_deinit(&replay);
	codelogs_deinit(&logs);
	perfmaps_deinit(&perfmaps);
	tempdir_remove(dir);
	return n;
}

/* Code that was handed over piece by piece is not more mappings than what came at once. */
static void neighbours_are_one_mapping(void **state)
{
	const size_t n = count_mappings((const char *[PIECES_MAX]){ "0@1000:abcdefgh" });

	(void)state;
	assert_int_equal(count_mappings((const char *[PIECES_MAX]){ "0@1000:abcd", "0@1004:efgh" }),
			 n);
	assert_int_equal(count_mappings((const char *[PIECES_MAX]){ "0@1000:ab", "0@1002:cd",
								    "0@1004:ef", "0@1006:gh" }),
			 n);
}

/* Without an end of the work that is allowed, foreign snapshots would take hours: no code is known
 * then. */
static void work_ends(void **state)
{
	_cleanup_(objects_freep) struct objects *objects = NULL;
	_cleanup_(space_freep) struct space *space = NULL;
	char dir[TEMPDIR_SIZE], bytes[9], names[9];
	struct perfmaps perfmaps;
	struct codelogs logs;
	struct replay replay;

	(void)state;
	tempdir_make("test-replay", dir);
	put_log(dir, "mem/7-100.code",
		(const char *[PIECES_MAX]){ "0@1000:abcd", "20@1000:AB", "30@1000:ab" });
	assert_int_equal(objects_new(dir, &objects), 0);
	perfmaps_init(&perfmaps, dir);
	load_logs(&logs, objects, &perfmaps);
	assert_int_equal(replay_init(&replay, objects), 0);
	assert_int_equal(space_new(0, NULL, 0, &space), 0);
	map(space, objects, dir, "F10 filefile");
	replay.work = 4;
	assert_int_equal(replay_log(&replay, space, codelogs_find(&logs, 7, UINT64_MAX)), 0);
	look(space, 30, bytes, names);
	assert_string_equal(bytes, "????????");
	replay_deinit(&replay);
	codelogs_deinit(&logs);
	perfmaps_deinit(&perfmaps);
	tempdir_remove(dir);
}

/* The names of a perf map at 0x1000..0x1007, by their first letters; '.' where there is none. */
static void look_at_names(const struct space *space, uint64_t time, char ret_names[9])
{
	struct layout layout;

	layout_init(&layout, space);
	while (layout.generation < space_generation(space, time))
		assert_int_equal(layout_advance(&layout), 0);
	for (size_t i = 0; i < 8; i++) {
		const struct extent *e = layout_find(&layout, 0x1000 + i);
		const struct symtab_symbol *name = NULL;
		uint64_t end;

		if (e && e->object->symbols)
			assert_int_equal(
			    symbol_source_find(
				e->object->symbols,
				object_address(e->object, e->offset + (0x1000 + i - e->start)),
				&name, &end),
			    0);
		ret_names[i] = name ? name->name[0] : '.';
	}
	ret_names[8] = '\0';
	layout_deinit(&layout);
}

/* The code that is there at last has the name of the last line; what was there before has a name
 * only if there is no other. */
static void perf_map(void **state)
{
	static const struct {
		const char *map;
		const char *pieces[PIECES_MAX];
		const char *at[3]; /* at 10, 20 and 30 */
	} cases[] = {
		{ "1000 8 f\n", { "0@1000:abcdefgh" }, { "ffffffff", "ffffffff", "ffffffff" } },
		{ "1000 8 f\n",
		  { "0@1000:abcdefgh", "20@1002:C" },
		  { "ffffffff", "ffffffff", "ffffffff" } },
		{ "1000 4 f\n1000 4 g\n",
		  { "10@1000:abcd", "20@1000:ABCD" },
		  { "........", "gggg....", "gggg...." } },
		{ "1000 4 f\n1000 4 g\n1004 4 h\n",
		  { "10@1000:abcd", "10@1004:efgh", "20@1000:ABCD", "30@1004:E" },
		  { "....hhhh", "gggghhhh", "gggghhhh" } },
		{ "1000 4 f\n1002 4 g\n",
		  { "10@1000:abcd", "30@1002:CDEF" },
		  { "ff......", "ff......", "ffgggg.." } },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		_cleanup_(objects_freep) struct objects *objects = NULL;
		_cleanup_(space_freep) struct space *space = NULL;
		char dir[TEMPDIR_SIZE], names[9];
		struct perfmaps perfmaps;
		struct codelogs logs;
		struct replay replay;

		tempdir_make("test-replay", dir);
		put_log(dir, "mem/7-100.code", cases[i].pieces);
		tempdir_put_text(dir, "jit/perf-7.map", cases[i].map);
		assert_int_equal(objects_new(dir, &objects), 0);
		perfmaps_init(&perfmaps, dir);
		load_logs(&logs, objects, &perfmaps);
		assert_int_equal(replay_init(&replay, objects), 0);
		assert_int_equal(space_new(0, NULL, 0, &space), 0);
		map(space, objects, dir, "M10 mmmmmmmm");
		assert_int_equal(replay_log(&replay, space, codelogs_find(&logs, 7, UINT64_MAX)),
				 0);
		for (unsigned k = 0; k < 3; k++) {
			look_at_names(space, 10 * (k + 1), names);
			if (strcmp(names, cases[i].at[k]) != 0)
				fail_msg("%zu at %u: %s", i, 10 * (k + 1), names);
		}
		replay_deinit(&replay);
		codelogs_deinit(&logs);
		perfmaps_deinit(&perfmaps);
		tempdir_remove(dir);
	}
}

/* A space has the last program that began before the next space of its process did. */
static void logs_are_found_by_time(void **state)
{
	_cleanup_(objects_freep) struct objects *objects = NULL;
	static const char *const files[] = { "mem/7-100.code", "mem/7-200.code", "mem/9-50.code" };
	static const char *const others[] = { "mem/7-1000", "mem/7-300.codes", "mem/x-300.code",
					      "mem/7-0x300.code" };
	const char *const pieces[PIECES_MAX] = { "0@1000:abcd" };
	char dir[TEMPDIR_SIZE];
	struct perfmaps perfmaps;
	struct codelogs logs;

	(void)state;
	tempdir_make("test-replay", dir);
	for (size_t i = 0; i < ARRAY_LEN(files); i++)
		put_log(dir, files[i], pieces);
	for (size_t i = 0; i < ARRAY_LEN(others); i++)
		put_log(dir, others[i], pieces);
	tempdir_put_text(dir, "mem/7-250.code", "nonsense");
	assert_int_equal(objects_new(dir, &objects), 0);
	perfmaps_init(&perfmaps, dir);
	load_logs(&logs, objects, &perfmaps);
	assert_int_equal(logs.logs.n, 3);
	assert_null(codelogs_find(&logs, 7, 100));
	assert_int_equal(codelogs_find(&logs, 7, 101)->start, 100);
	assert_int_equal(codelogs_find(&logs, 7, 200)->start, 100);
	assert_int_equal(codelogs_find(&logs, 7, UINT64_MAX)->start, 200);
	assert_int_equal(codelogs_find(&logs, 9, UINT64_MAX)->start, 50);
	assert_null(codelogs_find(&logs, 8, UINT64_MAX));
	codelogs_deinit(&logs);
	perfmaps_deinit(&perfmaps);
	tempdir_remove(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(is_as_it_ran),
		cmocka_unit_test(neighbours_are_one_mapping),
		cmocka_unit_test(work_ends),
		cmocka_unit_test(perf_map),
		cmocka_unit_test(logs_are_found_by_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
