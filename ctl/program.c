/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "ctl/program.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "ctl/verb.h"
#include "util/execfile.h"

#define PATH_DEFAULT "/usr/local/bin:/usr/bin:/bin"

void program_deinit(struct program *program)
{
	free(program->file);
	free(program->path);
	for (size_t i = 0; i < program->n_argv; i++)
		free(program->argv[i]);
	free(program->argv);
	*program = (struct program){};
}

int program_find(const char *name, char **ret_path)
{
	const char *at = getenv("PATH");
	int r, found = -ENOENT;

	if (strchr(name, '/')) {
		r = execfile_check(name);
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

		/* An empty entry means the working directory. */
		if (asprintf(&path, "%.*s/%s", n ? (int)n : 1, n ? at : ".", name) < 0)
			return -ENOMEM;
		r = execfile_check(path);
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

/* Replace the first argument by the strings. NULLs are left out. */
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

static int follow_script(struct program *p, const struct execfile *file)
{
	const char *first[] = { file->interpreter, file->argument[0] ? file->argument : NULL,
				p->path };
	char *path;
	int r;

	r = execfile_check(file->interpreter);
	if (r < 0)
		return log_errno_as(EXIT_CANNOT_EXECUTE, r,
				    "%s: cannot execute its interpreter %s: %m", p->path,
				    file->interpreter);
	path = strdup(file->interpreter);
	if (!path || replace_first(p, first, ARRAY_LEN(first)) < 0) {
		free(path);
		return EXIT_CANNOT_EXECUTE;
	}
	free(p->path);
	p->path = path;
	return 0;
}

static int judge_program(struct program *p, const struct execfile *file)
{
	if (file->kind == EXECFILE_OTHER)
		return log_as(EXIT_CANNOT_EXECUTE,
			      "%s: neither an ELF program nor a script that names its interpreter",
			      p->path);
	p->unseen = execfile_unseen(file);
	p->emulator = execfile_emulator(file->kind);
	return 0;
}

static int resolve_scripts(struct program *p)
{
	struct execfile file;
	int r;

	for (int i = 0; i <= EXECFILE_SCRIPTS_MAX; i++) {
		r = execfile_read(p->path, &file);
		if (r < 0) {
			p->unseen = EXECFILE_UNREADABLE;
			return 0;
		}
		if (file.kind != EXECFILE_SCRIPT)
			return judge_program(p, &file);
		r = follow_script(p, &file);
		if (r != 0)
			return r;
	}
	return log_as(EXIT_CANNOT_EXECUTE, "%s: too many scripts are interpreters of one another",
		      p->path);
}

int program_init(struct program *program, char **command)
{
	struct program p = {};
	int r;

	r = program_find(command[0], &p.path);
	if (r < 0) {
		(void)log_error_errno(r, "%s: cannot execute it: %m", command[0]);
		return r == -ENOENT ? EXIT_NOT_FOUND : EXIT_CANNOT_EXECUTE;
	}
	while (command[p.n_argv])
		p.n_argv++;
	p.argv = calloc(p.n_argv + 1, sizeof(char *));
	p.file = strdup(p.path);
	r = p.argv && p.file ? 0 : EXIT_CANNOT_EXECUTE;
	for (size_t i = 0; p.argv && i < p.n_argv; i++) {
		p.argv[i] = strdup(command[i]);
		if (!p.argv[i])
			r = EXIT_CANNOT_EXECUTE;
	}
	if (r == 0)
		r = resolve_scripts(&p);
	if (r != 0) {
		if (!p.argv)
			p.n_argv = 0;
		program_deinit(&p);
		return r;
	}
	*program = p;
	return 0;
}
