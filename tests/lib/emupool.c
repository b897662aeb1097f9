/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "tests/lib/emupool.h"
#include "tests/lib/emufree.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

struct attach emupool;

int emupool_fd(const struct emu_pool_layout *layout)
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

void emupool_attach(const struct emu_pool_layout *layout, struct attach *ret_attach)
{
	_cleanup_(fd_closep) int fd = emupool_fd(layout);
	const char *what;

	if (attach_init(ret_attach, fd, &what) < 0)
		abort();
}

int emupool_setup(void **state)
{
	emupool_attach(*state, &emupool);
	return 0;
}

int emupool_teardown(void **state)
{
	(void)state;
	attach_deinit(&emupool);
	return 0;
}
