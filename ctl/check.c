/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "ctl/check.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/printable.h"
#include "util/dirs.h"
#include "util/perfusers.h"
#include "util/textfile.h"

/* The defaults of ptd.conf(5): PT, switches and tasks of each CPU. */
#define AUX_DEFAULT  (UINT64_C(64) << 20)
#define RINGS_OTHERS (UINT64_C(8) << 20)
/* The software source has rings for four CPUs, unless the settings say more. */
#define EMULATED_CPUS 4u

/* Records of mapped files have build-ids since then, and ptd asks for them. */
#define KERNEL_MAJOR 5
#define KERNEL_MINOR 12

#define PMU_TYPE "/sys/bus/event_source/devices/intel_pt/type"

#define EMULATED_REMEDY "use the software source: ptctl record"

/* --- reading ---------------------------------------------------------------------------------- */

static void find_path(const struct check_machine *m, const char *path,
		      char ret_path[static PATH_MAX])
{
	(void)snprintf(ret_path, PATH_MAX, "%s%s", m->root, path);
}

static FILE *open_file(const struct check_machine *m, const char *path)
{
	char full[PATH_MAX];

	find_path(m, path, full);
	return fopen(full, "re");
}

/* Read the first line of a file. Return: whether there is one. */
static bool read_line(const struct check_machine *m, const char *path,
		      char ret_line[static CHECK_TEXT_MAX])
{
	_cleanup_(textfile_closep) FILE *f = open_file(m, path);
	bool good;

	ret_line[0] = '\0';
	good = f && fgets(ret_line, CHECK_TEXT_MAX, f);
	ret_line[strcspn(ret_line, "\n")] = '\0';
	printable_clean(ret_line, strlen(ret_line));
	return good;
}

static long long read_number(const struct check_machine *m, const char *path, long long fallback)
{
	char full[PATH_MAX];

	find_path(m, path, full);
	return textfile_number(full, fallback);
}

/* Return: bytes of the line @name of /proc/meminfo; 0 if it has none. */
static uint64_t read_memory(const struct check_machine *m, const char *name)
{
	char full[PATH_MAX];

	find_path(m, "/proc/meminfo", full);
	return textfile_field(full, name, 10) * 1024;
}

struct cpu {
	char vendor[64], model_name[128];
	unsigned family, model;
	bool has_pt, is_virtual;
};

static bool has_flag(const char *flags, const char *flag)
{
	const size_t n = strlen(flag);

	for (const char *at = flags; (at = strstr(at, flag)); at += n)
		if (at[-1] == ' ' && (at[n] == ' ' || at[n] == '\n' || !at[n]))
			return true;
	return false;
}

/* Read what /proc/cpuinfo says of the first CPU. */
static void read_cpu(const struct check_machine *m, struct cpu *ret_cpu)
{
	_cleanup_(textfile_closep) FILE *f = open_file(m, "/proc/cpuinfo");
	_cleanup_(freep) char *line = NULL;
	size_t size = 0;

	*ret_cpu = (struct cpu){};
	while (f && getline(&line, &size, f) > 1) {
		(void)sscanf(line, "vendor_id : %63s", ret_cpu->vendor);
		(void)sscanf(line, "model name : %127[^\n]", ret_cpu->model_name);
		(void)sscanf(line, "cpu family : %u", &ret_cpu->family);
		(void)sscanf(line, "model : %u", &ret_cpu->model);
		if (strncmp(line, "flags", 5) == 0) {
			ret_cpu->has_pt = has_flag(line, "intel_pt");
			ret_cpu->is_virtual = has_flag(line, "hypervisor");
		}
	}
	printable_clean(ret_cpu->model_name, strlen(ret_cpu->model_name));
}

/* --- rows ------------------------------------------------------------------------------------- */

/* Add a row, with what was found. */
_printf_(5, 6) static struct check_row *add(struct check *c, bool is_emulated, const char *what,
					    enum check_state state, const char *format, ...)
{
	struct check_row *row = &c->rows[c->n_rows++];
	va_list ap;

	*row = (struct check_row){ .is_emulated = is_emulated, .what = what, .state = state };
	va_start(ap, format);
	(void)vsnprintf(row->found, CHECK_TEXT_MAX, format, ap);
	va_end(ap);
	if (state == CHECK_MISSING && is_emulated)
		c->has_emulated = false;
	else if (state == CHECK_MISSING)
		c->has_pt = false;
	return row;
}

/* Say what helps, unless nothing is wrong. */
_printf_(2, 3) static void advise(struct check_row *row, const char *format, ...)
{
	va_list ap;

	if (row->state == CHECK_OK)
		return;
	va_start(ap, format);
	(void)vsnprintf(row->remedy, CHECK_TEXT_MAX, format, ap);
	va_end(ap);
}

/* Return: whether the CPU has PT. */
static bool check_cpu(const struct cpu *cpu, struct check *c)
{
	struct check_row *row = add(c, false, "cpu", cpu->has_pt ? CHECK_OK : CHECK_MISSING, "%s%s",
				    cpu->model_name[0] ? cpu->model_name : "not known",
				    cpu->is_virtual ? ", in a virtual machine" : "");

	if (strcmp(cpu->vendor, "GenuineIntel") != 0)
		advise(row, "only CPUs of Intel have PT: " EMULATED_REMEDY);
	else if (cpu->is_virtual)
		advise(
		    row,
		    "the hypervisor does not show PT: use bare metal; or with KVM of Linux before "
		    "6.12 kvm_intel.pt_mode=1 and QEMU's -cpu host,+intel-pt; or " EMULATED_REMEDY);
	else
		advise(row, "CPUs before Broadwell (2014) have no PT, and firmware can switch "
			    "it off: " EMULATED_REMEDY);
	return cpu->has_pt;
}

/* @type: of the PMU; 0: there is none */
static void check_device(long long type, struct check *c)
{
	struct check_row *row = add(c, false, "kernel's PMU", type > 0 ? CHECK_OK : CHECK_MISSING,
				    type > 0 ? "intel_pt, type %lld" : "no intel_pt", type);

	advise(row, "see \"dmesg | grep -i pt\": firmware or a hypervisor may have "
		    "switched PT on for itself");
}

static void check_kernel(const struct check_machine *m, struct check *c)
{
	unsigned major = 0, minor = 0;
	struct check_row *row;
	bool is_old;

	(void)sscanf(m->release, "%u.%u", &major, &minor);
	is_old = major < KERNEL_MAJOR || (major == KERNEL_MAJOR && minor < KERNEL_MINOR);
	row = add(c, false, "kernel", is_old ? CHECK_MISSING : CHECK_OK, "%s", m->release);
	advise(row, "boot Linux %d.%d or later", KERNEL_MAJOR, KERNEL_MINOR);
}

static void check_paranoid(const struct check_machine *m, struct check *c)
{
	const long long level = read_number(m, "/proc/sys/kernel/perf_event_paranoid", 2);
	struct check_row *row =
	    add(c, false, "perf_event_paranoid", level > 2 ? CHECK_NOTE : CHECK_OK, "%lld", level);

	advise(row, "only root may record: start ptd.service, which lowers it while "
		    "it runs, or sysctl kernel.perf_event_paranoid=2");
}

static void check_lockdown(const struct check_machine *m, struct check *c)
{
	char line[CHECK_TEXT_MAX];
	struct check_row *row;
	bool is_confidential;

	if (!read_line(m, "/sys/kernel/security/lockdown", line))
		return;
	is_confidential = strstr(line, "[confidentiality]") != NULL;
	row = add(c, false, "lockdown", is_confidential ? CHECK_NOTE : CHECK_OK, "%s", line);
	advise(row, "the kernel's code cannot be recorded: keep Trace=user, or boot "
		    "without lockdown=confidentiality");
}

static void check_memlock(const struct check_machine *m, struct check *c)
{
	const uint64_t free_kib =
	    (uint64_t)read_number(m, "/proc/sys/kernel/perf_event_mlock_kb", 516);
	const uint64_t per_cpu =
	    m->memlock == UINT64_MAX ? UINT64_MAX : free_kib * 1024 + m->memlock / m->n_cpus;
	struct check_row *row =
	    add(c, false, "memlock", per_cpu < AUX_DEFAULT ? CHECK_NOTE : CHECK_OK,
		per_cpu == UINT64_MAX ? "no limit" : "you may lock %" PRIu64 " KiB for each CPU",
		per_cpu / 1024);

	advise(row, "your own recordings are so short: join group ptd and use "
		    "ptd.service, or raise ulimit -l");
}

/* Return: the largest AuxSize= with which the rings take a quarter of the memory, in MiB. */
static uint64_t fitting_size(uint64_t memory, uint32_t n_cpus)
{
	uint64_t mib = AUX_DEFAULT >> 20;

	while (mib > 1 && ((mib << 20) + RINGS_OTHERS) * n_cpus > memory / 4)
		mib /= 2;
	return mib;
}

static void check_memory(const struct check_machine *m, struct check *c)
{
	const uint64_t memory = read_memory(m, "MemTotal:"),
		       rings = (AUX_DEFAULT + RINGS_OTHERS) * m->n_cpus;
	const bool is_much = memory > 0 && rings > memory / 4;
	struct check_row *row =
	    add(c, false, "memory", is_much ? CHECK_NOTE : CHECK_OK,
		"rings of %" PRIu32 " CPUs pin %" PRIu64 " MiB of %" PRIu64 " MiB, by default",
		m->n_cpus, rings >> 20, memory >> 20);

	advise(row, "AuxSize=%" PRIu64 "M in /etc/ptd/ptd.conf", fitting_size(memory, m->n_cpus));
}

/* Models of family 6 whose LBR and PT the kernel gives to one program only: Broadwell to Comet
 * Lake. */
static void check_lbr(const struct cpu *cpu, struct check *c)
{
	static const unsigned models[] = { 61, 71, 79, 86, 78, 94, 85, 142, 158, 102, 165, 166 };
	struct check_row *row;

	for (size_t i = 0; i < ARRAY_LEN(models); i++) {
		if (cpu->family != 6 || cpu->model != models[i])
			continue;
		row = add(c, false, "LBR", CHECK_NOTE, "this CPU has either LBR or PT");
		advise(row, "programs that record branches (perf record -b) and ptd exclude "
			    "each other: ptctl pause");
		return;
	}
}

/* --- who has PT ------------------------------------------------------------------------------- */

static void check_users(const struct check_machine *m, uint32_t type, struct check *c)
{
	const enum check_state others = m->is_ptd_there ? CHECK_NOTE : CHECK_MISSING;
	const int r = m->try_pt(type);
	char holders[PERFUSERS_SIZE];
	struct check_row *row;
	int n;

	if (r == 0) {
		(void)add(c, false, "users", CHECK_OK, "no other program has PT");
	} else if (r == -EBUSY && m->is_ptd_there) {
		(void)add(c, false, "users", CHECK_OK, "ptd, which answers");
	} else if (r == -EBUSY) {
		n = perfusers_list(m->root, 0, holders, sizeof(holders));
		row = add(c, false, "users", others, "another program has PT%s%.180s",
			  n > 0 ? ", of these with perf events: " : "", holders);
		advise(row, n > 0 ? "end it, or wait" : "see who it is as root");
	} else {
		row = add(c, false, "users", others, "you may not have PT yourself: %s",
			  strerror(-r));
		advise(row, "start ptd.service, or be root");
	}
}

/* --- the software source ---------------------------------------------------------------------- */

static void check_emulated(const struct check_machine *m, struct check *c)
{
	const uint64_t available = read_memory(m, "MemAvailable:"),
		       rings = (AUX_DEFAULT + RINGS_OTHERS) * EMULATED_CPUS;
	const bool is_little = available > 0 && available < 2 * rings;
	struct check_row *row;

	row = add(c, true, "emulator", m->emulator_error < 0 ? CHECK_MISSING : CHECK_OK,
		  "%.120s%s%s", m->emulator, m->emulator_error < 0 ? ": " : "",
		  m->emulator_error == -ENOTSUP ? "it loads no plugins"
		  : m->emulator_error < 0       ? strerror(-m->emulator_error)
						: "");
	advise(row, "\"make emulator\", or lib/ptd/get-emulator where ptd is installed");

	row = add(c, true, "plugin", m->plugin_error < 0 ? CHECK_MISSING : CHECK_OK, "%.120s%s%s",
		  m->plugin, m->plugin_error < 0 ? ": " : "",
		  m->plugin_error < 0 ? strerror(-m->plugin_error) : "");
	advise(row, "install ptd-emu.so beside ptctl, or into lib/ptd");

	row = add(c, true, "shared memory",
		  m->shared_error < 0 ? CHECK_MISSING
		  : is_little         ? CHECK_NOTE
				      : CHECK_OK,
		  "%" PRIu64 " MiB are available, rings take up to %" PRIu64 " MiB%s%s",
		  available >> 20, rings >> 20, m->shared_error < 0 ? ": " : "",
		  m->shared_error < 0 ? strerror(-m->shared_error) : "");
	advise(row, "%s",
	       m->shared_error < 0 ? "allow memfd_create(2) to this container"
				   : "lower AuxSize=, or end what takes the memory");
}

void check_machine(const struct check_machine *m, struct check *ret_check)
{
	const long long type = read_number(m, PMU_TYPE, 0);
	struct check c = { .has_pt = true, .has_emulated = true };
	struct cpu cpu;

	read_cpu(m, &cpu);
	/* The kernel has a PMU only if there is PT, whatever it is called. */
	cpu.has_pt = cpu.has_pt || type > 0;
	if (check_cpu(&cpu, &c)) {
		check_device(type, &c);
		check_kernel(m, &c);
		check_paranoid(m, &c);
		check_lockdown(m, &c);
		check_memlock(m, &c);
		check_memory(m, &c);
		check_lbr(&cpu, &c);
		if (type > 0)
			check_users(m, (uint32_t)type, &c);
	}
	check_emulated(m, &c);
	*ret_check = c;
}
