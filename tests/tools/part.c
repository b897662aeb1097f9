/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * part [-f] [-c SIZE] [-n N] INPUT…: decodes each input whole, into text, and then parts of it: of
 * each process, thread, name of a thread, CPU, of N symbols, objects and ranges of time (8), and
 * the last instructions of all threads. The text of each part must be what a filter leaves of the
 * lines of the whole text, and its statistics must add up. Lines are filtered by their columns, and
 * nothing is asked of the library about them.
 *
 * -c cuts PT at each PSB behind so many bytes, so that parts of small inputs can be left out, too.
 * -f decodes a snapshot that something was added to.
 */

#include <errno.h>
#include <error.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "decoder/sink/sink.h"
#include "ptd/decode.h"
#include "tests/lib/decoding.h"
#include "tests/lib/kinds.h"
#include "util/vec.h"

#define COMM_SIZE  16 /* columns; the first one of a mark is '#' */
#define VALUES_MAX 4096

/* One line of text. All strings are in it, without an end. */
struct line {
	const char *text;
	size_t size;
	bool is_mark, is_gap;
	uint64_t cpu, pid, tid; /* UINT64_MAX: '?' */
	uint64_t t;             /* ns or ticks; 0: none */
	const char *symbol;     /* of an instruction: where its name ends */
	const char *object;
	size_t object_size;
};

struct text {
	char *bytes;
	size_t size;
	VEC(struct line) lines;
};

static const char *input;
static bool force;
static uint64_t cut_size; /* as of decoder_config */
static size_t n_compared, n_failed;

/* --- text ------------------------------------------------------------------------------------- */

static uint64_t read_id(const char **at)
{
	char *end;
	uint64_t id;

	*at += strspn(*at, " ");
	if (**at == '?') {
		(*at)++;
		return UINT64_MAX;
	}
	id = strtoull(*at, &end, 10);
	*at = end;
	return id;
}

/* Read the time, which ends with a colon. A fraction has 9 digits. */
static uint64_t read_time(const char **at)
{
	uint64_t t = 0;

	for (; **at != ':'; (*at)++)
		if (**at >= '0' && **at <= '9')
			t = 10 * t + (uint64_t)(**at - '0');
	return t;
}

/* Find symbol and object: the line ends with SYMBOL+0xOFFSET (OBJECT), or [unknown] (OBJECT). */
static void read_code(struct line *line)
{
	const char *end = line->text + line->size, *p = end;

	while (p > line->text && !(p[0] == '(' && p[-1] == ' '))
		p--;
	line->object = p + 1;
	line->object_size = (size_t)(end - 1 - line->object);
	for (p--; p > line->text && *p != '+' && *p != ']'; p--)
		;
	line->symbol = *p == '+' ? p : NULL;
}

static void read_line(struct line *line)
{
	const char *at = line->text + COMM_SIZE;

	line->is_mark = line->text[0] == '#';
	line->pid = read_id(&at);
	at += *at == '/';
	line->tid = read_id(&at);
	at += strspn(at, " ");
	at += *at == '[';
	line->cpu = read_id(&at);
	at += *at == ']';
	line->t = read_time(&at);
	line->is_gap = line->is_mark && strncmp(at, ": gap: ", 7) == 0;
	if (!line->is_mark)
		read_code(line);
}

/* Read the lines of @text. Those that say where something was left out are not looked at. */
static void read_lines(struct text *text)
{
	for (char *at = text->bytes, *end = at + text->size, *next; at < end; at = next) {
		struct line line = { .text = at };
		const char *words;

		next = memchr(at, '\n', (size_t)(end - at));
		if (!next)
			error(1, 0, "%s: a line does not end", input);
		*next++ = 0;
		line.size = (size_t)(next - 1 - at);
		words = strstr(at, ": ");
		if (strncmp(at, "# ", 2) == 0 &&
		    (strncmp(at, "# comm", 6) == 0 || strncmp(at, "# time", 6) == 0 ||
		     strncmp(at, "# no time", 9) == 0))
			continue;
		if (at[0] == '#' && words && strstr(words, ": out of scope: "))
			continue;
		read_line(&line);
		if (vec_push(&text->lines, line) < 0)
			error(1, ENOMEM, "lines");
	}
}

static void check_stats(const struct ptd_stats *stats, const struct text *text)
{
	uint64_t n_insns = 0, n_gaps = 0;

	for (size_t i = 0; i < text->lines.n; i++) {
		n_insns += !text->lines.items[i].is_mark;
		n_gaps += text->lines.items[i].is_gap;
	}
	for (size_t i = 0; i < stats->n_cpus; i++) {
		const struct ptd_cpu_stats *c = &stats->cpus[i];

		if (c->bytes_in != c->bytes_decoded + c->bytes_lost + c->bytes_out_of_scope)
			error(1, 0, "%s: the bytes of CPU %" PRIu32 " do not add up", input,
			      c->cpu);
		n_insns -= c->n_insns;
		n_gaps -= c->n_gaps;
	}
	if (n_insns != 0 || n_gaps != 0)
		error(1, 0,
		      "%s: the text has %" PRId64 " instructions and %" PRId64
		      " gaps more than the statistics",
		      input, (int64_t)n_insns, (int64_t)n_gaps);
}

static void decode(const struct ptd_part *part, struct text *ret_text)
{
	const struct ptd_options options = {
		.size = sizeof(options), .input = input, .force = force, .part = *part
	};
	struct sink_config config = {};
	const int fd = memfd_create("text", MFD_CLOEXEC);
	struct ptd_decoder *decoder = decoding_new_cut(&options, cut_size);
	const struct ptd_batch *batch;
	struct sink *sink;
	struct stat st;

	config.info = ptd_decoder_info(decoder);
	config.fd = dup(fd);
	if (sink_new(sink_find("text"), &config, &sink, NULL) < 0)
		error(1, 0, "%s: cannot open a sink", input);
	while ((batch = decoding_next(decoder, input)))
		if (sink_batch(sink, batch) < 0)
			error(1, 0, "%s: cannot write", input);
	if (sink_finish(sink, ptd_decoder_stats(decoder)) < 0 || fstat(fd, &st) < 0)
		error(1, errno, "%s: cannot write", input);
	sink_free(sink);

	/* The text is large: it is not copied out of the file, and lines are ended in place. */
	*ret_text = (struct text){ .size = (size_t)st.st_size };
	if (ret_text->size > 0)
		ret_text->bytes =
		    mmap(NULL, ret_text->size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (ret_text->bytes == MAP_FAILED)
		error(1, errno, "%s: cannot read the text", input);
	(void)close(fd);
	read_lines(ret_text);
	check_stats(ptd_decoder_stats(decoder), ret_text);
	ptd_decoder_free(decoder);
}

static void text_deinit(struct text *text)
{
	if (text->size > 0)
		(void)munmap(text->bytes, text->size);
	vec_deinit(&text->lines);
}

/* --- the filter ------------------------------------------------------------------------------- */

/* Of each thread: whether its last instruction was kept, and how many come before its last ones. */
struct keeping {
	uint64_t of, tid; /* of: its CPU or its process */
	bool keeps;
	uint64_t n_before;
};

struct filter {
	const char *what;
	bool (*keeps)(const struct line *line, const void *value);
	const void *value;
	bool is_of_threads; /* what ran when it is not known which thread did is not compared */
	bool is_of_code; /* a mark is kept if it is a gap, or the instruction before it is kept */
	bool is_last;    /* of each thread only its last instructions are kept, and marks behind */
	VEC(struct keeping) keepings;
};

static struct keeping *keeping_of(struct filter *filter, const struct line *line)
{
	/* Each CPU has a thread of its own that is idle, or that is not known. */
	const bool is_of_cpu = line->tid == 0 || line->tid == UINT64_MAX;
	const uint64_t of = is_of_cpu ? line->cpu : line->pid;

	for (size_t i = 0; i < filter->keepings.n; i++)
		if (filter->keepings.items[i].of == of &&
		    filter->keepings.items[i].tid == line->tid)
			return &filter->keepings.items[i];
	if (vec_push(&filter->keepings, { .of = of, .tid = line->tid }) < 0)
		error(1, ENOMEM, "threads");
	return &filter->keepings.items[filter->keepings.n - 1];
}

static bool is_kept(struct filter *filter, const struct line *line)
{
	struct keeping *keeping;

	if (!filter->is_of_code && !filter->is_last)
		return filter->keeps(line, filter->value);
	keeping = keeping_of(filter, line);
	if (filter->is_last) {
		keeping->keeps = keeping->keeps || (!line->is_mark && keeping->n_before == 0);
		keeping->n_before -= !line->is_mark && keeping->n_before > 0;
		return keeping->keeps;
	}
	if (!line->is_mark)
		keeping->keeps = filter->keeps(line, filter->value);
	return line->is_gap || keeping->keeps;
}

/* Return: whether @line is of no known thread, and threads are asked for. */
static bool is_nobodys(const struct filter *filter, const struct line *line)
{
	return filter->is_of_threads && (line->pid == UINT64_MAX || line->tid == UINT64_MAX);
}

/* Return: the next line of @text from number @i on that is to be compared, or the end. */
static size_t next_line(const struct filter *filter, const struct text *text, size_t i)
{
	for (; i < text->lines.n && is_nobodys(filter, &text->lines.items[i]); i++)
		if (!text->lines.items[i].is_gap)
			error(1, 0, "%s: an instruction of no known thread", input);
	return i;
}

static void compare(const struct text *whole, const struct ptd_part *part, struct filter *filter,
		    const char *value)
{
	struct text text;
	size_t n;
	bool same = true;

	decode(part, &text);
	n = next_line(filter, &text, 0);
	for (size_t i = 0; i < whole->lines.n && same; i++) {
		const struct line *line = &whole->lines.items[i];

		if (is_nobodys(filter, line) || !is_kept(filter, line))
			continue;
		same = n < text.lines.n && strcmp(text.lines.items[n].text, line->text) == 0;
		if (!same)
			printf("%s, %s %s: expected\n%s\nbut there was\n%s\n", input, filter->what,
			       value, line->text,
			       n < text.lines.n ? text.lines.items[n].text : "nothing");
		n = next_line(filter, &text, n + 1);
	}
	if (same && n != text.lines.n) {
		printf("%s, %s %s: there was\n%s\nwhich was not expected\n", input, filter->what,
		       value, text.lines.items[n].text);
		same = false;
	}
	n_failed += !same;
	n_compared++;
	vec_deinit(&filter->keepings);
	text_deinit(&text);
}

/* --- what is asked for ------------------------------------------------------------------------ */

static bool is_pid(const struct line *line, const void *value)
{
	return line->pid == *(const uint64_t *)value;
}

static bool is_tid(const struct line *line, const void *value)
{
	return line->tid == *(const uint64_t *)value;
}

static bool is_cpu(const struct line *line, const void *value)
{
	return line->cpu == *(const uint64_t *)value;
}

/* The first column of a mark is lost. */
static bool is_comm(const struct line *line, const void *value)
{
	return memcmp(line->text + 1, (const char *)value + 1, COMM_SIZE - 1) == 0;
}

static bool is_symbol(const struct line *line, const void *value)
{
	const size_t size = strlen(value);

	return line->symbol && line->symbol[-(ptrdiff_t)size - 1] == ' ' &&
	       memcmp(line->symbol - size, value, size) == 0;
}

static bool is_object(const struct line *line, const void *value)
{
	return line->object_size == strlen(value) &&
	       memcmp(line->object, value, line->object_size) == 0;
}

struct times {
	uint64_t from, to;
};

static bool is_in_range(const struct line *line, const void *value)
{
	const struct times *range = value;

	return line->t >= range->from && line->t < range->to;
}

static uint64_t pid_of(const struct line *line)
{
	return line->pid;
}

static uint64_t tid_of(const struct line *line)
{
	return line->tid;
}

static uint64_t cpu_of(const struct line *line)
{
	return line->cpu;
}

/* Compare what is left for each number that the lines have in a column. */
static void compare_ids(const struct text *whole, struct filter *filter,
			uint64_t (*column)(const struct line *line))
{
	uint64_t values[VALUES_MAX];
	size_t n = 0;

	for (size_t i = 0; i < whole->lines.n && n < VALUES_MAX; i++) {
		const uint64_t value = column(&whole->lines.items[i]);
		const uint32_t id = (uint32_t)value;
		struct ptd_part part = {};
		char text[32];
		bool is_new = value < UINT32_MAX;

		for (size_t k = 0; k < n && is_new; k++)
			is_new = values[k] != value;
		if (!is_new)
			continue;
		values[n++] = value;
		if (column == pid_of)
			part.pids = &id, part.n_pids = 1;
		else if (column == tid_of)
			part.tids = &id, part.n_tids = 1;
		else
			part.cpus = &id, part.n_cpus = 1;
		filter->value = &value;
		(void)snprintf(text, sizeof(text), "%" PRIu64, value);
		compare(whole, &part, filter, text);
	}
}

/* Copy the name that @line has for @filter. Return: whether it has one. */
static bool get_name(const struct filter *filter, const struct line *line, char ret_name[4096])
{
	const char *start;

	if (filter->keeps == is_comm) {
		(void)snprintf(ret_name, 4096, "%.*s", COMM_SIZE, line->text);
		return !line->is_mark;
	}
	if (line->is_mark)
		return false;
	if (filter->keeps == is_object) {
		(void)snprintf(ret_name, 4096, "%.*s", (int)line->object_size, line->object);
		return true;
	}
	for (start = line->symbol; start && start[-1] != ' ';)
		start--;
	if (start)
		(void)snprintf(ret_name, 4096, "%.*s", (int)(line->symbol - start), start);
	return start;
}

/* Compare what is left for up to @n_max names, of lines that lie evenly in the text. */
static void compare_names(const struct text *whole, struct filter *filter, size_t n_max)
{
	static char names[64][4096];
	size_t n = 0;

	for (size_t i = 0; i < 8 * n_max && n < n_max && n < ARRAY_LEN(names); i++) {
		const struct line *line = &whole->lines.items[i * whole->lines.n / (8 * n_max)];
		const char *name = names[n];
		struct ptd_part part = {};
		bool is_new = get_name(filter, line, names[n]);

		for (size_t k = 0; k < n && is_new; k++)
			is_new = strcmp(names[k], names[n]) != 0;
		if (!is_new)
			continue;
		n++;
		filter->value = name;
		if (filter->keeps == is_comm)
			name += strspn(name, " "), part.comms = &name, part.n_comms = 1;
		else if (filter->keeps == is_symbol)
			part.symbols = &name, part.n_symbols = 1;
		else
			part.objects = &name, part.n_objects = 1;
		compare(whole, &part, filter, name);
	}
}

static int by_time(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* Write @t as the text has it: of ns, as seconds. Return: behind it. */
static char *put_time(char *to, size_t size, uint64_t t, bool is_ns)
{
	const int n =
	    is_ns ? snprintf(to, size, "%" PRIu64 ".%09" PRIu64, t / 1000000000, t % 1000000000)
		  : snprintf(to, size, "%" PRIu64, t);

	return to + n;
}

/* Compare what is left of ranges that begin and end at times of the lines. */
static void compare_times(const struct text *whole, size_t n_max)
{
	const bool is_ns = whole->lines.n > 0 && strchr(whole->lines.items[0].text, '.');
	VEC(uint64_t) times = {};

	for (size_t i = 0; i < whole->lines.n; i++)
		if (whole->lines.items[i].t > 0 && vec_push(&times, whole->lines.items[i].t) < 0)
			error(1, ENOMEM, "times");
	if (times.n > 0)
		qsort(times.items, times.n, sizeof(*times.items), by_time);
	for (size_t i = 0; i < n_max && times.n > 0; i++) {
		const struct times range = { .from = times.items[i * times.n / n_max],
					     .to = times.items[((i + 1) * times.n - 1) / n_max] };
		struct filter filter = { "--time", is_in_range, &range, false, false, false, {} };
		struct ptd_part part = {};
		char text[128], *at;

		at = put_time(text, sizeof(text) / 2, range.from, is_ns);
		*at++ = ',';
		(void)put_time(at, sizeof(text) / 2, range.to, is_ns);
		part.time = text;
		compare(whole, &part, &filter, text);
	}
	vec_deinit(&times);
}

/* Compare what is left if the last @n instructions of each thread are asked for. */
static void compare_last(const struct text *whole, uint64_t n)
{
	struct filter filter = { .what = "--last", .is_last = true };
	const struct ptd_part part = { .last = n };
	char text[32];

	for (size_t i = 0; i < whole->lines.n; i++)
		if (!whole->lines.items[i].is_mark)
			keeping_of(&filter, &whole->lines.items[i])->n_before++;
	for (size_t i = 0; i < filter.keepings.n; i++) {
		uint64_t *n_before = &filter.keepings.items[i].n_before;

		*n_before = *n_before > n ? *n_before - n : 0;
	}
	(void)snprintf(text, sizeof(text), "%" PRIu64, n);
	compare(whole, &part, &filter, text);
}

static void compare_all(size_t n_max)
{
	struct filter pids = { "--pid", is_pid, NULL, true, false, false, {} };
	struct filter tids = { "--tid", is_tid, NULL, true, false, false, {} };
	struct filter cpus = { "--cpu", is_cpu, NULL, false, false, false, {} };
	struct filter comms = { "--comm", is_comm, NULL, true, false, false, {} };
	struct filter symbols = { "--symbol", is_symbol, NULL, false, true, false, {} };
	struct filter objects = { "--object", is_object, NULL, false, true, false, {} };
	struct text whole;

	decode(&(struct ptd_part){}, &whole);
	compare_ids(&whole, &pids, pid_of);
	compare_ids(&whole, &tids, tid_of);
	compare_ids(&whole, &cpus, cpu_of);
	if (whole.lines.n > 0) {
		compare_names(&whole, &comms, n_max);
		compare_names(&whole, &symbols, n_max);
		compare_names(&whole, &objects, n_max);
	}
	compare_times(&whole, n_max);
	for (size_t i = 0; i < n_max; i++)
		compare_last(&whole, UINT64_C(1) << (4 * i));
	text_deinit(&whole);
}

int main(int argc, char **argv)
{
	size_t n_max = 8;
	int opt;

	while ((opt = getopt(argc, argv, "c:fn:")) != -1) {
		if (opt == 'c')
			cut_size = strtoul(optarg, NULL, 10);
		else if (opt == 'f')
			force = true;
		else if (opt == 'n')
			n_max = strtoul(optarg, NULL, 10);
		else
			return 1;
	}
	for (int i = optind; i < argc; i++) {
		input = argv[i];
		compare_all(n_max);
	}
	printf("%zu parts of %d inputs compared, %zu differ\n", n_compared, argc - optind,
	       n_failed);
	return n_compared == 0 || n_failed > 0;
}
