/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/sink/export/ovni_stream.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "decoder/sink/output.h"
#include "decoder/util/ovni.h"
#include "ptd/record.h"

#define TASK_SHOWN 1u /* of version 3: what is not OVNI_TASK_NONE */

/* --- events ----------------------------------------------------------------------------------- */

static uint8_t *put32(uint8_t *p, uint32_t v)
{
	return mempcpy(p, &v, sizeof(v));
}

static uint8_t *put64(uint8_t *p, uint64_t v)
{
	return mempcpy(p, &v, sizeof(v));
}

static inline uint8_t *put_head(uint8_t *p, unsigned int flags, uint8_t code,
				const char letters[static OVNI_LETTERS], uint64_t t)
{
	*p++ = OVNI_FLAGS_AND(flags, code);
	memcpy(p, letters, OVNI_LETTERS);
	return put64(p + OVNI_LETTERS, t);
}

/*
 * Add an event. Return: where its payload is to be put, which is valid until the next event; NULL:
 * there is no memory.
 */
static inline uint8_t *add(struct ovni_stream *stream, const char letters[static OVNI_LETTERS],
			   uint64_t t, uint8_t size)
{
	uint8_t *p = threadfile_add(&stream->out, OVNI_EVENT_SIZE + (size_t)size);

	if (t > stream->t)
		stream->t = t;
	return p ? put_head(p, 0, ovni_size_code(size), letters, stream->t) : NULL;
}

static int add_plain(struct ovni_stream *stream, const char letters[static OVNI_LETTERS],
		     uint64_t t)
{
	return add(stream, letters, t, 0) ? 0 : -ENOMEM;
}

static int add_cpu(struct ovni_stream *stream, const char letters[static OVNI_LETTERS], uint64_t t,
		   int32_t cpu)
{
	uint8_t *p = add(stream, letters, t, sizeof(cpu));

	if (!p)
		return -ENOMEM;
	(void)put32(p, (uint32_t)cpu);
	return 0;
}

/* --- the life of the thread ------------------------------------------------------------------- */

int ovni_stream_execute(struct ovni_stream *stream, uint64_t t, int32_t cpu)
{
	uint8_t *p = add(stream, "OHx", t, 16);

	/* Who created the thread is not known; the tag is for programs. */
	if (!p)
		return -ENOMEM;
	(void)put64(put32(put32(p, (uint32_t)cpu), UINT32_MAX), 0);
	return 0;
}

int ovni_stream_resume(struct ovni_stream *stream, uint64_t t)
{
	return add_plain(stream, "OHr", t);
}

/* Another thread may run on the CPU that the thread was on: it has to move before it runs. */
int ovni_stream_resume_at(struct ovni_stream *stream, uint64_t t, int32_t cpu)
{
	int r = add_plain(stream, "OHw", t);

	if (r == 0)
		r = add_cpu(stream, "OAs", t, cpu);
	return r < 0 ? r : add_plain(stream, "OHr", t);
}

int ovni_stream_pause(struct ovni_stream *stream, uint64_t t)
{
	return add_plain(stream, "OHp", t);
}

int ovni_stream_end(struct ovni_stream *stream, uint64_t t)
{
	return add_plain(stream, "OHe", t);
}

/* --- functions -------------------------------------------------------------------------------- */

/* Bytes of the events by which a function is entered, at most: its type, its task, and so on. */
#define TYPE_MAX  (OVNI_EVENT_SIZE + 4 + 4 + OVNI_LABEL_MAX + 1)
#define ENTER_MAX (TYPE_MAX + OVNI_EVENT_SIZE + 8 + OVNI_EVENT_SIZE + 4)

static inline uint8_t *put_mark(uint8_t *p, const char letters[static OVNI_LETTERS], uint64_t t,
				enum ovni_mark type, uint64_t value)
{
	return put32(put64(put_head(p, 0, ovni_size_code(12), letters, t), value), type);
}

/* The value 0 stands for none. */
static uint64_t value_of(const struct ptd_function *function)
{
	return (uint64_t)function->id + 1;
}

/* Version 1: make a type of tasks. */
static uint8_t *put_type(uint8_t *p, uint64_t t, uint32_t type, const char *label)
{
	uint8_t *size = put_head(p, OVNI_FLAG_JUMBO, OVNI_JUMBO_CODE, "VYc", t);
	char *text = (char *)put32(size + 4, type);
	const size_t n = output_printable(text, label, OVNI_LABEL_MAX);

	text[n] = '\0';
	(void)put32(size, (uint32_t)(4 + n + 1));
	return (uint8_t *)text + n + 1;
}

/* Version 1: make a task and execute it. */
static uint8_t *put_task(struct ovni_stream *stream, uint8_t *p, uint64_t t, uint32_t type,
			 uint32_t *ret_task)
{
	const uint32_t task = ++stream->streams->n_tasks;

	p = put32(put32(put_head(p, 0, ovni_size_code(8), "VTc", t), task), type);
	*ret_task = task;
	return put32(put_head(p, 0, ovni_size_code(4), "VTx", t), task);
}

/* Version 1: make a task of a type of its own, since @label has none yet, or none before it. */
static uint8_t *put_own_task(struct ovni_stream *stream, uint8_t *p, uint64_t t, const char *label,
			     uint32_t *ret_task)
{
	const uint32_t type = ++stream->streams->n_types;

	return put_task(stream, put_type(p, t, type, label), t, type, ret_task);
}

static bool is_old(const struct ovni_stream *stream)
{
	return stream->streams->version == OVNI_VERSION_OLD;
}

/* Version 1: put a function, whose type is made when it is called first. Return: the end of it;
 * NULL: there is no memory. */
static uint8_t *put_call(struct ovni_stream *stream, uint8_t *p,
			 const struct ptd_function *function, uint32_t *ret_task)
{
	const uint64_t *type = map_get(&stream->types, function->id);

	if (type)
		return put_task(stream, p, stream->t, (uint32_t)*type, ret_task);
	if (map_put(&stream->types, function->id, stream->streams->n_types + 1) < 0)
		return NULL;
	return put_own_task(stream, p, stream->t, function->name, ret_task);
}

/* Begin to write at most @size bytes at the time @t. Return: where; NULL: there is no memory. */
static inline uint8_t *begin(struct ovni_stream *stream, uint64_t t, size_t size)
{
	if (t > stream->t)
		stream->t = t;
	return threadfile_add(&stream->out, size);
}

/* The bytes end at @end. */
static inline int end(struct ovni_stream *stream, const uint8_t *end)
{
	stream->out.buffer.n = (size_t)(end - stream->out.buffer.items);
	return threadfile_flush_if_full(&stream->out);
}

int ovni_stream_enter(struct ovni_stream *stream, uint64_t t, const struct ptd_function *function,
		      uint32_t *ret_task)
{
	uint8_t *p;

	*ret_task = OVNI_TASK_NONE;
	if (stream->depth == OVNI_DEPTH_MAX) {
		stream->streams->n_too_deep++;
		return 0;
	}
	p = begin(stream, t, ENTER_MAX);
	if (!p)
		return -ENOMEM;
	if (is_old(stream)) {
		p = put_call(stream, p, function, ret_task);
		if (!p)
			return -ENOMEM;
	} else {
		p = put_mark(p, "OM[", stream->t, OVNI_MARK_FUNCTION, value_of(function));
		*ret_task = TASK_SHOWN;
	}
	if (++stream->depth > stream->depth_max)
		stream->depth_max = stream->depth;
	return end(stream, p);
}

int ovni_stream_leave(struct ovni_stream *stream, uint64_t t, const struct ptd_function *function,
		      uint32_t task)
{
	uint8_t *p;

	if (task == OVNI_TASK_NONE)
		return 0;
	p = begin(stream, t, ENTER_MAX);
	if (!p)
		return -ENOMEM;
	stream->depth--;
	if (is_old(stream))
		p = put32(put_head(p, 0, ovni_size_code(4), "VTe", stream->t), task);
	else
		p = put_mark(p, "OM]", stream->t, OVNI_MARK_FUNCTION, value_of(function));
	return end(stream, p);
}

/* --- sections --------------------------------------------------------------------------------- */

/* Put the functions that were found since the section began, the outermost first. */
static int end_section(struct ovni_stream *stream)
{
	const size_t n = stream->outer.n;
	uint8_t *bytes, *p;
	int r;

	stream->has_section = false;
	if (n == 0)
		return 0;
	bytes = p = malloc(n * ENTER_MAX);
	if (!bytes)
		return -ENOMEM;
	for (size_t i = n; i-- > 0;) {
		const struct ovni_outer *outer = &stream->outer.items[i];
		uint32_t type;

		if (!is_old(stream)) {
			p = put_mark(p, "OM[", stream->section_t, OVNI_MARK_FUNCTION,
				     value_of(outer->function));
			continue;
		}
		/* The type that the function may have by now is made behind this. */
		type = ++stream->streams->n_types;
		p = put_type(p, stream->section_t, type, outer->function->name);
		p = put32(
		    put32(put_head(p, 0, ovni_size_code(8), "VTc", stream->section_t), outer->task),
		    type);
		p = put32(put_head(p, 0, ovni_size_code(4), "VTx", stream->section_t), outer->task);
	}
	r = threadfile_insert(&stream->out, stream->section, bytes, (size_t)(p - bytes));
	free(bytes);
	vec_deinit(&stream->outer);
	return r;
}

int ovni_stream_section(struct ovni_stream *stream, uint64_t t)
{
	const int r = end_section(stream);

	if (t > stream->t)
		stream->t = t;
	stream->section = threadfile_size(&stream->out);
	stream->section_t = stream->t;
	stream->depth_max = stream->depth;
	stream->has_section = true;
	return r;
}

int ovni_stream_outer(struct ovni_stream *stream, const struct ptd_function *function,
		      uint32_t *ret_task)
{
	assert(stream->has_section);
	*ret_task = OVNI_TASK_NONE;
	if (stream->depth_max == OVNI_DEPTH_MAX) {
		stream->streams->n_too_deep++;
		return 0;
	}
	stream->depth_max++;
	stream->depth++;
	*ret_task = is_old(stream) ? ++stream->streams->n_tasks : TASK_SHOWN;
	return vec_push(&stream->outer, { .function = function, .task = *ret_task });
}

/* --- gaps ------------------------------------------------------------------------------------- */

void ovni_gap_name(uint32_t reason, char *ret_text, size_t size)
{
	if (reason == OVNI_GAP_SCOPE)
		(void)snprintf(ret_text, size, "%s", ptd_mark_kind_name(PTD_MARK_OUT_OF_SCOPE));
	else
		(void)snprintf(ret_text, size, "gap: %s", ptd_gap_reason_name(reason));
}

int ovni_stream_gap(struct ovni_stream *stream, uint64_t t, uint32_t reason)
{
	char name[64];
	uint8_t *p;
	int r = ovni_stream_end_gap(stream, t);

	if (r < 0)
		return r;
	p = begin(stream, t, ENTER_MAX);
	if (!p)
		return -ENOMEM;
	stream->gap = reason + 1;
	if (is_old(stream)) {
		ovni_gap_name(reason, name, sizeof(name));
		p = put_own_task(stream, p, stream->t, name, &stream->gap_task);
	} else {
		p = put_mark(p, "OM[", stream->t, OVNI_MARK_GAP, stream->gap);
	}
	return end(stream, p);
}

int ovni_stream_end_gap(struct ovni_stream *stream, uint64_t t)
{
	uint8_t *p;

	if (stream->gap == 0)
		return 0;
	p = begin(stream, t, ENTER_MAX);
	if (!p)
		return -ENOMEM;
	if (is_old(stream))
		p = put32(put_head(p, 0, ovni_size_code(4), "VTe", stream->t), stream->gap_task);
	else
		p = put_mark(p, "OM]", stream->t, OVNI_MARK_GAP, stream->gap);
	stream->gap = 0;
	return end(stream, p);
}

int ovni_stream_value(struct ovni_stream *stream, uint64_t t, uint64_t value)
{
	uint8_t *p;

	assert(value != 0 && !is_old(stream));
	p = begin(stream, t, ENTER_MAX);
	return p ? end(stream, put_mark(p, "OM=", stream->t, OVNI_MARK_PTWRITE, value)) : -ENOMEM;
}

/* --- the life of a stream --------------------------------------------------------------------- */

int ovni_stream_begin(struct ovni_stream *stream, struct ovni_streams *streams, char *name)
{
	static const uint8_t header[OVNI_HEADER_SIZE] = OVNI_MAGIC "\1";
	uint8_t *p;

	*stream = (struct ovni_stream){ .streams = streams,
					.out = { .files = &streams->out, .name = name } };
	if (is_old(stream))
		return 0;
	p = threadfile_add(&stream->out, sizeof(header));
	if (!p)
		return -ENOMEM;
	memcpy(p, header, sizeof(header));
	return 0;
}

int ovni_stream_finish(struct ovni_stream *stream)
{
	const int r = end_section(stream);

	return r < 0 ? r : threadfile_finish(&stream->out);
}

void ovni_stream_deinit(struct ovni_stream *stream)
{
	threadfile_deinit(&stream->out);
	map_deinit(&stream->types);
	vec_deinit(&stream->outer);
	*stream = (struct ovni_stream){};
}
