/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "tests/lib/golden_input.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tests/lib/perfbuild.h"

static int complain(int error, const char *what)
{
	fprintf(stderr, "%s: %s\n", what, strerror(-error));
	return error;
}

static int write_file(const char *path, const void *bytes, size_t size)
{
	FILE *f = fopen(path, "we");
	int r = 0;

	if (!f)
		return complain(-errno, path);
	if (fwrite(bytes, 1, size, f) != size)
		r = -EIO;
	if (fclose(f) != 0)
		r = -EIO;
	return r < 0 ? complain(r, path) : 0;
}

static int put_mmap(struct perfbuild *b, const char *dir, const char *text, uint32_t pid,
		    uint32_t tid)
{
	struct {
		uint32_t pid, tid;
		uint64_t start, size, offset;
		uint32_t major, minor;
		uint64_t inode, generation;
		uint32_t prot, flags;
	} payload = { .pid = pid, .tid = tid, .prot = 5, .flags = 2 };
	char name[32], path[512];

	if (sscanf(text, "%" SCNx64 " %" SCNx64 " %" SCNx64 " %31s", &payload.start, &payload.size,
		   &payload.offset, name) != 4)
		return -EINVAL;
	(void)snprintf(path, sizeof(path), "%s/%s", dir, name);
	perfbuild_record(b, PERF_RECORD_MMAP2, PERF_RECORD_MISC_USER, &payload, sizeof(payload),
			 path);
	return 0;
}

static int put_aux(struct perfbuild *b, const char *text)
{
	uint64_t payload[3];

	if (sscanf(text, "%" SCNx64 " %" SCNx64 " %" SCNx64, &payload[0], &payload[1],
		   &payload[2]) != 3)
		return -EINVAL;
	perfbuild_aux(b, payload[0], payload[1], payload[2]);
	return 0;
}

static int put_any(struct perfbuild *b, const char *text)
{
	uint64_t payload[8];
	size_t n_words = 0;
	uint32_t type;
	int n;

	if (sscanf(text, "%" SCNu32 "%n", &type, &n) != 1)
		return -EINVAL;
	for (text += n; n_words < ARRAY_LEN(payload); text += n, n_words++)
		if (sscanf(text, " %" SCNx64 "%n", &payload[n_words], &n) != 1)
			break;
	perfbuild_record(b, type, 0, payload, n_words * sizeof(*payload), NULL);
	return 0;
}

static int put_lost(struct perfbuild *b, bool samples, const char *text)
{
	uint64_t n;

	if (sscanf(text, "%" SCNu64, &n) != 1)
		return -EINVAL;
	if (samples)
		perfbuild_lost_samples(b, n);
	else
		perfbuild_lost(b, n);
	return 0;
}

static int put_switch(struct perfbuild *b, bool out, const char *text)
{
	uint32_t pid = 0, tid = 0;

	if (*text && sscanf(text, "%" SCNu32 "/%" SCNu32, &pid, &tid) != 2)
		return -EINVAL;
	perfbuild_switch_wide(b, out, pid, tid);
	return 0;
}

static int put_fork(struct perfbuild *b, const char *text, uint32_t ppid, uint32_t ptid)
{
	uint32_t pid, tid;

	if (sscanf(text, "%" SCNu32 "/%" SCNu32, &pid, &tid) != 2)
		return -EINVAL;
	perfbuild_fork(b, pid, ppid, tid, ptid);
	return 0;
}

static int put_record(struct perfbuild *b, const char *dir, const char *line)
{
	uint32_t cpu, pid, tid;
	char what[16];
	uint64_t time;
	int n = 0;

	if (sscanf(line, "@%" SCNu64 " %" SCNu32 " %" SCNu32 "/%" SCNu32 " %15s %n", &time, &cpu,
		   &pid, &tid, what, &n) < 5)
		return -EINVAL;
	line += n;
	perfbuild_at(b, time, cpu, pid, tid);
	if (strcmp(what, "comm") == 0 || strcmp(what, "exec") == 0)
		perfbuild_comm(b, what[0] == 'e', pid, tid, line);
	else if (strcmp(what, "exit") == 0)
		perfbuild_exit(b, pid, tid);
	else if (strcmp(what, "itrace") == 0)
		perfbuild_itrace(b, pid, tid);
	else if (strcmp(what, "fork") == 0)
		return put_fork(b, line, pid, tid);
	else if (strcmp(what, "mmap") == 0)
		return put_mmap(b, dir, line, pid, tid);
	else if (strcmp(what, "in") == 0 || strcmp(what, "out") == 0)
		return put_switch(b, what[0] == 'o', line);
	else if (strcmp(what, "enter") == 0 || strcmp(what, "leave") == 0)
		perfbuild_switch(b, what[0] == 'l');
	else if (strcmp(what, "aux") == 0)
		return put_aux(b, line);
	else if (strcmp(what, "record") == 0)
		return put_any(b, line);
	else if (strcmp(what, "lost") == 0 || strcmp(what, "lost_samples") == 0)
		return put_lost(b, what[4], line);
	else
		return -EINVAL;
	return 0;
}

/* A TSC tick is a nanosecond. */
static void set_clock(struct perfbuild *b)
{
	const uint64_t conversion[] = { 0, 1, 0 };

	memcpy(b->bytes + PERFBUILD_SLOTS + 8 * PERFABI_PT_TIME_SHIFT, conversion,
	       sizeof(conversion));
}

static int write_perfdata(const struct golden *g, const char *dir, const char *path)
{
	_cleanup_(freep) struct perfbuild *b = malloc(sizeof(*b));
	_cleanup_(freep) char *lines = strdup(g->records);

	if (!b || !lines)
		return -ENOMEM;
	perfbuild_begin(b, false);
	set_clock(b);
	for (char *rest, *line = strtok_r(lines, "\n", &rest); line;
	     line = strtok_r(NULL, "\n", &rest))
		if (put_record(b, dir, line) < 0)
			return complain(-EINVAL, line);
	for (size_t i = 0; i < g->n_pt; i++)
		perfbuild_auxtrace(b, (uint32_t)i, (int32_t)g->pt[i].address, -1, 0, g->pt[i].bytes,
				   g->pt[i].size);
	perfbuild_end(b);
	return write_file(path, b->bytes, b->size);
}

static int write_code(const struct golden *g, const char *dir, struct golden_input *input)
{
	for (size_t i = 0; i < g->n_code; i++) {
		char *path = input->code_paths[i];
		int r;

		(void)snprintf(path, sizeof(input->code_paths[i]), "%s/%s", dir, g->code[i].name);
		r = write_file(path, g->code[i].bytes, g->code[i].size);
		if (r < 0)
			return r;
		input->code[i] = (struct ptd_raw_code){ .path = path,
							.size = g->code[i].size,
							.address = g->code[i].address };
	}
	return 0;
}

int golden_input_write(const struct golden *g, const char *dir, struct golden_input *ret_input)
{
	int r;

	*ret_input = (struct golden_input){ .options = {
						.size = sizeof(struct ptd_options),
						.mtc_freq = g->mtc_freq,
						.nom_freq = g->nom_freq,
						.cpuid_15_eax = g->cpuid_15_eax,
						.cpuid_15_ebx = g->cpuid_15_ebx,
					    } };
	r = write_code(g, dir, ret_input);
	if (r < 0)
		return r;

	(void)snprintf(ret_input->path, sizeof(ret_input->path), "%s/input", dir);
	if (g->records) {
		ret_input->options.input = ret_input->path;
		return write_perfdata(g, dir, ret_input->path);
	}
	ret_input->options.raw_pt = ret_input->path;
	ret_input->options.raw_code = ret_input->code;
	ret_input->options.n_raw_code = g->n_code;
	return write_file(ret_input->path, g->pt[0].bytes, g->pt[0].size);
}
