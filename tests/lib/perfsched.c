/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "tests/lib/perfsched.h"

#include <assert.h>
#include <string.h>

struct writer {
	uint8_t *bytes;
	size_t n;
};

static void put_bytes(struct writer *w, const void *bytes, size_t size)
{
	memcpy(w->bytes + w->n, bytes, size);
	w->n += size;
}

static void put_u32(struct writer *w, uint32_t n)
{
	put_bytes(w, &n, sizeof(n));
}

static void put_name(struct writer *w, const char *name)
{
	put_bytes(w, name, strlen(name) + 1);
}

static void put_text(struct writer *w, const char *text)
{
	const uint64_t size = strlen(text);

	put_bytes(w, &size, sizeof(size));
	put_bytes(w, text, size);
}

static const char header_page[] = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n"
				  "\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n"
				  "\tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n"
				  "\tfield: char data;\toffset:16;\tsize:4080;\tsigned:1;\n";

#define COMMON                                                                         \
	"format:\n"                                                                    \
	"\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"         \
	"\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"         \
	"\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n" \
	"\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"

static const char other_format[] =
    "name: sched_switch\nID: 11\n" COMMON "\tfield:int next_pid;\toffset:8;\tsize:4;\tsigned:1;\n\n"
    "print fmt: \"%d\", REC->next_pid\n";

static const char wakeup_format[] =
    "name: sched_wakeup\nID: 315\n" COMMON "\tfield:pid_t pid;\toffset:8;\tsize:4;\tsigned:1;\n\n"
    "print fmt: \"%d\", REC->pid\n";

static const char switch_format[] = "name: sched_switch\nID: 314\n" COMMON
				    "\tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;\n"
				    "\tfield:pid_t prev_pid;\toffset:24;\tsize:4;\tsigned:1;\n"
				    "\tfield:int prev_prio;\toffset:28;\tsize:4;\tsigned:1;\n"
				    "\tfield:long prev_state;\toffset:32;\tsize:8;\tsigned:1;\n"
				    "\tfield:char next_comm[16];\toffset:40;\tsize:16;\tsigned:0;\n"
				    "\tfield:pid_t next_pid;\toffset:56;\tsize:4;\tsigned:1;\n"
				    "\tfield:int next_prio;\toffset:60;\tsize:4;\tsigned:1;\n\n"
				    "print fmt: \"%d ==> %d\", REC->prev_pid, REC->next_pid\n";

static const char signal_format[] =
    "name: signal_deliver\nID: 200\n" COMMON "\tfield:int sig;\toffset:8;\tsize:4;\tsigned:1;\n"
    "\tfield:int errno;\toffset:12;\tsize:4;\tsigned:1;\n"
    "\tfield:int code;\toffset:16;\tsize:4;\tsigned:1;\n"
    "\tfield:unsigned long sa_handler;\toffset:24;\tsize:8;\tsigned:0;\n"
    "\tfield:unsigned long sa_flags;\toffset:32;\tsize:8;\tsigned:0;\n\n"
    "print fmt: \"%d\", REC->sig\n";

static const char syscall_format[] =
    "name: sys_enter\nID: 401\n" COMMON "\tfield:long id;\toffset:8;\tsize:8;\tsigned:1;\n"
    "\tfield:unsigned long args[6];\toffset:16;\tsize:48;\tsigned:0;\n\n"
    "print fmt: \"%ld\", REC->id\n";

size_t perfsched_formats(uint8_t ret_bytes[static 4096])
{
	static const uint8_t page[] = { 0, 8, 0, 0x10, 0, 0 };
	struct writer w = { .bytes = ret_bytes };

	put_bytes(&w, "\x17\x08\x44tracing", 10);
	put_name(&w, "0.6");
	put_bytes(&w, page, sizeof(page));
	put_name(&w, "header_page");
	put_text(&w, header_page);
	put_name(&w, "header_event");
	put_text(&w, "# compressed entry header\n");
	put_u32(&w, 0);
	put_u32(&w, 4);
	put_name(&w, "other");
	put_u32(&w, 1);
	put_text(&w, other_format);
	put_name(&w, "signal");
	put_u32(&w, 1);
	put_text(&w, signal_format);
	put_name(&w, "raw_syscalls");
	put_u32(&w, 1);
	put_text(&w, syscall_format);
	put_name(&w, "sched");
	put_u32(&w, 2);
	put_text(&w, wakeup_format);
	put_text(&w, switch_format);
	/* Names of the kernel's functions, of its texts, and of threads. */
	put_u32(&w, 0);
	put_u32(&w, 0);
	put_bytes(&w, &(uint64_t){ 0 }, 8);
	assert(w.n <= 4096);
	return w.n;
}

void perfsched_make(struct perfbuild *b, uint64_t id)
{
	struct perf_event_attr attr;
	uint8_t *attr1;

	/* In the pipe form, the second of the records that the file begins with. */
	attr1 = b->pipe ? b->bytes + PERFABI_PIPE_HEADER + 128 + 8 : b->bytes + PERFBUILD_ATTR1;
	memset(&attr, 0, sizeof(attr));
	memcpy(&attr, attr1, PERF_ATTR_SIZE_VER5);
	attr.type = PERF_TYPE_TRACEPOINT;
	attr.config = id;
	attr.sample_type |= PERF_SAMPLE_RAW;
	memcpy(attr1, &attr, PERF_ATTR_SIZE_VER5);
}

void perfsched_begin(struct perfbuild *b, const void *formats, size_t size)
{
	perfsched_make(b, PERFSCHED_ID);
	if (formats && b->pipe) {
		perfbuild_record(b, PERFABI_HEADER_TRACING_DATA, 0, &(uint64_t){ size }, 8, NULL);
		memcpy(b->bytes + b->size, formats, size);
		b->size += size;
	} else {
		b->tracing = formats;
		b->tracing_size = formats ? size : 0;
	}
}

/* Add a sample with these raw data. */
static void add_sample(struct perfbuild *b, const uint8_t raw[static PERFSCHED_RAW_SIZE])
{
	const struct trailer *t = &b->trailer;
	struct {
		struct perf_event_header header;
		uint64_t id, ip;
		uint32_t pid, tid;
		uint64_t time;
		uint32_t cpu, reserved;
		uint32_t size;
		uint8_t raw[PERFSCHED_RAW_SIZE + 4];
	} sample = {
		.header = { .type = PERF_RECORD_SAMPLE, .size = sizeof(sample) },
		.id = t->id,
		.ip = 0xffffffff81000000,
		.pid = t->pid,
		.tid = t->tid,
		.time = t->time,
		.cpu = t->cpu,
		.size = sizeof(sample.raw),
	};

	memcpy(sample.raw, raw, PERFSCHED_RAW_SIZE);
	assert(sizeof(sample) <= sizeof(b->bytes) - b->size);
	memcpy(b->bytes + b->size, &sample, sizeof(sample));
	b->size += sizeof(sample);
}

void perfsched_sample(struct perfbuild *b, uint32_t prev, uint32_t next)
{
	uint8_t raw[PERFSCHED_RAW_SIZE] = {};

	memcpy(raw, &(uint16_t){ PERFSCHED_ID }, 2);
	memcpy(raw + PERFSCHED_PREV_PID, &prev, 4);
	memcpy(raw + PERFSCHED_NEXT_PID, &next, 4);
	add_sample(b, raw);
}

void perfsched_signal(struct perfbuild *b, int32_t signal, int32_t code, uint64_t handler)
{
	uint8_t raw[PERFSCHED_RAW_SIZE] = {};

	memcpy(raw, &(uint16_t){ PERFSCHED_SIGNAL_ID }, 2);
	memcpy(raw + 8, &signal, sizeof(signal));
	memcpy(raw + 16, &code, sizeof(code));
	memcpy(raw + 24, &handler, sizeof(handler));
	add_sample(b, raw);
}

void perfsched_syscall(struct perfbuild *b, uint64_t number)
{
	uint8_t raw[PERFSCHED_RAW_SIZE] = {};

	memcpy(raw, &(uint16_t){ PERFSCHED_SYSCALL_ID }, 2);
	memcpy(raw + 8, &number, sizeof(number));
	add_sample(b, raw);
}
