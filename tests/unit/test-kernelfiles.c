/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Kernel files: a collector that looks at a folder like /proc writes them, or one that lies.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "daemon/helper/collector/message.h"
#include "daemon/helper/collector/work.h"
#include "daemon/snapshot/kernelfiles.h"
#include "tests/lib/tempdir.h"
#include "util/dirs.h"

#define KERNEL UINT64_C(0xffffffff81000000)
#define PAGE   4096
#define MIB    (UINT64_C(1) << 20)

static const char kallsyms[] = "ffffffff81000000 T _text\n"
			       "ffffffff81001800 T _etext\n"
			       "ffffffff81002000 D _sdata\n";
static const char modules[] = "one 4096 0 - Live 0xffffffffc0100000\n";

/* What the collector of the test does. */
struct lie {
	enum collector_verb verb; /* to which this is the answer; 0: to none */
	int error;
	enum kernellack lack;
	uint64_t size;       /* that the first file is given; 0: it stays as it is */
	const void *records; /* that the second one has; NULL: it stays */
	size_t records_size;
};

struct fixture {
	char dir[TEMPDIR_SIZE];
	int out_fd, listen_fd, stop[2];
	struct work work;
	pthread_t thread;

	struct lie lie;
	atomic_bool is_silent;
	atomic_uint n_requests;
	uint64_t size_max[_COLLECTOR_VERBS];

	unsigned n_records;
	char name[64]; /* of the last one */
	int refuse;    /* what put() returns */
	atomic_bool cancel;
};

/* --- the collector ---------------------------------------------------------------------------- */

static void tell_lie(const struct lie *lie, const int fds[static 2],
		     struct collector_answer *answer)
{
	answer->error = lie->error;
	answer->lack = lie->lack;
	if (lie->size > 0)
		assert_int_equal(ftruncate(fds[0], (off_t)lie->size), 0);
	if (!lie->records)
		return;
	assert_int_equal(ftruncate(fds[1], 0), 0);
	assert_int_equal(pwrite(fds[1], lie->records, lie->records_size, 0), lie->records_size);
}

static void answer_one(struct fixture *f, int fd)
{
	_cleanup_(channel_message_deinit) struct channel_message message;
	struct collector_request request;
	struct collector_answer answer;
	int none;

	if (channel_receive(fd, COLLECTOR_VERSION, &message) < 0)
		return;
	assert_int_equal(collector_read_request(&message, &request), 0);
	f->n_requests++;
	f->size_max[request.verb] = request.size_max;
	work_do(&f->work, &request, message.fds, &answer, &none);
	assert_int_equal(none, -1);
	if (request.verb == f->lie.verb)
		tell_lie(&f->lie, message.fds, &answer);
	if (!f->is_silent)
		(void)!collector_send_answer(fd, &answer, -1);
}

static void *serve(void *userdata)
{
	struct fixture *f = userdata;
	struct pollfd fds[3] = { { .fd = f->stop[0], .events = POLLIN },
				 { .fd = f->listen_fd, .events = POLLIN },
				 { .fd = -1, .events = POLLIN } };

	for (;;) {
		assert_true(poll(fds, 3, -1) > 0);
		if (fds[0].revents)
			break;
		if (fds[2].revents & POLLIN)
			answer_one(f, fds[2].fd);
		if (fds[2].revents & POLLHUP)
			fds[2].fd = fd_close(fds[2].fd);
		if (fds[1].revents) {
			(void)fd_close(fds[2].fd);
			fds[2].fd = accept4(f->listen_fd, NULL, NULL, SOCK_CLOEXEC);
		}
	}
	(void)fd_close(fds[2].fd);
	return NULL;
}

/* --- set-up ----------------------------------------------------------------------------------- */

static void write_kcore(const struct fixture *f)
{
	static uint8_t bytes[4 * PAGE];
	const Elf64_Ehdr header = { .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64 },
				    .e_phoff = sizeof(header),
				    .e_phentsize = sizeof(Elf64_Phdr),
				    .e_phnum = 1 };
	const Elf64_Phdr h = {
		.p_type = PT_LOAD, .p_offset = PAGE, .p_vaddr = KERNEL, .p_memsz = 3 * PAGE
	};

	memset(bytes, 0xcc, sizeof(bytes));
	memcpy(bytes, &header, sizeof(header));
	memcpy(bytes + sizeof(header), &h, sizeof(h));
	tempdir_put(f->dir, "proc/kcore", bytes, sizeof(bytes));
}

static int make_folder(const struct fixture *f, const char *name)
{
	char path[128];

	(void)snprintf(path, sizeof(path), "%s/%s", f->dir, name);
	assert_int_equal(mkdir(path, 0700), 0);
	return dirs_open(AT_FDCWD, path);
}

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	/* The link is not to start a collector. */
	assert_int_equal(setenv("NOTIFY_SOCKET", "/none", 1), 0);
	tempdir_make("kernelfiles", f->dir);
	work_init(&f->work);
	(void)fd_close(f->work.proc_fd);
	f->work.proc_fd = make_folder(f, "proc");
	f->out_fd = make_folder(f, "out");
	(void)close(make_folder(f, "collector"));
	tempdir_put(f->dir, "proc/kallsyms", kallsyms, strlen(kallsyms));
	tempdir_put(f->dir, "proc/modules", modules, strlen(modules));
	write_kcore(f);

	f->listen_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s/collector/socket", f->dir);
	assert_int_equal(bind(f->listen_fd, (const struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(f->listen_fd, 4), 0);
	assert_int_equal(pipe2(f->stop, O_CLOEXEC), 0);
	assert_int_equal(pthread_create(&f->thread, NULL, serve, f), 0);
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	(void)close(f->stop[1]);
	(void)pthread_join(f->thread, NULL);
	(void)close(f->stop[0]);
	(void)close(f->listen_fd);
	(void)close(f->out_fd);
	work_deinit(&f->work);
	tempdir_remove(f->dir);
	(void)unsetenv("NOTIFY_SOCKET");
	free(f);
	return 0;
}

static int put(void *userdata, const void *bytes, size_t size)
{
	struct fixture *f = userdata;
	const struct perf_event_header *header = bytes;
	const char *name = (const char *)bytes + sizeof(*header) + 32;

	assert_int_equal(header->type, PERF_RECORD_MMAP);
	assert_int_equal(header->misc, PERF_RECORD_MISC_KERNEL);
	assert_int_equal(header->size, size);
	f->n_records++;
	(void)snprintf(f->name, sizeof(f->name), "%s", name);
	return f->refuse;
}

static int write_files(struct fixture *f, struct kernelfiles *ret_files, const char **reterr_why)
{
	return kernelfiles_write(&(struct kernelfiles_request){ .runtime_dir = f->dir,
								.dir_fd = f->out_fd,
								.cancel = &f->cancel,
								.put = put,
								.userdata = f },
				 ret_files, reterr_why);
}

static off_t size_of(const struct fixture *f, const char *name)
{
	struct stat st;

	assert_int_equal(fstatat(f->out_fd, name, &st, 0), 0);
	assert_int_equal(st.st_mode & 07777, 0640);
	return st.st_size;
}

/* --- tests ------------------------------------------------------------------------------------ */

static void all_files(void **state)
{
	struct fixture *f = *state;
	struct kernelfiles files;
	const char *why = NULL;

	(void)umask(027);
	assert_int_equal(kernelfiles_check(f->dir, &why), 0);
	assert_int_equal(write_files(f, &files, &why), 0);
	assert_null(why);
	/* Of the names those of functions, of the code what kcore has. */
	assert_int_equal(size_of(f, "kallsyms"), 51);
	assert_int_equal(size_of(f, "modules"), strlen(modules));
	assert_true(size_of(f, "kcore") > 2 * PAGE);
	assert_int_equal(files.bytes, 51 + strlen(modules) + 2 * PAGE);
	assert_int_equal(files.bytes_unreadable, PAGE);
	assert_int_equal(files.n_left_out, 0);
	assert_int_equal(f->n_records, 2);
	assert_string_equal(f->name, "[one]");
	assert_int_equal(f->size_max[COLLECTOR_KERNEL_NAMES], 64 * MIB);
	assert_int_equal(f->size_max[COLLECTOR_KERNEL_CODE], 512 * MIB);
	assert_int_equal(f->n_requests, 3);

	/* The files are there already. */
	assert_int_equal(write_files(f, &files, &why), -EEXIST);
}

/* The code is that of the names, even if a module was loaded meanwhile; but names are not kept for
 * a later snapshot. */
static void names_belong_to_code(void **state)
{
	static const struct {
		bool names;
		const char *modules; /* before the code is copied */
		unsigned n_records;
	} rows[] = {
		{ true, "", 2 },
		{ false, "", 1 },
	};
	struct fixture *f = *state;
	struct collector_answer answer;
	int none;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const int fds[] = { memfd_create("a", MFD_CLOEXEC),
				    memfd_create("b", MFD_CLOEXEC) };
		struct collector_request request = { .verb = COLLECTOR_KERNEL_NAMES,
						     .size_max = MIB };
		uint8_t bytes[4096];
		ssize_t n;

		print_message("  row %zu\n", i);
		if (rows[i].names)
			work_do(&f->work, &request, fds, &answer, &none);
		assert_int_equal(answer.error, 0);
		tempdir_put(f->dir, "proc/modules", rows[i].modules, strlen(rows[i].modules));
		assert_int_equal(ftruncate(fds[0], 0), 0);
		assert_int_equal(ftruncate(fds[1], 0), 0);
		assert_int_equal(lseek(fds[1], 0, SEEK_SET), 0);
		request.verb = COLLECTOR_KERNEL_CODE;
		work_do(&f->work, &request, fds, &answer, &none);
		assert_int_equal(answer.error, 0);
		assert_int_equal(answer.lack, KERNELLACK_NONE);
		n = pread(fds[1], bytes, sizeof(bytes), 0);
		f->n_records = 0;
		assert_int_equal(kernelfiles_put_records(bytes, (size_t)n, put, f), 0);
		assert_int_equal(f->n_records, rows[i].n_records);
		(void)close(fds[0]);
		(void)close(fds[1]);
	}
}

/* The worker is given what it needs, or does nothing. */
static void requests_without_files(void **state)
{
	static const struct {
		enum collector_verb verb;
		bool first, second;
		int error;
	} rows[] = {
		{ COLLECTOR_KERNEL_NAMES, false, false, -EINVAL },
		{ COLLECTOR_KERNEL_NAMES, true, false, -EINVAL },
		{ COLLECTOR_KERNEL_NAMES, false, true, -EINVAL },
		{ COLLECTOR_KERNEL_CODE, true, false, -EINVAL },
		{ COLLECTOR_KERNEL_CODE, false, true, -EINVAL },
		{ COLLECTOR_KERNEL_CODE, false, false, 0 },
	};
	struct fixture *f = *state;
	const int fd = memfd_create("file", MFD_CLOEXEC);
	struct collector_answer answer;
	int none;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const int fds[] = { rows[i].first ? fd : -1, rows[i].second ? fd : -1 };
		const struct collector_request request = { .verb = rows[i].verb, .size_max = MIB };

		print_message("  row %zu\n", i);
		work_do(&f->work, &request, fds, &answer, &none);
		assert_int_equal(answer.error, rows[i].error);
		assert_int_equal(lseek(fd, 0, SEEK_END), 0);
	}
	(void)close(fd);
}

#define NO_MMAP "\x03\x00\x00\x00\x01\x00\x08\x00"
#define CUT     "\x01\x00\x00\x00\x01\x00\x40\x00"

/* What the collector may say instead, and what becomes of the snapshot. */
static void lies(void **state)
{
	static const struct {
		struct lie lie;
		int r;
		const char *why;
	} rows[] = {
		{ { .verb = COLLECTOR_KERNEL_NAMES, .lack = KERNELLACK_NO_ADDRESS },
		  KERNELFILES_NONE,
		  "CAP_SYSLOG" },
		{ { .verb = COLLECTOR_KERNEL_CODE, .lack = KERNELLACK_NO_CODE },
		  KERNELFILES_NONE,
		  "CAP_SYS_RAWIO" },
		{ { .verb = COLLECTOR_KERNEL_NAMES, .error = -ETIMEDOUT },
		  KERNELFILES_NONE,
		  "did not answer" },
		{ { .verb = COLLECTOR_KERNEL_CODE, .error = -ECONNABORTED },
		  KERNELFILES_NONE,
		  "did not answer" },
		{ { .verb = COLLECTOR_KERNEL_CODE, .error = -ELOOP },
		  KERNELFILES_NONE,
		  "could not read" },
		{ { .verb = COLLECTOR_KERNEL_NAMES, .error = -ENOSPC }, -ENOSPC, NULL },
		{ { .verb = COLLECTOR_KERNEL_CODE, .error = -EDQUOT }, -EDQUOT, NULL },
		{ { .verb = COLLECTOR_KERNEL_NAMES, .size = 64 * MIB }, 0, NULL },
		{ { .verb = COLLECTOR_KERNEL_NAMES, .size = 64 * MIB + 1 },
		  KERNELFILES_NONE,
		  "no sense" },
		{ { .verb = COLLECTOR_KERNEL_CODE, .size = 544 * MIB + 1 },
		  KERNELFILES_NONE,
		  "no sense" },
		{ { .verb = COLLECTOR_KERNEL_CODE, .records = NO_MMAP, .records_size = 8 },
		  KERNELFILES_NONE,
		  "no sense" },
		{ { .verb = COLLECTOR_KERNEL_CODE, .records = CUT, .records_size = 8 },
		  KERNELFILES_NONE,
		  "no sense" },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct kernelfiles files = { .bytes = 7 };
		const char *why = NULL;
		struct fixture *f;

		(void)tear_down(state);
		(void)set_up(state);
		f = *state;
		print_message("  row %zu\n", i);
		f->lie = rows[i].lie;
		assert_int_equal(write_files(f, &files, &why), rows[i].r);
		assert_int_equal(why != NULL, rows[i].why != NULL);
		if (why)
			assert_non_null(strstr(why, rows[i].why));
		if (rows[i].r != 0) {
			assert_int_equal(files.bytes, 7);
			assert_int_equal(f->n_records, 0);
		}
	}
}

/* Records that the kernel's own could not be. */
static void records(void **state)
{
	static const struct {
		const char *name;
		enum perf_event_type type;
		uint16_t misc;
		uint32_t pid;
		size_t cut;
		int r;
	} rows[] = {
		{ "good", PERF_RECORD_MMAP, PERF_RECORD_MISC_KERNEL, UINT32_MAX, 0, 0 },
		{ "another type", PERF_RECORD_MMAP2, PERF_RECORD_MISC_KERNEL, UINT32_MAX, 0,
		  -EBADMSG },
		{ "a process's", PERF_RECORD_MMAP, PERF_RECORD_MISC_KERNEL, 1, 0, -EBADMSG },
		{ "of user code", PERF_RECORD_MMAP, PERF_RECORD_MISC_USER, UINT32_MAX, 0,
		  -EBADMSG },
		{ "cut", PERF_RECORD_MMAP, PERF_RECORD_MISC_KERNEL, UINT32_MAX, 8, -EBADMSG },
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct trailer trailer = record_trailer(5, 6, 7);
		struct record_mmap2 mmap = { .misc = PERF_RECORD_MISC_KERNEL,
					     .pid = UINT32_MAX,
					     .addr = 1,
					     .len = 2,
					     .name = "[first]" };
		uint8_t bytes[1024];
		size_t size;

		print_message("  %s\n", rows[i].name);
		size = record_write_mmap(&mmap, &trailer, bytes, sizeof(bytes));
		mmap.name = "[second]";
		mmap.pid = rows[i].pid;
		mmap.misc = rows[i].misc;
		size += (rows[i].type == PERF_RECORD_MMAP ? record_write_mmap : record_write_mmap2)(
		    &mmap, &trailer, bytes + size, sizeof(bytes) - size);
		f->n_records = 0;
		assert_int_equal(kernelfiles_put_records(bytes, size - rows[i].cut, put, f),
				 rows[i].r);
		assert_int_equal(f->n_records, rows[i].r == 0 ? 2 : 0);
	}
	assert_string_equal(f->name, "[second]");
	assert_int_equal(kernelfiles_put_records(NULL, 0, put, f), 0);
}

/* Whoever takes the snapshot has changed its mind, or has no room. */
static void given_up(void **state)
{
	struct fixture *f = *state;
	struct kernelfiles files = { .bytes = 7 };
	const uint64_t begun = clock_ns(CLOCK_MONOTONIC);
	const char *why = NULL;

	f->refuse = -ENOSPC;
	assert_int_equal(write_files(f, &files, &why), -ENOSPC);
	f->is_silent = true;
	f->cancel = true;
	assert_int_equal(unlinkat(f->out_fd, "kallsyms", 0), 0);
	assert_int_equal(unlinkat(f->out_fd, "modules", 0), 0);
	assert_int_equal(write_files(f, &files, &why), -ECANCELED);
	assert_null(why);
	assert_int_equal(files.bytes, 7);
	assert_true(clock_ns(CLOCK_MONOTONIC) - begun < UINT64_C(60000000000));
}

/* One that is not there at first is waited for, but not for ever. */
static void no_collector(void **state)
{
	struct fixture *f = *state;
	char from[128], to[128];
	const char *why = NULL;
	uint64_t begun;

	(void)snprintf(from, sizeof(from), "%s/collector", f->dir);
	(void)snprintf(to, sizeof(to), "%s/away", f->dir);
	assert_int_equal(rename(from, to), 0);
	begun = clock_ns(CLOCK_MONOTONIC);
	assert_int_equal(kernelfiles_check(f->dir, &why), KERNELFILES_NONE);
	assert_non_null(strstr(why, "did not answer"));
	assert_in_range(clock_ns(CLOCK_MONOTONIC) - begun, UINT64_C(4000000000),
			UINT64_C(90000000000));
	assert_int_equal(rename(to, from), 0);
	assert_int_equal(kernelfiles_check(f->dir, &why), 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(all_files, set_up, tear_down),
		cmocka_unit_test_setup_teardown(names_belong_to_code, set_up, tear_down),
		cmocka_unit_test_setup_teardown(requests_without_files, set_up, tear_down),
		cmocka_unit_test_setup_teardown(lies, set_up, tear_down),
		cmocka_unit_test_setup_teardown(records, set_up, tear_down),
		cmocka_unit_test_setup_teardown(given_up, set_up, tear_down),
		cmocka_unit_test_setup_teardown(no_collector, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
