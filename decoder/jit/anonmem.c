/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/jit/anonmem.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "decoder/util/filebytes.h"
#include "ptd/snapshot.h"

/* Read the piece at @at, whose bytes follow. Return: whether it makes sense. */
static bool next_piece(const struct object *file, uint64_t *at, struct anonmem_piece *ret_piece)
{
	struct ptd_pages_piece p;
	uint64_t offset;

	if (!filebytes_copy(file->file, *at, &p, sizeof(p)))
		return false;
	offset = *at + sizeof(p);
	if (p.size == 0 || p.size > file->size - offset || p.size - 1 > UINT64_MAX - p.address)
		return false;
	*ret_piece = (struct anonmem_piece){
		.pid = p.pid, .start = p.address, .last = p.address + (p.size - 1), .offset = offset
	};
	*at = offset + p.size;
	return true;
}

static int read_pieces(struct anonmem *memory, const struct object *file)
{
	struct ptd_pages_header header;
	struct anonmem_piece piece;
	uint64_t at = sizeof(header);
	int r = 0;

	if (!filebytes_copy(file->file, 0, &header, sizeof(header)) ||
	    header.magic != PTD_PAGES_MAGIC || header.version != PTD_PAGES_VERSION)
		return 0;
	while (r == 0 && next_piece(file, &at, &piece)) {
		if (memory->pieces.n < ANONMEM_PIECES_MAX)
			r = vec_push(&memory->pieces, piece);
		else
			memory->n_left_out++;
	}
	return r;
}

/* Pieces that begin at the same address stay in their order. */
static int compare_pieces(const void *pa, const void *pb)
{
	const struct anonmem_piece *a = pa, *b = pb;

	return COMPARE(a->pid, b->pid) ?: COMPARE(a->start, b->start) ?: COMPARE(a->offset, b->offset);
}

/* No recorder writes pieces that overlap; of such pieces the first counts. */
static void drop_overlapping(struct anonmem *memory)
{
	struct anonmem_piece *p = memory->pieces.items;
	size_t n = 0;

	for (size_t i = 0; i < memory->pieces.n; i++)
		if (n == 0 || p[n - 1].pid != p[i].pid || p[i].start > p[n - 1].last)
			p[n++] = p[i];
	memory->pieces.n = n;
}

static int compare_offsets(const void *pa, const void *pb)
{
	const struct anonmem_piece *a = pa, *b = pb;

	return COMPARE(a->offset, b->offset);
}

/* Make the object of one process, whose pieces are the @n at @pieces. */
static int make_object(struct anonmem *memory, const struct memfiles *files,
		       const struct object *file, struct anonmem_piece *pieces, size_t n,
		       struct perfmaps *perfmaps)
{
	struct perfmap_source *names;
	struct object *object;
	int r;

	r = objects_share(files->objects, file, true, MEMFILE_OBJECT_NAME, &object);
	if (r < 0)
		return r;
	/* Parts come by offset. */
	qsort(pieces, n, sizeof(*pieces), compare_offsets);
	for (size_t i = 0; r == 0 && i < n; i++) {
		pieces[i].object = object;
		r = object_add_part(object, pieces[i].offset, pieces[i].last - pieces[i].start + 1,
				    pieces[i].start);
	}
	qsort(pieces, n, sizeof(*pieces), compare_pieces);
	if (r == 0)
		r = vec_reserve(&memory->names, 1);
	if (r < 0)
		return r;
	names = malloc(sizeof(*names));
	if (!names)
		return -ENOMEM;
	memory->names.items[memory->names.n++] = names; /* there is room */
	memfile_set_names(object, pieces->pid, perfmaps, true, names);
	return 0;
}

static int make_objects(struct anonmem *memory, const struct memfiles *files,
			const struct object *file, struct perfmaps *perfmaps)
{
	struct anonmem_piece *pieces = memory->pieces.items;
	int r = 0;

	for (size_t i = 0, n; r == 0 && i < memory->pieces.n; i += n) {
		for (n = 1; i + n < memory->pieces.n && pieces[i + n].pid == pieces[i].pid;)
			n++;
		r = make_object(memory, files, file, pieces + i, n, perfmaps);
	}
	return r;
}

int anonmem_init(struct anonmem *memory, const struct memfiles *files, struct perfmaps *perfmaps)
{
	struct object *file;
	int r;

	*memory = (struct anonmem){};
	r = memfiles_load_pages(files, &file);
	if (r < 0)
		return r == -ENOMEM ? r : 0;
	r = read_pieces(memory, file);
	vec_sort(&memory->pieces, compare_pieces);
	drop_overlapping(memory);
	if (r == 0)
		r = make_objects(memory, files, file, perfmaps);
	if (r < 0)
		anonmem_deinit(memory);
	return r;
}

void anonmem_deinit(struct anonmem *memory)
{
	vec_deinit_each(&memory->names, names, free(*names));
	vec_deinit(&memory->pieces);
}

const struct anonmem_piece *anonmem_find(const struct anonmem *memory, uint32_t pid,
					 uint64_t address)
{
	const struct anonmem_piece *p = memory->pieces.items;
	const size_t low =
	    vec_bisect(&memory->pieces, piece,
		       piece->pid < pid || (piece->pid == pid && piece->last < address));

	return low < memory->pieces.n && p[low].pid == pid ? &p[low] : NULL;
}
