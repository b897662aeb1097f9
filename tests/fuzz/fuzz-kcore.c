/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * A directory's kcore and kallsyms, of any bytes: the first four are the size of kcore, which comes
 * next; the rest is kallsyms. Whatever is mapped has bytes, and each has a name or none.
 */

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cursor.h"
#include "decoder/kernel/kcore.h"
#include "decoder/symbol/resolver.h"
#include "util/dirs.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char dir[] = "/tmp/fuzz-kcore.XXXXXX";

static void put(const char *name, const void *bytes, size_t size)
{
	char path[64];
	FILE *f;

	(void)snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "we");
	if (!f || fwrite(bytes, 1, size, f) != size || fclose(f) != 0)
		abort();
}

static void clean_up(void)
{
	if (dirs_remove(AT_FDCWD, dir) < 0)
		abort();
}

static void make_dir(void)
{
	static bool made;
	char path[64];

	if (made)
		return;
	if (!mkdtemp(dir))
		abort();
	made = true;
	(void)snprintf(path, sizeof(path), "%s/kcore_dir", dir);
	if (mkdir(path, 0700) < 0 || atexit(clean_up) != 0)
		abort();
}

/* Nowhere are there two. */
static void look_apart(const struct kcore_mappings *mappings)
{
	for (size_t i = 0; i < mappings->list.n; i++) {
		const struct mapping *m = &mappings->list.items[i];

		for (const struct mapping *other = mappings->list.items; other < m; other++)
			if (m->start <= other->start + (other->size - 1) &&
			    other->start <= m->start + (m->size - 1))
				abort();
	}
}

static void look(const struct kcore_mappings *mappings, struct resolver *resolver)
{
	for (size_t i = 0; i < mappings->list.n; i++) {
		const struct mapping *m = &mappings->list.items[i];
		uint32_t symbol;
		uint64_t end;

		if (m->size == 0 || m->offset > m->object->size ||
		    m->size > m->object->size - m->offset || m->size - 1 > UINT64_MAX - m->start)
			abort();
		if (resolver_find(resolver, m->object->symbols, m->start, &symbol, &end) < 0 ||
		    end <= m->start)
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cursor c = cursor_from(data, size), core;
	struct resolver *resolver = NULL;
	struct kcore_mappings mappings = {};
	struct objects *objects = NULL;
	struct kcore kcore;
	uint32_t n;

	if (cursor_get(&c, sizeof(n), &n) < 0 || cursor_get_sub(&c, n, &core) < 0)
		return 0;
	make_dir();
	put("kcore_dir/kcore", core.pos, n);
	put("kcore_dir/kallsyms", c.pos, cursor_left(&c));
	if (objects_new(dir, &objects) < 0 || resolver_new(&resolver) < 0 ||
	    kcore_init(&kcore, objects) < 0 || kcore_map_all(&kcore, &mappings) < 0)
		abort();
	look_apart(&mappings);
	if (kcore_map_module(&kcore, "[one]", 0xffffffff81000ff0, 64, 1, &mappings) < 0)
		abort();
	look(&mappings, resolver);
	vec_deinit(&mappings.list);
	kcore_deinit(&kcore);
	(void)resolver_free(resolver);
	(void)objects_free(objects);
	return 0;
}
