/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/jit/codelog.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/cursor.h"
#include "decoder/util/filebytes.h"
#include "decoder/util/ranges.h"

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

static int read_piece(struct cursor *cursor, uint64_t file_size, struct codelog_piece *ret_piece)
{
	struct ptd_code_piece p;
	int r;

	r = cursor_get(cursor, sizeof(p), &p);
	if (r < 0)
		return r;
	if (p.size == 0 || p.size - 1 > UINT64_MAX - p.address || p.offset > file_size ||
	    (p.offset > 0 && p.size > file_size - p.offset) || (p.offset == 0 && p.time == 0))
		return -EBADMSG;
	*ret_piece = (struct codelog_piece){
		.time = p.time,
		.start = p.address,
		.last = p.address + (p.size - 1),
		.offset = p.offset,
	};
	return 0;
}

int codelog_parse(const uint8_t *bytes, size_t size, uint64_t file_size,
		  struct codelog_pieces *ret_pieces)
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

		r = read_piece(&cursor, file_size, piece);
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

/* Tell the object at which address each of its parts was. */
static int add_parts(struct codelog *log)
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

/*
 * Find out which pieces are the last ones of their memory: from the last piece to the first, put
 * together what those behind it cover.
 */
static int find_last(struct codelog_pieces *pieces)
{
	struct ranges covered;
	int r = 0;

	ranges_init(&covered, sizeof(struct range));
	for (size_t i = pieces->list.n; r == 0 && i > 0; i--) {
		struct codelog_piece *p = &pieces->list.items[i - 1];
		const struct ranges_place place = ranges_find(&covered, p->start);
		struct range all = { p->start, p->last };
		struct ranges_place at = place;
		const struct range *there;
		size_t n = 0;

		for (; (there = ranges_get(&covered, at)) && there->start <= p->last; n++) {
			all.start = there->start < all.start ? there->start : all.start;
			all.last = there->last > all.last ? there->last : all.last;
			at = ranges_next(&covered, at);
		}
		p->is_last = n == 0;
		r = ranges_replace(&covered, place, n, &all, 1);
	}
	ranges_deinit(&covered);
	return r;
}

/* Read the head of the log, whose size its header states, and parse it. */
static int read_head(struct codelog *log)
{
	const struct object *object = log->object;
	const uint64_t size = object->size;
	struct ptd_code_header header;
	uint64_t head_size;
	const uint8_t *p;

	if (!filebytes_copy(object->file, 0, &header, sizeof(header)))
		return -EBADMSG;
	head_size = sizeof(header) + header.n_pieces * (uint64_t)sizeof(struct ptd_code_piece);
	if (head_size > size)
		head_size = size;
	p = object_bytes(object, 0, head_size);
	return p ? codelog_parse(p, head_size, size, &log->pieces) : -EBADMSG;
}

static int add_log(struct codelogs *logs, const struct memfiles *files, const struct memfile *file)
{
	struct codelog log = { .pid = file->pid, .start = file->start };
	int r;

	r = memfiles_load(files, file, &log.object);
	if (r == 0)
		r = read_head(&log);
	if (r == 0)
		r = find_last(&log.pieces);
	if (r == 0)
		r = add_parts(&log);
	if (r == 0)
		r = objects_share(files->objects, log.object, false, MEMFILE_OBJECT_NAME,
				  &log.last_object);
	if (r == 0)
		r = vec_push(&logs->logs, log);
	if (r < 0)
		vec_deinit(&log.pieces.list);
	return r == -ENOMEM ? r : 0;
}

int codelogs_init(struct codelogs *logs, const struct memfiles *files, struct perfmaps *perfmaps)
{
	int r = 0;

	*logs = (struct codelogs){};
	for (size_t i = 0; r == 0 && i < files->logs.n; i++)
		r = add_log(logs, files, &files->logs.items[i]);
	for (size_t i = 0; r == 0 && i < logs->logs.n; i++) {
		struct codelog *log = &logs->logs.items[i];

		/* A perf map is of the last program that its process executed. */
		if (i + 1 < logs->logs.n && log[1].pid == log->pid)
			continue;
		memfile_set_names(log->object, log->pid, perfmaps, false, &log->names);
		memfile_set_names(log->last_object, log->pid, perfmaps, true, &log->last_names);
	}
	if (r < 0)
		codelogs_deinit(logs);
	return r;
}

void codelogs_deinit(struct codelogs *logs)
{
	vec_deinit_each(&logs->logs, log, vec_deinit(&log->pieces.list));
}

const struct codelog *codelogs_find(const struct codelogs *logs, uint32_t pid, uint64_t time)
{
	const size_t n =
	    vec_bisect(&logs->logs, log, log->pid < pid || (log->pid == pid && log->start < time));

	return n > 0 && logs->logs.items[n - 1].pid == pid ? &logs->logs.items[n - 1] : NULL;
}
