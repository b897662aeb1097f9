/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* ptctl list */

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "ctl/client.h"
#include "ctl/show.h"
#include "ctl/verb.h"

#define LOST_MAX 160

/* One snapshot in the reply. */
struct row {
	const char *id, *created, *command;
	uint64_t bytes, n_records_lost, bytes_dropped;
	uint32_t cpus, pid, n_missing;
	int kept, complete;
};

/* Append to the text at @ret_text, after a comma if it is not empty. */
_printf_(2, 3) static void add_row(char ret_text[static LOST_MAX], const char *format, ...)
{
	size_t n = strlen(ret_text);
	va_list ap;

	if (n > 0)
		n += (size_t)snprintf(ret_text + n, LOST_MAX - n, ", ");
	va_start(ap, format);
	(void)vsnprintf(ret_text + n, LOST_MAX - n, format, ap);
	va_end(ap);
}

/* Write in words what the snapshot misses. What a ring overwrote before the snapshot was requested
 * is not missing, except the beginning of a command that ptctl ran. */
static const char *lost_text(const struct row *row, char ret_text[static LOST_MAX])
{
	char size[SHOW_SIZE_MAX];

	ret_text[0] = 0;
	if (!row->complete)
		add_row(ret_text, "beginning");
	if (row->bytes_dropped > 0)
		add_row(ret_text, "%s of PT", show_size(row->bytes_dropped, size));
	if (row->n_records_lost > 0)
		add_row(ret_text, "%" PRIu64 " record%s", row->n_records_lost,
			plural(row->n_records_lost));
	if (row->n_missing > 0)
		add_row(ret_text, "%" PRIu32 " object%s", row->n_missing, plural(row->n_missing));
	return ret_text[0] ? ret_text : "-";
}

static void print_row(const struct row *row)
{
	char size[SHOW_SIZE_MAX], pid[16] = "-", text[LOST_MAX];

	if (row->pid > 0)
		(void)snprintf(pid, sizeof(pid), "%" PRIu32, row->pid);
	printf("%-28s %-27s %10s %4" PRIu32 " %-4s %7s %-20s %s\n", row->id, row->created,
	       show_size(row->bytes, size), row->cpus, row->kept ? "kept" : "-", pid,
	       lost_text(row, text), row->command[0] ? row->command : "-");
}

static int print_one(sd_bus_message *reply)
{
	struct row row = { .id = "?", .created = "?", .command = "", .complete = true };
	const struct client_field fields[] = {
		{ "id", 's', &row.id },
		{ "created", 's', &row.created },
		{ "bytes", 't', &row.bytes },
		{ "cpus", 'u', &row.cpus },
		{ "kept", 'b', &row.kept },
		{ "command", 's', &row.command },
		{ "pid", 'u', &row.pid },
		{ "command_complete", 'b', &row.complete },
		{ "objects_missing", 'u', &row.n_missing },
		{ "records_lost", 't', &row.n_records_lost },
		{ "pt_dropped", 't', &row.bytes_dropped },
	};
	int r;

	r = client_read_fields(reply, fields, ARRAY_LEN(fields));
	if (r == 0)
		print_row(&row);
	return r;
}

static int print_list(sd_bus_message *reply)
{
	int r;

	r = sd_bus_message_enter_container(reply, 'a', "a{sv}");
	if (r >= 0)
		printf("%-28s %-27s %10s %4s %-4s %7s %-20s %s\n", "ID", "TIME", "SIZE", "CPUS",
		       "KEPT", "PID", "LOST", "COMMAND");
	while (r >= 0 && (r = sd_bus_message_at_end(reply, false)) == 0)
		r = print_one(reply);
	return r < 0 ? client_bad_reply("ListSnapshots", r) : EXIT_OK;
}

int verb_list(const struct context *context, int argc, char **argv)
{
	return verb_call(context, argc, argv, "ListSnapshots", print_list);
}
