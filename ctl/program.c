/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "ctl/program.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/log.h"
#include "ctl/verb.h"

#define HEAD_SIZE    256 /* what the kernel looks at */
#define SCRIPTS_MAX  5   /* interpreters of interpreters the kernel follows */
#define PATH_DEFAULT "/usr/local/bin:/usr/bin:/bin"

void program_deinit(struct program *program)
{
	free(program->path);
	for (size_t i = 0; i < program->n_argv; i++)
		free(program->argv[i]);
	free(program->argv);
	*program = (struct program){};
}

/* Return: 0 if the file may be executed, or why not. */
static int executable(const char *path)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EACCES;
	return access(path, X_OK) < 0 ? -errno : 0;
}

int program_find(const char *name, char **ret_path)
{
	const char *at = getenv("PATH");
	int r, found = -ENOENT;

	if (strchr(name, '/')) {
		r = executable(name);
		if (r < 0)
			return r;
		*ret_path = strdup(name);
		return *ret_path ? 0 : -ENOMEM;
	}
	if (!name[0])
		return -ENOENT;
	for (at = at ? at : PATH_DEFAULT;; at++) {
		const size_t n = strcspn(at, ":");
		char *path;

		/* An empty entry is the working directory. */
		if (asprintf(&path, "%.*s/%s", n ? (int)n : 1, n ? at : ".", name) < 0)
			return -ENOMEM;
		r = executable(path);
		if (r == 0) {
			*ret_path = path;
			return 0;
		}
		free(path);
		if (r == -EACCES)
			found = r;
		at += n;
		if (!*at)
			return found;
	}
}

static int read_head(const char *path, uint8_t head[static HEAD_SIZE])
{
	_cleanup_(fd_closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	ssize_t n;

	if (fd < 0)
		return -errno;
	memset(head, 0, HEAD_SIZE);
	n = read(fd, head, HEAD_SIZE);
	return n < 0 ? -errno : (int)n;
}

/* Put strings in front of the arguments in place of the first. NULLs are left out. */
static int replace_first(struct program *p, const char *const *first, size_t n_first)
{
	char **argv = calloc(p->n_argv + n_first + 1, sizeof(char *));
	size_t n = 0;

	if (!argv)
		return -ENOMEM;
	for (size_t i = 0; i < n_first; i++) {
		if (!first[i])
			continue;
		argv[n] = strdup(first[i]);
		if (!argv[n++]) {
			while (n > 0)
				free(argv[--n]);
			free(argv);
			return -ENOMEM;
		}
	}
	for (size_t i = 1; i < p->n_argv; i++)
		argv[n++] = p->argv[i];
	if (p->n_argv > 0)
		free(p->argv[0]);
	free(p->argv);
	p->argv = argv;
	p->n_argv = n;
	return 0;
}

/* Split "#! interpreter argument" in place. Return: the interpreter, or NULL. */
static char *parse_script(char *line, char **ret_argument)
{
	char *newline = strchr(line, '\n'), *interpreter, *rest;

	/* Without an end of line the interpreter's name may be cut off. */
	if (!newline)
		return NULL;
	*newline = 0;
	interpreter = line + 2 + strspn(line + 2, " \t");
	rest = interpreter + strcspn(interpreter, " \t");
	*ret_argument = NULL;
	if (*rest) {
		*rest++ = 0;
		rest += strspn(rest, " \t");
		for (char *end = rest + strlen(rest); end > rest && strchr(" \t", end[-1]);)
			*--end = 0;
		*ret_argument = *rest ? rest : NULL;
	}
	return *interpreter ? interpreter : NULL;
}

static int follow_script(struct program *p, uint8_t *head)
{
	char *argument, *interpreter, *path;
	int r;

	head[HEAD_SIZE - 1] = 0;
	interpreter = parse_script((char *)head, &argument);
	if (!interpreter) {
		log_error("%s: its first line names no interpreter", p->path);
		return EXIT_CANNOT_EXECUTE;
	}
	r = executable(interpreter);
	if (r < 0) {
		errno = -r;
		log_error("%s: cannot execute its interpreter %s: %m", p->path, interpreter);
		return EXIT_CANNOT_EXECUTE;
	}
	path = strdup(interpreter);
	if (!path || replace_first(p, (const char *[]){ interpreter, argument, p->path }, 3) < 0) {
		free(path);
		return EXIT_CANNOT_EXECUTE;
	}
	free(p->path);
	p->path = path;
	return 0;
}

static int check_elf(const char *path, const uint8_t *head, size_t size)
{
	Elf64_Ehdr elf;
	const char *what;

	memcpy(&elf, head, sizeof(elf));
	if (size < sizeof(elf) || memcmp(elf.e_ident, ELFMAG, SELFMAG) != 0)
		what = "neither an ELF program nor a script that begins with #!";
	else if (elf.e_ident[EI_CLASS] != ELFCLASS64 || elf.e_ident[EI_DATA] != ELFDATA2LSB ||
		 elf.e_machine != EM_X86_64)
		what = "not a 64-bit x86 program, which is all that can be recorded";
	else if (elf.e_type != ET_EXEC && elf.e_type != ET_DYN)
		what = "an ELF file, but not a program";
	else
		return 0;
	log_error("%s: %s", path, what);
	return EXIT_CANNOT_EXECUTE;
}

static int resolve(struct program *p)
{
	uint8_t head[HEAD_SIZE] __attribute__((__aligned__(8)));
	int n, r;

	for (int i = 0; i <= SCRIPTS_MAX; i++) {
		n = read_head(p->path, head);
		if (n < 0) {
			errno = -n;
			log_error("%s: cannot read it: %m", p->path);
			return EXIT_CANNOT_EXECUTE;
		}
		if (head[0] != '#' || head[1] != '!')
			return check_elf(p->path, head, (size_t)n);
		r = follow_script(p, head);
		if (r != 0)
			return r;
	}
	log_error("%s: too many scripts are interpreters of one another", p->path);
	return EXIT_CANNOT_EXECUTE;
}

int program_init(struct program *program, char **command)
{
	struct program p = {};
	int r;

	r = program_find(command[0], &p.path);
	if (r < 0) {
		errno = -r;
		log_error("%s: cannot execute it: %m", command[0]);
		return r == -ENOENT ? EXIT_NOT_FOUND : EXIT_CANNOT_EXECUTE;
	}
	while (command[p.n_argv])
		p.n_argv++;
	p.argv = calloc(p.n_argv + 1, sizeof(char *));
	r = p.argv ? 0 : EXIT_CANNOT_EXECUTE;
	for (size_t i = 0; p.argv && i < p.n_argv; i++) {
		p.argv[i] = strdup(command[i]);
		if (!p.argv[i])
			r = EXIT_CANNOT_EXECUTE;
	}
	if (r == 0)
		r = resolve(&p);
	if (r != 0) {
		if (!p.argv)
			p.n_argv = 0;
		program_deinit(&p);
		return r;
	}
	*program = p;
	return 0;
}
