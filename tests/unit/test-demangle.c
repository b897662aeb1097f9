/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Demangle: names and their readable forms; names made to explode. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "decoder/symbol/demangle.h"

static void names(void **state)
{
	static const struct {
		const char *name;
		const char *text; /* NULL: it stays as it is */
	} rows[] = {
		{ "_Z1fi", "f(int)" },
		{ "_ZN2ns1fEi", "ns::f(int)" },
		{ "_ZNSt6vectorIiSaIiEE9push_backERKi",
		  "std::vector<int, std::allocator<int> >::push_back(int const&)" },
		{ "_ZN2ns1fEi.cold", "ns::f(int) [clone .cold]" },
		{ "_ZN4core3fmt9Formatter3pad17h0123456789abcdefE", "core::fmt::Formatter::pad" },
		{ "_RNvC7mycrate3foo", "mycrate::foo" },
		{ "main", NULL },
		{ "", NULL },
		{ "_Z", NULL },
		{ "_Zzzz", NULL },
		{ "_R", NULL },
		{ "_start", NULL },
	};
	char text[DEMANGLE_MAX];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const size_t n = demangle(rows[i].name, strlen(rows[i].name), text);

		print_message("  %s\n", rows[i].name);
		assert_int_equal(n, rows[i].text ? strlen(rows[i].text) : 0);
		if (rows[i].text)
			assert_string_equal(text, rows[i].text);
	}
	/* The name ends where its size says. */
	assert_int_equal(demangle("_Z1fiii", 5, text), strlen("f(int)"));
}

/* f(P<A, A>, P<P<A, A>, P<A, A>>, …): ten bytes of name double the text. */
static void explosion(void **state)
{
	static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
	char name[1024] = "_Z1f1PI1AS0_E", text[DEMANGLE_MAX];
	size_t n = strlen(name);

	(void)state;
	for (int i = 1; i < 36; i++) {
		n += (size_t)snprintf(name + n, sizeof(name) - n, "S_IS%c_S%c_E", digits[i],
				      digits[i]);
		/* Three doublings are a name like any other. */
		assert_int_equal(demangle(name, n, text) > 0, i < 8);
	}
}

static void too_long(void **state)
{
	static char name[100000] = "_Z9999";
	char text[DEMANGLE_MAX];

	(void)state;
	memset(name + 6, 'x', sizeof(name) - 7);
	assert_int_equal(demangle(name, strlen(name), text), 0);
	memset(name + 2, 'P', sizeof(name) - 3);
	assert_int_equal(demangle(name, strlen(name), text), 0);
	assert_int_equal(demangle(name, 1000, text), 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(names),
		cmocka_unit_test(explosion),
		cmocka_unit_test(too_long),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
