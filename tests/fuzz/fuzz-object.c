/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * A foreign ELF file: found as an object, asked for addresses, then for the symbols of its code,
 * walking upwards as the decoder does. It may name a debug file beside itself; there is none.
 */

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "decoder/image/objects.h"
#include "decoder/symbol/resolver.h"

#define STEPS_MAX 100000

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(int r)
{
	if (r < 0)
		abort();
}

static void walk(struct resolver *resolver, const struct object *object)
{
	uint64_t address = 0, end;
	uint32_t symbol;
	size_t n;

	for (int i = 0; i < STEPS_MAX && address != UINT64_MAX; i++, address = end) {
		const struct ptd_symbol *const *symbols;

		check(resolver_find(resolver, object->symbols, address, &symbol, &end));
		symbols = resolver_symbols(resolver, &n);
		if (symbol >= n || end <= address || symbols[symbol]->address > address ||
		    strlen(symbols[symbol]->name) > 8192)
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_(objects_freep) struct objects *objects = NULL;
	_cleanup_(resolver_freep) struct resolver *resolver = NULL;
	_cleanup_(fd_closep) int fd = memfd_create("elf", MFD_CLOEXEC);
	const struct object *object = NULL;
	char path[32];

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);

	check(objects_new(NULL, &objects));
	check(objects_look_in(objects, &(struct objects_places){}));
	check(resolver_new(&resolver));
	check(objects_add_file(objects, path, &object));
	for (uint64_t offset = 0; offset < size; offset += 1 + size / 16)
		(void)object_address(object, offset);
	(void)object_address(object, UINT64_MAX);
	walk(resolver, object);
	return 0;
}
