/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/cmd/rawcode.h"

#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <libelf.h>
#include <string.h>

#include "base/cursor.h"
#include "util/mapfile.h"
#include "util/message.h"
#include "util/vec.h"

#define PAGE_SIZE 4096

static int open_file(struct mapfile *file, const char *path, char **reterr_message)
{
	int r = mapfile_read(file, AT_FDCWD, path);

	if (r < 0)
		return message_set(reterr_message, r, "%s: cannot read: %s", path, strerror(-r));
	return 0;
}

int rawcode_add_pages(struct rawcode *code, const char *address_path, const char *code_path,
		      char **reterr_message)
{
	_cleanup_(mapfile_deinit) struct mapfile addresses = {}, pages = {};
	struct ptd_raw_code *last;
	struct cursor c;
	uint64_t address;
	int r;

	r = open_file(&addresses, address_path, reterr_message);
	if (r < 0)
		return r;
	r = open_file(&pages, code_path, reterr_message);
	if (r < 0)
		return r;
	if (addresses.size % sizeof(address) || pages.size % PAGE_SIZE ||
	    addresses.size / sizeof(address) != pages.size / PAGE_SIZE)
		return message_set(
		    reterr_message, -EINVAL,
		    "%s holds %zu addresses of 8 bytes and %s %zu pages of %d bytes: "
		    "expected one address for each page",
		    address_path, addresses.size / sizeof(address), code_path,
		    pages.size / PAGE_SIZE, PAGE_SIZE);

	c = cursor_from(addresses.bytes, addresses.size);
	for (uint64_t offset = 0; cursor_get(&c, sizeof(address), &address) == 0;
	     offset += PAGE_SIZE) {
		last = code->n ? &code->items[code->n - 1] : NULL;
		if (last && last->path == code_path && last->offset + last->size == offset &&
		    last->address + last->size == address) {
			last->size += PAGE_SIZE;
			continue;
		}
		r = vec_push(
		    code,
		    { .path = code_path, .offset = offset, .size = PAGE_SIZE, .address = address });
		if (r < 0)
			return r;
	}
	return 0;
}

static void elf_endp(Elf **elf)
{
	if (*elf)
		elf_end(*elf);
}

int rawcode_add_elf(struct rawcode *code, const char *path, char **reterr_message)
{
	_cleanup_(mapfile_deinit) struct mapfile file = {};
	_cleanup_(elf_endp) Elf *elf = NULL;
	const size_t n_before = code->n;
	size_t n_segments;
	int r;

	r = open_file(&file, path, reterr_message);
	if (r < 0)
		return r;

	(void)elf_version(EV_CURRENT);
	/* libelf does not write to it, but its type does not say so. */
	elf = elf_memory((char *)(uintptr_t)file.bytes, file.size);
	if (!elf || elf_kind(elf) != ELF_K_ELF || elf_getphdrnum(elf, &n_segments) < 0)
		return message_set(reterr_message, -EINVAL, "%s: is no ELF file", path);

	for (size_t i = 0; i < n_segments; i++) {
		GElf_Phdr p;

		if (!gelf_getphdr(elf, (int)i, &p) || p.p_type != PT_LOAD || !(p.p_flags & PF_X) ||
		    p.p_filesz == 0)
			continue;
		r = vec_push(code, { .path = path,
				     .offset = p.p_offset,
				     .size = p.p_filesz,
				     .address = p.p_vaddr });
		if (r < 0)
			return r;
	}
	if (code->n == n_before)
		return message_set(reterr_message, -EINVAL, "%s: has no executable segment", path);
	return 0;
}

int rawcode_add_file(struct rawcode *code, const char *path, uint64_t address,
		     char **reterr_message)
{
	_cleanup_(mapfile_deinit) struct mapfile file = {};
	int r;

	r = open_file(&file, path, reterr_message);
	if (r < 0)
		return r;
	if (file.size == 0)
		return message_set(reterr_message, -EINVAL, "%s: is empty", path);
	return vec_push(code, { .path = path, .size = file.size, .address = address });
}

void rawcode_deinit(struct rawcode *code)
{
	vec_deinit(code);
}
