/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Jitdump builder
 *
 * Writes small jitdumps into memory, for the tests of their reader.
 */

#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { JITBUILD_LOAD, JITBUILD_MOVE, JITBUILD_DEBUG, JITBUILD_CLOSE, JITBUILD_UNWIND };

struct jitbuild {
	uint8_t bytes[4096];
	size_t size;
};

static inline void jitbuild_put(struct jitbuild *b, const void *bytes, size_t size)
{
	memcpy(b->bytes + b->size, bytes, size);
	b->size += size;
}

static inline void jitbuild_u32(struct jitbuild *b, uint32_t n)
{
	jitbuild_put(b, &n, sizeof(n));
}

static inline void jitbuild_u64(struct jitbuild *b, uint64_t n)
{
	jitbuild_put(b, &n, sizeof(n));
}

static inline void jitbuild_begin(struct jitbuild *b, uint64_t flags)
{
	b->size = 0;
	jitbuild_u32(b, 0x4a695444);
	jitbuild_u32(b, 1);
	jitbuild_u32(b, 40);
	jitbuild_u32(b, 62);
	jitbuild_u32(b, 0xdeadbeef);
	jitbuild_u32(b, 7);
	jitbuild_u64(b, 99);
	jitbuild_u64(b, flags);
}

/* Add a record with @size bytes of payload. Return: its offset. */
static inline size_t jitbuild_record(struct jitbuild *b, uint32_t id, uint64_t time,
				     const void *payload, uint32_t size)
{
	const size_t at = b->size;

	jitbuild_u32(b, id);
	jitbuild_u32(b, 16 + size);
	jitbuild_u64(b, time);
	jitbuild_put(b, payload, size);
	return at;
}

static inline size_t jitbuild_load(struct jitbuild *b, uint64_t time, uint64_t address,
				   uint64_t index, const char *name, const void *code, size_t size)
{
	struct jitbuild p = {};

	jitbuild_u32(&p, 7);
	jitbuild_u32(&p, 8);
	jitbuild_u64(&p, 0);
	jitbuild_u64(&p, address);
	jitbuild_u64(&p, size);
	jitbuild_u64(&p, index);
	jitbuild_put(&p, name, strlen(name) + 1);
	jitbuild_put(&p, code, size);
	return jitbuild_record(b, JITBUILD_LOAD, time, p.bytes, (uint32_t)p.size);
}

static inline size_t jitbuild_move(struct jitbuild *b, uint64_t time, uint64_t old, uint64_t new,
				   uint64_t size, uint64_t index)
{
	struct jitbuild p = {};

	jitbuild_u32(&p, 7);
	jitbuild_u32(&p, 8);
	jitbuild_u64(&p, new);
	jitbuild_u64(&p, old);
	jitbuild_u64(&p, new);
	jitbuild_u64(&p, size);
	jitbuild_u64(&p, index);
	return jitbuild_record(b, JITBUILD_MOVE, time, p.bytes, (uint32_t)p.size);
}

struct jitbuild_line {
	uint64_t address;
	uint32_t line;
	const char *file;
};

static inline size_t jitbuild_debug(struct jitbuild *b, uint64_t time, uint64_t address,
				    const struct jitbuild_line *lines, size_t n)
{
	struct jitbuild p = {};

	jitbuild_u64(&p, address);
	jitbuild_u64(&p, n);
	for (size_t i = 0; i < n; i++) {
		jitbuild_u64(&p, lines[i].address);
		jitbuild_u32(&p, lines[i].line);
		jitbuild_u32(&p, lines[i].line + 6); /* column */
		jitbuild_put(&p, lines[i].file, strlen(lines[i].file) + 1);
	}
	return jitbuild_record(b, JITBUILD_DEBUG, time, p.bytes, (uint32_t)p.size);
}
