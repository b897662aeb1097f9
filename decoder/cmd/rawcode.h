/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Raw code
 *
 * The code that ran while a bare PT stream was recorded, as the options --raw-pages, --raw-elf and
 * --raw-code of ptdecode name it: a list of pieces of files with the addresses of these pieces, in
 * the form that the library takes.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "ptd/decode.h"

struct rawcode {
	struct ptd_raw_code
	    *items; /* their paths are borrowed from the callers of rawcode_add_*() */
	size_t n;
	size_t n_capacity;
};

/*
 * Add the pages of 4 KiB in the file @code_path. The file @address_path has the address of each, as
 * u64 in little endian.
 *
 * Return: 0; or negative errno and @reterr_message, which the caller frees.
 */
_must_check_ int rawcode_add_pages(struct rawcode *code, const char *address_path,
				   const char *code_path, char **reterr_message);

/*
 * Add the executable segments of the ELF file @path, at the addresses in its program headers.
 * Return: as above.
 */
_must_check_ int rawcode_add_elf(struct rawcode *code, const char *path, char **reterr_message);

/* Add the whole file @path, at the address @address. Return: as above. */
_must_check_ int rawcode_add_file(struct rawcode *code, const char *path, uint64_t address,
				  char **reterr_message);

void rawcode_deinit(struct rawcode *code);
