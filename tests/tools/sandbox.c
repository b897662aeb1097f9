/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * What ptd.service lets its program do: tried, and told with the kernel's answer in a line each.
 *
 *	sandbox PID FILE
 *
 * PID is a process of another user, FILE an executable that only its owner may read. It runs in the
 * unit, in place of ptd.
 */

#include <errno.h>
#include <error.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/openat2.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/base.h"
#include "util/mapsline.h"

#define RING_SIZE ((size_t)16 << 20) /* a multiple of what may be locked without IPC_LOCK */

static pid_t pid;
static const char *file;

static int result(long r)
{
	return r < 0 ? -errno : 0;
}

static int try_open(const char *path, int flags)
{
	_cleanup_(fd_closep) int fd = open(path, flags | O_CLOEXEC, 0600);

	return result(fd);
}

/* A file of the process: its name below /proc/PID. */
static int proc(const char *name)
{
	char path[256];

	(void)snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	return open(path, O_RDONLY | O_CLOEXEC);
}

static int perf_event(void)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_DUMMY,
		.mmap2 = 1,
		.task = 1,
	};
	_cleanup_(fd_closep) int fd = -1;
	void *ring;

	fd = (int)syscall(SYS_perf_event_open, &attr, -1, 0, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd < 0)
		return -errno;
	ring = mmap(NULL, RING_SIZE + (size_t)getpagesize(), PROT_READ | PROT_WRITE, MAP_SHARED, fd,
		    0);
	return ring == MAP_FAILED ? -errno : 0;
}

static int others_root(void)
{
	struct open_how how = { .flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT };
	_cleanup_(fd_closep) int root = proc("root"), fd = -1;

	if (root < 0)
		return -errno;
	fd = (int)syscall(SYS_openat2, root, "etc/passwd", &how, sizeof(how));
	return result(fd);
}

/* The first byte that it maps, in the mapping's file and in memory. */
static int others_mapping(void)
{
	char name[64], line[8192] = "", byte;
	FILE *maps = fdopen(proc("maps"), "r");
	struct mapsline l;
	int fd, r;

	if (!maps)
		return -errno;
	(void)!fgets(line, sizeof(line), maps);
	(void)fclose(maps);
	line[strcspn(line, "\n")] = '\0';
	if (mapsline_parse(line, &l) < 0)
		return -ENODATA;
	(void)snprintf(name, sizeof(name), "map_files/%" PRIx64 "-%" PRIx64, l.start, l.end);
	fd = proc(name);
	if (fd < 0)
		return -errno;
	(void)close(fd);
	fd = proc("mem");
	if (fd < 0)
		return -errno;
	r = result(pread(fd, &byte, 1, (off_t)l.start));
	(void)close(fd);
	return r;
}

static int others_file(void)
{
	return try_open(file, O_RDONLY);
}

static int shared_tmp(void)
{
	return try_open("/tmp/shared", O_RDONLY);
}

static int perf_setting(void)
{
	return try_open("/proc/sys/kernel/perf_event_paranoid", O_RDONLY);
}

/* Empty: ENODATA. No addresses: EPERM. */
static int kernel_names(void)
{
	FILE *names = fopen("/proc/kallsyms", "re");
	unsigned long address;
	int n;

	if (!names)
		return -errno;
	n = fscanf(names, "%lx", &address);
	(void)fclose(names);
	return n != 1 ? -ENODATA : address == 0 ? -EPERM : 0;
}

static int kernel_code(void)
{
	_cleanup_(fd_closep) int fd = open("/proc/kcore", O_RDONLY | O_CLOEXEC);
	char magic[4];

	if (fd < 0)
		return -errno;
	return read(fd, magic, sizeof(magic)) == sizeof(magic) ? 0 : -ENODATA;
}

/* Empty: ENODATA. */
static int kernel_log(void)
{
	_cleanup_(fd_closep) int fd = open("/proc/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	char byte;
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = read(fd, &byte, 1);
	return n == 0 ? -ENODATA : n < 0 && errno != EAGAIN ? -errno : 0;
}

static int write_state(void)
{
	return try_open("/var/lib/ptd/probe", O_WRONLY | O_CREAT);
}

static int write_tmp(void)
{
	return try_open("/tmp/probe", O_WRONLY | O_CREAT);
}

static int write_etc(void)
{
	return try_open("/etc/probe", O_WRONLY | O_CREAT);
}

static int write_cgroup(void)
{
	return result(mkdir("/sys/fs/cgroup/probe", 0755));
}

static int others_signal(void)
{
	return result(kill(pid, SIGCONT));
}

static int trace_others(void)
{
	return result(ptrace(PTRACE_SEIZE, pid, NULL, NULL));
}

static int internet(void)
{
	_cleanup_(fd_closep) int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	return result(fd);
}

static int user_namespace(void)
{
	return result(unshare(CLONE_NEWUSER));
}

static int become_root(void)
{
	return result(setuid(0));
}

static int mount_something(void)
{
	return result(mount("tmpfs", "/tmp", "tmpfs", 0, NULL));
}

static int write_code(void)
{
	void *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return code == MAP_FAILED ? -errno : 0;
}

/* A byte where nothing is mapped: EFAULT if it may be tried. */
static int write_others(void)
{
	char byte = 0;
	const struct iovec from = { &byte, 1 }, to = { (void *)16, 1 };

	return result(process_vm_writev(pid, &from, 1, &to, 1, 0));
}

/* Of no process: EBADF if it may be tried. */
static int page_out_others(void)
{
	const struct iovec range = { (void *)4096, 4096 };

	return result(syscall(SYS_process_madvise, -1, &range, 1, MADV_PAGEOUT, 0));
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*attempt)(void);
	} rows[] = {
		{ "perf-event", perf_event },
		{ "perf-setting", perf_setting },
		{ "others-root", others_root },
		{ "others-mapping", others_mapping },
		{ "others-file", others_file },
		{ "shared-tmp", shared_tmp },
		{ "kernel-names", kernel_names },
		{ "kernel-code", kernel_code },
		{ "kernel-log", kernel_log },
		{ "write-state", write_state },
		{ "write-tmp", write_tmp },
		{ "write-etc", write_etc },
		{ "write-cgroup", write_cgroup },
		{ "others-signal", others_signal },
		{ "trace-others", trace_others },
		{ "write-others", write_others },
		{ "page-out-others", page_out_others },
		{ "internet", internet },
		{ "user-namespace", user_namespace },
		{ "become-root", become_root },
		{ "mount", mount_something },
		{ "write-code", write_code },
	};

	if (argc != 3)
		error(2, 0, "usage: sandbox PID FILE");
	if (geteuid() == 0)
		error(2, 0, "not as root: it would succeed");
	pid = atoi(argv[1]);
	file = argv[2];
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const int r = rows[i].attempt();

		printf("%s: %s\n", rows[i].name, r < 0 ? strerrorname_np(-r) : "ok");
	}
	return 0;
}
