/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * What ptd and its helpers read of each other: whatever is accepted keeps its bounds. A worker of
 * the collector answers what it is asked about the kernel's files; and ptd passes the collector's
 * records of the kernel's code on, or none. The input is the body of a message.
 */

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/helper/collector/message.h"
#include "daemon/helper/collector/work.h"
#include "daemon/helper/keeper/message.h"
#include "daemon/snapshot/kernelfiles.h"
#include "util/perf/codec.h"
#include "util/perf/perfrec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Of no folder: nothing is found, whatever is asked. A request that has descriptors has both. */
static void do_request(const struct collector_request *request)
{
	const int none[CHANNEL_FDS_MAX] = { -1, -1 };
	struct work work = { .proc_fd = -1 };
	struct collector_answer answer;
	int fd;

	if (request->verb != COLLECTOR_KERNEL_NAMES && request->verb != COLLECTOR_KERNEL_CODE)
		return;
	work_do(&work, request, none, &answer, &fd);
	if (answer.id != request->id || answer.error >= 0 || fd >= 0)
		abort();
	work_deinit(&work);
}

static void read_request(const struct channel_message *message)
{
	struct collector_request request;

	if (collector_read_request(message, &request) < 0)
		return;
	if (request.verb == 0 || request.verb >= _COLLECTOR_VERBS ||
	    strlen(request.path) >= CHANNEL_TEXT_MAX || request.build_id.size > BUILDID_MAX ||
	    (request.clock.valid && request.clock.mult == 0))
		abort();
	do_request(&request);
}

static void read_answer(const struct channel_message *message)
{
	struct collector_answer answer;

	if (collector_read_answer(message, &answer) < 0)
		return;
	if (answer.error > 0 || answer.lack >= _KERNELLACKS || (answer.error < 0 && answer.lack) ||
	    answer.build_id.size > BUILDID_MAX || strchr(answer.sha256, '/') ||
	    (answer.sha256[0] && strlen(answer.sha256) != SHA256_HEX_SIZE - 1))
		abort();
}

static void read_kept(const struct channel_message *message)
{
	struct keeper_message kept;

	if (keeper_read(message, &kept) < 0)
		return;
	if (kept.verb == 0 || kept.verb >= _KEEPER_VERBS || kept.status > 0 ||
	    strlen(kept.name) >= KEEPER_NAME_SIZE || strlen(kept.form) >= KEEPER_FORM_SIZE)
		abort();
}

struct passed {
	bool refuse;
	size_t n;
};

static int put_record(void *userdata, const void *bytes, size_t size)
{
	struct cursor c = cursor_from(bytes, size);
	struct passed *passed = userdata;
	struct record_mmap2 mmap;
	struct trailer trailer;
	struct perfrec rec;

	if (size == 0 || perfrec_next(&c, &rec) != 0 || cursor_left(&c) > 0 ||
	    rec.type != PERF_RECORD_MMAP || rec.misc != PERF_RECORD_MISC_KERNEL ||
	    trailer_take(&rec.body, PERFABI_SAMPLE_TYPE, &trailer) < 0 ||
	    record_read_mmap2(rec.type, rec.misc, rec.body, &mmap) < 0 || mmap.pid != UINT32_MAX ||
	    mmap.tid != 0 || trailer.time != 0 || strlen(mmap.name) >= RECORD_NAME_MAX)
		abort();
	passed->n++;
	return passed->refuse ? -1 : 0;
}

static void read_records(const uint8_t *data, size_t size)
{
	struct passed passed = {};
	const int r = kernelfiles_put_records(data, size, put_record, &passed);

	if (r < 0 && passed.n > 0)
		abort();
	passed = (struct passed){ .refuse = true };
	if (kernelfiles_put_records(data, size, put_record, &passed) == 0 && passed.n > 0)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct channel_message message = { .fds = { -1, -1 } };
	/* A copy of just this size, so that a read beyond it is seen. */
	uint8_t *copy = malloc(size);

	if (copy && size > 0) {
		memcpy(copy, data, size);
		read_records(copy, size);
	}
	free(copy);
	if (size <= sizeof(message.body)) {
		message.size = size;
		memcpy(message.body, data, size);
		read_request(&message);
		read_answer(&message);
		read_kept(&message);
	}
	return 0;
}
