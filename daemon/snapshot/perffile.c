/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/snapshot/perffile.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "daemon/source/source.h"
#include "util/buildid.h"
#include "util/perf/codec.h"
#include "util/perf/perfabi.h"
#include "util/vec.h"

#define BUFFER_SIZE ((size_t)1 << 20)

/* The oldest size that has all we set: perf refuses attrs that are larger than its own. */
#define ATTR_SIZE PERF_ATTR_SIZE_VER5

/* Where the ids lie, and the attrs behind them. */
#define IDS_OFFSET  sizeof(struct perfabi_header)
#define ATTR_STRIDE (ATTR_SIZE + sizeof(struct perfabi_section))

#define ATTRS_MAX 4

struct perffile {
	FILE *stream;
	char *buffer;
	const struct source_facts *facts; /* borrowed */
	struct perf_event_attr attrs[ATTRS_MAX];
	size_t n_attrs;
	VEC(uint64_t) aux; /* file offset of each AUXTRACE record */
	int error;         /* of the first write that failed */
};

static const uint64_t ids[ATTRS_MAX] = { RECORD_ID_PT, RECORD_ID_SIDEBAND, RECORD_ID_SYS_ENTER,
					 RECORD_ID_SIGNAL };

/* As perf spells it; which of them it is depends on whose code is traced. */
static const char *pt_name(const struct source_facts *facts)
{
	return facts->user && facts->kernel ? "intel_pt//"
	       : facts->kernel              ? "intel_pt//k"
					    : "intel_pt//u";
}

static void put_bytes(struct perffile *f, const void *bytes, size_t size)
{
	if (size > 0 && fwrite(bytes, 1, size, f->stream) != size && f->error == 0)
		f->error = errno ? -errno : -EIO;
}

static void put_u32(struct perffile *f, uint32_t value)
{
	put_bytes(f, &value, sizeof(value));
}

static void put_u64(struct perffile *f, uint64_t value)
{
	put_bytes(f, &value, sizeof(value));
}

static void put_zeros(struct perffile *f, size_t n)
{
	static const uint8_t zeros[64];

	for (; n > sizeof(zeros); n -= sizeof(zeros))
		put_bytes(f, zeros, sizeof(zeros));
	put_bytes(f, zeros, n);
}

static uint64_t file_offset(struct perffile *f)
{
	return (uint64_t)ftello(f->stream);
}

/* This writes what is buffered, so that it fails when the disk is full. */
static void go_to(struct perffile *f, uint64_t offset)
{
	if (fseeko(f->stream, (off_t)offset, SEEK_SET) < 0 && f->error == 0)
		f->error = -errno;
}

static uint64_t attrs_offset(const struct perffile *f)
{
	return IDS_OFFSET + f->n_attrs * sizeof(ids[0]);
}

/* Where the records begin. */
static uint64_t data_offset(const struct perffile *f)
{
	return attrs_offset(f) + f->n_attrs * ATTR_STRIDE;
}

static struct perf_event_attr tracepoint_attr(uint64_t config)
{
	return (struct perf_event_attr){
		.type = PERF_TYPE_TRACEPOINT,
		.size = ATTR_SIZE,
		.config = config,
		.sample_period = 1,
		.sample_type = RECORD_SAMPLE_TYPE,
		.sample_id_all = 1,
	};
}

static void make_attrs(struct perffile *f)
{
	f->n_attrs = f->facts->gives_events ? 4 : 2;
	f->attrs[0] = (struct perf_event_attr){
		.type = f->facts->pmu_type,
		.size = ATTR_SIZE,
		.config = f->facts->attr_config,
		.sample_period = 1,
		.sample_type = PERFABI_SAMPLE_TYPE,
		.exclude_user = !f->facts->user,
		.exclude_kernel = !f->facts->kernel,
		.exclude_hv = 1,
		.sample_id_all = 1,
	};
	f->attrs[1] = (struct perf_event_attr){
		.type = PERF_TYPE_SOFTWARE,
		.size = ATTR_SIZE,
		.config = PERF_COUNT_SW_DUMMY,
		.sample_period = 1,
		.sample_type = PERFABI_SAMPLE_TYPE,
		.exclude_kernel = 1,
		.exclude_hv = 1,
		.mmap = 1,
		.comm = 1,
		.task = 1,
		.sample_id_all = 1,
		.mmap2 = 1,
		.comm_exec = 1,
		.context_switch = 1,
		.build_id = 1,
		.ksymbol = f->facts->kernel,
		.bpf_event = f->facts->kernel,
		.text_poke = f->facts->kernel,
	};
	f->attrs[2] = tracepoint_attr(RECORD_TRACEPOINT_SYS_ENTER);
	f->attrs[3] = tracepoint_attr(RECORD_TRACEPOINT_SIGNAL);
}

static void put_head(struct perffile *f)
{
	put_zeros(f, sizeof(struct perfabi_header)); /* completed by perffile_finish() */
	put_bytes(f, ids, f->n_attrs * sizeof(ids[0]));
	for (size_t i = 0; i < f->n_attrs; i++) {
		put_bytes(f, &f->attrs[i], ATTR_SIZE);
		put_u64(f, IDS_OFFSET + i * sizeof(ids[0]));
		put_u64(f, sizeof(ids[0]));
	}
}

static void put_time_conv(struct perffile *f)
{
	uint8_t record[RECORD_OWN_MAX];

	put_bytes(f, record, record_write_time_conv(&f->facts->tsc, record, sizeof(record)));
}

static void put_id_index(struct perffile *f)
{
	struct record_id_index_entry entries[ATTRS_MAX];
	uint8_t record[RECORD_OWN_MAX];

	for (size_t i = 0; i < f->n_attrs; i++)
		entries[i] =
		    (struct record_id_index_entry){ .id = ids[i], .idx = i, .cpu = -1, .tid = -1 };
	put_bytes(f, record, record_write_id_index(entries, f->n_attrs, record, sizeof(record)));
}

static void put_auxtrace_info(struct perffile *f)
{
	const struct source_facts *facts = f->facts;
	const uint64_t event_trace = facts->event_trace;
	const struct record_auxtrace_info info = {
		.type = PERFABI_AUXTRACE_INTEL_PT,
		.slots = {
			[PERFABI_PT_PMU_TYPE] = facts->pmu_type,
			[PERFABI_PT_TIME_SHIFT] = facts->tsc.shift,
			[PERFABI_PT_TIME_MULT] = facts->tsc.mult,
			[PERFABI_PT_TIME_ZERO] = facts->tsc.zero,
			[PERFABI_PT_CAP_USER_TIME_ZERO] = 1,
			[PERFABI_PT_TSC_BIT] = facts->mask_tsc,
			[PERFABI_PT_NORETCOMP_BIT] = facts->mask_noretcomp,
			/* SWITCH or SWITCH_CPU_WIDE records */
			[PERFABI_PT_HAVE_SCHED_SWITCH] = facts->is_inherited ? 2 : 3,
			[PERFABI_PT_SNAPSHOT_MODE] = 1,
			[PERFABI_PT_PER_CPU_MMAPS] = 1,
			[PERFABI_PT_MTC_BIT] = facts->mask_mtc,
			[PERFABI_PT_MTC_FREQ_BITS] = facts->mask_mtc_period,
			[PERFABI_PT_TSC_CTC_N] = facts->tsc_ctc_numerator,
			[PERFABI_PT_TSC_CTC_D] = facts->tsc_ctc_denominator,
			[PERFABI_PT_CYC_BIT] = facts->mask_cyc,
			[PERFABI_PT_MAX_NONTURBO_RATIO] = facts->max_nonturbo_ratio,
		},
		.more = &event_trace,
		.n_more = 1,
	};
	uint8_t record[RECORD_OWN_MAX];

	put_bytes(f, record, record_write_auxtrace_info(&info, record, sizeof(record)));
}

int perffile_new(int dir_fd, const char *name, const struct source_facts *facts,
		 struct perffile **ret_file)
{
	_cleanup_(perffile_freep) struct perffile *f = NULL;
	int fd;

	assert(facts->tsc.mult > 0); /* perf divides by it */

	f = calloc(1, sizeof(*f));
	if (!f)
		return -ENOMEM;
	f->facts = facts;
	f->buffer = malloc(BUFFER_SIZE);
	if (!f->buffer)
		return -ENOMEM;
	fd = openat(dir_fd, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0640);
	if (fd < 0)
		return -errno;
	f->stream = fdopen(fd, "w+");
	if (!f->stream) {
		(void)fd_close(fd);
		return -ENOMEM;
	}
	(void)setvbuf(f->stream, f->buffer, _IOFBF, BUFFER_SIZE);

	make_attrs(f);
	put_head(f);
	put_time_conv(f);
	put_id_index(f);
	put_auxtrace_info(f);
	*ret_file = TAKE(f);
	return 0;
}

void perffile_write(struct perffile *file, const void *records, size_t size)
{
	put_bytes(file, records, size);
}

int perffile_write_aux(struct perffile *file, uint32_t cpu, uint64_t offset, uint64_t reference,
		       const void *bytes, size_t size)
{
	/* Zeros are PAD packets: they keep what follows aligned and mean nothing. */
	const size_t padding = -size % 8;
	const struct record_auxtrace aux = {
		.size = size + padding,
		.offset = offset,
		.reference = reference,
		.idx = cpu,
		.tid = -1,
		.cpu = (int32_t)cpu,
	};
	uint8_t record[RECORD_OWN_MAX];
	int r;

	assert(reference != 0);
	r = vec_push(&file->aux, file_offset(file));
	if (r < 0)
		return r;
	put_bytes(file, record, record_write_auxtrace(&aux, record, sizeof(record)));
	put_bytes(file, bytes, size);
	put_zeros(file, padding);
	return 0;
}

/* perf's strings: a length that is a multiple of 64, then the text filled up with NULs. */
static void put_string(struct perffile *f, const char *s)
{
	const size_t n = strlen(s) + 1, padded = (n + 63) & ~(size_t)63;

	put_u32(f, (uint32_t)padded);
	put_bytes(f, s, n);
	put_zeros(f, padded - n);
}

static void put_build_ids(struct perffile *f, const struct perffile_about *about)
{
	for (size_t i = 0; i < about->n_objects; i++) {
		const struct perffile_object *o = &about->objects[i];
		const struct record_build_id entry = {
			.cpumode = PERF_RECORD_MISC_USER,
			.pid = -1,
			.build_id = *o->build_id,
			.path = o->path,
		};
		uint8_t record[RECORD_OWN_MAX];

		if (o->build_id->size == 0 || strlen(o->path) >= RECORD_NAME_MAX)
			continue;
		put_bytes(f, record, record_write_build_id(&entry, record, sizeof(record)));
	}
}

static void put_event_desc(struct perffile *f)
{
	const char *const names[ATTRS_MAX] = { pt_name(f->facts), "dummy:u",
					       "raw_syscalls:sys_enter", "signal:signal_deliver" };

	put_u32(f, (uint32_t)f->n_attrs);
	put_u32(f, ATTR_SIZE);
	for (size_t i = 0; i < f->n_attrs; i++) {
		put_bytes(f, &f->attrs[i], ATTR_SIZE);
		put_u32(f, 1);
		put_string(f, names[i]);
		put_u64(f, ids[i]);
	}
}

static void put_aux_index(struct perffile *f)
{
	put_u64(f, f->aux.n);
	for (size_t i = 0; i < f->aux.n; i++) {
		put_u64(f, f->aux.items[i]);
		put_u64(f, RECORD_AUXTRACE_SIZE);
	}
}

/* --- tracing data ----------------------------------------------------------------------------- */

/*
 * The feature TRACING_DATA: where the raw data of the samples of tracepoints (util/perf/codec.h)
 * have their fields, in the words in which the kernel describes its own in tracefs. perf reads no
 * sample of a tracepoint without it.
 */

#define FORM      "0.6" /* version of the form */
#define LONG_SIZE 8
#define PAGE_SIZE 4096u

static void put_name(struct perffile *f, const char *name)
{
	put_bytes(f, name, strlen(name) + 1);
}

/* A file of tracefs. */
static void put_tracefs_file(struct perffile *f, const char *text)
{
	put_u64(f, strlen(text));
	put_bytes(f, text, strlen(text));
}

/* A system that has one tracepoint. */
static void put_system(struct perffile *f, const char *name, const char *format)
{
	put_name(f, name);
	put_u32(f, 1);
	put_tracefs_file(f, format);
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

/* Source: the kernel's tools/perf/util/trace-event-info.c, which writes it, and
 * trace-event-read.c. */
static void put_tracing_data(struct perffile *f)
{
	static const uint8_t magic[] = { 0x17, 0x08, 0x44, 't', 'r', 'a', 'c', 'i', 'n', 'g' };
	static const uint8_t order[] = { 0 /* little endian */, LONG_SIZE };

	put_bytes(f, magic, sizeof(magic));
	put_name(f, FORM);
	put_bytes(f, order, sizeof(order));
	put_u32(f, PAGE_SIZE);
	put_name(f, "header_page");
	put_tracefs_file(f, header_page);
	put_name(f, "header_event");
	put_tracefs_file(f, header_event);
	put_u32(f, 0); /* tracepoints of ftrace */
	put_u32(f, 2); /* systems */
	put_system(f, "raw_syscalls", sys_enter);
	put_system(f, "signal", signal_deliver);
	put_u32(f, 0); /* bytes of kallsyms */
	put_u32(f, 0); /* of the texts of printk() */
	put_u64(f, 0); /* of the names of threads */
}

/* --- features --------------------------------------------------------------------------------- */

static void put_feature(struct perffile *f, unsigned feature, const struct perffile_about *about)
{
	switch (feature) {
	case PERFABI_FEATURE_TRACING_DATA:
		return put_tracing_data(f);
	case PERFABI_FEATURE_BUILD_ID:
		return put_build_ids(f, about);
	case PERFABI_FEATURE_HOSTNAME:
		return put_string(f, about->host);
	case PERFABI_FEATURE_OSRELEASE:
		return put_string(f, about->release);
	case PERFABI_FEATURE_VERSION:
		return put_string(f, about->version);
	case PERFABI_FEATURE_ARCH:
		return put_string(f, about->machine);
	case PERFABI_FEATURE_NRCPUS:
		put_u32(f, about->n_cpus);
		return put_u32(f, about->n_cpus);
	case PERFABI_FEATURE_CPUID:
		return put_string(f, about->cpuid);
	case PERFABI_FEATURE_CMDLINE:
		put_u32(f, 1);
		return put_string(f, "ptd");
	case PERFABI_FEATURE_EVENT_DESC:
		return put_event_desc(f);
	case PERFABI_FEATURE_PMU_MAPPINGS:
		put_u32(f, 2);
		put_u32(f, PERF_TYPE_SOFTWARE);
		put_string(f, "software");
		put_u32(f, f->facts->pmu_type);
		return put_string(f, "intel_pt");
	case PERFABI_FEATURE_AUXTRACE:
		return put_aux_index(f);
	case PERFABI_FEATURE_SAMPLE_TIME:
		put_u64(f, about->time_first);
		return put_u64(f, about->time_last);
	}
}

static const uint8_t features[] = {
	/* ascending: the table of their places is read in the order of the bits */
	PERFABI_FEATURE_TRACING_DATA, PERFABI_FEATURE_BUILD_ID,     PERFABI_FEATURE_HOSTNAME,
	PERFABI_FEATURE_OSRELEASE,    PERFABI_FEATURE_VERSION,      PERFABI_FEATURE_ARCH,
	PERFABI_FEATURE_NRCPUS,       PERFABI_FEATURE_CPUID,        PERFABI_FEATURE_CMDLINE,
	PERFABI_FEATURE_EVENT_DESC,   PERFABI_FEATURE_PMU_MAPPINGS, PERFABI_FEATURE_AUXTRACE,
	PERFABI_FEATURE_SAMPLE_TIME,
};

/* Without events there are no tracepoints to describe. */
static bool is_due(const struct perffile *f, unsigned feature)
{
	return feature != PERFABI_FEATURE_TRACING_DATA || f->facts->gives_events;
}

int perffile_finish(struct perffile *file, const struct perffile_about *about)
{
	struct perfabi_header header = {
		.magic = PERFABI_MAGIC,
		.size = sizeof(header),
		.attr_size = ATTR_STRIDE,
		.attrs = { .offset = attrs_offset(file), .size = file->n_attrs * ATTR_STRIDE },
		.data = { .offset = data_offset(file) },
	};
	struct perfabi_section table[ARRAY_LEN(features)];
	size_t n = 0;
	uint8_t round[sizeof(struct perf_event_header)];
	uint64_t end;

	/* One only, at the very end: it promises that nothing older follows. */
	put_bytes(file, round, record_write_finished_round(round, sizeof(round)));
	end = file_offset(file);
	header.data.size = end - data_offset(file);

	for (size_t i = 0; i < ARRAY_LEN(features); i++)
		n += is_due(file, features[i]);
	put_zeros(file, n * sizeof(table[0]));
	n = 0;
	for (size_t i = 0; i < ARRAY_LEN(features); i++) {
		if (!is_due(file, features[i]))
			continue;
		table[n].offset = file_offset(file);
		put_feature(file, features[i], about);
		table[n].size = file_offset(file) - table[n].offset;
		n++;
		header.features[features[i] / 64] |= UINT64_C(1) << features[i] % 64;
	}

	go_to(file, end);
	put_bytes(file, table, n * sizeof(table[0]));
	go_to(file, 0);
	put_bytes(file, &header, sizeof(header));
	if (fflush(file->stream) != 0 && file->error == 0)
		file->error = -errno;
	if (ferror(file->stream) && file->error == 0)
		file->error = -EIO;
	return file->error;
}

struct perffile *perffile_free(struct perffile *file)
{
	if (!file)
		return NULL;

	if (file->stream)
		(void)fclose(file->stream);
	free(file->buffer);
	vec_deinit(&file->aux);
	free(file);
	return NULL;
}
