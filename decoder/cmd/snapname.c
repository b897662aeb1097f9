/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/cmd/snapname.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "ptd/control.h"
#include "ptd/snapshot.h"
#include "util/dirs.h"
#include "util/message.h"
#include "util/snapid.h"

bool snapname_is(const char *input)
{
	/* "-" is standard input. */
	return strcmp(input, "-") != 0 &&
	       (snapid_valid(input) || strcmp(input, SNAPID_LATEST) == 0) &&
	       access(input, F_OK) < 0 && errno == ENOENT;
}

/* Find the id of the snapshot @name, which may be the latest one. */
static int find_id(const char *directory, const char *name, char ret_id[static SNAPID_SIZE])
{
	_cleanup_(fd_closep) int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	if (strcmp(name, SNAPID_LATEST) == 0)
		return snapid_latest(fd, ret_id);
	if (faccessat(fd, name, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	(void)snprintf(ret_id, SNAPID_SIZE, "%s", name);
	return 0;
}

int snapname_find(const char *name, const char *state_dir, char **ret_path, char **reterr_message)
{
	_cleanup_(freep) char *directory = NULL;
	char id[SNAPID_SIZE];
	int r;

	if (asprintf(&directory, "%s/" PTD_STATE_SNAPSHOTS, state_dir) < 0) {
		directory = NULL;
		return message_set(reterr_message, -ENOMEM, "%s", strerror(ENOMEM));
	}
	r = find_id(directory, name, id);
	if (r == -ENOENT)
		return message_set(reterr_message, r,
				   "%s: there is no file of that name, and no such snapshot in %s",
				   name, directory);
	if (r == -EACCES)
		return message_set(reterr_message, r,
				   "%s: cannot look for it in %s: %s: only root and members of the "
				   "group " PTD_CONTROL_GROUP " may",
				   name, directory, strerror(-r));
	if (r < 0)
		return message_set(reterr_message, r, "%s: cannot look for it in %s: %s", name,
				   directory, strerror(-r));
	if (asprintf(ret_path, "%s/%s", directory, id) < 0)
		return message_set(reterr_message, -ENOMEM, "%s", strerror(ENOMEM));
	return 0;
}
