/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What ptd and its collector read of each other: whatever is accepted is written as the same bytes,
 * but for what has no meaning, and read again as the same. */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/collector/message.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

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
	if (answer.error > 0 || answer.build_id.size > BUILDID_MAX || strchr(answer.sha256, '/') ||
	    (answer.sha256[0] && strlen(answer.sha256) != SHA256_HEX_SIZE - 1))
		abort();
	written = collector_write_answer(&answer, once);
	if (written != size || collector_read_answer(once, written, &answer) < 0 ||
	    collector_write_answer(&answer, twice) != size || memcmp(once, twice, size) != 0)
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
	}
	free(copy);
	return 0;
}
