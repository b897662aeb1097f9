/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <seccomp.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Debian 12's headers are of Linux 6.1: Landlock 2. */
#ifndef LANDLOCK_ACCESS_FS_TRUNCATE
#define LANDLOCK_ACCESS_FS_TRUNCATE (UINT64_C(1) << 14)
#endif
#define LANDLOCK_ABI_TRUNCATE 3

/* All that Landlock 1 knows: what is not handled here would stay allowed. */
#define ACCESS_ALL  ((UINT64_C(1) << 13) - 1)
#define ACCESS_FILE (LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_READ_FILE)
#define ACCESS_READ (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)
#define ACCESS_WRITE \
	(LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_MAKE_DIR)

/* A sanitized build looks for leaks at its end, through /proc and ptrace(2): it is for tests. */
#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#endif

/* --- files ------------------------------------------------------------------------------------ */

static int add_root(int ruleset, const struct sandbox_root *root, uint64_t handled)
{
	const uint64_t truncate = handled & LANDLOCK_ACCESS_FS_TRUNCATE;
	struct landlock_path_beneath_attr rule = { .allowed_access = ACCESS_READ };
	_cleanup_(fd_closep) int fd = open(root->path, O_PATH | O_CLOEXEC);
	struct stat st;

	if (fd < 0)
		return errno == ENOENT || errno == ENOTDIR || errno == EACCES ? 0 : -errno;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (root->writable)
		rule.allowed_access |= ACCESS_WRITE | truncate;
	if (!S_ISDIR(st.st_mode))
		rule.allowed_access &= ACCESS_FILE | truncate;
	rule.parent_fd = fd;
	if (syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) == 0)
		return 0;
	/* A pipe that has a path (/dev/fd/N) needs no rule. */
	return errno == EBADFD ? 0 : -errno;
}

static int restrict_files(const struct sandbox_root *roots, size_t n_roots)
{
	struct landlock_ruleset_attr attr = { .handled_access_fs = ACCESS_ALL };
	_cleanup_(fd_closep) int ruleset = -1;
	long abi;
	int r = 0;

	abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
	if (abi < 0)
		return errno == ENOSYS || errno == EOPNOTSUPP ? 0 : -errno;
	if (abi >= LANDLOCK_ABI_TRUNCATE)
		attr.handled_access_fs |= LANDLOCK_ACCESS_FS_TRUNCATE;
	ruleset = (int)syscall(SYS_landlock_create_ruleset, &attr, sizeof(attr), 0);
	if (ruleset < 0)
		return -errno;
	for (size_t i = 0; r == 0 && i < n_roots; i++)
		r = add_root(ruleset, &roots[i], attr.handled_access_fs);
#ifdef SANITIZED
	if (r == 0)
		r = add_root(ruleset, &(struct sandbox_root){ .path = "/proc" },
			     attr.handled_access_fs);
#endif
	if (r < 0)
		return r;
	return syscall(SYS_landlock_restrict_self, ruleset, 0) < 0 ? -errno : 0;
}

/* --- system calls ----------------------------------------------------------------------------- */

/* To execute, to reach other hosts or processes, or to get around this filter. */
static const int refused[] = {
	SCMP_SYS(execve),
	SCMP_SYS(execveat),
	SCMP_SYS(socket),
	SCMP_SYS(socketpair),
	SCMP_SYS(connect),
	SCMP_SYS(bind),
	SCMP_SYS(listen),
	SCMP_SYS(accept),
	SCMP_SYS(accept4),
	SCMP_SYS(sendto),
	SCMP_SYS(sendmsg),
	SCMP_SYS(sendmmsg),
#ifndef SANITIZED
	SCMP_SYS(ptrace),
#endif
	SCMP_SYS(process_vm_readv),
	SCMP_SYS(process_vm_writev),
	SCMP_SYS(process_madvise),
	SCMP_SYS(pidfd_open),
	SCMP_SYS(pidfd_getfd),
	SCMP_SYS(pidfd_send_signal),
	SCMP_SYS(kcmp),
	SCMP_SYS(bpf),
	SCMP_SYS(perf_event_open),
	SCMP_SYS(io_uring_setup),
	SCMP_SYS(userfaultfd),
	SCMP_SYS(open_by_handle_at),
	SCMP_SYS(mount),
	SCMP_SYS(umount2),
	SCMP_SYS(move_mount),
	SCMP_SYS(pivot_root),
	SCMP_SYS(chroot),
	SCMP_SYS(setns),
	SCMP_SYS(unshare),
	SCMP_SYS(keyctl),
	SCMP_SYS(add_key),
	SCMP_SYS(request_key),
	SCMP_SYS(init_module),
	SCMP_SYS(finit_module),
	SCMP_SYS(delete_module),
	SCMP_SYS(kexec_load),
	SCMP_SYS(reboot),
};

static int restrict_calls(void)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
	int r = filter ? 0 : -ENOMEM;

	for (size_t i = 0; i < ARRAY_LEN(refused) && r == 0; i++)
		r = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), refused[i], 0);
	if (r == 0)
		r = seccomp_load(filter);
	seccomp_release(filter);
	return r;
}

int sandbox_enter(const struct sandbox_root *roots, size_t n_roots)
{
	int r;

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -errno;
	r = restrict_files(roots, n_roots);
	return r < 0 ? r : restrict_calls();
}
