/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Client
 *
 * Calls methods of the recorder. Each function reports errors on standard error and returns an exit
 * status of verb.h.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <systemd/sd-bus.h>

#include "base/base.h"

#define CLIENT_COMMAND_SIZE 256 /* with its NUL; longer commands are cut */
#define CLIENT_TRIGGER_SIZE 256 /* likewise */

/* One entry of the a{sv} in a reply that the caller wants. */
struct client_field {
	const char *key;
	char type;   /* 's' 't' 'u' 'b' */
	void *value; /* to const char * (borrowed from the message), uint64_t, uint32_t or int; not
		      * set if the reply has no such entry */
};

/* A complete snapshot. */
struct client_snapshot {
	char *id;
	char *path;
	uint64_t bytes;
	uint64_t bytes_pt;
	uint64_t bytes_overwritten; /* of requested PT */
	/* On CLOCK_MONOTONIC: the snapshot has all PT since the first time (0: all that was
	 * requested), and was taken at the second. */
	uint64_t complete_since_ns, taken_ns;
	uint32_t n_missing, n_without_room; /* objects; the latter are among the former */
};

/* Free what the struct owns. */
void client_snapshot_deinit(struct client_snapshot *snapshot);

/* Return: 0 if a recorder can be reached at @socket; -EACCES if the caller may not; or another
 * negative errno. */
_must_check_ int client_probe(const char *socket);

/* Connect to the control socket @socket. Return: EXIT_OK and @ret_bus, which is the caller's; or
 * EXIT_DENIED or EXIT_UNREACHABLE. */
_must_check_ int client_connect(const char *socket, sd_bus **ret_bus);

/* Has the ptd to which @bus was connected ended? */
bool client_is_closed(sd_bus *bus);

/*
 * If ptd has ended since @bus was connected, connect to the next one, for which this waits some
 * seconds.
 *
 * Return: EXIT_OK, and @ret_is_other says whether @bus is another connection now; EXIT_DENIED; or
 *         EXIT_UNREACHABLE.
 */
_must_check_ int client_reconnect(const char *socket, sd_bus **bus, bool *ret_is_other);

/* Call a method with arguments as for sd_bus_message_append(). @ret_reply is the caller's. Return:
 * EXIT_OK, EXIT_DENIED, EXIT_BUSY, EXIT_UNREACHABLE if ptd closed the connection, or
 * EXIT_FAILED. */
_must_check_ int client_call(sd_bus *bus, const char *method, sd_bus_message **ret_reply,
			     const char *types, ...);

/* Read the wanted fields of the next a{sv} in @message; others are skipped. Return: 0, or negative
 * errno, which the caller reports with client_bad_reply(). */
_must_check_ int client_read_fields(sd_bus_message *message, const struct client_field *fields,
				    size_t n_fields);

/* Something that was refused to a user. */
struct client_refused {
	const char *what;   /* borrowed from the message, as is the next one */
	const char *reason; /* a word of ptd(8); "" if the recorder states none */
	uint32_t uid;
	uint64_t times;
};

/* Read what was refused to users from a reply of GetStatus, again from its beginning. Return: 0 and
 * an array that the caller frees, empty if the recorder does not state it; or negative errno, which
 * the caller reports with client_bad_reply(). */
_must_check_ int client_read_refused(sd_bus_message *message, struct client_refused **ret_list,
				     size_t *ret_n);

/* Report that a reply is not what ptd(8) promises. Return: EXIT_FAILED. */
int client_bad_reply(const char *method, int r);

/* Open the directory of the snapshot @id. Return: EXIT_OK and the descriptor, which is the
 * caller's; or an exit status. */
_must_check_ int client_open_snapshot(sd_bus *bus, const char *id, int *ret_fd);

/* The scope of a snapshot. Zeros mean no limit. */
struct client_scope {
	uint64_t since_ns; /* CLOCK_MONOTONIC; since the source was opened last before that time */
	uint32_t pid;
	const char *cgroup; /* path or name of a control group */
	const char *cpus;   /* a list such as 0-3,8 */

	/* For the manifest: what ran, in which process, and, if ptctl ran it, since when
	 * (CLOCK_MONOTONIC). */
	char command[CLIENT_COMMAND_SIZE];
	uint32_t command_pid;
	uint64_t started_ns;

	/* For the manifest: the condition that held, in which thread and when (CLOCK_MONOTONIC).
	 * "": there was none. */
	char trigger[CLIENT_TRIGGER_SIZE];
	uint32_t trigger_tid;
	uint64_t trigger_ns;
};

/* Take a snapshot and wait until it is written. @ret_reply is the caller's and may be NULL. Return:
 * as client_call(). */
_must_check_ int client_snapshot(sd_bus *bus, const struct client_scope *scope,
				 sd_bus_message **ret_reply, struct client_snapshot *ret_snapshot);

/* What the recorder records from. */
struct client_source {
	bool is_emulated;
	uint64_t aux_size; /* bytes of PT that it keeps of each CPU */
	uint64_t rings_ns; /* on CLOCK_MONOTONIC: when its rings were made */
};

/* Ask for the recorder's source. Return: as client_call(). */
_must_check_ int client_source(sd_bus *bus, struct client_source *ret_source);
