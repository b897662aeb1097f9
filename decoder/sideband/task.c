/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/sideband/task.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "ptd/record.h"
#include "ptd/snapshot.h"
#include "util/jitmagic.h"
#include "util/mapname.h"
#include "util/objectsmap.h"
#include "util/perf/codec.h"
#include "util/perf/perfabi.h"

/*
 * How many mappings may be made in all beside those that records tell of: copies at forks, and the
 * parts of anonymous memory that the snapshot has bytes of. Real recordings stay far below it;
 * without a limit, n mappings and n forks would need n * n.
 */
#define COPIES_MIN        (UINT64_C(1) << 20)
#define COPIES_PER_RECORD 64

/* How many mappings before that of anonymous memory may be of a file that was there. */
#define RESTORE_LOOK_MAX 256

/* --- build-ids -------------------------------------------------------------------------------- */

static int read_entry(const struct trace_record *record, struct task_build_id *ret_entry)
{
	struct record_build_id entry;
	int r;

	r = record_read_build_id(record->misc, trace_record_body(record), &entry);
	if (r < 0)
		return r;
	*ret_entry = (struct task_build_id){ .path = entry.path, .id = entry.build_id };
	return 0;
}

static int compare_entries(const void *a, const void *b)
{
	return strcmp(((const struct task_build_id *)a)->path,
		      ((const struct task_build_id *)b)->path);
}

/* Collect the build-ids of user space in the records of @trace. Return: 0 or -ENOMEM. */
static int read_build_ids(struct tasks *tasks, const struct trace *trace)
{
	struct task_build_id entry;

	for (size_t i = 0; i < trace->n_records; i++) {
		const struct trace_record *record = &trace->records[i];

		/* They have no time, and so come before all that has one. */
		if (record->time > 0)
			break;
		if (record->type != PERFABI_HEADER_BUILD_ID ||
		    (record->misc & PERF_RECORD_MISC_CPUMODE_MASK) != PERF_RECORD_MISC_USER ||
		    read_entry(record, &entry) < 0)
			continue;
		if (vec_push(&tasks->build_ids, entry) < 0)
			return -ENOMEM;
	}

	vec_sort(&tasks->build_ids, compare_entries);
	return 0;
}

/* Return: the build-id of the file that was mapped by @path; NULL if the table has none. */
static const struct buildid *find_build_id(const struct tasks *tasks, const char *path)
{
	const struct task_build_id key = { .path = path }, *found;

	if (!tasks->build_ids.n)
		return NULL;
	found =
	    bsearch(&key, tasks->build_ids.items, tasks->build_ids.n, sizeof(key), compare_entries);
	return found ? &found->id : NULL;
}

/* --- endings ---------------------------------------------------------------------------------- */

/* Return: whether the record begins a program in process @ret_pid. */
static bool begins_program(const struct trace_record *record, uint32_t *ret_pid)
{
	struct record_task task;
	struct record_comm comm;

	if (record->type == PERF_RECORD_FORK) {
		if (record_read_task(trace_record_body(record), &task) < 0)
			return false;
		*ret_pid = task.pid;
		return task.pid == task.tid && task.pid != task.ppid;
	}
	if (record->type != PERF_RECORD_COMM ||
	    record_read_comm(record->misc, trace_record_body(record), &comm) < 0)
		return false;
	*ret_pid = comm.pid;
	return comm.exec;
}

static int compare_endings(const void *pa, const void *pb)
{
	const struct ending *a = pa, *b = pb;

	return COMPARE(a->pid, b->pid) ?: COMPARE(a->time, b->time);
}

static int read_all(struct endings *endings)
{
	const struct trace *trace = endings->trace;
	uint32_t pid;

	for (size_t i = 0; i < trace->n_records; i++) {
		const struct trace_record *record = &trace->records[i];

		if (record->time > 0 && begins_program(record, &pid) &&
		    vec_push(&endings->list, { .pid = pid, .time = record->time }) < 0)
			return -ENOMEM;
		if (i % TRACE_EVICT_RECORDS == TRACE_EVICT_RECORDS - 1)
			trace_evict(trace);
	}
	vec_sort(&endings->list, compare_endings);
	endings->is_read = true;
	return 0;
}

/*
 * Find when the program ends that process @pid runs at @time (ns). @ret_end is UINT64_MAX if no
 * record says that.
 *
 * Return: 0 or -ENOMEM.
 */
static int find_ending(struct endings *endings, uint32_t pid, uint64_t time, uint64_t *ret_end)
{
	size_t i;

	if (!endings->is_read && read_all(endings) < 0)
		return -ENOMEM;
	i = vec_bisect(&endings->list, ending,
		       ending->pid < pid || (ending->pid == pid && ending->time <= time));
	*ret_end = i < endings->list.n && endings->list.items[i].pid == pid
		       ? endings->list.items[i].time
		       : UINT64_MAX;
	return 0;
}

/* --- tasks ------------------------------------------------------------------------------------ */

/* The file @name of the snapshot has @n_left_out parts beyond @n_max. Return: 0 or -ENOMEM. */
static int complain_of_excess(struct tasks *tasks, const char *name, size_t n_left_out,
			      const char *parts, unsigned int n_max)
{
	if (n_left_out == 0)
		return 0;
	return jits_complain(&tasks->jits,
			     "%s: %zu %s beyond the first %u are left out, and code in them is not "
			     "decoded",
			     name, n_left_out, parts, n_max);
}

/* Load what the snapshot has of code that is in no file. */
static int load_memory(struct tasks *tasks)
{
	_cleanup_(memfiles_deinit) struct memfiles files = {};
	int r;

	r = memfiles_init(&files, tasks->objects);
	if (r == 0)
		r = complain_of_excess(tasks, PTD_SNAPSHOT_MEM, files.n_left_out, "files",
				       MEMFILES_MAX);
	if (r == 0)
		r = anonmem_init(&tasks->memory, &files, &tasks->perfmaps);
	if (r == 0)
		r = complain_of_excess(tasks, PTD_SNAPSHOT_MEM_PAGES, tasks->memory.n_left_out,
				       "pieces", ANONMEM_PIECES_MAX);
	if (r == 0)
		r = codelogs_init(&tasks->codelogs, &files, &tasks->perfmaps);
	return r;
}

/* Say what of the kernel's code is more than there is room for. */
static int complain_of_kernel(struct tasks *tasks)
{
	const struct kcore *kcore = &tasks->kernel.kcore;
	int r = complain_of_excess(tasks, PTD_SNAPSHOT_KCORE, kcore->n_segments_left_out,
				   "segments", KCORE_SEGMENTS_MAX);

	if (r == 0 && kcore->n_modules_left_out > 0)
		r = jits_complain(&tasks->jits,
				  "%zu records name more modules than there is room for, whose "
				  "code is shown as the kernel's",
				  kcore->n_modules_left_out);
	return r;
}

int tasks_init(struct tasks *tasks, const struct trace *trace, struct objects *objects)
{
	int r;

	*tasks = (struct tasks){
		.objects = objects,
		.endings = { .trace = trace },
		.n_copies_left = COPIES_MIN + COPIES_PER_RECORD * (uint64_t)trace->n_records,
	};
	tracks_init(&tasks->lives, trace->spills);
	perfmaps_init(&tasks->perfmaps, objects_dir(objects));
	/* The kernel first: what the others have when nothing was begun can be given up. */
	r = kernel_init(&tasks->kernel, trace, objects);
	if (r == 0)
		r = jits_init(&tasks->jits, &trace->facts, &tasks->memory, objects);
	if (r == 0)
		r = complain_of_kernel(tasks);
	if (r == 0)
		r = read_build_ids(tasks, trace);
	if (r == 0)
		r = load_memory(tasks);
	if (r == 0)
		r = replay_init(&tasks->replay, objects);
	return r;
}

void tasks_deinit(struct tasks *tasks)
{
	vec_deinit_each(&tasks->spaces, space, space_free(*space));
	vec_deinit(&tasks->births);
	kernel_deinit(&tasks->kernel);
	vec_deinit(&tasks->threads);
	map_deinit(&tasks->by_tid);
	map_deinit(&tasks->space_of_pid);
	tracks_deinit(&tasks->lives);
	vec_deinit(&tasks->build_ids);
	replay_deinit(&tasks->replay);
	codelogs_deinit(&tasks->codelogs);
	anonmem_deinit(&tasks->memory);
	perfmaps_deinit(&tasks->perfmaps);
	jits_deinit(&tasks->jits);
	vec_deinit(&tasks->endings.list);
}

/* Return: whether the ids are known, and not those of the idle thread. */
static bool is_task(uint32_t pid, uint32_t tid)
{
	return pid && tid && pid != PTD_ID_UNKNOWN && tid != PTD_ID_UNKNOWN;
}

/* Spaces. */

static struct space *space_of(const struct tasks *tasks, uint32_t pid)
{
	const uint64_t *i = map_get(&tasks->space_of_pid, pid);

	return i ? tasks->spaces.items[*i] : NULL;
}

const struct space *tasks_space(const struct tasks *tasks, uint32_t pid)
{
	return space_of(tasks, pid);
}

/*
 * The snapshot's memory of a process is that of its last program: that of the one before, or of a
 * process before that had its number, was not kept.
 */
static int forget_memory(struct tasks *tasks, uint32_t pid)
{
	struct space *space = space_of(tasks, pid);
	const struct object *none = NULL;

	if (!space || !anonmem_find(&tasks->memory, pid, 0))
		return 0;
	for (size_t i = space_n_own(space, UINT64_MAX); i > 0; i--) {
		const struct mapping *mapping = space_mapping(space, i - 1);
		const struct anonmem_piece *m;
		int r;

		m = anonmem_find(&tasks->memory, pid, mapping->start);
		if (mapping->kind != MAPPING_MEMORY || !m || mapping->object != m->object)
			continue;
		r = none ? 0 : objects_find(tasks->objects, "//anon", NULL, &none);
		if (r < 0)
			return r;
		space_forget(space, i - 1, none);
	}
	return 0;
}

/* Give process @pid a new space: a copy of process @parent's at @time; or, if that is 0, an empty
 * one. */
static int begin_space(struct tasks *tasks, uint32_t pid, uint32_t parent, uint64_t time)
{
	_cleanup_(space_freep) struct space *space = NULL;
	int r;

	r = forget_memory(tasks, pid);
	if (r == 0)
		r = perfmaps_begin(&tasks->perfmaps, pid, parent);
	if (r == 0)
		r = vec_reserve(&tasks->spaces, 1);
	if (r < 0)
		return r;
	r = space_new((uint32_t)tasks->spaces.n, parent ? space_of(tasks, parent) : NULL, time,
		      &space);
	if (r < 0)
		return r;
	r = vec_push(&tasks->births, { .pid = pid, .time = time });
	if (r < 0)
		return r;
	r = map_put(&tasks->space_of_pid, pid, tasks->spaces.n);
	if (r < 0)
		return r;
	space_share(space, tasks->kernel.space);
	return vec_push(&tasks->spaces, TAKE(space));
}

int tasks_finish(struct tasks *tasks)
{
	struct map next = {}; /* pid → when it has another space */
	int r = 0;

	for (size_t i = tasks->spaces.n; r == 0 && i > 0; i--) {
		const struct birth *birth = &tasks->births.items[i - 1];
		const uint64_t *end = map_get(&next, birth->pid);
		const struct codelog *log =
		    codelogs_find(&tasks->codelogs, birth->pid, end ? *end : UINT64_MAX);

		if (log)
			r = replay_log(&tasks->replay, tasks->spaces.items[i - 1], log);
		if (r == 0)
			r = map_put(&next, birth->pid, birth->time);
	}
	map_deinit(&next);
	return r;
}

/* Threads. */

static struct thread *find_thread(const struct tasks *tasks, uint32_t tid)
{
	const uint64_t *i = map_get(&tasks->by_tid, tid);

	return i ? &tasks->threads.items[*i] : NULL;
}

struct thread *tasks_find(const struct tasks *tasks, uint32_t pid, uint32_t tid)
{
	struct thread *thread = find_thread(tasks, tid);

	return thread && thread->pid == pid ? thread : NULL;
}

uint32_t tasks_pid_of(const struct tasks *tasks, uint32_t tid)
{
	const struct thread *thread = find_thread(tasks, tid);

	if (tid == 0)
		return 0;
	return thread ? thread->pid : PTD_ID_UNKNOWN;
}

/* Add the state of @thread from @time on to its track. */
static int add_life(struct tasks *tasks, const struct thread *thread, uint64_t time)
{
	const struct track_item item = {
		.start = time,
		.owner = (uint32_t)(thread - tasks->threads.items),
		.pid = thread->pid,
		.tid = thread->tid,
		.space = thread->space,
		.comm = thread->comm,
	};

	return tracks_add(&tasks->lives, &item);
}

/*
 * Begin a thread of a process that has a space. What is left of another that had the same tid is
 * forgotten.
 */
static int begin_thread(struct tasks *tasks, uint32_t pid, uint32_t tid, const char *comm,
			uint64_t time, struct thread **ret_thread)
{
	struct thread *thread = map_item(&tasks->by_tid, tid, &tasks->threads, {});

	if (!thread)
		return -ENOMEM;
	*thread = (struct thread){
		.tid = tid,
		.pid = pid,
		.comm = comm,
		.space = space_of(tasks, pid),
		.since = time,
	};
	*ret_thread = thread;
	return add_life(tasks, thread, time);
}

int tasks_thread(struct tasks *tasks, uint32_t pid, uint32_t tid, uint64_t time,
		 struct thread **ret_thread)
{
	struct thread *thread;
	int r;

	if (!is_task(pid, tid))
		return TASKS_SKIPPED;
	thread = find_thread(tasks, tid);
	if (thread && thread->pid == pid) {
		/*
		 * An exec, by the record of another thread, may have given the process another
		 * space.
		 */
		if (space_of(tasks, pid))
			thread->space = space_of(tasks, pid);
		*ret_thread = thread;
		return 0;
	}

	if (!space_of(tasks, pid)) {
		r = begin_space(tasks, pid, 0, 0);
		if (r < 0)
			return r;
	}
	return begin_thread(tasks, pid, tid, "", thread ? time : 0, ret_thread);
}

/*
 * The thread that a COMM or MMAP names. What has ended does neither: it is another, whose FORK was
 * lost.
 */
static int living_thread(struct tasks *tasks, uint32_t pid, uint32_t tid, uint64_t time,
			 struct thread **ret_thread)
{
	struct thread *thread;
	int r;

	r = tasks_thread(tasks, pid, tid, time, &thread);
	if (r != 0)
		return r;
	if (thread->ended) {
		if (pid == tid) {
			r = begin_space(tasks, pid, 0, time);
			if (r < 0)
				return r;
		}
		r = begin_thread(tasks, pid, tid, "", time, &thread);
		if (r < 0)
			return r;
	}

	*ret_thread = thread;
	return 0;
}

/* Records. */

/* The process may have a jitdump mapped from @time on. */
static int make_jits_mapping(struct tasks *tasks, uint32_t pid, const char *path, uint64_t time,
			     struct jits_mapping *ret_mapping)
{
	const uint64_t *i = map_get(&tasks->space_of_pid, pid);

	*ret_mapping = (struct jits_mapping){ .pid = pid,
					      .space = tasks->spaces.items[*i],
					      .birth = tasks->births.items[*i].time,
					      .time = time,
					      .path = path };
	return find_ending(&tasks->endings, pid, time, &ret_mapping->end);
}

/* Give a new process its space, a copy of its parent's. */
static int fork_space(struct tasks *tasks, const struct trace_record *record,
		      const struct record_task *fork)
{
	const struct space *parent = space_of(tasks, fork->ppid);
	struct jits_mapping jit = {};
	size_t n_copies;
	int r;

	/*
	 * The records that perf synthesizes are about tasks that ran before; their mappings follow.
	 */
	if (record->time == 0 && space_of(tasks, fork->pid))
		return 0;
	if (record->time == 0 || (record->misc & PERF_RECORD_MISC_FORK_EXEC))
		return begin_space(tasks, fork->pid, 0, record->time);

	n_copies = parent ? space_n_own(parent, record->time) : 0;
	if (n_copies > tasks->n_copies_left) {
		r = begin_space(tasks, fork->pid, 0, record->time);
		return r < 0 ? r : TASKS_SKIPPED;
	}
	tasks->n_copies_left -= n_copies;
	r = begin_space(tasks, fork->pid, fork->ppid, record->time);
	if (r == 0 && parent && tasks->jits.list.n > 0)
		r = make_jits_mapping(tasks, fork->pid, NULL, record->time, &jit);
	return r < 0 || !jit.space ? r : jits_fork(&tasks->jits, parent, &jit);
}

int tasks_fork(struct tasks *tasks, const struct trace_record *record)
{
	const struct thread *parent;
	struct record_task fork;
	struct thread *child;
	int r, skipped = 0;

	if (record_read_task(trace_record_body(record), &fork) < 0 || !is_task(fork.pid, fork.tid))
		return TASKS_SKIPPED;

	/* A thread that ran before the trace is known already. */
	if (record->time == 0 && tasks_find(tasks, fork.pid, fork.tid))
		return 0;

	/* Only a first thread begins a process, whatever a damaged record says of its parent. */
	if (fork.pid != fork.ppid && fork.pid == fork.tid)
		skipped = fork_space(tasks, record, &fork);
	else if (!space_of(tasks, fork.pid))
		skipped = begin_space(tasks, fork.pid, 0, 0);
	if (skipped < 0)
		return skipped;

	parent = find_thread(tasks, fork.ptid);
	r = begin_thread(tasks, fork.pid, fork.tid, parent ? parent->comm : "", record->time,
			 &child);
	return r < 0 ? r : skipped;
}

int tasks_exit(struct tasks *tasks, const struct trace_record *record)
{
	struct record_task exit;
	struct thread *thread;

	if (record_read_task(trace_record_body(record), &exit) < 0)
		return TASKS_SKIPPED;

	/* The space stays: the thread still runs for a moment, and its process may have others. */
	thread = find_thread(tasks, exit.tid);
	if (thread && thread->pid == exit.pid)
		thread->ended = true;
	return 0;
}

/*
 * An exec of process 0, which the idle thread does not do: the kernel calls all processes so that
 * are outside the recorder's PID namespace (findings/perf-pid-namespace.sh).
 */
static int meet_outside(struct tasks *tasks)
{
	int r = 0;

	if (!tasks->has_outside)
		r = jits_complain(&tasks->jits,
				  "the recorder had a PID namespace of its own: processes outside "
				  "of it have no number, and what they ran is in gaps");
	tasks->has_outside = true;
	return r < 0 ? r : TASKS_SKIPPED;
}

int tasks_comm(struct tasks *tasks, const struct trace_record *record)
{
	struct record_comm comm;
	struct thread *thread;
	int r;

	if (record_read_comm(record->misc, trace_record_body(record), &comm) < 0)
		return TASKS_SKIPPED;
	/* It is the only thread then, whatever a damaged record says; the name may have been lost,
	 * too. */
	if (comm.exec)
		comm.tid = comm.pid;
	if (comm.exec && comm.pid == 0)
		return meet_outside(tasks);
	if (!is_task(comm.pid, comm.tid) || (!comm.comm && !comm.exec))
		return TASKS_SKIPPED;

	if (comm.exec) {
		r = begin_space(tasks, comm.pid, 0, record->time);
		if (r < 0)
			return r;
		r = tasks_thread(tasks, comm.pid, comm.tid, record->time, &thread);
		if (r != 0)
			return r;
		thread->space = space_of(tasks, comm.pid);
		thread->ended = false;
	} else {
		r = living_thread(tasks, comm.pid, comm.tid, record->time, &thread);
		if (r != 0)
			return r;
	}

	thread->comm = comm.comm ?: "";
	return add_life(tasks, thread, record->time);
}

/* Return: whether both have the same bytes from @start to @last. */
static bool are_same(const struct mapping *a, const struct mapping *b, uint64_t start,
		     uint64_t last)
{
	const uint64_t size = last - start + 1;
	const uint8_t *of_a = object_bytes(a->object, a->offset + (start - a->start), size);
	const uint8_t *of_b = object_bytes(b->object, b->offset + (start - b->start), size);

	return of_a && of_b && memcmp(of_a, of_b, size) == 0;
}

/*
 * Some programs move their code into anonymous memory at the same addresses, to have it in large
 * pages: where @memory, which is mapped last, has the bytes of a file that was mapped there before,
 * it is that file's code.
 */
static int restore_files(struct tasks *tasks, struct space *space, const struct mapping *memory)
{
	const uint64_t memory_last = memory->start + (memory->size - 1);
	size_t i = space_n_own(space, UINT64_MAX) - 1;
	int r = 0;

	for (size_t n = 0; r == 0 && i > 0 && n < RESTORE_LOOK_MAX && tasks->n_copies_left > 0;
	     n++) {
		struct mapping file = *space_mapping(space, --i);
		const uint64_t file_last = file.start + (file.size - 1);
		const uint64_t start = file.start > memory->start ? file.start : memory->start;
		const uint64_t last = file_last < memory_last ? file_last : memory_last;

		if (file.kind != MAPPING_FILE || file.object->state != OBJECT_OK || start > last ||
		    !are_same(&file, memory, start, last))
			continue;
		tasks->n_copies_left--;
		file.time = memory->time;
		file.offset += start - file.start;
		file.start = start;
		file.size = last - start + 1;
		r = space_map(space, &file);
	}
	return r;
}

/*
 * Anonymous memory: where the snapshot has its bytes it is of them, elsewhere of @mapping's object,
 * which has none.
 */
static int map_memory(struct tasks *tasks, uint32_t pid, const struct mapping *mapping)
{
	const uint64_t last = mapping->start + (mapping->size - 1);
	struct space *space = space_of(tasks, pid);
	struct mapping piece = *mapping;

	piece.kind = MAPPING_MEMORY;
	for (;;) {
		const struct anonmem_piece *m = anonmem_find(&tasks->memory, pid, piece.start);
		uint64_t end = last;
		int r;

		piece.object = mapping->object;
		piece.offset = 0;
		if (tasks->n_copies_left == 0) {
			m = NULL;
		} else if (m && m->start <= piece.start) {
			piece.object = m->object;
			piece.offset = m->offset + (piece.start - m->start);
			end = m->last < last ? m->last : last;
		} else if (m && m->start <= last) {
			end = m->start - 1;
		}
		piece.size = end - piece.start + 1;
		r = space_map(space, &piece);
		if (r == 0 && piece.object->state == OBJECT_OK)
			r = restore_files(tasks, space, &piece);
		if (r < 0 || end == last)
			return r;
		tasks->n_copies_left--;
		piece.start = end + 1;
	}
}

/*
 * If the process had other code in the place of the vDSO, which the snapshot has as memory, use
 * that.
 */
static int take_other_vdso(struct tasks *tasks, uint32_t pid, struct mapping *mapping)
{
	const struct anonmem_piece *m = anonmem_find(&tasks->memory, pid, mapping->start);

	if (!m || m->start > mapping->start + (mapping->size - 1))
		return 0;
	return objects_find(tasks->objects, "//anon", NULL, &mapping->object);
}

/* @mapping is of [uprobes], which begins with the trampoline of uretprobes. Cut that off. */
static int map_trampoline(struct tasks *tasks, uint32_t pid, struct mapping *mapping)
{
	const struct kernel *kernel = &tasks->kernel;
	struct mapping piece = *mapping;

	if (!kernel->trampoline || mapping->size <= kernel->trampoline_size)
		return 0;
	piece.object = kernel->trampoline;
	piece.offset = kernel->trampoline_at;
	piece.size = kernel->trampoline_size;
	mapping->start += piece.size;
	mapping->size -= piece.size;
	return space_map(space_of(tasks, pid), &piece);
}

/* Without a snapshot that says so, a jitdump with an unusual name is known by its first bytes. */
static bool is_jitdump(const struct object *object)
{
	const uint8_t *bytes = object->state == OBJECT_OK && !object->is_elf
				   ? object_bytes(object, 0, JITMAGIC_SIZE)
				   : NULL;

	return bytes && jitmagic_is(bytes);
}

int tasks_map(struct tasks *tasks, const struct trace_record *record)
{
	struct jits_mapping jit;
	struct mapping mapping;
	struct thread *thread;
	struct record_mmap2 map;
	int r;

	if (record_read_mmap2(record->type, record->misc, trace_record_body(record), &map) < 0)
		return TASKS_SKIPPED;
	if (!record_maps_code(record->type, &map))
		return 0;
	if (map.len == 0 || map.len - 1 > UINT64_MAX - map.addr)
		return TASKS_SKIPPED;
	/* The mapping counts for the process, even if a damaged record names no thread. */
	r = living_thread(tasks, map.pid, is_task(map.tid, map.tid) ? map.tid : map.pid,
			  record->time, &thread);
	if (r != 0)
		return r;
	if (jits_is_dump(&tasks->jits, map.pid, map.name)) {
		r = make_jits_mapping(tasks, map.pid, map.name, record->time, &jit);
		return r < 0 ? r : jits_begin(&tasks->jits, &jit);
	}

	mapping = (struct mapping){
		.time = record->time,
		.start = map.addr,
		.size = map.len,
		.offset = map.pgoff,
		.is_shared = map.flags & MAP_SHARED,
	};
	r = objects_find_mapped(tasks->objects, map.name,
				map.build_id.size ? &map.build_id : find_build_id(tasks, map.name),
				&(struct objectsmap_inode){ map.maj, map.min, map.ino },
				&mapping.object);
	if (r < 0)
		return r;
	if (is_jitdump(mapping.object) && map.pgoff == 0) {
		r = make_jits_mapping(tasks, map.pid, map.name, record->time, &jit);
		return r < 0 ? r : jits_begin(&tasks->jits, &jit);
	}
	if (mapname_is_vdso(map.name)) {
		r = take_other_vdso(tasks, map.pid, &mapping);
		if (r < 0)
			return r;
	}
	if (mapping.object->state == OBJECT_COPIES) {
		r = map_trampoline(tasks, map.pid, &mapping);
		if (r < 0)
			return r;
	}
	if (mapping.object->state == OBJECT_NO_FILE)
		return map_memory(tasks, map.pid, &mapping);
	return space_map(space_of(tasks, map.pid), &mapping);
}
