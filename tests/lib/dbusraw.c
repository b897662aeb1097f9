/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "tests/lib/dbusraw.h"

#include <assert.h>
#include <string.h>

#define CALL     1
#define PROTOCOL 1

/* Fields of the header. */
#define FIELD_PATH      1
#define FIELD_INTERFACE 2
#define FIELD_MEMBER    3

static size_t put_field(uint8_t *bytes, size_t at, uint8_t code, char type, const char *text)
{
	const uint32_t n = (uint32_t)strlen(text);

	at = (at + 7) & ~(size_t)7;
	bytes[at++] = code;
	bytes[at++] = 1; /* the signature: of one type */
	bytes[at++] = (uint8_t)type;
	bytes[at++] = 0;
	memcpy(bytes + at, &n, sizeof(n));
	memcpy(bytes + at + sizeof(n), text, n + 1);
	return at + sizeof(n) + n + 1;
}

void dbusraw_ping(uint32_t serial, uint8_t ret_bytes[static DBUSRAW_PING_SIZE])
{
	const struct {
		uint8_t endian, type, flags, version;
		uint32_t body_size, serial, fields_size;
	} header = { 'l', CALL, 0, PROTOCOL, 0, serial, 0 };
	size_t at = sizeof(header);
	uint32_t size;

	memset(ret_bytes, 0, DBUSRAW_PING_SIZE);
	memcpy(ret_bytes, &header, sizeof(header));
	at = put_field(ret_bytes, at, FIELD_PATH, 'o', "/");
	at = put_field(ret_bytes, at, FIELD_INTERFACE, 's', "org.freedesktop.DBus.Peer");
	at = put_field(ret_bytes, at, FIELD_MEMBER, 's', "Ping");
	size = (uint32_t)(at - sizeof(header));
	memcpy(ret_bytes + 12, &size, sizeof(size));
	assert(((at + 7) & ~(size_t)7) == DBUSRAW_PING_SIZE);
}
