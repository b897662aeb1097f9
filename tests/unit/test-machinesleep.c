/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/base.h"
#include "daemon/pt/machinesleep.h"

#define MS INT64_C(1000000)

/* One look after the other, at clocks that differ by 5 ms at first. */
static void looks(void **state)
{
	static const struct {
		struct machinesleep_look look; /* ms */
		bool happened;
	} rows[] = {
		{ { 1000, 1005, 1000 }, false },
		{ { 2000, 2045, 2041 }, false }, /* kept from a CPU before, */
		{ { 3000, 3085, 3080 }, false },
		{ { 4000, 4005, 4080 }, false }, /* or after the other clock was read */
		{ { 5000, 5005, 5000 }, false },
		{ { 6000, 9005, 6000 }, true },
		{ { 7000, 10005, 7000 }, false }, /* once */
		{ { 8000, 13045, 8040 },
		  false }, /* suspended again, and a look that says nothing, */
		{ { 9000, 14005, 9000 }, true },    /* but the next one does */
		{ { 10000, 15045, 10000 }, false }, /* that is no suspend */
	};
	struct machinesleep sleep = { .ns = 5 * MS };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct machinesleep_look look = { rows[i].look.before * MS,
							rows[i].look.boot * MS,
							rows[i].look.after * MS };

		print_message("  row %zu\n", i);
		assert_int_equal(machinesleep_seen(&sleep, &look), rows[i].happened);
	}
}

static void this_machine(void **state)
{
	struct machinesleep sleep;

	(void)state;
	machinesleep_init(&sleep);
	assert_false(machinesleep_happened(&sleep));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(looks),
		cmocka_unit_test(this_machine),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
