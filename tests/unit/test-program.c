/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "ctl/program.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "ctl/verb.h"
#include "tests/lib/failing.h"
#include "tests/lib/logged.h"
#include "tests/lib/tempdir.h"
#include "util/execfile.h"

struct fixture {
	char dir[TEMPDIR_SIZE];
	char *path, *cwd;
	char *command[4];
	struct program program;
};

static void put(const struct fixture *f, const char *name, const char *text, mode_t mode)
{
	char path[160];

	tempdir_put_text(f->dir, name, text);
	(void)snprintf(path, sizeof(path), "%s/%s", f->dir, name);
	assert_int_equal(chmod(path, mode), 0);
}

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	char text[200];

	assert_non_null(f);
	tempdir_make("program", f->dir);
	f->path = strdup(getenv("PATH"));
	f->cwd = getcwd(NULL, 0);
	assert_true(f->path && f->cwd);
	put(f, "first/tool", "#!/bin/true -a\n", 0755);
	put(f, "second/tool", "#!/bin/true -b\n", 0755);
	put(f, "second/only", "#!/bin/true\n", 0755);
	put(f, "noexec/locked", "#!/bin/true\n", 0644);
	put(f, "second/plain", "echo hello\n", 0755);
	put(f, "second/dangling", "#!/no/such/interpreter\n", 0755);
	(void)snprintf(text, sizeof(text), "#!%s/second/loop\n", f->dir);
	put(f, "second/loop", text, 0755);
	/* Each leads to the one before it. */
	for (unsigned i = 0; i <= EXECFILE_SCRIPTS_MAX; i++) {
		char name[32];

		(void)snprintf(name, sizeof(name), "second/s%u", i);
		(void)snprintf(text, sizeof(text), i ? "#!%s/second/s%u\n" : "#!/bin/true\n",
			       f->dir, i - 1);
		put(f, name, text, 0755);
	}
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(setenv("PATH", f->path, 1), 0);
	assert_int_equal(chdir(f->cwd), 0);
	tempdir_remove(f->dir);
	free(f->path);
	free(f->cwd);
	free(f);
	return 0;
}

/* Set PATH; each "@" in it is the test's directory. */
static void set_path(const struct fixture *f, const char *pattern)
{
	char path[400] = "";
	size_t n = 0;

	for (; *pattern; pattern++)
		n += (size_t)snprintf(path + n, sizeof(path) - n, "%.*s", *pattern == '@' ? 64 : 1,
				      *pattern == '@' ? f->dir : pattern);
	assert_int_equal(setenv("PATH", path, 1), 0);
}

/* As execvp(3) looks for it: an entry where it may not be executed is no end. */
static void found(void **state)
{
	static const struct {
		const char *path, *name;
		int result;
		const char *found; /* below the test's directory */
	} rows[] = {
		{ "@/first:@/second", "tool", 0, "/first/tool" },
		{ "@/second:@/first", "tool", 0, "/second/tool" },
		{ "@/first:@/second", "only", 0, "/second/only" },
		{ "@/none:@/second", "only", 0, "/second/only" },
		{ "@/first", "only", -ENOENT, NULL },
		{ "@/noexec:@/first", "locked", -EACCES, NULL },
		{ "@/first:@/noexec", "locked", -EACCES, NULL },
		{ "@/first", "", -ENOENT, NULL },
		{ "", "tool", 0, "." },
		{ ":@/second", "tool", 0, "." },
		{ "@/second:", "tool", 0, "/second/tool" },
		{ "@/none:", "tool", 0, "." },
		{ "@/none::@/second", "tool", 0, "." },
	};
	struct fixture *f = *state;
	char first[96];

	(void)snprintf(first, sizeof(first), "%s/first", f->dir);
	assert_int_equal(chdir(first), 0);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char *path = f->dir, expected[160];

		set_path(f, rows[i].path);
		assert_int_equal(program_find(rows[i].name, &path), rows[i].result);
		if (rows[i].result < 0) {
			assert_ptr_equal(path, f->dir);
			continue;
		}
		if (rows[i].found[0] == '.')
			(void)snprintf(expected, sizeof(expected), "./tool");
		else
			(void)snprintf(expected, sizeof(expected), "%s%s", f->dir, rows[i].found);
		assert_string_equal(path, expected);
		free(path);
	}
}

/* A name with a slash is not looked up. */
static void named(void **state)
{
	struct fixture *f = *state;
	char first[96], *path = NULL;

	(void)snprintf(first, sizeof(first), "%s/first", f->dir);
	assert_int_equal(chdir(first), 0);
	set_path(f, "@/second");
	assert_int_equal(program_find("./tool", &path), 0);
	assert_string_equal(path, "./tool");
	free(path);
	assert_int_equal(program_find("./only", &path), -ENOENT);
	assert_int_equal(program_find("../noexec/locked", &path), -EACCES);
	assert_int_equal(program_find("/tmp", &path), -EACCES);
	assert_int_equal(unsetenv("PATH"), 0);
	assert_int_equal(program_find("sh", &path), 0);
	assert_non_null(strstr(path, "/sh"));
	free(path);
}

static int init(void *userdata)
{
	struct fixture *f = userdata;
	int r;

	logged_begin();
	r = program_init(&f->program, f->command);
	(void)logged_end();
	return -r; /* negative, as an errno is */
}

static void is_script(void *userdata)
{
	struct fixture *f = userdata;
	static const char *const expected[] = { "/bin/true", NULL, NULL, NULL, "x", "y z" };
	const struct program *p = &f->program;

	assert_int_equal(p->n_argv, 6);
	assert_null(p->argv[6]);
	for (size_t i = 0; i < ARRAY_LEN(expected); i++)
		if (expected[i])
			assert_string_equal(p->argv[i], expected[i]);
	assert_non_null(strstr(p->argv[1], "/second/s0"));
	assert_non_null(strstr(p->argv[2], "/second/s1"));
	assert_non_null(strstr(p->argv[3], "/second/s2"));
	assert_string_equal(p->path, "/bin/true");
	assert_string_equal(p->file, p->argv[3]);
	/* Where a program cannot be read, it is run as it is. */
	if (failing_name() && p->unseen) {
		assert_string_equal(p->unseen, EXECFILE_UNREADABLE);
	} else {
		assert_null(p->unseen);
		assert_string_equal(p->emulator, "qemu-x86_64");
	}
	program_deinit(&f->program);
	assert_null(f->program.argv);
}

static void scripts(void **state)
{
	struct fixture *f = *state;

	set_path(f, "@/second");
	f->command[0] = (char[]){ "s2" };
	f->command[1] = (char[]){ "x" };
	f->command[2] = (char[]){ "y z" };
	assert_int_equal(init(f), 0);
	is_script(f);
}

static void is_freed(void *userdata)
{
	struct fixture *f = userdata;

	program_deinit(&f->program);
}

static void calls_that_fail(void **state)
{
	struct fixture *f = *state;

	set_path(f, "@/second");
	f->command[0] = (char[]){ "tool" };
	f->command[1] = (char[]){ "x" };
	failing_each(init, is_freed, f);
}

static void refused(void **state)
{
	static const struct {
		const char *name;
		int result;
		const char *said;
	} rows[] = {
		{ "none", EXIT_NOT_FOUND, "none: cannot execute it: No such file or directory" },
		{ "locked", EXIT_CANNOT_EXECUTE, "locked: cannot execute it: Permission denied" },
		{ "plain", EXIT_CANNOT_EXECUTE, "/second/plain: neither an ELF program nor" },
		{ "dangling", EXIT_CANNOT_EXECUTE,
		  "/second/dangling: cannot execute its interpreter /no/such/interpreter: No "
		  "such" },
		{ "loop", EXIT_CANNOT_EXECUTE, "too many scripts are interpreters of one another" },
		{ "s5", EXIT_CANNOT_EXECUTE, "too many scripts are interpreters of one another" },
		{ "s4", 0, "" },
	};
	struct fixture *f = *state;

	set_path(f, "@/second:@/noexec");
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct program p = { .n_argv = 77 };
		char name[16];
		const char *said;
		int r;

		(void)snprintf(name, sizeof(name), "%s", rows[i].name);
		logged_begin();
		r = program_init(&p, (char *[]){ name, NULL });
		said = logged_end();
		assert_int_equal(r, rows[i].result);
		if (!strstr(said, rows[i].said))
			fail_msg("%s: %s", rows[i].name, said);
		if (r == 0)
			program_deinit(&p);
		else
			assert_int_equal(p.n_argv, 77);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(found, set_up, tear_down),
		cmocka_unit_test_setup_teardown(named, set_up, tear_down),
		cmocka_unit_test_setup_teardown(scripts, set_up, tear_down),
		cmocka_unit_test_setup_teardown(calls_that_fail, set_up, tear_down),
		cmocka_unit_test_setup_teardown(refused, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
