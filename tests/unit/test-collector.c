/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

#include "base/clock.h"
#include "daemon/helper/collector/collector.h"
#include "daemon/helper/collector/link.h"
#include "daemon/helper/collector/message.h"
#include "tests/lib/tempdir.h"
#include "util/cancel.h"
#include "util/perf/record.h"

#define SECOND UINT64_C(1000000000)
#define NOBODY 65534

/* A test may have a time of its own, in ns; 0: it is that of the machine. */
static uint64_t now_ns;

int clock_gettime(clockid_t id, struct timespec *ret_time)
{
	if (now_ns == 0)
		return (int)syscall(SYS_clock_gettime, id, ret_time);
	*ret_time = clock_timespec(now_ns);
	return 0;
}

/* --- messages -------------------------------------------------------------------------------- */

static const struct collector_request find_self = {
	.id = 7,
	.verb = COLLECTOR_FIND,
	.flags = COLLECTOR_TRUE | COLLECTOR_OPEN,
	.timeout_ms = 5000,
	.pid = 1234,
	.start = 0x1000,
	.end = 0x3000,
	.offset = 0x2000,
	.dev = 5,
	.ino = 6,
	.size_max = 1 << 20,
	.clock = { .valid = true, .shift = 31, .mult = 5, .zero = UINT64_MAX - 3 },
	.uid = 1001,
	.build_id = { { 1, 2, 3 }, 3 },
	.path = "/bin/ls",
};

static const struct collector_answer found = {
	.id = 7,
	.uid = 1000,
	.dev = 1,
	.ino = 2,
	.size = 3,
	.mtime_ns = -4,
	.ctime_ns = 5,
	.disk_bytes = 4096,
	.build_id = { { 9 }, 1 },
	.sha256 = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
	.lack = KERNELLACK_ODD_CODE,
	.bytes_unreadable = 8,
	.n_left_out = 9,
	.waited_us = 10,
};

/* What the other side receives. */
static struct channel_message received_request(const struct collector_request *request)
{
	struct channel_message message;
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	assert_int_equal(collector_send_request(pair[0], request, NULL), 0);
	assert_int_equal(channel_receive(pair[1], COLLECTOR_VERSION, &message), 0);
	(void)close(pair[0]);
	(void)close(pair[1]);
	return message;
}

static struct channel_message received_answer(const struct collector_answer *answer)
{
	struct channel_message message;
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	assert_int_equal(collector_send_answer(pair[0], answer, -1), 0);
	assert_int_equal(channel_receive(pair[1], COLLECTOR_VERSION, &message), 0);
	(void)close(pair[0]);
	(void)close(pair[1]);
	return message;
}

static void requests_are_read_as_written(void **state)
{
	struct channel_message message = received_request(&find_self);
	struct collector_request read, longest = find_self;
	char path[CHANNEL_TEXT_MAX];

	(void)state;
	assert_int_equal(collector_read_request(&message, &read), 0);
	assert_memory_equal(&read, &find_self, offsetof(struct collector_request, path));
	assert_string_equal(read.path, "/bin/ls");

	memset(path, 'x', sizeof(path) - 1);
	path[sizeof(path) - 1] = '\0';
	longest.path = path;
	message = received_request(&longest);
	assert_int_equal(collector_read_request(&message, &read), 0);
	assert_string_equal(read.path, path);

	longest.path = NULL;
	message = received_request(&longest);
	assert_int_equal(collector_read_request(&message, &read), 0);
	assert_string_equal(read.path, "");
}

/* Where a field lies in a request or an answer, and what it may not be. */
struct spoiled {
	const char *name;
	size_t at;
	size_t size;
	uint32_t value;
};

static void spoil(struct channel_message *message, const struct spoiled *row)
{
	memcpy(message->body + row->at, &row->value, row->size);
}

#define FIELD(type, field) offsetof(struct type, field), sizeof(((struct type *)0)->field)

static void requests_that_nobody_means(void **state)
{
	static const size_t path_at = offsetof(struct collector_request, path);
	static const struct spoiled rows[] = {
		{ "no verb", FIELD(collector_request, verb), 0 },
		{ "an unknown verb", FIELD(collector_request, verb), _COLLECTOR_VERBS },
		{ "an unknown flag", FIELD(collector_request, flags), _COLLECTOR_FLAGS },
		{ "no time", FIELD(collector_request, timeout_ms), 0 },
		{ "too much time", FIELD(collector_request, timeout_ms),
		  COLLECTOR_TIMEOUT_MAX + 1 },
		{ "no process", FIELD(collector_request, pid), 0x80000000 },
		{ "a long build-id", FIELD(collector_request, build_id.size), BUILDID_MAX + 1 },
		{ "a clock that is none", FIELD(collector_request, clock.shift),
		  TSC_SHIFT_MAX + 1 },
		{ "a clock that is neither", FIELD(collector_request, clock.valid), 2 },
		{ "a clock that stands", FIELD(collector_request, clock.mult), 0 },
		{ "a NUL in the path", path_at, 1, 0 },
		{ "a path without an end", path_at + 7, 1, 'x' },
	};
	const struct channel_message good = received_request(&find_self);
	struct collector_request read = { .id = 42 };
	struct channel_message message;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		print_message("  %s\n", rows[i].name);
		message = good;
		spoil(&message, &rows[i]);
		assert_int_equal(collector_read_request(&message, &read), -EBADMSG);
		assert_int_equal(read.id, 42);
	}
	message = good;
	for (message.size = 0; message.size < good.size; message.size++)
		assert_int_equal(collector_read_request(&message, &read), -EBADMSG);
}

static void answers(void **state)
{
	static const struct spoiled rows[] = {
		{ "a result that is no error", FIELD(collector_answer, error), 1 },
		{ "an error that is none", FIELD(collector_answer, error), (uint32_t)-4096 },
		{ "a long build-id", FIELD(collector_answer, build_id.size), BUILDID_MAX + 1 },
		{ "a hash that is a path", offsetof(struct collector_answer, sha256), 4,
		  0x2f2e2e2f },
		{ "half a hash", offsetof(struct collector_answer, sha256) + 28, 4, 0 },
		{ "a hash without an end", offsetof(struct collector_answer, sha256) + 64, 1, '0' },
		{ "an unknown lack", FIELD(collector_answer, lack), _KERNELLACKS },
	};
	const struct channel_message good = received_answer(&found);
	struct collector_answer read = { .id = 42 };
	struct channel_message message;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		print_message("  %s\n", rows[i].name);
		message = good;
		spoil(&message, &rows[i]);
		assert_int_equal(collector_read_answer(&message, &read), -EBADMSG);
		assert_int_equal(read.id, 42);
	}
	message = good;
	message.size--;
	assert_int_equal(collector_read_answer(&message, &read), -EBADMSG);
	message.size += 2;
	assert_int_equal(collector_read_answer(&message, &read), -EBADMSG);
	assert_int_equal(collector_read_answer(&good, &read), 0);
	assert_memory_equal(&read, &found, sizeof(found));

	/* Of an error nothing else is believed. */
	message = good;
	spoil(&message, &(struct spoiled){ "", FIELD(collector_answer, error), (uint32_t)-ESTALE });
	assert_int_equal(collector_read_answer(&message, &read), 0);
	assert_int_equal(read.error, -ESTALE);
	assert_int_equal(read.waited_us, 10);
	assert_int_equal(read.size, 0);
	assert_int_equal(read.lack, KERNELLACK_NONE);
	assert_string_equal(read.sha256, "");
}

/* --- a collector ----------------------------------------------------------------------------- */

/* The program itself, which the link starts. */
struct fixture {
	char dir[TEMPDIR_SIZE];
	char program[128]; /* a copy of ourselves */
	struct collectorlink *link;
	pid_t collector;
};

/* Return: the process with that parent and name; 0 if there is none. */
static pid_t find_child(pid_t parent, const char *name)
{
	DIR *dir = opendir("/proc");
	const struct dirent *entry;
	pid_t child = 0;

	assert_non_null(dir);
	while (child == 0 && (entry = readdir(dir))) {
		char path[300], comm[64] = "";
		int pid, ppid;
		FILE *f;

		(void)snprintf(path, sizeof(path), "/proc/%s/stat", entry->d_name);
		f = entry->d_name[0] >= '1' && entry->d_name[0] <= '9' ? fopen(path, "re") : NULL;
		if (!f)
			continue;
		if (fscanf(f, "%d (%63[^)]) %*c %d", &pid, comm, &ppid) == 3 && ppid == parent &&
		    strcmp(comm, name) == 0)
			child = pid;
		(void)fclose(f);
	}
	(void)closedir(dir);
	return child;
}

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	char command[512];

	(void)unsetenv("NOTIFY_SOCKET");
	tempdir_make("collector", f->dir);
	assert_int_equal(chmod(f->dir, 0755), 0);
	(void)snprintf(f->program, sizeof(f->program), "%s/program", f->dir);
	(void)snprintf(command, sizeof(command), "cp /proc/%d/exe %s", (int)getpid(), f->program);
	assert_int_equal(system(command), 0);
	assert_int_equal(collectorlink_new(f->dir, false, &f->link), 0);
	f->collector = find_child(getpid(), "ptd-collector");
	assert_int_not_equal(f->collector, 0);
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	(void)collectorlink_free(f->link);
	(void)kill(f->collector, SIGCONT);
	(void)kill(f->collector, SIGKILL);
	(void)waitpid(f->collector, NULL, 0);
	tempdir_remove(f->dir);
	free(f);
	return 0;
}

/* A process of that user. */
static pid_t make_process(uid_t user)
{
	int ready[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	pid = fork();
	if (pid == 0) {
		if (user != geteuid() && setresuid(user, user, user) < 0)
			_exit(1);
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* a change of user resets it */
		(void)!write(ready[1], "", 1);
		for (;;)
			(void)pause();
	}
	(void)close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	(void)close(ready[0]);
	return pid;
}

static void end_process(pid_t pid)
{
	(void)kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static struct collector_request find_program(const struct fixture *f, pid_t pid)
{
	return (struct collector_request){ .verb = COLLECTOR_FIND,
					   .flags = COLLECTOR_TRUE | COLLECTOR_OPEN,
					   .timeout_ms = 20000,
					   .pid = (uint32_t)pid,
					   .path = f->program };
}

static int ask(struct fixture *f, struct collector_request *request, const int *fds,
	       struct collector_answer *ret_answer, int *ret_fd)
{
	*ret_fd = -1;
	return collectorlink_ask(f->link, request, fds, NULL, ret_answer, ret_fd);
}

/* What is found is described and can be passed on, but not read. */
static void a_file_is_found_and_copied(void **state)
{
	struct fixture *f = *state;
	struct collector_request request = find_program(f, getpid());
	struct collector_answer answer, hashed;
	char expected[SHA256_HEX_SIZE], hash[SHA256_HEX_SIZE];
	int fds[CHANNEL_FDS_MAX], fd, none;
	struct stat st;
	uint64_t size;
	char byte;

	assert_int_equal(ask(f, &request, NULL, &answer, &fds[0]), 0);
	assert_int_equal(stat(f->program, &st), 0);
	assert_int_equal(answer.ino, st.st_ino);
	assert_int_equal(answer.size, st.st_size);
	assert_int_equal(answer.uid, st.st_uid);
	assert_int_equal(read(fds[0], &byte, 1), -1);
	assert_int_equal(errno, EBADF);

	fds[1] = memfd_create("copy", MFD_CLOEXEC);
	request = (struct collector_request){ .verb = COLLECTOR_HASH,
					      .timeout_ms = 20000,
					      .size_max = UINT64_MAX };
	fd = fds[1];
	fds[1] = -1;
	assert_int_equal(ask(f, &request, fds, &hashed, &none), 0);
	assert_int_equal(none, -1);
	/* And how far it is. */
	fds[1] = memfd_create("progress", MFD_CLOEXEC);
	assert_int_equal(ask(f, &request, fds, &hashed, &none), 0);
	assert_int_equal(pread(fds[1], &size, sizeof(size), 0), sizeof(size));
	assert_true(size > 0 && size <= hashed.size);
	(void)close(fds[1]);
	fds[1] = fd;
	fd = open(f->program, O_RDONLY | O_CLOEXEC);
	assert_int_equal(sha256_fd(fd, NULL, NULL, expected, &size), 0);
	(void)close(fd);
	assert_string_equal(hashed.sha256, expected);

	request.verb = COLLECTOR_COPY;
	assert_int_equal(ask(f, &request, fds, &answer, &none), 0);
	assert_int_equal(sha256_fd(fds[1], NULL, NULL, hash, &size), 0);
	assert_string_equal(hash, expected);

	/* What is not to be done is not. */
	request.size_max = 10;
	assert_int_equal(ftruncate(fds[1], 0), 0);
	assert_int_equal(ask(f, &request, fds, &answer, &none), -EFBIG);
	request.verb = COLLECTOR_HASH;
	assert_int_equal(ask(f, &request, fds, &answer, &none), -EFBIG);
	request.size_max = UINT64_MAX;
	request.build_id = (struct buildid){ { 1 }, 1 };
	assert_int_equal(ask(f, &request, fds, &answer, &none), -ESTALE);
	assert_int_equal(ask(f, &request, NULL, &answer, &none), -EBADF);
	(void)close(fds[0]);
	(void)close(fds[1]);
}

/* What a process can execute is copied, and nothing else of it. */
static void executable_memory(void **state)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct fixture *f = *state;
	char *memory =
	    mmap(NULL, 3 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const int fds[CHANNEL_FDS_MAX] = { memfd_create("memory", MFD_CLOEXEC), -1 };
	struct collector_request request = { .verb = COLLECTOR_MEMORY,
					     .timeout_ms = 5000,
					     .start = (uintptr_t)memory,
					     .end = (uintptr_t)memory + 3 * page,
					     .size_max = 3 * page };
	struct collector_answer answer;
	char bytes[8] = "";
	int none;
	pid_t pid;

	assert_true(memory != MAP_FAILED);
	strcpy(memory, "secret");
	strcpy(memory + page, "code");
	strcpy(memory + 2 * page, "secret");
	assert_int_equal(mprotect(memory + page, page, PROT_READ | PROT_EXEC), 0);
	pid = make_process(geteuid() == 0 ? NOBODY : geteuid());
	request.pid = (uint32_t)pid;
	assert_int_equal(ask(f, &request, fds, &answer, &none), 0);
	assert_int_equal(none, -1);
	assert_int_equal(answer.size, page);
	assert_int_equal(pread(fds[0], bytes, sizeof(bytes), 0), sizeof(bytes));
	assert_string_equal(bytes, "");
	assert_int_equal(pread(fds[0], bytes, sizeof(bytes), (off_t)page), sizeof(bytes));
	assert_string_equal(bytes, "code");
	assert_int_equal(lseek(fds[0], 0, SEEK_END), 2 * page);

	request.size_max = 0;
	assert_int_equal(ask(f, &request, fds, &answer, &none), 0);
	assert_int_equal(answer.size, 0);
	assert_int_equal(ask(f, &request, NULL, &answer, &none), -EINVAL);
	request.end = request.start - 1;
	assert_int_equal(ask(f, &request, fds, &answer, &none), -EINVAL);
	end_process(pid);
	assert_int_equal(munmap(memory, 3 * page), 0);
	(void)close(fds[0]);
}

/* The records of the mappings of a process that is asked for, stamped by the clock that is passed.
 */
static void mappings_of_a_process(void **state)
{
	struct fixture *f = *state;
	const int fds[CHANNEL_FDS_MAX] = { memfd_create("mappings", MFD_CLOEXEC), -1 };
	const int given_up[CHANNEL_FDS_MAX] = { memfd_create("given up", MFD_CLOEXEC), -1 };
	struct collector_request request = { .verb = COLLECTOR_MAPPINGS,
					     .timeout_ms = 5000,
					     .size_max = 1 << 20,
					     .clock = { .valid = true, .shift = 1, .mult = 2 } };
	const uint64_t before = __rdtsc() & ~UINT64_C(1);
	struct collector_answer answer;
	uint8_t bytes[1 << 16];
	struct record_mmap2 mmap;
	struct record record;
	struct cursor c;
	unsigned n = 0;
	bool self = false;
	ssize_t size;
	int none, r;
	pid_t pid;

	pid = make_process(geteuid() == 0 ? NOBODY : geteuid());
	request.pid = (uint32_t)pid;
	/* Another request goes out first, and its answer is of no use any more. */
	assert_int_equal(collectorlink_begin(f->link, &request, given_up), 0);
	(void)close(given_up[0]);
	assert_int_equal(ask(f, &request, NULL, &answer, &none), -EINVAL);

	assert_int_equal(collectorlink_begin(f->link, &request, fds), 0);
	while ((r = collectorlink_finish(f->link, 0, &answer, &none)) == -EAGAIN)
		;
	assert_int_equal(r, 0);
	size = pread(fds[0], bytes, sizeof(bytes), 0);
	assert_true(size > 0 && size < (ssize_t)sizeof(bytes));
	c = cursor_from(bytes, (size_t)size);
	while (record_next(&c, &record) == 0) {
		assert_int_equal(record_get_mmap2(&record, &mmap), 0);
		assert_int_equal(mmap.pid, pid);
		assert_true(mmap.prot & PROT_EXEC);
		assert_true(record.trailer.time >= before && record.trailer.time <= __rdtsc());
		self = self || (strstr(mmap.name, "/test-collector") && mmap.build_id.size > 0);
		n++;
	}
	assert_true(n > 2 && self);

	/* Those that fit. */
	assert_int_equal(ftruncate(fds[0], 0), 0);
	assert_int_equal(lseek(fds[0], 0, SEEK_SET), 0);
	request.size_max = 200;
	assert_int_equal(ask(f, &request, fds, &answer, &none), 0);
	assert_in_range(lseek(fds[0], 0, SEEK_END), 1, 200);
	request.clock.valid = false;
	assert_int_equal(ask(f, &request, fds, &answer, &none), -EINVAL);
	end_process(pid);
	assert_int_equal(ask(f, &request, fds, &answer, &none), -ESRCH);
	(void)close(fds[0]);
}

/* What can be had of this kernel's files depends on who runs this. */
static void files_of_the_kernel(void **state)
{
	struct fixture *f = *state;
	const int fds[CHANNEL_FDS_MAX] = { memfd_create("names", MFD_CLOEXEC),
					   memfd_create("modules", MFD_CLOEXEC) };
	struct collector_request request = { .verb = COLLECTOR_KERNEL_NAMES,
					     .timeout_ms = 20000,
					     .size_max = 64 << 20 };
	struct collector_answer answer;
	int none;

	assert_int_equal(ask(f, &request, fds, &answer, &none), 0);
	print_message("  %s\n", answer.lack ? kernellack_text(answer.lack) : "names");
	if (!answer.lack)
		assert_int_equal(lseek(fds[0], 0, SEEK_END) + lseek(fds[1], 0, SEEK_END),
				 answer.size);
	request.size_max = 100;
	if (!answer.lack)
		assert_int_equal(ask(f, &request, fds, &answer, &none), -EFBIG);
	request.verb = COLLECTOR_KERNEL_CODE;
	assert_int_equal(ask(f, &request, NULL, &answer, &none), 0);
	print_message("  %s\n", answer.lack ? kernellack_text(answer.lack) : "code");
	assert_int_equal(none, -1);
	(void)close(fds[0]);
	(void)close(fds[1]);
}

/* A worker that hangs costs its user one request, and others nothing. */
static void a_user_whose_files_hang(void **state)
{
	struct fixture *f = *state;
	const uid_t user = geteuid() == 0 ? NOBODY : geteuid();
	const pid_t process = make_process(user);
	struct collector_request request = find_program(f, process);
	struct collector_answer answer;
	pid_t worker;
	int fd;

	assert_int_equal(ask(f, &request, NULL, &answer, &fd), 0);
	(void)close(fd);
	worker = find_child(f->collector, "ptd-collector");
	assert_int_not_equal(worker, 0);
	assert_int_equal(kill(worker, SIGSTOP), 0);

	if (user != geteuid()) {
		request = find_program(f, getpid());
		assert_int_equal(ask(f, &request, NULL, &answer, &fd), 0);
		(void)close(fd);
	}
	request = find_program(f, process);
	request.timeout_ms = 300;
	assert_int_equal(ask(f, &request, NULL, &answer, &fd), -ETIMEDOUT);
	request.timeout_ms = 20000;
	assert_int_equal(ask(f, &request, NULL, &answer, &fd), 0);
	(void)close(fd);
	end_process(process);
}

/* Of a process that has ended, ptd says whose it was. */
static void an_ended_process_of_a_user_whose_files_hang(void **state)
{
	static const uid_t others[] = { 1001, 0, (uid_t)-1, (uid_t)-2 };
	struct fixture *f = *state;
	const pid_t process = make_process(geteuid());
	struct collector_request request = find_program(f, process);
	struct collector_answer answer;
	pid_t worker;
	int fd;

	end_process(process);
	request.uid = 1000;
	assert_int_equal(ask(f, &request, NULL, &answer, &fd), 0);
	(void)close(fd);
	worker = find_child(f->collector, "ptd-collector");
	assert_int_not_equal(worker, 0);
	assert_int_equal(kill(worker, SIGSTOP), 0);

	for (size_t i = 0; i < 2 * ARRAY_LEN(others); i++) {
		request.uid = others[i / 2];
		request.pid = i % 2 ? (uint32_t)process : 0;
		assert_int_equal(ask(f, &request, NULL, &answer, &fd), 0);
		(void)close(fd);
	}
	request.uid = 1000;
	request.timeout_ms = 300;
	assert_int_equal(ask(f, &request, NULL, &answer, &fd), -ETIMEDOUT);
}

/* Ask until a collector answers. */
static int ask_until(struct fixture *f, struct collector_request *request, int *ret_fd)
{
	const uint64_t until = clock_ns(CLOCK_MONOTONIC) + 60 * SECOND;
	struct collector_answer answer;
	int r;

	while ((r = ask(f, request, NULL, &answer, ret_fd)) == -ENOTCONN &&
	       clock_ns(CLOCK_MONOTONIC) < until)
		(void)nanosleep(&(struct timespec){ .tv_nsec = 10000000 }, NULL);
	return r;
}

/* Then nothing is found, but nobody waits for long. */
static void a_collector_that_hangs(void **state)
{
	struct fixture *f = *state;
	struct collector_request request = find_program(f, getpid());
	atomic_bool cancel = true;
	struct collector_answer answer;
	int fd;

	assert_int_equal(kill(f->collector, SIGSTOP), 0);
	request.timeout_ms = 100;
	assert_int_equal(collectorlink_ask(f->link, &request, NULL, &cancel, &answer, &fd),
			 -ECANCELED);
	for (unsigned i = 0; i < 1000; i++)
		assert_int_equal(ask(f, &request, NULL, &answer, &fd), -ENOTCONN);
	assert_int_equal(kill(f->collector, SIGCONT), 0);
	request.timeout_ms = 20000;
	assert_int_equal(ask_until(f, &request, &fd), 0);
	(void)close(fd);
}

/* Another one is started. */
static void a_collector_that_ends(void **state)
{
	struct fixture *f = *state;
	struct collector_request request = find_program(f, getpid());
	int fd;

	assert_int_equal(kill(f->collector, SIGKILL), 0);
	assert_int_equal(ask_until(f, &request, &fd), 0);
	(void)close(fd);
	f->collector = find_child(getpid(), "ptd-collector");
	assert_int_not_equal(f->collector, 0);
}

/* What its successor can answer is answered at once. */
static void a_collector_with_a_successor(void **state)
{
	struct fixture *f = *state;
	_cleanup_(collectorlink_freep) struct collectorlink *other = NULL;
	struct collector_request request = find_program(f, getpid());
	struct collector_answer answer;
	int fd;

	end_process(f->collector);
	assert_int_equal(collectorlink_new(f->dir, false, &other), 0);
	f->collector = find_child(getpid(), "ptd-collector");
	assert_int_not_equal(f->collector, 0);
	assert_int_equal(ask(f, &request, NULL, &answer, &fd), 0);
	(void)close(fd);
}

/* A client that says nonsense is not served any more, but others are. */
static void a_client_that_says_nonsense(void **state)
{
	struct fixture *f = *state;
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	struct collector_request request = find_program(f, getpid());
	struct collector_answer answer;
	char byte;
	int found_fd;

	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s/collector/socket", f->dir);
	assert_int_equal(connect(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(write(fd, "nonsense", 8), 8);
	assert_int_equal(read(fd, &byte, 1), 0);
	(void)close(fd);
	assert_int_equal(ask(f, &request, NULL, &answer, &found_fd), 0);
	(void)close(found_fd);
}

/* Answer the request that was begun, as a collector that worked @waited_us on it. Meanwhile, 20 ms
 * pass. Return: what the link makes of it. */
static int answer_after_20_ms(struct collectorlink *link, int collector_fd, uint32_t waited_us)
{
	_cleanup_(channel_message_deinit) struct channel_message message;
	struct collector_request request;
	struct collector_answer answer = { .waited_us = waited_us };
	int fd = -1, r;

	assert_int_equal(channel_receive(collector_fd, COLLECTOR_VERSION, &message), 0);
	assert_int_equal(collector_read_request(&message, &request), 0);
	answer.id = request.id;
	assert_int_equal(collector_send_answer(collector_fd, &answer, -1), 0);
	now_ns += 20000000;
	r = collectorlink_finish(link, SECOND, &answer, &fd);
	(void)fd_close(fd);
	return r;
}

/* A thread that must not wait long gives up some requests if files keep it waiting, but not if all
 * takes long because other programs have the CPUs. */
static void a_busy_machine(void **state)
{
	static const struct row {
		const char *name;
		uint32_t waited_us;
		unsigned n_least, n_most; /* of 200 requests that are answered */
	} rows[] = {
		{ "files that take long", 20000, 25, 40 },
		{ "CPUs that others have", 0, 200, 200 },
	};
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	struct fixture f = {};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const int listen_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
		_cleanup_(fd_closep) int fd = -1;
		unsigned n = 0;

		print_message("  %s\n", rows[i].name);
		now_ns = 1000 * SECOND;
		tempdir_make("collector", f.dir);
		(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s/collector", f.dir);
		assert_int_equal(mkdir(address.sun_path, 0755), 0);
		(void)strcat(address.sun_path, "/socket");
		assert_int_equal(bind(listen_fd, (struct sockaddr *)&address, sizeof(address)), 0);
		assert_int_equal(listen(listen_fd, 1), 0);
		assert_int_equal(collectorlink_new(f.dir, true, &f.link), 0);
		fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC);
		assert_true(fd >= 0);
		for (unsigned k = 0; k < 200; k++) {
			struct collector_request request = { .verb = COLLECTOR_STAT,
							     .timeout_ms = 20000 };
			const int r = collectorlink_begin(f.link, &request, NULL);

			now_ns += 1000000;
			if (r == 0)
				assert_int_equal(answer_after_20_ms(f.link, fd, rows[i].waited_us),
						 0);
			else
				assert_int_equal(r, -EBUSY);
			n += r == 0;
		}
		assert_in_range(n, rows[i].n_least, rows[i].n_most);
		f.link = collectorlink_free(f.link);
		(void)close(listen_fd);
		tempdir_remove(f.dir);
	}
	now_ns = 0;
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(requests_are_read_as_written),
		cmocka_unit_test(requests_that_nobody_means),
		cmocka_unit_test(answers),
		cmocka_unit_test_setup_teardown(a_file_is_found_and_copied, set_up, tear_down),
		cmocka_unit_test_setup_teardown(executable_memory, set_up, tear_down),
		cmocka_unit_test_setup_teardown(mappings_of_a_process, set_up, tear_down),
		cmocka_unit_test_setup_teardown(files_of_the_kernel, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_user_whose_files_hang, set_up, tear_down),
		cmocka_unit_test_setup_teardown(an_ended_process_of_a_user_whose_files_hang, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(a_collector_that_hangs, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_collector_that_ends, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_collector_with_a_successor, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_client_that_says_nonsense, set_up, tear_down),
		cmocka_unit_test(a_busy_machine),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
