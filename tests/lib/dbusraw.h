/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Raw D-Bus
 *
 * The bytes that a D-Bus client writes to its socket, for tests of their reader.
 */

#include <stddef.h>
#include <stdint.h>

/* The authentication of an anonymous client, with the NUL before it. */
#define DBUSRAW_AUTH  "\0AUTH ANONYMOUS\r\n"
#define DBUSRAW_BEGIN "BEGIN\r\n"

#define DBUSRAW_PING_SIZE 88

/* Write a call of org.freedesktop.DBus.Peer.Ping, which every peer answers. */
void dbusraw_ping(uint32_t serial, uint8_t ret_bytes[static DBUSRAW_PING_SIZE]);
