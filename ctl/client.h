/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Client
 *
 * Calls to the recorder. Each function says on stderr what went wrong, and returns an exit status
 * of verb.h.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <systemd/sd-bus.h>

#include "base/base.h"

#define CLIENT_COMMAND_SIZE 256 /* with its NUL; longer ones are cut */

/* One entry of a reply's a{sv} that the caller wants. */
struct client_field {
	const char *key;
	char type;   /* 's' 't' 'u' 'b' */
	void *value; /* const char * (the message's), uint64_t, uint32_t, int: left alone if the
		      * reply has no such entry */
};

/* A snapshot that is done. */
struct client_snapshot {
	char *id;
	char *path;
	uint64_t bytes;
	uint64_t bytes_pt;
	uint64_t bytes_overwritten; /* of PT that was asked for, and is gone */
	/* On CLOCK_MONOTONIC: all PT since then is in it, 0: all that was asked for; and when it
	 * was taken. */
	uint64_t complete_since_ns, taken_ns;
	uint32_t n_missing;
};

/* Frees what is in it. */
void client_snapshot_deinit(struct client_snapshot *snapshot);

/* Connect to the recorder's @socket. Return: EXIT_OK and @ret_bus, the caller's; or EXIT_DENIED or
 * EXIT_UNREACHABLE. */
_must_check_ int client_connect(const char *socket, sd_bus **ret_bus);

/* Call a method with arguments as sd_bus_message_append() takes them. @ret_reply is the caller's.
 * Return: EXIT_OK, EXIT_DENIED, EXIT_BUSY, EXIT_UNREACHABLE if ptd went away, or EXIT_FAILED. */
_must_check_ int client_call(sd_bus *bus, const char *method, sd_bus_message **ret_reply,
			     const char *types, ...);

/* Take the wanted fields from the a{sv} at which @message stands; others are skipped.
 * Return: 0, or negative errno: the caller says so by client_bad_reply(). */
_must_check_ int client_read_fields(sd_bus_message *message, const struct client_field *fields,
				    size_t n_fields);

/* What to say and to return when a reply is not what ptd(8) promises. Return: EXIT_FAILED. */
int client_bad_reply(const char *method, int r);

/* What a snapshot is to be of: zeros, of all. */
struct client_scope {
	uint64_t since_ns; /* CLOCK_MONOTONIC: since the source was opened last before that */
	uint32_t pid;
	const char *cpus; /* a list such as 0-3,8 */

	/* What ran, for those who read of the snapshot; and since when, if we ran it, on
	 * CLOCK_MONOTONIC. */
	char command[CLIENT_COMMAND_SIZE];
	uint32_t command_pid;
	uint64_t started_ns;
};

/* Take a snapshot and wait until it is written. @ret_reply, the caller's, may be NULL. Return: as
 * client_call(). */
_must_check_ int client_snapshot(sd_bus *bus, const struct client_scope *scope,
				 sd_bus_message **ret_reply, struct client_snapshot *ret_snapshot);

/* Does the recorder use the software source? Return: as client_call(). */
_must_check_ int client_is_emulated(sd_bus *bus, bool *ret_emulated);
