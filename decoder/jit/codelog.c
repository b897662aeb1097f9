/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/jit/codelog.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/cursor.h"
#include "util/dirs.h"

#define NAME "[anon]"

/* --- one file --------------------------------------------------------------------------------- */

/* Return: whether @piece may come behind @before, if that is not NULL. */
static bool is_in_order(const struct codelog_piece *before, const struct codelog_piece *piece)
{
	if (!before)
		return true;
	if (piece->time == 0)
		return before->time == 0 && piece->start > before->last;
	return piece->time >= before->time;
}

static int read_piece(struct cursor *cursor, size_t size, struct codelog_piece *ret_piece)
{
	struct ptd_code_piece p;
	int r;

	r = cursor_get(cursor, sizeof(p), &p);
	if (r < 0)
		return r;
	if (p.size == 0 || p.size - 1 > UINT64_MAX - p.address || p.offset > size ||
	    (p.offset > 0 && p.size > size - p.offset) || (p.offset == 0 && p.time == 0))
		return -EBADMSG;
	*ret_piece = (struct codelog_piece){
		.time = p.time,
		.start = p.address,
		.last = p.address + (p.size - 1),
		.offset = p.offset,
	};
	return 0;
}

int codelog_parse(const uint8_t *bytes, size_t size, struct codelog_pieces *ret_pieces)
{
	struct cursor cursor = cursor_from(bytes, size);
	struct codelog_pieces pieces = {};
	struct ptd_code_header header;
	int r;

	r = cursor_get(&cursor, sizeof(header), &header);
	if (r < 0 || header.magic != PTD_CODE_MAGIC || header.version != PTD_CODE_VERSION ||
	    header.n_pieces > CODELOG_PIECES_MAX ||
	    header.n_pieces > cursor_left(&cursor) / sizeof(struct ptd_code_piece))
		return -EBADMSG;
	r = vec_reserve(&pieces.list, header.n_pieces);
	for (uint32_t i = 0; r == 0 && i < header.n_pieces; i++) {
		const struct codelog_piece *before = i > 0 ? &pieces.list.items[i - 1] : NULL;
		struct codelog_piece *piece = &pieces.list.items[i];

		r = read_piece(&cursor, size, piece);
		if (r == 0 && !is_in_order(before, piece))
			r = -EBADMSG;
		pieces.list.n++;
	}
	if (r < 0) {
		vec_deinit(&pieces.list);
		return r;
	}
	*ret_pieces = pieces;
	return 0;
}

/* --- those of a snapshot ---------------------------------------------------------------------- */

/* PID-START.code, and nothing else. */
static bool read_name(const char *name, uint32_t *ret_pid, uint64_t *ret_start)
{
	char again[64];

	if (sscanf(name, "%" SCNu32 "-%" SCNu64, ret_pid, ret_start) != 2)
		return false;
	(void)snprintf(again, sizeof(again), "%" PRIu32 "-%" PRIu64 PTD_CODE_SUFFIX, *ret_pid,
		       *ret_start);
	return strcmp(name, again) == 0;
}

/* Return: 0, or -ENOMEM. */
static int tell_addresses(struct codelog *log)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < log->pieces.list.n; i++) {
		const struct codelog_piece *p = &log->pieces.list.items[i];

		if (p->offset > 0)
			r = object_add_part(log->object, p->offset, p->last - p->start + 1,
					    p->start);
	}
	return r;
}

static int add_log(struct codelogs *logs, struct objects *objects, const char *name)
{
	_cleanup_(freep) char *path = NULL;
	struct codelog log = {};
	int r;

	if (!read_name(name, &log.pid, &log.start) || logs->logs.n == CODELOGS_MAX)
		return 0;
	if (asprintf(&path, "%s/" PTD_SNAPSHOT_MEM "/%s", objects_dir(objects), name) < 0) {
		path = NULL;
		return -ENOMEM;
	}
	r = objects_add_memory(objects, path, NAME, 0, &log.object);
	if (r == 0)
		r = codelog_parse(log.object->bytes, log.object->size, &log.pieces);
	if (r == 0)
		r = tell_addresses(&log);
	if (r == 0)
		r = vec_push(&logs->logs, log);
	if (r < 0)
		vec_deinit(&log.pieces.list);
	return r == -ENOMEM ? r : 0;
}

static int compare(const void *pa, const void *pb)
{
	const struct codelog *a = pa, *b = pb;

	if (a->pid != b->pid)
		return a->pid < b->pid ? -1 : 1;
	return a->start < b->start ? -1 : a->start > b->start;
}

/* A perf map is of the last program that its process executed. */
static int name_logs(struct codelogs *logs, struct perfmaps *perfmaps)
{
	for (size_t i = 0; i < logs->logs.n; i++) {
		struct codelog *log = &logs->logs.items[i];
		struct perfmap *perfmap;
		uint64_t start, end;
		int r;

		if (i + 1 < logs->logs.n && log[1].pid == log->pid)
			continue;
		r = perfmaps_find(perfmaps, log->pid, &perfmap);
		if (r < 0)
			return r;
		if (!perfmap)
			continue;
		object_span(log->object, &start, &end);
		perfmap_source_init(&log->names, perfmap, start, end);
		log->object->symbols = &log->names.source;
	}
	return 0;
}

static int read_dir(struct codelogs *logs, struct objects *objects, struct perfmaps *perfmaps)
{
	_cleanup_(dirs_closep) DIR *dir = NULL;
	_cleanup_(freep) char *path = NULL;
	const struct dirent *entry;
	int r;

	if (asprintf(&path, "%s/" PTD_SNAPSHOT_MEM, objects_dir(objects)) < 0) {
		path = NULL;
		return -ENOMEM;
	}
	dir = opendir(path);
	while (dir && (entry = readdir(dir))) {
		r = add_log(logs, objects, entry->d_name);
		if (r < 0)
			return r;
	}
	if (logs->logs.n == 0)
		return 0;
	qsort(logs->logs.items, logs->logs.n, sizeof(*logs->logs.items), compare);
	return name_logs(logs, perfmaps);
}

int codelogs_init(struct codelogs *logs, struct objects *objects, struct perfmaps *perfmaps)
{
	int r = 0;

	*logs = (struct codelogs){};
	if (objects_dir(objects))
		r = read_dir(logs, objects, perfmaps);
	if (r < 0)
		codelogs_deinit(logs);
	return r;
}

void codelogs_deinit(struct codelogs *logs)
{
	for (size_t i = 0; i < logs->logs.n; i++) {
		perfmap_source_deinit(&logs->logs.items[i].names);
		vec_deinit(&logs->logs.items[i].pieces.list);
	}
	vec_deinit(&logs->logs);
}

const struct codelog *codelogs_find(const struct codelogs *logs, uint32_t pid, uint64_t time)
{
	const size_t n =
	    vec_bisect(&logs->logs, log, log->pid < pid || (log->pid == pid && log->start < time));

	return n > 0 && logs->logs.items[n - 1].pid == pid ? &logs->logs.items[n - 1] : NULL;
}
