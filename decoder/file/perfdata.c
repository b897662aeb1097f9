/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/file/perfdata.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>

#include "decoder/file/perfattr.h"
#include "decoder/file/perfstream.h"
#include "decoder/util/perfabi.h"

#define complain perfstream_complain

/* The @size bytes of the file at @offset, which the header calls @what. */
static int get_section(struct perfstream *s, const char *what, struct perfabi_section section,
		       struct cursor *ret_section)
{
	if (section.offset > s->size || section.size > s->size - section.offset)
		return complain(s, -EBADMSG,
				"the %s (%" PRIu64 " bytes at offset %" PRIu64
				") lies outside of the file, which has %zu bytes",
				what, section.size, section.offset, s->size);

	*ret_section = cursor_from(s->bytes + section.offset, section.size);
	return 0;
}

static bool feature_is_read(unsigned int feature)
{
	return feature == PERFABI_FEATURE_CPUID || feature == PERFABI_FEATURE_BUILD_ID ||
	       feature == PERFABI_FEATURE_DIR_FORMAT;
}

/*
 * The table of features lies right behind the data section. That of a file that was cut off may be
 * missing; the data do not depend on it.
 */
static int read_features(struct perfstream *s, const struct perfabi_header *header)
{
	uint64_t at = header->data.offset + header->data.size;
	struct perfabi_section section;
	struct cursor table, body;
	int r;

	if (at > s->size)
		return 0;
	table = cursor_from(s->bytes + at, s->size - at);

	for (unsigned int i = 0; i < 64 * ARRAY_LEN(header->features); i++) {
		if (!(header->features[i / 64] >> (i % 64) & 1))
			continue;
		if (cursor_get(&table, sizeof(section), &section) < 0 || section.offset > s->size ||
		    section.size > s->size - section.offset) {
			s->trace->truncated_at = s->size;
			return 0;
		}
		if (!feature_is_read(i))
			continue;
		r = get_section(s, "feature", section, &body) ?: perfstream_feature(s, i, body);
		if (r < 0)
			return r;
	}
	return 0;
}

static int read_attrs(struct perfstream *s, const struct perfabi_header *header)
{
	uint64_t n_ids_left = s->size / sizeof(uint64_t);
	struct perfabi_section section;
	struct cursor attrs, ids;
	int r;

	r = get_section(s, "attr section", header->attrs, &attrs);
	if (r < 0)
		return r;

	while (cursor_left(&attrs) > 0) {
		const uint64_t at = perfstream_offset(s, attrs.pos);

		r = perfattrs_add(&s->attrs, &attrs)
			?: cursor_get(&attrs, sizeof(section), &section);
		if (r == -ENOMEM)
			return complain(s, -ENOMEM, "out of memory");
		if (r < 0)
			return complain(s, r,
					"the event attribute at offset %" PRIu64
					" has a size below 64 or goes beyond its section",
					at);

		r = get_section(s, "section of event ids", section, &ids);
		if (r < 0)
			return r;
		/* No two attrs share ids, so all of them together fit into the file. */
		if (section.size / sizeof(uint64_t) > n_ids_left)
			return complain(s, -EBADMSG,
					"the event attribute at offset %" PRIu64
					" names ids that are another's",
					at);
		n_ids_left -= section.size / sizeof(uint64_t);
		r = perfattrs_add_ids(&s->attrs, ids);
		if (r < 0)
			return complain(s, -ENOMEM, "out of memory");
	}
	return 0;
}

/* Part of the data section may be missing at its end: the file was cut off. */
static int read_data(struct perfstream *s, const struct perfabi_header *header)
{
	const struct perfabi_section *data = &header->data;
	uint64_t size = data->size;
	int r;

	if (size == 0)
		return complain(s, -ENODATA,
				"the header says that there are no data: the recording was not "
				"finished");
	if (data->offset < sizeof(header->magic) || data->offset >= s->size)
		return complain(s, -EBADMSG,
				"the data section (offset %" PRIu64
				") lies outside of the file, which has %zu bytes",
				data->offset, s->size);
	if (size > s->size - data->offset) {
		size = s->size - data->offset;
		s->trace->truncated_at = s->size;
	} else {
		r = read_features(s, header);
		if (r < 0)
			return r;
	}

	return perfstream_read(s, cursor_from(s->bytes + data->offset, (size_t)size));
}

static int read_file_form(struct perfstream *s)
{
	struct cursor c = cursor_from(s->bytes, s->size);
	struct perfabi_header header = {};
	int r;

	/* The oldest form of the header ends before the features. */
	memcpy(&header, c.pos, PERFABI_PIPE_HEADER);
	if (header.size != sizeof(header) &&
	    header.size != offsetof(struct perfabi_header, features))
		return complain(s, -EBADMSG,
				"the header says that it has %" PRIu64
				" bytes; 104 was expected, or 16 in the pipe form",
				header.size);
	r = cursor_get(&c, (size_t)header.size, &header);
	if (r < 0)
		return complain(s, r, "the header of %" PRIu64 " bytes is cut off at %zu",
				header.size, s->size);

	return read_attrs(s, &header) ?: read_data(s, &header);
}

static int read_pipe_form(struct perfstream *s)
{
	s->attr_records = true;
	if (s->size == PERFABI_PIPE_HEADER)
		return complain(s, -ENODATA,
				"holds a header and no records: the recording was not "
				"finished");
	return perfstream_read(
	    s, cursor_from(s->bytes + PERFABI_PIPE_HEADER, s->size - PERFABI_PIPE_HEADER));
}

static int read_magic(struct perfstream *s)
{
	uint64_t magic, header_size;
	/* An empty file is not even mapped. */
	struct cursor c = cursor_from(s->size ? s->bytes : (const uint8_t *)"", s->size);

	if (cursor_get(&c, sizeof(magic), &magic) < 0)
		return complain(s, -EBADMSG, "not a perf.data file: it has only %zu bytes",
				s->size);
	if (magic == PERFABI_MAGIC_SWAPPED)
		return complain(s, -EOPNOTSUPP,
				"recorded on a machine of the other byte order: not supported");
	if (magic != PERFABI_MAGIC)
		return complain(s, -EBADMSG,
				"not a perf.data file: it does not begin with PERFILE2");
	if (cursor_get(&c, sizeof(header_size), &header_size) < 0)
		return complain(s, -EBADMSG, "the header is cut off at %zu bytes", s->size);

	return header_size == PERFABI_PIPE_HEADER ? read_pipe_form(s) : read_file_form(s);
}

int perfdata_parse(const void *bytes, size_t size, const char *name, struct trace **ret_trace,
		   char **reterr_message)
{
	_cleanup_(perfstream_deinit) struct perfstream s = {};

	return perfstream_init(&s, bytes, size, name, reterr_message)
		       ?: read_magic(&s) ?: perfstream_finish(&s, ret_trace);
}
