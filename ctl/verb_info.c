/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* ptctl info */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/printable.h"
#include "ctl/client.h"
#include "ctl/show.h"
#include "ctl/verb.h"
#include "ptd/snapshot.h"

#define LINE_SIZE_MAX 8192

/* Print the manifest @f, one line for each key or as a JSON object. Return: 0, or negative
 * errno. */
static int print_info(FILE *f, bool json)
{
	char line[LINE_SIZE_MAX];
	const char *between = "{";

	while (fgets(line, sizeof(line), f)) {
		char *value = strchr(line, '=');

		if (!value || !strchr(line, '\n'))
			return -EBADMSG;
		*value++ = 0;
		value[strcspn(value, "\n")] = 0;
		if (!json) {
			printable_clean(line, strlen(line));
			printable_clean(value, strlen(value));
			printf("%26s: %s\n", line, value);
			continue;
		}
		fputs(between, stdout);
		show_json_string(stdout, line);
		putchar(':');
		show_json_string(stdout, value);
		between = ",";
	}
	if (json)
		puts(between[0] == '{' ? "{}" : "}");
	return ferror(f) ? -EIO : 0;
}

int verb_info(const struct context *context, int argc, char **argv)
{
	_cleanup_(sd_bus_flush_close_unrefp) sd_bus *bus = NULL;
	_cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
	FILE *f;
	int dir, fd, r;

	if (argc != 2) {
		log_error("info: which snapshot? ptctl info ID; `ptctl list` has the ids");
		return EXIT_USAGE;
	}
	r = client_connect(context->socket, &bus);
	if (r == EXIT_OK)
		r = client_call(bus, "OpenSnapshot", &reply, "s", argv[1]);
	if (r != EXIT_OK)
		return r;
	r = sd_bus_message_read(reply, "h", &dir); /* borrowed from the message */
	if (r < 0)
		return client_bad_reply("OpenSnapshot", r);

	fd = openat(dir, PTD_SNAPSHOT_MANIFEST, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	f = fd < 0 ? NULL : fdopen(fd, "r");
	if (!f) {
		log_error("snapshot %s: cannot read its manifest: %m", argv[1]);
		(void)fd_close(fd);
		return EXIT_FAILED;
	}
	r = print_info(f, context->json);
	(void)fclose(f);
	if (r < 0) {
		errno = -r;
		log_error("snapshot %s: cannot make sense of its manifest: %m", argv[1]);
		return EXIT_FAILED;
	}
	return EXIT_OK;
}
