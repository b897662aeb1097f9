/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/pt/foreignmaps.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/helper/collector/link.h"

#define TIMEOUT_MS 1000u
#define BYTES_MAX  (UINT64_C(8) << 20) /* of one process's records */

struct foreignmaps {
	struct collectorlink *link;
	int fd; /* where the collector writes */
	struct hungusers hung;
	uint32_t pid; /* of the process that was asked for; 0: none */
};

int foreignmaps_new(const char *runtime_dir, struct foreignmaps **ret_maps)
{
	_cleanup_(foreignmaps_freep) struct foreignmaps *m = malloc(sizeof(*m));
	int r;

	if (!m)
		return -ENOMEM;
	*m = (struct foreignmaps){ .fd = -1 };
	r = collectorlink_new(runtime_dir, false, &m->link);
	if (r < 0)
		return r;
	*ret_maps = TAKE(m);
	return 0;
}

struct foreignmaps *foreignmaps_free(struct foreignmaps *maps)
{
	if (!maps)
		return NULL;
	(void)collectorlink_free(maps->link);
	(void)fd_close(maps->fd);
	hungusers_deinit(&maps->hung);
	free(maps);
	return NULL;
}

void foreignmaps_begin(struct foreignmaps *maps)
{
	hungusers_deinit(&maps->hung);
	maps->pid = 0;
}

/* A worker that took too long may still write into the last file. */
static int make_file(struct foreignmaps *m)
{
	m->fd = fd_close(m->fd);
	m->fd = memfd_create("mappings", MFD_CLOEXEC);
	return m->fd < 0 ? -errno : 0;
}

static int begin(struct foreignmaps *m, const struct tsc_conv *clock, uint32_t pid)
{
	struct collector_request request = {
		.verb = COLLECTOR_MAPPINGS,
		.timeout_ms = TIMEOUT_MS,
		.pid = pid,
		.size_max = BYTES_MAX,
		.clock = *clock,
	};
	int fds[CHANNEL_FDS_MAX] = { -1, -1 }, r;

	if (hungusers_has(&m->hung, pid))
		return -ETIMEDOUT;
	r = make_file(m);
	fds[0] = m->fd;
	if (r == 0)
		r = collectorlink_begin(m->link, &request, fds);
	if (r == 0)
		m->pid = pid;
	return r;
}

static int read_file(int fd, uint8_t **ret_bytes, size_t *ret_size)
{
	_cleanup_(freep) uint8_t *bytes = NULL;
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	if ((uint64_t)st.st_size > BYTES_MAX)
		return -EBADMSG;
	bytes = malloc((size_t)st.st_size + 1);
	if (!bytes)
		return -ENOMEM;
	if (pread(fd, bytes, (size_t)st.st_size, 0) != st.st_size)
		return -EBADMSG;
	*ret_bytes = TAKE(bytes);
	*ret_size = (size_t)st.st_size;
	return 0;
}

int foreignmaps_get(struct foreignmaps *maps, const struct tsc_conv *clock, uint32_t pid,
		    uint64_t wait_ns, uint8_t **ret_bytes, size_t *ret_size)
{
	int r = 0;

	if (maps->pid != pid)
		r = begin(maps, clock, pid);
	if (r < 0)
		return r;
	r = collectorlink_finish(maps->link, wait_ns, NULL, NULL);
	if (r == -EAGAIN)
		return r;
	maps->pid = 0;
	if (r == -ETIMEDOUT)
		hungusers_note(&maps->hung, pid);
	return r < 0 ? r : read_file(maps->fd, ret_bytes, ret_size);
}
