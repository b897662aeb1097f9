/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/calllog/fdrrecord.h"

#include <endian.h>

/* --- numbers ---------------------------------------------------------------------------------- */

/* Bytes that the caller knows to be there. */
struct fields {
	struct cursor c;
	bool is_big_endian;
};

static void take(struct fields *f, size_t size, void *ret_bytes)
{
	(void)!cursor_get(&f->c, size, ret_bytes);
}

static uint16_t take16(struct fields *f)
{
	uint16_t v = 0;

	take(f, sizeof(v), &v);
	return f->is_big_endian ? be16toh(v) : le16toh(v);
}

static uint32_t take32(struct fields *f)
{
	uint32_t v = 0;

	take(f, sizeof(v), &v);
	return f->is_big_endian ? be32toh(v) : le32toh(v);
}

static uint64_t take64(struct fields *f)
{
	uint64_t v = 0;

	take(f, sizeof(v), &v);
	return f->is_big_endian ? be64toh(v) : le64toh(v);
}

/* --- the header ------------------------------------------------------------------------------- */

static bool read_header(struct fields f, struct fdrheader *ret_header)
{
	const uint16_t version = take16(&f), type = take16(&f);

	if (version == 0 || version > FDR_VERSION_MAX || type != FDR_TYPE)
		return false;
	*ret_header = (struct fdrheader){ .format = { .version = version,
						      .is_big_endian = f.is_big_endian } };
	ret_header->flags = take32(&f);
	ret_header->frequency = take64(&f);
	ret_header->data_size = take64(&f);
	return true;
}

int fdrheader_get(struct cursor *c, struct fdrheader *ret_header)
{
	struct cursor header;
	int r = cursor_get_sub(c, FDR_HEADER_SIZE, &header);

	if (r < 0)
		return r;
	if (read_header((struct fields){ .c = header }, ret_header) ||
	    read_header((struct fields){ .c = header, .is_big_endian = true }, ret_header))
		return 0;
	return -EBADMSG;
}

/* --- records ---------------------------------------------------------------------------------- */

static int read_function(struct fields *f, struct fdrrecord *record, const char **reterr_fault)
{
	const uint32_t word = take32(f);

	record->is_function = true;
	record->kind = f->is_big_endian ? word >> 28 & 7 : word >> 1 & 7;
	record->function = f->is_big_endian ? word & FDR_FUNCTION_MAX : word >> 4;
	record->has_delta = true;
	record->delta = take32(f);
	if (record->kind < _FDR_ACTIONS)
		return 0;
	*reterr_fault = "a function record of an unknown action";
	return -EBADMSG;
}

static int read_event(struct fields *f, uint16_t version, struct fdrrecord *record,
		      const char **reterr_fault)
{
	const uint32_t size = take32(f);

	record->size = size;
	record->has_delta = version >= 5 || record->kind == FDR_TYPED_EVENT;
	if (record->has_delta)
		record->delta = take32(f);
	else
		record->time = take64(f);
	if (record->kind == FDR_TYPED_EVENT)
		record->type = take16(f);
	else if (version == 4)
		record->cpu = take16(f);
	if (size > 0 && size <= INT32_MAX)
		return 0;
	*reterr_fault = "an event without data";
	return -EBADMSG;
}

static int read_metadata(struct fields *f, uint8_t first, uint16_t version,
			 struct fdrrecord *record, const char **reterr_fault)
{
	record->kind = f->is_big_endian ? first & 0x7f : first >> 1;
	switch (record->kind) {
	case FDR_NEW_BUFFER:
	case FDR_PID:
		/* Version 1 is documented with 16 bits, and was written with 32. */
		record->id = take32(f);
		if (version == 1 && f->is_big_endian && (record->id & UINT16_MAX) == 0)
			record->id >>= 16;
		return 0;
	case FDR_NEW_CPU:
		record->cpu = take16(f);
		record->time = take64(f);
		return 0;
	case FDR_TSC_WRAP:
		record->time = take64(f);
		return 0;
	case FDR_WALL_TIME:
		record->time = take64(f);
		record->micros = take32(f);
		return 0;
	case FDR_CUSTOM_EVENT:
	case FDR_TYPED_EVENT:
		return read_event(f, version, record, reterr_fault);
	case FDR_BUFFER_EXTENTS:
		record->size = take64(f);
		return 0;
	case FDR_CALL_ARGUMENT:
		record->value = take64(f);
		return 0;
	case FDR_END_OF_BUFFER:
		if (version == 1)
			return 0;
		*reterr_fault = "an end of the buffer, which only version 1 has";
		return -EBADMSG;
	default:
		*reterr_fault = "a metadata record of an unknown kind";
		return -EBADMSG;
	}
}

int fdrrecord_get(struct cursor *c, const struct fdrformat *format, struct fdrrecord *ret_record,
		  const char **reterr_fault)
{
	struct fields f = { .is_big_endian = format->is_big_endian };
	struct fdrrecord record = {};
	struct cursor next = *c;
	bool is_metadata;
	uint8_t first;
	int r;

	if (cursor_left(c) == 0)
		return -ENODATA;
	first = *c->pos;
	is_metadata = first & (format->is_big_endian ? 0x80 : 1);
	r = cursor_get_sub(&next, is_metadata ? FDR_METADATA_SIZE : FDR_FUNCTION_SIZE, &f.c);
	if (r < 0)
		return -ENODATA;
	if (is_metadata) {
		take(&f, 1, &first);
		r = read_metadata(&f, first, format->version, &record, reterr_fault);
	} else {
		r = read_function(&f, &record, reterr_fault);
	}
	if (r < 0)
		return r;
	*c = next;
	*ret_record = record;
	return 0;
}
