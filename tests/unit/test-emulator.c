/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ctl/emulator.h"
#include "tests/lib/failing.h"
#include "tests/lib/tempdir.h"

/* It is handed to another program, which may have another working directory. */
static void named(void **state)
{
	char dir[TEMPDIR_SIZE], wanted[PATH_MAX], cwd[PATH_MAX];
	_cleanup_(freep) char *path = NULL, *gone = NULL;

	(void)state;
	tempdir_make("emulator", dir);
	tempdir_put_text(dir, "some.so", "");
	assert_non_null(getcwd(cwd, sizeof(cwd)));
	assert_int_equal(chdir(dir), 0);
	(void)snprintf(wanted, sizeof(wanted), "%s/some.so", dir);
	assert_int_equal(setenv("PTD_EMU_SO", "./some.so", 1), 0);
	assert_int_equal(emulator_find_plugin(&path), 0);
	assert_string_equal(path, wanted);

	/* Whoever wants to open it says that it is not there. */
	assert_int_equal(setenv("PTD_EMU_SO", "gone.so", 1), 0);
	assert_int_equal(emulator_find_plugin(&gone), 0);
	assert_string_equal(gone, "gone.so");
	assert_int_equal(chdir(cwd), 0);
	tempdir_remove(dir);
}

/* Beside this program, as in a build tree; an empty name is none. */
static void beside(void **state)
{
	static const char *const unset[] = { NULL, "" };
	char self[PATH_MAX];
	ssize_t n;

	(void)state;
	n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	assert_true(n > 0);
	self[n] = 0;
	*strrchr(self, '/') = 0;
	for (size_t i = 0; i < ARRAY_LEN(unset); i++) {
		_cleanup_(freep) char *path = NULL, *wanted = NULL;

		assert_int_equal(
		    unset[i] ? setenv("PTD_EMU_SO", unset[i], 1) : unsetenv("PTD_EMU_SO"), 0);
		assert_int_equal(emulator_find_plugin(&path), 0);
		assert_true(asprintf(&wanted, "%s/ptd-emu.so", self) > 0);
		if (access(wanted, F_OK) < 0) {
			/* Where it would be installed, whether or not it is there. */
			*strrchr(self, '/') = 0;
			free(wanted);
			assert_true(asprintf(&wanted, "%s/lib/ptd/ptd-emu.so", self) > 0);
			strcat(self, "/x");
		}
		assert_string_equal(path, wanted);
	}
}

static void copy_self(const char *to)
{
	const int in = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	const int out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0700);
	ssize_t n;

	assert_true(in >= 0 && out >= 0);
	while ((n = sendfile(out, in, NULL, 1 << 20)) > 0)
		;
	assert_true(n == 0);
	assert_int_equal(close(in), 0);
	assert_int_equal(close(out), 0);
}

static int find(void *userdata)
{
	return emulator_find_plugin(userdata);
}

static void is_a_path(void *userdata)
{
	char **path = userdata;

	assert_non_null(strstr(*path, "/ptd-emu.so"));
	free(*path);
}

/* Either a path is found, or it is an error. */
static void failures(void **state)
{
	char *path;

	(void)state;
	assert_int_equal(unsetenv("PTD_EMU_SO"), 0);
	failing_each(find, is_a_path, &path);
}

/* Run this program from DIR/bin, where no plugin is beside it: the path is DIR/lib/ptd then. */
static void installed(void **state)
{
	char dir[TEMPDIR_SIZE], bin[TEMPDIR_SIZE + 8], program[TEMPDIR_SIZE + 24];
	int status;
	pid_t child;

	(void)state;
	tempdir_make("emulator", dir);
	(void)snprintf(bin, sizeof(bin), "%s/bin", dir);
	(void)snprintf(program, sizeof(program), "%s/test-emulator", bin);
	assert_int_equal(mkdir(bin, 0700), 0);
	copy_self(program);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		(void)execl(program, program, dir, (char *)NULL);
		_exit(1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	tempdir_remove(dir);
}

/* Make an emulator that prints its options. */
static void put_emulator(const char *dir, const char *name, const char *options)
{
	char path[PATH_MAX], script[128];

	(void)snprintf(script, sizeof(script), "#!/bin/sh\necho \"-help, %s\"\n", options);
	tempdir_put_text(dir, name, script);
	(void)snprintf(path, sizeof(path), "%s/%s", dir, name);
	assert_int_equal(chmod(path, 0700), 0);
}

/* Return: whether the emulator is found in PATH, or why not. */
static int look_up(const char *name)
{
	_cleanup_(freep) char *path = NULL;
	const int r = emulator_find(name, &path);

	assert_int_equal(r < 0, path == NULL);
	return r;
}

/* It has plugins, has none, cannot be executed, or is not there. */
static void emulators(void **state)
{
	const char *path = getenv("PATH");
	_cleanup_(freep) char *saved = strdup(path ? path : "");
	_cleanup_(freep) char *both = NULL;
	char dir[TEMPDIR_SIZE];

	(void)state;
	tempdir_make("emulator", dir);
	put_emulator(dir, "qemu-some", "-plugin FILE");
	put_emulator(dir, "qemu-static", "-cpu MODEL");
	tempdir_put_text(dir, "qemu-no", "no program");
	assert_true(asprintf(&both, "%s:%s", dir, saved) > 0);
	assert_int_equal(setenv("PATH", both, 1), 0);
	assert_int_equal(look_up("qemu-some"), 0);
	assert_int_equal(look_up("qemu-static"), -ENOTSUP);
	assert_int_equal(look_up("qemu-no"), -EACCES);
	assert_int_equal(look_up("qemu-none"), -ENOENT);
	assert_int_equal(setenv("PATH", saved, 1), 0);
	tempdir_remove(dir);
}

static const char *prefix;

/* What the program in DIR/bin finds. */
static void below_the_prefix(void **state)
{
	_cleanup_(freep) char *path = NULL, *wanted = NULL;

	(void)state;
	assert_int_equal(unsetenv("PTD_EMU_SO"), 0);
	assert_int_equal(emulator_find_plugin(&path), 0);
	assert_true(asprintf(&wanted, "%s/lib/ptd/ptd-emu.so", prefix) > 0);
	assert_string_equal(path, wanted);
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest of_installed[] = {
		cmocka_unit_test(below_the_prefix),
		cmocka_unit_test(failures),
	};
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(named),     cmocka_unit_test(beside),
		cmocka_unit_test(failures),  cmocka_unit_test(installed),
		cmocka_unit_test(emulators),
	};

	if (argc > 1) {
		prefix = argv[1];
		return cmocka_run_group_tests(of_installed, NULL, NULL);
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
