/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/sink/export/xray_file.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "util/message.h"

#define COMM_MAX  64
#define NS_PER_S  INT64_C(1000000000)
#define NS_PER_US 1000

/* Offset of the record of extents, and of its data. */
#define EXTENTS    FDR_HEADER_SIZE
#define EXTENTS_AT (EXTENTS + 1)

/* --- records ---------------------------------------------------------------------------------- */

static uint8_t *put16(uint8_t *p, uint16_t v)
{
	return mempcpy(p, &v, sizeof(v));
}

static uint8_t *put32(uint8_t *p, uint32_t v)
{
	return mempcpy(p, &v, sizeof(v));
}

static uint8_t *put64(uint8_t *p, uint64_t v)
{
	return mempcpy(p, &v, sizeof(v));
}

/* Return: where the data of a new metadata record, which are 0, are to be put; or NULL. */
static uint8_t *add_metadata(struct xray_file *file, enum fdr_kind kind)
{
	uint8_t *p = threadfile_add(&file->out, FDR_METADATA_SIZE);

	if (!p)
		return NULL;
	memset(p, 0, FDR_METADATA_SIZE);
	p[0] = (uint8_t)(kind << 1 | 1);
	return p + 1;
}

static uint8_t *put_function(uint8_t *p, enum fdr_action action, uint32_t function, uint32_t delta)
{
	return put32(put32(p, function << 4 | (uint32_t)action << 1), delta);
}

static int add_cpu(struct xray_file *file, uint64_t t, uint32_t cpu)
{
	uint8_t *p = add_metadata(file, FDR_NEW_CPU);

	if (!p)
		return -ENOMEM;
	(void)put64(put16(p, (uint16_t)cpu), t);
	file->cpu = cpu;
	file->t = t;
	return 0;
}

/*
 * The next record is at @t on @cpu: write what it needs before it. Return: 0, and @ret_delta, the
 * ticks since the record before it; or negative errno.
 */
static int go_to(struct xray_file *file, uint64_t t, uint32_t cpu, uint32_t *ret_delta)
{
	uint8_t *p;

	if (t < file->t)
		t = file->t;
	*ret_delta = 0;
	if (cpu != file->cpu)
		return add_cpu(file, t, cpu);
	if (t - file->t <= UINT32_MAX) {
		*ret_delta = (uint32_t)(t - file->t);
		file->t = t;
		return 0;
	}
	p = add_metadata(file, FDR_TSC_WRAP);
	if (!p)
		return -ENOMEM;
	(void)put64(p, t);
	file->t = t;
	return 0;
}

int xray_file_function(struct xray_file *file, uint64_t t, uint32_t cpu, enum fdr_action action,
		       uint32_t function)
{
	uint32_t delta = 0;
	uint8_t *p;
	int r;

	if (function > FDR_FUNCTION_MAX)
		return -EOVERFLOW;
	r = go_to(file, t, cpu, &delta);
	if (r < 0)
		return r;
	p = threadfile_add(&file->out, FDR_FUNCTION_SIZE);
	if (!p)
		return -ENOMEM;
	(void)put_function(p, action, function, delta);
	return threadfile_flush_if_full(&file->out);
}

int xray_file_event(struct xray_file *file, uint64_t t, uint32_t cpu, const char *text)
{
	const size_t size = strlen(text);
	uint32_t delta = 0;
	uint8_t *p;
	int r;

	assert(size > 0);
	r = go_to(file, t, cpu, &delta);
	if (r < 0)
		return r;
	/* In version 1 the event does not move the time on. */
	if (file->files->version == 1)
		file->t -= delta;
	p = add_metadata(file, FDR_CUSTOM_EVENT);
	if (!p)
		return -ENOMEM;
	p = put32(p, (uint32_t)size);
	if (file->files->version == 1)
		(void)put64(p, file->t + delta);
	else
		(void)put32(p, delta);
	p = threadfile_add(&file->out, size);
	if (!p)
		return -ENOMEM;
	memcpy(p, text, size);
	return threadfile_flush_if_full(&file->out);
}

/* --- sections --------------------------------------------------------------------------------- */

/* Put the entries that were found since the section began, the outermost first. */
static int end_section(struct xray_file *file)
{
	const size_t n = file->below.n;
	uint8_t *entries, *p;
	int r;

	file->has_section = false;
	if (n == 0)
		return 0;
	entries = p = malloc(n * FDR_FUNCTION_SIZE);
	if (!entries)
		return -ENOMEM;
	for (size_t i = n; i-- > 0;)
		p = put_function(p, FDR_ENTRY, file->below.items[i], 0);
	r = threadfile_insert(&file->out, file->section, entries, n * FDR_FUNCTION_SIZE);
	free(entries);
	vec_deinit(&file->below);
	return r;
}

int xray_file_section(struct xray_file *file, uint64_t t, uint32_t cpu)
{
	int r = end_section(file);

	/* The entries need the time: they have no ticks of their own. */
	if (r == 0 && (t > file->t || cpu != file->cpu))
		r = add_cpu(file, t > file->t ? t : file->t, cpu);
	file->section = threadfile_size(&file->out);
	file->has_section = true;
	return r;
}

int xray_file_below(struct xray_file *file, uint32_t function)
{
	assert(file->has_section);
	if (function > FDR_FUNCTION_MAX)
		return -EOVERFLOW;
	return vec_push(&file->below, function);
}

/* --- the life of a file ----------------------------------------------------------------------- */

/* Dots divide the name, and it must be one for llvm-xray's command line, too. */
static int make_name(struct xray_file *file, const struct xray_file_head *head)
{
	char comm[COMM_MAX];
	size_t n = 0;

	for (const char *p = head->comm ?: ""; *p && n + 1 < sizeof(comm); p++) {
		const bool is_plain = (*p >= '0' && *p <= '9') || (*p >= 'a' && *p <= 'z') ||
				      (*p >= 'A' && *p <= 'Z') || strchr("-+:@", *p);

		comm[n++] = is_plain ? *p : '_';
	}
	comm[n] = '\0';
	file->out.name = message_text("xray-log.%s.%" PRIu32 ".%" PRIu32, n > 0 ? comm : "unknown",
				      head->tid, head->thread);
	return file->out.name ? 0 : -ENOMEM;
}

static int add_header(struct xray_file *file)
{
	uint8_t *p = threadfile_add(&file->out, FDR_HEADER_SIZE);

	if (!p)
		return -ENOMEM;
	memset(p, 0, FDR_HEADER_SIZE);
	p = put16(p, file->files->version);
	p = put16(p, FDR_TYPE);
	p = put32(p, FDR_CONSTANT_TSC | FDR_NONSTOP_TSC);
	(void)put64(p, file->files->frequency);
	return 0;
}

static int add_wall_time(struct xray_file *file, const struct xray_file_head *head)
{
	const bool is_ns = file->files->frequency == (uint64_t)NS_PER_S;
	const int64_t now = is_ns ? (int64_t)head->t + head->realtime_offset_ns : 0;
	uint8_t *p = add_metadata(file, FDR_WALL_TIME);

	if (!p)
		return -ENOMEM;
	if (now > 0)
		(void)put32(put64(p, (uint64_t)(now / NS_PER_S)),
			    (uint32_t)(now % NS_PER_S / NS_PER_US));
	return 0;
}

/* Add a record of a thread or process. */
static int add_id(struct xray_file *file, enum fdr_kind kind, uint32_t id)
{
	uint8_t *p = add_metadata(file, kind);

	if (!p)
		return -ENOMEM;
	if (file->files->version == 1)
		(void)put16(p, (uint16_t)id);
	else
		(void)put32(p, id);
	return 0;
}

int xray_file_begin(struct xray_file *file, struct xray_files *files,
		    const struct xray_file_head *head)
{
	const bool is_newest = files->version > 1;
	int r;

	*file = (struct xray_file){ .files = files, .out.files = &files->out };
	r = make_name(file, head);
	if (r == 0)
		r = add_header(file);
	if (r == 0 && is_newest && !add_metadata(file, FDR_BUFFER_EXTENTS))
		r = -ENOMEM;
	if (r == 0)
		r = add_id(file, FDR_NEW_BUFFER, head->tid);
	if (r == 0)
		r = add_wall_time(file, head);
	if (r == 0 && is_newest)
		r = add_id(file, FDR_PID, head->pid);
	if (r == 0)
		r = add_cpu(file, head->t, head->cpu);
	return r;
}

/* Write the sizes of the block, which are known now. */
static int patch_sizes(struct xray_file *file)
{
	uint64_t size = threadfile_size(&file->out) - FDR_HEADER_SIZE;
	uint8_t bytes[sizeof(size)];
	int r;

	(void)put64(bytes, size);
	r = threadfile_patch(&file->out, FDR_HEADER_DATA_SIZE, bytes, sizeof(bytes));
	if (r < 0 || file->files->version == 1)
		return r;
	(void)put64(bytes, size - FDR_METADATA_SIZE);
	return threadfile_patch(&file->out, EXTENTS_AT, bytes, sizeof(bytes));
}

int xray_file_finish(struct xray_file *file)
{
	int r = end_section(file);

	if (r == 0 && file->files->version == 1 && !add_metadata(file, FDR_END_OF_BUFFER))
		r = -ENOMEM;
	if (r == 0)
		r = threadfile_flush(&file->out);
	if (r == 0)
		r = patch_sizes(file);
	return r < 0 ? r : threadfile_finish(&file->out);
}

void xray_file_deinit(struct xray_file *file)
{
	threadfile_deinit(&file->out);
	vec_deinit(&file->below);
	*file = (struct xray_file){};
}
