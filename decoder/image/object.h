/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Object
 *
 * A file whose code was executed; or memory with code that is in no file: of a JIT compiler, of the
 * kernel. A file that cannot be found or used is an object, too, which says why. Objects belong to
 * a collection (objects.h).
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/base.h"
#include "ptd/record.h"

struct filebytes;
struct symbol_source;

enum object_state {
	OBJECT_OK,
	OBJECT_MISSING,  /* there is no such file, or it cannot be read */
	OBJECT_WRONG_ID, /* the file that was found has another build-id */
	OBJECT_NO_FILE,  /* the code never was in a file: anonymous memory, [heap], … */
	OBJECT_COPIES,   /* copies of single instructions that are elsewhere, see flow.c */
};

struct object {
	struct ptd_object id; /* what the decoded stream shows of the object */
	enum object_state state;
	struct filebytes *file; /* see object_bytes(); NULL unless OBJECT_OK */
	uint64_t size;          /* bytes */
	bool is_elf;
	const struct object *proven; /* of one that is claimed: the same for code that is not */

	/*
	 * Knows the names of the code, by the addresses of object_address(); NULL: the code has no
	 * names. An ELF file that can be used has its own source. The maker of another object may
	 * set a source, which is borrowed, before the object is used.
	 */
	struct symbol_source *symbols;
};

/*
 * Read the bytes of @object as they are needed. Several threads may call this at once.
 *
 * Return: the @size bytes at @offset, which stay there as long as the object; NULL if the object
 *         is shorter, or they cannot be read: then what is decoded without them must not be
 *         shown, and objects_failure() says why.
 */
const uint8_t *object_bytes(const struct object *object, uint64_t offset, uint64_t size);

/*
 * State that @size bytes of @object from @offset on are at @address. Parts are added in the order
 * of their offsets, to objects that are no ELF file.
 *
 * Return: 0 or -ENOMEM.
 */
_must_check_ int object_add_part(struct object *object, uint64_t offset, uint64_t size,
				 uint64_t address);

/*
 * Return: the address of the byte at @offset of @object: in an ELF file the virtual address that
 *         its segments state, in memory the address there; @offset itself if no segment or part has
 *         it.
 */
uint64_t object_address(const struct object *object, uint64_t offset);

/*
 * Return: the bytes of @object, an ELF file, at the @address that its segments state, at most
 *         @size of them, whose number is @ret_size, as object_bytes(); NULL: there are none.
 */
const uint8_t *object_code(const struct object *object, uint64_t address, uint64_t size,
			   uint64_t *ret_size);
