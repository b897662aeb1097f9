/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "daemon/helper/collector/link.h"
#include "daemon/objects/copier.h"
#include "daemon/objects/objectstore.h"
#include "daemon/objects/original.h"
#include "daemon/share/share.h"
#include "daemon/spool/spool.h"
#include "daemon/spool/storedir.h"
#include "tests/lib/copied.h"
#include "tests/lib/failing.h"
#include "tests/lib/sanitized.h"
#include "tests/lib/tempdir.h"
#include "tests/unit/otheruser.h"
#include "tests/unit/records.h"
#include "tests/unit/stoppedclock.h"
#include "util/map.h"

static const struct spool_limits unlimited = { .max_use = UINT64_MAX };

struct fixture {
	char dir[TEMPDIR_SIZE];
	char program[128]; /* a copy of ourselves: an ELF file with a build-id */
	struct buildid id;
	int store_fd;
	struct objectstore *store;
};

_printf_(1, 2) static void run(const char *format, ...)
{
	char command[512];
	va_list ap;

	va_start(ap, format);
	(void)vsnprintf(command, sizeof(command), format, ap);
	va_end(ap);
	assert_int_equal(system(command), 0);
}

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	char path[128];
	int fd;

	tempdir_make("keep", f->dir);
	(void)snprintf(path, sizeof(path), "%s/store", f->dir);
	assert_int_equal(mkdir(path, 0750), 0);
	f->store_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	(void)snprintf(f->program, sizeof(f->program), "%s/program", f->dir);
	(void)snprintf(path, sizeof(path), "/proc/%d/exe", (int)getpid());
	run("cp %s %s", path, f->program);

	fd = open(f->program, O_RDONLY | O_CLOEXEC);
	assert_int_equal(buildid_read(fd, &f->id), 0);
	assert_int_not_equal(f->id.size, 0);
	(void)close(fd);
	assert_int_equal(objectstore_new(f->store_fd, &unlimited, f->dir, &f->store), 0);
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	stoppedclock_go();
	(void)objectstore_free(f->store);
	(void)close(f->store_fd);
	tempdir_remove(f->dir);
	free(f);
	return 0;
}

/* Add what is at the path, and wait. Return: the object, NULL and @ret_error if it was not kept. */
static struct object *add(struct fixture *f, const char *path, const struct buildid *id,
			  int *ret_error)
{
	const struct record_mmap2 mmap = {
		.prot = PROT_EXEC,
		.name = path,
		.build_id = id ? *id : (struct buildid){},
	};
	const struct object *failed;
	struct object *object;

	*ret_error = 0;
	assert_int_equal(objectstore_add(f->store, &mmap, 0, &object), 0);
	if (!object)
		return NULL;
	assert_int_equal(copied_wait(f->store, object), 0);
	while ((failed = objectstore_next_failed(f->store))) {
		assert_ptr_equal(failed, object);
		*ret_error = failed->error;
	}
	return object->error == 0 ? object : NULL;
}

static bool stored(const struct fixture *f, const struct object *object)
{
	return storedir_has(f->store_fd, object->sha256);
}

static void by_build_id(void **state)
{
	struct fixture *f = *state;
	char path[256];
	struct object *object;
	int error;

	object = add(f, f->program, &f->id, &error);
	assert_non_null(object);
	assert_int_equal(error, 0);
	assert_true(buildid_equal(&object->build_id, &f->id));
	assert_true(stored(f, object));
	(void)snprintf(path, sizeof(path), "%s/store/%s", f->dir, object->sha256);
	run("cmp %s %s", f->program, path);

	/* It outlives the original, and is found again without it. */
	assert_int_equal(unlink(f->program), 0);
	assert_ptr_equal(add(f, f->program, &f->id, &error), object);
	assert_int_equal(objectstore_count(f->store), 1);
}

static void without_a_build_id(void **state)
{
	struct fixture *f = *state;
	char old[SHA256_HEX_SIZE];
	struct object *object;
	int error;

	run("objcopy --remove-section .note.gnu.build-id %s", f->program);
	object = add(f, f->program, NULL, &error);
	assert_non_null(object);
	assert_int_equal(object->build_id.size, 0);
	assert_true(stored(f, object));
	assert_ptr_equal(add(f, f->program, NULL, &error), object);
	strcpy(old, object->sha256);

	/* Another file under the same path is another object. */
	run("objcopy --remove-section .comment %s", f->program);
	object = add(f, f->program, NULL, &error);
	assert_non_null(object);
	assert_string_not_equal(object->sha256, old);
	assert_int_equal(objectstore_count(f->store), 2);
}

static void what_cannot_be_kept(void **state)
{
	struct fixture *f = *state;
	struct buildid other = f->id;
	char fifo[128], text[128];
	struct object *object;
	struct share share;
	int error;

	other.bytes[0] ^= 1;
	(void)snprintf(fifo, sizeof(fifo), "%s/fifo", f->dir);
	assert_int_equal(mkfifo(fifo, 0600), 0);

	const struct {
		const char *path;
		const struct buildid *id;
		int error;
	} rows[] = {
		{ "/no/such/file", NULL, -ENOENT }, { f->program, &other, -ESTALE },
		{ fifo, NULL, -ENOEXEC },           { "/tmp", NULL, -ENOEXEC },
		{ "/dev/null", NULL, -ENOEXEC },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		print_message("  %s\n", rows[i].path);
		assert_null(add(f, rows[i].path, rows[i].id, &error));
		assert_int_equal(error, rows[i].error);
		/* Said once. */
		assert_null(add(f, rows[i].path, rows[i].id, &error));
		assert_int_equal(error, 0);
		assert_int_equal(objectstore_count(f->store), i + 1);
	}

	/* Of a file that was found the owner is known. */
	objectstore_get_share(f->store, &share);
	assert_int_equal(share.n_users, 1);
	assert_int_equal(share.users[0].uid, geteuid());
	assert_int_equal(share.users[0].refused[SHARE_REASON_UNREADABLE], 2);
	assert_int_equal(share_n_refused(&share.users[0]), 2);

	/* What was missing may come to be. */
	(void)snprintf(text, sizeof(text), "%s/late", f->dir);
	assert_null(add(f, text, NULL, &error));
	assert_int_equal(error, -ENOENT);
	run("cp %s %s", f->program, text);
	object = add(f, text, NULL, &error);
	assert_non_null(object);
	assert_true(stored(f, object));
}

/* What cannot be copied for one is copied for another who maps it before that is noticed. */
static void for_another(void **state)
{
	struct fixture *f = *state;
	struct object *object, *same;
	char path[128];
	const struct record_mmap2 mmap = { .prot = PROT_EXEC, .name = path };

	(void)snprintf(path, sizeof(path), "%s/of-others", f->dir);
	assert_int_equal(objectstore_add(f->store, &mmap, 0, &object), 0);
	assert_int_equal(copied_wait(f->store, object), 0);
	assert_int_equal(object->error, -ENOENT);
	run("cp %s %s", f->program, path);
	assert_int_equal(objectstore_add(f->store, &mmap, 0, &same), 0);
	assert_ptr_equal(same, object);
	assert_null(objectstore_next_failed(f->store));
	assert_int_equal(copied_wait(f->store, object), 0);
	assert_int_equal(object->error, 0);
	assert_true(stored(f, object));
	assert_null(objectstore_next_failed(f->store));
}

/* Code of some runtimes lies in files of their own formats: these have no build-id. */
static void no_elf_file(void **state)
{
	struct fixture *f = *state;
	struct object *object;
	char path[128];
	int error;

	(void)snprintf(path, sizeof(path), "%s/lisp.core", f->dir);
	run("echo LCORE > %s", path);
	object = add(f, path, NULL, &error);
	assert_non_null(object);
	assert_int_equal(error, 0);
	assert_int_equal(object->build_id.size, 0);
	assert_true(stored(f, object));
}

/* A file of 500 MiB, all of it a hole but for the start, that is ELF by its first bytes. */
static int make_growing(const struct fixture *f, unsigned n, char ret_path[128])
{
	int fd;

	(void)snprintf(ret_path, 128, "%s/growing.%u", f->dir, n);
	fd = open(ret_path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);
	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, "\177ELF", 4, 0), 4);
	assert_int_equal(pwrite(fd, &n, sizeof(n), 4096), sizeof(n));
	assert_int_equal(ftruncate(fd, (off_t)500 << 20), 0);
	return fd;
}

/* As large as the file system has them. */
static void grow(int fd)
{
	for (off_t size = (off_t)1 << 43; ftruncate(fd, size) < 0; size /= 2)
		assert_true(size > (off_t)1 << 33);
}

/* Whatever it is when it is looked at, who waits for it, or for the end, does not wait long. */
static void a_file_that_grows(void **state)
{
	struct fixture *f = *state;
	struct object *object;
	char path[128];
	time_t begun;
	int fd;

	for (unsigned ms = 0; ms < 200; ms += 50) {
		const struct record_mmap2 mmap = { .prot = PROT_EXEC, .name = path };

		fd = make_growing(f, ms, path);
		assert_int_equal(objectstore_add(f->store, &mmap, 0, &object), 0);
		(void)nanosleep(&(struct timespec){ .tv_nsec = ms * 1000000 }, NULL);
		grow(fd);
		assert_int_equal(copied_wait(f->store, object), 0);
		/* Unless it was copied before. */
		assert_true(object->error == -EFBIG || (ms > 0 && object->error == 0));
		assert_ptr_equal(objectstore_next_failed(f->store),
				 object->error < 0 ? object : NULL);
		(void)close(fd);
		assert_int_equal(unlink(path), 0);
	}

	/* The end does not wait for those that are not copied yet. */
	for (unsigned i = 1000; i < 1010; i++) {
		const struct record_mmap2 mmap = { .prot = PROT_EXEC, .name = path };

		fd = make_growing(f, i, path);
		assert_int_equal(objectstore_add(f->store, &mmap, 0, &object), 0);
		(void)close(fd);
	}
	begun = time(NULL);
	f->store = objectstore_free(f->store);
	assert_true(time(NULL) - begun < 2);
}

/* Whoever has many large files has a snapshot wait for some of them only, and others' files for one
 * of them at most. */
static void a_user_with_many_files(void **state)
{
	enum { N = 12 };
	struct fixture *f = *state;
	struct object *objects[N], *ours;
	unsigned n_near = 0, n_done = 0;
	char paths[N][128];

	stoppedclock_stop(); /* it is waited for each */
	for (unsigned i = 0; i < N; i++) {
		const struct record_mmap2 mmap = { .prot = PROT_EXEC, .name = paths[i] };
		const int fd = make_growing(f, i, paths[i]);

		/* Root's are always waited for. */
		if (geteuid() == 0)
			assert_int_equal(fchown(fd, 65534, 65534), 0);
		(void)close(fd);
		assert_int_equal(objectstore_add(f->store, &mmap, 0, &objects[i]), 0);
	}
	stoppedclock_go();
	copier_measure(objectstore_copier(f->store));
	for (unsigned i = 0; i < N; i++)
		n_near += !copier_why_not_near(objectstore_copier(f->store), objects[i]);
	/* Two would be 1000 MiB; some may have been copied already. */
	assert_in_range(n_near, 1, N - 1);
	assert_true(!copier_why_not_near(objectstore_copier(f->store), objects[0]) &&
		    copier_why_not_near(objectstore_copier(f->store), objects[N - 1]));
	if (geteuid() != 0)
		return;

	assert_int_equal(
	    objectstore_add(f->store,
			    &(struct record_mmap2){ .prot = PROT_EXEC, .name = f->program }, 0,
			    &ours),
	    0);
	copier_measure(objectstore_copier(f->store));
	assert_null(copier_why_not_near(objectstore_copier(f->store), ours));
	assert_int_equal(copied_wait(f->store, ours), 0);
	assert_int_equal(ours->error, 0);
	copier_measure(objectstore_copier(f->store));
	for (unsigned i = 0; i < N; i++)
		n_done += !copier_why_not_near(objectstore_copier(f->store), objects[i]);
	assert_true(n_done < N);
}

static void what_is_no_object(void **state)
{
	static const char *const names[] = {
		"[vvar]", "//anon", "", "anon_inode:x", "/dev/zero (deleted)", "/memfd:x (deleted)"
	};
	struct fixture *f = *state;
	struct record_mmap2 data = { .prot = PROT_READ, .name = f->program };
	struct object *object = (struct object *)0x1;
	int error = 1;

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		assert_null(add(f, names[i], NULL, &error));
		assert_int_equal(error, 0);
	}
	assert_int_equal(objectstore_add(f->store, &data, 0, &object), 0);
	assert_null(object);
	assert_int_equal(objectstore_count(f->store), 0);
}

/* --- what only the process that has it mapped leads to --------------------------------------- */

static void *mmap_file(int fd, size_t size, int prot)
{
	void *map = mmap(NULL, size, prot, MAP_PRIVATE, fd, 0);

	assert_ptr_not_equal(map, MAP_FAILED);
	return map;
}

/* Map the first page of a file. */
static void map_file(const char *path, struct record_mmap2 *mmap2)
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	void *map = mmap_file(fd, 4096, PROT_READ | PROT_EXEC);

	(void)close(fd);
	*mmap2 = (struct record_mmap2){ .pid = (uint32_t)getpid(),
					.addr = (uintptr_t)map,
					.len = 4096,
					.prot = PROT_EXEC,
					.name = path };
}

static void unmap_file(const struct record_mmap2 *mmap2)
{
	(void)munmap((void *)(uintptr_t)mmap2->addr, mmap2->len);
}

static bool may_see_map_files(void)
{
	char path[64];
	struct stat st;

	(void)snprintf(path, sizeof(path), "/proc/self/map_files/%lx-%lx",
		       (unsigned long)(uintptr_t)path, (unsigned long)(uintptr_t)path + 1);
	if (stat(path, &st) == 0 || errno == ENOENT)
		return true;
	print_message("/proc/PID/map_files: %s\n", strerror(errno));
	return false;
}

static struct object *wait_for(struct fixture *f, const struct record_mmap2 *mmap)
{
	struct object *object;

	assert_int_equal(objectstore_add(f->store, mmap, 0, &object), 0);
	assert_non_null(object);
	assert_int_equal(copied_wait(f->store, object), 0);
	while (objectstore_next_failed(f->store))
		;
	return object;
}

static void assert_kept(const struct fixture *f, const struct object *object, const char *like)
{
	char path[256];

	assert_int_equal(object->error, 0);
	(void)snprintf(path, sizeof(path), "%s/store/%s", f->dir, object->sha256);
	run("cmp %s %s", like, path);
}

static void deleted_and_replaced(void **state)
{
	struct fixture *f = *state;
	struct record_mmap2 mmap;
	struct object *object;
	char like[128];

	if (!may_see_map_files())
		skip();
	(void)snprintf(like, sizeof(like), "%s/like", f->dir);
	run("cp %s %s", f->program, like);
	map_file(f->program, &mmap);
	/* Another with the same build-id; and then none. */
	run("mv %s %s/gone && cp %s %s && printf x >>%s", f->program, f->dir, like, f->program,
	    f->program);
	mmap.build_id = f->id;
	object = wait_for(f, &mmap);
	assert_kept(f, object, like);
	assert_ptr_equal(wait_for(f, &mmap), object);

	f->store = objectstore_free(f->store);
	assert_int_equal(objectstore_new(f->store_fd, &unlimited, f->dir, &f->store), 0);
	run("rm %s %s/gone", f->program, f->dir);
	mmap.name = "/gone (deleted)";
	mmap.build_id = (struct buildid){};
	assert_kept(f, wait_for(f, &mmap), like);
	unmap_file(&mmap);
}

static void memfd_code(void **state)
{
	struct fixture *f = *state;
	const int fd = memfd_create("code", MFD_CLOEXEC), text = memfd_create("jit", MFD_CLOEXEC);
	struct record_mmap2 mmap;
	struct object *object;
	char path[64];

	if (!may_see_map_files())
		skip();
	(void)snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)getpid(), fd);
	run("cat %s >%s", f->program, path);
	map_file(path, &mmap);
	mmap.name = "/memfd:code (deleted)";
	mmap.build_id = f->id;
	assert_kept(f, wait_for(f, &mmap), f->program);
	unmap_file(&mmap);

	/* No ELF file: it is memory. */
	assert_int_equal(write(text, "\xc3", 1), 1);
	(void)snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)getpid(), text);
	map_file(path, &mmap);
	mmap.name = "/memfd:jit (deleted)";
	assert_int_equal(objectstore_add(f->store, &mmap, 0, &object), 0);
	assert_null(object);
	unmap_file(&mmap);
	(void)close(fd);
	(void)close(text);
}

/* QEMU maps a guest's code readable only, and the kernel joins what lies side by side. */
static void inside_a_mapping(void **state)
{
	struct fixture *f = *state;
	struct record_mmap2 mmap = { .pid = (uint32_t)getpid(),
				     .len = 4096,
				     .pgoff = 8192,
				     .prot = PROT_READ | PROT_EXEC,
				     .name = "/gone" };
	const int fd = open(f->program, O_RDONLY | O_CLOEXEC);
	uint8_t *map;
	char like[128];

	if (!may_see_map_files())
		skip();
	map = mmap_file(fd, 5 * 4096, PROT_READ);
	(void)snprintf(like, sizeof(like), "%s/like", f->dir);
	run("cp %s %s && rm %s", f->program, like, f->program);
	mmap.addr = (uintptr_t)map + 8192;
	assert_kept(f, wait_for(f, &mmap), like);

	/* Of which a part is something else by now. */
	f->store = objectstore_free(f->store);
	assert_int_equal(objectstore_new(f->store_fd, &unlimited, f->dir, &f->store), 0);
	assert_int_equal(munmap(map, 4096), 0);
	assert_int_equal(munmap(map + 4 * 4096, 4096), 0);
	mmap.len = 3 * 4096;
	assert_kept(f, wait_for(f, &mmap), like);

	/* Not what is mapped elsewhere, nor another part of the file. */
	mmap.name = "/elsewhere";
	mmap.addr = (uintptr_t)map;
	mmap.pgoff = 0;
	assert_int_equal(wait_for(f, &mmap)->error, -ENOENT);
	mmap.name = "/part";
	mmap.addr = (uintptr_t)map + 8192;
	assert_int_equal(wait_for(f, &mmap)->error, -ENOENT);
	(void)munmap(map + 4096, 3 * 4096);
	(void)close(fd);
}

/* --- what programs claim --------------------------------------------------------------------- */

#define NOBODY 65534u

/* A process of @uid that waits to be killed; in the test's dumpable state, or not. */
static pid_t make_process(uid_t uid, bool dumpable)
{
	int ready[2];
	pid_t pid;
	char byte;

	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	pid = fork();
	if (pid == 0) {
		if (setresgid(uid, uid, uid) < 0 || setresuid(uid, uid, uid) < 0 ||
		    prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || prctl(PR_SET_DUMPABLE, dumpable) < 0)
			_exit(1);
		(void)!write(ready[1], "", 1);
		for (;;)
			(void)pause();
	}
	assert_true(pid > 0);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	(void)close(ready[0]);
	(void)close(ready[1]);
	return pid;
}

static void end_process(pid_t pid)
{
	(void)kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/*
 * A program writes a record of what it likes: of a process that it is not, of a file that it never
 * mapped and may not read. What it gains is what it can have anyway.
 */
static void forged(void **state)
{
	enum who {
		MEMBER,     /* of user NOBODY */
		UNDUMPABLE, /* the same, and root owns its /proc/PID */
		ROOT,
		GONE,
	};
	static const struct {
		const char *name;
		enum who who;
		uid_t owner;
		mode_t mode;
		int error;
	} rows[] = {
		{ "a core dump of root", MEMBER, 0, 0600, -EACCES },
		{ "a core dump of root, of an undumpable process", UNDUMPABLE, 0, 0600, -EACCES },
		{ "a core dump of root, of one that is gone", GONE, 0, 0600, -EACCES },
		{ "a program of root's group", MEMBER, 0, 0750, -EACCES },
		{ "a program that it may execute only", MEMBER, 0, 0711, -EACCES },
		{ "its own that it may not read", MEMBER, NOBODY, 0300, -EACCES },
		{ "its own that it has not mapped", MEMBER, NOBODY, 0700, -EACCES },
		{ "the same, undumpable", UNDUMPABLE, NOBODY, 0700, -EACCES },
		{ "its own, when it is gone", GONE, NOBODY, 0700, -EACCES },
		{ "root's own that it has not mapped", ROOT, 0, 0700, -EACCES },
		{ "everybody's", MEMBER, 0, 0755, 0 },
		{ "everybody's, of a command that ended at once", GONE, 0, 0755, 0 },
	};
	struct fixture *f = *state;
	pid_t processes[4];

	if (geteuid() != 0) {
		print_message("only root has files of several users\n");
		skip();
	}
	assert_int_equal(chmod(f->dir, 0755), 0);
	processes[MEMBER] = make_process(NOBODY, true);
	processes[UNDUMPABLE] = make_process(NOBODY, false);
	processes[ROOT] = make_process(0, true);
	processes[GONE] = make_process(NOBODY, true);
	end_process(processes[GONE]);
	objectstore_set_claimed(f->store);

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char path[128];
		const struct record_mmap2 mmap = { .pid = (uint32_t)processes[rows[i].who],
						   .addr = 0x400000,
						   .len = 4096,
						   .prot = PROT_READ | PROT_EXEC,
						   .build_id = f->id,
						   .name = path };

		print_message("  %s\n", rows[i].name);
		(void)snprintf(path, sizeof(path), "%s/file%zu", f->dir, i);
		run("cp %s %s && printf %zu >>%s", f->program, path, i, path);
		assert_int_equal(chown(path, rows[i].owner, rows[i].owner), 0);
		assert_int_equal(chmod(path, rows[i].mode), 0);
		assert_int_equal(wait_for(f, &mmap)->error, rows[i].error);
	}
	for (enum who who = MEMBER; who < GONE; who++)
		end_process(processes[who]);
}

/* What a process has mapped it could read, whoever owns it by now and whatever its path is. */
static void mapped_by_the_process(void **state)
{
	struct fixture *f = *state;
	struct record_mmap2 mmap;

	if (!may_see_map_files())
		skip();
	map_file(f->program, &mmap);
	assert_int_equal(chmod(f->program, 0000), 0);
	mmap.name = "/gone";
	objectstore_set_claimed(f->store);
	assert_int_equal(wait_for(f, &mmap)->error, 0);
	unmap_file(&mmap);
}

/* The kernel says what is so: also of a command that ended at once, and whose program others may
 * not read. */
static void the_kernel_is_believed(void **state)
{
	struct fixture *f = *state;
	struct record_mmap2 mmap = { .pid = 0, .prot = PROT_EXEC, .name = f->program };
	struct stat st;

	assert_int_equal(chmod(f->program, 0700), 0);
	assert_int_equal(stat(f->program, &st), 0);
	/* The inode alone can be that of another file system. */
	mmap.ino = st.st_ino;
	assert_int_equal(wait_for(f, &mmap)->error, -EACCES);
	mmap.maj = major(st.st_dev);
	mmap.min = minor(st.st_dev);
	assert_int_equal(wait_for(f, &mmap)->error, 0);

	f->store = objectstore_free(f->store);
	assert_int_equal(objectstore_new(f->store_fd, &unlimited, f->dir, &f->store), 0);
	mmap = (struct record_mmap2){ .prot = PROT_EXEC, .name = f->program, .build_id = f->id };
	assert_int_equal(wait_for(f, &mmap)->error, 0);
}

/* A process in another root directory: its paths do not lead anywhere here. */
static void another_root(void **state)
{
	struct fixture *f = *state;
	struct record_mmap2 mmap = { .prot = PROT_EXEC, .name = "/program", .build_id = f->id };
	struct object *object;
	int ready[2], status;
	pid_t pid;
	char byte;

	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	pid = fork();
	if (pid == 0) {
		if (chroot(f->dir) == 0)
			(void)!write(ready[1], "", 1);
		(void)close(ready[1]);
		(void)pause();
	}
	(void)close(ready[1]);
	if (read(ready[0], &byte, 1) == 1) {
		mmap.pid = (uint32_t)pid;
		object = wait_for(f, &mmap);
		(void)kill(pid, SIGKILL);
		(void)waitpid(pid, &status, 0);
		assert_kept(f, object, f->program);
		/* It is gone, but it is known. */
		assert_ptr_equal(wait_for(f, &mmap), object);
		mmap.build_id.bytes[0] ^= 1;
		assert_int_equal(wait_for(f, &mmap)->error, -ENOENT);
	} else {
		(void)kill(pid, SIGKILL);
		(void)waitpid(pid, &status, 0);
		print_message("chroot() is not permitted\n");
		skip();
	}
	(void)close(ready[0]);
}

/* An inode is known where there is no build-id. */
static void another_inode(void **state)
{
	struct fixture *f = *state;
	struct record_mmap2 mmap = { .prot = PROT_EXEC, .name = f->program };
	struct stat st;

	assert_int_equal(stat(f->program, &st), 0);
	mmap.ino = st.st_ino + 1;
	assert_int_equal(wait_for(f, &mmap)->error, -ESTALE);
	mmap.ino = st.st_ino;
	assert_kept(f, wait_for(f, &mmap), f->program);
}

static void the_vdso(void **state)
{
	struct fixture *f = *state;
	const struct record_mmap2 mmap = { .pid = 1, .prot = PROT_EXEC, .name = "[vdso]" };
	struct object *object = wait_for(f, &mmap);

	assert_int_equal(object->error, 0);
	assert_in_range(object->build_id.size, 1, BUILDID_MAX);
	assert_true(stored(f, object));
	assert_ptr_equal(wait_for(f, &mmap), object);
	assert_int_equal(objectstore_count(f->store), 1);
}

/* Content decides, not the build-id, which anybody can write: the second is not the first. */
static void one_build_id_two_contents(void **state)
{
	struct fixture *f = *state;
	struct object *first, *second, *third;
	char other[128], path[256];
	int error;

	(void)snprintf(other, sizeof(other), "%s/other", f->dir);
	run("cp %s %s && printf x >>%s", f->program, other, other);
	first = add(f, other, &f->id, &error);
	second = add(f, f->program, &f->id, &error);
	assert_non_null(first);
	assert_non_null(second);
	assert_string_not_equal(first->sha256, second->sha256);
	(void)snprintf(path, sizeof(path), "%s/store/%s", f->dir, second->sha256);
	run("cmp %s %s", f->program, path);

	/* Also when it takes the place of the first. */
	assert_ptr_equal(add(f, other, &f->id, &error), first);
	run("printf y >>%s", other);
	third = add(f, other, &f->id, &error);
	assert_non_null(third);
	assert_string_not_equal(third->sha256, first->sha256);
	assert_int_equal(objectstore_count(f->store), 3);
}

static void limits(void **state)
{
	struct fixture *f = *state;
	static const struct {
		struct spool_limits limits;
		int error;
	} rows[] = {
		{ { .max_use = 1000 }, -EDQUOT },
		{ { .max_use = UINT64_MAX, .keep_free = UINT64_MAX }, -ENOSPC },
		{ { .max_use = UINT64_MAX, .keep_free = UINT64_MAX / 2 }, -ENOSPC },
		{ { .max_use = 1 << 30 }, 0 },
		{ { .max_use = 1000 }, 0 }, /* there already: it takes no more room */
	};
	char big[128], kept[256];
	struct object *object;
	int error;

	(void)snprintf(big, sizeof(big), "%s/big", f->dir);
	run("cp %s %s && truncate -s %llu %s", f->program, big,
	    (unsigned long long)STOREDIR_FILE_MAX + 1, big);
	assert_null(add(f, big, &f->id, &error));
	assert_int_equal(error, -EFBIG);

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		print_message("  row %zu\n", i);
		f->store = objectstore_free(f->store);
		assert_int_equal(objectstore_new(f->store_fd, &rows[i].limits, f->dir, &f->store),
				 0);
		object = add(f, f->program, &f->id, &error);
		assert_int_equal(error, rows[i].error);
		assert_int_equal(object != NULL, rows[i].error == 0);
		if (!object)
			continue;
		/* As if a snapshot had it, or it would be swept. */
		(void)snprintf(kept, sizeof(kept), "%s/kept", f->dir);
		assert_true(linkat(f->store_fd, object->sha256, AT_FDCWD, kept, 0) == 0 ||
			    errno == EEXIST);
	}
	assert_int_equal(storedir_forget(f->store_fd, object->sha256), 0);
}

/* Copies that no snapshot has may take half of what there is for all. */
static void half_of_it(void **state)
{
	struct fixture *f = *state;
	struct spool_limits limits = { .max_use = UINT64_MAX };
	struct stat st;
	int error;

	assert_int_equal(stat(f->program, &st), 0);
	limits.max_use = (uint64_t)st.st_blocks * 512 * 2 - 2;
	copier_set_limits(objectstore_copier(f->store), &limits);
	assert_null(add(f, f->program, &f->id, &error));
	assert_int_equal(error, -EDQUOT);
	/* Anybody but root leaves a part of it to others. */
	limits.max_use +=
	    geteuid() == 0 ? 2 : limits.max_use / (SHARE_RESERVE - 1) + 2 * SHARE_RESERVE;
	copier_set_limits(objectstore_copier(f->store), &limits);
	assert_non_null(add(f, f->program, &f->id, &error));
}

/* Those that were not named for longest go first, and only copies that are nowhere else. */
static void evict(void **state)
{
	struct fixture *f = *state;
	char paths[4][96], kept[128];
	struct object *objects[4];
	uint64_t moment = 0, size, freed = 7;
	struct map names = {};
	int error;

	for (size_t i = 0; i < 4; i++) {
		(void)snprintf(paths[i], sizeof(paths[i]), "%s/%zu", f->dir, i);
		run("cp %s %s; printf %zu >>%s", f->program, paths[i], i, paths[i]);
		objects[i] = add(f, paths[i], &f->id, &error);
		assert_non_null(objects[i]);
		if (i == 2)
			moment = objectstore_moment(f->store);
	}
	(void)snprintf(kept, sizeof(kept), "%s/kept", f->dir);
	assert_int_equal(linkat(f->store_fd, objects[0]->sha256, AT_FDCWD, kept, 0), 0);
	size = storedir_alone(f->store_fd, objects[1]->sha256);
	while (objectstore_next_failed(f->store))
		;
	/* Of the first there is a link, the last was named after that moment. */
	assert_int_equal(objectstore_evict(f->store, moment, 3 * size, 2 * size + 1, &freed), 0);
	assert_int_equal(freed, 0);
	assert_int_equal(objectstore_count(f->store), 4);
	assert_int_equal(objectstore_evict(f->store, moment, 1, 0, &freed), 0);
	assert_int_equal(freed, size);
	assert_int_equal(objectstore_count(f->store), 3);
	assert_int_equal(objectstore_names(f->store, &names), 0);
	assert_true(objectstore_names_has(&names, objects[0]->sha256));
	assert_true(objectstore_names_has(&names, objects[2]->sha256));
	assert_true(objectstore_names_has(&names, objects[3]->sha256));
	assert_false(objectstore_names_has(&names, "none"));
	assert_true(storedir_has(f->store_fd, objects[2]->sha256));
	map_deinit(&names);
	assert_int_equal(objectstore_evict(f->store, moment, UINT64_MAX, 0, &freed), 0);
	assert_int_equal(freed, size);
	assert_int_equal(objectstore_count(f->store), 2);
	assert_true(storedir_has(f->store_fd, objects[3]->sha256));
}

/* What is more than snapshots leave room for goes, even if programs that run have it mapped, those
 * last; and is copied again when there is room. */
static void room(void **state)
{
	struct fixture *f = *state;
	const unsigned n_left = geteuid() == 0 ? 2 : 1; /* others leave a part of it free */
	struct object *objects[4];
	uint64_t moment = 0, size, freed = 0;
	struct share share;
	unsigned n = 0;
	char path[96];
	uid_t uid = 7;
	int error;

	for (size_t i = 0; i < 4; i++) {
		(void)snprintf(path, sizeof(path), "%s/%zu", f->dir, i);
		run("cp %s %s; printf %zu >>%s", f->program, path, i, path);
		objects[i] = add(f, path, &f->id, &error);
		assert_non_null(objects[i]);
		moment = i == 1 ? objectstore_moment(f->store) : moment;
	}
	size = storedir_alone(f->store_fd, objects[1]->sha256);
	assert_false(objectstore_is_unfair(f->store));
	/* Named after those that were added later. */
	objectstore_touch(f->store, &(struct record_mmap2){ .prot = PROT_EXEC,
							    .name = objects[0]->path,
							    .build_id = f->id });
	objectstore_set_room(f->store, 2 * size + size / 2);
	assert_true(objectstore_is_unfair(f->store));
	assert_int_equal(objectstore_take_back(f->store, moment, &freed, &uid), 0);
	assert_int_equal(freed, (4 - n_left) * size);
	assert_int_equal(uid, geteuid());
	assert_false(objectstore_is_unfair(f->store));
	assert_false(objects[1]->error == 0 || objects[2]->error == 0);
	assert_int_equal(objects[2]->error, -EDQUOT);
	assert_int_equal(objects[0]->error, 0);
	assert_true(stored(f, objects[0]));
	objectstore_get_share(f->store, &share);
	assert_int_equal(share.taken, n_left * size);
	assert_int_equal(share.users[0].refused[SHARE_REASON_TAKEN_BACK], 4 - n_left);

	objectstore_set_room(f->store, UINT64_MAX);
	assert_true(objectstore_is_unfair(f->store));
	assert_int_equal(objectstore_take_back(f->store, moment, &freed, &uid), 0);
	assert_int_equal(freed, 0);
	for (size_t i = 0; i < 4; i++) {
		assert_int_equal(copied_wait(f->store, objects[i]), 0);
		n += objects[i]->error == 0 && stored(f, objects[i]);
	}
	assert_int_equal(n, 4);
	assert_false(objectstore_is_unfair(f->store));
}

/* Add the program as if process @pid had mapped it. */
static struct object *add_for(struct fixture *f, uint32_t pid)
{
	const struct record_mmap2 mmap = {
		.pid = pid, .prot = PROT_EXEC, .name = f->program, .build_id = f->id
	};
	struct object *object;

	assert_int_equal(objectstore_add(f->store, &mmap, 0, &object), 0);
	assert_int_equal(copied_wait(f->store, object), 0);
	assert_int_equal(object->error, 0);
	assert_null(objectstore_next_failed(f->store));
	return object;
}

/* Return: how much a user has taken, after a sweep. */
static uint64_t taken_by(struct fixture *f, uid_t uid)
{
	struct share share;

	assert_int_equal(objectstore_sweep(f->store), 0);
	objectstore_get_share(f->store, &share);
	return share_taken(&share, uid);
}

/* A file of root's counts for the only user whose processes map it, then for root. */
static void who_pays(void **state)
{
	struct fixture *f = *state;
	struct share share;
	uint32_t pids[2];
	uint64_t size;

	if (geteuid() != 0)
		skip();
	for (unsigned i = 0; i < 2; i++)
		pids[i] = otheruser_start(65533 + i);
	size = storedir_alone(f->store_fd, add_for(f, pids[0])->sha256);
	assert_true(size > 0);
	objectstore_get_share(f->store, &share);
	assert_int_equal(share_taken(&share, 65533), size);
	assert_int_equal(taken_by(f, 65533), size);
	(void)add_for(f, pids[0]);
	/* Of a process that has ended it is not known whose it was. */
	(void)add_for(f, INT32_MAX);
	assert_int_equal(taken_by(f, 65533), size);
	assert_int_equal(taken_by(f, 0), 0);
	(void)add_for(f, pids[1]);
	assert_int_equal(taken_by(f, 65533), 0);
	assert_int_equal(taken_by(f, 65534), 0);
	assert_int_equal(taken_by(f, 0), size);
	assert_int_equal(taken_by(f, 0), size);
	for (unsigned i = 0; i < 2; i++)
		otheruser_stop(pids[i]);
}

/* A user who has less than their part gets room that root's copies have, as long as no program has
 * them mapped. */
static void root_gives(void **state)
{
	struct fixture *f = *state;
	uint64_t freed, size = 0, moment = 0;
	struct object *objects[4], *mine;
	char path[96];
	uid_t uid = 7;
	int error;

	if (geteuid() != 0)
		skip();
	for (size_t i = 0; i < 4; i++) {
		(void)snprintf(path, sizeof(path), "%s/%zu", f->dir, i);
		run("cp %s %s; printf %zu >>%s", f->program, path, i, path);
		objects[i] = add(f, path, &f->id, &error);
		assert_non_null(objects[i]);
	}
	size = storedir_alone(f->store_fd, objects[0]->sha256);
	objectstore_set_room(f->store, 4 * size + size / 2);
	run("cp %s %s/mine; printf mine >>%s/mine; chown 65534 %s/mine", f->program, f->dir, f->dir,
	    f->dir);
	(void)snprintf(path, sizeof(path), "%s/mine", f->dir);
	for (unsigned i = 0; i < 2; i++) {
		/* At first programs have all mapped. */
		moment = i == 0 ? 0 : objectstore_moment(f->store);
		assert_null(add(f, path, &f->id, &error));
		assert_int_equal(error, i == 0 ? -EDQUOT : 0);
		assert_true(objectstore_is_unfair(f->store));
		assert_int_equal(objectstore_take_back(f->store, moment, &freed, &uid), 0);
		assert_int_equal(freed, i * size);
		assert_false(objectstore_is_unfair(f->store));
	}
	assert_int_equal(uid, 0);
	assert_int_equal(objects[0]->error, -EDQUOT);
	assert_int_equal(objects[1]->error, 0);
	mine = NULL;
	assert_int_equal(objectstore_add(f->store,
					 &(struct record_mmap2){
					     .prot = PROT_EXEC, .name = path, .build_id = f->id },
					 0, &mine),
			 0);
	assert_int_equal(copied_wait(f->store, mine), 0);
	assert_int_equal(mine->error, 0);
	assert_true(stored(f, mine));
}

static void limits_change(void **state)
{
	struct fixture *f = *state;
	int error;

	copier_set_limits(objectstore_copier(f->store), &(struct spool_limits){ .max_use = 1000 });
	assert_null(add(f, f->program, &f->id, &error));
	assert_int_equal(error, -EDQUOT);
	copier_set_limits(objectstore_copier(f->store), &unlimited);
	assert_non_null(add(f, f->program, &f->id, &error));
}

/* Who waits for what is not done yet can give up; and what waits keeps nobody from ending. */
static void many_at_once(void **state)
{
	const atomic_bool cancel = true;
	struct fixture *f = *state;
	struct record_mmap2 mmap = { .prot = PROT_EXEC };
	struct object *objects[600];
	char path[128];

	stoppedclock_stop(); /* it is waited for each */
	run("for i in $(seq 0 599); do ln %s %s/l$i; done", f->program, f->dir);
	mmap.name = path;
	for (size_t i = 0; i < ARRAY_LEN(objects); i++) {
		(void)snprintf(path, sizeof(path), "%s/l%zu", f->dir, i);
		assert_int_equal(objectstore_add(f->store, &mmap, 0, &objects[i]), 0);
		assert_non_null(objects[i]);
	}
	assert_in_set(copier_wait(objectstore_copier(f->store), objects[599], &cancel),
		      ((LargestIntegralType[]){ (LargestIntegralType)-ECANCELED, 0 }), 2);
	assert_int_equal(copied_wait(f->store, objects[599]), 0);
	/* Root has several lanes, so the last one may be done before those next to it. */
	for (size_t i = 0; i < ARRAY_LEN(objects); i++) {
		assert_int_equal(copied_wait(f->store, objects[i]), 0);
		assert_string_equal(objects[i]->sha256, objects[0]->sha256);
	}
	assert_null(objectstore_next_failed(f->store));

	run("printf z >>%s", f->program);
	for (size_t i = 0; i < ARRAY_LEN(objects); i++) {
		(void)snprintf(path, sizeof(path), "%s/l%zu", f->dir, i);
		assert_int_equal(objectstore_add(f->store, &mmap, 0, &objects[i]), 0);
	}
	f->store = objectstore_free(f->store);
}

static int64_t now_ms(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* The event loop goes on while a large one is copied; what was mapped is copied, not what came. */
static void the_caller_does_not_wait(void **state)
{
	struct fixture *f = *state;
	struct record_mmap2 mmap = { .prot = PROT_EXEC, .name = f->program, .build_id = f->id };
	struct object *object;
	int64_t since, took;

	run("truncate -s 256M %s", f->program);
	since = now_ms();
	assert_int_equal(objectstore_add(f->store, &mmap, 0, &object), 0);
	assert_int_equal(unlink(f->program), 0);
	assert_int_equal(objectstore_count(f->store), 1);
	assert_null(objectstore_next_failed(f->store));
	took = now_ms() - since;
	assert_int_equal(copied_wait(f->store, object), 0);
	assert_true(took < now_ms() - since - took);
	assert_int_equal(object->error, 0);
	assert_true(stored(f, object));
}

/* A start removes copies that no snapshot links to. */
static void the_store_is_swept(void **state)
{
	struct fixture *f = *state;
	struct object *object;
	char from[256], to[128];
	int error;

	object = add(f, f->program, &f->id, &error);
	assert_non_null(object);
	(void)snprintf(from, sizeof(from), "%s/store/%s", f->dir, object->sha256);
	(void)snprintf(to, sizeof(to), "%s/linked", f->dir);
	assert_int_equal(link(from, to), 0);

	f->store = objectstore_free(f->store);
	assert_int_equal(objectstore_new(f->store_fd, &unlimited, f->dir, &f->store), 0);
	assert_int_equal(access(from, F_OK), 0);
	assert_int_equal(unlink(to), 0);
	f->store = objectstore_free(f->store);
	assert_int_equal(objectstore_new(f->store_fd, &unlimited, f->dir, &f->store), 0);
	assert_int_equal(access(from, F_OK), -1);
}

/* What no record named for long goes, and its copy; not one that somebody still needs. */
static void forgets(void **state)
{
	struct fixture *f = *state;
	struct record_mmap2 mmap = { .prot = PROT_EXEC, .build_id = f->id };
	struct object *old, *needed, *named, *linked, **listed;
	char other[128], path[256], kept[SHA256_HEX_SIZE];
	uint64_t moment;
	size_t n;
	int error;

	(void)snprintf(other, sizeof(other), "%s/old", f->dir);
	run("cp %s %s && printf o >>%s", f->program, other, other);
	old = add(f, other, &f->id, &error);
	strcpy(kept, old->sha256);
	(void)snprintf(other, sizeof(other), "%s/linked", f->dir);
	run("cp %s %s && printf l >>%s", f->program, other, other);
	linked = add(f, other, &f->id, &error);
	(void)snprintf(path, sizeof(path), "%s/kept", f->dir);
	assert_int_equal(linkat(f->store_fd, linked->sha256, AT_FDCWD, path, 0), 0);
	(void)snprintf(path, sizeof(path), "%s/store/%s", f->dir, linked->sha256);
	(void)snprintf(other, sizeof(other), "%s/needed", f->dir);
	run("cp %s %s && printf n >>%s", f->program, other, other);
	needed = object_ref(add(f, other, &f->id, &error));
	named = add(f, f->program, &f->id, &error);

	moment = objectstore_moment(f->store);
	mmap.name = f->program;
	objectstore_touch(f->store, &mmap);
	assert_true(objectstore_moment(f->store) > moment);
	assert_int_equal(objectstore_forget(f->store, moment), 0);
	assert_int_equal(objectstore_list(f->store, &listed, &n), 0);
	assert_int_equal(n, 2);
	assert_ptr_equal(listed[0], needed);
	assert_ptr_equal(listed[1], named);
	for (size_t i = 0; i < n; i++)
		(void)object_unref(listed[i]);
	free(listed);
	assert_false(storedir_has(f->store_fd, kept));
	assert_int_equal(access(path, F_OK), 0);
	assert_true(stored(f, needed));
	assert_true(stored(f, named));

	/* It may come again. */
	(void)snprintf(other, sizeof(other), "%s/old", f->dir);
	assert_non_null(add(f, other, &f->id, &error));
	assert_true(storedir_has(f->store_fd, kept));
	(void)object_unref(needed);
	assert_int_equal(objectstore_forget(f->store, objectstore_moment(f->store)), 0);
	assert_int_equal(objectstore_count(f->store), 0);
	assert_false(storedir_has(f->store_fd, kept));
	assert_int_equal(access(path, F_OK), 0);
}

/* --- too many -------------------------------------------------------------------------------- */

/* The smallest file that is taken for an object, under as many names as are wanted. */
static void link_object(const struct fixture *f, unsigned i, char ret_path[static 128])
{
	char first[128];

	(void)snprintf(first, sizeof(first), "%s/o", f->dir);
	(void)snprintf(ret_path, 128, "%s/o%u", f->dir, i);
	if (access(first, F_OK) < 0)
		tempdir_put_text(f->dir, "o", "\177ELF");
	assert_int_equal(link(first, ret_path), 0);
}

static void add_missing(struct fixture *f, unsigned first, unsigned n)
{
	char path[128];
	int error;

	for (unsigned i = first; i < first + n; i++) {
		(void)snprintf(path, sizeof(path), "/no/such/file/%u", i);
		assert_null(add(f, path, NULL, &error));
		assert_int_equal(error, -ENOENT);
	}
}

static bool knows(const struct fixture *f, const char *path)
{
	struct object **list;
	bool found = false;
	size_t n;

	assert_int_equal(objectstore_list(f->store, &list, &n), 0);
	for (size_t i = 0; i < n; i++) {
		found = found || strcmp(list[i]->path, path) == 0;
		(void)object_unref(list[i]);
	}
	free(list);
	return found;
}

/* What could not be kept goes first, then what was not named for longest; not what the living have
 * mapped. */
static void too_many(void **state)
{
	enum { MISSING = 500, KEPT = OBJECTSTORE_SOFT_MAX - MISSING - 1 };
	struct fixture *f = *state;
	struct record_mmap2 mmap = { .prot = PROT_EXEC, .build_id = f->id, .name = f->program };
	struct object *living;
	char path[128];
	uint64_t moment;
	int error;

	stoppedclock_stop(); /* it is waited for each */
	living = add(f, f->program, &f->id, &error);
	assert_non_null(living);
	for (unsigned i = 0; i < KEPT; i++) {
		assert_false(objectstore_is_full(f->store));
		link_object(f, i, path);
		assert_non_null(add(f, path, NULL, &error));
	}
	add_missing(f, 0, MISSING);
	assert_int_equal(objectstore_count(f->store), OBJECTSTORE_SOFT_MAX);
	assert_true(objectstore_is_full(f->store));

	moment = objectstore_moment(f->store);
	objectstore_touch(f->store, &mmap);
	assert_int_equal(objectstore_make_room(f->store, moment), 0);
	assert_int_equal(objectstore_count(f->store), OBJECTSTORE_SOFT_MAX / 2);
	assert_false(objectstore_is_full(f->store));
	assert_true(knows(f, f->program));
	assert_true(stored(f, living));
	assert_false(knows(f, "/no/such/file/499"));
	assert_true(knows(f, path)); /* the latest */
	(void)snprintf(path, sizeof(path), "%s/o%u", f->dir, KEPT - OBJECTSTORE_SOFT_MAX / 2 + 1);
	assert_true(knows(f, path));
	(void)snprintf(path, sizeof(path), "%s/o%u", f->dir, KEPT - OBJECTSTORE_SOFT_MAX / 2);
	assert_false(knows(f, path));
}

/* All that there are are needed: there may be more, up to a limit, and room is not made for
 * each. */
static void too_many_in_use(void **state)
{
	struct fixture *f = *state;
	char path[128];
	const struct record_mmap2 mmap = { .prot = PROT_EXEC, .name = path };
	struct object *object;
	unsigned n_tries = 0;

	stoppedclock_stop(); /* it is waited for each */
	/* That they failed is not asked for, so they wait. */
	for (unsigned i = 0; i < OBJECTSTORE_MAX + 2 * OBJECTSTORE_SOFT_MAX; i++) {
		if (objectstore_is_full(f->store)) {
			assert_int_equal(
			    objectstore_make_room(f->store, objectstore_moment(f->store)), 0);
			n_tries++;
		}
		(void)snprintf(path, sizeof(path), "/no/such/file/%u", i);
		assert_int_equal(objectstore_add(f->store, &mmap, 0, &object),
				 i < OBJECTSTORE_MAX ? 0 : -ENOBUFS);
	}
	assert_int_equal(objectstore_count(f->store), OBJECTSTORE_MAX);
	assert_in_range(n_tries, 12, 24);

	while (objectstore_next_failed(f->store))
		;
	for (unsigned i = 0; i < OBJECTSTORE_SOFT_MAX / 4; i++)
		if (!objectstore_is_full(f->store))
			assert_int_equal(objectstore_add(f->store, &mmap, 0, &object), -ENOBUFS);
	assert_true(objectstore_is_full(f->store));
	assert_int_equal(objectstore_make_room(f->store, objectstore_moment(f->store)), 0);
	assert_int_equal(objectstore_count(f->store), OBJECTSTORE_SOFT_MAX / 2);
	assert_int_equal(objectstore_add(f->store, &mmap, 0, &object), 0);
}

/* Even of what the living have mapped there is a limit. */
static void too_many_living(void **state)
{
	struct fixture *f = *state;
	char path[128];
	int error;

	if (IS_SANITIZED)
		skip();
	stoppedclock_stop(); /* it is waited for each */
	for (unsigned i = 0; i < OBJECTSTORE_MAX; i++) {
		link_object(f, i, path);
		assert_non_null(add(f, path, NULL, &error));
		if (i % OBJECTSTORE_SOFT_MAX == 0)
			assert_int_equal(objectstore_make_room(f->store, 0), 0);
	}
	assert_int_equal(objectstore_count(f->store), OBJECTSTORE_MAX);
	assert_true(objectstore_is_full(f->store));
	assert_int_equal(objectstore_make_room(f->store, 0), 0);
	assert_int_equal(objectstore_count(f->store), OBJECTSTORE_MAX / 8 * 7);
	assert_true(knows(f, path));
}

static int make(void *userdata)
{
	struct fixture *f = userdata;

	return objectstore_new(f->store_fd, &unlimited, f->dir, &f->store);
}

static void is_made(void *userdata)
{
	struct fixture *f = userdata;

	assert_int_equal(objectstore_count(f->store), 0);
	f->store = objectstore_free(f->store);
}

struct listing {
	struct fixture *f;
	struct object **list;
	size_t n;
	struct map names;
};

static int list_all(void *userdata)
{
	struct listing *l = userdata;

	return objectstore_list(l->f->store, &l->list, &l->n);
}

static void are_listed(void *userdata)
{
	struct listing *l = userdata;

	assert_int_equal(l->n, 1);
	assert_string_equal(l->list[0]->path, l->f->program);
	(void)object_unref(l->list[0]);
	free(l->list);
}

static int name_all(void *userdata)
{
	struct listing *l = userdata;

	l->names = (struct map){};
	return objectstore_names(l->f->store, &l->names);
}

static void are_named(void *userdata)
{
	struct listing *l = userdata;
	struct object **list;
	size_t n;

	assert_int_equal(objectstore_list(l->f->store, &list, &n), 0);
	assert_true(objectstore_names_has(&l->names, list[0]->sha256));
	assert_false(objectstore_names_has(&l->names, "0123"));
	(void)object_unref(list[0]);
	free(list);
	map_deinit(&l->names);
}

static int sweep(void *userdata)
{
	struct listing *l = userdata;

	tempdir_put_text(l->f->dir, "store/0123", "nobody's");
	return objectstore_sweep(l->f->store);
}

static void is_swept(void *userdata)
{
	struct listing *l = userdata;
	struct object **list;
	size_t n;

	assert_false(storedir_has(l->f->store_fd, "0123"));
	assert_int_equal(objectstore_list(l->f->store, &list, &n), 0);
	assert_true(stored(l->f, list[0]));
	(void)object_unref(list[0]);
	free(list);
}

struct opening {
	struct record_mmap2 mmap;
	enum original_way way;
	struct collectorlink *link;
	int fd;
	struct original original;
};

static int find_original(void *userdata)
{
	struct opening *o = userdata;

	return original_find(o->link, o->way, false, &o->mmap, 0, NULL, &o->fd, &o->original);
}

/* Without its identity a file is not taken. */
static void is_open(void *userdata)
{
	const struct opening *o = userdata;
	struct stat st;

	assert_int_equal(fstat(o->fd, &st), 0);
	assert_true(o->original.found);
	assert_true(o->original.ino == st.st_ino);
	assert_int_equal(close(o->fd), 0);
}

/* Wait until no thread has @path open: the copier closes an original after its object is done. */
static void wait_until_closed(const char *path)
{
	char link[64], target[256];
	ssize_t size;

	for (int fd = 0; fd < 256; fd++) {
		(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
		do {
			size = readlink(link, target, sizeof(target) - 1);
			target[size > 0 ? size : 0] = '\0';
		} while (strcmp(target, path) == 0);
	}
}

static void calls_that_fail(void **state)
{
	struct fixture *f = *state;
	struct listing l = { .f = f };
	struct opening o = { .mmap = { .prot = PROT_EXEC, .name = f->program, .build_id = f->id } };
	int error;

	f->store = objectstore_free(f->store);
	failing_each(make, is_made, f);
	assert_int_equal(make(f), 0);
	assert_non_null(add(f, f->program, &f->id, &error));
	wait_until_closed(f->program);
	failing_each(list_all, are_listed, &l);
	failing_each(name_all, are_named, &l);
	assert_int_equal(collectorlink_new(f->dir, false, &o.link), 0);
	for (o.way = ORIGINAL_TAKE; o.way <= ORIGINAL_VERIFY; o.way++)
		failing_each(find_original, is_open, &o);
	(void)collectorlink_free(o.link);
	assert_int_equal(sweep(&l), 0);
	is_swept(&l);
}

/* Each reason is in words that say what to do, or what it is that was not kept. */
static void reasons(void **state)
{
	static const struct {
		int error;
		const char *part;
	} rows[] = {
		{ -EDQUOT, "have their share of it" },
		{ -ENOSPC, "less than KeepFree= would be left" },
		{ -ESTALE, "another file is at this path by now" },
		{ -ENOEXEC, "it is not a regular file" },
		{ -EACCES, "not every user may read it" },
		{ -EFBIG, "it is larger than 512 MiB" },
		{ -ETIMEDOUT, "reading it took too long" },
		{ -ENOTCONN, "the collector was not there" },
		{ -ENOENT, "No such file or directory" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		assert_non_null(strstr(object_why(rows[i].error), rows[i].part));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(by_build_id, set_up, tear_down),
		cmocka_unit_test_setup_teardown(for_another, set_up, tear_down),
		cmocka_unit_test_setup_teardown(without_a_build_id, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_cannot_be_kept, set_up, tear_down),
		cmocka_unit_test_setup_teardown(no_elf_file, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_file_that_grows, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_user_with_many_files, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_is_no_object, set_up, tear_down),
		cmocka_unit_test_setup_teardown(deleted_and_replaced, set_up, tear_down),
		cmocka_unit_test_setup_teardown(memfd_code, set_up, tear_down),
		cmocka_unit_test_setup_teardown(inside_a_mapping, set_up, tear_down),
		cmocka_unit_test_setup_teardown(forged, set_up, tear_down),
		cmocka_unit_test_setup_teardown(mapped_by_the_process, set_up, tear_down),
		cmocka_unit_test_setup_teardown(the_kernel_is_believed, set_up, tear_down),
		cmocka_unit_test_setup_teardown(another_root, set_up, tear_down),
		cmocka_unit_test_setup_teardown(another_inode, set_up, tear_down),
		cmocka_unit_test_setup_teardown(the_vdso, set_up, tear_down),
		cmocka_unit_test_setup_teardown(one_build_id_two_contents, set_up, tear_down),
		cmocka_unit_test_setup_teardown(limits, set_up, tear_down),
		cmocka_unit_test_setup_teardown(half_of_it, set_up, tear_down),
		cmocka_unit_test_setup_teardown(evict, set_up, tear_down),
		cmocka_unit_test_setup_teardown(room, set_up, tear_down),
		cmocka_unit_test_setup_teardown(who_pays, set_up, tear_down),
		cmocka_unit_test_setup_teardown(root_gives, set_up, tear_down),
		cmocka_unit_test_setup_teardown(limits_change, set_up, tear_down),
		cmocka_unit_test_setup_teardown(the_caller_does_not_wait, set_up, tear_down),
		cmocka_unit_test_setup_teardown(many_at_once, set_up, tear_down),
		cmocka_unit_test_setup_teardown(forgets, set_up, tear_down),
		cmocka_unit_test_setup_teardown(too_many, set_up, tear_down),
		cmocka_unit_test_setup_teardown(too_many_in_use, set_up, tear_down),
		cmocka_unit_test_setup_teardown(too_many_living, set_up, tear_down),
		cmocka_unit_test_setup_teardown(the_store_is_swept, set_up, tear_down),
		cmocka_unit_test_setup_teardown(calls_that_fail, set_up, tear_down),
		cmocka_unit_test(reasons),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
