/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/trace/trace.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct trace *trace_free(struct trace *trace)
{
	if (!trace)
		return NULL;

	for (size_t i = 0; i < trace->n_queues; i++) {
		free(trace->queues[i].spans);
		free(trace->queues[i].losses);
	}
	free(trace->queues);
	table_deinit(&trace->record_table);
	table_deinit(&trace->payloads);
	map_deinit(&trace->facts.scope);
	vec_deinit(&trace->programs);
	vec_deinit_each(&trace->bytes, bytes, free(*bytes));
	vec_deinit_each(&trace->fds, fd, fd_close(*fd));
	free(trace->parts);
	free(trace);
	return NULL;
}

void trace_evict(const struct trace *trace)
{
	table_evict(&trace->record_table);
	table_evict(&trace->payloads);
}

/* --- address filter --------------------------------------------------------------------------- */

#define SEPARATORS " \t\n,"

static bool is_one_of(uint8_t byte, const char *set)
{
	return byte && strchr(set, byte);
}

static void skip_separators(struct cursor *c)
{
	while (cursor_left(c) > 0 && is_one_of(*c->pos, SEPARATORS))
		c->pos++;
}

/* Take @word if it is next. */
static bool take_word(struct cursor *c, const char *word)
{
	const size_t size = strlen(word);

	if (cursor_left(c) < size || memcmp(c->pos, word, size) != 0)
		return false;
	c->pos += size;
	return true;
}

/* As perf writes it: 0x and hexadecimal digits. */
static int take_number(struct cursor *c, uint64_t *ret_number)
{
	static const char digits[] = "0123456789abcdef";
	uint64_t number = 0;
	size_t n = 0;

	if (!take_word(c, "0x"))
		return -EBADMSG;
	for (; cursor_left(c) > 0 && is_one_of(*c->pos, digits); n++)
		number = number << 4 | (uint64_t)(strchr(digits, *c->pos++) - digits);
	if (n == 0 || n > 16)
		return -EBADMSG;
	*ret_number = number;
	return 0;
}

static int take_part(struct cursor *c, struct addrfilter *ret_filter)
{
	struct addrfilter filter = {};

	/* The second is perf record's word, which it writes as the first. */
	filter.stops = take_word(c, "stop ") || take_word(c, "tracestop ");
	/* PT knows neither "start", nor "stop" at a single address. */
	if (!filter.stops && !take_word(c, "filter "))
		return -EBADMSG;
	if (take_number(c, &filter.address) < 0 || !take_word(c, "/") ||
	    take_number(c, &filter.size) < 0 || filter.size == 0 ||
	    filter.size - 1 > UINT64_MAX - filter.address)
		return -EBADMSG;
	if (take_word(c, "@")) {
		filter.path = (const char *)c->pos;
		while (cursor_left(c) > 0 && !is_one_of(*c->pos, SEPARATORS))
			c->pos++;
		filter.path_size = (size_t)((const char *)c->pos - filter.path);
		if (filter.path_size == 0 || memchr(filter.path, 0, filter.path_size))
			return -EBADMSG;
	}
	if (cursor_left(c) > 0 && !is_one_of(*c->pos, SEPARATORS))
		return -EBADMSG;
	*ret_filter = filter;
	return 0;
}

int addrfilter_read(const char *text, size_t size, struct addrfilters *ret_filters)
{
	struct cursor c = cursor_from(text, size);
	struct addrfilters filters = {};

	for (skip_separators(&c); cursor_left(&c) > 0; skip_separators(&c))
		if (filters.n == ADDRFILTER_PARTS_MAX ||
		    take_part(&c, &filters.parts[filters.n++]) < 0)
			return -EBADMSG;
	if (filters.n == 0)
		return -EBADMSG;
	*ret_filters = filters;
	return 0;
}

bool addrfilter_place(const struct addrfilter *filter, uint64_t start, uint64_t size,
		      uint64_t offset, uint64_t *ret_first, uint64_t *ret_last)
{
	const uint64_t filter_last = filter->address + (filter->size - 1);
	uint64_t first, last;

	if (size == 0 || size - 1 > UINT64_MAX - offset || size - 1 > UINT64_MAX - start)
		return false;
	first = filter->address > offset ? filter->address : offset;
	last = filter_last < offset + (size - 1) ? filter_last : offset + (size - 1);
	if (first > last)
		return false;
	*ret_first = start + (first - offset);
	*ret_last = start + (last - offset);
	return true;
}
