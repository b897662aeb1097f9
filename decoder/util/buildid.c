/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/util/buildid.h"

#include <errno.h>
#include <gelf.h>
#include <libelf.h>
#include <string.h>

static void elf_endp(Elf **elf)
{
	if (*elf)
		elf_end(*elf);
}

/* Segments, not sections: they are there after strip and sstrip too. */
static bool find_in_segment(Elf *elf, const GElf_Phdr *segment, struct buildid *ret_id)
{
	const Elf_Type type = segment->p_align == 8 ? ELF_T_NHDR8 : ELF_T_NHDR;
	Elf_Data *data =
	    elf_getdata_rawchunk(elf, (int64_t)segment->p_offset, segment->p_filesz, type);
	size_t name, desc;
	GElf_Nhdr note;

	if (!data)
		return false;
	for (size_t at = 0; (at = gelf_getnote(data, at, &note, &name, &desc)) > 0;) {
		if (note.n_type != NT_GNU_BUILD_ID || note.n_namesz != sizeof("GNU") ||
		    memcmp((char *)data->d_buf + name, "GNU", sizeof("GNU")) != 0)
			continue;
		if (note.n_descsz == 0 || note.n_descsz > BUILDID_MAX)
			continue;
		*ret_id = (struct buildid){ .size = (uint8_t)note.n_descsz };
		memcpy(ret_id->bytes, (char *)data->d_buf + desc, note.n_descsz);
		return true;
	}
	return false;
}

static void find(Elf *elf, struct buildid *ret_id)
{
	size_t n_segments;

	*ret_id = (struct buildid){};
	if (elf_kind(elf) != ELF_K_ELF || elf_getphdrnum(elf, &n_segments) < 0)
		return;

	for (size_t i = 0; i < n_segments; i++) {
		GElf_Phdr segment;

		if (!gelf_getphdr(elf, (int)i, &segment) || segment.p_type != PT_NOTE)
			continue;
		if (find_in_segment(elf, &segment, ret_id))
			break;
	}
}

int buildid_read(int fd, struct buildid *ret_id)
{
	_cleanup_(elf_endp) Elf *elf = NULL;

	(void)elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ, NULL);
	if (!elf)
		return -EIO;
	find(elf, ret_id);
	return 0;
}

void buildid_read_bytes(const void *bytes, size_t size, struct buildid *ret_id)
{
	_cleanup_(elf_endp) Elf *elf = NULL;

	*ret_id = (struct buildid){};
	(void)elf_version(EV_CURRENT);
	elf = size > 0 ? elf_memory((char *)(uintptr_t)bytes, size) : NULL;
	if (elf)
		find(elf, ret_id);
}

bool buildid_equal(const struct buildid *a, const struct buildid *b)
{
	return a->size == b->size && memcmp(a->bytes, b->bytes, a->size) == 0;
}

char *buildid_hex(const struct buildid *id, char ret_hex[static BUILDID_HEX_MAX])
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < id->size; i++) {
		ret_hex[2 * i] = digits[id->bytes[i] >> 4];
		ret_hex[2 * i + 1] = digits[id->bytes[i] & 15];
	}
	ret_hex[2 * (size_t)id->size] = '\0';
	return ret_hex;
}
