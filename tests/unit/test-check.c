/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * ptctl check: each row is a machine that can record in both ways, but for what the row changes,
 * and the line that must follow.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "ctl/check.h"
#include "tests/lib/tempdir.h"

#define CPUINFO "proc/cpuinfo"
#define TYPE    "sys/bus/event_source/devices/intel_pt/type"
#define LEVEL   "proc/sys/kernel/perf_event_paranoid"
#define MLOCK   "proc/sys/kernel/perf_event_mlock_kb"
#define LOCK    "sys/kernel/security/lockdown"
#define MEMINFO "proc/meminfo"

#define CPU(vendor, model, flags)                                                     \
	"processor\t: 0\nvendor_id\t: " vendor "\ncpu family\t: 6\nmodel\t\t: " model \
	"\nmodel name\t: A CPU @ 3 GHz\nflags\t\t: fpu " flags " sse\n\n"
#define MEMORY(total, available) \
	"MemTotal:       " total " kB\nMemFree: 1 kB\nMemAvailable:   " available " kB\n"

/* A machine on which all is well. */
static const struct file {
	const char *path, *text;
} files[] = {
	{ CPUINFO, CPU("GenuineIntel", "143", "intel_pt") },
	{ TYPE, "8\n" },
	{ LEVEL, "2\n" },
	{ MLOCK, "516\n" },
	{ LOCK, "none [integrity] confidentiality\n" },
	{ MEMINFO, MEMORY("67108864", "33554432") },
	{ "proc/17/comm", "perf\n" },
};

static int pt_result;

static int try_pt(uint32_t type)
{
	return type == 8 ? pt_result : -EINVAL;
}

static const struct check_machine good = {
	.release = "6.1.0-13-amd64",
	.n_cpus = 8,
	.memlock = UINT64_MAX,
	.try_pt = try_pt,
	.emulator = "/opt/qemu-x86_64",
	.plugin = "/opt/ptd-emu.so",
};

struct row {
	struct file file; /* this one is other; NULL: none */
	int pt_result;
	struct check_machine other; /* what is set here is other */
	const char *expected;       /* a whole line */
	bool has_pt, has_emulated;
};

static struct check_machine change(const struct check_machine *other, const char *root)
{
	struct check_machine m = good;

	m.root = root;
	m.release = other->release ?: m.release;
	m.n_cpus = other->n_cpus ?: m.n_cpus;
	m.memlock = other->memlock ?: m.memlock;
	m.is_ptd_there = other->is_ptd_there;
	m.emulator_error = other->emulator_error;
	m.plugin_error = other->plugin_error;
	m.shared_error = other->shared_error;
	return m;
}

/* Write a line of @check as "source state what: found; remedy". */
static void print(const struct check_row *row, char *ret_line, size_t size)
{
	static const char *const states[] = { "ok", "note", "missing" };

	(void)snprintf(ret_line, size, "%s %s %s: %s%s%s", row->is_emulated ? "emu" : "pt",
		       states[row->state], row->what, row->found, row->remedy[0] ? "; " : "",
		       row->remedy);
}

static void judge(const struct row *row)
{
	char root[TEMPDIR_SIZE], link[128], line[1024];
	struct check_machine machine;
	struct check check;
	size_t n_found = 0, n_bad = 0;

	tempdir_make("check", root);
	for (size_t i = 0; i < ARRAY_LEN(files); i++)
		if (!row->file.path || strcmp(files[i].path, row->file.path) != 0)
			tempdir_put_text(root, files[i].path, files[i].text);
	if (row->file.path && row->file.text)
		tempdir_put_text(root, row->file.path, row->file.text);
	tempdir_put_text(root, "proc/17/fd/0", "");
	(void)snprintf(link, sizeof(link), "%s/proc/17/fd/3", root);
	assert_int_equal(symlink("anon_inode:[perf_event]", link), 0);

	pt_result = row->pt_result;
	machine = change(&row->other, root);
	check_machine(&machine, &check);
	for (size_t i = 0; i < check.n_rows; i++) {
		print(&check.rows[i], line, sizeof(line));
		n_found += strcmp(line, row->expected) == 0;
		n_bad += check.rows[i].state != CHECK_OK;
		/* Whatever is wrong has a remedy. */
		assert_int_equal(check.rows[i].state != CHECK_OK, check.rows[i].remedy[0] != '\0');
	}
	if (n_found != 1) {
		print_message("expected %s\n", row->expected);
		for (size_t i = 0; i < check.n_rows; i++) {
			print(&check.rows[i], line, sizeof(line));
			print_message("got %s\n", line);
		}
	}
	assert_int_equal(n_found, 1);
	assert_int_equal(n_bad, strstr(row->expected, " ok ") == NULL);
	assert_int_equal(check.has_pt, row->has_pt);
	assert_int_equal(check.has_emulated, row->has_emulated);
	tempdir_remove(root);
}

#define USE_EMULATED "use the software source: ptctl record"

static void machines(void **state)
{
	static const struct row rows[] = {
		{ {}, 0, {}, "pt ok cpu: A CPU @ 3 GHz", true, true },
		{ {}, 0, {}, "pt ok kernel's PMU: intel_pt, type 8", true, true },
		{ {}, 0, {}, "pt ok lockdown: none [integrity] confidentiality", true, true },
		{ {}, 0, {}, "pt ok memlock: no limit", true, true },
		{ {},
		  0,
		  {},
		  "pt ok memory: rings of 8 CPUs pin 576 MiB of 65536 MiB, by default",
		  true,
		  true },
		{ {}, 0, {}, "pt ok users: no other program has PT", true, true },
		{ {}, 0, {}, "emu ok emulator: /opt/qemu-x86_64", true, true },
		{ {}, 0, {}, "emu ok plugin: /opt/ptd-emu.so", true, true },
		{ {},
		  0,
		  {},
		  "emu ok shared memory: 32768 MiB are available, rings take up to 288 MiB",
		  true,
		  true },

		{ { CPUINFO, CPU("GenuineIntel", "143", "intel_pt hypervisor") },
		  0,
		  {},
		  "pt ok cpu: A CPU @ 3 GHz, in a virtual machine",
		  true,
		  true },
		{ { TYPE, NULL },
		  0,
		  {},
		  "pt missing kernel's PMU: no intel_pt; see \"dmesg | grep -i pt\": firmware or a "
		  "hypervisor "
		  "may have switched PT on for itself",
		  false,
		  true },
		{ { CPUINFO, CPU("AuthenticAMD", "1", "intel_pt_not xintel_pt") },
		  0,
		  {},
		  "pt ok cpu: A CPU @ 3 GHz",
		  true,
		  true }, /* its PMU is there */
		{ { CPUINFO, CPU("GenuineIntel", "85", "intel_pt") },
		  0,
		  {},
		  "pt note LBR: this CPU has either LBR or PT; programs that record branches (perf "
		  "record -b) "
		  "and ptd exclude each other: ptctl pause",
		  true,
		  true },
		{ {},
		  0,
		  { .release = "5.10.0-26-amd64" },
		  "pt missing kernel: 5.10.0-26-amd64; boot Linux 5.12 or later",
		  false,
		  true },
		{ {},
		  0,
		  { .release = "4.19.0" },
		  "pt missing kernel: 4.19.0; boot Linux 5.12 or later",
		  false,
		  true },
		{ {}, 0, { .release = "5.12.0" }, "pt ok kernel: 5.12.0", true, true },
		{ { LEVEL, "3\n" },
		  0,
		  {},
		  "pt note perf_event_paranoid: 3; only root may record: start ptd.service, which "
		  "lowers it while "
		  "it runs, or sysctl kernel.perf_event_paranoid=2",
		  true,
		  true },
		{ { LEVEL, "-1\n" }, 0, {}, "pt ok perf_event_paranoid: -1", true, true },
		{ { LOCK, "none integrity [confidentiality]\n" },
		  0,
		  {},
		  "pt note lockdown: none integrity [confidentiality]; the kernel's code cannot be "
		  "recorded: keep "
		  "Trace=user, or boot without lockdown=confidentiality",
		  true,
		  true },
		{ {},
		  0,
		  { .memlock = 8 << 20 },
		  "pt note memlock: you may lock 1540 KiB for each CPU; your own recordings are so "
		  "short: join "
		  "group ptd and use ptd.service, or raise ulimit -l",
		  true,
		  true },
		{ { MLOCK, "65536\n" },
		  0,
		  { .memlock = 8 << 20 },
		  "pt ok memlock: you may lock 66560 KiB for each CPU",
		  true,
		  true },
		{ {},
		  0,
		  { .n_cpus = 256 },
		  "pt note memory: rings of 256 CPUs pin 18432 MiB of 65536 MiB, by default; "
		  "AuxSize=32M in "
		  "/etc/ptd/ptd.conf",
		  true,
		  true },
		{ {},
		  -EBUSY,
		  {},
		  "pt missing users: another program has PT, of these with perf events: perf[17]; "
		  "end it, or wait",
		  false,
		  true },
		{ {},
		  -EBUSY,
		  { .is_ptd_there = true },
		  "pt ok users: ptd, which answers",
		  true,
		  true },
		{ {},
		  -EACCES,
		  {},
		  "pt missing users: you may not have PT yourself: Permission denied; start "
		  "ptd.service, or be root",
		  false,
		  true },
		{ {},
		  -EACCES,
		  { .is_ptd_there = true },
		  "pt note users: you may not have PT yourself: Permission denied; start "
		  "ptd.service, or be root",
		  true,
		  true },

		{ {},
		  0,
		  { .emulator_error = -ENOTSUP },
		  "emu missing emulator: /opt/qemu-x86_64: it loads no plugins; \"make emulator\", "
		  "or "
		  "lib/ptd/get-emulator where ptd is installed",
		  true,
		  false },
		{ {},
		  0,
		  { .emulator_error = -ENOENT },
		  "emu missing emulator: /opt/qemu-x86_64: No such file or directory; \"make "
		  "emulator\", or "
		  "lib/ptd/get-emulator where ptd is installed",
		  true,
		  false },
		{ {},
		  0,
		  { .plugin_error = -EACCES },
		  "emu missing plugin: /opt/ptd-emu.so: Permission denied; install ptd-emu.so "
		  "beside ptctl, or into "
		  "lib/ptd",
		  true,
		  false },
		{ {},
		  0,
		  { .shared_error = -EPERM },
		  "emu missing shared memory: 32768 MiB are available, rings take up to 288 MiB: "
		  "Operation not "
		  "permitted; allow memfd_create(2) to this container",
		  true,
		  false },
		{ { MEMINFO, MEMORY("67108864", "204800") },
		  0,
		  {},
		  "emu note shared memory: 200 MiB are available, rings take up to 288 MiB; lower "
		  "AuxSize=, or end "
		  "what takes the memory",
		  true,
		  true },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		judge(&rows[i]);
}

/* Without PT nothing else is said of it. */
static void no_pt(void **state)
{
	static const struct {
		const char *cpuinfo, *expected;
	} rows[] = {
		{ CPU("AuthenticAMD", "1", "hypervisor"),
		  "pt missing cpu: A CPU @ 3 GHz, in a virtual machine; only CPUs of Intel have "
		  "PT: " USE_EMULATED },
		{ CPU("GenuineIntel", "85", "hypervisor intel_pt2"),
		  "pt missing cpu: A CPU @ 3 GHz, in a virtual machine; the hypervisor does not "
		  "show PT: use bare "
		  "metal; or with KVM of Linux before 6.12 kvm_intel.pt_mode=1 and QEMU's -cpu "
		  "host,+intel-pt; "
		  "or " USE_EMULATED },
		{ CPU("GenuineIntel", "60", "xintel_pt"),
		  "pt missing cpu: A CPU @ 3 GHz; CPUs before Broadwell (2014) have no PT, and "
		  "firmware can switch "
		  "it off: " USE_EMULATED },
		{ "", "pt missing cpu: not known; only CPUs of Intel have PT: " USE_EMULATED },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char root[TEMPDIR_SIZE], line[1024];
		struct check_machine machine;
		struct check check;

		tempdir_make("check", root);
		tempdir_put_text(root, CPUINFO, rows[i].cpuinfo);
		machine = change(&(struct check_machine){}, root);
		check_machine(&machine, &check);
		print(&check.rows[0], line, sizeof(line));
		assert_string_equal(line, rows[i].expected);
		assert_int_equal(check.n_rows, 4);
		assert_true(check.rows[1].is_emulated);
		assert_false(check.has_pt);
		assert_true(check.has_emulated);
		tempdir_remove(root);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(machines),
		cmocka_unit_test(no_pt),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
