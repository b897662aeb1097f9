/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Raw
 *
 * A bare PT stream with the code it ran, as ptxed takes them: no sideband, one address space, one
 * thread of which nothing is known.
 */

#include "base/base.h"
#include "decoder/image/object.h"
#include "decoder/image/space.h"
#include "ptd/decode.h"

/*
 * Make the space that holds @code.
 *
 * Return: 0; or negative errno and @reterr_message.
 */
_must_check_ int raw_space_new(const struct ptd_raw_code *code, size_t n_code,
			       struct objects *objects, struct space **ret_space,
			       char **reterr_message);

/*
 * Read what the command line names, and add it to @code: 4 KiB pages of @code_path at the addresses
 * (u64, little endian) that @address_path lists; the executable segments of an ELF file at their
 * linked addresses; a whole file at @address.
 *
 * Return: 0; or negative errno and @reterr_message.
 */
struct raw_code {
	struct ptd_raw_code *items;
	size_t n;
	size_t n_capacity;
};

_must_check_ int raw_add_pages(struct raw_code *code, const char *address_path,
			       const char *code_path, char **reterr_message);
_must_check_ int raw_add_elf(struct raw_code *code, const char *path, char **reterr_message);
_must_check_ int raw_add_file(struct raw_code *code, const char *path, uint64_t address,
			      char **reterr_message);
void raw_code_deinit(struct raw_code *code);
