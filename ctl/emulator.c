/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "ctl/emulator.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "ctl/program.h"
#include "util/beside.h"

#define PLUGIN "ptd-emu.so"

/* Bytes of an emulator's help that are looked at; QEMU 7.2 prints 4,500. */
#define HELP_MAX (UINT32_C(1) << 16)

/* --- what an emulator can do ------------------------------------------------------------------ */

/* Start the emulator, so that it prints its options into @out. Return: 0 or negative errno. */
static int ask(const char *path, int out, pid_t *ret_pid)
{
	char name[] = "qemu", help[] = "-h";
	char *const argv[] = { name, help, NULL };
	posix_spawn_file_actions_t files;
	int r;

	r = posix_spawn_file_actions_init(&files);
	if (r != 0)
		return -r;
	if ((r = posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0)) == 0 &&
	    (r = posix_spawn_file_actions_adddup2(&files, out, 1)) == 0 &&
	    (r = posix_spawn_file_actions_adddup2(&files, out, 2)) == 0)
		r = posix_spawn(ret_pid, path, &files, NULL, argv, environ);
	(void)posix_spawn_file_actions_destroy(&files);
	return -r;
}

/* Return: whether what comes out of @fd, up to its end, has the option. */
static bool has_plugins(int fd)
{
	_cleanup_(freep) char *help = malloc(HELP_MAX + 1);
	size_t size = 0;
	ssize_t n;

	while (help && size < HELP_MAX && (n = read(fd, help + size, HELP_MAX - size)) > 0)
		size += (size_t)n;
	if (help)
		help[size] = '\0';
	return help && strstr(help, "-plugin");
}

/* Return: 0; -ENOTSUP if the emulator loads no plugins; or negative errno. */
static int check(const char *path)
{
	_cleanup_(fd_closep) int in = -1, out = -1;
	int ends[2], r;
	bool good;
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	in = ends[0];
	out = ends[1];
	r = ask(path, out, &pid);
	if (r < 0)
		return r;
	out = fd_close(out);
	good = has_plugins(in);
	in = fd_close(in);
	(void)waitpid(pid, NULL, 0);
	return good ? 0 : -ENOTSUP;
}

/* --- where they are --------------------------------------------------------------------------- */

/* Return: 0 and the emulator's path; or negative errno. */
static int find(const char *name, char **ret_path)
{
	char built[32], installed[32];
	const char *const places[] = { built, installed };
	_cleanup_(freep) char *path = NULL;
	int r;

	(void)snprintf(built, sizeof(built), "qemu/%s", name);
	(void)snprintf(installed, sizeof(installed), "../lib/ptd/qemu/%s", name);
	r = beside_find(places, ARRAY_LEN(places), X_OK, &path);
	if (r == BESIDE_NOWHERE)
		return program_find(name, ret_path);
	if (r == 0)
		*ret_path = TAKE(path);
	return r;
}

int emulator_probe(const char *name, char **ret_path)
{
	const int r = find(name, ret_path);

	return r < 0 ? r : check(*ret_path);
}

int emulator_find(const char *name, char **ret_path)
{
	_cleanup_(freep) char *path = NULL;
	const int r = emulator_probe(name, &path);

	if (r == 0) {
		*ret_path = TAKE(path);
		return 0;
	}
	log_error("%s cannot record programs: %s; get one that can by \"make emulator\", or by "
		  "lib/ptd/get-emulator where ptd is installed",
		  path ? path : name, r == -ENOTSUP ? "it loads no plugins" : strerror(-r));
	return r;
}

int emulator_find_plugin(char **ret_path)
{
	static const char *const places[] = { PLUGIN, "../lib/ptd/" PLUGIN };
	const char *from_env = getenv("PTD_EMU_SO");
	int r;

	if (from_env && from_env[0]) {
		*ret_path = realpath(from_env, NULL);
		if (!*ret_path)
			*ret_path = strdup(from_env);
		return *ret_path ? 0 : -ENOMEM;
	}
	/* Messages say where the plugin would be installed. */
	r = beside_find(places, ARRAY_LEN(places), F_OK, ret_path);
	return r < 0 ? r : 0;
}

int emulator_probe_plugin(char **ret_path)
{
	const int r = emulator_find_plugin(ret_path);

	return r == 0 && access(*ret_path, R_OK) < 0 ? -errno : r;
}
