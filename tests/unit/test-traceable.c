/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Whose a process is. The judge is the kernel: where we say that it is a user's, that user can read
 * its auxiliary vector, which takes PTRACE_MODE_READ. We may say no where the kernel says yes. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#include "daemon/proc/birth.h"
#include "daemon/proc/traceable.h"
#include "tests/lib/tempdir.h"
#include "util/dirs.h"

#define U 60001u
#define V 60002u

static char root[TEMPDIR_SIZE];
static char setuid_sleep[128], unreadable_sleep[128], own_setuid_sleep[128], capable_sleep[128];

static void copy_sleep(const char *path, uid_t owner, mode_t mode)
{
	char command[512];

	(void)snprintf(command, sizeof(command), "cp \"$(command -v sleep)\" %s", path);
	assert_int_equal(system(command), 0);
	assert_int_equal(chown(path, owner, owner), 0);
	assert_int_equal(chmod(path, mode), 0);
}

static void give_capability(const char *path)
{
	const struct vfs_cap_data data = { .magic_etc =
					       VFS_CAP_REVISION_2 | VFS_CAP_FLAGS_EFFECTIVE,
					   .data[0].permitted = 1u << CAP_NET_RAW };

	assert_int_equal(setxattr(path, "security.capability", &data, sizeof(data), 0), 0);
}

static int set_up(void **state)
{
	(void)state;
	tempdir_make("traceable", root);
	(void)snprintf(setuid_sleep, sizeof(setuid_sleep), "%s/setuid", root);
	(void)snprintf(unreadable_sleep, sizeof(unreadable_sleep), "%s/unreadable", root);
	(void)snprintf(own_setuid_sleep, sizeof(own_setuid_sleep), "%s/own", root);
	(void)snprintf(capable_sleep, sizeof(capable_sleep), "%s/capable", root);
	if (geteuid() == 0) {
		copy_sleep(own_setuid_sleep, U, 04755);
		copy_sleep(capable_sleep, V, 0755);
		give_capability(capable_sleep);
		copy_sleep(setuid_sleep, V, 04755);
		copy_sleep(unreadable_sleep, V, 0711);
	}
	return chmod(root, 0755);
}

static int tear_down(void **state)
{
	(void)state;
	tempdir_remove(root);
	return 0;
}

/* --- kinds of processes ----------------------------------------------------------------------- */

static void be(uid_t uid, gid_t gid)
{
	if (setgroups(0, NULL) < 0 || setresgid(gid, gid, gid) < 0 || setresuid(uid, uid, uid) < 0)
		_exit(1);
}

static void sleep_by(const char *program)
{
	(void)execlp(program, "sleep", "1000", NULL);
	_exit(1);
}

static void plain(void)
{
	be(U, U);
	sleep_by("sleep");
}

/* It executes its program again and again. */
static void restless(void)
{
	static const char line[] = "exec sh -c \"$0\" \"$0\"";

	be(U, U);
	(void)execlp("sh", "sh", "-c", line, line, NULL);
	_exit(1);
}

static void hidden(void)
{
	be(U, U);
	/* As a program does it that was executed by him; without exec it is hidden anyway. */
	(void)execlp("python3", "python3", "-c",
		     "import ctypes,time\nctypes.CDLL(None).prctl(4,0,0,0,0)\ntime.sleep(1000)",
		     NULL);
	_exit(1);
}

static void dropped(void)
{
	be(U, U);
	(void)prctl(PR_SET_DUMPABLE, 1);
	for (;;)
		(void)pause();
}

static void by_setuid(void)
{
	be(U, U);
	sleep_by(setuid_sleep);
}

/* Nothing changes, but it might have, as far as one can see later. */
static void by_own_setuid(void)
{
	be(U, U);
	sleep_by(own_setuid_sleep);
}

static void by_capable(void)
{
	be(U, U);
	(void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	sleep_by(capable_sleep);
}

static void by_unreadable(void)
{
	be(U, U);
	sleep_by(unreadable_sleep);
}

static void of_other_group(void)
{
	be(U, V);
	sleep_by("sleep");
}

static void of_root(void)
{
	sleep_by("sleep");
}

/* It keeps a capability for what it executes. */
static void capable(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = {};

	(void)prctl(PR_SET_KEEPCAPS, 1);
	be(U, U);
	data[0].permitted = data[0].effective = data[0].inheritable = 1u << CAP_NET_RAW;
	if (syscall(SYS_capset, &header, data) < 0 ||
	    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_NET_RAW, 0, 0) < 0)
		_exit(1);
	sleep_by("sleep");
}

static void ended(void)
{
	be(U, U);
	_exit(0);
}

/* --- the judge -------------------------------------------------------------------------------- */

/* Return: whether the kernel lets user U, in his group, read the process. */
static bool kernel_lets(pid_t pid)
{
	const pid_t child = fork();
	int status;

	if (child == 0) {
		char path[32], bytes[64];
		int fd;

		be(U, U);
		(void)snprintf(path, sizeof(path), "/proc/%d/auxv", (int)pid);
		fd = open(path, O_RDONLY);
		_exit(fd >= 0 && read(fd, bytes, sizeof(bytes)) > 0 ? 0 : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static pid_t start(void (*kind)(void))
{
	const pid_t pid = fork();

	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		kind();
		_exit(1);
	}
	assert_true(pid > 0);
	return pid;
}

static int check(pid_t pid, struct traceable *ret_traceable)
{
	_cleanup_(fd_closep) int fd = -1;
	char path[32];

	(void)snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	fd = dirs_open(AT_FDCWD, path);
	assert_true(fd >= 0);
	return traceable_check(fd, ret_traceable);
}

static void processes(void **state)
{
	static const struct {
		const char *name;
		void (*kind)(void);
		bool is_his, kernel_says;
	} rows[] = {
		{ "plain", plain, true, true },
		{ "not dumpable", hidden, false, false },
		{ "dumpable again without a new program", dropped, false, true },
		{ "set-user-ID", by_setuid, false, false },
		{ "set-user-ID to himself", by_own_setuid, false, true },
		{ "whose file has a capability", by_capable, false, true },
		{ "that he cannot read", by_unreadable, false, false },
		{ "of another group", of_other_group, false, false },
		{ "root's", of_root, false, false },
		{ "with a capability", capable, false, false },
		{ "ended", ended, false, false },
	};

	(void)state;
	if (geteuid() != 0)
		skip();
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct timespec moment = { .tv_nsec = 300000000 };
		const pid_t pid = start(rows[i].kind);
		struct traceable t = { .uid = 1, .gid = 2 };
		int r;

		(void)nanosleep(&moment, NULL);
		if (rows[i].kind == hidden)
			(void)nanosleep(&moment, NULL);
		r = check(pid, &t);
		if ((r == 0 && t.uid == U && t.gid == U) != rows[i].is_his ||
		    kernel_lets(pid) != rows[i].kernel_says)
			fail_msg("%s: %d, and the kernel says %d", rows[i].name, r,
				 kernel_lets(pid));
		if (r < 0)
			assert_true(t.uid == 1 && t.gid == 2);
		else
			assert_int_equal(t.birth, birth_of((uint32_t)pid));
		(void)kill(pid, SIGKILL);
		assert_int_equal(waitpid(pid, NULL, 0), pid);
	}
}

/* Whenever it is looked at, it is his, or that is not known yet. */
static void executing(void **state)
{
	const struct timespec moment = { .tv_nsec = 100000000 };
	struct traceable t = {};
	unsigned n_refused = 0;
	pid_t pid;

	(void)state;
	if (geteuid() != 0)
		skip();
	pid = start(restless);
	/* Before its first exec it is nobody's: it had root's rights. */
	for (unsigned i = 0; i < 100 && check(pid, &t) != 0; i++)
		(void)nanosleep(&moment, NULL);
	for (unsigned i = 0; i < 20000; i++) {
		const int r = check(pid, &t);

		n_refused += r != -EAGAIN && (r != 0 || t.uid != U || t.gid != U);
	}
	(void)kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(n_refused, 0);
}

/* --- what files say --------------------------------------------------------------------------- */

static const char status[] = "Name:\tx\\nUid:\t0\t0\t0\t0\nUmask:\t0022\nUid:\t1\t1\t1\t1\n"
			     "Gid:\t2\t2\t2\t2\nGroups:\t4 5\nVmSize:\t 100 kB\nThreads:\t3\n"
			     "CapInh:\t0000000000000000\nCapPrm:\t0000000000000000\n"
			     "CapEff:\t0000000000000000\nCapBnd:\t000001ffffffffff\n"
			     "CapAmb:\t0000000000000000\n";

static void statuses(void **state)
{
	static const struct {
		const char *from, *to;
	} rows[] = {
		{ "\nUid:\t1\t", "\nUid:\t7\t" },
		{ "\nUid:\t1\t1\t1\t1\n", "\nUid:\t1\t1\t1\t7\n" },
		{ "\nUid:\t1\t1\t1\t1\n", "\nUid:\t0\t0\t0\t0\n" },
		{ "\nUid:\t1\t1\t1\t1\n", "\nUid:\t1\t1\t1\n" },
		{ "\nGid:\t2\t2\t", "\nGid:\t2\t7\t" },
		{ "\nGid:", "\nGix:" },
		{ "VmSize", "VmSizx" },
		{ "Threads", "Threadx" },
		{ "CapInh:\t0", "CapInh:\t8" },
		{ "CapPrm:\t0", "CapPrm:\t8" },
		{ "CapEff:\t0", "CapEff:\t8" },
		{ "CapAmb:\t0", "CapAmb:\t8" },
		{ "CapAmb", "CapAmx" },
	};
	struct traceable t = {};
	unsigned n = 0;

	(void)state;
	assert_int_equal(traceable_read_status(status, &t, &n), 0);
	assert_true(t.uid == 1 && t.gid == 2 && n == 3);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char text[sizeof(status) + 16];
		const char *at = strstr(status, rows[i].from);

		assert_non_null(at);
		(void)snprintf(text, sizeof(text), "%.*s%s%s", (int)(at - status), status,
			       rows[i].to, at + strlen(rows[i].from));
		n = 9;
		if (traceable_read_status(text, &t, &n) != -EPERM || n != 9)
			fail_msg("row %zu", i);
	}
}

static void vectors(void **state)
{
	static const uint64_t good[] = { AT_PAGESZ, 4096, AT_UID,    1, AT_EUID,   1,  AT_GID,  2,
					 AT_EGID,   2,    AT_SECURE, 0, AT_EXECFN, 77, AT_NULL, 0 };
	const size_t n_needed = ARRAY_LEN(good) - 4;
	uint32_t narrow[ARRAY_LEN(good)];

	(void)state;
	assert_int_equal(traceable_check_auxv(good, sizeof(good), 1, 2), 0);
	for (size_t i = 0; i < ARRAY_LEN(good); i++)
		narrow[i] = (uint32_t)good[i];
	assert_int_equal(traceable_check_auxv(narrow, sizeof(narrow), 1, 2), 0);
	assert_int_equal(traceable_check_auxv(good, sizeof(good), 1, 3), -EPERM);
	assert_int_equal(traceable_check_auxv(good, sizeof(good), 2, 2), -EPERM);
	assert_int_equal(traceable_check_auxv(narrow, sizeof(narrow), 1, 3), -EPERM);
	for (size_t i = 0; i < n_needed; i++) {
		uint64_t bad[ARRAY_LEN(good)];

		memcpy(bad, good, sizeof(bad));
		bad[i] += 100;
		assert_int_equal(traceable_check_auxv(bad, sizeof(bad), 1, 2), -EPERM);
		/* The kernel has not written more than that yet. */
		memset(bad + i / 2 * 2, 0, sizeof(bad) - i / 2 * 2 * sizeof(*bad));
		assert_int_equal(traceable_check_auxv(bad, (i / 2 + 1) * 2 * sizeof(*bad), 1, 2),
				 -EAGAIN);
	}
	assert_int_equal(traceable_check_auxv(good, 0, 1, 2), -EAGAIN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(processes),
		cmocka_unit_test(executing),
		cmocka_unit_test(statuses),
		cmocka_unit_test(vectors),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
