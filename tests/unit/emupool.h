/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * A pool for the tests of the software source: made as ptd makes it, attached as a program does.
 */

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "daemon/emu/attach.h"

static inline int emupool_fd(const struct emu_pool_layout *layout)
{
	const int fd = memfd_create("pool", MFD_CLOEXEC);
	const struct emu_pool_header header = {
		.magic = EMU_POOL_MAGIC,
		.version = EMU_POOL_VERSION,
		.layout = *layout,
		.home = emu_pool_here(),
	};

	if (fd < 0 || ftruncate(fd, (off_t)emu_pool_size(layout)) < 0 ||
	    pwrite(fd, &header, sizeof(header), 0) != sizeof(header))
		abort();
	return fd;
}

static inline void emupool_attach(const struct emu_pool_layout *layout, struct attach *ret_attach)
{
	_cleanup_(fd_closep) int fd = emupool_fd(layout);
	const char *what;

	if (attach_init(ret_attach, fd, &what) < 0)
		abort();
}
