/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "tests/lib/sunk.h"
#include "tests/lib/kinds.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/base.h"

void sunk_begin(struct sunk *sunk, const char *name, enum ptd_clock clock,
		const char *const *options)
{
	struct sink_config config = { .options = options };

	*sunk =
	    (struct sunk){ .info = { .clock = clock }, .fd = memfd_create("sunk", MFD_CLOEXEC) };
	assert_true(sunk->fd >= 0);
	config.info = &sunk->info;
	config.fd = fcntl(sunk->fd, F_DUPFD_CLOEXEC, 0);
	assert_true(config.fd >= 0);
	assert_int_equal(sink_new(sink_find(name), &config, &sunk->sink, NULL), 0);
}

const char *sunk_end(struct sunk *sunk, const struct ptd_stats *stats)
{
	off_t size;

	assert_int_equal(sink_finish(sunk->sink, stats), 0);
	size = lseek(sunk->fd, 0, SEEK_END);
	assert_true(size >= 0);
	sunk->text = calloc((size_t)size + 1, 1);
	assert_non_null(sunk->text);
	assert_int_equal(pread(sunk->fd, sunk->text, (size_t)size, 0), size);
	return sunk->text;
}

void sunk_deinit(struct sunk *sunk)
{
	sink_free(sunk->sink);
	free(sunk->text);
	(void)fd_close(sunk->fd);
}
