/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/helper/collector/work.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

#include "base/clock.h"
#include "daemon/helper/collector/kernelcode.h"
#include "daemon/helper/collector/mappings.h"
#include "daemon/helper/collector/message.h"
#include "daemon/proc/kernelmap.h"
#include "daemon/proc/mappedfile.h"
#include "daemon/proc/memcopy.h"
#include "daemon/proc/process.h"
#include "util/copyfile.h"
#include "util/dirs.h"
#include "util/effort.h"
#include "util/jitmagic.h"
#include "util/perfusers.h"
#include "util/progress.h"
#include "util/textfile.h"

void work_init(struct work *work)
{
	*work = (struct work){ .proc_fd = dirs_open(AT_FDCWD, "/proc") };
}

void work_deinit(struct work *work)
{
	kernelmap_deinit(&work->kernel_map);
	work->mappings = mappings_free(work->mappings);
	work->proc_fd = fd_close(work->proc_fd);
}

static int64_t in_ns(const struct timespec *t)
{
	return (int64_t)t->tv_sec * 1000000000 + t->tv_nsec;
}

static struct collector_answer describe_file(const struct stat *st)
{
	return (struct collector_answer){
		.uid = st->st_uid,
		.dev = st->st_dev,
		.ino = st->st_ino,
		.size = (uint64_t)st->st_size,
		.mtime_ns = in_ns(&st->st_mtim),
		.ctime_ns = in_ns(&st->st_ctim),
		/* One with holes takes fewer than its size. */
		.disk_bytes = (uint64_t)st->st_blocks * 512,
	};
}

static int check_elf(int fd)
{
	uint8_t magic[SELFMAG];

	return pread(fd, magic, sizeof(magic), 0) == (ssize_t)sizeof(magic) &&
		       memcmp(magic, ELFMAG, SELFMAG) == 0
		   ? 0
		   : -ENOEXEC;
}

/* A compiler maps its jitdump, as a rule, before it writes the head: other programs map no empty
 * file. */
static int check_jitdump(int fd)
{
	uint8_t magic[JITMAGIC_SIZE];
	const ssize_t n = pread(fd, magic, sizeof(magic), 0);

	return n == 0 || (n == (ssize_t)sizeof(magic) && jitmagic_is(magic)) ? 0 : -ENOEXEC;
}

/* Return: a descriptor of /proc/PID; -1 if no process is named, or it has ended. */
static int open_process(const struct collector_request *request)
{
	return request->pid > 0 ? process_open(request->pid) : -1;
}

static int find_file(const struct collector_request *request, struct collector_answer *ret_answer,
		     int *ret_fd)
{
	const struct mappedfile file = { .start = request->start,
					 .end = request->end,
					 .offset = request->offset,
					 .path = request->path,
					 .build_id = request->build_id,
					 .dev = request->dev,
					 .ino = request->ino };
	_cleanup_(fd_closep) int pid_fd = open_process(request), path_fd = -1, fd = -1;
	const struct mappedfile_process by = { .pid_fd = pid_fd,
					       .is_true = request->flags & COLLECTOR_TRUE,
					       .has_user = request->flags & COLLECTOR_OWN,
					       .user = request->uid };
	struct stat st;
	int r;

	r = mappedfile_find(&by, &file, request->flags & COLLECTOR_VERIFY, &path_fd, &st);
	if (r == 0 && request->flags & (COLLECTOR_ELF | COLLECTOR_JITDUMP)) {
		r = mappedfile_reopen(path_fd, &fd);
		if (r == 0)
			r = request->flags & COLLECTOR_ELF ? check_elf(fd) : check_jitdump(fd);
	}
	if (r < 0)
		return r;
	*ret_answer = describe_file(&st);
	if (request->flags & COLLECTOR_OPEN) {
		*ret_fd = TAKE_FD(path_fd);
	}
	return 0;
}

/* A client that does not get it waits less long than it could. */
static int report_progress(void *userdata, uint64_t done, uint64_t total)
{
	const int *fd = userdata;

	(void)!pwrite(*fd, &done, sizeof(done), 0);
	return 0;
}

/* The file may grow while it is read; the process that asks knows how long that may take. */
static int hash_file(const struct collector_request *request, const int fds[static 2],
		     struct collector_answer *ret_answer)
{
	int progress_fd = fds[1];
	struct progress progress = { .report = progress_fd >= 0 ? report_progress : NULL,
				     .userdata = &progress_fd };
	_cleanup_(fd_closep) int fd = -1;
	struct collector_answer answer;
	struct effort effort = {};
	uint64_t size;
	struct stat st;
	int r;

	r = mappedfile_reopen(fds[0], &fd);
	if (r < 0)
		return r;
	if (fstat(fd, &st) < 0)
		return -errno;
	answer = describe_file(&st);
	r = buildid_read(fd, &answer.build_id);
	if (r < 0)
		return r;
	if (request->build_id.size > 0 && !buildid_equal(&request->build_id, &answer.build_id))
		return -ESTALE;
	effort.size_max = answer.size;
	r = answer.size > request->size_max
		? -EFBIG
		: sha256_fd(fd, &effort, &progress, answer.sha256, &size);
	if (r == 0)
		*ret_answer = answer;
	return r;
}

static int copy_file(const struct collector_request *request, const int fds[static 2],
		     struct collector_answer *ret_answer)
{
	const struct effort effort = { .size_max = request->size_max };
	_cleanup_(fd_closep) int fd = -1;
	struct stat copy;
	int r;

	r = fds[0] < 0 || fds[1] < 0 ? -EBADF : mappedfile_reopen(fds[0], &fd);
	if (r < 0)
		return r;
	r = request->flags & COLLECTOR_FIRST ? copyfile_first(fd, fds[1], request->size_max)
					     : copyfile_fd(fd, fds[1], &effort);
	if (r == 0 && fstat(fds[1], &copy) == 0)
		ret_answer->size = (uint64_t)copy.st_size;
	return r;
}

/* Return: a descriptor that stands for what lies there, or negative errno. */
static int find_path(const struct collector_request *request)
{
	const int nofollow = request->flags & COLLECTOR_NOFOLLOW ? O_NOFOLLOW : 0;
	_cleanup_(fd_closep) int pid_fd = -1;
	int fd = -ESRCH;

	if (request->flags & COLLECTOR_PERF_MAP) {
		pid_fd = open_process(request);
		if (pid_fd >= 0)
			fd = perfmapfile_open(pid_fd);
	}
	if (fd == -ESRCH) {
		fd = open(request->path, O_PATH | O_CLOEXEC | nofollow);
		fd = fd < 0 ? -errno : fd;
	}
	return fd;
}

/* Other users decide what lies there: it is only opened to be read if it is a regular file. */
static int open_path(const struct collector_request *request, struct collector_answer *ret_answer,
		     int *ret_fd)
{
	_cleanup_(fd_closep) int fd = find_path(request);
	struct stat st;

	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return S_ISLNK(st.st_mode) ? -ELOOP : S_ISDIR(st.st_mode) ? -EISDIR : -EINVAL;
	*ret_answer = describe_file(&st);
	*ret_fd = TAKE_FD(fd);
	return 0;
}

static int stat_file(int fd, struct collector_answer *ret_answer)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	*ret_answer = describe_file(&st);
	return 0;
}

/* Return: whether the process has memory: one that has ended, and whose parent has not asked how,
 * is still there, but has none. */
static bool has_memory(int pid_fd)
{
	char path[2];

	return readlinkat(pid_fd, "exe", path, sizeof(path)) >= 0 || errno != ENOENT;
}

/* Return: 0 if the process has the file mapped; -ENOENT if not; -ESRCH if it has ended; or another
 * negative errno. */
static int check_mapped(const struct collector_request *request)
{
	_cleanup_(fd_closep) int pid_fd = open_process(request);
	const struct mappedfile file = { .start = request->start,
					 .end = request->end,
					 .offset = request->offset,
					 .dev = request->dev,
					 .ino = request->ino };
	int r;

	if (pid_fd < 0)
		return -ESRCH;
	r = mappedfile_is_mapped(pid_fd, &file);
	return r == -ENOENT && !has_memory(pid_fd) ? -ESRCH : r;
}

struct memory_copy {
	int fd;
	uint64_t start; /* of the memory: what is there lies at 0 in the file */
};

static int put_memory(void *userdata, uint64_t address, const void *bytes, size_t size)
{
	const struct memory_copy *copy = userdata;

	errno = ENOSPC;
	return pwrite(copy->fd, bytes, size, (off_t)(address - copy->start)) == (ssize_t)size
		   ? 0
		   : -errno;
}

static int copy_memory(const struct collector_request *request, int fd,
		       struct collector_answer *ret_answer)
{
	_cleanup_(fd_closep) int pid_fd = open_process(request);
	struct memory_copy copy = { .fd = fd, .start = request->start };
	int64_t n;

	if (pid_fd < 0)
		return -ESRCH;
	if (fd < 0 || request->end < request->start)
		return -EINVAL;
	n = memcopy_read_executable(pid_fd, request->start, request->end - request->start,
				    request->size_max, put_memory, &copy);
	if (n < 0)
		return (int)n;
	ret_answer->size = (uint64_t)n;
	return 0;
}

struct mappings_copy {
	int fd;
	uint64_t left; /* bytes that may still be written */
	struct tsc_conv clock;
};

static uint64_t records_now(void *userdata)
{
	const struct mappings_copy *copy = userdata;

	return tsc_to_ns(&copy->clock, __rdtsc());
}

static int put_mapping(void *userdata, const void *bytes, size_t size)
{
	struct mappings_copy *copy = userdata;

	if (size > copy->left)
		return -EFBIG;
	errno = ENOSPC;
	if (write(copy->fd, bytes, size) != (ssize_t)size)
		return -errno;
	copy->left -= size;
	return 0;
}

/* Of a process with more mappings than may be written, the first ones are. */
static int write_mappings(struct work *work, const struct collector_request *request, int fd)
{
	_cleanup_(fd_closep) int pid_fd = open_process(request);
	struct mappings_copy copy = { .fd = fd,
				      .left = request->size_max,
				      .clock = request->clock };
	int r;

	if (pid_fd < 0)
		return -ESRCH;
	if (fd < 0 || !request->clock.valid)
		return -EINVAL;
	r = work->mappings ? 0 : mappings_new(&work->mappings);
	if (r == 0)
		r = mappings_write(work->mappings, &(struct mappings_options){ .pid_fd = pid_fd,
									       .pid = request->pid,
									       .now = records_now,
									       .put = put_mapping,
									       .userdata = &copy });
	return r == -EFBIG ? 0 : r;
}

static int list_perf_users(const struct collector_request *request, int fd)
{
	char text[PERFUSERS_SIZE];
	const int n = perfusers_list("", (pid_t)request->pid, text, sizeof(text));

	if (n <= 0)
		(void)snprintf(text, sizeof(text), "%s",
			       n < 0 ? "a process that may not be looked into"
				     : "no visible process (a hypervisor, or LBR or BTS events)");
	return write(fd, text, strlen(text)) < 0 ? -errno : 0;
}

static void describe_kernel(const struct kernelcode *code, enum kernellack lack,
			    struct collector_answer *ret_answer)
{
	*ret_answer = (struct collector_answer){ .lack = lack,
						 .size = code->bytes,
						 .bytes_unreadable = code->bytes_unreadable,
						 .n_left_out = code->n_left_out };
}

/* The code is asked for next: what is copied then is what the names are of. */
static int copy_kernel_names(struct work *work, const struct collector_request *request,
			     const int fds[static 2], struct collector_answer *ret_answer)
{
	enum kernellack lack = KERNELLACK_NONE;
	struct kernelcode code = {};
	int r;

	if (fds[0] < 0 || fds[1] < 0)
		return -EINVAL;
	kernelmap_deinit(&work->kernel_map);
	r = kernelcode_copy_names(work->proc_fd, fds[0], fds[1], request->size_max,
				  &work->kernel_map, &code, &lack);
	if (r == 0)
		describe_kernel(&code, lack, ret_answer);
	return r;
}

static int take_kernel_map(struct work *work, struct kernelmap *ret_map, enum kernellack *ret_lack)
{
	if (work->kernel_map.text == 0)
		return kernelmap_init(ret_map, work->proc_fd, NULL, ret_lack);
	*ret_map = work->kernel_map;
	work->kernel_map = (struct kernelmap){};
	return 0;
}

static int copy_kernel_code(struct work *work, const struct collector_request *request,
			    const int fds[static 2], struct collector_answer *ret_answer)
{
	_cleanup_(kernelmap_deinit) struct kernelmap map = {};
	enum kernellack lack = KERNELLACK_NONE;
	struct kernelcode code = {};
	int r;

	if (fds[0] < 0 || fds[1] < 0)
		return -EINVAL;
	r = take_kernel_map(work, &map, &lack);
	if (r == 0 && !lack)
		r = kernelcode_copy(work->proc_fd, &map, fds[0], fds[1], request->size_max, &code,
				    &lack);
	if (r == 0)
		describe_kernel(&code, lack, ret_answer);
	return r;
}

static int check_kernel_code(const struct work *work, struct collector_answer *ret_answer)
{
	const struct kernelcode none = {};
	enum kernellack lack = KERNELLACK_NONE;
	const int r = kernelcode_check(work->proc_fd, &lack);

	if (r == 0)
		describe_kernel(&none, lack, ret_answer);
	return r;
}

void work_do(struct work *work, const struct collector_request *request, const int fds[static 2],
	     struct collector_answer *ret_answer, int *ret_fd)
{
	struct collector_answer answer = {};
	int r = -EBADMSG;

	*ret_fd = -1;
	switch (request->verb) {
	case COLLECTOR_FIND:
		r = find_file(request, &answer, ret_fd);
		break;
	case COLLECTOR_HASH:
		r = fds[0] < 0 ? -EBADF : hash_file(request, fds, &answer);
		break;
	case COLLECTOR_COPY:
		r = copy_file(request, fds, &answer);
		break;
	case COLLECTOR_MEMORY:
		r = copy_memory(request, fds[0], &answer);
		break;
	case COLLECTOR_MAPPINGS:
		r = write_mappings(work, request, fds[0]);
		break;
	case COLLECTOR_OPEN_PATH:
		r = open_path(request, &answer, ret_fd);
		break;
	case COLLECTOR_STAT:
		r = stat_file(fds[0], &answer);
		break;
	case COLLECTOR_MAPPED:
		r = check_mapped(request);
		break;
	case COLLECTOR_PERF_USERS:
		r = list_perf_users(request, fds[0]);
		break;
	case COLLECTOR_KERNEL_NAMES:
		r = copy_kernel_names(work, request, fds, &answer);
		break;
	case COLLECTOR_KERNEL_CODE:
		r = fds[0] < 0 && fds[1] < 0 ? check_kernel_code(work, &answer)
					     : copy_kernel_code(work, request, fds, &answer);
		break;
	case _COLLECTOR_VERBS:
		break;
	}
	answer.id = request->id;
	answer.error = r;
	*ret_answer = answer;
}

/* --- perf map file ---------------------------------------------------------------------------- */

#define STATUS_SIZE 4096 /* the line stands before those that may be long */

/* File systems and the kernel's account of processes round times, by less than this. */
#define ROUNDING_NS INT64_C(1000000000)

/* Find the number that the process has for itself, the line's last. Return: 0 or -ESRCH. */
static int read_own_number(int pid_fd, uint32_t *ret_pid)
{
	const char *line, *end, *last;
	char text[STATUS_SIZE];

	if (textfile_read(pid_fd, "status", text, sizeof(text)) < 0)
		return -ESRCH;
	line = strstr(text, "\nNSpid:");
	end = line ? strchr(line + 1, '\n') : NULL;
	last = end ? memrchr(line, '\t', (size_t)(end - line)) : NULL;
	return last && sscanf(last, "%" SCNu32, ret_pid) == 1 ? 0 : -ESRCH;
}

/* Return: whether the file was last written before the process was started: it is a map of an
 * earlier process with the same number. */
static bool is_of_another(int fd, int pid_fd)
{
	const int64_t booted = (int64_t)(clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_BOOTTIME));
	const uint64_t ticks = process_birth(pid_fd), per_second = (uint64_t)sysconf(_SC_CLK_TCK);
	struct stat st;

	if (ticks == 0 || fstat(fd, &st) < 0)
		return false;
	return (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec + ROUNDING_NS <
	       booted + (int64_t)(ticks * (1000000000 / per_second));
}

int perfmapfile_open(int pid_fd)
{
	struct open_how how = {
		.flags = O_PATH | O_CLOEXEC | O_NOFOLLOW,
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
	};
	_cleanup_(fd_closep) int root_fd = -1;
	char path[64];
	uint32_t pid;
	int fd, r;

	r = read_own_number(pid_fd, &pid);
	if (r < 0)
		return r;
	/* Of a process that has ended, there is no root any more. */
	root_fd = openat(pid_fd, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root_fd < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	(void)snprintf(path, sizeof(path), "tmp/perf-%" PRIu32 ".map", pid);
	fd = (int)syscall(SYS_openat2, root_fd, path, &how, sizeof(how));
	if (fd < 0)
		return -errno;
	if (is_of_another(fd, pid_fd)) {
		(void)fd_close(fd);
		return -ENOENT;
	}
	return fd;
}
