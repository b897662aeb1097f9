/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "ctl/plugin.h"
#include "tests/lib/tempdir.h"

/* It is handed to another program, which may have another working directory. */
static void named(void **state)
{
	char dir[TEMPDIR_SIZE], wanted[PATH_MAX], cwd[PATH_MAX];
	_cleanup_(freep) char *path = NULL, *gone = NULL;

	(void)state;
	tempdir_make("plugin", dir);
	tempdir_put_text(dir, "some.so", "");
	assert_non_null(getcwd(cwd, sizeof(cwd)));
	assert_int_equal(chdir(dir), 0);
	(void)snprintf(wanted, sizeof(wanted), "%s/some.so", dir);
	assert_int_equal(setenv("PTD_EMU_SO", "./some.so", 1), 0);
	assert_int_equal(plugin_find(&path), 0);
	assert_string_equal(path, wanted);

	/* Whoever wants to open it says that it is not there. */
	assert_int_equal(setenv("PTD_EMU_SO", "gone.so", 1), 0);
	assert_int_equal(plugin_find(&gone), 0);
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
		assert_int_equal(plugin_find(&path), 0);
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

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(named),
		cmocka_unit_test(beside),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
