/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * escape: ptdecode with a decoder in which an attacker runs his code. Before the first batch, and
 * when --raw-elf's file is parsed, it attempts what the sandbox is there to refuse, and says on
 * stderr how each attempt ended: the text of its errno, or DONE.
 *
 * The environment names what is attacked: OUTSIDE is a file that is below none of the roots,
 * OUTPUT_DIR the directory in which the output is, READABLE a file below a root, INHERITED the
 * number of a descriptor that the shell left open. ESCAPE_BY=int80 makes a system call of 32-bit
 * code instead of all this, for which the kernel should kill the process.
 */

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <linux/sched.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/base.h"
#include "decoder/cmd/rawcode.h"
#include "decoder/util/outdir.h"
#include "ptd/decode.h"

int __real_ptd_decoder_next(struct ptd_decoder *decoder, const struct ptd_batch **ret_batch);
int __wrap_ptd_decoder_next(struct ptd_decoder *decoder, const struct ptd_batch **ret_batch);
int __real_rawcode_add_elf(struct rawcode *code, const char *path, char **reterr_message);
int __wrap_rawcode_add_elf(struct rawcode *code, const char *path, char **reterr_message);

static char page[4096] __attribute__((aligned(4096)));

static void say(const char *what, long r)
{
	fprintf(stderr, "escape: %s: %s\n", what, r < 0 ? strerror(errno) : "DONE");
}

/* A file with the name of @path, and something behind it. */
static const char *beside(const char *path, const char *suffix)
{
	static char name[4096];

	(void)snprintf(name, sizeof(name), "%s%s", path, suffix);
	return name;
}

static int open_flags(const char *path, int flags)
{
	return open(path, flags | O_CLOEXEC, 0600);
}

/* --- files ------------------------------------------------------------------------------------ */

static void try_files(void)
{
	const char *outside = getenv("OUTSIDE"), *readable = getenv("READABLE");
	const char *output_dir = getenv("OUTPUT_DIR");

	say("read", open_flags(outside, O_RDONLY));
	say("write", open_flags(outside, O_WRONLY));
	say("write readable", open_flags(readable, O_WRONLY));
	say("read and write", open_flags(readable, O_RDWR));
	say("append", open_flags(readable, O_WRONLY | O_APPEND));
	say("empty by open", open_flags(readable, O_RDONLY | O_TRUNC));
	say("truncate", truncate(outside, 0));
	say("truncate readable", truncate(readable, 0));
	say("remove", unlink(outside));
	say("remove readable", unlink(readable));
	say("create", open_flags(beside(outside, ".new"), O_WRONLY | O_CREAT));
	say("create to read", open_flags(beside(outside, ".new"), O_RDONLY | O_CREAT));
	say("create beside the output",
	    open_flags(beside(output_dir, "/new"), O_WRONLY | O_CREAT | O_EXCL));
	say("unnamed beside the output", open_flags(output_dir, O_WRONLY | O_TMPFILE));
	say("open as a program",
	    (int)syscall(SYS_openat2, AT_FDCWD, readable,
			 &(struct { uint64_t flags, mode, resolve; }){ .flags = O_WRONLY }, 24));
	say("rename", rename(outside, beside(outside, ".new")));
	say("link", link(outside, beside(outside, ".new")));
	say("symlink", symlink(outside, beside(output_dir, "/link")));
	say("mkdir", mkdir(beside(output_dir, "/directory"), 0700));
	say("mknod", mknod(beside(output_dir, "/fifo"), S_IFIFO | 0600, 0));
	say("chmod", chmod(readable, 0777));
	say("chown", chown(readable, 1, 1));
	say("utimes", utimensat(AT_FDCWD, readable, NULL, 0));
	say("setxattr", syscall(SYS_setxattr, readable, "user.x", "y", 1, 0));
	say("chroot", chroot("/"));
	say("mount", mount("none", "/mnt", "tmpfs", 0, NULL));
	say("inherited", write(atoi(getenv("INHERITED")), "x", 1));
}

/* --- the terminal, and other devices ---------------------------------------------------------- */

static void try_devices(void)
{
	struct winsize size = {};
	char key = 'x';

	say("type into the terminal", ioctl(STDIN_FILENO, TIOCSTI, &key));
	say("type through stderr", ioctl(STDERR_FILENO, TIOCSTI, &key));
	/* The kernel looks at 32 bits of the request, a filter may see 64. */
	say("type by a longer request",
	    syscall(SYS_ioctl, STDERR_FILENO, UINT64_C(1) << 32 | TIOCSTI, &key));
	say("paste into the terminal", ioctl(STDERR_FILENO, TIOCLINUX, &key));
	say("resize the terminal", ioctl(STDERR_FILENO, TIOCSWINSZ, &size));
	say("take the terminal", ioctl(STDERR_FILENO, TIOCSCTTY, 1));
	say("read the console", open_flags("/dev/tty", O_RDONLY));
}

/* --- processes -------------------------------------------------------------------------------- */

static long try_fork(void)
{
	const pid_t pid = fork();

	if (pid == 0)
		_exit(0);
	return pid;
}

static long try_clone3(void)
{
	struct clone_args args = { .exit_signal = SIGCHLD };
	const long pid = syscall(SYS_clone3, &args, sizeof(args));

	if (pid == 0)
		_exit(0);
	return pid;
}

static long try_vfork(void)
{
	const long pid = syscall(SYS_clone, CLONE_VM | CLONE_VFORK | SIGCHLD, 0, 0, 0, 0);

	if (pid == 0)
		_exit(0);
	return pid;
}

/* A thread as pthread_create() makes it, but in a namespace of its own. */
static long try_thread(void)
{
	return syscall(SYS_clone,
		       CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SYSVSEM | CLONE_SIGHAND |
			   CLONE_THREAD | CLONE_NEWNET,
		       0, 0, 0, 0);
}

static void try_processes(void)
{
	const struct rlimit all = { .rlim_cur = RLIM_INFINITY, .rlim_max = RLIM_INFINITY };
	const pid_t parent = getppid();
	struct iovec part = { .iov_base = page, .iov_len = 1 };
	siginfo_t info = { .si_code = SI_QUEUE };
	struct f_owner_ex owner = { .type = F_OWNER_PID, .pid = parent };

	say("fork", try_fork());
	say("clone3", try_clone3());
	say("vfork", try_vfork());
	say("thread in a namespace", try_thread());
	say("kill", kill(parent, SIGCONT));
	say("kill 0", kill(parent, 0));
	say("tgkill", syscall(SYS_tgkill, parent, parent, SIGCONT));
	say("tkill", syscall(SYS_tkill, parent, SIGCONT));
	say("sigqueue", syscall(SYS_rt_sigqueueinfo, parent, SIGCONT, &info));
	say("owner of a descriptor", fcntl(STDERR_FILENO, F_SETOWN, parent));
	say("owner of a descriptor, extended", fcntl(STDERR_FILENO, F_SETOWN_EX, &owner));
	say("signal of a descriptor", fcntl(STDERR_FILENO, F_SETSIG, SIGKILL));
	say("prlimit", prlimit(0, RLIMIT_AS, &all, NULL));
	say("prlimit of another", prlimit(parent, RLIMIT_CORE, &all, NULL));
	say("setrlimit", syscall(SYS_setrlimit, RLIMIT_CORE, &all));
	say("setpriority", setpriority(PRIO_PROCESS, (id_t)parent, 0));
	say("ptrace", ptrace(PTRACE_ATTACH, parent, NULL, NULL));
	say("process_vm_readv", process_vm_readv(parent, &part, 1, &part, 1, 0));
	say("process_vm_writev", process_vm_writev(parent, &part, 1, &part, 1, 0));
	say("pidfd", syscall(SYS_pidfd_open, parent, 0));
	say("memory of another", open_flags("/proc/1/mem", O_RDONLY));
	say("environment of another", open_flags("/proc/1/environ", O_RDONLY));
	say("setuid", setuid(1));
	say("namespace", unshare(CLONE_NEWUSER));
	say("privileges", prctl(PR_SET_NO_NEW_PRIVS, 0, 0, 0, 0));
	say("dumpable", prctl(PR_SET_DUMPABLE, 1, 0, 0, 0));
}

/* --- memory that is executed ------------------------------------------------------------------ */

static long map_code(int prot, int flags, int fd)
{
	return mmap(NULL, 4096, prot, flags, fd, 0) == MAP_FAILED ? -1 : 0;
}

static void try_memory(void)
{
	const int fd = open_flags("/proc/self/exe", O_RDONLY);
	const int memory = memfd_create("code", 0);
	char *const argv[] = { (char *)"true", NULL };

	say("map to write and execute",
	    map_code(PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1));
	say("map to execute", map_code(PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1));
	errno = EPERM;
	say("map a memfd to execute", map_code(PROT_READ | PROT_EXEC, MAP_SHARED, memory));
	if (fd >= 0)
		say("map a file to execute", map_code(PROT_READ | PROT_EXEC, MAP_PRIVATE, fd));
	say("protect to execute", mprotect(page, sizeof(page), PROT_READ | PROT_EXEC));
	say("pkey_mprotect", syscall(SYS_pkey_mprotect, page, sizeof(page), PROT_EXEC, -1));
	say("personality", syscall(SYS_personality, 0x0400000 /* READ_IMPLIES_EXEC */));
	say("shared memory", syscall(SYS_shmget, 0, 4096, 01600));
	say("exec", execv("/bin/true", argv));
	say("execveat", syscall(SYS_execveat, memory, "", argv, NULL, AT_EMPTY_PATH));
}

/* --- the network, and the kernel -------------------------------------------------------------- */

static void try_kernel(void)
{
	const struct sockaddr_in discard = { .sin_family = AF_INET, .sin_port = htons(9) };
	struct io_uring_params params = {};
	struct msghdr message = {};
	int pair[2];

	say("socket", socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
	say("socketpair", socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	/* Whatever descriptor it may have got hold of. */
	say("connect", connect(STDIN_FILENO, (const struct sockaddr *)&discard, sizeof(discard)));
	say("sendmsg", sendmsg(STDERR_FILENO, &message, 0));
	say("bpf", syscall(SYS_bpf, 0, page, 64));
	say("perf_event_open", syscall(SYS_perf_event_open, page, 0, -1, -1, 0));
	say("io_uring", syscall(SYS_io_uring_setup, 1, &params));
	say("userfaultfd", syscall(SYS_userfaultfd, 1));
	say("keyctl", syscall(SYS_keyctl, 0, -3, 0));
	say("open_by_handle_at", syscall(SYS_open_by_handle_at, AT_FDCWD, page, 0));
	say("hostname", sethostname("x", 1));
	say("clock", syscall(SYS_clock_settime, 0, NULL));
}

/* --- what it was left with -------------------------------------------------------------------- */

static const char *limit(int resource)
{
	static char text[32];
	struct rlimit l;

	if (getrlimit(resource, &l) < 0)
		return strerror(errno);
	if (l.rlim_cur == RLIM_INFINITY && l.rlim_max == RLIM_INFINITY)
		return "none";
	(void)snprintf(text, sizeof(text), "%llu%s", (unsigned long long)l.rlim_cur,
		       l.rlim_cur == l.rlim_max ? "" : " can be raised");
	return text;
}

static void show_limits(void)
{
	fprintf(stderr, "escape: limit of memory: %s\n", limit(RLIMIT_AS));
	fprintf(stderr, "escape: limit of files: %s\n", limit(RLIMIT_FSIZE));
	fprintf(stderr, "escape: limit of time: %s\n", limit(RLIMIT_CPU));
}

/* Sockets that it has: names that lead out of the directory are asked for on each. */
static void try_sockets(void)
{
	static const char *const names[] = { "../new", "/tmp/new",    "..",           "",
					     ".new",   "a/../../new", "a/b/c/d/e/f/g" };

	for (int fd = 3; fd < 256; fd++) {
		struct stat st;
		char what[64];

		if (fstat(fd, &st) < 0 || !S_ISSOCK(st.st_mode))
			continue;
		for (size_t i = 0; i < ARRAY_LEN(names); i++) {
			const int r = outdir_open(fd, names[i], true);

			errno = r < 0 ? -r : 0;
			(void)snprintf(what, sizeof(what), "ask for '%s'", names[i]);
			say(what, r);
		}
	}
}

static void try_all(void)
{
	const char *by = getenv("ESCAPE_BY");

	if (by && strcmp(by, "int80") == 0) {
		long r = 20; /* getpid */

		__asm__ volatile("int $0x80" : "+a"(r) : : "memory");
		say("system call of 32-bit code", r);
		return;
	}
	try_files();
	try_devices();
	try_processes();
	try_memory();
	try_kernel();
	try_sockets();
	show_limits();
}

int __wrap_rawcode_add_elf(struct rawcode *code, const char *path, char **reterr_message)
{
	say("write while --raw-elf is parsed", open_flags(getenv("READABLE"), O_WRONLY));
	return __real_rawcode_add_elf(code, path, reterr_message);
}

int __wrap_ptd_decoder_next(struct ptd_decoder *decoder, const struct ptd_batch **ret_batch)
{
	static bool tried;

	if (!tried)
		try_all();
	tried = true;
	return __real_ptd_decoder_next(decoder, ret_batch);
}
