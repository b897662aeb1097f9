/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * calltruth [-af] SNAPSHOT LOG OBJECT...: compares, for each thread in LOG, which functions of the
 * objects with these file names were entered and left, in which order, with what the call layer
 * says. A line of LOG is a thread, + or -, and a function's name; functions that it does not name
 * do not count.
 *
 * With -a threads count as one, in the order of the stream: for a program that ran on one
 * CPU at a time.
 *
 * With -f files that the snapshot does not list may be in it. The file name of JIT code is that of
 * its script.
 *
 * calltruth -d SNAPSHOT: prints the calls.
 *
 * It prints a line for each thread, and the layer's counts. The exit status is 1 if anything
 * differs.
 */

#include <errno.h>
#include <error.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "ptd/calls.h"
#include "ptd/decode.h"
#include "tests/lib/callcheck.h"
#include "tests/lib/decoding.h"
#include "util/map.h"
#include "util/vec.h"

#define CONTEXT 6 /* calls shown before and behind a difference */

struct event {
	char what;
	const char *name; /* the same for the same name */
};

struct thread {
	uint32_t tid;
	VEC(struct event) logged;
	VEC(struct event) found;
	uint64_t n_jumped; /* instructions before the function found last was left by a jump */
	struct place {
		uint32_t stack;
		int32_t depth;
	} last; /* of the function found last */
	VEC(struct held {
		const char *name;
		struct place place; /* of morestack */
	})
	held;
};

struct truth {
	VEC(struct thread) threads;
	VEC(char *) names;
	struct map by_name;      /* hash of the name → index in names */
	VEC(const char *) known; /* by the function's id: its name in the log, "" if it has none */
	char *const *objects;
	bool dump, all, force;
};

static void die_of_memory(int r)
{
	if (r < 0)
		error(2, -r, "calltruth");
}

/* Return: the log's copy of the name; NULL if the log does not have it, unless @add. */
static const char *find_name(struct truth *truth, const char *name, size_t size, bool add)
{
	const uint64_t key = map_hash(name, size), *i = map_get(&truth->by_name, key);
	char *copy;

	if (i)
		return truth->names.items[*i];
	if (!add)
		return NULL;
	copy = strndup(name, size);
	die_of_memory(copy ? vec_push(&truth->names, copy) : -ENOMEM);
	die_of_memory(map_put(&truth->by_name, key, truth->names.n - 1));
	return copy;
}

static struct thread *find_thread(struct truth *truth, uint32_t tid, bool add)
{
	if (truth->all)
		tid = 0;
	for (size_t i = 0; i < truth->threads.n; i++)
		if (truth->threads.items[i].tid == tid)
			return &truth->threads.items[i];
	if (!add)
		return NULL;
	die_of_memory(vec_push(&truth->threads, { .tid = tid }));
	return &truth->threads.items[truth->threads.n - 1];
}

static void read_log(struct truth *truth, const char *path)
{
	_cleanup_(freep) char *line = NULL;
	FILE *f = fopen(path, "re");
	size_t capacity = 0;
	ssize_t size;

	if (!f)
		error(2, errno, "%s", path);
	while ((size = getline(&line, &capacity, f)) > 0) {
		uint32_t tid;
		int at = 0;

		if (line[size - 1] == '\n')
			line[--size] = '\0';
		if (sscanf(line, "%" SCNu32 " %n", &tid, &at) != 1 || at == 0 || !line[at])
			error(2, 0, "%s: not a line of the log: %s", path, line);
		die_of_memory(vec_push(
		    &find_thread(truth, tid, true)->logged,
		    { line[at], find_name(truth, line + at + 1, (size_t)(size - at - 1), true) }));
	}
	fclose(f);
}

/*
 * Of node's JIT: "JS:*NAME FILE:LINE:COLUMN".
 *
 * Return: where NAME begins, of @ret_size bytes; NULL: it is none of that.
 */
static const char *name_in_script(const char *name, size_t *ret_size)
{
	const char *file = strrchr(name, ' ');

	if (!file || strncmp(name, "JS:", 3) != 0 || !strchr("~^+*", name[3]))
		return NULL;
	*ret_size = (size_t)(file - (name + 4));
	return name + 4;
}

/* Return: whether the function is from the file of this name. */
static bool is_from(const struct ptd_function *function, const char *file)
{
	const char *path = function->object->name, *in_script = NULL, *name;
	size_t size = strlen(path), name_size;

	if (strcmp(path, "[jit]") == 0)
		in_script = name_in_script(function->name, &name_size);
	if (in_script) {
		path = in_script + name_size + 1;
		size = strcspn(path, ":");
	}
	name = memrchr(path, '/', size);
	name = name ? name + 1 : path;
	size -= (size_t)(name - path);
	return size == strlen(file) && memcmp(name, file, size) == 0;
}

/* Return: the name that a program would log, without namespaces and arguments; NULL: it did not. */
static const char *name_of(struct truth *truth, const char *name)
{
	static const char anonymous[] = "(anonymous namespace)";
	const char *start = strstr(name, anonymous), *in_script;
	size_t size;

	in_script = name_in_script(name, &size);
	if (in_script)
		return find_name(truth, in_script, size, false);
	start = start ? start + sizeof(anonymous) - 1 + 2 : name;
	size = strcspn(start, "(<");
	/* Of OCaml: "camlMODULE__NAME_NUMBER". */
	if (strncmp(name, "caml", 4) == 0 && strstr(name, "__")) {
		start = strstr(name, "__") + 2;
		size = strrchr(start, '_') ? (size_t)(strrchr(start, '_') - start) : strlen(start);
		return find_name(truth, start, size, false);
	}
	for (const char *c; (c = memchr(start, ':', size)) || (c = memchr(start, ' ', size));) {
		size -= (size_t)(c + 1 - start);
		start = c + 1;
	}
	return find_name(truth, start, size, false);
}

/* Return: the name in the log of @function; NULL if it does not count. */
static const char *known_name(struct truth *truth, const struct ptd_function *function)
{
	const char *name = NULL;

	while (truth->known.n <= function->id)
		die_of_memory(vec_push(&truth->known, NULL));
	if (!truth->known.items[function->id]) {
		for (char *const *o = truth->objects; *o; o++)
			if (is_from(function, *o))
				name = name_of(truth, function->name);
		truth->known.items[function->id] = name ? name : "";
	}
	return truth->known.items[function->id][0] ? truth->known.items[function->id] : NULL;
}

static void dump_call(const struct ptd_call_thread *thread, const struct ptd_call *call)
{
	printf("%" PRIu32 " %" PRIu64 " %*s", thread->tid, call->n_insns,
	       call->depth > 0 ? 2 * (call->depth % 200) : 0, "");
	if (call->kind == PTD_CALL_SWITCH)
		printf("= stack %" PRIu32, call->stack);
	else
		printf("%c %s (%s, %d)", call->kind == PTD_CALL_ENTER ? '+' : '-',
		       call->function->name, ptd_call_how_name((enum ptd_call_how)call->how),
		       call->depth);
	if (call->n_moved > 0)
		printf(" %" PRIu32 " moved", call->n_moved);
	printf("%s %" PRIx64 " -> %" PRIx64 "\n", call->ambiguous ? " ?" : "", call->from,
	       call->to);
}

/*
 * Note that the function of this name was entered or left. JIT code that jumps to other code of the
 * same function (compiled better) is one execution of the function.
 */
static void take_call(struct thread *thread, const struct ptd_call *call, const char *name)
{
	const bool enters = call->kind == PTD_CALL_ENTER, jumps = call->how == PTD_CALL_BY_TAIL;
	size_t size;

	if (enters && jumps && thread->n_jumped == call->n_insns && thread->n_jumped > 0 &&
	    name_in_script(call->function->name, &size) &&
	    thread->found.items[thread->found.n - 1].name == name)
		thread->found.n--;
	else
		die_of_memory(vec_push(&thread->found, { enters ? '+' : '-', name }));
	thread->n_jumped = jumps && !enters ? call->n_insns : 0;
}

/*
 * A goroutine may be preempted where a function begins, before it can say so, or where what writes
 * the log begins: these call morestack, and begin again when the goroutine goes on. Then the
 * function was entered, as the log has it.
 */
static void take_morestack(struct thread *thread, const struct ptd_call *call)
{
	const struct place place = { call->stack, call->depth };
	const int64_t inside = (int64_t)call->depth - thread->last.depth;

	if (call->kind == PTD_CALL_ENTER && call->how == PTD_CALL_BY_CALL) {
		if (thread->found.n == 0 || thread->last.stack != call->stack ||
		    thread->found.items[thread->found.n - 1].what != '+' || inside < 1 ||
		    inside > 2)
			return;
		die_of_memory(vec_push(&thread->held,
				       { thread->found.items[--thread->found.n].name, place }));
		thread->last.depth = INT32_MAX;
	}
	if (call->kind != PTD_CALL_LEAVE || call->how != PTD_CALL_BY_RETURN)
		return;
	for (size_t i = 0; i < thread->held.n; i++) {
		const struct held held = thread->held.items[i];

		if (held.place.stack != place.stack || held.place.depth != place.depth)
			continue;
		thread->held.items[i] = thread->held.items[--thread->held.n];
		die_of_memory(vec_push(&thread->found, { '+', held.name }));
		return;
	}
}

static void take_calls(struct truth *truth, const struct ptd_call_batch *batch)
{
	struct thread *thread = find_thread(truth, batch->thread->tid, false);

	for (size_t i = 0; i < batch->n_calls; i++) {
		const struct ptd_call *call = &batch->calls[i];
		const char *name;

		if (truth->dump)
			dump_call(batch->thread, call);
		/* What was open before the first instruction was logged before. */
		if (!thread || call->kind == PTD_CALL_SWITCH ||
		    call->how == PTD_CALL_BY_INFERENCE || call->how == PTD_CALL_BY_RESUMPTION ||
		    call->how == PTD_CALL_BY_GAP || call->how == PTD_CALL_BY_END)
			continue;
		if (strncmp(call->function->name, "runtime.morestack", 17) == 0)
			take_morestack(thread, call);
		else if (call->kind == PTD_CALL_LEAVE && call->stack == thread->last.stack &&
			 call->depth - 1 == thread->last.depth)
			thread->last.depth = INT32_MAX; /* it may have said so */
		name = known_name(truth, call->function);
		if (!name)
			continue;
		take_call(thread, call, name);
		thread->last = (struct place){ call->stack, call->depth };
	}
}

static void decode(struct truth *truth, const char *input, struct ptd_calls *calls,
		   struct callcheck *check)
{
	struct ptd_decoder *decoder = decoding_new(&(struct ptd_options){
	    .size = sizeof(struct ptd_options), .input = input, .force = truth->force });
	const struct ptd_call_batch *found;
	const struct ptd_batch *batch;

	do {
		batch = decoding_next(decoder, input);
		die_of_memory(batch ? ptd_calls_batch(calls, batch) : ptd_calls_finish(calls));
		while (ptd_calls_next(calls, &found) == 0) {
			die_of_memory(callcheck_calls(check, found));
			take_calls(truth, found);
		}
	} while (batch);
	callcheck_end(check);
	ptd_decoder_free(decoder);
}

/* Return: whether the thread's calls are those that it logged. */
static bool compare(const struct thread *t)
{
	size_t i = 0;

	while (i < t->logged.n && i < t->found.n &&
	       t->logged.items[i].what == t->found.items[i].what &&
	       t->logged.items[i].name == t->found.items[i].name)
		i++;
	if (i == t->logged.n && i == t->found.n) {
		printf("%" PRIu32 ": %zu calls\n", t->tid, i);
		return true;
	}
	printf("%" PRIu32 ": logged %zu, found %zu; differ from number %zu on:\n", t->tid,
	       t->logged.n, t->found.n, i);
	for (size_t k = i > CONTEXT ? i - CONTEXT : 0; k < i + CONTEXT; k++) {
		if (k < t->logged.n)
			printf("  %c%-24s", t->logged.items[k].what, t->logged.items[k].name);
		else
			printf("  %-25s", "the end");
		if (k < t->found.n)
			printf("  %c%s\n", t->found.items[k].what, t->found.items[k].name);
		else
			printf("  the end\n");
	}
	return false;
}

static void print_stats(const struct ptd_calls_stats *stats)
{
	for (int how = 0; how < _PTD_CALL_HOWS; how++)
		if (stats->n_entered[how] + stats->n_left[how] > 0)
			printf("%s: %" PRIu64 " entered, %" PRIu64 " left\n",
			       ptd_call_how_name((enum ptd_call_how)how), stats->n_entered[how],
			       stats->n_left[how]);
	printf("%" PRIu64 " switches; %" PRIu64 " choices, %" PRIu64 " decided, %" PRIu64
	       " of them wrong\n",
	       stats->n_switches, stats->n_choices, stats->n_decided, stats->n_wrong);
}

int main(int argc, char **argv)
{
	struct truth truth = {};
	struct callcheck check = { .faults = stdout };
	struct ptd_calls *calls;
	bool same = true;
	int c;

	while ((c = getopt(argc, argv, "adf")) != -1) {
		truth.force |= c == 'f';
		truth.all |= c == 'a';
		truth.dump |= c == 'd';
	}
	if (argc - optind < (truth.dump ? 1 : 3))
		error(2, 0, "usage: calltruth [-af] SNAPSHOT LOG OBJECT... | -d SNAPSHOT");
	truth.objects = argv + optind + (truth.dump ? 1 : 2);
	if (!truth.dump)
		read_log(&truth, argv[optind + 1]);
	die_of_memory(ptd_calls_new(NULL, &calls));
	decode(&truth, argv[optind], calls, &check);
	for (size_t i = 0; i < truth.threads.n; i++)
		same = compare(&truth.threads.items[i]) && same;
	print_stats(ptd_calls_stats(calls));

	for (size_t i = 0; i < truth.threads.n; i++) {
		vec_deinit(&truth.threads.items[i].logged);
		vec_deinit(&truth.threads.items[i].found);
		vec_deinit(&truth.threads.items[i].held);
	}
	for (size_t i = 0; i < truth.names.n; i++)
		free(truth.names.items[i]);
	vec_deinit(&truth.threads);
	vec_deinit(&truth.names);
	vec_deinit(&truth.known);
	map_deinit(&truth.by_name);
	ptd_calls_free(calls);
	callcheck_deinit(&check);
	return same && check.n_faults == 0 ? 0 : 1;
}
