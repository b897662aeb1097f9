/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "tests/lib/symbolat.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <inttypes.h>
#include <string.h>

#include "decoder/symbol/source.h"

void symbolat_expect(struct symbol_source *source, uint64_t address, const char *name)
{
	const struct symtab_symbol *symbol = NULL;
	uint64_t end = UINT64_MAX;

	if (source)
		assert_int_equal(symbol_source_find(source, address, &symbol, &end), 0);
	assert_true(end > address);
	assert_true(!symbol || symbol->address <= address);
	if (symbol ? symbol->name_size != strlen(name) ||
			 memcmp(symbol->name, name, symbol->name_size) != 0
		   : name[0] != '\0')
		fail_msg("%#" PRIx64 ": expected '%s', found '%.*s'", address, name,
			 symbol ? symbol->name_size : 0, symbol ? symbol->name : "");
}
