/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/soft/poolasker.h"

#include <errno.h>
#include <pthread.h>
#include <sys/stat.h>

#include "daemon/collector/link.h"

#define TIMEOUT_MS 200u /* the event loop waits */

struct poolasker {
	pthread_mutex_t lock;
	struct collectorlink *link;
};

int poolasker_new(const char *runtime_dir, struct poolasker **ret_asker)
{
	_cleanup_(poolasker_freep) struct poolasker *a = malloc(sizeof(*a));
	int r;

	if (!a)
		return -ENOMEM;
	*a = (struct poolasker){ .lock = PTHREAD_MUTEX_INITIALIZER };
	r = collectorlink_new(runtime_dir, true, &a->link);
	if (r < 0)
		return r;
	*ret_asker = TAKE(a);
	return 0;
}

struct poolasker *poolasker_free(struct poolasker *asker)
{
	if (!asker)
		return NULL;
	(void)collectorlink_free(asker->link);
	(void)pthread_mutex_destroy(&asker->lock);
	free(asker);
	return NULL;
}

int poolasker_ask(struct poolasker *asker, uint32_t pid, int pool_fd)
{
	struct collector_request request = {
		.verb = COLLECTOR_MAPPED, .timeout_ms = TIMEOUT_MS, .pid = pid, .path = ""
	};
	struct collector_answer answer;
	struct stat st;
	int none = -1, r;

	if (fstat(pool_fd, &st) < 0)
		return -errno;
	request.dev = st.st_dev;
	request.ino = st.st_ino;
	(void)pthread_mutex_lock(&asker->lock);
	r = collectorlink_ask(asker->link, &request, NULL, NULL, &answer, &none);
	(void)pthread_mutex_unlock(&asker->lock);
	(void)fd_close(none);
	return r == -ENOENT || r == -ESRCH ? 0 : r < 0 ? r : 1;
}
