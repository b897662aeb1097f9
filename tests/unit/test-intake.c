/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The records of a source that has them from us, and what those who are told of them then know. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <systemd/sd-event.h>
#include <time.h>
#include <unistd.h>

#include "daemon/intake.h"
#include "daemon/objects/copier.h"
#include "daemon/objects/objectstore.h"
#include "daemon/sideband/sideband.h"
#include "daemon/source/source.h"
#include "daemon/spool/spool.h"
#include "tests/lib/copied.h"
#include "tests/lib/logged.h"
#include "tests/lib/tempdir.h"
#include "tests/unit/records.h"
#include "tests/unit/sources.h"

/* Some tests have a time of their own, in ns; 0: it is that of the machine. */
static uint64_t now_ns;
static uint64_t pause_us; /* for which the intake was last to rest */

int clock_gettime(clockid_t id, struct timespec *ret_time)
{
	if (now_ns == 0)
		return (int)syscall(SYS_clock_gettime, id, ret_time);
	*ret_time = (struct timespec){ .tv_sec = (time_t)(now_ns / 1000000000),
				       .tv_nsec = (long)(now_ns % 1000000000) };
	return 0;
}

int sd_event_source_set_time_relative(sd_event_source *source, uint64_t usec)
{
	uint64_t now;

	pause_us = usec;
	assert_true(sd_event_now(sd_event_source_get_event(source), CLOCK_MONOTONIC, &now) >= 0);
	return sd_event_source_set_time(source, now + usec);
}

struct fake {
	struct source source;
	struct records records; /* those that were not taken yet */
	int tasks_error, code_error;
	uint8_t *code; /* that is not taken yet */
	size_t code_size;
	unsigned n_drained;
	uint64_t takes_us; /* that it takes to drain the records, if time is the test's */
	bool active;
};

static struct source_status status(struct source *source)
{
	return (struct source_status){ .is_active = ((struct fake *)source)->active };
}

static int drain_code(struct fake *fake, uint8_t **ret_bytes, size_t *ret_size)
{
	if (fake->code_error < 0)
		return fake->code_error;
	*ret_bytes = fake->code;
	*ret_size = fake->code_size;
	fake->code = NULL;
	fake->code_size = 0;
	return 0;
}

static int drain_stream(struct source *source, enum source_stream stream, uint8_t **ret_bytes,
			size_t *ret_size)
{
	struct fake *fake = (struct fake *)source;

	if (stream == SOURCE_CODE)
		return drain_code(fake, ret_bytes, ret_size);
	fake->n_drained++;
	now_ns += now_ns > 0 ? fake->takes_us * 1000 : 0;
	if (fake->tasks_error < 0)
		return fake->tasks_error;
	*ret_bytes = fake->records.bytes;
	*ret_size = fake->records.size;
	fake->records = (struct records){};
	return 0;
}

static int owner(struct source *source, uint32_t pid, uid_t *ret_uid)
{
	(void)source;
	*ret_uid = pid == 70 ? 1001 : 0;
	return 0;
}

static const struct source_ops fake_ops = {
	.status = status,
	.drain = drain_stream,
	.tasks = sources_tell_known,
	.owner = owner,
};

static void on_drained(void *userdata)
{
	(void)userdata;
}

struct fixture {
	struct fake fake;
	char dir[TEMPDIR_SIZE];
	int store_fd;
	struct objectstore *store;
	sd_event *event;
	struct intake *intake;
};

static int set_up_with(void **state, bool gives_code, int records_fd)
{
	struct fixture *f = calloc(1, sizeof(*f));
	char path[128];

	tempdir_make("intake", f->dir);
	(void)snprintf(path, sizeof(path), "%s/store", f->dir);
	assert_int_equal(mkdir(path, 0750), 0);
	f->store_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(objectstore_new(f->store_fd,
					 &(struct spool_limits){ .max_use = UINT64_MAX }, f->dir,
					 &f->store),
			 0);
	assert_int_equal(sd_event_new(&f->event), 0);
	f->fake.source = (struct source){ .ops = &fake_ops,
					  .facts.gives_code = gives_code,
					  .records_fd = records_fd };
	assert_int_equal(intake_new(&(struct intake_options){ .event = f->event,
							      .source = &f->fake.source,
							      .store = f->store,
							      .runtime_dir = f->dir,
							      .sideband_max = 64 << 20,
							      .drained = on_drained },
				    &f->intake),
			 0);
	*state = f;
	return 0;
}

static int set_up(void **state)
{
	return set_up_with(state, false, -1);
}

/* As programs under QEMU are recorded. */
static int set_up_code(void **state)
{
	return set_up_with(state, true, -1);
}

/* As hardware is. */
static int set_up_fd(void **state)
{
	const int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

	assert_true(fd >= 0);
	return set_up_with(state, false, fd);
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	(void)intake_free(f->intake);
	(void)sd_event_unref(f->event);
	(void)objectstore_free(f->store);
	(void)close(f->store_fd);
	(void)close(f->fake.source.records_fd);
	free(f->fake.code);
	records_deinit(&f->fake.records);
	tempdir_remove(f->dir);
	free(f);
	return 0;
}

/* A process that was there. */
static uint32_t dead_pid(void)
{
	const pid_t pid = fork();

	if (pid == 0)
		_exit(0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	return (uint32_t)pid;
}

static const struct object *find(const struct fixture *f, const char *path)
{
	const struct object *found = NULL;
	struct object **list;
	size_t n;

	assert_int_equal(objectstore_list(f->store, &list, &n), 0);
	for (size_t i = 0; i < n; i++) {
		if (strcmp(list[i]->path, path) == 0)
			found = list[i];
		(void)object_unref(list[i]);
	}
	free(list);
	return found;
}

/* What the sideband's records of mappings say, one line each. */
static void list_mapped(const struct fixture *f, char *ret_text, size_t size)
{
	struct sideband_view view;
	size_t n = 0;

	assert_int_equal(sideband_view_init(intake_sideband(f->intake), &view), 0);
	for (size_t i = 0; i < view.n_spans; i++) {
		struct cursor c = view.spans[i];
		struct record_mmap2 mmap;
		struct record record;

		while (record_next(&c, &record) == 0)
			if (record_get_mmap2(&record, &mmap) == 0)
				n += (size_t)snprintf(ret_text + n, size - n,
						      "%u: %u %u %u:%u:%" PRIu64 "\n", mmap.pid,
						      mmap.build_id.size, mmap.prot, mmap.maj,
						      mmap.min, mmap.ino);
	}
	sideband_view_deinit(&view);
}

/*
 * Two files of one path and build-id, as a mount namespace can have them: records name the second
 * one by its inode, so that it is not taken for the first.
 */
static void twins_are_named_by_inode(void **state)
{
	struct fixture *f = *state;
	struct records *r = &f->fake.records;
	char path[128], other[128], self[64], command[1024], text[1024] = "", expected[1024];
	const uint32_t pid = dead_pid();
	struct object **list;
	struct buildid id;
	struct stat st;
	size_t n;
	int fd;

	now_ns = 1; /* it is waited for each */
	(void)snprintf(path, sizeof(path), "%s/program", f->dir);
	(void)snprintf(other, sizeof(other), "%s/other", f->dir);
	(void)snprintf(self, sizeof(self), "/proc/%d/exe", (int)getpid());
	(void)snprintf(command, sizeof(command), "cp %s %s && cp %s %s && echo >>%s", self, path,
		       self, other, other);
	assert_int_equal(system(command), 0);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_int_equal(buildid_read(fd, &id), 0);
	(void)close(fd);
	records_comm(r, pid, "first", 1);
	records_mmap2(r, pid, path, &id, 2);
	intake_drain(f->intake);
	assert_int_equal(stat(other, &st), 0);
	assert_int_equal(rename(other, path), 0);
	for (uint64_t time = 3; time < 5; time++) {
		records_comm(r, pid + 1, "second", time);
		records_mmap2(r, pid + 1, path, &id, time);
		intake_drain(f->intake);
	}
	list_mapped(f, text, sizeof(text));
	(void)snprintf(expected, sizeof(expected), "%u: %u %u 0:0:0\n%u: 0 %u %u:%u:%ju\n", pid,
		       id.size, PROT_EXEC | PROT_READ, pid + 1, PROT_EXEC | PROT_READ,
		       major(st.st_dev), minor(st.st_dev), (uintmax_t)st.st_ino);
	assert_memory_equal(text, expected, strlen(expected));
	assert_int_equal(objectstore_list(f->store, &list, &n), 0);
	assert_int_equal(n, 2);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(object_is_by_inode(list[i]), i == 1);
		(void)object_unref(list[i]);
	}
	free(list);
}

/*
 * A server that was started before; then one compiler's test after the other. What the server has
 * mapped is named no more, and the others are the latest; but it is the server that still runs.
 */
static void a_server_among_many(void **state)
{
	enum { N = OBJECTSTORE_SOFT_MAX + OBJECTSTORE_SOFT_MAX / 4 };
	struct fixture *f = *state;
	struct records *r = &f->fake.records;
	const uint32_t test = dead_pid();
	char server[128], path[128];
	const struct object *object;
	uint64_t time = 1;

	now_ns = 1; /* it is waited for each */
	(void)snprintf(server, sizeof(server), "%s/server", f->dir);
	tempdir_put_text(f->dir, "server", "\177ELF of a server");
	tempdir_put_text(f->dir, "test", "\177ELF of a test");
	records_comm(r, (uint32_t)getpid(), "server", time++);
	records_mmap2(r, (uint32_t)getpid(), server, NULL, time++);
	for (unsigned i = 0; i < N; i++) {
		(void)snprintf(path, sizeof(path), "%s/test%u", f->dir, i);
		assert_int_equal(symlink("test", path), 0);
		records_mmap2(r, test, path, NULL, time++);
		if (i % 16 < 15)
			continue;
		intake_drain(f->intake);
		/* What waits to be copied is in use. */
		assert_int_equal(copied_wait(f->store, find(f, path)), 0);
		while (sd_event_run(f->event, 0) > 0)
			;
	}
	assert_in_range(objectstore_count(f->store), OBJECTSTORE_SOFT_MAX / 2,
			OBJECTSTORE_SOFT_MAX);
	object = find(f, server);
	assert_non_null(object);
	assert_int_equal(copied_wait(f->store, object), 0);
	assert_int_equal(object->error, 0);
	(void)snprintf(path, sizeof(path), "%s/test%u", f->dir, N - 1);
	assert_non_null(find(f, path));
	(void)snprintf(path, sizeof(path), "%s/test0", f->dir);
	assert_null(find(f, path));
	now_ns = 0;
}

/* Add records until an epoch of the sideband is over, and do what follows from that. */
static void end_epoch(struct fixture *f, uint64_t *time)
{
	const struct sideband *sideband = intake_sideband(f->intake);
	const uint64_t n = sideband_epochs(sideband);

	while (sideband_epochs(sideband) == n) {
		for (unsigned i = 0; i < 10; i++)
			records_comm(&f->fake.records, (uint32_t)getpid(), "server", (*time)++);
		intake_drain(f->intake);
	}
	intake_forget(f->intake);
}

/* The object of a program that has ended is forgotten together with the last record that names it,
 * not before. That of a server stays, although the server mapped it even earlier. */
static void objects_of_past_epochs(void **state)
{
	struct fixture *f = *state;
	struct records *r = &f->fake.records;
	const uint32_t test = dead_pid();
	char server[128], ended[128];
	uint64_t time = 1;

	(void)snprintf(server, sizeof(server), "%s/server", f->dir);
	(void)snprintf(ended, sizeof(ended), "%s/ended", f->dir);
	tempdir_put_text(f->dir, "server", "\177ELF of a server");
	tempdir_put_text(f->dir, "ended", "\177ELF of a program that ended");
	sideband_set_max(intake_sideband(f->intake), 1);
	records_comm(r, (uint32_t)getpid(), "server", time++);
	records_mmap2(r, (uint32_t)getpid(), server, NULL, time++);
	records_mmap2(r, test, ended, NULL, time++);
	intake_drain(f->intake);
	assert_int_equal(copied_wait(f->store, find(f, server)), 0);
	assert_int_equal(copied_wait(f->store, find(f, ended)), 0);
	while (sd_event_run(f->event, 0) > 0)
		;

	end_epoch(f, &time);
	assert_non_null(find(f, ended));
	end_epoch(f, &time);
	assert_null(find(f, ended));
	assert_non_null(find(f, server));
}

/* All that there is room for is in use: one line says so, not one for each that comes. */
static void no_room_is_said_once(void **state)
{
	struct fixture *f = *state;
	const int stderr_fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
	const int log = memfd_create("log", MFD_CLOEXEC);
	char path[128], text[4096] = "";

	/* They cannot be kept, which is not asked for, so that each waits to be told of. */
	for (unsigned i = 0; i < OBJECTSTORE_MAX + 100; i++) {
		(void)snprintf(path, sizeof(path), "/no/such/file/%u", i);
		records_mmap2(&f->fake.records, 1, path, NULL, 1 + i);
	}
	assert_true(dup2(log, STDERR_FILENO) >= 0);
	intake_drain(f->intake);
	assert_true(dup2(stderr_fd, STDERR_FILENO) >= 0);
	assert_int_equal(objectstore_count(f->store), OBJECTSTORE_MAX);
	assert_true(pread(log, text, sizeof(text) - 1, 0) > 0);
	(void)snprintf(path, sizeof(path), "/no/such/file/%u: cannot keep a copy", OBJECTSTORE_MAX);
	assert_non_null(strstr(text, path));
	assert_non_null(strstr(text, "too many are in use"));
	assert_ptr_equal(strchr(text, '\n'), strrchr(text, '\n'));
	(void)close(stderr_fd);
	(void)close(log);
}

/* Return: what is logged while records are taken, and what follows from them is seen to. */
static const char *drain(struct fixture *f)
{
	logged_begin();
	intake_drain(f->intake);
	while (sd_event_run(f->event, 0) > 0)
		;
	return logged_end();
}

/* Some are said one by one, since each is another hole in snapshots. */
static void objects_that_cannot_be_kept(void **state)
{
	struct fixture *f = *state;
	const char *said;

	records_comm(&f->fake.records, (uint32_t)getpid(), "x", 1);
	records_mmap2(&f->fake.records, (uint32_t)getpid(), "/no/such/file", NULL, 2);
	/* It is another thread that looks for it. */
	for (said = drain(f); !said[0]; said = drain(f))
		(void)usleep(1000);
	assert_string_equal(said, "test-intake: /no/such/file: cannot keep a copy of this object, "
				  "snapshots will miss it: No such file or directory\n");
	assert_non_null(find(f, "/no/such/file"));
	assert_string_equal(drain(f), "");
}

/* One program may map thousands of them: the log names ten a minute. */
static void many_that_cannot_be_kept(void **state)
{
	struct fixture *f = *state;
	char *text = NULL, path[128];
	size_t size = 0, n = 0;
	FILE *said = open_memstream(&text, &size);

	records_comm(&f->fake.records, (uint32_t)getpid(), "x", 1);
	for (unsigned i = 0; i < 100; i++) {
		(void)snprintf(path, sizeof(path), "/no/such/file/%u", i);
		records_mmap2(&f->fake.records, (uint32_t)getpid(), path, NULL, 2 + i);
	}
	do {
		fputs(drain(f), said);
		(void)fflush(said);
		(void)usleep(1000);
	} while (!strstr(text, "no more of them are named here"));
	fputs(drain(f), said);
	(void)fclose(said);
	for (const char *at = text; (at = strstr(at, "cannot keep a copy")); at++)
		n++;
	assert_int_equal(n, 10);
	assert_non_null(strstr(text, "more files of programs of user"));
	free(text);
}

static void records_that_are_lost(void **state)
{
	struct fixture *f = *state;

	f->fake.tasks_error = -ENOMEM;
	assert_non_null(strstr(drain(f),
			       "cannot take all task records; code that they describe cannot be "
			       "decoded (SidebandMax= may be too small): Cannot allocate"));
	assert_string_equal(drain(f), "");
}

static void code_that_is_lost(void **state)
{
	struct fixture *f = *state;

	assert_string_equal(drain(f), "");
	f->fake.code_error = -EIO;
	assert_non_null(strstr(drain(f),
			       "code that was in no file was lost, and cannot be decoded: "
			       "Input/output error"));
	assert_string_equal(drain(f), "");
	assert_int_equal(f->fake.n_drained, 3);
}

static void code_that_is_nonsense(void **state)
{
	struct fixture *f = *state;

	f->fake.code = calloc(1, 100);
	f->fake.code_size = 100;
	assert_non_null(strstr(drain(f), "the program that handed it over wrote nonsense"));
}

/* Who repeats itself is named, but not once for each time, and only by what can be shown. */
static void a_storm_is_named(void **state)
{
	struct fixture *f = *state;
	const uint32_t self = (uint32_t)getpid();
	const char *said;
	char expected[200];

	records_comm(&f->fake.records, self, "a\033b", 1);
	for (unsigned i = 0; i < 4000; i++)
		records_mmap2(&f->fake.records, self, "/bin/true", NULL, 2 + i);
	said = drain(f);
	(void)snprintf(
	    expected, sizeof(expected),
	    "process %u (a?b) maps the same code more than 1000 times a second: repeated "
	    "records are left out",
	    self);
	assert_non_null(strstr(said, expected));
	for (unsigned i = 0; i < 4000; i++)
		records_mmap2(&f->fake.records, self, "/bin/true", NULL, 5000000000 + i);
	assert_null(strstr(drain(f), "more than 1000 times"));
}

/* Who has more than their share is named, but not each time. */
static void who_has_too_much_is_named(void **state)
{
	struct fixture *f = *state;
	const char *said;
	unsigned n;

	sideband_set_max(intake_sideband(f->intake), 8 << 20);
	records_comm(&f->fake.records, 71, "root", 1);
	for (unsigned i = 0; i < 160000; i++)
		records_comm(&f->fake.records, 70, "x", 2 + i);
	said = drain(f);
	said = strstr(said, "user 1001 has more than their share of SidebandMax=: ");
	assert_non_null(said);
	assert_int_equal(
	    sscanf(said, "user 1001 has more than their share of SidebandMax=: %u of", &n), 1);
	assert_in_range(n, 10000, 160000);
	assert_non_null(strstr(said, "their programs ran before cannot be decoded"));
	for (unsigned i = 0; i < 160000; i++)
		records_comm(&f->fake.records, 70, "x", 200000 + i);
	assert_null(strstr(drain(f), "their share"));
}

/* Records are asked for as long as programs write some. */
static void while_it_is_active(void **state)
{
	struct fixture *f = *state;

	f->fake.active = true;
	assert_int_equal(f->fake.n_drained, 0);
	assert_int_equal(intake_expect(f->intake), 0);
	/* What others have left is not in the way of who comes now. */
	assert_int_equal(f->fake.n_drained, 1);
	while (f->fake.n_drained < 3)
		assert_true(sd_event_run(f->event, 5000000) > 0);
}

/* Hardware says by its descriptor that there are some. */
static void when_there_are_some(void **state)
{
	struct fixture *f = *state;

	now_ns = UINT64_C(1000) * 1000000000;
	while (sd_event_run(f->event, 0) > 0)
		;
	assert_int_equal(f->fake.n_drained, 0);
	for (unsigned i = 1; i < 4; i++) {
		const unsigned before = f->fake.n_drained;

		assert_int_equal(eventfd_write(f->fake.source.records_fd, 1), 0);
		assert_true(sd_event_run(f->event, 5000000) > 0);
		assert_int_equal(f->fake.n_drained, before + 1);
		/* Not again before a while is over: it may be readable all the time. */
		assert_int_equal(sd_event_run(f->event, 0), 0);
		assert_int_equal(eventfd_read(f->fake.source.records_fd, &(eventfd_t){ 0 }), 0);
		now_ns += UINT64_C(1000000000);
		assert_true(sd_event_run(f->event, 5000000) > 0);
		assert_int_equal(f->fake.n_drained, before + 2);
		assert_int_equal(sd_event_run(f->event, 0), 0);
	}
	now_ns = 0;
}

/* Let the event loop turn, which has other timers, too, until records were taken once. */
static void run_until_drained(struct fixture *f)
{
	const unsigned n_drained = f->fake.n_drained;

	while (f->fake.n_drained == n_drained)
		assert_true(sd_event_run(f->event, 5000000) > 0);
	assert_int_equal(f->fake.n_drained, n_drained + 1);
}

/* Let @us be over; then @size bytes of records are there, and it takes @takes_us to take them.
 * Return: how long the intake rests then. */
static uint64_t rest_after(struct fixture *f, uint64_t us, size_t size, uint64_t takes_us)
{
	now_ns += us * 1000;
	while (f->fake.records.size < size)
		records_comm(&f->fake.records, 1, "x", 1);
	assert_int_equal(f->fake.records.size, size);
	f->fake.takes_us = takes_us;
	pause_us = 0;
	assert_int_equal(eventfd_write(f->fake.source.records_fd, 1), 0);
	run_until_drained(f);
	assert_int_equal(eventfd_read(f->fake.source.records_fd, &(eventfd_t){ 0 }), 0);
	return pause_us;
}

/* It has rested, and found nothing. */
static void wake(struct fixture *f)
{
	now_ns += UINT64_C(1000000000);
	f->fake.takes_us = 0;
	run_until_drained(f);
}

/* The intake rests so that taking records costs a twentieth of a CPU's time; but a ring has room
 * for four times what comes meanwhile, however seldom records come so quickly. */
static void how_long_it_rests(void **state)
{
	enum { ROOM = 65536, COMM = 112, FEW = 73 * COMM, MANY = 74 * COMM };
	static const struct row {
		const char *label;
		size_t room, size;
		uint64_t us, takes_us;
		uint64_t pause_us;
		uint64_t later_us; /* when as many came slowly after it, and that took 10 ms */
	} rows[] = {
		{ "nothing to do", 0, 0, 100000, 0, 1000, 50000 },
		{ "a little", 0, 0, 100000, 49, 1000, 50000 },
		{ "some", 0, 0, 100000, 1000, 20000, 50000 },
		{ "more", 0, 0, 100000, 2400, 48000, 50000 },
		{ "very much", 0, 0, 100000, 10000, 50000, 50000 },
		{ "no rate matters if rings have no limit", 0, MANY, 900, 100, 2000, 50000 },
		{ "few that came quickly", ROOM, FEW, 0, 2000, 16384, 16384 },
		{ "many that came slowly", ROOM, MANY, 90000, 10000, 16384, 16384 },
		{ "many", ROOM, MANY, 1900, 100, 2000, 3276 },
		{ "many, and that took long", ROOM, MANY, 0, 2000, 3276, 3276 },
		{ "very quickly", ROOM, MANY, 0, 100, 1000, 1000 },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct row *row = &rows[i];
		struct fixture *f = *state;
		uint64_t pause, later;

		now_ns = UINT64_C(1000) * 1000000000;
		f->fake.source.records_room = row->room;
		(void)rest_after(f, 0, 0, 0);
		wake(f);
		pause = rest_after(f, row->us, row->size, row->takes_us);
		wake(f);
		later = rest_after(f, 100000, row->size, 10000);
		now_ns = 0;
		if (pause != row->pause_us || later != row->later_us)
			fail_msg("%s: %" PRIu64 " us, later %" PRIu64 " us", row->label, pause,
				 later);
		(void)tear_down(state);
		(void)set_up_fd(state);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(twins_are_named_by_inode, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_server_among_many, set_up, tear_down),
		cmocka_unit_test_setup_teardown(objects_of_past_epochs, set_up, tear_down),
		cmocka_unit_test_setup_teardown(no_room_is_said_once, set_up, tear_down),
		cmocka_unit_test_setup_teardown(objects_that_cannot_be_kept, set_up, tear_down),
		cmocka_unit_test_setup_teardown(many_that_cannot_be_kept, set_up, tear_down),
		cmocka_unit_test_setup_teardown(records_that_are_lost, set_up, tear_down),
		cmocka_unit_test_setup_teardown(code_that_is_lost, set_up_code, tear_down),
		cmocka_unit_test_setup_teardown(code_that_is_nonsense, set_up_code, tear_down),
		cmocka_unit_test_setup_teardown(a_storm_is_named, set_up, tear_down),
		cmocka_unit_test_setup_teardown(who_has_too_much_is_named, set_up, tear_down),
		cmocka_unit_test_setup_teardown(while_it_is_active, set_up, tear_down),
		cmocka_unit_test_setup_teardown(when_there_are_some, set_up_fd, tear_down),
		cmocka_unit_test_setup_teardown(how_long_it_rests, set_up_fd, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
