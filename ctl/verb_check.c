/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* ptctl check */

#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
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
#include "util/beside.h"
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

/* Have the program beside this one prove it. Returns only if it cannot: an exit status. */
static int exec_prove(const char *output)
{
	static const char *const places[] = { "prove", "../lib/ptd/prove" };
	static char name[] = "prove", option[] = "-o";
	_cleanup_(freep) char *path = NULL, *directory = output ? strdup(output) : NULL;
	char *const argv[] = { name, directory ? option : NULL, directory, NULL };
	int r;

	r = beside_find(places, ARRAY_LEN(places), X_OK, &path);
	if (r >= 0) {
		(void)execv(path, argv);
		r = -errno;
	}
	return log_errno_as(EXIT_FAILED, r, "%s: cannot execute it: %m", path ?: name);
}

/* Return: EXIT_OK, and whether to prove, and where to leave what differs; or EXIT_USAGE. */
static int parse_check(int argc, char **argv, bool *ret_prove, const char **ret_output)
{
	const struct verb_option options[] = {
		{ "prove", .flag = ret_prove },
		{ "output", 'o', .text = ret_output },
	};
	const int first = verb_parse(argc, argv, options, ARRAY_LEN(options), false);

	if (first < 0)
		return EXIT_USAGE;
	if (first < argc)
		return log_as(EXIT_USAGE, "check: unexpected argument \"%s\"", argv[first]);
	if (*ret_output && !*ret_prove)
		return log_as(EXIT_USAGE, "check: -o is for --prove");
	return EXIT_OK;
}

int verb_check(const struct context *context, int argc, char **argv)
{
	const char *const name_of_emulator = execfile_emulator(EXECFILE_X86_64);
	_cleanup_(freep) char *emulator = NULL, *plugin = NULL;
	const long n_cpus = sysconf(_SC_NPROCESSORS_ONLN);
	struct rlimit limit = { .rlim_cur = 0 };
	const char *output = NULL;
	struct check_machine machine;
	struct utsname name;
	bool prove = false;
	struct check check;
	int r;

	r = parse_check(argc, argv, &prove, &output);
	if (r != EXIT_OK)
		return r;
	if (prove)
		return exec_prove(output);
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
