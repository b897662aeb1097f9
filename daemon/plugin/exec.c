/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "daemon/plugin/exec.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "util/message.h"

#define STRING_MAX  131072     /* MAX_ARG_STRLEN of the kernel */
#define STRINGS_MAX (1u << 20) /* more pointers than the kernel accepts in all */

static void strings_deinit(struct exec_strings *strings)
{
	vec_deinit_each(&strings->list, string, free(*string));
}

void exec_deinit(struct exec *exec)
{
	free(exec->path);
	free(exec->comm);
	strings_deinit(&exec->argv);
	strings_deinit(&exec->envp);
	*exec = (struct exec){};
}

/* Append @string, which is taken over, and may be NULL for want of memory. */
static int add_string(struct exec_strings *strings, char *string)
{
	const int r = string ? vec_push(&strings->list, string) : -ENOMEM;

	if (r < 0)
		free(string);
	return r;
}

/* --- what the program says -------------------------------------------------------------------- */

static int read_string(const struct exec_self *self, uint64_t address, char **ret_string)
{
	_cleanup_(freep) char *string = malloc(STRING_MAX);
	char *fitting;
	int r;

	if (!string)
		return -ENOMEM;
	r = target_read_string(&self->target, address, string, STRING_MAX);
	if (r < 0)
		return EXEC_FAILS;
	fitting = strdup(string);
	if (!fitting)
		return -ENOMEM;
	*ret_string = fitting;
	return 0;
}

/* Read an array of pointers to strings. An array at address 0 is empty. */
static int read_strings(const struct exec_self *self, uint64_t address,
			struct exec_strings *strings)
{
	for (unsigned i = 0; address != 0; i++, address += target_word(&self->target)) {
		uint64_t pointer;
		char *string;
		int r;

		if (i == STRINGS_MAX || target_read_word(&self->target, address, &pointer) < 0)
			return EXEC_FAILS;
		if (pointer == 0)
			break;
		r = read_string(self, pointer, &string);
		if (r == 0)
			r = add_string(strings, string);
		if (r != 0)
			return r;
	}
	return 0;
}

/* Get the path of the file @fd, if it still has one. */
static int path_of(int fd, char ret_path[PATH_MAX])
{
	struct stat open, named;
	char link[64];
	ssize_t n;

	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, ret_path, PATH_MAX - 1);
	if (n < 0)
		return -errno;
	ret_path[n] = '\0';
	if (fstat(fd, &open) < 0 || stat(ret_path, &named) < 0 || open.st_dev != named.st_dev ||
	    open.st_ino != named.st_ino)
		return -ENOENT;
	return 0;
}

/* Make a path from the arguments of execveat. */
static int path_at(struct exec *x, int fd, int flags, const char **reterr_why)
{
	char dir[PATH_MAX], *path;
	struct stat st;

	if (x->path[0] == '\0' && !(flags & AT_EMPTY_PATH))
		return EXEC_FAILS;
	if (x->path[0] != '/' && fd != AT_FDCWD) {
		if (path_of(fd, dir) < 0) {
			*reterr_why = "it is executed from a file without a name";
			return EXEC_UNSEEN;
		}
		if (asprintf(&path, x->path[0] ? "%s/%s" : "%s", dir, x->path) < 0)
			return -ENOMEM;
		free(x->path);
		x->path = path;
	}
	if (flags & AT_SYMLINK_NOFOLLOW && lstat(x->path, &st) == 0 && S_ISLNK(st.st_mode))
		return EXEC_FAILS;
	return 0;
}

/* In QEMU's process this path leads to QEMU, but the program means itself. */
static int path_of_self(struct exec *x)
{
	char own[64];

	(void)snprintf(own, sizeof(own), "/proc/%d/exe", (int)getpid());
	if (strcmp(x->path, "/proc/self/exe") != 0 && strcmp(x->path, own) != 0 &&
	    strcmp(x->path, "/proc/thread-self/exe") != 0)
		return 0;
	if (!*x->self->program)
		return EXEC_FAILS;
	free(x->path);
	x->path = strdup(*x->self->program);
	return x->path ? 0 : -ENOMEM;
}

/* --- what the kernel would do ----------------------------------------------------------------- */

/* Replace the first argument by the interpreter, its argument and the path of the script. */
static int enter_script(struct exec *x, const struct execfile *file)
{
	struct exec_strings argv = {};
	int r;

	if (!x->comm) {
		const char *base = strrchr(x->path, '/');

		x->comm = strdup(base ? base + 1 : x->path);
		if (!x->comm)
			return -ENOMEM;
	}
	r = add_string(&argv, strdup(file->interpreter));
	if (r == 0 && file->argument[0])
		r = add_string(&argv, strdup(file->argument));
	if (r == 0)
		r = add_string(&argv, strdup(x->path));
	if (r == 0)
		r = vec_reserve(&argv.list, x->argv.list.n);
	if (r < 0) {
		strings_deinit(&argv);
		return r;
	}
	for (size_t i = 0; i < x->argv.list.n; i++) {
		if (i == 0)
			free(x->argv.list.items[0]);
		else
			argv.list.items[argv.list.n++] = x->argv.list.items[i];
	}
	vec_deinit(&x->argv.list);
	x->argv = argv;

	free(x->path);
	x->path = strdup(file->interpreter);
	return x->path ? 0 : -ENOMEM;
}

/* Check that QEMU can run the program. */
static int judge_exec(struct exec *x, const struct execfile *file, const char **reterr_why)
{
	if (file->kind == EXECFILE_OTHER)
		return EXEC_FAILS;
	x->kind = file->kind;
	if (file->loader[0] && execfile_check(file->loader) < 0)
		return EXEC_FAILS;
	*reterr_why = execfile_unseen(file);
	return *reterr_why ? EXEC_UNSEEN : 0;
}

static int resolve_exec(struct exec *x, const char **reterr_why)
{
	for (int i = 0; i <= EXECFILE_SCRIPTS_MAX; i++) {
		struct execfile file;
		int r;

		if (execfile_check(x->path) < 0)
			return EXEC_FAILS;
		if (execfile_read(x->path, &file) < 0) {
			*reterr_why = EXECFILE_UNREADABLE;
			return EXEC_UNSEEN;
		}
		if (file.kind != EXECFILE_SCRIPT)
			return judge_exec(x, &file, reterr_why);
		r = enter_script(x, &file);
		if (r < 0)
			return r;
	}
	return EXEC_FAILS;
}

int exec_init(struct exec *ret_exec, const struct exec_self *self, bool at,
	      const uint64_t args[static 6], const char **reterr_why)
{
	const uint64_t *a = at ? args + 1 : args;
	struct exec x = { .self = self };
	int r;

	r = read_string(self, a[0], &x.path);
	if (r == 0 && at)
		r = path_at(&x, (int)args[0], (int)args[4], reterr_why);
	if (r == 0)
		r = path_of_self(&x);
	if (r == 0)
		r = read_strings(self, a[1], &x.argv);
	if (r == 0)
		r = read_strings(self, a[2], &x.envp);
	if (r == 0 && x.argv.list.n == 0)
		r = add_string(&x.argv, strdup(""));
	if (r == 0)
		r = resolve_exec(&x, reterr_why);
	if (r < 0 || r == EXEC_FAILS)
		exec_deinit(&x);
	else
		*ret_exec = x;
	return r;
}

/* --- QEMU again ------------------------------------------------------------------------------- */

/* Variables of the dynamic linker and of QEMU would affect the emulator, too. They are passed by an
 * option of QEMU, which sets them for the program only, unless there is a comma in them, at which
 * QEMU would split them. */
static bool is_for_program(const char *variable)
{
	return (strncmp(variable, "LD_", 3) == 0 || strncmp(variable, "QEMU_", 5) == 0 ||
		strncmp(variable, "GLIBC_TUNABLES=", 15) == 0) &&
	       strchr(variable, '=') && !strchr(variable, ',');
}

/* QEMU passes the environment on in reverse order, so it gets it in reverse order; variables from
 * options come before it. */
static void split_environment(const struct exec *x, char **options, size_t *n_options,
			      char **environment)
{
	static char option[] = "-E";
	size_t n = 0;

	for (size_t i = x->envp.list.n; i > 0; i--) {
		char *variable = x->envp.list.items[i - 1];

		if (is_for_program(variable)) {
			options[(*n_options)++] = option;
			options[(*n_options)++] = variable;
		} else {
			environment[n++] = variable;
		}
	}
	environment[n] = NULL;
}

/* Find the emulator for the program: the running one, or the one beside it. Return: its path; NULL
 * without memory. */
static char *find_emulator(const struct exec *x)
{
	const char *own = x->self->qemu;
	const enum execfile_kind kind =
	    x->self->target.mode == 32 ? EXECFILE_I386 : EXECFILE_X86_64;

	if (x->kind == kind)
		return strdup(own);
	return message_text("%.*s/%s", (int)(strrchr(own, '/') - own), own,
			    execfile_emulator(x->kind));
}

int exec_run(const struct exec *x, int pool_fd, const char *options)
{
	static char plugin_option[] = "-plugin", argv0_option[] = "-0";
	const size_t n_argv = x->argv.list.n, n_envp = x->envp.list.n;
	_cleanup_(freep) char **argv = calloc(n_argv + 2 * n_envp + 8, sizeof(char *));
	_cleanup_(freep) char **envp = calloc(n_envp + 1, sizeof(char *));
	_cleanup_(freep) char *plugin = NULL;
	_cleanup_(freep) char *path = NULL;
	_cleanup_(freep) char *emulator = NULL;
	size_t n = 0;

	if (!argv || !envp)
		return -ENOMEM;
	if (asprintf(&plugin, "%s,pool=%d%s", x->self->plugin, pool_fd, options) < 0)
		return -ENOMEM;
	emulator = find_emulator(x);
	if (!emulator)
		return -ENOMEM;
	/* The path must not look like an option. */
	if (asprintf(&path, "%s%s", x->path[0] == '-' ? "./" : "", x->path) < 0)
		return -ENOMEM;

	argv[n++] = strrchr(emulator, '/') + 1;
	argv[n++] = plugin_option;
	argv[n++] = plugin;
	argv[n++] = argv0_option;
	argv[n++] = x->argv.list.items[0];
	split_environment(x, argv, &n, envp);
	argv[n++] = path;
	for (size_t i = 1; i < n_argv; i++)
		argv[n++] = x->argv.list.items[i];
	(void)execve(emulator, argv, envp);
	return -errno;
}
