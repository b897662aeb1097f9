/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/helper/collector/link.h"
#include "daemon/objects/jitfile.h"
#include "daemon/proc/memcopy.h"
#include "daemon/share/share.h"
#include "daemon/sideband/tasks.h"
#include "tests/lib/tempdir.h"
#include "tests/unit/records.h"
#include "tests/unit/stoppedclock.h"
#include "util/mapname.h"

/* Who started processes that may have ended. */
static struct jitfile_user we, nobody;

/* Make a process, and remove the perf map that an earlier one with the same number left in /tmp.
 * Return: as fork(). */
static pid_t fork_anew(void)
{
	const pid_t pid = fork();
	char path[64];

	(void)snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)pid);
	if (pid > 0)
		(void)unlink(path);
	return pid;
}

struct fixture {
	char dir[TEMPDIR_SIZE], dump[128];
	struct stat st;
	struct collectorlink *link;
};

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	tempdir_make("jitfile", f->dir);
	(void)snprintf(f->dump, sizeof(f->dump), "%s/jit-%d.dump", f->dir, (int)getpid());
	tempdir_put_text(f->dir, strrchr(f->dump, '/') + 1, "JiTD and what follows");
	assert_int_equal(stat(f->dump, &f->st), 0);
	we = (struct jitfile_user){ .uid = geteuid(), .is_known = true };
	nobody = (struct jitfile_user){ .uid = geteuid() + 1 };
	assert_int_equal(collectorlink_new(f->dir, false, &f->link), 0);
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	(void)collectorlink_free(f->link);
	tempdir_remove(f->dir);
	free(f);
	return 0;
}

static struct jitfile_claim good(const struct fixture *f)
{
	return (struct jitfile_claim){
		.path = f->dump,
		.uid = geteuid(),
		.must_match = true,
		.maj = major(f->st.st_dev),
		.min = minor(f->st.st_dev),
		.ino = f->st.st_ino,
	};
}

/* A good claim, then spoiled one thing at a time. */
static void what_is_taken(void **state)
{
	enum spoil {
		NOTHING,
		UNKNOWN_INODE,
		OWNER,
		MAJOR,
		MINOR,
		INODE,
		SYMLINK,
		FIFO,
		DIRECTORY,
		MISSING
	};
	static const struct {
		enum spoil spoil;
		int r;
		const char *reason;
	} rows[] = {
		{ NOTHING, 0, NULL },
		{ UNKNOWN_INODE, 0, NULL },
		{ OWNER, -EPERM, "it does not belong to the process's user" },
		{ MAJOR, -EPERM, "it is not the file that the process mapped" },
		{ MINOR, -EPERM, "it is not the file that the process mapped" },
		{ INODE, -EPERM, "it is not the file that the process mapped" },
		{ SYMLINK, -EPERM, "it is a symbolic link" },
		{ FIFO, -EPERM, "it is not a regular file" },
		{ DIRECTORY, -EPERM, "it is not a regular file" },
		{ MISSING, -ENOENT, NULL },
	};
	const struct fixture *f = *state;
	char other[128];

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct jitfile_claim claim = good(f);
		const char *reason = NULL;
		struct jitfile_found found = { .fd = -2 };
		int r;

		(void)snprintf(other, sizeof(other), "%s/other%zu", f->dir, i);
		claim.must_match = rows[i].spoil != UNKNOWN_INODE;
		claim.uid += rows[i].spoil == OWNER;
		claim.maj += rows[i].spoil == MAJOR;
		claim.min += rows[i].spoil == MINOR;
		claim.ino += rows[i].spoil == INODE;
		if (rows[i].spoil >= SYMLINK)
			claim.path = other;
		if (rows[i].spoil == SYMLINK)
			assert_int_equal(symlink(f->dump, other), 0);
		else if (rows[i].spoil == FIFO)
			assert_int_equal(mkfifo(other, 0600), 0);
		else if (rows[i].spoil == DIRECTORY)
			assert_int_equal(mkdir(other, 0700), 0);

		r = jitfile_open(f->link, &claim, &found, &reason);
		assert_int_equal(r, rows[i].r);
		if (rows[i].reason)
			assert_string_equal(reason, rows[i].reason);
		else
			assert_null(reason);
		if (r == 0)
			assert_int_equal(close(found.fd), 0);
		else
			assert_int_equal(found.fd, -2);
	}
}

/* It is opened when it is seen: what happens to its name later changes nothing. */
static void an_unlinked_one_is_kept(void **state)
{
	const struct fixture *f = *state;
	struct record_mmap2 mmap2 = {
		.pid = (uint32_t)getpid(),
		.prot = PROT_READ | PROT_EXEC,
		.len = 4096,
		.maj = major(f->st.st_dev),
		.min = minor(f->st.st_dev),
		.ino = f->st.st_ino,
		.name = f->dump,
	};
	_cleanup_(jitfiles_freep) struct jitfiles *files = NULL;
	struct jitfile *list;
	struct stat st;
	size_t n;

	assert_int_equal(jitfiles_new(false, f->dir, &files), 0);
	(void)jitfiles_add(files, &mmap2, 1, &we);
	assert_int_equal(unlink(f->dump), 0);
	assert_int_equal(jitfiles_list(files, &list, &n), 0);
	assert_int_equal(n, 1);
	assert_null(list[0].reason);
	assert_true(list[0].is_dump);
	assert_int_equal(list[0].pid, getpid());
	assert_int_equal(list[0].size, strlen("JiTD and what follows"));
	jitfiles_list_free(list, n);

	/* By the same name it begins another: both are kept, with their times. */
	tempdir_put_text(f->dir, strrchr(f->dump, '/') + 1, "JiTD");
	assert_int_equal(stat(f->dump, &st), 0);
	mmap2.ino = st.st_ino;
	assert_true(jitfiles_add(files, &mmap2, 2, &we));
	assert_true(jitfiles_add(files, &mmap2, 3, &we));
	assert_int_equal(jitfiles_list(files, &list, &n), 0);
	assert_int_equal(n, 2);
	for (size_t i = 0; i < n; i++) {
		assert_null(list[i].reason);
		assert_int_equal(list[i].since, 1 + i);
		assert_int_equal(list[i].size, i ? 4 : strlen("JiTD and what follows"));
		assert_string_equal(list[i].path, f->dump);
	}
	jitfiles_list_free(list, n);
}

/* Programs write the records: one may name another process, and a file that it never mapped. */
static void claimed(void **state)
{
	const struct fixture *f = *state;
	struct record_mmap2 mmap2 = { .prot = PROT_READ | PROT_EXEC,
				      .len = 4096,
				      .maj = major(f->st.st_dev),
				      .min = minor(f->st.st_dev),
				      .ino = f->st.st_ino,
				      .name = f->dump };
	const int fd = open(f->dump, O_RDONLY | O_CLOEXEC);
	_cleanup_(jitfiles_freep) struct jitfiles *files = NULL;
	void *map = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
	char path[64];
	struct stat st;
	struct jitfile *list;
	size_t n;

	assert_true(map != MAP_FAILED);
	(void)snprintf(path, sizeof(path), "/proc/self/map_files/%lx-%lx", (unsigned long)map,
		       (unsigned long)map + 4096);
	if (stat(path, &st) < 0) {
		print_message("/proc/PID/map_files: %s\n", strerror(errno));
		skip();
	}
	assert_int_equal(jitfiles_new(true, f->dir, &files), 0);
	mmap2.pid = (uint32_t)getppid();
	(void)jitfiles_add(files, &mmap2, 1, &nobody);
	mmap2.name = "//anon";
	(void)jitfiles_add(files, &mmap2, 1, &nobody);
	assert_int_equal(jitfiles_list(files, &list, &n), 0);
	assert_int_equal(n, 1);
	assert_string_equal(list[0].reason, "it is not the file that the process mapped");
	jitfiles_list_free(list, n);

	/* It has it mapped, though not at the address that it states: a program of 32 bits may. */
	mmap2.pid = (uint32_t)getpid();
	mmap2.name = f->dump;
	(void)jitfiles_add(files, &mmap2, 1, &we);
	assert_int_equal(jitfiles_list(files, &list, &n), 0);
	assert_int_equal(n, 2);
	assert_null(list[1].reason);
	jitfiles_list_free(list, n);

	mmap2.addr = (uintptr_t)map;
	(void)jitfiles_add(files, &mmap2, 1, &we);
	assert_int_equal(jitfiles_list(files, &list, &n), 0);
	assert_int_equal(n, 2);
	assert_null(list[1].reason);
	jitfiles_list_free(list, n);
	(void)munmap(map, 4096);
	(void)close(fd);
}

/* What the process maps is a jitdump by its first bytes, whatever its name is; one that it has not
 * begun to write counts if it has something in it later, or the usual name. */
static void by_its_magic(void **state)
{
	static const struct {
		const char *name, *text;
		bool is_dump;
		const char *later; /* NULL: as it was */
		size_t n;          /* listed then */
	} rows[] = {
		{ "jit-77-12-8iufBM", "JiTD", true, NULL, 1 },
		{ "jit-77-12-9iufBM", "DTiJ", true, NULL, 1 },
		{ "dump", "JiTD and more", true, NULL, 1 },
		{ "text", "JiTX", false, NULL, 0 },
		{ "elf", "\177ELF", false, NULL, 0 },
		{ "short", "JiT", false, NULL, 0 },
		{ "empty", "", true, NULL, 0 },
		{ "later", "", true, "JiTD", 1 },
		{ "jit-5.dump", "", true, NULL, 1 },
		{ "jit-6.dump", "no dump", true, NULL, 1 }, /* refused */
	};
	const struct fixture *f = *state;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		_cleanup_(jitfiles_freep) struct jitfiles *files = NULL;
		struct jitfile *list;
		char path[160];
		struct stat st;
		size_t n;

		print_message("%s\n", rows[i].name);
		(void)snprintf(path, sizeof(path), "%s/%s", f->dir, rows[i].name);
		tempdir_put_text(f->dir, rows[i].name, rows[i].text);
		assert_int_equal(stat(path, &st), 0);
		assert_int_equal(jitfiles_new(false, f->dir, &files), 0);
		assert_int_equal(jitfiles_add(files,
					      &(struct record_mmap2){ .pid = (uint32_t)getpid(),
								      .prot = PROT_READ | PROT_EXEC,
								      .len = 4096,
								      .maj = major(st.st_dev),
								      .min = minor(st.st_dev),
								      .ino = st.st_ino,
								      .name = path },
					      1, &we),
				 rows[i].is_dump);
		if (rows[i].later) {
			FILE *file = fopen(path, "r+e");

			assert_non_null(file);
			assert_true(fputs(rows[i].later, file) >= 0);
			assert_int_equal(fclose(file), 0);
		}
		assert_int_equal(jitfiles_list(files, &list, &n), 0);
		assert_int_equal(n, rows[i].n);
		jitfiles_list_free(list, n);
	}
}

/* A process that has ended maps nothing any more: the file is the one whose inode it named, if it
 * is its user's. */
static void of_one_that_ended(void **state)
{
	static const struct {
		const char *name;
		uint64_t ino_off;
		uid_t uid_off;
		const char *reason;
	} rows[] = {
		{ "good", 0, 0, NULL },
		{ "another inode", 1, 0, "it is not the file that the process mapped" },
		{ "another user", 0, 1, "it cannot be opened" },
	};
	const struct fixture *f = *state;
	const pid_t pid = fork_anew();

	if (pid == 0)
		_exit(0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(chmod(f->dump, 0600), 0);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		_cleanup_(jitfiles_freep) struct jitfiles *files = NULL;
		const struct record_mmap2 mmap2 = { .pid = (uint32_t)pid,
						    .prot = PROT_READ | PROT_EXEC,
						    .len = 4096,
						    .maj = major(f->st.st_dev),
						    .min = minor(f->st.st_dev),
						    .ino = f->st.st_ino + rows[i].ino_off,
						    .name = f->dump };
		struct jitfile *list;
		size_t n;

		print_message("%s\n", rows[i].name);
		assert_int_equal(jitfiles_new(true, f->dir, &files), 0);
		assert_true(jitfiles_add(
		    files, &mmap2, 1, &(struct jitfile_user){ geteuid() + rows[i].uid_off, true }));
		assert_int_equal(jitfiles_list(files, &list, &n), 0);
		assert_int_equal(n, 1);
		if (rows[i].reason)
			assert_string_equal(list[0].reason, rows[i].reason);
		else
			assert_null(list[0].reason);
		jitfiles_list_free(list, n);
	}
}

/* A process of root, until it is told to become another user's. */
static pid_t fork_that_changes(uid_t uid, int fd)
{
	const pid_t pid = fork_anew();
	char byte = 0;

	if (pid != 0)
		return pid;
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (read(fd, &byte, 1) != 1 || setresuid(uid, uid, uid) < 0 ||
	    prctl(PR_SET_DUMPABLE, 1) < 0 || write(fd, &byte, 1) != 1)
		_exit(1);
	for (;;)
		(void)pause();
}

/* Whose file it may be is asked anew: the process may be another, or another user's. */
static void another_user(void **state)
{
	const struct fixture *f = *state;
	struct record_mmap2 mmap2 = { .prot = PROT_READ | PROT_EXEC,
				      .len = 4096,
				      .name = "//anon" };
	_cleanup_(jitfiles_freep) struct jitfiles *files = NULL;
	struct jitfile *list;
	char path[64], byte;
	int pair[2];
	pid_t pid;
	size_t n;

	if (geteuid() != 0) {
		print_message("only root can become another user\n");
		skip();
	}
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	pid = fork_that_changes(65534, pair[1]);
	mmap2.pid = (uint32_t)pid;
	assert_int_equal(jitfiles_new(false, f->dir, &files), 0);
	(void)jitfiles_add(files, &mmap2, 1, &we);
	assert_int_equal(write(pair[0], "!", 1), 1);
	assert_int_equal(read(pair[0], &byte, 1), 1);
	(void)snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)pid);
	assert_int_equal(close(open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644)), 0);
	assert_int_equal(chown(path, 65534, 65534), 0);

	(void)jitfiles_add(files, &mmap2, 1, &we);
	assert_int_equal(jitfiles_list(files, &list, &n), 0);
	assert_int_equal(unlink(path), 0);
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
	assert_int_equal(n, 1);
	assert_null(list[0].reason);
	jitfiles_list_free(list, n);
	(void)close(pair[0]);
	(void)close(pair[1]);
}

/* Processes of the user that sleep until we kill them, or die. */
static void start_many_of(uid_t uid, pid_t *pids, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		pids[i] = fork_anew();
		assert_true(pids[i] >= 0);
		if (pids[i] > 0)
			continue;
		if (uid != geteuid() && setresuid(uid, uid, uid) < 0)
			_exit(1);
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			(void)pause();
	}
}

static void start_many(pid_t *pids, size_t n)
{
	start_many_of(geteuid(), pids, n);
}

/* Return: whether all of them run as the user by now. */
static bool are_of(uid_t uid, const pid_t *pids, size_t n)
{
	char path[32];
	struct stat st;

	for (size_t i = 0; i < n; i++) {
		(void)snprintf(path, sizeof(path), "/proc/%d", (int)pids[i]);
		if (stat(path, &st) < 0 || st.st_uid != uid)
			return false;
	}
	return true;
}

static void stop_many(const pid_t *pids, size_t n)
{
	for (size_t i = 0; i < n; i++)
		(void)kill(pids[i], SIGKILL);
	for (size_t i = 0; i < n; i++)
		(void)waitpid(pids[i], NULL, 0);
}

static const struct jitfile *find_dump(const struct jitfile *list, size_t n, uint32_t pid)
{
	for (size_t i = 0; i < n; i++)
		if (list[i].pid == pid && list[i].is_dump)
			return &list[i];
	return NULL;
}

/* When there are too many, a jitdump goes last, that of a process that has ended first; and it is
 * said. */
static void too_many(void **state)
{
	enum { N = JITFILES_MAX + 4 };
	const struct fixture *f = *state;
	struct record_mmap2 mmap2 = { .prot = PROT_READ | PROT_EXEC, .len = 4096 };
	_cleanup_(jitfiles_freep) struct jitfiles *files = NULL;
	struct jitfile *list;
	pid_t pids[N];
	size_t n, n_kept = 0;

	start_many(pids, N);
	assert_int_equal(jitfiles_new(false, f->dir, &files), 0);
	/* The first has one, and then sleeps; the others only make code. */
	for (size_t i = 0; i < N; i++) {
		mmap2.pid = (uint32_t)pids[i];
		mmap2.maj = i ? 0 : major(f->st.st_dev);
		mmap2.min = i ? 0 : minor(f->st.st_dev);
		mmap2.ino = i ? 0 : f->st.st_ino;
		mmap2.name = i ? "//anon" : f->dump;
		(void)jitfiles_add(files, &mmap2, 1, &we);
	}
	assert_int_equal(jitfiles_list(files, &list, &n), 0);
	assert_int_equal(n, 1);
	assert_null(list[0].reason);
	assert_int_equal(list[0].pid, pids[0]);
	jitfiles_list_free(list, n);

	/* Now all have one; two of them end, one of which was heard of just before. */
	mmap2 = (struct record_mmap2){ .prot = PROT_READ | PROT_EXEC,
				       .len = 4096,
				       .maj = major(f->st.st_dev),
				       .min = minor(f->st.st_dev),
				       .ino = f->st.st_ino,
				       .name = f->dump };
	for (size_t i = 1; i < JITFILES_MAX; i++) {
		mmap2.pid = (uint32_t)pids[i];
		(void)jitfiles_add(files, &mmap2, 1, &we);
	}
	stop_many(pids + 5, 1);
	stop_many(pids + JITFILES_MAX - 1, 1);
	for (size_t i = JITFILES_MAX; i < JITFILES_MAX + 3; i++) {
		mmap2.pid = (uint32_t)pids[i];
		(void)jitfiles_add(files, &mmap2, 1, &we);
	}
	/* For one without, none of them goes. */
	(void)jitfiles_add(files,
			   &(struct record_mmap2){ .pid = (uint32_t)pids[N - 1],
						   .prot = PROT_READ | PROT_EXEC,
						   .name = "//anon" },
			   1, &we);
	assert_int_equal(jitfiles_list(files, &list, &n), 0);
	assert_int_equal(n, JITFILES_MAX + 3);
	for (size_t i = 0; i < JITFILES_MAX + 3; i++) {
		const struct jitfile *file = find_dump(list, n, (uint32_t)pids[i]);

		assert_non_null(file);
		n_kept += !file->reason;
		if (file->reason) {
			assert_true(i == 5 || i == JITFILES_MAX - 1 || i == 0);
			assert_string_equal(file->reason, "too many processes have one");
		}
	}
	assert_int_equal(n_kept, JITFILES_MAX);
	jitfiles_list_free(list, n);

	/* It has one again. */
	mmap2.pid = (uint32_t)pids[0];
	(void)jitfiles_add(files, &mmap2, 1, &we);
	assert_int_equal(jitfiles_list(files, &list, &n), 0);
	assert_int_equal(n, JITFILES_MAX + 3);
	assert_null(find_dump(list, n, (uint32_t)pids[0])->reason);
	assert_non_null(find_dump(list, n, (uint32_t)pids[1])->reason);
	jitfiles_list_free(list, n);
	for (size_t i = 0; i < N; i++)
		if (i != 5 && i != JITFILES_MAX - 1)
			stop_many(pids + i, 1);
}

/* A user who has jitdumps in all places makes room for another one, and loses no more than that. */
static void two_users(void **state)
{
	enum { N = JITFILES_MAX + 10, A = 65534, B = 65532, N_OF_B = 3 };
	const struct fixture *f = *state;
	struct record_mmap2 mmap2 = { .prot = PROT_READ | PROT_EXEC, .len = 4096 };
	_cleanup_(jitfiles_freep) struct jitfiles *files = NULL;
	size_t n, n_of_a = 0, n_of_b = 0;
	struct jitfile *list;
	struct share share;
	pid_t pids[N], others[N_OF_B];

	if (geteuid() != 0)
		skip();
	start_many_of(A, pids, N);
	start_many_of(B, others, N_OF_B);
	while (!are_of(A, pids, N) || !are_of(B, others, N_OF_B))
		(void)usleep(1000);
	assert_int_equal(jitfiles_new(false, f->dir, &files), 0);
	mmap2.maj = major(f->st.st_dev);
	mmap2.min = minor(f->st.st_dev);
	mmap2.ino = f->st.st_ino;
	mmap2.name = f->dump;
	stoppedclock_stop(); /* it is waited for each */
	/* The other user's are older than all but the first. */
	for (size_t i = 0; i < N; i++) {
		assert_int_equal(chown(f->dump, A, (gid_t)-1), 0);
		mmap2.pid = (uint32_t)pids[i];
		(void)jitfiles_add(files, &mmap2, 1, &we);
		for (size_t k = 0; i == 0 && k < N_OF_B; k++) {
			assert_int_equal(chown(f->dump, B, (gid_t)-1), 0);
			mmap2.pid = (uint32_t)others[k];
			(void)jitfiles_add(files, &mmap2, 1, &we);
		}
	}
	assert_int_equal(jitfiles_list(files, &list, &n), 0);
	for (size_t i = 0; i < n; i++) {
		n_of_a += !list[i].reason && list[i].uid == A;
		n_of_b += !list[i].reason && list[i].uid == B;
	}
	stoppedclock_go();
	assert_int_equal(n_of_b, N_OF_B);
	assert_int_equal(n_of_a, JITFILES_MAX - N_OF_B);
	jitfiles_list_free(list, n);
	jitfiles_get_share(files, &share);
	for (size_t i = 0; i < share.n_users; i++)
		assert_int_equal(share_n_refused(&share.users[i]),
				 share.users[i].uid == A ? N + N_OF_B - JITFILES_MAX : 0);
	stop_many(pids, N);
	stop_many(others, N_OF_B);
}

static void names(void **state)
{
	static const struct {
		const char *path;
		bool is;
	} rows[] = {
		{ "/tmp/jit-12.dump", true },         { "jit-0.dump", true },
		{ "/tmp/jit-.dump", false },          { "/tmp/jit-12.dump/x", false },
		{ "/tmp/jit-12.dumpx", false },       { "/tmp/xjit-12.dump", false },
		{ "/tmp/jit-1a.dump", false },        { "", false },
		{ "/a/jit-1.dump/jit-2.dump", true },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		assert_int_equal(mapname_is_jitdump(rows[i].path), rows[i].is);
}

/* --- memory -------------------------------------------------------------------------------- */

struct pieces {
	size_t n;
	struct {
		uint64_t address;
		size_t size;
		uint8_t first;
	} list[8];
};

static int put_piece(void *userdata, uint64_t address, const void *bytes, size_t size)
{
	struct pieces *p = userdata;

	assert_true(p->n < ARRAY_LEN(p->list));
	p->list[p->n].address = address;
	p->list[p->n].size = size;
	p->list[p->n++].first = *(const uint8_t *)bytes;
	return 0;
}

/* Pages that are not there, or empty, are left out. */
static void memory_with_holes(void **state)
{
	uint8_t *m =
	    mmap(NULL, 8 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const int fd = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
	struct pieces p = {};

	(void)state;
	assert_true(m != MAP_FAILED);
	memset(m, 1, 2 * 4096);
	m[3 * 4096 + 5] = 2;
	memset(m + 5 * 4096, 3, 3 * 4096);
	assert_int_equal(munmap(m + 6 * 4096, 4096), 0);

	assert_int_equal(memcopy_read(fd, (uintptr_t)m, 8 * 4096, 1 << 20, put_piece, &p),
			 5 * 4096);
	assert_int_equal(p.n, 4);
	assert_int_equal(p.list[0].address, (uintptr_t)m);
	assert_int_equal(p.list[0].size, 2 * 4096);
	assert_int_equal(p.list[1].address, (uintptr_t)m + 3 * 4096);
	assert_int_equal(p.list[1].size, 4096);
	assert_int_equal(p.list[2].address, (uintptr_t)m + 5 * 4096);
	assert_int_equal(p.list[2].first, 3);
	assert_int_equal(p.list[3].address, (uintptr_t)m + 7 * 4096);

	/* No more than is allowed. */
	p.n = 0;
	assert_int_equal(memcopy_read(fd, (uintptr_t)m, 8 * 4096, 4096, put_piece, &p), 4096);
	assert_int_equal(p.n, 1);
	p.n = 0;
	assert_int_equal(memcopy_read(fd, (uintptr_t)m, 8 * 4096, 4095, put_piece, &p), 0);
	assert_int_equal(p.n, 0);
	(void)close(fd);
	(void)munmap(m, 8 * 4096);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_is_taken, set_up, tear_down),
		cmocka_unit_test_setup_teardown(an_unlinked_one_is_kept, set_up, tear_down),
		cmocka_unit_test_setup_teardown(claimed, set_up, tear_down),
		cmocka_unit_test_setup_teardown(by_its_magic, set_up, tear_down),
		cmocka_unit_test_setup_teardown(of_one_that_ended, set_up, tear_down),
		cmocka_unit_test_setup_teardown(another_user, set_up, tear_down),
		cmocka_unit_test_setup_teardown(too_many, set_up, tear_down),
		cmocka_unit_test_setup_teardown(two_users, set_up, tear_down),
		cmocka_unit_test(names),
		cmocka_unit_test(memory_with_holes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
