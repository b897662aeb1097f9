/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * perf-addresses DIR: reads what `perf script -F pid,tid,ip` prints on standard input and writes
 * the addresses, as u64 in little endian, to a file for each thread, DIR/PID.TID.
 */

#include <errno.h>
#include <error.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/base.h"
#include "util/vec.h"

struct thread {
	uint32_t pid, tid;
	FILE *file;
};

static FILE *file_of(const char *dir, uint32_t pid, uint32_t tid)
{
	static VEC(struct thread) threads;
	static size_t last;
	char path[4096];

	if (last < threads.n && threads.items[last].pid == pid && threads.items[last].tid == tid)
		return threads.items[last].file;
	for (last = 0; last < threads.n; last++)
		if (threads.items[last].pid == pid && threads.items[last].tid == tid)
			return threads.items[last].file;

	snprintf(path, sizeof(path), "%s/%" PRIu32 ".%" PRIu32, dir, pid, tid);
	if (vec_push(&threads, { .pid = pid, .tid = tid, .file = fopen(path, "we") }) < 0)
		error(1, ENOMEM, "threads");
	if (!threads.items[last].file)
		error(1, errno, "%s", path);
	return threads.items[last].file;
}

int main(int argc, char **argv)
{
	char line[4096];
	uint64_t n = 0;

	if (argc != 2)
		error(2, 0, "usage: perf-addresses DIR <PERF-SCRIPT-OUTPUT");
	if (mkdir(argv[1], 0777) < 0)
		error(1, errno, "%s", argv[1]);

	while (fgets(line, sizeof(line), stdin)) {
		char *at = line;
		const uint32_t pid = (uint32_t)strtoul(at, &at, 10);
		const uint32_t tid = *at == '/' ? (uint32_t)strtoul(at + 1, &at, 10) : 0;
		char *end;
		const uint64_t ip = strtoull(at, &end, 16);

		if (end == at)
			error(1, 0, "not a line of pid/tid and ip: %s", line);
		if (fwrite(&ip, sizeof(ip), 1, file_of(argv[1], pid, tid)) != 1)
			error(1, errno, "%s", argv[1]);
		n++;
	}
	if (fflush(NULL) != 0)
		error(1, errno, "%s", argv[1]);
	printf("%" PRIu64 " instructions\n", n);
	return n ? 0 : 1;
}
