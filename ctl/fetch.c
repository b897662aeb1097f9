/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "ctl/fetch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>

#include "base/log.h"
#include "ctl/client.h"
#include "ctl/verb.h"
#include "decoder/util/copyfile.h"

#define DEPTH_MAX 8

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
			log_error("%s: see ptctl --help", verb);
			return -EINVAL;
		}
		*ret_output = optarg;
	}
	return optind;
}

static void dir_closep(DIR **dir)
{
	if (*dir)
		(void)closedir(*dir);
}

static bool is_dots(const char *name)
{
	return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

int fetch_check(const char *directory)
{
	_cleanup_(dir_closep) DIR *dir = opendir(directory);
	struct dirent *entry;

	if (!dir && errno == ENOENT)
		return EXIT_OK;
	if (!dir) {
		log_error("%s: cannot write a snapshot there: %m", directory);
		return EXIT_FAILED;
	}
	while ((entry = readdir(dir))) {
		if (!is_dots(entry->d_name)) {
			log_error("%s: this directory is not empty, refusing to write a snapshot "
				  "into it",
				  directory);
			return EXIT_FAILED;
		}
	}
	return EXIT_OK;
}

static int copy_tree(int from, int to, int depth);

static int copy_entry(int from, int to, const char *name, int depth)
{
	_cleanup_(fd_closep) int in = -1, out = -1;
	struct stat st;

	in = openat(from, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (in < 0 || fstat(in, &st) < 0)
		return -errno;
	if (S_ISDIR(st.st_mode)) {
		if (mkdirat(to, name, 0777) < 0)
			return -errno;
		out = openat(to, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
		return out < 0 ? -errno : copy_tree(in, out, depth + 1);
	}
	if (!S_ISREG(st.st_mode))
		return 0; /* a snapshot has none */
	out = openat(to, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	return out < 0 ? -errno : copyfile_fd(in, out);
}

static int copy_tree(int from, int to, int depth)
{
	_cleanup_(dir_closep) DIR *dir = NULL;
	struct dirent *entry;
	int own, r = 0;

	own = depth < DEPTH_MAX ? openat(from, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	if (own < 0)
		return depth < DEPTH_MAX ? -errno : -ELOOP;
	dir = fdopendir(own);
	if (!dir) {
		(void)fd_close(own);
		return -ENOMEM;
	}
	while (r == 0 && (entry = readdir(dir)))
		if (!is_dots(entry->d_name))
			r = copy_entry(from, to, entry->d_name, depth);
	return r;
}

int fetch_snapshot(sd_bus *bus, const char *id, const char *directory)
{
	_cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
	_cleanup_(fd_closep) int to = -1;
	int from, r;

	r = client_call(bus, "OpenSnapshot", &reply, "s", id);
	if (r != EXIT_OK)
		return r;
	r = sd_bus_message_read(reply, "h", &from); /* the message's */
	if (r < 0)
		return client_bad_reply("OpenSnapshot", r);

	r = 0;
	if (mkdir(directory, 0777) < 0 && errno != EEXIST)
		r = -errno;
	if (r == 0) {
		to = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		r = to < 0 ? -errno : copy_tree(from, to, 0);
	}
	if (r < 0) {
		errno = -r;
		log_error("%s: cannot copy snapshot %s there: %m", directory, id);
		return EXIT_FAILED;
	}
	return EXIT_OK;
}
