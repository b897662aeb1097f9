/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/symbol/ehframe.h"

#include <errno.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>

#include "base/cursor.h"
#include "decoder/symbol/elfbytes.h"
#include "decoder/symbol/elfsym.h"
#include "decoder/symbol/leb128.h"
#include "decoder/util/filebytes.h"
#include "util/vec.h"

#define SEGMENTS_MAX 256        /* real files have four to ten */
#define ENTRIES_MAX  (1u << 22) /* that are read when there is no table */

/* To find functions, no more bytes than these of an entry, and of what is common to several (CIE),
 * are looked at; to find the registers of the caller, no more than these. */
#define FDE_HEAD_MAX 32u
#define CIE_HEAD_MAX 64u
#define ENTRY_MAX    (1u << 16)

/* An .eh_frame that is in no file is read as if it were at this address. */
#define BARE_ADDRESS (UINT64_C(1) << 62)

/* How a pointer is encoded: its format in the low four bits, then what it counts from. */
enum {
	FORMAT_MASK = 0x0f,
	FORMAT_NATIVE = 0x00, /* as large as an address of the file */
	FORMAT_U16 = 0x02,
	FORMAT_U32 = 0x03,
	FORMAT_U64 = 0x04,
	FORMAT_S16 = 0x0a,
	FORMAT_S32 = 0x0b,
	FORMAT_S64 = 0x0c,
	BASE_MASK = 0xf0,
	BASE_NONE = 0x00,
	BASE_SELF = 0x10,  /* from its own address */
	BASE_TABLE = 0x30, /* from the address of .eh_frame_hdr */
};

/* Loaded bytes of the file. */
struct segment {
	uint64_t offset, address, size;
};

struct function {
	uint64_t start, end;
	uint64_t offset, address; /* of its entry: in the file, and where it is loaded */
};

/* The head of .eh_frame_hdr, up to what depends on the encodings. */
struct table_head {
	uint8_t version, frame_encoding, count_encoding, table_encoding;
};

/* A row of the table: both count from the address of .eh_frame_hdr. */
struct table_row {
	int32_t start, entry;
};

struct ehframe {
	struct filebytes *file; /* borrowed */
	bool is_wide;           /* its addresses have 64 bits */
	VEC(struct segment) segments;

	/* The table; or without one, all functions, by their start. */
	bool has_table;
	uint64_t table_base;   /* the address of .eh_frame_hdr */
	uint64_t table_offset; /* of the first row, in the file */
	size_t n;              /* rows, or functions */
	VEC(struct function) functions;
};

/* --- bytes ------------------------------------------------------------------------------------ */

static uint64_t to_address(const struct ehframe *ehframe, uint64_t value)
{
	return ehframe->is_wide ? value : (uint32_t)value;
}

/* Make a cursor over up to @max bytes at @offset of the file, of @left that belong together. */
static bool look_at(const struct ehframe *ehframe, uint64_t offset, uint64_t left, size_t max,
		    struct cursor *ret_cursor)
{
	const uint64_t all = filebytes_size(ehframe->file);
	const uint8_t *bytes;
	size_t size = left < max ? (size_t)left : max;

	if (offset >= all)
		return false;
	if (size > all - offset)
		size = (size_t)(all - offset);
	bytes = filebytes_get(ehframe->file, offset, size);
	if (!bytes)
		return false;
	*ret_cursor = cursor_from(bytes, size);
	return true;
}

static bool find_offset(const struct ehframe *ehframe, uint64_t address, uint64_t *ret_offset)
{
	for (size_t i = 0; i < ehframe->segments.n; i++) {
		const struct segment *s = &ehframe->segments.items[i];

		if (address >= s->address && address - s->address < s->size) {
			*ret_offset = s->offset + (address - s->address);
			return true;
		}
	}
	return false;
}

static int get_number(const struct ehframe *ehframe, struct cursor *c, uint8_t format,
		      uint64_t *ret_number)
{
	uint16_t u16 = 0;
	uint32_t u32 = 0;
	uint64_t u64 = 0;
	int r;

	if (format == FORMAT_NATIVE)
		format = ehframe->is_wide ? FORMAT_U64 : FORMAT_U32;
	switch (format) {
	case FORMAT_U16:
	case FORMAT_S16:
		r = cursor_get(c, sizeof(u16), &u16);
		u64 = format == FORMAT_U16 ? u16 : (uint64_t)(int16_t)u16;
		break;
	case FORMAT_U32:
	case FORMAT_S32:
		r = cursor_get(c, sizeof(u32), &u32);
		u64 = format == FORMAT_U32 ? u32 : (uint64_t)(int32_t)u32;
		break;
	case FORMAT_U64:
	case FORMAT_S64:
		r = cursor_get(c, sizeof(u64), &u64);
		break;
	default:
		return -EBADMSG;
	}
	if (r == 0)
		*ret_number = u64;
	return r;
}

/* --- entries ---------------------------------------------------------------------------------- */

/* The head of an entry, or of what is common to several. */
struct record {
	uint64_t offset; /* of the field @id, in the file */
	uint64_t left;   /* bytes behind that field */
	uint64_t next;   /* the offset of the next record */
	uint32_t id;     /* 0: common; else an entry, and how far before this field its common is */
	bool is_end;     /* no record follows */
};

static bool read_record(const struct ehframe *ehframe, uint64_t offset, struct record *ret_record)
{
	struct cursor c;
	uint32_t size;
	uint64_t length;
	size_t head = sizeof(size);

	if (!look_at(ehframe, offset, UINT64_MAX, FDE_HEAD_MAX, &c) ||
	    cursor_get(&c, sizeof(size), &size) < 0)
		return false;
	if (size == 0) {
		*ret_record = (struct record){ .is_end = true };
		return true;
	}
	length = size;
	if (size == UINT32_MAX) {
		if (cursor_get(&c, sizeof(length), &length) < 0)
			return false;
		head += sizeof(length);
	}
	*ret_record = (struct record){ .offset = offset + head, .next = offset + head + length };
	if (length < sizeof(ret_record->id) || length > filebytes_size(ehframe->file) ||
	    cursor_get(&c, sizeof(ret_record->id), &ret_record->id) < 0)
		return false;
	ret_record->left = length - sizeof(ret_record->id);
	return true;
}

/* What several entries have in common. */
struct common {
	uint64_t code_factor, return_register;
	int64_t data_factor;
	uint8_t encoding; /* of the addresses in the entries */
	bool is_signal, has_augmentation;
	struct cursor instructions; /* behind all that is before them, if that was asked for */
};

/* Read the letters that say what else there is. */
static bool read_augmentation(const struct ehframe *ehframe, const char *letters, struct cursor *c,
			      struct common *common)
{
	uint64_t skipped;
	uint8_t encoding;

	for (const char *a = letters; *a; a++) {
		switch (*a) {
		case 'R':
			if (cursor_get(c, 1, &common->encoding) < 0)
				return false;
			break;
		case 'P':
			if (cursor_get(c, 1, &encoding) < 0 ||
			    get_number(ehframe, c, encoding & FORMAT_MASK, &skipped) < 0)
				return false;
			break;
		case 'L':
			if (cursor_skip(c, 1) < 0)
				return false;
			break;
		case 'S':
			common->is_signal = true;
			break;
		case 'B':
			break;
		default:
			return false;
		}
	}
	return true;
}

/* Read the common record @cie: at most @size_max bytes of it. */
static bool read_common(const struct ehframe *ehframe, const struct record *cie, size_t size_max,
			struct common *ret_common)
{
	struct common common = { .encoding = FORMAT_NATIVE };
	const char *augmentation;
	uint64_t size = 0;
	struct cursor c;
	uint8_t version, byte = 0;

	if (cie->is_end || cie->id != 0 ||
	    !look_at(ehframe, cie->offset + sizeof(cie->id), cie->left, size_max, &c) ||
	    cursor_get(&c, 1, &version) < 0 || (version != 1 && version != 3) ||
	    cursor_get_string(&c, &augmentation) < 0 ||
	    leb128_get_unsigned(&c, &common.code_factor) < 0 ||
	    leb128_get_signed(&c, &common.data_factor) < 0)
		return false;
	if (version == 1 ? cursor_get(&c, 1, &byte) < 0
			 : leb128_get_unsigned(&c, &common.return_register) < 0)
		return false;
	if (version == 1)
		common.return_register = byte;
	common.instructions = c;
	if (augmentation[0] == '\0') {
		*ret_common = common;
		return true;
	}
	if (augmentation[0] != 'z' || leb128_get_unsigned(&c, &size) < 0)
		return false;
	common.has_augmentation = true;
	common.instructions = c;
	if (!read_augmentation(ehframe, augmentation + 1, &c, &common))
		return false;
	if (cursor_skip(&common.instructions, size) < 0)
		common.instructions = cursor_from(NULL, 0);
	*ret_common = common;
	return true;
}

/* Read the function of the entry @fde, which is at @address; *@ret_rest is what follows in it. */
static bool read_function(const struct ehframe *ehframe, const struct record *fde, uint8_t encoding,
			  size_t size_max, uint64_t address, struct function *ret_function,
			  struct cursor *ret_rest)
{
	const uint8_t base = encoding & BASE_MASK;
	uint64_t start, size;
	struct cursor c;

	if ((base != BASE_NONE && base != BASE_SELF) ||
	    !look_at(ehframe, fde->offset + sizeof(fde->id), fde->left, size_max, &c) ||
	    get_number(ehframe, &c, encoding & FORMAT_MASK, &start) < 0 ||
	    get_number(ehframe, &c, encoding & FORMAT_MASK, &size) < 0)
		return false;
	if (base == BASE_SELF)
		start += address;
	start = to_address(ehframe, start);
	if (size == 0 || size > UINT64_MAX - start)
		return false;
	*ret_function = (struct function){ .start = start, .end = start + size };
	*ret_rest = c;
	return true;
}

/* Read the entry at @offset, which is loaded at @address, and what is common to it and others. */
static bool read_whole(const struct ehframe *ehframe, uint64_t offset, uint64_t address,
		       size_t fde_max, size_t cie_max, struct function *ret_function,
		       struct common *ret_common, struct cursor *ret_rest)
{
	struct record fde, cie;

	return read_record(ehframe, offset, &fde) && !fde.is_end && fde.id != 0 &&
	       fde.id <= fde.offset && read_record(ehframe, fde.offset - fde.id, &cie) &&
	       read_common(ehframe, &cie, cie_max, ret_common) &&
	       read_function(ehframe, &fde, ret_common->encoding, fde_max,
			     address + (fde.offset - offset) + sizeof(fde.id), ret_function,
			     ret_rest);
}

static bool read_entry(const struct ehframe *ehframe, uint64_t offset, uint64_t address,
		       struct function *ret_function)
{
	struct common common;
	struct cursor rest;

	if (!read_whole(ehframe, offset, address, FDE_HEAD_MAX, CIE_HEAD_MAX, ret_function, &common,
			&rest))
		return false;
	ret_function->offset = offset;
	ret_function->address = address;
	return true;
}

/* --- the search ------------------------------------------------------------------------------- */

static bool read_row(const struct ehframe *ehframe, size_t i, uint64_t *ret_start,
		     uint64_t *ret_entry)
{
	struct table_row row;
	struct cursor c;

	if (!look_at(ehframe, ehframe->table_offset + i * sizeof(row), sizeof(row), sizeof(row),
		     &c) ||
	    cursor_get(&c, sizeof(row), &row) < 0)
		return false;
	*ret_start = to_address(ehframe, ehframe->table_base + (uint64_t)(int64_t)row.start);
	*ret_entry = to_address(ehframe, ehframe->table_base + (uint64_t)(int64_t)row.entry);
	return true;
}

/* Return: where function @i begins; UINT64_MAX if that cannot be read. */
static uint64_t start_of(const struct ehframe *ehframe, size_t i)
{
	uint64_t start, entry;

	if (!ehframe->has_table)
		return ehframe->functions.items[i].start;
	return read_row(ehframe, i, &start, &entry) ? start : UINT64_MAX;
}

static bool function_at(const struct ehframe *ehframe, size_t i, struct function *ret_function)
{
	uint64_t start, entry, offset;

	if (!ehframe->has_table) {
		*ret_function = ehframe->functions.items[i];
		return true;
	}
	/* The table and the entry must agree. */
	return read_row(ehframe, i, &start, &entry) && find_offset(ehframe, entry, &offset) &&
	       read_entry(ehframe, offset, entry, ret_function) && ret_function->start == start;
}

/*
 * Return: how many functions begin at or before @address. Even if the rows are in no order, the
 *         one before the result does.
 */
static size_t count_before(const struct ehframe *ehframe, uint64_t address)
{
	size_t low = 0, high = ehframe->n;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;

		if (start_of(ehframe, middle) <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

bool ehframe_find(const struct ehframe *ehframe, uint64_t address, uint64_t *ret_start,
		  uint64_t *ret_end)
{
	const size_t n = count_before(ehframe, address);
	struct function function;

	*ret_start = 0;
	*ret_end = n < ehframe->n ? start_of(ehframe, n) : UINT64_MAX;
	if (n == 0 || address == UINT64_MAX)
		return false;
	if (!function_at(ehframe, n - 1, &function)) {
		*ret_start = start_of(ehframe, n - 1);
		return false;
	}
	if (function.end <= address) {
		*ret_start = function.end;
		return false;
	}
	*ret_start = function.start;
	if (function.end < *ret_end)
		*ret_end = function.end;
	return true;
}

/* Read the entry at @offset, which is loaded at @address, with its instructions. */
static bool read_instructions(const struct ehframe *ehframe, uint64_t offset, uint64_t address,
			      struct ehframe_entry *ret_entry)
{
	struct function function;
	struct common common;
	struct cursor own;
	uint64_t size;

	if (!read_whole(ehframe, offset, address, ENTRY_MAX, ENTRY_MAX, &function, &common, &own))
		return false;
	if (common.has_augmentation &&
	    (leb128_get_unsigned(&own, &size) < 0 || cursor_skip(&own, size) < 0))
		return false;
	*ret_entry = (struct ehframe_entry){ .start = function.start,
					     .end = function.end,
					     .code_factor = common.code_factor,
					     .data_factor = common.data_factor,
					     .return_register = common.return_register,
					     .is_signal = common.is_signal,
					     .common = common.instructions,
					     .own = own };
	return true;
}

bool ehframe_find_entry(const struct ehframe *ehframe, uint64_t address,
			struct ehframe_entry *ret_entry)
{
	const size_t n = count_before(ehframe, address);
	struct function function;

	return n > 0 && function_at(ehframe, n - 1, &function) && function.end > address &&
	       read_instructions(ehframe, function.offset, function.address, ret_entry);
}

bool ehframe_read_entry(const uint8_t *bytes, size_t size, struct ehframe_entry *ret_entry)
{
	struct ehframe ehframe = { .is_wide = true };
	struct record record = {};
	uint64_t offset = 0;
	bool found;

	if (filebytes_new_in_memory(bytes, size, &ehframe.file) < 0)
		return false;
	/* What is common to several entries comes first. */
	while (read_record(&ehframe, offset, &record) && !record.is_end && record.id == 0)
		offset = record.next;
	found =
	    record.id != 0 && read_instructions(&ehframe, offset, BARE_ADDRESS + offset, ret_entry);
	if (found) {
		ret_entry->end -= ret_entry->start;
		ret_entry->start = 0;
	}
	filebytes_unref(ehframe.file);
	return found;
}

/* --- opening ---------------------------------------------------------------------------------- */

static int add_segment(struct ehframe *ehframe, const GElf_Phdr *header)
{
	if (ehframe->segments.n == SEGMENTS_MAX)
		return 0;
	return vec_push(
	    &ehframe->segments,
	    { .offset = header->p_offset, .address = header->p_vaddr, .size = header->p_filesz });
}

/* The table that linkers write has 32-bit numbers that count from its own address. */
static void open_table(struct ehframe *ehframe, const GElf_Phdr *header)
{
	struct table_head head;
	uint64_t skipped, n, n_max;
	struct cursor whole, c;
	size_t size;

	if (!look_at(ehframe, header->p_offset, header->p_filesz, FDE_HEAD_MAX, &whole))
		return;
	c = whole;
	if (cursor_get(&c, sizeof(head), &head) < 0 || head.version != 1 ||
	    head.table_encoding != (BASE_TABLE | FORMAT_S32) ||
	    (head.count_encoding & BASE_MASK) != BASE_NONE ||
	    get_number(ehframe, &c, head.frame_encoding & FORMAT_MASK, &skipped) < 0 ||
	    get_number(ehframe, &c, head.count_encoding, &n) < 0)
		return;

	size = cursor_left(&whole) - cursor_left(&c);
	n_max = (header->p_filesz - size) / sizeof(struct table_row);
	ehframe->has_table = true;
	ehframe->table_base = header->p_vaddr;
	ehframe->table_offset = header->p_offset + size;
	ehframe->n = (size_t)(n < n_max ? n : n_max);
}

static int compare_functions(const void *pa, const void *pb)
{
	const struct function *a = pa, *b = pb;

	return COMPARE(a->start, b->start);
}

/* Read all entries of the section, which is at @address. Return: 0 or -ENOMEM. */
static int read_entries(struct ehframe *ehframe, uint64_t offset, uint64_t size, uint64_t address)
{
	const uint64_t begin = offset, end = offset + size;
	struct record record;

	while (offset < end && ehframe->functions.n < ENTRIES_MAX &&
	       read_record(ehframe, offset, &record) && !record.is_end) {
		struct function function;

		if (record.id != 0 &&
		    read_entry(ehframe, offset, address + (offset - begin), &function)) {
			const int r = vec_push(&ehframe->functions, function);

			if (r < 0)
				return r;
		}
		offset = record.next;
	}
	ehframe->n = ehframe->functions.n;
	vec_sort(&ehframe->functions, compare_functions);
	return 0;
}

static int open_section(struct ehframe *ehframe)
{
	_cleanup_(elfsym_deinit) struct elfsym elf = {};
	const struct elfsym_section *section;
	int r;

	r = elfsym_init(&elf, ehframe->file);
	if (r < 0)
		return r;
	section = elfsym_find(&elf, SHT_PROGBITS, ".eh_frame")
		      ?: elfsym_find(&elf, SHT_X86_64_UNWIND, ".eh_frame");
	if (!section)
		return 0;
	return read_entries(ehframe, section->header.sh_offset, section->size,
			    section->header.sh_addr);
}

static int read_headers(struct ehframe *ehframe)
{
	_cleanup_(elfbytes_endp) Elf *elf = elfbytes_begin(ehframe->file);
	GElf_Ehdr file_header;
	size_t n;

	/* The entries of a file that is not linked have no addresses yet. */
	if (!elf || !gelf_getehdr(elf, &file_header) || file_header.e_type == ET_REL ||
	    elf_getphdrnum(elf, &n) < 0)
		return 0;
	ehframe->is_wide = gelf_getclass(elf) == ELFCLASS64;
	for (size_t i = 0; i < n; i++) {
		GElf_Phdr h;
		int r = 0;

		if (!gelf_getphdr(elf, (int)i, &h))
			break;
		if (h.p_type == PT_LOAD)
			r = add_segment(ehframe, &h);
		else if (h.p_type == PT_GNU_EH_FRAME)
			open_table(ehframe, &h);
		if (r < 0)
			return r;
	}
	return ehframe->has_table ? 0 : open_section(ehframe);
}

int ehframe_new(struct filebytes *file, struct ehframe **ret_ehframe)
{
	_cleanup_(ehframe_freep) struct ehframe *ehframe = calloc(1, sizeof(*ehframe));
	int r;

	if (!ehframe)
		return -ENOMEM;
	ehframe->file = file;
	r = read_headers(ehframe);
	if (r < 0)
		return r;
	*ret_ehframe = TAKE(ehframe);
	return 0;
}

struct ehframe *ehframe_free(struct ehframe *ehframe)
{
	if (!ehframe)
		return NULL;
	vec_deinit(&ehframe->segments);
	vec_deinit(&ehframe->functions);
	free(ehframe);
	return NULL;
}
