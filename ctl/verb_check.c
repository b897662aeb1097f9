/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* ptctl check */

#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/log.h"
#include "ctl/check.h"
#include "ctl/client.h"
#include "ctl/emulator.h"
#include "ctl/show.h"
#include "ctl/verb.h"
#include "util/execfile.h"

/* An event of this process alone: the kernel refuses it while another program records any CPU. */
static int try_pt(uint32_t type)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = type,
		.disabled = 1,
		.exclude_kernel = 1,
		.exclude_hv = 1,
	};
	_cleanup_(fd_closep) int fd =
	    (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : 0;
}

static int try_shared(void)
{
	_cleanup_(fd_closep) int fd = memfd_create("ptd-check", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	return fd < 0 || ftruncate(fd, 4096) < 0 ? -errno : 0;
}

static const char *const states[] = { "ok", "note", "missing" };

static void print_text(const struct check *check)
{
	for (size_t i = 0; i < check->n_rows; i++) {
		const struct check_row *row = &check->rows[i];

		printf("%-8s %-7s %s: %s%s%s\n", row->is_emulated ? "emulated" : "PT",
		       states[row->state], row->what, row->found, row->remedy[0] ? "; " : "",
		       row->remedy);
	}
	printf("%s\n", check->has_pt && check->has_emulated ? "can record: by PT, and emulated"
		       : check->has_pt                      ? "can record: by PT"
		       : check->has_emulated                ? "can record: emulated"
							    : "cannot record");
}

static void print_json(const struct check *check)
{
	printf("{\"pt\":%s,\"emulated\":%s,\"checks\":[", check->has_pt ? "true" : "false",
	       check->has_emulated ? "true" : "false");
	for (size_t i = 0; i < check->n_rows; i++) {
		const struct check_row *row = &check->rows[i];

		printf("%s{\"source\":\"%s\",\"what\":\"%s\",\"state\":\"%s\",\"found\":",
		       i > 0 ? "," : "", row->is_emulated ? "emu" : "pt", row->what,
		       states[row->state]);
		show_json_string(stdout, row->found);
		printf(",\"remedy\":");
		show_json_string(stdout, row->remedy);
		putchar('}');
	}
	puts("]}");
}

int verb_check(const struct context *context, int argc, char **argv)
{
	const char *const name_of_emulator = execfile_emulator(EXECFILE_X86_64);
	_cleanup_(freep) char *emulator = NULL, *plugin = NULL;
	const long n_cpus = sysconf(_SC_NPROCESSORS_ONLN);
	struct rlimit limit = { .rlim_cur = 0 };
	struct check_machine machine;
	struct utsname name;
	struct check check;

	if (argc > 1)
		return log_as(EXIT_USAGE, "check: unexpected argument \"%s\"", argv[1]);
	(void)uname(&name);
	(void)getrlimit(RLIMIT_MEMLOCK, &limit);
	machine = (struct check_machine){
		.root = "",
		.release = name.release,
		.n_cpus = n_cpus > 0 ? (uint32_t)n_cpus : 1,
		.memlock =
		    geteuid() == 0 || limit.rlim_cur == RLIM_INFINITY ? UINT64_MAX : limit.rlim_cur,
		.is_ptd_there = client_probe(context->socket) == 0,
		.try_pt = try_pt,
		.emulator_error = emulator_probe(name_of_emulator, &emulator),
		.plugin_error = emulator_probe_plugin(&plugin),
		.shared_error = try_shared(),
	};
	machine.emulator = emulator ?: name_of_emulator;
	machine.plugin = plugin ?: "ptd-emu.so";

	check_machine(&machine, &check);
	if (context->json)
		print_json(&check);
	else
		print_text(&check);
	return check.has_pt || check.has_emulated ? EXIT_OK : EXIT_FAILED;
}
