/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "util/perf/codec.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "util/perf/tsc.h"

/* The build-id's record says how long the id is. The kernel's header has no name for it. */
#define MISC_BUILD_ID_SIZE (1u << 15)

/* Of perf's names in files. */
#define PATH_ALIGNMENT 64

/* What a record of fixed size is written from: all of its body is @raw. */
static size_t write_fixed(uint32_t type, uint16_t misc, const void *raw, size_t size,
			  const struct trailer *trailer, void *to, size_t room)
{
	struct frame f;

	frame_begin(&f, type, misc, to, room);
	frame_put(&f, raw, size);
	return frame_end(&f, trailer);
}

/* --- mappings --------------------------------------------------------------------------------- */

/* What both begin with. */
struct raw_mmap {
	uint32_t pid, tid;
	uint64_t addr, len, pgoff;
};

/* What MMAP2 has behind it. */
struct raw_mmap2 {
	union {
		struct {
			uint32_t maj, min;
			uint64_t ino, ino_generation;
		};
		struct {
			uint8_t build_id_size, reserved[3];
			uint8_t build_id[BUILDID_MAX];
		};
	};
	uint32_t prot, flags;
};

static_assert(sizeof(struct raw_mmap) == 32, "as the kernel writes it");
static_assert(sizeof(struct raw_mmap2) == 32, "as the kernel writes it");

static void put_mmap(struct frame *f, const struct record_mmap2 *mmap)
{
	const struct raw_mmap raw = {
		.pid = mmap->pid,
		.tid = mmap->tid,
		.addr = mmap->addr,
		.len = mmap->len,
		.pgoff = mmap->pgoff,
	};

	frame_put(f, &raw, sizeof(raw));
}

static void put_name(struct frame *f, const char *name)
{
	const bool fits = strnlen(name, RECORD_NAME_MAX) < RECORD_NAME_MAX;

	frame_put_string(f, fits ? name : "//toolong", 8);
}

size_t record_write_mmap(const struct record_mmap2 *mmap, const struct trailer *trailer, void *to,
			 size_t room)
{
	struct frame f;

	frame_begin(&f, PERF_RECORD_MMAP, mmap->misc, to, room);
	put_mmap(&f, mmap);
	put_name(&f, mmap->name);
	return frame_end(&f, trailer);
}

size_t record_write_mmap2(const struct record_mmap2 *mmap2, const struct trailer *trailer, void *to,
			  size_t room)
{
	const bool has_id = mmap2->build_id.size > 0;
	const uint16_t misc = mmap2->misc & (uint16_t)~PERF_RECORD_MISC_MMAP_BUILD_ID;
	struct raw_mmap2 raw = {
		.maj = mmap2->maj,
		.min = mmap2->min,
		.ino = mmap2->ino,
		.ino_generation = mmap2->ino_generation,
		.prot = mmap2->prot,
		.flags = mmap2->flags,
	};
	struct frame f;

	/* With the flag the device and inode numbers make place for the build-id. */
	if (has_id) {
		raw.ino_generation = 0;
		memset(raw.reserved, 0, sizeof(raw.reserved));
		raw.build_id_size = mmap2->build_id.size;
		memcpy(raw.build_id, mmap2->build_id.bytes, sizeof(raw.build_id));
	}
	frame_begin(&f, PERF_RECORD_MMAP2, misc | (has_id ? PERF_RECORD_MISC_MMAP_BUILD_ID : 0), to,
		    room);
	put_mmap(&f, mmap2);
	frame_put(&f, &raw, sizeof(raw));
	put_name(&f, mmap2->name);
	return frame_end(&f, trailer);
}

static int read_mmap2(struct cursor *body, struct record_mmap2 *mmap)
{
	struct raw_mmap2 raw;

	if (cursor_get(body, sizeof(raw), &raw) < 0)
		return -EBADMSG;
	mmap->prot = raw.prot;
	mmap->flags = raw.flags;
	if (!(mmap->misc & PERF_RECORD_MISC_MMAP_BUILD_ID)) {
		mmap->maj = raw.maj;
		mmap->min = raw.min;
		mmap->ino = raw.ino;
		mmap->ino_generation = raw.ino_generation;
		return 0;
	}
	if (raw.build_id_size > BUILDID_MAX)
		return -EBADMSG;
	mmap->build_id.size = raw.build_id_size;
	memcpy(mmap->build_id.bytes, raw.build_id, raw.build_id_size);
	return 0;
}

int record_read_mmap2(uint32_t type, uint16_t misc, struct cursor body,
		      struct record_mmap2 *ret_mmap2)
{
	struct raw_mmap raw;
	struct record_mmap2 m;

	if ((type != PERF_RECORD_MMAP && type != PERF_RECORD_MMAP2) ||
	    cursor_get(&body, sizeof(raw), &raw) < 0)
		return -EBADMSG;
	m = (struct record_mmap2){
		.misc = misc,
		.pid = raw.pid,
		.tid = raw.tid,
		.addr = raw.addr,
		.len = raw.len,
		.pgoff = raw.pgoff,
	};
	if (type == PERF_RECORD_MMAP2 && read_mmap2(&body, &m) < 0)
		return -EBADMSG;
	if (cursor_get_string(&body, &m.name) < 0)
		return -EBADMSG;
	*ret_mmap2 = m;
	return 0;
}

bool record_maps_code(uint32_t type, const struct record_mmap2 *mmap2)
{
	if (mmap2->pid == UINT32_MAX ||
	    (mmap2->misc & PERF_RECORD_MISC_CPUMODE_MASK) != PERF_RECORD_MISC_USER)
		return false;
	return type == PERF_RECORD_MMAP2 ? mmap2->prot & PROT_EXEC
					 : !(mmap2->misc & PERF_RECORD_MISC_MMAP_DATA);
}

/* --- tasks ------------------------------------------------------------------------------------ */

int record_read_pid(uint32_t type, struct cursor body, uint32_t *ret_pid)
{
	switch (type) {
	case PERF_RECORD_COMM:
	case PERF_RECORD_FORK:
	case PERF_RECORD_EXIT:
	case PERF_RECORD_MMAP:
	case PERF_RECORD_MMAP2:
		/* All begin with it. */
		return cursor_get(&body, sizeof(*ret_pid), ret_pid);
	default:
		return -EBADMSG;
	}
}

struct raw_task {
	uint32_t pid, ppid, tid, ptid;
	uint64_t time;
};

static_assert(sizeof(struct raw_task) == 24, "as the kernel writes it");

size_t record_write_comm(const struct record_comm *comm, const struct trailer *trailer, void *to,
			 size_t room)
{
	const uint32_t ids[2] = { comm->pid, comm->tid };
	struct frame f;

	frame_begin(&f, PERF_RECORD_COMM, comm->exec ? PERF_RECORD_MISC_COMM_EXEC : 0, to, room);
	frame_put(&f, ids, sizeof(ids));
	frame_put_string(&f, comm->comm, 8);
	return frame_end(&f, trailer);
}

int record_read_comm(uint16_t misc, struct cursor body, struct record_comm *ret_comm)
{
	const char *comm = NULL;
	uint32_t ids[2];

	if (cursor_get(&body, sizeof(ids), ids) < 0)
		return -EBADMSG;
	(void)!cursor_get_string(&body, &comm);
	*ret_comm = (struct record_comm){
		.exec = misc & PERF_RECORD_MISC_COMM_EXEC,
		.pid = ids[0],
		.tid = ids[1],
		.comm = comm,
	};
	return 0;
}

/* FORK and EXIT look the same, but for the signal. */
static size_t write_task(uint32_t type, const struct record_task *task,
			 const struct trailer *trailer, void *to, size_t room)
{
	const struct raw_task raw = { task->pid, task->ppid, task->tid, task->ptid, task->time };
	const uint32_t signal[2] = { RECORD_EXIT_SIGNAL, task->signal };
	struct frame f;

	frame_begin(&f, type, 0, to, room);
	frame_put(&f, &raw, sizeof(raw));
	if (task->signal)
		frame_put(&f, signal, sizeof(signal));
	return frame_end(&f, trailer);
}

size_t record_write_fork(const struct record_task *fork, const struct trailer *trailer, void *to,
			 size_t room)
{
	return write_task(PERF_RECORD_FORK, fork, trailer, to, room);
}

size_t record_write_exit(const struct record_task *exit, const struct trailer *trailer, void *to,
			 size_t room)
{
	return write_task(PERF_RECORD_EXIT, exit, trailer, to, room);
}

int record_read_task(struct cursor body, struct record_task *ret_task)
{
	uint32_t signal[2] = {};
	struct raw_task raw;

	if (cursor_get(&body, sizeof(raw), &raw) < 0)
		return -EBADMSG;
	(void)!cursor_get(&body, sizeof(signal), signal);
	*ret_task = (struct record_task){
		.pid = raw.pid,
		.ppid = raw.ppid,
		.tid = raw.tid,
		.ptid = raw.ptid,
		.time = raw.time,
		.signal = signal[0] == RECORD_EXIT_SIGNAL ? signal[1] : 0,
	};
	return 0;
}

/* --- who runs --------------------------------------------------------------------------------- */

static_assert(sizeof(struct record_ids) == 8, "as the kernel writes it");

size_t record_write_itrace_start(const struct record_ids *who, const struct trailer *trailer,
				 void *to, size_t room)
{
	return write_fixed(PERF_RECORD_ITRACE_START, 0, who, sizeof(*who), trailer, to, room);
}

int record_read_itrace_start(struct cursor body, struct record_ids *ret_who)
{
	return cursor_get(&body, sizeof(*ret_who), ret_who);
}

size_t record_write_switch_cpu_wide(const struct record_switch *sw, const struct trailer *trailer,
				    void *to, size_t room)
{
	const uint16_t misc = (sw->out ? PERF_RECORD_MISC_SWITCH_OUT : 0) |
			      (sw->preempt ? PERF_RECORD_MISC_SWITCH_OUT_PREEMPT : 0);

	return write_fixed(PERF_RECORD_SWITCH_CPU_WIDE, misc, &sw->other, sizeof(sw->other),
			   trailer, to, room);
}

int record_read_switch(uint32_t type, uint16_t misc, struct cursor body,
		       struct record_switch *ret_switch)
{
	struct record_switch sw = {
		.out = misc & PERF_RECORD_MISC_SWITCH_OUT,
		/* The bit has this meaning in a record of who leaves only. */
		.preempt = misc & PERF_RECORD_MISC_SWITCH_OUT &&
			   misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT,
	};

	if (type == PERF_RECORD_SWITCH_CPU_WIDE &&
	    cursor_get(&body, sizeof(sw.other), &sw.other) < 0)
		return -EBADMSG;
	*ret_switch = sw;
	return 0;
}

/* --- samples of tracepoints ------------------------------------------------------------------- */

/* What stands before the raw data, by RECORD_SAMPLE_TYPE. */
struct raw_sample {
	uint64_t id, ip;
	uint32_t pid, tid;
	uint64_t time;
	uint32_t cpu, reserved;
};

static_assert(sizeof(struct raw_sample) == 40, "as the kernel writes it");
static_assert(sizeof(struct record_raw_sys_enter) == 16, "as TRACING_DATA says");
static_assert(sizeof(struct record_raw_signal) == 24, "as TRACING_DATA says");

static struct record_raw_common common_of(uint16_t type, const struct trailer *who)
{
	return (struct record_raw_common){ .type = type, .pid = (int32_t)who->tid };
}

static size_t write_sample(uint64_t id, const void *raw, uint32_t raw_size,
			   const struct trailer *who, void *to, size_t room)
{
	const struct raw_sample sample = {
		.id = id, .pid = who->pid, .tid = who->tid, .time = who->time, .cpu = who->cpu
	};
	const uint32_t zero = 0, size = raw_size + sizeof(zero); /* the end is a multiple of 8 */
	struct frame f;

	frame_begin(&f, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER, to, room);
	frame_put(&f, &sample, sizeof(sample));
	frame_put(&f, &size, sizeof(size));
	frame_put(&f, raw, raw_size);
	frame_put(&f, &zero, sizeof(zero));
	return frame_end(&f, NULL);
}

size_t record_write_sys_enter(uint32_t number, const struct trailer *who, void *to, size_t room)
{
	const struct record_raw_sys_enter raw = {
		.common = common_of(RECORD_TRACEPOINT_SYS_ENTER, who),
		.id = number,
	};

	return write_sample(RECORD_ID_SYS_ENTER, &raw, sizeof(raw), who, to, room);
}

size_t record_write_signal_deliver(uint32_t signal, uint64_t handler, const struct trailer *who,
				   void *to, size_t room)
{
	const struct record_raw_signal raw = {
		.common = common_of(RECORD_TRACEPOINT_SIGNAL, who),
		.sig = (int32_t)signal,
		.handler = handler,
	};

	return write_sample(RECORD_ID_SIGNAL, &raw, sizeof(raw), who, to, room);
}

/* --- the AUX ring, and what is lost ----------------------------------------------------------- */

static_assert(sizeof(struct record_aux) == 24, "as the kernel writes it");
static_assert(sizeof(struct record_lost) == 16, "as the kernel writes it");

int record_read_aux(struct cursor body, struct record_aux *ret_aux)
{
	return cursor_get(&body, sizeof(*ret_aux), ret_aux);
}

size_t record_write_lost(const struct record_lost *lost, const struct trailer *trailer, void *to,
			 size_t room)
{
	return write_fixed(PERF_RECORD_LOST, 0, lost, sizeof(*lost), trailer, to, room);
}

int record_read_lost(struct cursor body, struct record_lost *ret_lost)
{
	return cursor_get(&body, sizeof(*ret_lost), ret_lost);
}

int record_read_lost_samples(struct cursor body, uint64_t *ret_lost)
{
	return cursor_get(&body, sizeof(*ret_lost), ret_lost);
}

/* --- the kernel's code ------------------------------------------------------------------------ */

struct raw_ksymbol {
	uint64_t addr;
	uint32_t len;
	uint16_t ksym_type, flags;
};

struct raw_bpf_event {
	uint16_t type, flags;
	uint32_t id;
	uint64_t tag;
};

struct raw_text_poke {
	uint64_t addr;
	uint16_t old_len, new_len;
} __attribute__((__packed__));

static_assert(sizeof(struct raw_ksymbol) == 16, "as the kernel writes it");
static_assert(sizeof(struct raw_bpf_event) == 16, "as the kernel writes it");
static_assert(sizeof(struct raw_text_poke) == 12, "as the kernel writes it");

int record_read_ksymbol(struct cursor body, struct record_ksymbol *ret_ksymbol)
{
	struct raw_ksymbol raw;
	const char *name;

	if (cursor_get(&body, sizeof(raw), &raw) < 0 || cursor_get_string(&body, &name) < 0)
		return -EBADMSG;
	*ret_ksymbol = (struct record_ksymbol){ raw.addr, raw.len, raw.ksym_type, raw.flags, name };
	return 0;
}

int record_read_bpf_event(struct cursor body, struct record_bpf_event *ret_bpf)
{
	struct raw_bpf_event raw;

	if (cursor_get(&body, sizeof(raw), &raw) < 0)
		return -EBADMSG;
	*ret_bpf = (struct record_bpf_event){ raw.type, raw.flags, raw.id, raw.tag };
	return 0;
}

int record_read_text_poke(struct cursor body, struct record_text_poke *ret_poke)
{
	struct raw_text_poke raw;
	struct cursor old, new;

	if (cursor_get(&body, sizeof(raw), &raw) < 0 ||
	    cursor_get_sub(&body, raw.old_len, &old) < 0 ||
	    cursor_get_sub(&body, raw.new_len, &new) < 0)
		return -EBADMSG;
	*ret_poke = (struct record_text_poke){
		.addr = raw.addr,
		.old_len = raw.old_len,
		.new_len = raw.new_len,
		.old_bytes = old.pos,
		.new_bytes = new.pos,
	};
	return 0;
}

/* --- the records that perf adds --------------------------------------------------------------- */

struct raw_build_id {
	int32_t pid;
	uint8_t id[BUILDID_MAX];
	uint8_t size, reserved[3];
};

struct raw_auxtrace {
	uint64_t size, offset, reference;
	uint32_t idx;
	int32_t tid, cpu;
	uint32_t reserved;
};

struct raw_auxtrace_info {
	uint32_t type, reserved;
};

struct raw_time_conv {
	uint64_t time_shift, time_mult, time_zero;
	/* newer kernels: */
	uint64_t time_cycles, time_mask;
	uint8_t cap_user_time_zero, cap_user_time_short;
	uint8_t reserved[6];
};

static_assert(sizeof(struct raw_build_id) == 28, "as perf writes it");
static_assert(sizeof(struct raw_auxtrace) == 40, "as perf writes it");
static_assert(sizeof(struct raw_time_conv) == 48, "as perf writes it");

size_t record_write_build_id(const struct record_build_id *build_id, void *to, size_t room)
{
	struct raw_build_id raw = { .pid = build_id->pid, .size = build_id->build_id.size };
	struct frame f;

	memcpy(raw.id, build_id->build_id.bytes, build_id->build_id.size);
	frame_begin(&f, PERFABI_HEADER_BUILD_ID, build_id->cpumode | MISC_BUILD_ID_SIZE, to, room);
	frame_put(&f, &raw, sizeof(raw));
	frame_put_string(&f, build_id->path, PATH_ALIGNMENT);
	return frame_end(&f, NULL);
}

int record_read_build_id(uint16_t misc, struct cursor body, struct record_build_id *ret_build_id)
{
	struct record_build_id b = { .cpumode = misc & PERF_RECORD_MISC_CPUMODE_MASK };
	struct raw_build_id raw;

	if (cursor_get(&body, sizeof(raw), &raw) < 0 || cursor_get_string(&body, &b.path) < 0)
		return -EBADMSG;
	b.pid = raw.pid;
	b.build_id.size = misc & MISC_BUILD_ID_SIZE ? raw.size : BUILDID_MAX;
	if (b.build_id.size > BUILDID_MAX)
		return -EBADMSG;
	memcpy(b.build_id.bytes, raw.id, BUILDID_MAX);
	*ret_build_id = b;
	return 0;
}

size_t record_write_auxtrace(const struct record_auxtrace *auxtrace, void *to, size_t room)
{
	const struct raw_auxtrace raw = {
		.size = auxtrace->size,
		.offset = auxtrace->offset,
		.reference = auxtrace->reference,
		.idx = auxtrace->idx,
		.tid = auxtrace->tid,
		.cpu = auxtrace->cpu,
	};

	return write_fixed(PERFABI_AUXTRACE, 0, &raw, sizeof(raw), NULL, to, room);
}

int record_read_auxtrace(struct cursor body, struct record_auxtrace *ret_auxtrace)
{
	struct raw_auxtrace raw;

	if (cursor_get(&body, sizeof(raw), &raw) < 0)
		return -EBADMSG;
	*ret_auxtrace = (struct record_auxtrace){ raw.size, raw.offset, raw.reference,
						  raw.idx,  raw.tid,    raw.cpu };
	return 0;
}

size_t record_write_auxtrace_info(const struct record_auxtrace_info *info, void *to, size_t room)
{
	const struct raw_auxtrace_info raw = { .type = info->type };
	const size_t filter = info->filter ? info->slots[PERFABI_PT_FILTER_STR_LEN] : 0;
	static const uint8_t zeros[8];
	struct frame f;

	frame_begin(&f, PERFABI_AUXTRACE_INFO, 0, to, room);
	frame_put(&f, &raw, sizeof(raw));
	frame_put(&f, info->slots, sizeof(info->slots));
	/* perf pads it so that there is a NUL behind it. */
	frame_put(&f, info->filter, filter);
	frame_put(&f, zeros, filter ? 8 - filter % 8 : 0);
	frame_put(&f, info->more, info->n_more * sizeof(*info->more));
	return frame_end(&f, NULL);
}

int record_read_auxtrace_info(struct cursor body, struct record_auxtrace_info *ret_info)
{
	struct record_auxtrace_info info = {};
	struct raw_auxtrace_info raw;

	if (cursor_get(&body, sizeof(raw), &raw) < 0)
		return -EBADMSG;
	info.type = raw.type;
	for (size_t i = 0; i < _PERFABI_PT_SLOTS_FIXED; i++)
		if (cursor_get(&body, sizeof(info.slots[i]), &info.slots[i]) < 0)
			break;
	if (info.slots[PERFABI_PT_FILTER_STR_LEN] <= cursor_left(&body))
		info.filter = (const char *)body.pos;
	*ret_info = info;
	return 0;
}

size_t record_write_time_conv(const struct tsc_conv *conv, void *to, size_t room)
{
	const struct raw_time_conv raw = {
		.time_shift = conv->shift,
		.time_mult = conv->mult,
		.time_zero = conv->zero,
		.cap_user_time_zero = conv->valid,
	};

	return write_fixed(PERFABI_TIME_CONV, 0, &raw, sizeof(raw), NULL, to, room);
}

size_t record_write_id_index(const struct record_id_index_entry *entries, size_t n, void *to,
			     size_t room)
{
	const uint64_t count = n;
	struct frame f;

	frame_begin(&f, PERFABI_ID_INDEX, 0, to, room);
	frame_put(&f, &count, sizeof(count));
	frame_put(&f, entries, n * sizeof(*entries));
	return frame_end(&f, NULL);
}

int record_read_id_index(struct cursor body, struct cursor *ret_entries,
			 struct cursor *ret_machines)
{
	struct cursor entries, machines = {};
	uint64_t n;

	if (cursor_get(&body, sizeof(n), &n) < 0 ||
	    n > cursor_left(&body) / sizeof(struct record_id_index_entry) ||
	    cursor_get_sub(&body, n * sizeof(struct record_id_index_entry), &entries) < 0)
		return -EBADMSG;
	if (n > 0 && n <= cursor_left(&body) / sizeof(struct record_id_index_machine) &&
	    cursor_get_sub(&body, n * sizeof(struct record_id_index_machine), &machines) < 0)
		return -EBADMSG;
	*ret_entries = entries;
	*ret_machines = machines;
	return 0;
}

size_t record_write_finished_round(void *to, size_t room)
{
	return write_fixed(PERFABI_FINISHED_ROUND, 0, NULL, 0, NULL, to, room);
}

/* --- frame ------------------------------------------------------------------------------------ */

void frame_put(struct frame *frame, const void *bytes, size_t size)
{
	if (size > 0 && frame->size <= frame->room && size <= frame->room - frame->size)
		memcpy(frame->bytes + frame->size, bytes, size);
	frame->size += size;
}

void frame_begin(struct frame *frame, uint32_t type, uint16_t misc, void *to, size_t room)
{
	const struct perf_event_header header = { .type = type, .misc = misc };

	*frame = (struct frame){ .bytes = to, .room = room };
	frame_put(frame, &header, sizeof(header));
}

static void put_zeros(struct frame *frame, size_t n)
{
	static const uint8_t zero;

	while (n-- > 0)
		frame_put(frame, &zero, sizeof(zero));
}

void frame_put_string(struct frame *frame, const char *string, size_t alignment)
{
	const size_t size = strlen(string) + 1;

	frame_put(frame, string, size);
	put_zeros(frame, -size % alignment);
}

size_t frame_end(struct frame *frame, const struct trailer *trailer)
{
	uint8_t bytes[TRAILER_SIZE];
	uint16_t size;

	if (trailer) {
		put_zeros(frame, -frame->size % 8);
		trailer_write(trailer, bytes);
		frame_put(frame, bytes, sizeof(bytes));
	}
	if (frame->size > frame->room || frame->size > UINT16_MAX)
		return 0;
	size = (uint16_t)frame->size;
	memcpy(frame->bytes + offsetof(struct perf_event_header, size), &size, sizeof(size));
	return size;
}
