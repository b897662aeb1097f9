/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * The software PT source: a plugin for QEMU's user emulation that writes Intel PT packets and perf
 * records of the program into ptd's pool. Here is what QEMU tells us; what becomes of it is in
 * thread.c and below.
 *
 *	qemu-x86_64 -plugin ptd-emu.so,pool=FD[,log=DIR][,timing=1][,when=CONDITIONS,trigger=NAME]
 *		PROGRAM …
 *
 * or qemu-i386 for 32-bit programs, in which code of other segments than the flat one is not
 * recorded.
 *
 * FD is the pool's memfd, inherited. A ground-truth log goes to DIR, or to $PTD_EMU_LOG. With
 * timing=1 the program, and those that it executes, write MTC and CYC packets, whatever the pool
 * asks for. When one of the CONDITIONS (util/condition.h) holds, ptctl learns that at its socket
 * NAME in the abstract namespace. Where the program executes another one, gen=N counts those before
 * it, and comm=NAME is what the kernel would call it, if that is not as its file.
 */

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "base/base.h"
#include "daemon/plugin/exec.h"
#include "daemon/plugin/qemu.h"
#include "daemon/plugin/syscall.h"
#include "util/message.h"
#include "util/number.h"
#include "util/qemuoption.h"

/* --- got -------------------------------------------------------------------------------------- */

/*
 * Replaces a library function that the main program calls. QEMU 7.2 does not notify plugins when a
 * signal kills the recorded program, but it then calls kill(), which it calls nowhere else. Without
 * noticing that call, the plugin would lose the last instructions before each crash.
 */

#define PAGE ((uintptr_t)4096)

struct tables {
	const Elf64_Rela *relocations;
	size_t n_relocations;
	const Elf64_Sym *symbols;
	const char *strings;
};

/* glibc makes the addresses in the dynamic section absolute, other loaders leave them relative. */
static uintptr_t address(const struct dl_phdr_info *info, const Elf64_Dyn *dyn)
{
	return dyn->d_un.d_ptr < info->dlpi_addr ? info->dlpi_addr + dyn->d_un.d_ptr
						 : dyn->d_un.d_ptr;
}

static void read_tables(const struct dl_phdr_info *info, const Elf64_Dyn *dyn,
			struct tables *ret_tables)
{
	struct tables t = {};

	for (; dyn->d_tag != DT_NULL; dyn++) {
		switch (dyn->d_tag) {
		case DT_JMPREL:
			t.relocations = (const Elf64_Rela *)address(info, dyn);
			break;
		case DT_PLTRELSZ:
			t.n_relocations = dyn->d_un.d_val / sizeof(Elf64_Rela);
			break;
		case DT_SYMTAB:
			t.symbols = (const Elf64_Sym *)address(info, dyn);
			break;
		case DT_STRTAB:
			t.strings = (const char *)address(info, dyn);
			break;
		}
	}
	*ret_tables = t;
}

struct search {
	const char *name;
	void **slot;
};

/* The callback gets the main program first, and stops there. */
static int find_slot(struct dl_phdr_info *info, size_t size, void *userdata)
{
	struct search *search = userdata;
	struct tables t = {};

	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
			read_tables(
			    info, (const Elf64_Dyn *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr),
			    &t);
	if (!t.relocations || !t.symbols || !t.strings)
		return 1;
	for (size_t i = 0; i < t.n_relocations; i++) {
		const Elf64_Rela *r = &t.relocations[i];
		const Elf64_Sym *symbol = &t.symbols[ELF64_R_SYM(r->r_info)];

		if (ELF64_R_TYPE(r->r_info) == R_X86_64_JUMP_SLOT &&
		    strcmp(t.strings + symbol->st_name, search->name) == 0)
			search->slot = (void **)(info->dlpi_addr + r->r_offset);
	}
	return 1;
}

/*
 * Redirect the main program's calls of the library function @name to @function.
 *
 * Return: 0; -ENOENT if the main program does not call it; or another negative errno.
 */
static int got_replace(const char *name, void (*function)(void))
{
	struct search search = { .name = name };
	void *page;

	(void)dl_iterate_phdr(find_slot, &search);
	if (!search.slot)
		return -ENOENT;
	/* The table is read-only after the program was loaded. */
	page = (void *)((uintptr_t)search.slot & ~(PAGE - 1));
	if (mprotect(page, PAGE, PROT_READ | PROT_WRITE) < 0)
		return -errno;
	memcpy(search.slot, &function, sizeof(function));
	if (mprotect(page, PAGE, PROT_READ) < 0)
		return -errno;
	return 0;
}

/* --- plugin ----------------------------------------------------------------------------------- */

#define EXPORT __attribute__((__visibility__("default")))

EXPORT extern int qemu_plugin_version;
EXPORT int qemu_plugin_version;
EXPORT int qemu_plugin_install(uint64_t id, const struct qemu_plugin_info *info, int argc,
			       char **argv);

static int offered; /* the newest version of the interface that QEMU has */
static struct process process;
static struct exec_self exec_self;
static char *program;            /* the file that QEMU executes */
static pthread_key_t thread_key; /* its destructor runs when a thread ends */

/* Each thread of the program is a thread of QEMU. */
static __thread struct thread *self __attribute__((__tls_model__("initial-exec")));

static uint64_t read_register(unsigned vcpu, enum process_register which)
{
	static const enum qemu_x86_register registers32[] = {
		[PROCESS_RSP] = QEMU_I386_ESP, [PROCESS_RIP] = QEMU_I386_EIP
	};
	static const enum qemu_x86_register registers64[] = { [PROCESS_RSP] = QEMU_X86_RSP,
							      [PROCESS_RIP] = QEMU_X86_RIP,
							      [PROCESS_SIGNAL] = QEMU_X86_RDI };

	/* QEMU 7.2 loads no register with it, if the handler gets no siginfo_t. */
	if (process.target.mode == 32 && which == PROCESS_SIGNAL)
		return target_handler_signal(&process.target, qemu_register(vcpu, QEMU_I386_ESP));
	return qemu_register(vcpu,
			     process.target.mode == 32 ? registers32[which] : registers64[which]);
}

static void on_thread_end(void *thread)
{
	self = thread_free(thread);
}

/* Make the calling thread's state at its first block. A process that is not recorded has no such
 * threads. */
__attribute__((__noinline__)) static struct thread *begin_thread(unsigned vcpu)
{
	if (!program && exec_path)
		program = realpath(exec_path, NULL);
	self = thread_new(&process, vcpu);
	if (self)
		(void)pthread_setspecific(thread_key, self);
	return self;
}

static void add_to_register(unsigned vcpu, enum qemu_x86_register which, int n)
{
	qemu_set_register(vcpu, which, qemu_register(vcpu, which) + (uint64_t)n);
}

/* A thread is at the start of a function that is a signal handler. */
__attribute__((__noinline__)) static void align_handler(unsigned vcpu, uint64_t ip)
{
	const uint64_t rsp = read_register(vcpu, PROCESS_RSP);
	const bool is32 = process.target.mode == 32;
	struct target_move move;
	uint64_t interrupted;

	if (!process_at_handler(&process, ip, rsp, &interrupted))
		return;
	move = target_align_frame(&process.target, rsp);
	if (move.bytes == 0)
		return;
	add_to_register(vcpu, is32 ? QEMU_I386_ESP : QEMU_X86_RSP, move.bytes);
	if (move.arguments) {
		add_to_register(vcpu, is32 ? QEMU_I386_EDX : QEMU_X86_RSI, move.bytes);
		add_to_register(vcpu, is32 ? QEMU_I386_ECX : QEMU_X86_RDX, move.bytes);
	}
}

__attribute__((__noinline__)) static void on_special_block(unsigned vcpu, const struct block *block)
{
	if (block_has_handler(block))
		align_handler(vcpu, block->ip);
	if (self || begin_thread(vcpu))
		thread_begin_block(self, block);
}

static void on_block(unsigned vcpu, void *block)
{
	struct thread *thread = self;

	if (__builtin_expect(thread && thread_is_plain_at(thread, block), 1))
		thread_begin_plain(thread, block);
	else
		on_special_block(vcpu, block);
}

static void on_log_block(unsigned vcpu, void *block)
{
	if (self)
		thread_log_block(self, block);
}

static void on_log_last(unsigned vcpu, void *block)
{
	if (self)
		thread_log_last(self);
}

static void on_translate(uint64_t id, struct qemu_plugin_tb *tb)
{
	const size_t n = qemu_plugin_tb_n_insns(tb);
	/* QEMU translates one block at a time. */
	static struct block_insn insns[BLOCK_INSNS_MAX];
	static uint8_t copies[BLOCK_INSNS_MAX][QEMU_INSN_MAX];
	const struct block *block;
	size_t i;

	for (i = 0; i < n && i < BLOCK_INSNS_MAX; i++) {
		const struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);

		insns[i] = (struct block_insn){
			.ip = qemu_plugin_insn_vaddr(insn),
			.bytes = qemu_insn_bytes(offered, qemu_plugin_insn_data, insn, copies[i]),
			.size = qemu_plugin_insn_size(insn),
		};
	}
	block = process_translate(&process, self, qemu_plugin_tb_vaddr(tb), insns, i);
	if (!block)
		return;
	/* The callbacks get the block itself, and do not change it. */
	qemu_plugin_register_vcpu_tb_exec_cb(tb, on_block, QEMU_PLUGIN_CB_NO_REGS,
					     (void *)(uintptr_t)block);
	if (!process.log_dir)
		return;
	qemu_plugin_register_vcpu_tb_exec_cb(tb, on_log_block, QEMU_PLUGIN_CB_NO_REGS,
					     (void *)(uintptr_t)block);
	if (block->n > 1)
		qemu_plugin_register_vcpu_insn_exec_cb(qemu_plugin_tb_get_insn(tb, block->n - 1u),
						       on_log_last, QEMU_PLUGIN_CB_NO_REGS, NULL);
}

/* What siglongjmp() is in programs that are compiled with _FORTIFY_SOURCE, as Debian's are. */
__attribute__((__noreturn__)) void __longjmp_chk(struct __jmp_buf_tag *buf, int value);

__attribute__((__noreturn__)) static void on_checked_jump(struct __jmp_buf_tag *buf, int value)
{
	if (self)
		thread_leave_block(self);
	__longjmp_chk(buf, value);
}

__attribute__((__noreturn__)) static void on_jump(struct __jmp_buf_tag *buf, int value)
{
	if (self)
		thread_leave_block(self);
	siglongjmp(buf, value);
}

/* QEMU leaves a block that runs in no other way than by a jump. Return: 0 if it will be seen. */
static int watch_jumps(void)
{
	const int r = got_replace("__longjmp_chk", (void (*)(void))on_checked_jump);

	return got_replace("siglongjmp", (void (*)(void))on_jump) < 0 ? r : 0;
}

/* Translations are dropped. QEMU leaves for it, too, between two blocks. */
static void on_flush(uint64_t id)
{
	if (self)
		self->left = false;
}

static void on_vcpu(uint64_t id, unsigned vcpu)
{
	process_note_parent(&process, vcpu, (uint32_t)syscall(SYS_gettid));
}

/* --- programs that the program executes ------------------------------------------------------- */

/* Return: the text as the value of an option of QEMU, which the caller frees; or NULL. */
static char *escape_option(const char *text)
{
	char *escaped = malloc(qemuoption_size(text) + 1);

	if (escaped)
		(void)qemuoption_put(escaped, text);
	return escaped;
}

/* Make the options of the plugin for the next program. */
static char *options_for(const struct exec *exec)
{
	_cleanup_(freep) char *log = process.log_dir ? escape_option(process.log_dir) : NULL;
	_cleanup_(freep) char *comm = exec->comm ? escape_option(exec->comm) : NULL;
	const struct tripwire *tripwire = &process.tripwire;
	const bool has_tripwire = tripwire->socket && !atomic_load(&tripwire->is_over);
	_cleanup_(freep) char *when = has_tripwire ? escape_option(tripwire->text) : NULL;

	if ((process.log_dir && !log) || (exec->comm && !comm) || (has_tripwire && !when))
		return NULL;
	return message_text(",gen=%u%s%s%s%s%s%s%s%s%s", process.generation + 1,
			    process.timing ? ",timing=1" : "", log ? ",log=" : "", log ? log : "",
			    comm ? ",comm=" : "", comm ? comm : "", when ? ",when=" : "",
			    when ? when : "", when ? ",trigger=" : "",
			    when ? tripwire->socket : "");
}

/* Return: the reason, only on failure. */
static const char *execute_qemu(const struct exec *exec)
{
	_cleanup_(freep) char *options = options_for(exec);
	_cleanup_(fd_closep) int fd = fdholder_borrow(&process.fdholder);
	int r;

	if (!options)
		return "out of memory";
	if (fd < 0)
		return "ptd's pool cannot be reached";

	start_exclusive();
	process_halt(&process, self);
	/* No thread can fork now and inherit the descriptor. */
	(void)fcntl(fd, F_SETFD, 0);
	r = exec_run(exec, fd, options);
	process_go_on(&process);
	end_exclusive();
	return r == -ENOENT ? "the emulator is not found there" : "the emulator cannot be executed";
}

/* The thread calls execve or execveat. If this function returns, QEMU lets the kernel execute the
 * program. */
static void follow_exec(bool at, const uint64_t args[static 6])
{
	const char *why = NULL;
	struct exec exec;
	int r;

	r = exec_init(&exec, &exec_self, at, args, &why);
	if (r == EXEC_FAILS || r < 0)
		return;
	if (r == 0)
		why = execute_qemu(&exec);

	fprintf(stderr, "ptd-emu.so: %s: not recorded: %s\n", exec.path, why);
	exec_deinit(&exec);
	start_exclusive();
	process_halt(&process, self);
	self->halted = true;
	end_exclusive();
}

/* The process is about to end. */
static void pull_tripwire(enum condition_kind kind, uint32_t number)
{
	const uint32_t condition = tripwire_holds(&process.tripwire, kind, number);

	if (condition == 0)
		return;
	tripwire_pull(&process.tripwire,
		      &(struct condition_event){ .index = condition - 1,
						 .pid = (uint32_t)getpid(),
						 .tid = (uint32_t)syscall(SYS_gettid),
						 .number = number,
						 .time_ns = attach_now_ns() });
}

static void on_syscall(uint64_t id, unsigned vcpu, int64_t number, uint64_t a1, uint64_t a2,
		       uint64_t a3, uint64_t a4, uint64_t a5, uint64_t a6, uint64_t a7, uint64_t a8)
{
	const enum syscall_kind kind = syscall_kind(&process.target, number);
	const uint64_t args[] = { a1, a2, a3, a4, a5, a6 };

	if (!self)
		return;
	thread_leave(self, number, syscall_ends(kind));
	if (kind == SYSCALL_EXIT_GROUP)
		pull_tripwire(CONDITION_EXIT, args[0] & UINT8_MAX);
	syscall_enter(self, kind, args);
	if (syscall_executes(kind))
		follow_exec(kind == SYSCALL_EXECVEAT, self->args);
}

static void on_syscall_return(uint64_t id, unsigned vcpu, int64_t number, int64_t result)
{
	if (self)
		syscall_return(self, syscall_kind(&process.target, number), result);
}

static void on_exit_program(uint64_t id, void *userdata)
{
	process_end(&process);
}

/* For these signals QEMU has stopped all threads, to write a core file, and does not continue
 * them. */
static bool dumps_core(int signal)
{
	switch (signal) {
	case SIGABRT:
	case SIGBUS:
	case SIGFPE:
	case SIGILL:
	case SIGQUIT:
	case SIGSEGV:
	case SIGTRAP:
		return true;
	default:
		return false;
	}
}

/* QEMU is about to end by the signal that kills the program. The thread that took it calls this. */
static int on_kill(pid_t pid, int signal)
{
	if (pid == getpid())
		process_note_killed(&process, (uint32_t)syscall(SYS_gettid), (uint32_t)signal);
	if (pid == getpid() && dumps_core(signal))
		process_end(&process);
	else if (pid == getpid())
		qemu_plugin_user_exit();
	if (pid == getpid())
		pull_tripwire(CONDITION_SIGNAL, (uint32_t)signal);
	return kill(pid, signal);
}

/* Only threads of the program fork the program. */
static void on_fork(void)
{
	if (self)
		process_fork_prepare(&process);
}

static void on_fork_parent(void)
{
	if (self)
		process_fork_parent(&process);
}

static void on_fork_child(void)
{
	if (!self || process_fork_child(&process, self))
		return;
	self = NULL;
	(void)pthread_setspecific(thread_key, NULL);
}

/* --- install ---------------------------------------------------------------------------------- */

struct arguments {
	int pool_fd;
	const char *log_dir;
	uint32_t generation;
	const char *comm;
	const char *when, *trigger; /* NULL: no conditions */
	bool timing;
};

/* Parse a number. Return: the number, or -1. */
static int parse_number(const char *text)
{
	uint64_t n;

	return number_parse(text, INT_MAX, &n) < 0 ? -1 : (int)n;
}

static int parse_arguments(int argc, char **argv, struct arguments *ret_arguments)
{
	struct arguments a = { .pool_fd = -1, .log_dir = getenv("PTD_EMU_LOG") };
	int generation = 0;

	for (int i = 0; i < argc; i++) {
		if (strncmp(argv[i], "pool=", 5) == 0) {
			a.pool_fd = parse_number(argv[i] + 5);
		} else if (strncmp(argv[i], "gen=", 4) == 0) {
			generation = parse_number(argv[i] + 4);
		} else if (strcmp(argv[i], "timing=1") == 0) {
			a.timing = true;
		} else if (strncmp(argv[i], "comm=", 5) == 0) {
			a.comm = argv[i] + 5;
		} else if (strncmp(argv[i], "log=", 4) == 0) {
			a.log_dir = argv[i] + 4;
		} else if (strncmp(argv[i], "when=", 5) == 0) {
			a.when = argv[i] + 5;
		} else if (strncmp(argv[i], "trigger=", 8) == 0) {
			a.trigger = argv[i] + 8;
		} else {
			fprintf(stderr, "ptd-emu.so: unknown argument \"%s\"\n", argv[i]);
			return -1;
		}
	}
	if (a.pool_fd < 0) {
		fprintf(stderr, "ptd-emu.so: needs pool=FD, the descriptor of ptd's pool\n");
		return -1;
	}
	a.generation = generation > 0 ? (uint32_t)generation : 0;
	*ret_arguments = a;
	return 0;
}

/* Return: the mode of the target's code; 0 if it cannot be recorded. */
static uint8_t mode_of(const struct qemu_plugin_info *info)
{
	if (strcmp(info->target_name, "x86_64") == 0)
		return 64;
	return strcmp(info->target_name, "i386") == 0 ? 32 : 0;
}

/* QEMU reads the number as soon as the plugin is loaded. */
__attribute__((__constructor__)) static void choose_interface(void)
{
	qemu_plugin_version = qemu_interface();
}

static int check_qemu(const struct qemu_plugin_info *info)
{
	if (info->version.min > QEMU_PLUGIN_VERSION_MAX) {
		fprintf(stderr,
			"ptd-emu.so: this QEMU offers plugin interface %d to %d, but 1 to %d is "
			"needed: use qemu-user 7.2 of Debian 12\n",
			info->version.min, info->version.cur, QEMU_PLUGIN_VERSION_MAX);
		return -1;
	}
	if (info->system_emulation || mode_of(info) == 0) {
		fprintf(stderr,
			"ptd-emu.so: records programs under qemu-x86_64 and qemu-i386 only, not "
			"%s%s\n",
			info->target_name, info->system_emulation ? " machines" : "");
		return -1;
	}
	if (!&guest_base || !&exec_path || !start_exclusive || !end_exclusive || !qemu_get_cpu ||
	    !x86_cpu_gdb_read_register || !x86_cpu_gdb_write_register || !g_byte_array_new ||
	    !g_byte_array_set_size || !qemu_plugin_user_exit) {
		fprintf(stderr, "ptd-emu.so: this QEMU does not export what is needed: use "
				"qemu-user 7.2 of Debian 12\n");
		return -1;
	}
	return 0;
}

/* Find how to load the plugin again, whatever directory or root the program changes to. */
static int find_self(const struct target *target)
{
	_cleanup_(freep) char *path = NULL;
	char qemu[PATH_MAX];
	ssize_t n;
	Dl_info own;

	n = readlink("/proc/self/exe", qemu, sizeof(qemu) - 1);
	if (n < 0)
		return -errno;
	qemu[n] = '\0';
	if (!dladdr(&process, &own))
		return -ENOENT;
	path = realpath(own.dli_fname, NULL);
	if (!path)
		return -errno;
	exec_self = (struct exec_self){
		.qemu = strdup(qemu),
		.plugin = escape_option(path),
		.target = *target,
		.program = &program,
	};
	return exec_self.qemu && exec_self.plugin ? 0 : -ENOMEM;
}

/* Read the conditions. Return: 0; or negative errno, and a message was written. */
static int read_conditions(const struct arguments *a, struct tripwire *ret_tripwire)
{
	_cleanup_(freep) char *when = a->when ? strdup(a->when) : NULL;
	_cleanup_(freep) char *socket = a->trigger ? strdup(a->trigger) : NULL;
	int r;

	*ret_tripwire = (struct tripwire){};
	if (!a->when && !a->trigger)
		return 0;
	r = when && socket ? tripwire_init(ret_tripwire, socket, when) : -EINVAL;
	if (r < 0) {
		fprintf(stderr, "ptd-emu.so: when= and trigger= make no sense: %s\n", strerror(-r));
		return r;
	}
	/* The process has them as long as it lives. */
	(void)TAKE(when);
	(void)TAKE(socket);
	return 0;
}

/* Attach to the pool. The program must not be able to close its descriptor. */
static int start_recording(const struct arguments *a, uint8_t mode)
{
	struct process_origin origin = {
		.target = { .base = &guest_base, .mode = mode },
		.read_register = read_register,
		.log_dir = a->log_dir,
		.generation = a->generation,
		.comm = a->comm ? strdup(a->comm) : NULL,
		.timing = a->timing,
	};
	const char *what;
	int r;

	r = read_conditions(a, &origin.tripwire);
	if (r < 0)
		return r;
	r = attach_init(&origin.attach, a->pool_fd, &what);
	if (r < 0) {
		fprintf(stderr, "ptd-emu.so: descriptor %d: %s: %s\n", a->pool_fd, what,
			strerror(-r));
		return r;
	}
	what = attach_obstacle(&origin.attach);
	if (what) {
		fprintf(stderr, "ptd-emu.so: the program cannot be recorded: %s\n", what);
		return -EXDEV;
	}
	r = fdholder_start(&origin.fdholder, a->pool_fd);
	if (r == 0)
		r = find_self(&origin.target);
	if (r < 0)
		fprintf(stderr,
			"ptd-emu.so: programs that this one executes are not recorded: %s\n",
			strerror(-r));
	(void)close(a->pool_fd);
	r = process_init(&process, &origin);
	if (r < 0)
		fprintf(stderr, "ptd-emu.so: cannot log to %s: %s\n", a->log_dir, strerror(-r));
	return r;
}

int qemu_plugin_install(uint64_t id, const struct qemu_plugin_info *info, int argc, char **argv)
{
	struct arguments arguments;

	offered = info->version.cur;
	if (check_qemu(info) < 0 || parse_arguments(argc, argv, &arguments) < 0 ||
	    start_recording(&arguments, mode_of(info)) < 0)
		return 1;
	if (pthread_key_create(&thread_key, on_thread_end) != 0 ||
	    pthread_atfork(on_fork, on_fork_parent, on_fork_child) != 0) {
		fprintf(stderr, "ptd-emu.so: cannot follow threads: out of memory\n");
		return 1;
	}
	if (got_replace("kill", (void (*)(void))on_kill) < 0)
		fprintf(stderr, "ptd-emu.so: this QEMU does not show that a signal kills the "
				"program: its last instructions are lost then\n");
	if (watch_jumps() < 0) {
		fprintf(stderr, "ptd-emu.so: this QEMU does not show when it leaves a block: use "
				"qemu-user 7.2 of Debian 12\n");
		return 1;
	}
	qemu_plugin_register_flush_cb(id, on_flush);
	qemu_plugin_register_vcpu_init_cb(id, on_vcpu);
	qemu_plugin_register_vcpu_tb_trans_cb(id, on_translate);
	qemu_plugin_register_vcpu_syscall_cb(id, on_syscall);
	qemu_plugin_register_vcpu_syscall_ret_cb(id, on_syscall_return);
	qemu_plugin_register_atexit_cb(id, on_exit_program, NULL);
	return 0;
}
