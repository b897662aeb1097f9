/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/file/perfsample.h"

#include <errno.h>
#include <linux/perf_event.h>

/* Younger than some kernels' headers. */
#define READ_LOST       (UINT64_C(1) << 4)
#define BRANCH_COUNTERS (UINT64_C(1) << 19)

#define BRANCH_ENTRY_SIZE 24

/* @n items of @size bytes each. */
static int skip_many(struct cursor *c, uint64_t n, uint64_t size)
{
	return n > cursor_left(c) / size ? -EBADMSG : cursor_skip(c, n * size);
}

/* The fields of 8 bytes each that are among @fields of the sample's type. */
static int skip_words(struct cursor *c, uint64_t fields)
{
	return cursor_skip(c, 8 * (uint64_t)__builtin_popcountll(fields));
}

uint64_t perfsample_id(const struct perfattrs *attrs, struct cursor body)
{
	/* All attrs agree on where the id is. */
	const uint64_t sample_type = attrs->list.n > 0 ? attrs->list.items[0].sample_type : 0;
	const uint64_t before =
	    sample_type & (PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR);
	uint64_t id;

	if (!(sample_type & PERF_SAMPLE_IDENTIFIER) &&
	    (!(sample_type & PERF_SAMPLE_ID) || skip_words(&body, before) < 0))
		return 0;
	return cursor_get(&body, sizeof(id), &id) < 0 ? 0 : id;
}

const struct perfattr *perfsample_attr(const struct perfattrs *attrs, struct cursor body)
{
	return perfattrs_of_id(attrs, perfsample_id(attrs, body));
}

/* The fields of fixed size that every sample begins with. */
static int read_head(struct cursor *c, uint64_t type, struct perfsample *sample)
{
	uint32_t ids[2];
	int r = skip_words(c, type & (PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP));

	if (type & PERF_SAMPLE_TID) {
		r = r ?: cursor_get(c, sizeof(ids), ids);
		sample->pid = r < 0 ? UINT32_MAX : ids[0];
		sample->tid = r < 0 ? UINT32_MAX : ids[1];
	}
	if (type & PERF_SAMPLE_TIME)
		r = r ?: cursor_get(c, sizeof(sample->time), &sample->time);
	r = r ?: skip_words(c, type & (PERF_SAMPLE_ADDR | PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID));
	if (type & PERF_SAMPLE_CPU) {
		r = r ?: cursor_get(c, sizeof(ids), ids);
		sample->cpu = r < 0 ? UINT32_MAX : ids[0];
	}
	return r ?: skip_words(c, type & PERF_SAMPLE_PERIOD);
}

/* The values of counters. */
static int skip_read(struct cursor *c, uint64_t format)
{
	const uint64_t times =
	    format & (PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING);
	const uint64_t n_times = (uint64_t)__builtin_popcountll(times);
	const uint64_t n_values =
	    1 + (uint64_t)__builtin_popcountll(format & (PERF_FORMAT_ID | READ_LOST));
	uint64_t n;
	int r;

	if (!(format & PERF_FORMAT_GROUP))
		return cursor_skip(c, 8 * (n_times + n_values));
	r = cursor_get(c, sizeof(n), &n) ?: cursor_skip(c, 8 * n_times);
	return r ?: skip_many(c, n, 8 * n_values);
}

static int skip_callchain(struct cursor *c)
{
	uint64_t n;

	return cursor_get(c, sizeof(n), &n) ?: skip_many(c, n, 8);
}

static int read_raw(struct cursor *c, struct cursor *ret_raw)
{
	uint32_t size;

	return cursor_get(c, sizeof(size), &size) ?: cursor_get_sub(c, size, ret_raw);
}

static int skip_branches(struct cursor *c, uint64_t branch_sample_type)
{
	uint64_t n;
	int r;

	r = cursor_get(c, sizeof(n), &n);
	if (r == 0 && branch_sample_type & PERF_SAMPLE_BRANCH_HW_INDEX)
		r = cursor_skip(c, 8);
	if (r == 0)
		r = skip_many(c, n, BRANCH_ENTRY_SIZE);
	if (r == 0 && branch_sample_type & BRANCH_COUNTERS)
		r = skip_many(c, n, 8);
	return r;
}

static int skip_regs(struct cursor *c, uint64_t mask)
{
	uint64_t abi;
	int r = cursor_get(c, sizeof(abi), &abi);

	return r < 0 || !abi ? r : skip_words(c, mask);
}

static int skip_stack(struct cursor *c)
{
	uint64_t size;
	int r = cursor_get(c, sizeof(size), &size);

	return r < 0 || !size ? r : cursor_skip(c, size) ?: cursor_skip(c, 8);
}

/* Between the head and what tracepoints say, which is taken out. */
static int read_middle(struct cursor *c, const struct perfattr *attr, struct cursor *ret_raw)
{
	int r = 0;

	if (attr->sample_type & PERF_SAMPLE_READ)
		r = r ?: skip_read(c, attr->read_format);
	if (attr->sample_type & PERF_SAMPLE_CALLCHAIN)
		r = r ?: skip_callchain(c);
	if (attr->sample_type & PERF_SAMPLE_RAW)
		r = r ?: read_raw(c, ret_raw);
	return r;
}

/* Between that and the PT. */
static int skip_rest(struct cursor *c, const struct perfattr *attr)
{
	const uint64_t type = attr->sample_type;
	const uint64_t weights = type & (PERF_SAMPLE_WEIGHT | PERF_SAMPLE_WEIGHT_STRUCT);
	const uint64_t access = PERF_SAMPLE_DATA_SRC | PERF_SAMPLE_TRANSACTION;
	const uint64_t places = PERF_SAMPLE_PHYS_ADDR | PERF_SAMPLE_CGROUP |
				PERF_SAMPLE_DATA_PAGE_SIZE | PERF_SAMPLE_CODE_PAGE_SIZE;
	int r = 0;

	if (type & PERF_SAMPLE_BRANCH_STACK)
		r = r ?: skip_branches(c, attr->branch_sample_type);
	if (type & PERF_SAMPLE_REGS_USER)
		r = r ?: skip_regs(c, attr->regs_user);
	if (type & PERF_SAMPLE_STACK_USER)
		r = r ?: skip_stack(c);
	if (weights)
		r = r ?: cursor_skip(c, 8);
	r = r ?: skip_words(c, type & access);
	if (type & PERF_SAMPLE_REGS_INTR)
		r = r ?: skip_regs(c, attr->regs_intr);
	return r ?: skip_words(c, type & places);
}

static int read_aux(struct cursor *c, struct cursor *ret_aux)
{
	uint64_t size;
	int r = cursor_get(c, sizeof(size), &size);

	if (r < 0)
		return r;
	return size > cursor_left(c) ? -EBADMSG : cursor_get_sub(c, (size_t)size, ret_aux);
}

int perfsample_read(struct cursor body, const struct perfattr *attr, struct perfsample *ret_sample)
{
	struct perfsample sample = { .pid = UINT32_MAX, .tid = UINT32_MAX, .cpu = UINT32_MAX };
	int r;

	r = read_head(&body, attr->sample_type, &sample);
	if (r < 0)
		return r;
	if (attr->sample_type & (PERF_SAMPLE_AUX | PERF_SAMPLE_RAW))
		r = read_middle(&body, attr, &sample.raw);
	if (r == 0 && attr->sample_type & PERF_SAMPLE_AUX)
		r = skip_rest(&body, attr) ?: read_aux(&body, &sample.aux);
	if (r == 0)
		*ret_sample = sample;
	return r;
}
