/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * What a program wrote into its user's pool: task records, switch records and code. The first byte
 * says which of the rings it is. Whatever is taken is whole records about numbers that the pool is
 * believed about; 7 is another pool's.
 */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/emu/coderecord.h"
#include "daemon/soft/poolrecords.h"
#include "record/codec.h"
#include "record/record.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define USER   1000u
#define THEIRS UINT32_C(0x7ffffff7)
#define NOW    (UINT64_C(1) << 40)

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
		expect(record.trailer.pid != THEIRS && record.trailer.tid != THEIRS);
		if (record_read_pid(record.header.type, record.body, &pid) == 0)
			expect(pid != THEIRS);
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
		       record.uid == USER && record.pid != THEIRS && record.parent_pid != THEIRS &&
		       record.time <= NOW && record.kind != CODERECORD_LOST);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct poolclaims *claims;
	struct poolclaims_walk other;
	struct poolrecords r;
	uint8_t *copy;
	size_t n;
	bool torn;

	if (!claims)
		expect(poolclaims_new(&claims) == 0);
	other = poolclaims_begin(claims, 1, USER + 1, 1);
	expect(poolclaims_believe(&other, THEIRS));
	r = (struct poolrecords){ .walk = poolclaims_begin(claims, 0, USER, 64),
				  .n_cpus = 4,
				  .now_ns = NOW };
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
