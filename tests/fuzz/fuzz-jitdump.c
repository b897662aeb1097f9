/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* A foreign jitdump: all that is said of it must lie in it, and events go forward in time. */

#include <stdlib.h>
#include <string.h>

#include "decoder/jit/jitdump.h"
#include "decoder/symbol/ehframe.h"
#include "ptd/decode.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(int ok)
{
	if (!ok)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct jitdump dump;
	const char *why;

	if (jitdump_parse(data, size, &dump, &why) < 0)
		return 0;
	check(dump.cut_at < size);
	for (size_t i = 0; i < dump.loads.n; i++) {
		const struct jitdump_load *l = &dump.loads.items[i];
		const size_t name = (size_t)((const uint8_t *)l->name - data);

		check(l->size > 0 && l->offset < size && l->size <= size - l->offset);
		check(l->size - 1 <= UINT64_MAX - l->address);
		check(name < l->offset && l->name_size < l->offset - name);
		check(!memchr(l->name, '\0', l->name_size));
	}
	for (size_t i = 0; i < dump.loads.n; i++) {
		const struct jitdump_load *l = &dump.loads.items[i];
		struct ptd_position positions[PTD_POSITIONS_MAX];
		struct ehframe_entry entry;
		const struct symtab_symbol *symbol;
		uint64_t end;
		int n;

		check(symbol_source_find(&dump.symbols, l->offset, &symbol, &end) == 0);
		check(symbol && symbol->name == l->name && end == l->offset + l->size);
		n = dump.symbols.ops->positions(&dump.symbols, l->offset, positions);
		check(n >= 0 && n <= 1);
		check(!dump.symbols.ops->entry(&dump.symbols, l->offset, &entry) ||
		      (entry.start == l->offset && entry.end > entry.start));
	}
	for (size_t i = 0; i < dump.events.n; i++) {
		const struct jitdump_event *e = &dump.events.items[i];

		check(i == 0 || e[-1].time <= e->time);
		check(e->load < dump.loads.n);
		check(!dump.is_of_one || e->pid == dump.events.items[0].pid);
	}
	jitdump_deinit(&dump);
	return 0;
}
