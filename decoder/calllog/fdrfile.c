/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/calllog/fdrfile.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "ptd/record.h"
#include "util/message.h"

#define WORD 8 /* zeros between blocks are as many bytes, or a multiple of that */

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

/*
 * Get the header. Return: 0; -EBADMSG: it is not one of a version from 1 to FDR_VERSION_MAX, or not
 *         of FDR_TYPE.
 */
static int fdrheader_get(struct cursor *c, struct fdrheader *ret_header)
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

/*
 * Get the next record, without an event's data, which are behind it.
 *
 * Return: 0; -ENODATA: the bytes end in it; -EBADMSG, and @reterr_fault: what is wrong with it, a
 *         text that stays.
 */
static int fdrrecord_get(struct cursor *c, const struct fdrformat *format,
			 struct fdrrecord *ret_record, const char **reterr_fault)
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

/* --- events and blocks ------------------------------------------------------------------------ */

static bool has_data(const struct fdrrecord *record)
{
	return !record->is_function &&
	       (record->kind == FDR_CUSTOM_EVENT || record->kind == FDR_TYPED_EVENT);
}

bool fdrfile_is_event(const struct fdrrecord *record)
{
	return has_data(record) || (!record->is_function && record->kind == FDR_CALL_ARGUMENT);
}

int fdrwindow_data(struct logwindow *window, const struct fdrfile *file, uint64_t offset,
		   const struct fdrrecord *record, struct cursor *ret_data, char **reterr_message)
{
	const uint64_t size = has_data(record) ? record->size : 0;
	const size_t n = size < FDRFILE_DATA_MAX ? (size_t)size : FDRFILE_DATA_MAX;
	struct cursor c;
	int r;

	*ret_data = cursor_from(NULL, 0);
	if (n == 0)
		return 0;
	r = logwindow_look(window, &file->log, offset - size, offset, n, &c, reterr_message);
	return r < 0 ? r : cursor_get_sub(&c, n, ret_data);
}

int fdrwindow_get(struct logwindow *window, const struct fdrfile *file, uint64_t end,
		  uint64_t *offset, struct fdrrecord *ret_record, const char **reterr_fault,
		  char **reterr_message)
{
	struct fdrrecord record;
	const uint8_t *begin;
	uint64_t size;
	struct cursor c;
	int r;

	r = logwindow_look(window, &file->log, *offset, end, FDR_METADATA_SIZE, &c, reterr_message);
	if (r < 0)
		return r;
	begin = c.pos;
	r = fdrrecord_get(&c, &file->header.format, &record, reterr_fault);
	if (r < 0)
		return r;
	size = (uint64_t)(c.pos - begin);
	if (has_data(&record))
		size += record.size;
	if (size > end - *offset || size > file->log.size - *offset)
		return -ENODATA;
	*offset += size;
	*ret_record = record;
	return 0;
}

/* --- the file --------------------------------------------------------------------------------- */

/*
 * Return: whether the header is of a log of XRay's basic mode, which has other records: version 1
 *         to 3, type 0. That is so little that the name must be that of a log, too.
 */
static bool is_basic(const char *path, const uint8_t bytes[static 4])
{
	const char *name = basename(path);

	return strncmp(name, FDRFILE_PREFIX, strlen(FDRFILE_PREFIX)) == 0 && bytes[0] >= 1 &&
	       bytes[0] <= FDRFILE_BASIC_MAX && bytes[1] == 0 && bytes[2] == 0 && bytes[3] == 0;
}

bool fdrfile_is(const char *path)
{
	_cleanup_(fd_closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	uint8_t bytes[FDR_HEADER_SIZE];
	struct fdrheader header;
	struct cursor c;
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) ||
	    pread(fd, bytes, sizeof(bytes), 0) != sizeof(bytes))
		return false;
	c = cursor_from(bytes, sizeof(bytes));
	return fdrheader_get(&c, &header) == 0 || is_basic(path, bytes);
}

int fdrfile_open(struct fdrfile *file, const char *path, struct logwindow *window,
		 char **reterr_message)
{
	struct cursor c;
	int r = logfile_open(&file->log, path, window, reterr_message);

	if (r == 0)
		r = logwindow_look(window, &file->log, 0, file->log.size, FDR_HEADER_SIZE, &c,
				   reterr_message);
	if (r == 0 && cursor_left(&c) >= FDR_HEADER_SIZE && is_basic(path, c.pos))
		r = message_set(reterr_message, -EBADMSG,
				"%s: is a log of XRay's basic mode; only logs of flight data "
				"recorder mode are read (XRAY_OPTIONS=xray_mode=xray-fdr)",
				file->log.path);
	if (r == 0 && fdrheader_get(&c, &file->header) < 0)
		r = message_set(reterr_message, -EBADMSG,
				"%s: byte 0: expected the header of a flight data recorder file of "
				"version 1 to %d",
				file->log.path, FDR_VERSION_MAX);
	return r;
}

void fdrfile_deinit(struct fdrfile *file)
{
	logfile_deinit(&file->log);
}

/* --- blocks ----------------------------------------------------------------------------------- */

/* A file that is gone through. */
struct scan {
	const struct fdrfile *file;
	struct logwindow *window;
	struct fdrscan *found;
	char **reterr_message;

	uint64_t offset;
	struct fdrblock block; /* which begins at: */
	uint64_t begin;
	uint64_t end;      /* of the block, as the file says */
	uint64_t boundary; /* version 1: of the buffer that the block is in */
};

/* The record at s->offset is wrong. Return: 1; or negative errno. */
static int note_fault(struct scan *s, const char *fault)
{
	const int r = s->found->fault(s->found->userdata, s->file, s->offset, fault);

	return r < 0 ? r : 1;
}

/* Get the next record. Return: 0; 1: it is wrong, and that was noted; or negative errno. */
static int get(struct scan *s, struct fdrrecord *ret_record)
{
	const char *fault = NULL;
	const int r = fdrwindow_get(s->window, s->file, s->end, &s->offset, ret_record, &fault,
				    s->reterr_message);

	if (r == -ENODATA) {
		s->block.is_cut = s->block.is_cut || s->end >= s->file->log.size;
		return note_fault(s, s->block.is_cut ? "the file ends inside a record"
						     : "the block ends inside a record");
	}
	return r == -EBADMSG ? note_fault(s, fault) : r;
}

/* The next record of the head must be of the kind @kind. Return: as get(). */
static int get_head(struct scan *s, enum fdr_kind kind, struct fdrrecord *ret_record)
{
	static const char *const missing[_FDR_KINDS] = {
		[FDR_NEW_BUFFER] = "expected a NewBuffer record",
		[FDR_WALL_TIME] = "expected a WallClockTime record",
		[FDR_NEW_CPU] = "expected a NewCPUId record",
		[FDR_PID] = "expected a Pid record",
	};
	const uint64_t at = s->offset;
	const int r = get(s, ret_record);

	if (r != 0 || (!ret_record->is_function && ret_record->kind == kind))
		return r;
	s->offset = at;
	return note_fault(s, missing[kind]);
}

/* Read what a block begins with. Return: as get(). */
static int scan_head(struct scan *s)
{
	const uint16_t version = s->file->header.format.version;
	struct fdrrecord record;
	int r;

	r = get_head(s, FDR_NEW_BUFFER, &record);
	if (r != 0)
		return r;
	s->block.tid = record.id;
	r = get_head(s, FDR_WALL_TIME, &record);
	if (r != 0)
		return r;
	r = version >= 3 ? get_head(s, FDR_PID, &record) : get(s, &record);
	if (r == 0 && !record.is_function && record.kind == FDR_PID) {
		s->block.pid = record.id;
		r = get_head(s, FDR_NEW_CPU, &record);
	}
	if (r != 0)
		return r;
	if (record.is_function || record.kind != FDR_NEW_CPU) {
		s->offset -= record.is_function ? FDR_FUNCTION_SIZE : FDR_METADATA_SIZE;
		return note_fault(s, "expected a NewCPUId record");
	}
	s->block.cpu = record.cpu;
	s->block.time = record.time;
	return 0;
}

/* The record at @at is no part of a block's calls. Return: as note_fault(). */
static int refuse(struct scan *s, uint64_t at, const char *fault)
{
	s->offset = at;
	return note_fault(s, fault);
}

/*
 * Look at a record of the calls. @has_arguments: the one before it was a function's that may have
 * arguments, or an argument of it. In version 1 these are the functions whose action says so;
 * llvm-xray takes arguments of later versions behind any function.
 *
 * Return: 0; 1: it is wrong, and that was noted; 2: the calls end; or negative errno.
 */
static int scan_record(struct scan *s, bool *has_arguments)
{
	const uint64_t at = s->offset;
	struct fdrrecord record;
	int r = get(s, &record);

	if (r != 0)
		return r;
	s->block.end = s->offset;
	if (record.is_function) {
		*has_arguments =
		    s->file->header.format.version > 1 || record.kind == FDR_ENTRY_ARGUMENTS;
		s->found->n_calls++;
		return s->found->function(s->found->userdata, record.function);
	}
	if (fdrfile_is_event(&record) && (record.kind != FDR_CALL_ARGUMENT || *has_arguments)) {
		struct cursor data;

		r = fdrwindow_data(s->window, s->file, s->offset, &record, &data,
				   s->reterr_message);
		if (r == 0)
			r = s->found->event(s->found->userdata, &record, data);
		if (r < 0)
			return r;
	}
	switch (record.kind) {
	case FDR_CALL_ARGUMENT:
		r = *has_arguments ? 0 : refuse(s, at, "an argument that belongs to no function");
		break;
	case FDR_END_OF_BUFFER:
		s->block.end = at;
		return 2;
	case FDR_NEW_CPU:
	case FDR_TSC_WRAP:
	case FDR_CUSTOM_EVENT:
	case FDR_TYPED_EVENT:
		*has_arguments = false;
		break;
	default:
		r = refuse(s, at, "a record that does not belong among calls");
		break;
	}
	if (r != 0)
		s->block.end = at;
	return r;
}

/* Return: whether the bytes at @offset are of a kind that begins a block without extents. */
static int begins_block(struct scan *s, bool *ret_does)
{
	struct fdrrecord record;
	const char *fault;
	uint64_t at = s->offset;
	int r = fdrwindow_get(s->window, s->file, s->end, &at, &record, &fault, s->reterr_message);

	*ret_does = r == 0 && !record.is_function &&
		    (record.kind == FDR_NEW_BUFFER || record.kind == FDR_BUFFER_EXTENTS);
	return r == -ENODATA || r == -EBADMSG ? 0 : r;
}

/* Read the calls of a block. @has_end: it ends where s->end says. Return: as get(). */
static int scan_calls(struct scan *s, bool has_end)
{
	bool has_arguments = false, is_next = false;
	int r = 0;

	s->block.begin = s->block.end = s->offset;
	while (r == 0 && s->offset < s->end && s->offset < s->file->log.size) {
		if (!has_end)
			r = begins_block(s, &is_next);
		if (r == 0 && is_next)
			break;
		if (r == 0)
			r = scan_record(s, &has_arguments);
	}
	return r == 2 ? 0 : r;
}

/* Add the block. @r is what became of it: 1 if the rest of it cannot be read. */
static int add_block(struct scan *s, int r)
{
	const uint64_t end = s->end < s->file->log.size ? s->end : s->file->log.size;

	if (r < 0)
		return r;
	if (s->block.end < s->block.begin)
		s->block.end = s->block.begin;
	if (r > 0)
		s->block.n_lost = end - s->block.end;
	if (s->found->blocks.n == FDRFILE_BLOCKS_MAX)
		return message_set(s->reterr_message, -EFBIG,
				   "%s: byte %" PRIu64 ": more than %u blocks", s->file->log.path,
				   s->begin, FDRFILE_BLOCKS_MAX);
	return vec_push(&s->found->blocks, s->block);
}

static void begin_block(struct scan *s)
{
	s->begin = s->offset;
	s->block = (struct fdrblock){
		.pid = PTD_ID_UNKNOWN, .tid = PTD_ID_UNKNOWN, .begin = s->offset, .end = s->offset
	};
}

/* Pass the zeros that may be between blocks. */
static int pass_zeros(struct scan *s)
{
	static const uint8_t zeros[WORD];
	struct cursor c;
	int r;

	for (; s->offset < s->file->log.size; s->offset += WORD) {
		r = logwindow_look(s->window, &s->file->log, s->offset, s->file->log.size, WORD, &c,
				   s->reterr_message);
		if (r < 0)
			return r;
		if (memcmp(c.pos, zeros, cursor_left(&c) < WORD ? cursor_left(&c) : WORD) != 0)
			return 0;
	}
	s->offset = s->file->log.size;
	return 0;
}

/* Return: 0, and whether a NewBuffer and a WallClockTime record stand at @offset; or -errno. */
static int begins_oldest(struct scan *s, uint64_t offset, bool *ret_does)
{
	struct fdrrecord first = {}, second = {};
	const char *fault;
	struct cursor c;
	int r;

	*ret_does = false;
	if (offset >= s->file->log.size)
		return 0;
	r = logwindow_look(s->window, &s->file->log, offset, s->file->log.size,
			   2 * FDR_METADATA_SIZE, &c, s->reterr_message);
	if (r < 0 || fdrrecord_get(&c, &s->file->header.format, &first, &fault) < 0 ||
	    fdrrecord_get(&c, &s->file->header.format, &second, &fault) < 0)
		return r;
	*ret_does = !first.is_function && first.kind == FDR_NEW_BUFFER && !second.is_function &&
		    second.kind == FDR_WALL_TIME;
	return 0;
}

/*
 * Version 1: find the block behind one whose end has been read. The document has it that all blocks
 * have the size in the header, and another header may follow; that size may also be that of all
 * blocks together, and of a single block the rest may be missing.
 */
static int pass_rest(struct scan *s)
{
	bool begins = false, begins_behind = false;
	int r = pass_zeros(s);

	if (r == 0)
		r = begins_oldest(s, s->offset, &begins);
	/* The header looks like the NewBuffer record of thread 256. */
	if (r == 0)
		r = begins_oldest(s, s->offset + FDR_HEADER_SIZE, &begins_behind);
	if (r < 0)
		return r;
	if (!begins && begins_behind)
		s->offset += FDR_HEADER_SIZE;
	else if (!begins && s->offset < s->boundary)
		s->offset = s->boundary;
	return 0;
}

static int scan_oldest(struct scan *s)
{
	const uint64_t size = s->file->header.data_size, left = s->file->log.size - s->offset;
	int r;

	begin_block(s);
	if (s->offset >= s->boundary)
		s->boundary = size > 0 && size < left ? s->offset + size : s->file->log.size;
	s->end = s->boundary;
	r = scan_head(s);
	if (r == 0)
		r = scan_calls(s, true);
	r = add_block(s, r);
	if (r < 0)
		return r;
	if (s->block.n_lost > 0 || s->block.is_cut) {
		s->offset = s->boundary;
		return 0;
	}
	return pass_rest(s);
}

/*
 * The others: read the record that says how large the block is. In version 2, it may be missing.
 *
 * Return: 0, and s->end and whether it is there; 1: it is wrong; or negative errno.
 */
static int scan_extents(struct scan *s, bool *ret_has_extents)
{
	const uint64_t at = s->offset;
	struct fdrrecord record;
	int r = get(s, &record);

	if (r != 0)
		return r;
	*ret_has_extents = !record.is_function && record.kind == FDR_BUFFER_EXTENTS;
	if (*ret_has_extents) {
		s->block.is_cut = record.size > s->file->log.size - s->offset;
		if (!s->block.is_cut)
			s->end = s->offset + record.size;
		return 0;
	}
	s->offset = at;
	if (s->file->header.format.version == 2 && !record.is_function &&
	    record.kind == FDR_NEW_BUFFER)
		return 0;
	return note_fault(s, "expected a BufferExtents record");
}

static int scan_newer(struct scan *s)
{
	bool has_extents = false;
	int r;

	begin_block(s);
	s->end = s->file->log.size;
	r = scan_extents(s, &has_extents);
	/* A thread may have claimed a buffer, and have had no call. */
	if (r == 0 && has_extents && s->offset == s->end)
		return 0;
	if (r == 0)
		r = scan_head(s);
	if (r == 0)
		r = scan_calls(s, has_extents);
	if (r == 0 && s->block.is_cut)
		r = note_fault(s, "the file ends inside a block");
	r = add_block(s, r);
	if (has_extents || s->block.n_lost > 0)
		s->offset = s->end;
	return r;
}

int fdrfile_scan(const struct fdrfile *file, struct logwindow *window, struct fdrscan *scan,
		 char **reterr_message)
{
	struct scan s = { .file = file,
			  .window = window,
			  .found = scan,
			  .reterr_message = reterr_message,
			  .offset = FDR_HEADER_SIZE };
	const bool is_oldest = file->header.format.version == 1;
	int r = 0;

	while (r == 0 && s.offset < file->log.size) {
		if (!is_oldest)
			r = pass_zeros(&s);
		if (r == 0 && s.offset < file->log.size)
			r = is_oldest ? scan_oldest(&s) : scan_newer(&s);
	}
	return r;
}
