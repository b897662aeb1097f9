/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/drmemtrace/writing.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "decoder/drmemtrace/out.h"
#include "decoder/util/threads.h"
#include "util/fullwrite.h"
#include "util/vec.h"

/* Pieces of one task, if as many wait; and the most that may wait or be in the task. */
#define PIECES_MIN 4
#define PIECES_MAX 16

/* Bytes that are to be written. */
struct piece {
	int fd;         /* borrowed */
	uint8_t *bytes; /* owned */
	size_t n;
	uint64_t offset;
};

struct pieces_list {
	struct piece items[PIECES_MAX];
	size_t n;
};

struct memtrace_writing {
	struct task task;
	struct ptd_threads *threads; /* borrowed */
	struct pieces_list waiting;
	int r; /* of the first write that failed */

	bool is_added; /* the task, to which this belongs then: */
	struct pieces_list written;
	int task_r;

	VEC(uint8_t *) spare;
};

int memtrace_writing_new(struct ptd_threads *threads, struct memtrace_writing **ret_writing)
{
	struct memtrace_writing *writing = calloc(1, sizeof(*writing));

	if (!writing)
		return -ENOMEM;
	writing->threads = threads;
	*ret_writing = writing;
	return 0;
}

struct memtrace_writing *memtrace_writing_free(struct memtrace_writing *writing)
{
	if (!writing)
		return NULL;
	assert(!writing->is_added && writing->waiting.n == 0);
	for (size_t i = 0; i < writing->spare.n; i++)
		free(writing->spare.items[i]);
	vec_deinit(&writing->spare);
	free(writing);
	return NULL;
}

uint8_t *memtrace_writing_buffer(struct memtrace_writing *writing)
{
	return writing->spare.n > 0 ? writing->spare.items[--writing->spare.n]
				    : malloc(MEMTRACE_OUT_BUFFER);
}

void memtrace_writing_give_back(struct memtrace_writing *writing, uint8_t *buffer)
{
	if (writing->spare.n == 2 * PIECES_MAX || vec_push(&writing->spare, buffer) < 0)
		free(buffer);
}

/* The task. */
static void write_pieces(struct task *task, size_t thread)
{
	struct memtrace_writing *writing = (struct memtrace_writing *)task;

	for (size_t i = 0; i < writing->written.n && writing->task_r == 0; i++) {
		const struct piece *piece = &writing->written.items[i];

		writing->task_r = fullwrite_at(piece->fd, piece->bytes, piece->n, piece->offset);
	}
}

static void add_task(struct memtrace_writing *writing)
{
	writing->written = writing->waiting;
	writing->waiting.n = 0;
	writing->task_r = writing->r;
	writing->task.run = write_pieces;
	writing->is_added = true;
	threads_add(writing->threads, &writing->task);
}

/* Wait for the task, if it was added. */
static void end_task(struct memtrace_writing *writing)
{
	if (!writing->is_added)
		return;
	threads_wait(writing->threads, &writing->task);
	writing->is_added = false;
	writing->r = writing->task_r;
	for (size_t i = 0; i < writing->written.n; i++)
		memtrace_writing_give_back(writing, writing->written.items[i].bytes);
}

int memtrace_writing_add(struct memtrace_writing *writing, int fd, uint8_t *buffer, size_t n,
			 uint64_t offset)
{
	struct pieces_list *waiting = &writing->waiting;

	if (waiting->n == PIECES_MAX ||
	    (writing->is_added && threads_is_done(writing->threads, &writing->task)))
		end_task(writing);
	if (!writing->is_added && waiting->n >= PIECES_MIN)
		add_task(writing);
	waiting->items[waiting->n++] =
	    (struct piece){ .fd = fd, .bytes = buffer, .n = n, .offset = offset };
	return writing->r;
}

int memtrace_writing_drain(struct memtrace_writing *writing)
{
	end_task(writing);
	if (writing->waiting.n > 0)
		add_task(writing);
	end_task(writing);
	return writing->r;
}
