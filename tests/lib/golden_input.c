/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "tests/lib/golden_input.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "ptd/snapshot.h"
#include "tests/lib/perfbpf.h"
#include "tests/lib/perfbuild.h"
#include "tests/lib/perfsched.h"
#include "util/sha256.h"

#define PAGE 4096

static int complain(int error, const char *what)
{
	fprintf(stderr, "%s: %s\n", what, strerror(-error));
	return error;
}

static int write_file(const char *path, const void *bytes, size_t size)
{
	FILE *f = fopen(path, "we");
	int r = 0;

	if (!f)
		return complain(-errno, path);
	if (fwrite(bytes, 1, size, f) != size)
		r = -EIO;
	if (fclose(f) != 0)
		r = -EIO;
	return r < 0 ? complain(r, path) : 0;
}

static int read_build_id(const char *text, struct buildid *id)
{
	unsigned byte;
	int n;

	for (text += strspn(text, " "); *text; text += n) {
		if (id->size == sizeof(id->bytes) || sscanf(text, "%2x%n", &byte, &n) != 1)
			return -EINVAL;
		id->bytes[id->size++] = (uint8_t)byte;
	}
	return 0;
}

static int put_mmap(struct perfbuild *b, const char *dir, bool is_old, const char *text,
		    uint32_t pid, uint32_t tid)
{
	char name[32], path[512];
	struct record_mmap2 mmap = {
		.misc = PERF_RECORD_MISC_USER,
		.pid = pid,
		.tid = tid,
		.prot = PROT_READ | PROT_EXEC,
		.flags = MAP_PRIVATE,
		.name = path,
	};
	int n;

	if (sscanf(text, "%" SCNx64 " %" SCNx64 " %" SCNx64 " %31s%n", &mmap.addr, &mmap.len,
		   &mmap.pgoff, name, &n) != 4 ||
	    read_build_id(text + n, &mmap.build_id) < 0)
		return -EINVAL;
	(void)snprintf(path, sizeof(path), "%s/%s", dir, name);
	perfbuild_mapping(b, is_old ? PERF_RECORD_MMAP : PERF_RECORD_MMAP2, &mmap);
	return 0;
}

static int put_aux(struct perfbuild *b, const char *text)
{
	uint64_t payload[3];

	if (sscanf(text, "%" SCNx64 " %" SCNx64 " %" SCNx64, &payload[0], &payload[1],
		   &payload[2]) != 3)
		return -EINVAL;
	perfbuild_aux(b, payload[0], payload[1], payload[2]);
	return 0;
}

static int put_kernel(struct perfbuild *b, const char *text)
{
	char name[64];
	struct record_mmap2 mmap = { .misc = PERF_RECORD_MISC_KERNEL,
				     .pid = UINT32_MAX,
				     .name = name };

	if (sscanf(text, "%" SCNx64 " %" SCNx64 " %" SCNx64 " %63s", &mmap.addr, &mmap.len,
		   &mmap.pgoff, name) != 4)
		return -EINVAL;
	perfbuild_mapping(b, PERF_RECORD_MMAP, &mmap);
	return 0;
}

static int put_ksymbol(struct perfbuild *b, bool ends, const char *text)
{
	char type[4], name[64];
	struct record_ksymbol ksymbol = { .flags = ends, .name = name };

	if (sscanf(text, "%" SCNx64 " %" SCNx32 " %3s %63s", &ksymbol.addr, &ksymbol.len, type,
		   name) != 4)
		return -EINVAL;
	ksymbol.ksym_type =
	    strcmp(type, "bpf") == 0 ? PERF_RECORD_KSYMBOL_TYPE_BPF : PERF_RECORD_KSYMBOL_TYPE_OOL;
	perfbuild_ksymbol(b, &ksymbol);
	return 0;
}

/* Bytes in hexadecimal, none between; or a dash. Return: how many; or -EINVAL. */
static int read_hex(const char *text, uint8_t bytes[static 64])
{
	int n = 0;

	if (strcmp(text, "-") == 0)
		return 0;
	for (; *text && n < 64; text += 2, n++)
		if (strlen(text) < 2 || sscanf(text, "%2" SCNx8, &bytes[n]) != 1)
			return -EINVAL;
	return *text ? -EINVAL : n;
}

static int put_poke(struct perfbuild *b, const char *text)
{
	char old_text[132], new_text[132];
	uint8_t old[64], new[64];
	struct record_text_poke poke = { .old_bytes = old, .new_bytes = new };
	int n_old, n_new;

	if (sscanf(text, "%" SCNx64 " %131s %131s", &poke.addr, old_text, new_text) != 3)
		return -EINVAL;
	n_old = read_hex(old_text, old);
	n_new = read_hex(new_text, new);
	if (n_old < 0 || n_new < 0)
		return -EINVAL;
	poke.old_len = (uint16_t)n_old;
	poke.new_len = (uint16_t)n_new;
	perfbuild_text_poke(b, &poke);
	return 0;
}

static int put_any(struct perfbuild *b, const char *text)
{
	uint64_t payload[20];
	size_t n_words = 0;
	uint16_t misc = 0;
	uint32_t type;
	char string[64];
	bool has_string;
	int n;

	if (sscanf(text, "%" SCNu32 "%n/%" SCNx16 "%n", &type, &n, &misc, &n) < 1)
		return -EINVAL;
	for (text += n; n_words < ARRAY_LEN(payload); text += n, n_words++)
		if (sscanf(text, " %" SCNx64 "%n", &payload[n_words], &n) != 1)
			break;
	has_string = sscanf(text, " \"%63[^\"]\"%n", string, &n) == 1;
	text += has_string ? n : 0;
	if (text[strspn(text, " \t")])
		return -EINVAL;
	perfbuild_record(b, type, misc, payload, n_words * sizeof(*payload),
			 has_string ? string : NULL);
	return 0;
}

static int put_lost(struct perfbuild *b, bool samples, const char *text)
{
	uint64_t n;

	if (sscanf(text, "%" SCNu64, &n) != 1)
		return -EINVAL;
	if (samples)
		perfbuild_lost_samples(b, n);
	else
		perfbuild_lost(b, n);
	return 0;
}

static int put_switch(struct perfbuild *b, bool out, const char *text)
{
	uint32_t pid = 0, tid = 0;

	if (*text && sscanf(text, "%" SCNu32 "/%" SCNu32, &pid, &tid) != 2)
		return -EINVAL;
	perfbuild_switch_wide(b, out, pid, tid);
	return 0;
}

static int put_sched(struct perfbuild *b, const char *text, uint32_t tid)
{
	uint32_t next, prev = tid;

	if (sscanf(text, "%" SCNu32 " %" SCNu32, &next, &prev) < 1)
		return -EINVAL;
	perfsched_sample(b, prev, next);
	return 0;
}

static int put_fork(struct perfbuild *b, const char *text, uint32_t ppid, uint32_t ptid)
{
	uint32_t pid, tid;

	if (sscanf(text, "%" SCNu32 "/%" SCNu32, &pid, &tid) != 2)
		return -EINVAL;
	perfbuild_fork(b, pid, ppid, tid, ptid);
	return 0;
}

static int put_record(struct perfbuild *b, const char *dir, const char *line)
{
	uint32_t cpu, pid, tid;
	char what[16];
	uint64_t time;
	int n = 0;

	if (sscanf(line, "@%" SCNu64 " %" SCNu32 " %" SCNu32 "/%" SCNu32 " %15s %n", &time, &cpu,
		   &pid, &tid, what, &n) < 5)
		return -EINVAL;
	line += n;
	perfbuild_at(b, time, cpu, pid, tid);
	if (strcmp(what, "comm") == 0 || strcmp(what, "exec") == 0)
		perfbuild_comm(b, what[0] == 'e', pid, tid, line);
	else if (strcmp(what, "exit") == 0)
		perfbuild_exit(b, pid, tid);
	else if (strcmp(what, "itrace") == 0)
		perfbuild_itrace(b, pid, tid);
	else if (strcmp(what, "fork") == 0)
		return put_fork(b, line, pid, tid);
	else if (strcmp(what, "mmap") == 0 || strcmp(what, "mmap1") == 0)
		return put_mmap(b, dir, what[4], line, pid, tid);
	else if (strcmp(what, "kernel") == 0)
		return put_kernel(b, line);
	else if (strcmp(what, "ksymbol") == 0 || strcmp(what, "unksymbol") == 0)
		return put_ksymbol(b, what[0] == 'u', line);
	else if (strcmp(what, "poke") == 0)
		return put_poke(b, line);
	else if (strcmp(what, "in") == 0 || strcmp(what, "out") == 0)
		return put_switch(b, what[0] == 'o', line);
	else if (strcmp(what, "enter") == 0 || strcmp(what, "leave") == 0)
		perfbuild_switch(b, what[0] == 'l');
	else if (strcmp(what, "sched") == 0)
		return put_sched(b, line, tid);
	else if (strcmp(what, "aux") == 0)
		return put_aux(b, line);
	else if (strcmp(what, "record") == 0)
		return put_any(b, line);
	else if (strcmp(what, "lost") == 0 || strcmp(what, "lost_samples") == 0)
		return put_lost(b, what[4], line);
	else
		return -EINVAL;
	return 0;
}

static void set_slot(struct perfbuild *b, enum perfabi_pt_slot slot, uint64_t value)
{
	memcpy(b->bytes + PERFBUILD_SLOTS + 8 * slot, &value, sizeof(value));
}

/* A TSC tick is a nanosecond. */
static void set_slots(struct perfbuild *b, const struct golden *g)
{
	set_slot(b, PERFABI_PT_TIME_SHIFT, 0);
	set_slot(b, PERFABI_PT_TIME_MULT, g->timeless ? 0 : 1);
	set_slot(b, PERFABI_PT_TIME_ZERO, 0);
	set_slot(b, PERFABI_PT_CAP_USER_TIME_ZERO, !g->timeless);
	if (g->timeless)
		set_slot(b, PERFABI_PT_TSC_BIT, 0);
	/* Which thread it is needs no switches in a thread's buffer; without time perf asks for
	 * none. */
	if (g->threads || g->timeless)
		set_slot(b, PERFABI_PT_HAVE_SCHED_SWITCH, 0);
	else if (g->own)
		set_slot(b, PERFABI_PT_HAVE_SCHED_SWITCH, 2);
	set_slot(b, PERFABI_PT_SNAPSHOT_MODE, g->snapshot);
	set_slot(b, PERFABI_PT_PER_CPU_MMAPS, !g->threads);
	if (g->nom_freq == 0)
		return;
	set_slot(b, PERFABI_PT_TSC_CTC_N, g->cpuid_15_ebx);
	set_slot(b, PERFABI_PT_TSC_CTC_D, g->cpuid_15_eax);
	set_slot(b, PERFABI_PT_MAX_NONTURBO_RATIO, g->nom_freq);
}

/* What the PT event was configured for, as far as the case says it. */
static uint64_t config_of(const struct golden *g)
{
	uint64_t config = PERFBUILD_CONFIG | (g->events ? PERFABI_PT_EVENT_BIT : 0);

	if (g->nom_freq == 0)
		return config;
	config &= ~(PERFBUILD_MTC_FREQ_BITS | PERFBUILD_MTC_BIT | PERFBUILD_CYC_BIT);
	return config | (g->has_cyc ? PERFBUILD_CYC_BIT : 0) |
	       (g->has_mtc ? PERFBUILD_MTC_BIT | (uint64_t)g->mtc_freq << PERFBUILD_MTC_FREQ_SHIFT
			   : 0);
}

static void set_attrs(struct perfbuild *b, const struct golden *g)
{
	struct perf_event_attr attr;

	memcpy(&attr, b->bytes + PERFBUILD_ATTR, PERF_ATTR_SIZE_VER5);
	attr.config = config_of(g);
	memcpy(b->bytes + PERFBUILD_ATTR, &attr, PERF_ATTR_SIZE_VER5);
	memcpy(&attr, b->bytes + PERFBUILD_ATTR1, PERF_ATTR_SIZE_VER5);
	attr.context_switch = !g->threads && !g->timeless;
	memcpy(b->bytes + PERFBUILD_ATTR1, &attr, PERF_ATTR_SIZE_VER5);
}

static bool same_buffer(const struct golden_piece *a, const struct golden_piece *b)
{
	return a->cpu == b->cpu && a->tid == b->tid;
}

static void put_pt(struct perfbuild *b, const struct golden *g)
{
	for (size_t i = 0; i < g->n_pt; i++) {
		const struct golden_piece *p = &g->pt[i];
		uint32_t idx = 0;

		while (!same_buffer(p, &g->pt[idx]))
			idx++;
		perfbuild_auxtrace(b, idx, p->cpu, p->tid, p->offset, p->bytes, p->size);
	}
}

static void put_programs(struct perfbuild *b, const struct golden *g, struct perfbpf *section)
{
	perfbpf_begin(section);
	for (size_t i = 0; i < g->n_bpf; i++) {
		const struct golden_piece *p = &g->bpf[i];

		perfbpf_add(section, p->id, p->tag,
			    &(struct perfbpf_function){ p->address, p->bytes, (uint32_t)p->size },
			    1);
	}
	if (g->n_bpf > 0)
		perfbpf_end(b, section);
}

/* Return: the filter, in which files have paths; the caller frees it. */
static char *make_filter(const char *filter, const char *dir)
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	if (!f)
		return NULL;
	for (; *filter; filter++) {
		fputc(*filter, f);
		if (*filter == '@')
			fprintf(f, "%s/", dir);
	}
	fclose(f);
	return text;
}

static int put_filter(struct perfbuild *b, const struct golden *g, const char *dir)
{
	_cleanup_(freep) char *text = NULL;

	if (!g->filter)
		return 0;
	text = make_filter(g->filter, dir);
	if (!text)
		return -ENOMEM;
	perfbuild_filter(b, text);
	return 0;
}

/* Name the first CPU of the case; or none, where it is to be known by the options alone. */
static void set_cpu(struct perfbuild *b, const struct golden *g)
{
	static const char vendor[] = "GenuineIntel";
	char *at = memmem(b->bytes, b->size, vendor, strlen(vendor));
	char text[32] = "unknown";

	if (g->is_known)
		(void)snprintf(text, sizeof(text), "%s,%u,%u,4", vendor, g->cpus[0].family,
			       g->cpus[0].model);
	if (at && strlen(text) <= strlen(at))
		strcpy(at, text);
}

static int write_perfdata(const struct golden *g, const char *dir, const char *path)
{
	_cleanup_(freep) struct perfbuild *b = malloc(sizeof(*b));
	_cleanup_(freep) char *lines = strdup(g->records);
	_cleanup_(freep) struct perfbpf *programs = malloc(sizeof(*programs));
	uint8_t formats[4096];

	if (!b || !lines || !programs)
		return -ENOMEM;
	perfbuild_begin(b, false);
	if (put_filter(b, g, dir) < 0)
		return -ENOMEM;
	set_slots(b, g);
	set_attrs(b, g);
	if (strstr(lines, " sched "))
		perfsched_begin(b, formats, perfsched_formats(formats));
	if (strstr(lines, " sched ") && !strstr(lines, " in "))
		set_slot(b, PERFABI_PT_HAVE_SCHED_SWITCH, 1);
	for (char *rest, *line = strtok_r(lines, "\n", &rest); line;
	     line = strtok_r(NULL, "\n", &rest))
		if (put_record(b, dir, line) < 0)
			return complain(-EINVAL, line);
	put_pt(b, g);
	put_programs(b, g, programs);
	perfbuild_end(b);
	if (g->n_cpus > 0)
		set_cpu(b, g);
	return write_file(path, b->bytes, b->size);
}

static int write_code(const struct golden *g, const char *dir, struct golden_input *input)
{
	for (size_t i = 0; i < g->n_code; i++) {
		char *path = input->code_paths[i];
		int r;

		(void)snprintf(path, sizeof(input->code_paths[i]), "%s/%s", dir, g->code[i].name);
		r = write_file(path, g->code[i].bytes, g->code[i].size);
		if (r < 0)
			return r;
		input->code[i] = (struct ptd_raw_code){ .path = path,
							.size = g->code[i].size,
							.address = g->code[i].address };
	}
	return 0;
}

static int hash_file(const char *path, char ret_hex[static SHA256_HEX_SIZE])
{
	_cleanup_(fd_closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
	uint64_t size;

	return fd < 0 ? complain(-errno, path) : sha256_fd(fd, NULL, NULL, ret_hex, &size);
}

/* Of a snapshot, whose directory @path is: its manifest, and the sums. */
static int write_manifest(const struct golden *g, const char *path)
{
	static const char *const names[] = { PTD_SNAPSHOT_DATA, PTD_SNAPSHOT_MANIFEST,
					     PTD_SNAPSHOT_SUMS };
	char files[3][512], text[1024];
	size_t n = 0;
	int r;

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		(void)snprintf(files[i], sizeof(files[i]), "%s/%s", path, names[i]);
	(void)snprintf(text, sizeof(text), PTD_MANIFEST_FORMAT "=" PTD_SNAPSHOT_FORMAT "\n%s",
		       g->manifest);
	r = write_file(files[1], text, strlen(text));
	for (size_t i = 0; i < 2 && r == 0; i++) {
		char hex[SHA256_HEX_SIZE];

		r = hash_file(files[i], hex);
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s  %s\n", hex, names[i]);
	}
	return r < 0 ? r : write_file(files[2], text, n);
}

/* The pieces, each in pages of its own. */
static int write_memory(const struct golden *g, const char *path)
{
	static uint8_t bytes[(2 * GOLDEN_PIECES_MAX + 1) * PAGE];
	const Elf64_Ehdr header = {
		.e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
			     EV_CURRENT },
		.e_type = ET_CORE,
		.e_machine = EM_X86_64,
		.e_version = EV_CURRENT,
		.e_phoff = sizeof(header),
		.e_ehsize = sizeof(header),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = (uint16_t)g->n_kcore,
	};
	size_t end = PAGE;

	memset(bytes, 0, sizeof(bytes));
	memcpy(bytes, &header, sizeof(header));
	for (size_t i = 0; i < g->n_kcore; i++) {
		const struct golden_piece *p = &g->kcore[i];
		const size_t size = (p->size + PAGE - 1) & ~(size_t)(PAGE - 1);
		const Elf64_Phdr segment = {
			.p_type = PT_LOAD,
			.p_flags = PF_R | PF_W | PF_X,
			.p_offset = end,
			.p_vaddr = p->address,
			.p_filesz = size,
			.p_memsz = size,
		};

		memcpy(bytes + sizeof(header) + i * sizeof(segment), &segment, sizeof(segment));
		memcpy(bytes + end, p->bytes, p->size);
		end += size;
	}
	return write_file(path, bytes, end);
}

/* As perf record --kcore does it. */
static int write_kernel(const struct golden *g, const char *dir)
{
	const char *names = g->kallsyms ?: "";
	char path[512];
	int r;

	(void)snprintf(path, sizeof(path), "%s/kcore_dir", dir);
	if (mkdir(path, 0777) < 0)
		return complain(-errno, path);
	(void)snprintf(path, sizeof(path), "%s/kcore_dir/kallsyms", dir);
	r = write_file(path, names, strlen(names));
	(void)snprintf(path, sizeof(path), "%s/kcore_dir/modules", dir);
	if (r == 0)
		r = write_file(path, "", 0);
	(void)snprintf(path, sizeof(path), "%s/kcore_dir/kcore", dir);
	return r < 0 ? r : write_memory(g, path);
}

static int write_directory(const struct golden *g, const char *dir, const char *path)
{
	char data[512];
	int r;

	(void)snprintf(data, sizeof(data), "%s/" PTD_SNAPSHOT_DATA, path);
	if (mkdir(path, 0777) < 0)
		return complain(-errno, path);
	r = write_perfdata(g, dir, data);
	if (r == 0 && g->manifest)
		r = write_manifest(g, path);
	if (r == 0 && g->n_kcore > 0)
		r = write_kernel(g, path);
	return r;
}

int golden_input_write(const struct golden *g, const char *dir, struct golden_input *ret_input)
{
	int r;

	*ret_input = (struct golden_input){ .options = {
						.size = sizeof(struct ptd_options),
						.all_processes = g->all,
						.mtc_freq = g->mtc_freq,
						.nom_freq = g->nom_freq,
						.cpuid_15_eax = g->cpuid_15_eax,
						.cpuid_15_ebx = g->cpuid_15_ebx,
					    } };
	r = write_code(g, dir, ret_input);
	if (r < 0)
		return r;

	(void)snprintf(ret_input->path, sizeof(ret_input->path), "%s/input", dir);
	ret_input->data = "input";
	if (g->records) {
		ret_input->options.input = ret_input->path;
		if (g->manifest || g->n_kcore > 0) {
			ret_input->data = "input/" PTD_SNAPSHOT_DATA;
			return write_directory(g, dir, ret_input->path);
		}
		return write_perfdata(g, dir, ret_input->path);
	}
	ret_input->options.raw_pt = ret_input->path;
	if (g->filter) {
		if (strlen(g->filter) >= sizeof(ret_input->filter))
			return -ENAMETOOLONG;
		strcpy(ret_input->filter, g->filter);
		ret_input->options.raw_filter = ret_input->filter;
	}
	ret_input->options.raw_code = ret_input->code;
	ret_input->options.n_raw_code = g->n_code;
	return write_file(ret_input->path, g->pt[0].bytes, g->pt[0].size);
}
