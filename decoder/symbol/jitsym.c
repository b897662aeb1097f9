/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/symbol/jitsym.h"

#include <errno.h>

#include "decoder/jit/jitdump.h"

/* By where the code is in the dump, which does not change when it is moved. */
static int read_jitdump(struct symtab *symtab, const struct jitdump *dump)
{
	for (size_t i = 0; i < dump->loads.n; i++) {
		const struct jitdump_load *l = &dump->loads.items[i];
		const int r = symtab_add(symtab, &(struct symtab_symbol){
						     .address = l->offset,
						     .size = l->size,
						     .limit = l->offset + l->size,
						     .name = l->name,
						     .name_size = l->name_size,
						 });

		if (r < 0)
			return r;
	}
	return 0;
}

/* Those that begin inside the object. */
static int read_perfmap(struct symtab *symtab, const struct object *object,
			const struct perfmap *perfmap)
{
	uint64_t start, limit;
	size_t i;
	int r = 0;

	object_span(object, &start, &limit);
	i = vec_bisect(&perfmap->names, name, name->address < start);
	for (; r == 0 && i < perfmap->names.n && perfmap->names.items[i].address < limit; i++) {
		const struct perfmap_name *name = &perfmap->names.items[i];

		r = symtab_add(symtab, &(struct symtab_symbol){
					   .address = name->address,
					   .size = name->size,
					   .limit = limit,
					   .name = name->name,
					   .name_size = name->name_size,
				       });
	}
	return r;
}

int jitsym_read(struct symtab *symtab, const struct object *object, const struct perfmap *perfmap)
{
	int r = 0;

	if (object->jitdump)
		r = read_jitdump(symtab, object->jitdump);
	if (r == 0 && perfmap)
		r = read_perfmap(symtab, object, perfmap);
	/* Far more than any program has: those read so far must do. */
	return r == -E2BIG ? 0 : r;
}
