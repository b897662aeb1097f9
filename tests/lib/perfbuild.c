/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "tests/lib/perfbuild.h"
#include "tests/lib/kernelrecord.h"

#include <assert.h>
#include <string.h>
#include <sys/mman.h>
#include <zstd.h>

#include "util/perf/codec.h"

#define PT_TYPE   6
#define ATTR_SIZE 112

static void append_bytes(struct perfbuild *b, const void *bytes, size_t size)
{
	assert(size <= sizeof(b->bytes) - b->size);
	if (size)
		memcpy(b->bytes + b->size, bytes, size);
	b->size += size;
}

static void append_u64(struct perfbuild *b, uint64_t n)
{
	append_bytes(b, &n, sizeof(n));
}

static struct perf_event_attr attr_of(bool pt)
{
	return (struct perf_event_attr){
		.type = pt ? PT_TYPE : PERF_TYPE_SOFTWARE,
		.size = ATTR_SIZE,
		.config = pt ? PERFBUILD_CONFIG : PERF_COUNT_SW_DUMMY,
		.sample_type = PERFABI_SAMPLE_TYPE,
		.sample_id_all = 1,
	};
}

/* A feature's string: its length, then its bytes. */
struct cpuid {
	uint32_t length;
	char text[20];
};

static const struct cpuid cpuid = { .length = 20, .text = "GenuineIntel,6,85,4" };

static void put_feature_record(struct perfbuild *b)
{
	const struct {
		uint64_t feature;
		struct cpuid cpuid;
	} payload = { PERFABI_FEATURE_CPUID, cpuid };

	perfbuild_record(b, PERFABI_HEADER_FEATURE, 0, &payload, sizeof(payload), NULL);
}

/* Where the next record goes, and how large it may be. */
#define AT(b)   ((b)->bytes + (b)->size)
#define ROOM(b) (sizeof((b)->bytes) - (b)->size)

/* A record of @size bytes was written there. Return: its offset. */
static size_t added(struct perfbuild *b, size_t size)
{
	const size_t at = b->size;

	assert(size > 0);
	b->size += size;
	return at;
}

static void put_info(struct perfbuild *b)
{
	static const struct record_auxtrace_info info = {
		.type = PERFABI_AUXTRACE_INTEL_PT,
		.slots = {
			[PERFABI_PT_PMU_TYPE] = PT_TYPE,
			[PERFABI_PT_TIME_SHIFT] = PERFBUILD_SHIFT,
			[PERFABI_PT_TIME_MULT] = PERFBUILD_MULT,
			[PERFABI_PT_TIME_ZERO] = PERFBUILD_ZERO,
			[PERFABI_PT_CAP_USER_TIME_ZERO] = 1,
			[PERFABI_PT_TSC_BIT] = 0x400,
			[PERFABI_PT_NORETCOMP_BIT] = 0x800,
			[PERFABI_PT_HAVE_SCHED_SWITCH] = 3,
			[PERFABI_PT_PER_CPU_MMAPS] = 1,
			[PERFABI_PT_MTC_BIT] = PERFBUILD_MTC_BIT,
			[PERFABI_PT_MTC_FREQ_BITS] = PERFBUILD_MTC_FREQ_BITS,
			[PERFABI_PT_TSC_CTC_N] = 308,
			[PERFABI_PT_TSC_CTC_D] = 2,
			[PERFABI_PT_CYC_BIT] = PERFBUILD_CYC_BIT,
			[PERFABI_PT_MAX_NONTURBO_RATIO] = 37,
		},
	};

	added(b, record_write_auxtrace_info(&info, AT(b), ROOM(b)));
}

void perfbuild_begin(struct perfbuild *b, bool pipe)
{
	const struct perfabi_header header = {
		.magic = PERFABI_MAGIC,
		.size = pipe ? PERFABI_PIPE_HEADER : sizeof(header),
		.attr_size = ATTR_SIZE + sizeof(struct perfabi_section),
		.attrs = { PERFBUILD_ATTR, PERFBUILD_DATA - PERFBUILD_ATTR },
		.data = { PERFBUILD_DATA, 0 },
		.features = { 1u << PERFABI_FEATURE_CPUID },
	};

	*b = (struct perfbuild){ .pipe = pipe, .trailer.id = 2 };
	append_bytes(b, &header, (size_t)header.size);
	if (!pipe) {
		append_u64(b, 1);
		append_u64(b, 2);
	}
	for (size_t i = 0; i < 2; i++) {
		const struct perf_event_attr attr = attr_of(i == 0);
		uint8_t record[ATTR_SIZE + 8] = {};

		if (pipe) {
			memcpy(record, &attr, ATTR_SIZE);
			record[ATTR_SIZE] = (uint8_t)(i + 1);
			perfbuild_record(b, PERFABI_HEADER_ATTR, 0, record, sizeof(record), NULL);
		} else {
			append_bytes(b, &attr, ATTR_SIZE);
			append_u64(b, PERFBUILD_IDS + 8 * i);
			append_u64(b, 8);
		}
	}
	if (pipe)
		put_feature_record(b);
	put_info(b);
	assert(pipe || b->size == PERFBUILD_FIRST);
}

void perfbuild_filter(struct perfbuild *b, const char *text)
{
	struct cursor c = cursor_from(b->bytes + PERFBUILD_DATA, PERFBUILD_FIRST - PERFBUILD_DATA);
	struct record_auxtrace_info info;
	int r;

	assert(b->size == PERFBUILD_FIRST);
	r = cursor_skip(&c, sizeof(struct perf_event_header));
	r = r ?: record_read_auxtrace_info(c, &info);
	assert(r == 0);
	info.slots[PERFABI_PT_FILTER_STR_LEN] = strlen(text);
	info.filter = text;
	b->size = PERFBUILD_DATA;
	added(b, record_write_auxtrace_info(&info, AT(b), ROOM(b)));
}

void perfbuild_end(struct perfbuild *b)
{
	const uint64_t size = b->size - PERFBUILD_DATA;
	uint64_t at;

	if (b->pipe)
		return;
	at = b->size + (1 + !!b->tracing + !!b->programs) * sizeof(struct perfabi_section);
	memcpy(b->bytes + offsetof(struct perfabi_header, data.size), &size, sizeof(size));
	if (b->tracing) {
		b->bytes[offsetof(struct perfabi_header, features)] |=
		    1u << PERFABI_FEATURE_TRACING_DATA;
		append_u64(b, at + sizeof(cpuid));
		append_u64(b, b->tracing_size);
	}
	append_u64(b, at);
	append_u64(b, sizeof(cpuid));
	if (b->programs) {
		b->bytes[offsetof(struct perfabi_header, features) + 3] |=
		    1u << (PERFABI_FEATURE_BPF_PROG_INFO - 24);
		append_u64(b, at + sizeof(cpuid) + b->tracing_size);
		append_u64(b, b->programs_size);
	}
	append_bytes(b, &cpuid, sizeof(cpuid));
	append_bytes(b, b->tracing, b->tracing_size);
	append_bytes(b, b->programs, b->programs_size);
}

void perfbuild_at(struct perfbuild *b, uint64_t time, uint32_t cpu, uint32_t pid, uint32_t tid)
{
	b->trailer.time = time;
	b->trailer.cpu = cpu;
	b->trailer.pid = pid;
	b->trailer.tid = tid;
}

size_t perfbuild_record(struct perfbuild *b, uint32_t type, uint16_t misc, const void *payload,
			size_t size, const char *string)
{
	struct frame f;

	frame_begin(&f, type, misc, AT(b), ROOM(b));
	frame_put(&f, payload, size);
	if (string)
		frame_put_string(&f, string, 8);
	return added(b, frame_end(&f, type < PERF_RECORD_MAX ? &b->trailer : NULL));
}

size_t perfbuild_comm(struct perfbuild *b, bool exec, uint32_t pid, uint32_t tid, const char *comm)
{
	const struct record_comm c = { exec, pid, tid, comm };

	return added(b, record_write_comm(&c, &b->trailer, AT(b), ROOM(b)));
}

size_t perfbuild_fork(struct perfbuild *b, uint32_t pid, uint32_t ppid, uint32_t tid, uint32_t ptid)
{
	const struct record_task fork = { pid, ppid, tid, ptid, b->trailer.time, 0 };

	return added(b, record_write_fork(&fork, &b->trailer, AT(b), ROOM(b)));
}

size_t perfbuild_exit(struct perfbuild *b, uint32_t pid, uint32_t tid)
{
	const struct record_task task = { pid, pid, tid, tid, b->trailer.time, 0 };

	return added(b, record_write_exit(&task, &b->trailer, AT(b), ROOM(b)));
}

size_t perfbuild_mmap2(struct perfbuild *b, uint32_t pid, uint32_t tid, uint64_t start,
		       const char *path)
{
	return perfbuild_mapping(b, PERF_RECORD_MMAP2,
				 &(struct record_mmap2){ .misc = PERF_RECORD_MISC_USER,
							 .pid = pid,
							 .tid = tid,
							 .addr = start,
							 .len = 0x1000,
							 .pgoff = 0x2000,
							 .maj = 8,
							 .min = 1,
							 .ino = 77,
							 .prot = PROT_READ | PROT_EXEC,
							 .flags = MAP_PRIVATE,
							 .name = path });
}

size_t perfbuild_mapping(struct perfbuild *b, uint32_t type, const struct record_mmap2 *mmap)
{
	return added(b, type == PERF_RECORD_MMAP
			    ? record_write_mmap(mmap, &b->trailer, AT(b), ROOM(b))
			    : record_write_mmap2(mmap, &b->trailer, AT(b), ROOM(b)));
}

size_t perfbuild_itrace(struct perfbuild *b, uint32_t pid, uint32_t tid)
{
	const struct record_ids who = { pid, tid };

	return added(b, record_write_itrace_start(&who, &b->trailer, AT(b), ROOM(b)));
}

size_t perfbuild_switch_wide(struct perfbuild *b, bool out, uint32_t pid, uint32_t tid)
{
	const struct record_switch sw = { .out = out, .other = { pid, tid } };

	return added(b, record_write_switch_cpu_wide(&sw, &b->trailer, AT(b), ROOM(b)));
}

size_t perfbuild_switch(struct perfbuild *b, bool out)
{
	const struct record_switch sw = { .out = out };

	return added(b, record_write_switch(&sw, &b->trailer, AT(b), ROOM(b)));
}

size_t perfbuild_ksymbol(struct perfbuild *b, const struct record_ksymbol *ksymbol)
{
	return added(b, record_write_ksymbol(ksymbol, &b->trailer, AT(b), ROOM(b)));
}

size_t perfbuild_bpf_event(struct perfbuild *b, const struct record_bpf_event *bpf)
{
	return added(b, record_write_bpf_event(bpf, &b->trailer, AT(b), ROOM(b)));
}

size_t perfbuild_text_poke(struct perfbuild *b, const struct record_text_poke *poke)
{
	return added(b, record_write_text_poke(poke, &b->trailer, AT(b), ROOM(b)));
}

size_t perfbuild_build_id(struct perfbuild *b, const struct buildid *id, const char *path)
{
	const struct record_build_id entry = {
		.cpumode = PERF_RECORD_MISC_USER, .pid = -1, .build_id = *id, .path = path
	};

	return added(b, record_write_build_id(&entry, AT(b), ROOM(b)));
}

size_t perfbuild_auxtrace(struct perfbuild *b, uint32_t idx, int32_t cpu, int32_t tid,
			  uint64_t offset, const void *bytes, size_t size)
{
	const struct record_auxtrace a = {
		.size = size,
		.offset = offset,
		.reference = 0x1000,
		.idx = idx,
		.tid = tid,
		.cpu = cpu,
	};
	const size_t at = added(b, record_write_auxtrace(&a, AT(b), ROOM(b)));

	append_bytes(b, bytes, size);
	return at;
}

size_t perfbuild_aux(struct perfbuild *b, uint64_t offset, uint64_t size, uint64_t flags)
{
	const struct record_aux aux = { offset, size, flags };

	return added(b, record_write_aux(&aux, &b->trailer, AT(b), ROOM(b)));
}

size_t perfbuild_lost(struct perfbuild *b, uint64_t n)
{
	const struct record_lost lost = { b->trailer.id, n };

	return added(b, record_write_lost(&lost, &b->trailer, AT(b), ROOM(b)));
}

size_t perfbuild_lost_samples(struct perfbuild *b, uint64_t n)
{
	return added(b, record_write_lost_samples(n, &b->trailer, AT(b), ROOM(b)));
}

/* Everything that perf 6.1 knows, but what only other architectures have. */
#define SAMPLE_TYPE                                                                               \
	((uint64_t)(PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR |      \
		    PERF_SAMPLE_READ | PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_ID | PERF_SAMPLE_CPU | \
		    PERF_SAMPLE_PERIOD | PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_RAW |                \
		    PERF_SAMPLE_BRANCH_STACK | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER |   \
		    PERF_SAMPLE_WEIGHT | PERF_SAMPLE_DATA_SRC | PERF_SAMPLE_IDENTIFIER |          \
		    PERF_SAMPLE_TRANSACTION | PERF_SAMPLE_REGS_INTR | PERF_SAMPLE_PHYS_ADDR |     \
		    PERF_SAMPLE_AUX | PERF_SAMPLE_CGROUP | PERF_SAMPLE_DATA_PAGE_SIZE |           \
		    PERF_SAMPLE_CODE_PAGE_SIZE))

void perfbuild_sampling(struct perfbuild *b)
{
	struct perf_event_attr attr;

	assert(!b->pipe);
	memset(&attr, 0, sizeof(attr));
	memcpy(&attr, b->bytes + PERFBUILD_ATTR1, ATTR_SIZE);
	attr.sample_type = SAMPLE_TYPE;
	attr.read_format = PERF_FORMAT_GROUP | PERF_FORMAT_ID | PERF_FORMAT_TOTAL_TIME_ENABLED;
	attr.branch_sample_type = PERF_SAMPLE_BRANCH_HW_INDEX;
	attr.sample_regs_user = 7;
	attr.sample_regs_intr = 1;
	memcpy(b->bytes + PERFBUILD_ATTR1, &attr, ATTR_SIZE);
}

size_t perfbuild_sample(struct perfbuild *b, const void *bytes, size_t size)
{
	const size_t at = b->size;
	const uint64_t ids = (uint64_t)b->trailer.tid << 32 | b->trailer.pid;
	const uint64_t fields[] = {
		2,
		0x400000,
		ids,
		b->trailer.time,
		0xadd,
		2,
		0x57,
		b->trailer.cpu,
		1,
		/* two counters and a time; three callers; 12 bytes, raw, behind their size */
		2,
		99,
		11,
		1,
		22,
		2,
		3,
		0xca,
		0xcb,
		0xcc,
		UINT64_C(0xaaaaaaaa0000000c),
		0xbbbb,
		/* two branches behind the index; registers; eight bytes of the stack */
		2,
		5,
		1,
		1,
		1,
		2,
		2,
		2,
		1,
		0xe0,
		0xe1,
		0xe2,
		8,
		0x57ac,
		8,
		/* weight, source, transaction; no registers; address, cgroup, page sizes */
		7,
		8,
		9,
		0,
		10,
		11,
		12,
		13,
		size,
	};
	struct perf_event_header header = { .type = PERF_RECORD_SAMPLE };

	append_bytes(b, &header, sizeof(header));
	append_bytes(b, fields, sizeof(fields));
	append_bytes(b, bytes, size);
	header.size = (uint16_t)(b->size - at);
	memcpy(b->bytes + at, &header, sizeof(header));
	return at;
}

size_t perfbuild_compress(struct perfbuild *b, void *stream, size_t from, size_t n, bool two)
{
	static uint8_t rest[sizeof(b->bytes)], packed[1 << 15];
	const size_t n_rest = b->size - from - n;
	ZSTD_inBuffer in = { .src = b->bytes + from, .size = n };
	ZSTD_outBuffer out = { .dst = packed + 16, .size = sizeof(packed) - 32 };
	struct perf_event_header header = { .type = PERFABI_COMPRESSED };
	size_t start = 8, size;

	while (in.pos < in.size)
		if (ZSTD_isError(ZSTD_compressStream2(stream, &out, &in, ZSTD_e_flush)))
			assert(false);
	size = out.pos;
	if (two) {
		header.type = PERFABI_COMPRESSED2;
		start = 0;
		memcpy(packed + 8, &(uint64_t){ out.pos }, 8);
		memset(packed + 16 + out.pos, 0, 8);
		size = 8 + (out.pos + 7) / 8 * 8;
	}
	header.size = (uint16_t)(sizeof(header) + size);
	memcpy(packed + start, &header, sizeof(header));

	memcpy(rest, b->bytes + from + n, n_rest);
	b->size = from;
	append_bytes(b, packed + start, header.size);
	n = b->size;
	append_bytes(b, rest, n_rest);
	return n;
}

void perfbuild_example(struct perfbuild *b, bool pipe)
{
	static const uint8_t pt[] = { 0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82 };

	perfbuild_begin(b, pipe);
	b->trailer.id = 0;
	perfbuild_comm(b, false, 10, 10, "demo");
	perfbuild_mmap2(b, 10, 10, 0x400000, "/no/such/demo");
	b->trailer.id = 2;
	perfbuild_at(b, 300, 1, 10, 11);
	perfbuild_switch_wide(b, true, 0, 0);
	perfbuild_at(b, 350, 1, 0, 0);
	perfbuild_switch_wide(b, false, 10, 11);
	perfbuild_at(b, 100, 0, 10, 10);
	perfbuild_itrace(b, 10, 10);
	perfbuild_at(b, 200, 0, 10, 10);
	perfbuild_fork(b, 10, 10, 11, 10);
	perfbuild_at(b, 400, 0, 10, 10);
	perfbuild_comm(b, true, 10, 10, "next");
	perfbuild_at(b, 500, 0, 10, 10);
	perfbuild_exit(b, 10, 10);
	perfbuild_auxtrace(b, 0, 0, -1, 0, pt, sizeof(pt));
	added(b, record_write_finished_round(AT(b), ROOM(b)));
	perfbuild_auxtrace(b, 1, 1, -1, 64, pt, sizeof(pt));
	perfbuild_end(b);
}
