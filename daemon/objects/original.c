/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/objects/original.h"

#include <errno.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "daemon/helper/collector/link.h"
#include "daemon/proc/vdso.h"
#include "util/mapname.h"
#include "util/perf/record.h"

/* The event loop waits for what is found, but not for what is verified. */
#define FIND_MS   200u
#define VERIFY_MS 5000u

bool original_equal(const struct original *a, const struct original *b)
{
	return a->found && b->found && a->dev == b->dev && a->ino == b->ino && a->size == b->size &&
	       a->mtime_ns == b->mtime_ns && a->ctime_ns == b->ctime_ns;
}

struct original original_of(const struct collector_answer *answer)
{
	return (struct original){
		.found = true,
		.uid = answer->uid,
		.dev = answer->dev,
		.ino = answer->ino,
		.size = answer->size,
		.mtime_ns = answer->mtime_ns,
		.ctime_ns = answer->ctime_ns,
	};
}

static struct collector_request request_for(enum original_way way, bool is_claimed,
					    const struct record_mmap2 *mmap)
{
	static const uint32_t flags[] = {
		[ORIGINAL_LOOK] = COLLECTOR_TRUE,
		[ORIGINAL_TAKE] = COLLECTOR_OPEN,
		[ORIGINAL_VERIFY] = COLLECTOR_OPEN | COLLECTOR_VERIFY,
		[ORIGINAL_IS_ELF] = COLLECTOR_ELF,
		[ORIGINAL_JITDUMP] = COLLECTOR_OPEN | COLLECTOR_JITDUMP,
		[ORIGINAL_OWN_JITDUMP] = COLLECTOR_OPEN | COLLECTOR_JITDUMP | COLLECTOR_OWN,
	};
	struct collector_request request = {
		.verb = COLLECTOR_FIND,
		.flags = flags[way],
		.timeout_ms = way == ORIGINAL_VERIFY ? VERIFY_MS : FIND_MS,
		.pid = mmap->pid <= INT32_MAX ? mmap->pid : 0,
		.start = mmap->addr,
		.end = mmap->addr + mmap->len,
		.offset = mmap->pgoff,
		.dev = makedev(mmap->maj, mmap->min),
		.ino = mmap->ino,
		.build_id = mmap->build_id,
		.path = mmap->name,
	};

	if (!is_claimed)
		request.flags |= COLLECTOR_TRUE;
	return request;
}

int original_find(struct collectorlink *link, enum original_way way, bool is_claimed,
		  const struct record_mmap2 *mmap, uid_t user, const atomic_bool *cancel,
		  int *ret_fd, struct original *ret_original)
{
	struct collector_request request;
	struct collector_answer answer;
	int r;

	if (mapname_is_vdso(mmap->name)) {
		*ret_original = (struct original){ .found = true };
		*ret_fd = -1;
		return way == ORIGINAL_LOOK || way == ORIGINAL_IS_ELF ? 0 : vdso_open(ret_fd);
	}
	request = request_for(way, is_claimed, mmap);
	request.uid = user;
	r = collectorlink_ask(link, &request, NULL, cancel, &answer, ret_fd);
	if (r == 0)
		*ret_original = original_of(&answer);
	return r;
}
