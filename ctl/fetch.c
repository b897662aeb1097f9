/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "ctl/fetch.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/log.h"
#include "ctl/client.h"
#include "ctl/verb.h"
#include "decoder/util/dirs.h"
#include "ptd/snapshot.h"

int fetch_parse_output(const char *verb, int argc, char **argv, const char **ret_output)
{
	static const struct option options[] = {
		{ "output", required_argument, NULL, 'o' },
		{},
	};
	int option;

	optind = 0; /* start over: main() has parsed options of its own */
	while ((option = getopt_long(argc, argv, "+o:", options, NULL)) >= 0) {
		if (option != 'o') {
			log_error("%s: see ptctl %s --help", verb, verb);
			return -EINVAL;
		}
		*ret_output = optarg;
	}
	return optind;
}

int fetch_check(const char *directory)
{
	_cleanup_(fd_closep) int fd = -1;
	int r;

	fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT)
		return EXIT_OK;
	r = fd < 0 ? -errno : dirs_check_empty(fd);
	if (r == -ENOTEMPTY) {
		log_error("%s: this directory is not empty, refusing to write a snapshot into it",
			  directory);
		return EXIT_FAILED;
	}
	if (r < 0) {
		errno = -r;
		log_error("%s: cannot write a snapshot there: %m", directory);
		return EXIT_FAILED;
	}
	return EXIT_OK;
}

/* Copy into the empty directory @path: all of it, or nothing stays there. */
static int copy_into(int from, const char *path)
{
	_cleanup_(fd_closep) int to = -1;
	int r;

	to = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (to < 0)
		return -errno;
	/* Somebody else's files are not ours to remove below. */
	r = dirs_check_empty(to);
	if (r < 0)
		return r;
	r = dirs_copy(from, to, PTD_SNAPSHOT_SUMS);
	if (r == 0)
		r = dirs_sync(to);
	if (r < 0)
		(void)!dirs_empty(to);
	return r;
}

/* Make the directory @path of a copy that is there whole or not at all. */
static int copy_anew(int from, const char *path)
{
	_cleanup_(freep) char *part = NULL;
	size_t n = strlen(path);
	int r;

	while (n > 1 && path[n - 1] == '/')
		n--;
	if (asprintf(&part, "%.*s.part", (int)n, path) < 0) {
		part = NULL;
		return -ENOMEM;
	}
	if (mkdir(part, 0777) < 0) {
		r = -errno;
		if (r == -EEXIST)
			log_error("%s: in the way, left by a copy that was cut short? Remove it",
				  part);
		return r;
	}
	r = copy_into(from, part);
	if (r == 0 && renameat2(AT_FDCWD, part, AT_FDCWD, path, RENAME_NOREPLACE) < 0)
		r = -errno;
	if (r < 0)
		(void)!dirs_remove(AT_FDCWD, part);
	return r;
}

int fetch_snapshot(sd_bus *bus, const char *id, const char *directory)
{
	_cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
	int from, r;

	r = client_call(bus, "OpenSnapshot", &reply, "s", id);
	if (r != EXIT_OK)
		return r;
	r = sd_bus_message_read(reply, "h", &from); /* the message's */
	if (r < 0)
		return client_bad_reply("OpenSnapshot", r);

	/* A directory that is there may be a mount point, or somebody's working directory. */
	r = access(directory, F_OK) == 0 ? copy_into(from, directory) : copy_anew(from, directory);
	if (r < 0) {
		errno = -r;
		log_error("%s: cannot copy snapshot %s there: %m", directory, id);
		return EXIT_FAILED;
	}
	return EXIT_OK;
}
