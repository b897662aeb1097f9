/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "daemon/keep.h"
#include "tests/unit/records.h"

struct fixture {
	char dir[64];
	char program[128]; /* a copy of ourselves: an ELF file with a build-id */
	struct buildid id;
	int store;
	struct keep *keep;
};

_printf_(1, 2) static void run(const char *format, ...)
{
	char command[512];
	va_list ap;

	va_start(ap, format);
	(void)vsnprintf(command, sizeof(command), format, ap);
	va_end(ap);
	assert_int_equal(system(command), 0);
}

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	char path[128];
	int fd;

	strcpy(f->dir, "/tmp/test-keep.XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	(void)snprintf(path, sizeof(path), "%s/store", f->dir);
	assert_int_equal(mkdir(path, 0750), 0);
	f->store = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	(void)snprintf(f->program, sizeof(f->program), "%s/program", f->dir);
	(void)snprintf(path, sizeof(path), "/proc/%d/exe", (int)getpid());
	run("cp %s %s", path, f->program);

	fd = open(f->program, O_RDONLY | O_CLOEXEC);
	assert_int_equal(buildid_read(fd, &f->id), 0);
	assert_int_not_equal(f->id.size, 0);
	(void)close(fd);
	assert_int_equal(keep_new(f->store, &f->keep), 0);
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	(void)keep_free(f->keep);
	(void)close(f->store);
	run("rm -rf %s", f->dir);
	free(f);
	return 0;
}

static struct object *add(struct fixture *f, const char *path, const struct buildid *id,
			  int *ret_error)
{
	const struct record_mmap2 mmap = {
		.prot = PROT_EXEC,
		.name = path,
		.build_id = id ? *id : (struct buildid){},
	};

	return keep_add(f->keep, &mmap, ret_error);
}

static bool stored(const struct fixture *f, const struct object *object)
{
	char path[OBJECT_NAME_MAX + 8];

	(void)snprintf(path, sizeof(path), "%s/elf", object->name);
	return faccessat(f->store, path, F_OK, 0) == 0;
}

static void by_build_id(void **state)
{
	struct fixture *f = *state;
	char hex[BUILDID_HEX_MAX], path[256];
	struct object *object;
	int error;

	object = add(f, f->program, &f->id, &error);
	assert_non_null(object);
	assert_int_equal(error, 0);
	assert_string_equal(object->name, buildid_hex(&f->id, hex));
	assert_true(stored(f, object));
	(void)snprintf(path, sizeof(path), "%s/store/%s/elf", f->dir, object->name);
	run("cmp %s %s", f->program, path);

	/* It outlives the original, and is found again without it. */
	assert_int_equal(unlink(f->program), 0);
	assert_ptr_equal(add(f, f->program, &f->id, &error), object);
	assert_int_equal(keep_count(f->keep), 1);
}

static void without_a_build_id(void **state)
{
	struct fixture *f = *state;
	char old[OBJECT_NAME_MAX];
	struct object *object;
	int error;

	run("objcopy --remove-section .note.gnu.build-id %s", f->program);
	object = add(f, f->program, NULL, &error);
	assert_non_null(object);
	assert_memory_equal(object->name, "sha256-", 7);
	assert_true(stored(f, object));
	assert_ptr_equal(add(f, f->program, NULL, &error), object);
	strcpy(old, object->name);

	/* Another file under the same path is another object. */
	run("objcopy --remove-section .comment %s", f->program);
	object = add(f, f->program, NULL, &error);
	assert_non_null(object);
	assert_string_not_equal(object->name, old);
	assert_int_equal(keep_count(f->keep), 2);
}

static void what_cannot_be_kept(void **state)
{
	struct fixture *f = *state;
	struct buildid other = f->id;
	char fifo[128], text[128];
	struct object *object;
	int error;

	other.bytes[0] ^= 1;
	(void)snprintf(fifo, sizeof(fifo), "%s/fifo", f->dir);
	assert_int_equal(mkfifo(fifo, 0600), 0);
	(void)snprintf(text, sizeof(text), "%s/text", f->dir);
	run("echo secret > %s", text);

	const struct {
		const char *path;
		const struct buildid *id;
		int error;
	} rows[] = {
		{ "/no/such/file", NULL, -ENOENT }, { f->program, &other, -ESTALE },
		{ fifo, NULL, -ENOEXEC },           { text, NULL, -ENOEXEC },
		{ "/tmp", NULL, -ENOEXEC },         { "/dev/zero", NULL, -ENOEXEC },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		print_message("  %s\n", rows[i].path);
		assert_null(add(f, rows[i].path, rows[i].id, &error));
		assert_int_equal(error, rows[i].error);
		/* Said once. */
		assert_null(add(f, rows[i].path, rows[i].id, &error));
		assert_int_equal(error, 0);
		assert_int_equal(keep_count(f->keep), i + 1);
	}

	/* What was missing may come to be. */
	(void)snprintf(text, sizeof(text), "%s/late", f->dir);
	assert_null(add(f, text, NULL, &error));
	assert_int_equal(error, -ENOENT);
	run("cp %s %s", f->program, text);
	object = add(f, text, NULL, &error);
	assert_non_null(object);
	assert_true(stored(f, object));
}

static void what_is_no_object(void **state)
{
	static const char *const names[] = { "[vdso]", "//anon", "", "anon_inode:x" };
	struct fixture *f = *state;
	struct record_mmap2 data = { .prot = PROT_READ, .name = f->program };
	int error = 1;

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		assert_null(add(f, names[i], NULL, &error));
		assert_int_equal(error, 0);
	}
	assert_null(keep_add(f->keep, &data, &error));
	assert_int_equal(keep_count(f->keep), 0);
}

/* A start removes copies that no snapshot links to. */
static void the_store_is_swept(void **state)
{
	struct fixture *f = *state;
	struct object *object;
	char from[256], to[128];
	int error;

	object = add(f, f->program, &f->id, &error);
	assert_non_null(object);
	(void)snprintf(from, sizeof(from), "%s/store/%s/elf", f->dir, object->name);
	(void)snprintf(to, sizeof(to), "%s/linked", f->dir);
	assert_int_equal(link(from, to), 0);

	f->keep = keep_free(f->keep);
	assert_int_equal(keep_new(f->store, &f->keep), 0);
	assert_int_equal(access(from, F_OK), 0);
	assert_int_equal(unlink(to), 0);
	f->keep = keep_free(f->keep);
	assert_int_equal(keep_new(f->store, &f->keep), 0);
	assert_int_equal(access(from, F_OK), -1);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(by_build_id, set_up, tear_down),
		cmocka_unit_test_setup_teardown(without_a_build_id, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_cannot_be_kept, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_is_no_object, set_up, tear_down),
		cmocka_unit_test_setup_teardown(the_store_is_swept, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
