/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * What a program wrote into the pool: task records, switch records and code. The first byte says
 * which of the rings it is. Whatever is taken is whole records about numbers that a process can
 * have.
 */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/plugin/coderecord.h"
#include "daemon/soft/poolrecords.h"
#include "util/perf/codec.h"
#include "util/perf/record.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define USER 1000u
#define NOW  (UINT64_C(1) << 40)

static void expect(bool is_true)
{
	if (!is_true)
		abort();
}

static void check_records(const uint8_t *bytes, size_t size)
{
	struct cursor c = cursor_from(bytes, size);
	struct record record;
	uint32_t pid;
	int r;

	while ((r = record_next(&c, &record)) == 0) {
		expect(record.trailer.pid <= INT32_MAX && record.trailer.tid <= INT32_MAX);
		if (record_read_pid(record.header.type, record.body, &pid) == 0)
			expect(pid <= INT32_MAX);
	}
	expect(r == RECORD_END);
}

static void check_code(const uint8_t *bytes, size_t size)
{
	struct coderecord record;

	for (size_t at = 0; at < size; at += record.size) {
		expect(size - at >= sizeof(record));
		memcpy(&record, bytes + at, sizeof(record));
		expect(record.size >= sizeof(record) && record.size <= size - at &&
		       record.uid == USER && record.pid <= INT32_MAX &&
		       record.parent_pid <= INT32_MAX && record.time <= NOW &&
		       record.kind != CODERECORD_LOST);
	}
}

static void note(void *userdata, const struct record *record)
{
	(void)userdata;
	expect(record->trailer.pid > 0 && record->trailer.pid <= INT32_MAX);
}

static uid_t user_of(void *userdata, uint32_t pid, uint32_t parent)
{
	(void)userdata;
	expect(pid > 0 && pid <= INT32_MAX && parent <= INT32_MAX);
	return USER;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct poolrecords r = {
		.n_cpus = 4, .now_ns = NOW, .note_record = note, .user_of = user_of
	};
	uint8_t *copy;
	size_t n;
	bool torn;

	if (size == 0)
		return 0;
	/* A copy of just this size, so that a read beyond it is seen. */
	n = size - 1;
	copy = malloc(n);
	if (!copy || n == 0) {
		free(copy);
		return 0;
	}
	memcpy(copy, data + 1, n);
	switch (data[0] % 3) {
	case 0:
		check_records(copy, poolrecords_tasks(&r, copy, n));
		break;
	case 1:
		check_records(copy, poolrecords_switches(&r, copy, n));
		break;
	default:
		check_code(copy, poolrecords_code(&r, copy, n, &torn));
	}
	free(copy);
	return 0;
}
