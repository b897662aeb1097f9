/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Stapsdt: the probes of small programs of either class, and of one that was moved. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "decoder/symbol/stapsdt.h"
#include "decoder/util/filebytes.h"
#include "tests/lib/failing.h"
#include "util/mapfile.h"

struct program {
	struct mapfile copy;
	struct filebytes *file;
};

static void open_program(struct program *p, const char *name)
{
	char path[128];

	(void)snprintf(path, sizeof(path), "tests/fuzz/corpus/stapsdt/%s", name);
	memset(p, 0, sizeof(*p));
	assert_int_equal(mapfile_read(&p->copy, AT_FDCWD, path), 0);
}

static void close_program(struct program *p)
{
	filebytes_unref(p->file);
	mapfile_deinit(&p->copy);
}

static int read_probes(struct program *p, struct stapsdt *ret_probes)
{
	assert_int_equal(filebytes_new_in_memory(p->copy.bytes, p->copy.size, &p->file), 0);
	return stapsdt_read(p->file, ret_probes);
}

/* A nop, and one that is executed only if a semaphore is set. */
static void expect(const struct stapsdt *probes, uint64_t base)
{
	assert_int_equal(probes->n, 2);
	assert_string_equal(probes->items[0].provider, "a");
	assert_string_equal(probes->items[0].name, "one");
	assert_string_equal(probes->items[0].arguments, "");
	assert_int_equal(probes->items[0].semaphore, 0);
	assert_false(probes->items[0].is_guarded);
	assert_string_equal(probes->items[1].provider, "b");
	assert_string_equal(probes->items[1].name, "two");
	assert_string_equal(probes->items[1].arguments, "8@%rax");
	assert_true(probes->items[1].is_guarded);
	assert_in_range(probes->items[0].address, base, base + 0x1000);
	assert_in_range(probes->items[1].address, probes->items[0].address + 1, base + 0x1000);
	assert_true(probes->items[1].semaphore > probes->items[1].address);
}

static void of_64_bits(void **state)
{
	struct stapsdt probes;
	struct program p;

	(void)state;
	open_program(&p, "linked");
	assert_int_equal(read_probes(&p, &probes), 0);
	expect(&probes, 0x400000);
	stapsdt_deinit(&probes);
	close_program(&p);
}

static void of_32_bits(void **state)
{
	struct stapsdt probes;
	struct program p;

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		open_program(&p, i == 0 ? "linked-32" : "linked-32-pic");
		assert_int_equal(read_probes(&p, &probes), 0);
		expect(&probes, 0x8048000);
		stapsdt_deinit(&probes);
		close_program(&p);
	}
}

/* What moves a file, as prelink does, does not know these notes, but moves the section. */
static void moved(void **state)
{
	static const char name[] = "stapsdt";
	struct stapsdt before, probes;
	struct program p;
	uint8_t *bytes;
	uint64_t base;

	(void)state;
	open_program(&p, "linked");
	assert_int_equal(read_probes(&p, &before), 0);
	bytes = memmem(p.copy.bytes, p.copy.size, name, sizeof(name));
	assert_non_null(bytes);
	memcpy(&base, bytes + sizeof(name) + 8, sizeof(base));
	base -= 0x10000;
	memcpy(bytes + sizeof(name) + 8, &base, sizeof(base));
	p.file = filebytes_unref(p.file);
	assert_int_equal(read_probes(&p, &probes), 0);
	assert_int_equal(probes.n, 2);
	assert_string_equal(probes.items[1].name, "one");
	assert_int_equal(probes.items[1].address, before.items[0].address + 0x10000);
	assert_int_equal(probes.items[0].address, before.items[1].address);
	stapsdt_deinit(&before);
	stapsdt_deinit(&probes);
	close_program(&p);
}

/* lld states a base of 0 if it discards unused sections; another file may have brought one. */
static void without_base(void **state)
{
	static const char name[] = "stapsdt";
	struct stapsdt before, probes;
	struct program p;
	uint8_t *bytes;

	(void)state;
	open_program(&p, "linked");
	assert_int_equal(read_probes(&p, &before), 0);
	bytes = memmem(p.copy.bytes, p.copy.size, name, sizeof(name));
	assert_non_null(bytes);
	memset(bytes + sizeof(name) + 8, 0, 8);
	p.file = filebytes_unref(p.file);
	assert_int_equal(read_probes(&p, &probes), 0);
	assert_int_equal(probes.n, 2);
	assert_int_equal(probes.items[0].address, before.items[0].address);
	stapsdt_deinit(&probes);

	/* And of code that it discarded, the address 0. */
	memset(bytes + sizeof(name), 0, 8);
	p.file = filebytes_unref(p.file);
	assert_int_equal(read_probes(&p, &probes), 0);
	assert_int_equal(probes.n, 1);
	assert_string_equal(probes.items[0].name, "two");
	stapsdt_deinit(&before);
	stapsdt_deinit(&probes);
	close_program(&p);
}

static int read_again(void *userdata)
{
	struct program *p = userdata;
	struct stapsdt probes;
	const int r = stapsdt_read(p->file, &probes);

	if (r == 0)
		stapsdt_deinit(&probes);
	return r;
}

static void nothing(void *userdata)
{
}

static void calls_that_fail(void **state)
{
	struct stapsdt probes;
	struct program p;

	(void)state;
	open_program(&p, "linked");
	assert_int_equal(read_probes(&p, &probes), 0);
	stapsdt_deinit(&probes);
	failing_each(read_again, nothing, &p);
	close_program(&p);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(of_64_bits),      cmocka_unit_test(of_32_bits),
		cmocka_unit_test(moved),           cmocka_unit_test(without_base),
		cmocka_unit_test(calls_that_fail),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
