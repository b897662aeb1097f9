/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/cmd/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <linux/landlock.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "util/dirs.h"

/* Debian 12's headers are of Linux 6.1: Landlock 2. */
#ifndef LANDLOCK_ACCESS_FS_TRUNCATE
#define LANDLOCK_ACCESS_FS_TRUNCATE (UINT64_C(1) << 14)
#endif
#define LANDLOCK_ABI_TRUNCATE 3

/* All that Landlock 1 knows: what is not handled here would stay allowed. */
#define ACCESS_ALL  ((UINT64_C(1) << 13) - 1)
#define ACCESS_FILE (LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_READ_FILE)
#define ACCESS_READ (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)
/* To give a file another name is to make it under that name and to remove it under the old one. */
#define ACCESS_WRITE                                                   \
	(LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_MAKE_REG | \
	 LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_REMOVE_FILE)

/*
 * A sanitized build is for tests: it looks for leaks at its end, by a thread of its own, /proc and
 * ptrace(2), and has far more address space than memory.
 */
#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

/* --- files ------------------------------------------------------------------------------------ */

/* Return: a descriptor of the root, which the caller closes; or negative errno. */
static int open_root(const struct sandbox_root *root)
{
	const int fd =
	    root->path ? open(root->path, O_PATH | O_CLOEXEC) : fcntl(root->fd, F_DUPFD_CLOEXEC, 0);

	return fd < 0 ? -errno : fd;
}

static int add_root(int ruleset, const struct sandbox_root *root, uint64_t handled)
{
	const uint64_t truncate = handled & LANDLOCK_ACCESS_FS_TRUNCATE;
	struct landlock_path_beneath_attr rule = { .allowed_access = ACCESS_READ };
	_cleanup_(fd_closep) int fd = open_root(root);
	struct stat st;

	/*
	 * A root that does not exist or cannot be reached (a dead mount) is not read later, either.
	 */
	if (fd == -EMFILE || fd == -ENFILE || fd == -ENOMEM)
		return fd;
	if (fd < 0 || fstat(fd, &st) < 0)
		return 0;
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

static int restrict_files(const struct sandbox *sandbox)
{
	struct landlock_ruleset_attr attr = { .handled_access_fs = ACCESS_ALL };
	_cleanup_(fd_closep) int ruleset = -1;
	long abi;
	int r = 0;

	abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
	/* EPERM: a container's filter that is older than Landlock. */
	if (abi < 0)
		return errno == ENOSYS || errno == EOPNOTSUPP || errno == EPERM ? 0 : -errno;
	if (abi >= LANDLOCK_ABI_TRUNCATE)
		attr.handled_access_fs |= LANDLOCK_ACCESS_FS_TRUNCATE;
	ruleset = (int)syscall(SYS_landlock_create_ruleset, &attr, sizeof(attr), 0);
	if (ruleset < 0)
		return -errno;
	for (size_t i = 0; r == 0 && i < sandbox->n_roots; i++)
		r = add_root(ruleset, &sandbox->roots[i], attr.handled_access_fs);
	if (r == 0 && SANITIZED)
		r = add_root(ruleset, &(struct sandbox_root){ .path = "/proc" },
			     attr.handled_access_fs);
	if (r < 0)
		return r;
	return syscall(SYS_landlock_restrict_self, ruleset, 0) < 0 ? -errno : 0;
}

/* --- rights ----------------------------------------------------------------------------------- */

/*
 * Keep only the capability to read other users' files and, if @creates, the one to write them, if
 * the process has them: root can then use these files as before.
 */
static int drop_capabilities(bool creates)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {};
	const uint32_t kept = 1u << CAP_DAC_READ_SEARCH | (creates ? 1u << CAP_DAC_OVERRIDE : 0);

	if (syscall(SYS_capget, &header, data) < 0)
		return -errno;
	/*
	 * Up to the last that the kernel knows. A process that may not drop them has none to lose.
	 */
	for (unsigned long i = 0; prctl(PR_CAPBSET_READ, i, 0, 0, 0) >= 0; i++)
		(void)prctl(PR_CAPBSET_DROP, i, 0, 0, 0);
	data[0] = (struct __user_cap_data_struct){ .effective = data[0].effective & kept,
						   .permitted = data[0].permitted & kept };
	data[1] = (struct __user_cap_data_struct){};
	return syscall(SYS_capset, &header, data) < 0 ? -errno : 0;
}

static int limit(int resource, uint64_t max)
{
	struct rlimit l;

	if (max == 0)
		return 0;
	if (getrlimit(resource, &l) < 0)
		return -errno;
	if (l.rlim_max > max)
		l.rlim_max = max;
	if (l.rlim_cur > l.rlim_max)
		l.rlim_cur = l.rlim_max;
	return setrlimit(resource, &l) < 0 ? -errno : 0;
}

static int set_limits(const struct sandbox *sandbox)
{
	int r = SANITIZED ? 0 : limit(RLIMIT_AS, sandbox->memory_max);

	/* A write beyond the limit must fail, so that it is reported, and not kill the process. */
	if (r == 0 && sandbox->file_max && signal(SIGXFSZ, SIG_IGN) == SIG_ERR)
		r = -errno;
	return r < 0 ? r : limit(RLIMIT_FSIZE, sandbox->file_max);
}

/* --- system calls ----------------------------------------------------------------------------- */

/* System calls that are allowed with any arguments. */
static const int allowed[] = {
	/* what is open */
	SCMP_SYS(read),
	SCMP_SYS(readv),
	SCMP_SYS(pread64),
	SCMP_SYS(write),
	SCMP_SYS(writev),
	SCMP_SYS(pwrite64),
	SCMP_SYS(lseek),
	SCMP_SYS(poll),
	SCMP_SYS(ppoll),
	SCMP_SYS(close),
	SCMP_SYS(ftruncate),
	SCMP_SYS(copy_file_range),
	SCMP_SYS(sendfile),
	SCMP_SYS(getdents64),
	SCMP_SYS(recvmsg),
	SCMP_SYS(fstat),
	SCMP_SYS(fadvise64),
	/* files that can be seen */
	SCMP_SYS(stat),
	SCMP_SYS(lstat),
	SCMP_SYS(newfstatat),
	SCMP_SYS(statx),
	SCMP_SYS(access),
	SCMP_SYS(faccessat),
	SCMP_SYS(faccessat2),
	SCMP_SYS(readlink),
	SCMP_SYS(readlinkat),
	SCMP_SYS(getcwd),
	/* memory */
	SCMP_SYS(brk),
	SCMP_SYS(munmap),
	SCMP_SYS(mremap),
	SCMP_SYS(madvise),
	SCMP_SYS(memfd_create),
	/* itself */
	SCMP_SYS(rt_sigaction),
	SCMP_SYS(rt_sigprocmask),
	SCMP_SYS(rt_sigtimedwait),
	SCMP_SYS(rt_sigreturn),
	SCMP_SYS(sigaltstack),
	SCMP_SYS(restart_syscall),
	SCMP_SYS(futex),
	SCMP_SYS(sched_yield),
	SCMP_SYS(sched_getaffinity),
	SCMP_SYS(getpid),
	SCMP_SYS(gettid),
	SCMP_SYS(getuid),
	SCMP_SYS(geteuid),
	SCMP_SYS(getgid),
	SCMP_SYS(getegid),
	SCMP_SYS(getrlimit),
	SCMP_SYS(getrusage),
	SCMP_SYS(sysinfo),
	SCMP_SYS(uname),
	SCMP_SYS(getrandom),
	SCMP_SYS(clock_gettime),
	SCMP_SYS(clock_getres),
	SCMP_SYS(clock_nanosleep),
	SCMP_SYS(nanosleep),
	SCMP_SYS(gettimeofday),
	SCMP_SYS(time),
	SCMP_SYS(wait4),
	SCMP_SYS(exit),
	SCMP_SYS(exit_group),
};

/* System calls that a process that creates files needs in addition. */
static const int allowed_creator[] = {
	SCMP_SYS(openat),
	SCMP_SYS(mkdirat),
	SCMP_SYS(sendmsg),
	SCMP_SYS(renameat),
};

/* System calls that starting and ending threads needs in addition. */
static const int allowed_threads[] = { SCMP_SYS(set_robust_list), SCMP_SYS(rseq) };

/* What pthread_create(3) asks of clone(2): a thread, which is no process. */
#define CLONE_OF_THREAD                                                                     \
	(CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SYSVSEM | CLONE_SIGHAND | CLONE_THREAD | \
	 CLONE_SETTLS | CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID)

/* System calls that AddressSanitizer's search for leaks needs in addition. */
static const int allowed_sanitized[] = {
	SCMP_SYS(getdents),
	SCMP_SYS(clone),
	SCMP_SYS(clone3),
	SCMP_SYS(ptrace),
	SCMP_SYS(prctl),
	SCMP_SYS(tgkill),
	SCMP_SYS(kill),
	SCMP_SYS(getppid),
	SCMP_SYS(set_robust_list),
	SCMP_SYS(rseq),
	SCMP_SYS(pipe2),
	SCMP_SYS(dup2),
	SCMP_SYS(process_vm_readv),
};

#define OPEN_MASK (O_ACCMODE | O_CREAT | O_TRUNC | (O_TMPFILE & ~O_DIRECTORY))

/* A call is allowed if the bits of @mask in argument @arg have this value. */
struct argument_rule {
	int call;
	unsigned arg;
	uint64_t mask, value;
};

static const struct argument_rule argument_rules[] = {
	/* only to read */
	{ SCMP_SYS(open), 1, OPEN_MASK, O_RDONLY },
	{ SCMP_SYS(openat), 2, OPEN_MASK, O_RDONLY },
	/* not to execute */
	{ SCMP_SYS(mmap), 2, PROT_EXEC, 0 },
	{ SCMP_SYS(mprotect), 2, PROT_EXEC, 0 },
	/* isatty(3), and the size of the window */
	{ SCMP_SYS(ioctl), 1, UINT64_MAX, TCGETS },
	{ SCMP_SYS(ioctl), 1, UINT64_MAX, TIOCGWINSZ },
	/* nothing that has a signal sent to a process */
	{ SCMP_SYS(fcntl), 1, UINT64_MAX, F_DUPFD },
	{ SCMP_SYS(fcntl), 1, UINT64_MAX, F_DUPFD_CLOEXEC },
	{ SCMP_SYS(fcntl), 1, UINT64_MAX, F_GETFD },
	{ SCMP_SYS(fcntl), 1, UINT64_MAX, F_SETFD },
	{ SCMP_SYS(fcntl), 1, UINT64_MAX, F_GETFL },
	/* not to set limits */
	{ SCMP_SYS(prlimit64), 2, UINT64_MAX, 0 },
};

static int allow(scmp_filter_ctx filter, const int *calls, size_t n)
{
	int r = 0;

	for (size_t i = 0; i < n && r == 0; i++)
		r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, calls[i], 0);
	return r;
}

static int allow_if(scmp_filter_ctx filter, const struct argument_rule *rule)
{
	const struct scmp_arg_cmp is = { rule->arg, SCMP_CMP_MASKED_EQ, rule->mask, rule->value };

	return seccomp_rule_add_array(filter, SCMP_ACT_ALLOW, rule->call, 1, &is);
}

/*
 * Let threads be started, and nothing else. A filter does not see the flags of clone3(2), so that
 * has to seem to be missing: the C library then calls clone(2).
 */
static int allow_threads(scmp_filter_ctx filter)
{
	static const struct argument_rule thread = { SCMP_SYS(clone), 0, UINT64_MAX,
						     CLONE_OF_THREAD };
	int r = allow(filter, allowed_threads, ARRAY_LEN(allowed_threads));

	if (r == 0)
		r = allow_if(filter, &thread);
	return r < 0 ? r : seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
}

static int add_rules(scmp_filter_ctx filter, const struct sandbox *sandbox)
{
	const bool creates = sandbox->creates;

	/* abort(3) signals this process. */
	const struct argument_rule abort = { SCMP_SYS(tgkill), 0, UINT64_MAX, (uint64_t)getpid() };
	int r = allow(filter, allowed, ARRAY_LEN(allowed));

	for (size_t i = 0; i < ARRAY_LEN(argument_rules) && r == 0; i++)
		if (!creates || argument_rules[i].call != SCMP_SYS(openat))
			r = allow_if(filter, &argument_rules[i]);
	if (r == 0 && !SANITIZED)
		r = allow_if(filter, &abort);
	if (r == 0 && creates)
		r = allow(filter, allowed_creator, ARRAY_LEN(allowed_creator));
	if (r == 0 && sandbox->threads && !SANITIZED)
		r = allow_threads(filter);
	if (r == 0 && SANITIZED)
		r = allow(filter, allowed_sanitized, ARRAY_LEN(allowed_sanitized));
	return r;
}

/* System calls of 32-bit code, which have other numbers, kill the process with all its threads. */
static int restrict_calls(const struct sandbox *sandbox)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(EPERM));
	int r = filter ? 0 : -ENOMEM;

	if (r == 0)
		r = seccomp_attr_set(filter, SCMP_FLTATR_CTL_OPTIMIZE, 2); /* a binary tree */
	if (r == 0)
		r = seccomp_attr_set(filter, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
	if (r == 0)
		r = add_rules(filter, sandbox);
	if (r == 0)
		r = seccomp_load(filter);
	seccomp_release(filter);
	return r;
}

int sandbox_enter(const struct sandbox *sandbox)
{
	int r;

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -errno;
	r = set_limits(sandbox);
	if (r == 0)
		r = restrict_files(sandbox);
	if (r == 0)
		r = drop_capabilities(sandbox->creates);
	return r < 0 ? r : restrict_calls(sandbox);
}

/* --- inherit ---------------------------------------------------------------------------------- */

/* Return: the descriptor that @path names, or -1. */
static int descriptor_of(const char *path)
{
	static const char *const directories[] = { "/dev/fd/", "/proc/self/fd/" };

	if (!path)
		return -1;
	if (strcmp(path, "-") == 0 || strcmp(path, "/dev/stdin") == 0)
		return STDIN_FILENO;
	for (size_t i = 0; i < ARRAY_LEN(directories); i++) {
		const size_t size = strlen(directories[i]);
		unsigned long n;

		if (strncmp(path, directories[i], size) != 0 || path[size] < '0' ||
		    path[size] > '9')
			continue;
		n = strtoul(path + size, NULL, 10);
		return n < INT_MAX ? (int)n : -1;
	}
	return -1;
}

/*
 * Return: the lowest descriptor that is @fd or higher and that one of the paths names; INT_MAX if
 *         there is none.
 */
static int next_named(const char *const *paths, size_t n, int fd)
{
	int next = INT_MAX;

	for (size_t i = 0; i < n; i++) {
		const int named = descriptor_of(paths[i]);

		if (named >= fd && named < next)
			next = named;
	}
	return next;
}

static int close_stdin(void)
{
	_cleanup_(fd_closep) int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

	/* Where there is no /dev, there is no terminal, either. */
	if (null < 0) {
		(void)close(STDIN_FILENO);
		return 0;
	}
	if (null == STDIN_FILENO) {
		null = -1;
		return 0;
	}
	return dup2(null, STDIN_FILENO) < 0 ? -errno : 0;
}

int inherit_only(const char *const *paths, size_t n)
{
	int r = 0;

	if (next_named(paths, n, STDIN_FILENO) != STDIN_FILENO)
		r = close_stdin();
	for (int fd = STDERR_FILENO + 1; r == 0;) {
		const int named = next_named(paths, n, fd);

		if (named > fd && close_range((unsigned)fd, (unsigned)named - 1, 0) < 0)
			r = -errno;
		if (named == INT_MAX)
			break;
		fd = named + 1;
	}
	/* Linux before 5.9 has no close_range(2). */
	return r == -ENOSYS ? 0 : r;
}

/* --- budget ----------------------------------------------------------------------------------- */

/* How far a file system may compress a file. A file that is larger has holes. */
#define COMPRESSION_MAX 16u

/* The bytes of a file have addresses of their own, engine insn reserves as many for its copy of the
 * PT, and what is made of code takes a multiple of it. */
#define N_MAPPINGS 6u

static uint64_t add_sizes(uint64_t a, uint64_t b)
{
	return a > INT64_MAX - b ? INT64_MAX : a + b;
}

static uint64_t size_of_file(const struct stat *st)
{
	const uint64_t size = (uint64_t)st->st_size;
	const uint64_t on_disk = ((uint64_t)st->st_blocks + 8) * 512 * COMPRESSION_MAX;

	return size < on_disk ? size : on_disk;
}

static uint64_t size_of_tree(int fd, int depth)
{
	_cleanup_(dirs_closep) DIR *dir = depth > DIRS_DEPTH_MAX ? NULL : dirs_list(fd);
	struct dirent *entry;
	uint64_t size = 0;

	while (dir && dirs_next(dir, &entry) > 0) {
		_cleanup_(fd_closep) int child = -1;
		struct stat st;

		if (fstatat(fd, entry->d_name, &st, 0) < 0)
			continue;
		if (S_ISREG(st.st_mode))
			size = add_sizes(size, size_of_file(&st));
		if (!S_ISDIR(st.st_mode))
			continue;
		child = dirs_open(fd, entry->d_name);
		if (child >= 0)
			size = add_sizes(size, size_of_tree(child, depth + 1));
	}
	return size;
}

uint64_t budget_size_of(const char *path)
{
	_cleanup_(fd_closep) int fd = -1;
	struct stat st;

	if (stat(path, &st) < 0)
		return 0;
	if (S_ISREG(st.st_mode))
		return size_of_file(&st);
	if (!S_ISDIR(st.st_mode))
		return 0;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? 0 : size_of_tree(fd, 0);
}

uint64_t budget_for(uint64_t inputs, uint64_t spills, size_t n_threads)
{
	uint64_t size = add_sizes(BUDGET_BASE, spills);

	for (size_t i = 1; i < n_threads; i++)
		size = add_sizes(size, BUDGET_THREAD);

	for (unsigned i = 0; i < N_MAPPINGS; i++)
		size = add_sizes(size, inputs);
	return size;
}

/* --- helper ----------------------------------------------------------------------------------- */

int helper_start(void (*serve)(int socket, void *userdata), void *userdata,
		 struct helper *ret_helper)
{
	int sockets[2], r;
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) < 0)
		return -errno;
	pid = fork();
	if (pid == 0) {
		(void)fd_close(sockets[0]);
		serve(sockets[1], userdata);
		_exit(0);
	}
	r = pid < 0 ? -errno : 0;
	(void)fd_close(sockets[1]);
	if (r < 0)
		(void)fd_close(sockets[0]);
	else
		*ret_helper = (struct helper){ .pid = pid, .socket = sockets[0] };
	return r;
}

void helper_stop(struct helper *helper)
{
	if (!helper->pid)
		return;
	(void)fd_close(helper->socket);
	while (waitpid(helper->pid, NULL, 0) < 0 && errno == EINTR)
		;
	*helper = (struct helper){};
}
