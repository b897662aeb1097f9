/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Dbusraw
 *
 * What a D-Bus client writes to its socket, byte by byte, for the tests of whoever reads it.
 */

#include <stddef.h>
#include <stdint.h>

/* By which a client that is nobody in particular begins, with the NUL in front. */
#define DBUSRAW_AUTH  "\0AUTH ANONYMOUS\r\n"
#define DBUSRAW_BEGIN "BEGIN\r\n"

#define DBUSRAW_PING_SIZE 88

/* A call of org.freedesktop.DBus.Peer.Ping, which every peer answers. */
void dbusraw_ping(uint32_t serial, uint8_t ret_bytes[static DBUSRAW_PING_SIZE]);
