/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Resolver: what it says of real files, against what nm and objdump of binutils say of them.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "decoder/image/objects.h"
#include "decoder/symbol/resolver.h"
#include "tests/lib/failing.h"
#include "util/vec.h"

#define LIBDIR "/usr/lib/x86_64-linux-gnu/"

/* A line of nm: a name of what lies at an address. */
struct known {
	uint64_t address, size;
	char type;
	char *name;
};

struct knowns {
	VEC(struct known) all; /* by address */
};

struct fixture {
	struct objects *objects;
	struct resolver *resolver;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	assert_int_equal(objects_new(NULL, &f->objects), 0);
	assert_int_equal(resolver_new(&f->resolver), 0);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	assert_null(resolver_free(f->resolver));
	assert_null(objects_free(f->objects));
	free(f);
	return 0;
}

static void deinit_knowns(struct knowns *knowns)
{
	for (size_t i = 0; i < knowns->all.n; i++)
		free(knowns->all.items[i].name);
	vec_deinit(&knowns->all);
}

/* Does the shell find the tool? */
static bool have(const char *tool)
{
	char command[64];

	(void)snprintf(command, sizeof(command), "command -v %s >/dev/null", tool);
	if (system(command) == 0)
		return true;
	print_message("%s is missing: install binutils\n", tool);
	return false;
}

static const struct object *open_object(const struct fixture *f, const char *path)
{
	const struct object *object = NULL;

	if (access(path, R_OK) < 0) {
		print_message("%s is missing\n", path);
		return NULL;
	}
	assert_int_equal(objects_find(f->objects, path, NULL, &object), 0);
	assert_int_equal(object->state, OBJECT_OK);
	return object;
}

static const char *resolve(const struct fixture *f, const struct object *object, uint64_t address,
			   uint64_t *ret_address, uint64_t *ret_end)
{
	const struct ptd_symbol *const *symbols;
	uint32_t id = UINT32_MAX, again = UINT32_MAX;
	uint64_t end;
	size_t n;

	assert_int_equal(resolver_find(f->resolver, object->symbols, address, &id, ret_end), 0);
	assert_int_equal(resolver_find(f->resolver, object->symbols, address, &again, &end), 0);
	assert_int_equal(again, id);
	assert_true(end == *ret_end && end > address);
	symbols = resolver_symbols(f->resolver, &n);
	assert_in_range(id, 0, n - 1);
	*ret_address = symbols[id]->address;
	return symbols[id]->name;
}

/* A line of nm -S: address, size (if it has one), type, name. */
static bool parse_line(char *line, struct known *ret_known)
{
	struct known k = {};
	int at = 0;

	line[strcspn(line, "\n")] = '\0';
	if (strspn(line, "0123456789abcdef") != 16)
		return false;
	if (strspn(line + 17, "0123456789abcdef") == 16)
		(void)sscanf(line, "%" SCNx64 " %" SCNx64 " %c %n", &k.address, &k.size, &k.type,
			     &at);
	else
		(void)sscanf(line, "%" SCNx64 " %c %n", &k.address, &k.type, &at);
	/* To nm a thread's own variable can be weak like a function: at a small offset. */
	if (at == 0 || !strchr("tTwWi", k.type) || k.address < 0x1000)
		return false;
	k.name = strdup(line + at);
	*ret_known = k;
	return true;
}

/* The functions nm lists, demangled and without versions. */
static void run_nm(const char *options, const char *path, struct knowns *ret_knowns)
{
	char command[256], line[8192];
	struct known known;
	FILE *f;

	(void)snprintf(command, sizeof(command), "nm -nSC %s %s | sed 's/@.*//'", options, path);
	f = popen(command, "re");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		if (parse_line(line, &known))
			assert_int_equal(vec_push(&ret_knowns->all, known), 0);
	assert_int_equal(pclose(f), 0);
}

/* Is @name one of those that nm has at the address of number @i? */
static bool is_known(const struct knowns *knowns, size_t i, const char *name)
{
	const struct known *all = knowns->all.items;
	const uint64_t address = all[i].address;

	while (i > 0 && all[i - 1].address == address)
		i--;
	for (; i < knowns->all.n && all[i].address == address; i++)
		if (strcmp(all[i].name, name) == 0)
			return true;
	return false;
}

/* Does a symbol begin inside number @i? Then the innermost counts, and nm does not say which. */
static bool is_nested(const struct knowns *knowns, size_t i, uint64_t address)
{
	const struct known *all = knowns->all.items;

	for (size_t k = i + 1; k < knowns->all.n && all[k].address <= address; k++)
		if (all[k].address > all[i].address)
			return true;
	for (size_t k = i; k > 0 && i - k < 64; k--)
		if (all[k - 1].address == all[i].address && all[k - 1].size != 0 &&
		    all[k - 1].size != all[i].size)
			return true;
	return false;
}

static void agree(const struct fixture *f, const char *path, const char *options, size_t at_least)
{
	_cleanup_(deinit_knowns) struct knowns knowns = {};
	const struct object *object = open_object(f, path);
	size_t n_compared = 0;

	if (!object)
		skip();
	run_nm(options, path, &knowns);
	assert_true(knowns.all.n >= at_least);

	srand(1);
	for (size_t n = 0; n < 10000 && n_compared < 1000; n++) {
		const size_t i = (size_t)rand() % knowns.all.n;
		const struct known *k = &knowns.all.items[i];
		const uint64_t address = k->address + (k->size ? (uint64_t)rand() % k->size : 0);
		uint64_t start, end;
		const char *name = resolve(f, object, address, &start, &end);

		/* What has no size may be data, and nobody knows where it ends. */
		if (k->size == 0 || is_nested(&knowns, i, address))
			continue;
		if (!is_known(&knowns, i, name) || start != k->address)
			fail_msg("%s: 0x%" PRIx64 " is %s, nm has %s", path, address, name,
				 k->name);
		n_compared++;
	}
	print_message("  %zu addresses in %s\n", n_compared, path);
	assert_int_equal(n_compared, 1000);
}

static void libc(void **state)
{
	if (!have("nm"))
		skip();
	agree(*state, LIBDIR "libc.so.6", "-D", 2000);
}

static void python(void **state)
{
	if (!have("nm"))
		skip();
	agree(*state, "/usr/bin/python3.11", "-D", 1000);
}

static void cplusplus(void **state)
{
	if (!have("nm"))
		skip();
	agree(*state, LIBDIR "libstdc++.so.6", "-D", 2000);
}

/* Of a program that Debian stripped, functions have names after their places. */
static void without_symbols(void **state)
{
	static const char path[] = "/bin/ls";
	const struct object *object = open_object(*state, path);
	_cleanup_(deinit_knowns) struct knowns knowns = {};
	uint64_t from, to, start, end;
	size_t n = 0, n_parts = 0;
	FILE *lines;

	if (!object || !have("readelf"))
		skip();
	run_nm("-D", path, &knowns);
	lines = popen("readelf --debug-dump=frames /bin/ls 2>/dev/null | "
		      "sed -nE 's/.* FDE .*pc=([0-9a-f]+)\\.\\.([0-9a-f]+)$/\\1 \\2/p'",
		      "re");
	assert_non_null(lines);
	while (fscanf(lines, "%" SCNx64 " %" SCNx64, &from, &to) == 2) {
		const char *name = resolve(*state, object, from, &start, &end);
		bool is_known = false, is_part;
		char expected[32];

		for (size_t i = 0; i < knowns.all.n; i++)
			is_known = is_known || knowns.all.items[i].address == from;
		/* One entry covers all stubs of a PLT, and each stub has its name. */
		if (is_known || strstr(name, "@plt"))
			continue;
		is_part = strstr(name, ".cold");
		n_parts += is_part;
		(void)snprintf(expected, sizeof(expected), "ls+0x%" PRIx64 "%s", from,
			       is_part ? ".cold" : "");
		assert_string_equal(name, expected);
		assert_true(start == from && end <= to);
		n++;
	}
	assert_int_equal(pclose(lines), 0);
	print_message("  %zu functions, %zu of them parts of others\n", n, n_parts);
	assert_true(n > 100);
	assert_in_range(n_parts, 1, n / 4);
}

/* The test program has a .symtab, so its static functions have names. */
static void local_symbols(void **state)
{
	char self[256] = "";

	if (!have("nm"))
		skip();
	assert_true(readlink("/proc/self/exe", self, sizeof(self) - 1) > 0);
	agree(*state, self, "", 50);
}

/* Whoever holds a symbol may keep it while others are met: ptd/record.h says so. */
static void symbols_stay(void **state)
{
	const struct fixture *f = *state;
	const struct object *object = open_object(f, LIBDIR "libc.so.6");
	const struct ptd_symbol *held[64];
	struct ptd_symbol was[64];
	size_t n = 0, n_held = 0;

	if (!object)
		skip();
	for (uint64_t address = 0, end; address < object->size && n < 2000; address = end) {
		const struct ptd_symbol *const *symbols;
		uint32_t id;

		assert_int_equal(resolver_find(f->resolver, object->symbols, address, &id, &end),
				 0);
		symbols = resolver_symbols(f->resolver, &n);
		for (; n_held < n && n_held < ARRAY_LEN(held); n_held++) {
			held[n_held] = symbols[n_held];
			was[n_held] = *symbols[n_held];
		}
	}
	assert_true(n > 500);
	for (size_t i = 0; i < n_held; i++) {
		assert_ptr_equal(resolver_symbols(f->resolver, &n)[i], held[i]);
		assert_memory_equal(held[i], &was[i], sizeof(was[0]));
	}
}

/* libc calls its own memcpy through stubs that objdump can only call *ABS*+0x…@plt. */
static void plt_of_ifuncs(void **state)
{
	static const char path[] = LIBDIR "libc.so.6";
	const struct fixture *f = *state;
	const struct object *object = open_object(f, path);
	uint64_t address, chosen, start, end;
	size_t n = 0;
	FILE *lines;

	if (!object || !have("objdump"))
		skip();
	lines =
	    popen("objdump -d -j .plt -j .plt.sec -j .plt.got " LIBDIR "libc.so.6 2>/dev/null | "
		  "sed -nE 's/^([0-9a-f]+) <\\*ABS\\*\\+0x([0-9a-f]+)@plt>:$/\\1 \\2/p'",
		  "re");
	assert_non_null(lines);
	while (fscanf(lines, "%" SCNx64 " %" SCNx64, &address, &chosen) == 2) {
		char expected[256];

		(void)snprintf(expected, sizeof(expected), "%s@plt",
			       resolve(f, object, chosen, &start, &end));
		if (start != chosen) /* it has no name of its own */
			continue;
		assert_string_equal(resolve(f, object, address, &start, &end), expected);
		assert_true(start == address);
		n++;
	}
	assert_int_equal(pclose(lines), 0);
	print_message("  %zu stubs\n", n);
	assert_true(n > 10);
}

static void plt(void **state)
{
	static const char *const paths[] = { "/usr/bin/python3.11", LIBDIR "libc.so.6", "/bin/ls",
					     LIBDIR "libstdc++.so.6" };
	const struct fixture *f = *state;
	size_t n = 0;

	if (!have("objdump"))
		skip();
	for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
		const struct object *object = open_object(f, paths[i]);
		char command[256], line[8192], expected[8192];
		uint64_t address, start, end;
		FILE *lines;

		if (!object)
			continue;
		(void)snprintf(command, sizeof(command),
			       "objdump -dC -j .plt -j .plt.sec -j .plt.got %s 2>/dev/null | "
			       "sed -nE 's/@[A-Z][^@]*@plt>/@plt>/; /\\*ABS\\*/d; "
			       "s/^([0-9a-f]+) <(.*@plt)>:$/\\1 \\2/p'",
			       paths[i]);
		lines = popen(command, "re");
		assert_non_null(lines);
		while (fgets(line, sizeof(line), lines)) {
			assert_int_equal(sscanf(line, "%" SCNx64 " %[^\n]", &address, expected), 2);
			assert_string_equal(resolve(f, object, address, &start, &end), expected);
			assert_true(start == address);
			n++;
		}
		assert_int_equal(pclose(lines), 0);
	}
	print_message("  %zu stubs\n", n);
	assert_true(n > 100);
}

/* Give the stub at @bytes the form that mold writes. Return: whether it is one of GNU ld's. */
static bool make_mold_stub(uint8_t *bytes)
{
	static const uint8_t head[] = { 0xf3, 0x0f, 0x1e, 0xfa, 0x41, 0xbb };
	uint8_t number[4];
	int32_t slot;

	if (bytes[0] != 0xff || bytes[1] != 0x25 || bytes[6] != 0x68)
		return false;
	memcpy(&slot, bytes + 2, sizeof(slot));
	slot -= 10; /* the jump ends at 16, not at 6 */
	memcpy(number, bytes + 7, sizeof(number));
	memcpy(bytes, head, sizeof(head));
	memcpy(bytes + 6, number, sizeof(number));
	memcpy(bytes + 10, "\xff\x25", 2);
	memcpy(bytes + 12, &slot, sizeof(slot));
	return true;
}

/* objdump does not name these: what it names is rewritten, and keeps its names. */
static void plt_of_mold(void **state)
{
	static const char path[] = "/bin/ls";
	const struct fixture *f = *state;
	const struct object *object = open_object(f, path), *mold = NULL;
	char copy[] = "/tmp/test-resolver-XXXXXX", expected[256];
	_cleanup_(freep) uint8_t *bytes = NULL;
	uint64_t address, start, end;
	size_t n = 0;
	FILE *lines;
	int fd;

	if (!object || !have("objdump"))
		skip();
	bytes = malloc(object->size);
	fd = mkstemp(copy);
	assert_true(bytes && fd >= 0);
	memcpy(bytes, object_bytes(object, 0, object->size), object->size);
	lines =
	    popen("objdump -d -j .plt /bin/ls | sed -nE 's/^([0-9a-f]+) <.*@plt>:$/\\1/p'", "re");
	assert_non_null(lines);
	/* Its code lies at the addresses that are its offsets. */
	while (fscanf(lines, "%" SCNx64, &address) == 1)
		if (address <= object->size - 16)
			n += make_mold_stub(bytes + address);
	assert_int_equal(pclose(lines), 0);
	assert_true(n > 10);
	assert_int_equal(write(fd, bytes, object->size), (ssize_t)object->size);
	assert_int_equal(close(fd), 0);
	assert_int_equal(objects_find(f->objects, copy, NULL, &mold), 0);
	for (address = 0; n > 0 && address <= object->size - 16; address += 16) {
		if (memcmp(bytes + address, "\xf3\x0f\x1e\xfa\x41\xbb", 6) != 0)
			continue;
		(void)snprintf(expected, sizeof(expected), "%s",
			       resolve(f, object, address, &start, &end));
		assert_non_null(strstr(expected, "@plt"));
		assert_string_equal(resolve(f, mold, address, &start, &end), expected);
		assert_true(start == address);
		n--;
	}
	assert_int_equal(n, 0);
	assert_int_equal(unlink(copy), 0);
}

/* What has no symbols has none, everywhere. */
static void nothing_there(void **state)
{
	static const char *const paths[] = { "//anon", "/nonexistent/file", "/etc/passwd",
					     "/proc/version" };
	const struct fixture *f = *state;

	for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
		const struct object *object = NULL;
		uint64_t start, end;

		assert_int_equal(objects_find(f->objects, paths[i], NULL, &object), 0);
		assert_string_equal(resolve(f, object, 0x1000, &start, &end), "");
		assert_true(end == UINT64_MAX);
	}
}

struct resolving {
	char path[256];
	char names[64][64];
	char got[64][64];
};

static int resolve_some(void *userdata)
{
	_cleanup_(resolver_freep) struct resolver *resolver = NULL;
	_cleanup_(objects_freep) struct objects *objects = NULL;
	const struct object *object = NULL;
	const struct ptd_symbol *const *symbols;
	struct resolving *r = userdata;
	uint64_t end;
	size_t n;
	int result;

	result = objects_new(NULL, &objects);
	if (result == 0)
		result = objects_find(objects, r->path, NULL, &object);
	if (result == 0)
		result = resolver_new(&resolver);
	for (size_t i = 0; result == 0 && i < ARRAY_LEN(r->got); i++) {
		uint32_t id;

		result = resolver_find(resolver, object->symbols, 0x4000 + 0x333 * i, &id, &end);
		if (result < 0)
			return result;
		symbols = resolver_symbols(resolver, &n);
		assert_in_range(id, 0, n - 1);
		(void)snprintf(r->got[i], sizeof(r->got[i]), "%s", symbols[id]->name);
	}
	return result;
}

/*
 * A symbol table that could not be read leaves things without names, or with those after their
 * places, but gives them no others.
 */
static void has_names(void *userdata)
{
	struct resolving *r = userdata;

	for (size_t i = 0; i < ARRAY_LEN(r->got); i++)
		if (strcmp(r->got[i], r->names[i]) != 0 && r->got[i][0] &&
		    !strstr(r->got[i], "+0x"))
			fail_msg("%s failed, and %s is %s", failing_name(), r->names[i], r->got[i]);
}

static void calls_that_fail(void **state)
{
	static struct resolving r;

	(void)state;
	assert_true(readlink("/proc/self/exe", r.path, sizeof(r.path) - 1) > 0);
	assert_int_equal(resolve_some(&r), 0);
	memcpy(r.names, r.got, sizeof(r.names));
	failing_each(resolve_some, has_names, &r);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(libc, setup, teardown),
		cmocka_unit_test_setup_teardown(python, setup, teardown),
		cmocka_unit_test_setup_teardown(cplusplus, setup, teardown),
		cmocka_unit_test_setup_teardown(local_symbols, setup, teardown),
		cmocka_unit_test_setup_teardown(without_symbols, setup, teardown),
		cmocka_unit_test_setup_teardown(symbols_stay, setup, teardown),
		cmocka_unit_test_setup_teardown(plt, setup, teardown),
		cmocka_unit_test_setup_teardown(plt_of_ifuncs, setup, teardown),
		cmocka_unit_test_setup_teardown(plt_of_mold, setup, teardown),
		cmocka_unit_test_setup_teardown(nothing_there, setup, teardown),
		cmocka_unit_test(calls_that_fail),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
