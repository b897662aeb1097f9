/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * What ptd and its collector read of each other: whatever is accepted is written as the same bytes,
 * but for what has no meaning, and read again as the same. A worker answers what it is asked about
 * the kernel's files; and ptd passes the collector's records of the kernel's code on, or none.
 */

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/helper/collector/message.h"
#include "daemon/helper/collector/work.h"
#include "daemon/snapshot/kernelfiles.h"
#include "util/perf/codec.h"
#include "util/perf/perfrec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Of no folder: nothing is found, whatever is asked. A request that has descriptors has both. */
static void do_request(const struct collector_request *request)
{
	const int none[COLLECTOR_FDS_MAX] = { -1, -1 };
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

static void read_request(const uint8_t *data, size_t size)
{
	uint8_t once[COLLECTOR_MESSAGE_MAX], twice[COLLECTOR_MESSAGE_MAX];
	struct collector_request request;
	size_t written;

	if (collector_read_request(data, size, &request) < 0)
		return;
	if (request.verb >= _COLLECTOR_VERBS || strlen(request.path) >= COLLECTOR_PATH_MAX ||
	    request.build_id.size > BUILDID_MAX)
		abort();
	do_request(&request);
	written = collector_write_request(&request, once);
	if (written != size || collector_read_request(once, written, &request) < 0 ||
	    collector_write_request(&request, twice) != size || memcmp(once, twice, size) != 0)
		abort();
}

static void read_answer(const uint8_t *data, size_t size)
{
	uint8_t once[COLLECTOR_MESSAGE_MAX], twice[COLLECTOR_MESSAGE_MAX];
	struct collector_answer answer;
	size_t written;

	if (collector_read_answer(data, size, &answer) < 0)
		return;
	if (answer.error > 0 || answer.lack >= _KERNELLACKS || (answer.error < 0 && answer.lack) ||
	    answer.build_id.size > BUILDID_MAX || strchr(answer.sha256, '/') ||
	    (answer.sha256[0] && strlen(answer.sha256) != SHA256_HEX_SIZE - 1))
		abort();
	written = collector_write_answer(&answer, once);
	if (written != size || collector_read_answer(once, written, &answer) < 0 ||
	    collector_write_answer(&answer, twice) != size || memcmp(once, twice, size) != 0)
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
	/* A copy of just this size, so that a read beyond it is seen. */
	uint8_t *copy = malloc(size);

	if (copy && size > 0) {
		memcpy(copy, data, size);
		read_request(copy, size);
		read_answer(copy, size);
		read_records(copy, size);
	}
	free(copy);
	return 0;
}
