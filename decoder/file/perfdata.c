/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/file/perfdata.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>

#include "decoder/file/perfattr.h"
#include "decoder/file/perfstream.h"
#include "util/perf/perfabi.h"

#define complain perfstream_complain

/* Read the bytes of the file that the header calls @what, which the caller frees. */
static int get_section(struct perfstream *s, const char *what, struct perfabi_section section,
		       uint8_t **ret_bytes, struct cursor *ret_section)
{
	_cleanup_(freep) uint8_t *bytes = NULL;
	int r;

	if (section.offset > s->file.size || section.size > s->file.size - section.offset)
		return complain(s, -EBADMSG,
				"the %s (%" PRIu64 " bytes at offset %" PRIu64
				") lies outside of the file, which has %" PRIu64 " bytes",
				what, section.size, section.offset, s->file.size);
	if (section.size > PERFSTREAM_BYTES_MAX)
		return complain(s, -EFBIG,
				"the %s has %" PRIu64 " bytes; at most 64 MiB were expected", what,
				section.size);
	bytes = malloc(section.size + 1);
	if (!bytes)
		return complain(s, -ENOMEM, "out of memory");
	r = perfstream_bytes(s, section.offset, bytes, section.size);
	if (r < 0)
		return r;
	*ret_section = cursor_from(bytes, section.size);
	*ret_bytes = TAKE(bytes);
	return 0;
}

static bool feature_is_read(unsigned int feature)
{
	return feature == PERFABI_FEATURE_CPUID || feature == PERFABI_FEATURE_BUILD_ID ||
	       feature == PERFABI_FEATURE_DIR_FORMAT || feature == PERFABI_FEATURE_TRACING_DATA ||
	       feature == PERFABI_FEATURE_BPF_PROG_INFO;
}

static int read_feature(struct perfstream *s, unsigned int feature, struct perfabi_section section)
{
	_cleanup_(freep) uint8_t *bytes = NULL;
	struct cursor body;

	return get_section(s, "feature", section, &bytes, &body)
		   ?: perfstream_feature(s, feature, body, section.offset);
}

/*
 * The table of features lies right behind the data section. That of a file that was cut off may be
 * missing; the data do not depend on it.
 */
static int read_features(struct perfstream *s, const struct perfabi_header *header)
{
	struct perfabi_section sections[64 * ARRAY_LEN(header->features)];
	const uint64_t at = header->data.offset + header->data.size;
	struct perfabi_section section;
	struct cursor table;
	size_t n;
	int r;

	if (at > s->file.size)
		return 0;
	n = s->file.size - at < sizeof(sections) ? (size_t)(s->file.size - at) : sizeof(sections);
	r = perfstream_bytes(s, at, sections, n);
	if (r < 0)
		return r;
	table = cursor_from(sections, n);

	for (unsigned int i = 0; i < 64 * ARRAY_LEN(header->features); i++) {
		if (!(header->features[i / 64] >> (i % 64) & 1))
			continue;
		if (cursor_get(&table, sizeof(section), &section) < 0 ||
		    section.offset > s->file.size || section.size > s->file.size - section.offset) {
			s->trace->truncated_at = s->file.size;
			return 0;
		}
		r = feature_is_read(i) ? read_feature(s, i, section) : 0;
		if (r < 0)
			return r;
	}
	return 0;
}

static int read_ids(struct perfstream *s, struct perfabi_section section)
{
	_cleanup_(freep) uint8_t *bytes = NULL;
	struct cursor ids;
	int r;

	r = get_section(s, "section of event ids", section, &bytes, &ids);
	if (r < 0)
		return r;
	return perfattrs_add_ids(&s->attrs, ids) < 0 ? complain(s, -ENOMEM, "out of memory") : 0;
}

static int read_attrs(struct perfstream *s, const struct perfabi_header *header)
{
	_cleanup_(freep) uint8_t *bytes = NULL;
	uint64_t n_ids_left = s->file.size / sizeof(uint64_t);
	struct perfabi_section section;
	struct cursor attrs;
	int r;

	r = get_section(s, "attr section", header->attrs, &bytes, &attrs);
	if (r < 0)
		return r;

	while (cursor_left(&attrs) > 0) {
		const uint64_t at = header->attrs.offset + (uint64_t)(attrs.pos - bytes);

		r = perfattrs_add(&s->attrs, &attrs)
			?: cursor_get(&attrs, sizeof(section), &section);
		if (r == -ENOMEM)
			return complain(s, -ENOMEM, "out of memory");
		if (r < 0)
			return complain(s, r,
					"the event attribute at offset %" PRIu64
					" has a size below 64 or goes beyond its section",
					at);

		/* No two attrs share ids, so all of them together fit into the file. */
		if (section.size <= s->file.size && section.size / sizeof(uint64_t) > n_ids_left)
			return complain(s, -EBADMSG,
					"the event attribute at offset %" PRIu64
					" names ids that are another's",
					at);
		n_ids_left -= section.size / sizeof(uint64_t);
		r = read_ids(s, section);
		if (r < 0)
			return r;
	}
	return 0;
}

/* perf writes how much data there are, and the features behind them, when it ends. One that was
 * killed has written neither, but all data. */
static int read_unfinished(struct perfstream *s, uint64_t offset)
{
	s->is_endless = true;
	s->trace->complaints[TRACE_COMPLAINT_END] =
	    "the recording was not finished: its header says that there are no data. What lies "
	    "behind it is decoded, without what perf record writes when it ends, such as the "
	    "build-ids";
	return perfstream_read(s, offset, s->file.size - offset);
}

/* Part of the data section may be missing at its end: the file was cut off. */
static int read_data(struct perfstream *s, const struct perfabi_header *header)
{
	const struct perfabi_section *data = &header->data;
	uint64_t size = data->size;
	int r;

	if (size == 0 && data->offset >= s->file.size)
		return complain(s, -ENODATA,
				"the header says that there are no data: the recording was not "
				"finished");
	if (data->offset < sizeof(header->magic) || data->offset >= s->file.size)
		return complain(s, -EBADMSG,
				"the data section (offset %" PRIu64
				") lies outside of the file, which has %" PRIu64 " bytes",
				data->offset, s->file.size);
	if (size == 0)
		return read_unfinished(s, data->offset);
	if (size > s->file.size - data->offset) {
		size = s->file.size - data->offset;
		s->trace->truncated_at = s->file.size;
	} else {
		r = read_features(s, header);
		if (r < 0)
			return r;
	}

	return perfstream_read(s, data->offset, size);
}

static int read_file_form(struct perfstream *s)
{
	struct perfabi_header header = {};
	int r;

	/* The oldest form of the header ends before the features. */
	r = perfstream_bytes(s, 0, &header, PERFABI_PIPE_HEADER);
	if (r < 0)
		return r;
	if (header.size != sizeof(header) &&
	    header.size != offsetof(struct perfabi_header, features))
		return complain(s, -EBADMSG,
				"the header says that it has %" PRIu64
				" bytes; 104 was expected, or 16 in the pipe form",
				header.size);
	if (header.size > s->file.size)
		return complain(s, -EBADMSG,
				"the header of %" PRIu64 " bytes is cut off at %" PRIu64,
				header.size, s->file.size);
	return perfstream_bytes(s, 0, &header, (size_t)header.size) ?: read_attrs(s, &header)
		       ?: read_data(s, &header);
}

static int read_pipe_form(struct perfstream *s)
{
	s->attr_records = true;
	s->is_endless = true;
	if (s->file.size == PERFABI_PIPE_HEADER)
		return complain(s, -ENODATA,
				"holds a header and no records: the recording was not "
				"finished");
	return perfstream_read(s, PERFABI_PIPE_HEADER, s->file.size - PERFABI_PIPE_HEADER);
}

static int read_magic(struct perfstream *s)
{
	uint8_t start[PERFABI_PIPE_HEADER];
	const size_t n = s->file.size < sizeof(start) ? (size_t)s->file.size : sizeof(start);
	struct cursor c = cursor_from(start, n);
	uint64_t magic, header_size;
	int r;

	r = perfstream_bytes(s, 0, start, n);
	if (r < 0)
		return r;
	if (cursor_get(&c, sizeof(magic), &magic) < 0)
		return complain(s, -EBADMSG, "not a perf.data file: it has only %" PRIu64 " bytes",
				s->file.size);
	if (magic == PERFABI_MAGIC_SWAPPED)
		return complain(s, -EOPNOTSUPP,
				"recorded on a machine of the other byte order: not supported");
	if (magic != PERFABI_MAGIC)
		return complain(s, -EBADMSG,
				"not a perf.data file: it does not begin with PERFILE2");
	if (cursor_get(&c, sizeof(header_size), &header_size) < 0)
		return complain(s, -EBADMSG, "the header is cut off at %" PRIu64 " bytes",
				s->file.size);

	return header_size == PERFABI_PIPE_HEADER ? read_pipe_form(s) : read_file_form(s);
}

/* The other files have records and nothing else. */
static int read_others(struct perfstream *s, const struct perfstream_file *files, size_t n_files)
{
	int r;

	if (s->dir_format == 0)
		return 0;
	if (s->dir_format != PERFABI_DIR_FORMAT_THREADS)
		return complain(s, -EOPNOTSUPP,
				"is part of a directory of version %" PRIu64 "; 1 was expected",
				s->dir_format);
	if (n_files == 1)
		return complain(s, -ENODATA,
				"recorded by several threads (perf record --threads): the files "
				"data.0 and so on are not here; give the directory");

	for (size_t i = 1; i < n_files; i++) {
		perfstream_next_file(s, &files[i]);
		r = files[i].size > 0 ? perfstream_read(s, 0, files[i].size) : 0;
		if (r < 0)
			return r;
	}
	perfstream_next_file(s, &files[0]);
	return 0;
}

int perfdata_parse(const struct perfstream_file *files, size_t n_files, struct reading *reading,
		   struct trace **ret_trace, char **reterr_message)
{
	_cleanup_(perfstream_deinit) struct perfstream s = {};

	return perfstream_init(&s, &files[0], reading, reterr_message)
		       ?: read_magic(&s)
		       ?: read_others(&s, files, n_files)
		       ?: perfstream_finish(&s, ret_trace);
}
