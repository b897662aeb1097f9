/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* BPF programs of a perf.data: a good section; then the same, spoiled one field at a time, and cut
 * off. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decoder/trace/bpfprog.h"
#include "tests/lib/perfbpf.h"

#define ADDRESS UINT64_C(0xffffffffc0001000)

static struct perfbpf section;
static size_t first, second; /* programs of it */

static void build(void)
{
	perfbpf_begin(&section);
	first = perfbpf_add(&section, 5, 0x1111,
			    (const struct perfbpf_function[]){ { ADDRESS, "abcde", 5 },
							       { ADDRESS + 64, "fgh", 3 } },
			    2);
	second = perfbpf_add(&section, 6, 0x2222,
			     &(const struct perfbpf_function){ ADDRESS + 128, "ijkl", 4 }, 1);
}

/* Its programs as text: "ID:TAG ADDRESS=CODE …;", and what ends them; in an allocation of @size,
 * which ASan sees. */
static void read_all(size_t size, char ret_text[static 256])
{
	uint8_t *copy = malloc(size ?: 1);
	struct cursor c = cursor_from(copy, size);
	struct bpfprog program = { .id = 99 };
	struct bpfprog_function f;
	uint32_t n = 0;
	int r;

	memcpy(copy, section.bytes, size);
	*ret_text = 0;
	r = cursor_get(&c, sizeof(n), &n);
	for (; r == 0 && n > 0; n--) {
		r = bpfprog_next(&c, &program);
		if (r < 0)
			break;
		(void)sprintf(strchr(ret_text, 0), "%u:%x", program.id, (unsigned)program.tag);
		while (bpfprog_next_function(&program, &f) == 0)
			(void)sprintf(strchr(ret_text, 0), " %d=%.*s", (int)(f.address - ADDRESS),
				      (int)f.size, (const char *)f.code);
		strcat(ret_text, ";");
	}
	assert_true(r == 0 || r == -EBADMSG);
	strcat(ret_text, r == 0 ? "" : "bad");
	free(copy);
}

#define GOOD       "5:1111 0=abcde 64=fgh;6:2222 128=ijkl;"
#define NO_FIRST   "5:1111;6:2222 128=ijkl;"
#define P(field)   offsetof(struct perfbpf_program, field)
#define INFO(size) offsetof(struct bpf_prog_info, size)

static void spoiled(void **state)
{
	static const struct {
		const char *name;
		size_t offset; /* in the first program */
		size_t size;
		uint64_t value;
		const char *expected;
	} rows[] = {
		{ "nothing", 0, 0, 0, GOOD },
		{ "id", P(info.id), 4, 7, "7:1111 0=abcde 64=fgh;6:2222 128=ijkl;" },
		{ "tag", P(info.tag), 8, 0x3333, "5:3333 0=abcde 64=fgh;6:2222 128=ijkl;" },
		{ "a size of the info beyond the section", P(info_size), 4, UINT32_MAX, "bad" },
		{ "a size of the data beyond the section", P(data_size), 4, UINT32_MAX, "bad" },
		{ "no bit for the code", P(arrays), 1, 0x18, NO_FIRST },
		{ "no bit for the addresses", P(arrays), 1, 0x11, NO_FIRST },
		{ "no bit for the sizes", P(arrays), 1, 0x09, NO_FIRST },
		{ "bits of arrays that are not read", P(arrays), 2, 0x1ff, GOOD },
		{ "code: an address, not an offset", P(info.jited_prog_insns), 8, ADDRESS,
		  NO_FIRST },
		{ "code: not in the data", P(info.jited_prog_insns), 8, 33, NO_FIRST },
		{ "code: its end not in the data", P(info.jited_prog_insns), 8, 25, NO_FIRST },
		{ "code: too long", P(info.jited_prog_len), 4, UINT32_MAX, NO_FIRST },
		{ "code: shorter than the sizes", P(info.jited_prog_len), 4, 7, NO_FIRST },
		{ "code: none", P(info.jited_prog_len), 4, 0, NO_FIRST },
		{ "addresses: not in the data", P(info.jited_ksyms), 8, UINT64_MAX, NO_FIRST },
		{ "addresses: their end not in the data", P(info.jited_ksyms), 8, 17, NO_FIRST },
		{ "addresses: too many", P(info.nr_jited_ksyms), 4, 3, NO_FIRST },
		{ "addresses: none", P(info.nr_jited_ksyms), 4, 0, NO_FIRST },
		{ "sizes: not in the data", P(info.jited_func_lens), 8, UINT64_MAX, NO_FIRST },
		{ "sizes: their end not in the data", P(info.jited_func_lens), 8, 25, NO_FIRST },
		{ "sizes: too few", P(info.nr_jited_func_lens), 4, 1, NO_FIRST },
		{ "sizes: one too large", sizeof(struct perfbpf_program) + 16, 4, 6, NO_FIRST },
		{ "sizes: one that wraps", sizeof(struct perfbpf_program) + 16, 4, UINT32_MAX,
		  NO_FIRST },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char text[256];

		build();
		memcpy(section.bytes + first + rows[i].offset, &rows[i].value, rows[i].size);
		read_all(section.size, text);
		if (strcmp(text, rows[i].expected) != 0)
			fail_msg("%s: %s, not %s", rows[i].name, text, rows[i].expected);
	}
}

static void counts(void **state)
{
	static const struct {
		uint32_t n;
		const char *expected;
	} rows[] = {
		{ 0, "" },
		{ 1, "5:1111 0=abcde 64=fgh;" },
		{ 3, GOOD "bad" },
		{ UINT32_MAX, GOOD "bad" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char text[256];

		build();
		memcpy(section.bytes, &rows[i].n, sizeof(rows[i].n));
		read_all(section.size, text);
		assert_string_equal(text, rows[i].expected);
	}
}

/* At each byte: whole programs are there, and nothing of the one that is cut. */
static void cut_off(void **state)
{
	(void)state;
	build();
	for (size_t size = 0; size < section.size; size++) {
		char text[256];

		read_all(size, text);
		assert_string_equal(text, size < second ? "bad" : "5:1111 0=abcde 64=fgh;bad");
	}
}

/* The info of another version of perf: behind what there is nothing is read, and what is behind is
 * passed over. */
static void other_versions(void **state)
{
	static const struct {
		size_t size;
		const char *expected;
	} rows[] = {
		{ 0, "0:0;" },
		{ INFO(tag), "5:0;" },
		{ INFO(jited_ksyms), "5:1111;" },
		{ INFO(btf_id), "5:1111 0=abcde 64=fgh;" },
		{ sizeof(struct bpf_prog_info), "5:1111 0=abcde 64=fgh;" },
		{ sizeof(struct bpf_prog_info) + 40, "5:1111 0=abcde 64=fgh;" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const uint32_t size = (uint32_t)rows[i].size, n = 1;
		uint8_t *p = section.bytes + sizeof(n);
		uint8_t data[32];
		char text[256];

		build();
		memcpy(data, p + sizeof(struct perfbpf_program), sizeof(data));
		memset(p + sizeof(struct perfbpf_program), 0xff, 64);
		memcpy(p + P(info_size), &size, sizeof(size));
		memcpy(p + P(info) + size, data, sizeof(data));
		memcpy(section.bytes, &n, sizeof(n));
		read_all(sizeof(n) + P(info) + size + sizeof(data), text);
		assert_string_equal(text, rows[i].expected);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(spoiled),
		cmocka_unit_test(counts),
		cmocka_unit_test(cut_off),
		cmocka_unit_test(other_versions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
