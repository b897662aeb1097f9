/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 *	events DIR	notes events of its own in a trace of ovni, version 3, in DIR: in the main
 *			thread, two others, and a child
 *
 * Each thread prints what it noted, in its order: its ids, the kind and name of the event, and the
 * function that noted it. Beside these, the first thread of each process notes an event of a time
 * long before it ran and one of a time long after it, and a stream is written for a thread that
 * never was.
 */

#define _GNU_SOURCE

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { STACK, PHASE, POINT }; /* types of marks */

struct stream {
	int pid, tid;
	size_t size, n_said;
	char bytes[8192], said[8192];
};

static const char *top;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static const char metadata[] =
    "{\"version\":3,\"ovni\":{\"lib\":{\"version\":\"1.0.0\",\"commit\":\"none\"},"
    "\"part\":\"thread\",\"pid\":%d,\"tid\":%d,\"loom\":\"host\",\"app_id\":1,"
    "\"require\":{\"ovni\":\"1.1.0\"},\"finished\":1,\"mark\":{"
    "\"0\":{\"title\":\"stack\",\"chan_type\":\"stack\",\"labels\":{\"1\":\"outer\",\"2\":"
    "\"inner\"}},"
    "\"1\":{\"title\":\"phase\",\"chan_type\":\"stack\",\"labels\":{\"1\":\"a phase\"}},"
    "\"2\":{\"title\":\"point\",\"chan_type\":\"single\",\"labels\":{}}}}}\n";

static void put(struct stream *stream, const void *bytes, size_t size)
{
	if (size > sizeof(stream->bytes) - stream->size)
		exit(2);
	memcpy(stream->bytes + stream->size, bytes, size);
	stream->size += size;
}

static void put_event(struct stream *stream, const char *letters, uint64_t clock,
		      const void *payload, uint8_t size)
{
	const uint8_t head = size ? (uint8_t)(size - 1) : 0;

	put(stream, &head, sizeof(head));
	put(stream, letters, 3);
	put(stream, &clock, sizeof(clock));
	put(stream, payload, size);
}

static void put_mark(struct stream *stream, const char *letters, uint64_t clock, int64_t value,
		     int32_t type)
{
	uint8_t payload[sizeof(value) + sizeof(type)];

	memcpy(payload, &value, sizeof(value));
	memcpy(payload + sizeof(value), &type, sizeof(type));
	put_event(stream, letters, clock, payload, sizeof(payload));
}

static uint64_t clock_ns(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Note an event at this moment. */
__attribute__((noinline)) static void note(struct stream *stream, const char *letters,
					   int64_t value, int32_t type, const char *function)
{
	static const char *const kinds[] = { ['['] = "begin", [']'] = "end", ['='] = "point" };
	static const char *const names[][3] = { { "", "outer", "inner" }, { "", "a phase", "" } };
	char name[32];

	put_mark(stream, letters, clock_ns(), value, type);
	(void)snprintf(name, sizeof(name), "point %d", (int)value);
	stream->n_said += (size_t)snprintf(
	    stream->said + stream->n_said, sizeof(stream->said) - stream->n_said,
	    "%d\t%d\t%s\t%s\t%s\n", stream->pid, stream->tid, kinds[(uint8_t)letters[2]],
	    type == POINT ? name : names[type][value], function);
}

/* --- the work --------------------------------------------------------------------------------- */

/* No call may be the last thing that a function does, or it would be a jump. */
#define END __asm__ volatile("")

__attribute__((noinline)) static void inner(struct stream *stream, int i)
{
	note(stream, "OM[", 2, STACK, "inner");
	note(stream, "OM=", i, POINT, "inner");
	note(stream, "OM]", 2, STACK, "inner");
	END;
}

/* The phase ends in another function than it begins, and before what began in it. */
__attribute__((noinline)) static void begin_phase(struct stream *stream)
{
	note(stream, "OM[", 1, PHASE, "begin_phase");
	END;
}

__attribute__((noinline)) static void end_phase(struct stream *stream)
{
	note(stream, "OM]", 1, PHASE, "end_phase");
	END;
}

__attribute__((noinline)) static void outer(struct stream *stream)
{
	begin_phase(stream);
	note(stream, "OM[", 1, STACK, "outer");
	inner(stream, 1);
	end_phase(stream);
	inner(stream, 2);
	note(stream, "OM]", 1, STACK, "outer");
	END;
}

/* --- the streams ------------------------------------------------------------------------------ */

static FILE *create(const char *dir, const char *name)
{
	char path[512];
	FILE *f;

	(void)snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "w");
	if (!f)
		exit(2);
	return f;
}

static void write_stream(const struct stream *stream)
{
	static const char header[] = { 'o', 'v', 'n', 'i', 1, 0, 0, 0 };
	char dir[256];
	FILE *f;

	(void)snprintf(dir, sizeof(dir), "%s/loom.host/proc.%d", top, stream->pid);
	(void)mkdir(dir, 0777);
	(void)snprintf(dir, sizeof(dir), "%s/loom.host/proc.%d/thread.%d", top, stream->pid,
		       stream->tid);
	(void)mkdir(dir, 0777);
	f = create(dir, "stream.json");
	fprintf(f, metadata, stream->pid, stream->tid);
	if (fclose(f) != 0)
		exit(2);
	f = create(dir, "stream.obs");
	(void)fwrite(header, sizeof(header), 1, f);
	(void)fwrite(stream->bytes, stream->size, 1, f);
	if (fclose(f) != 0)
		exit(2);
}

static void *run(void *arg)
{
	const int32_t on_any_cpu[4] = { -1, -1, 0, 0 };
	const int is_main = getpid() == gettid();
	struct stream stream = { .pid = getpid(), .tid = gettid() };
	const uint64_t now = clock_ns();

	(void)arg;
	if (is_main)
		put_mark(&stream, "OM=", 1, 8, POINT);
	put_event(&stream, "OHx", now, on_any_cpu, sizeof(on_any_cpu));
	outer(&stream);
	put_event(&stream, "OHe", clock_ns(), NULL, 0);
	if (is_main)
		put_mark(&stream, "OM=", now + 3600 * UINT64_C(1000000000), 9, POINT);
	write_stream(&stream);
	(void)pthread_mutex_lock(&mutex);
	(void)fwrite(stream.said, stream.n_said, 1, stdout);
	(void)fflush(stdout);
	(void)pthread_mutex_unlock(&mutex);
	return NULL;
}

int main(int argc, char **argv)
{
	struct stream nobody = { .pid = getpid(), .tid = 1 };
	pthread_t threads[2];
	char dir[256];
	int status;
	pid_t pid;

	if (argc != 2)
		return 2;
	top = argv[1];
	(void)snprintf(dir, sizeof(dir), "%s/loom.host", top);
	(void)mkdir(top, 0777);
	(void)mkdir(dir, 0777);
	for (size_t i = 0; i < 2; i++)
		if (pthread_create(&threads[i], NULL, run, NULL) != 0)
			return 2;
	(void)run(NULL);
	for (size_t i = 0; i < 2; i++)
		(void)pthread_join(threads[i], NULL);
	pid = fork();
	if (pid == 0) {
		(void)run(NULL);
		_exit(0);
	}
	put_mark(&nobody, "OM=", clock_ns(), 7, POINT);
	write_stream(&nobody);
	return pid < 0 || waitpid(pid, &status, 0) != pid || status != 0 ? 2 : 0;
}
