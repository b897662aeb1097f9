/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/snapshot/tracingdata.h"

#include <assert.h>
#include <string.h>

#include "util/perf/codec.h"

#define FORM      "0.6" /* version of the form */
#define LONG_SIZE 8
#define PAGE_SIZE 4096u

struct writer {
	uint8_t *bytes;
	size_t n;
};

static void put_bytes(struct writer *w, const void *bytes, size_t size)
{
	assert(size <= TRACINGDATA_MAX - w->n);
	memcpy(w->bytes + w->n, bytes, size);
	w->n += size;
}

static void put_u32(struct writer *w, uint32_t n)
{
	put_bytes(w, &n, sizeof(n));
}

static void put_u64(struct writer *w, uint64_t n)
{
	put_bytes(w, &n, sizeof(n));
}

static void put_name(struct writer *w, const char *name)
{
	put_bytes(w, name, strlen(name) + 1);
}

/* A file of tracefs. */
static void put_text(struct writer *w, const char *text)
{
	put_u64(w, strlen(text));
	put_bytes(w, text, strlen(text));
}

/* A system that has one tracepoint. */
static void put_system(struct writer *w, const char *name, const char *format)
{
	put_name(w, name);
	put_u32(w, 1);
	put_text(w, format);
}

/* Of the kernel's ring buffer, which these samples never were in; but readers expect it. */
static const char header_page[] = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n"
				  "\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n"
				  "\tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n"
				  "\tfield: char data;\toffset:16;\tsize:4080;\tsigned:1;\n";
static const char header_event[] = "# compressed entry header\n"
				   "\ttype_len    :    5 bits\n"
				   "\ttime_delta  :   27 bits\n"
				   "\tarray       :   32 bits\n";

#define COMMON                                                                         \
	"format:\n"                                                                    \
	"\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"         \
	"\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"         \
	"\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n" \
	"\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"

static_assert(RECORD_TRACEPOINT_SYS_ENTER == 1 && RECORD_TRACEPOINT_SIGNAL == 2,
	      "the numbers in the texts");

static const char sys_enter[] =
    "name: sys_enter\nID: 1\n" COMMON "\tfield:long id;\toffset:8;\tsize:8;\tsigned:1;\n\n"
    "print fmt: \"NR %ld\", REC->id\n";
static_assert(offsetof(struct record_raw_sys_enter, id) == 8, "the offset in the text");

static const char signal_deliver[] =
    "name: signal_deliver\nID: 2\n" COMMON "\tfield:int sig;\toffset:8;\tsize:4;\tsigned:1;\n"
    "\tfield:unsigned long sa_handler;\toffset:16;\tsize:8;\tsigned:0;\n\n"
    "print fmt: \"sig=%d sa_handler=%lx\", REC->sig, REC->sa_handler\n";
static_assert(offsetof(struct record_raw_signal, sig) == 8 &&
		  offsetof(struct record_raw_signal, handler) == 16,
	      "the offsets in the text");

size_t tracingdata_write(uint8_t ret_bytes[static TRACINGDATA_MAX])
{
	static const uint8_t magic[] = { 0x17, 0x08, 0x44, 't', 'r', 'a', 'c', 'i', 'n', 'g' };
	static const uint8_t order[] = { 0 /* little endian */, LONG_SIZE };
	struct writer w = { .bytes = ret_bytes };

	put_bytes(&w, magic, sizeof(magic));
	put_name(&w, FORM);
	put_bytes(&w, order, sizeof(order));
	put_u32(&w, PAGE_SIZE);
	put_name(&w, "header_page");
	put_text(&w, header_page);
	put_name(&w, "header_event");
	put_text(&w, header_event);
	put_u32(&w, 0); /* tracepoints of ftrace */
	put_u32(&w, 2); /* systems */
	put_system(&w, "raw_syscalls", sys_enter);
	put_system(&w, "signal", signal_deliver);
	put_u32(&w, 0); /* bytes of kallsyms */
	put_u32(&w, 0); /* of the texts of printk() */
	put_u64(&w, 0); /* of the names of threads */
	return w.n;
}
