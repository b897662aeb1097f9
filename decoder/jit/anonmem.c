/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/jit/anonmem.h"

#include <errno.h>

static int add_piece(struct anonmem *memory, const struct memfiles *files,
		     const struct memfile *file)
{
	const struct anonmem_piece *before =
	    memory->pieces.n > 0 ? &memory->pieces.items[memory->pieces.n - 1] : NULL;
	struct object *object;
	int r;

	r = memfiles_load(files, MEMFILE_PIECE, file, &object);
	if (r < 0)
		return r == -ENOMEM ? r : 0;
	if (object->size == 0 || object->size - 1 > UINT64_MAX - file->number)
		return 0;
	/* No recorder writes pieces that overlap; of such pieces the first counts. */
	if (before && before->pid == file->pid && file->number <= before->last)
		return 0;
	return vec_push(&memory->pieces, { .pid = file->pid,
					   .start = file->number,
					   .last = file->number + (object->size - 1),
					   .object = object });
}

int anonmem_init(struct anonmem *memory, const struct memfiles *files, struct perfmaps *perfmaps)
{
	const struct memfile_list *list = &files->kinds[MEMFILE_PIECE];
	int r = 0;

	*memory = (struct anonmem){};
	for (size_t i = 0; r == 0 && i < list->files.n; i++)
		r = add_piece(memory, files, &list->files.items[i]);
	for (size_t i = 0; r == 0 && i < memory->pieces.n; i++) {
		struct anonmem_piece *p = &memory->pieces.items[i];

		/* Nothing has used the object yet. */
		memfile_set_names((struct object *)(uintptr_t)p->object, p->pid, perfmaps, true,
				  &p->names);
	}
	if (r < 0)
		anonmem_deinit(memory);
	return r;
}

void anonmem_deinit(struct anonmem *memory)
{
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
