/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/decoder/archive.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "util/dirs.h"
#include "util/spill.h"

int archive_init(struct archive *archive)
{
	*archive = (struct archive){};
	if ((size_t)snprintf(archive->made, sizeof(archive->made), "%s/ptd-own-XXXXXX/made",
			     spill_directory()) >= sizeof(archive->made))
		return -ENAMETOOLONG;
	memcpy(archive->dir, archive->made, strlen(archive->made) - strlen("/made"));
	if (!mkdtemp(archive->dir)) {
		archive->dir[0] = '\0';
		return -errno;
	}
	memcpy(archive->made, archive->dir, strlen(archive->dir));
	return 0;
}

void archive_deinit(struct archive *archive)
{
	const int r = archive->dir[0] ? dirs_remove(AT_FDCWD, archive->dir) : 0;

	if (r < 0)
		log_warning("%s: cannot remove it: %s", archive->dir, strerror(-r));
	archive->dir[0] = '\0';
}
