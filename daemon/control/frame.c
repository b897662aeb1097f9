/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/control/frame.h"

#include <endian.h>
#include <errno.h>
#include <stdint.h>
#include <string.h>

#define PROTOCOL_VERSION 1

static int next_line(const uint8_t *bytes, size_t size, bool *begun, size_t *ret_size)
{
	static const char begin[] = "BEGIN\r\n";
	const uint8_t *end = memchr(bytes, '\n', size < FRAME_LINE_MAX ? size : FRAME_LINE_MAX);
	size_t n;

	if (!end)
		return size < FRAME_LINE_MAX ? 0 : -EMSGSIZE;
	n = (size_t)(end - bytes) + 1;
	*begun = n == strlen(begin) && memcmp(bytes, begin, n) == 0;
	*ret_size = n;
	return 1;
}

static int next_message(const uint8_t *bytes, size_t size, size_t *ret_size)
{
	struct {
		uint8_t endian, type, flags, version;
		uint32_t body_size, serial, fields_size;
	} header;
	uint64_t body, fields, n;

	if (size < sizeof(header))
		return 0;
	memcpy(&header, bytes, sizeof(header));
	if ((header.endian != 'l' && header.endian != 'B') || header.version != PROTOCOL_VERSION)
		return -EBADMSG;
	body = header.endian == 'l' ? le32toh(header.body_size) : be32toh(header.body_size);
	fields = header.endian == 'l' ? le32toh(header.fields_size) : be32toh(header.fields_size);
	n = sizeof(header) + ((fields + 7) & ~(uint64_t)7) + body;
	if (n > FRAME_SIZE_MAX)
		return -EMSGSIZE;
	if (n > size)
		return 0;
	*ret_size = n;
	return 1;
}

int frame_next(const void *bytes, size_t size, bool *begun, size_t *ret_size)
{
	return *begun ? next_message(bytes, size, ret_size)
		      : next_line(bytes, size, begun, ret_size);
}
