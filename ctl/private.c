/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "ctl/private.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "base/log.h"
#include "ctl/verb.h"
#include "util/beside.h"
#include "util/dirs.h"
#include "util/fullwrite.h"
#include "util/textfile.h"

#define PREFIX "ptd-private-"
#define RANDOM "XXXXXX"

/* Room for the recording is the caller's business: a private recorder has one snapshot. */
static const char settings[] = "[Recorder]\nKeepRings=0\nMaxUse=100%\nKeepFree=0\n";

static const char *temporary(void)
{
	const char *path = getenv("TMPDIR");

	return path && path[0] == '/' ? path : "/tmp";
}

/* Lock the directory @name of this user under @at. Return: its descriptor; -EWOULDBLOCK if somebody
 * uses it; or another negative errno. */
static int lock_directory(int at, const char *name)
{
	_cleanup_(fd_closep) int fd = dirs_open(at, name);
	struct stat st;

	if (fd < 0)
		return fd;
	if (flock(fd, LOCK_EX | LOCK_NB) < 0 || fstat(fd, &st) < 0)
		return -errno;
	/* It may have been removed before it was locked. */
	if (st.st_uid != geteuid() || st.st_nlink == 0)
		return -EPERM;
	return TAKE_FD(fd);
}

/* Remove what a ptctl that was killed has left. */
static void sweep(void)
{
	_cleanup_(fd_closep) int at = dirs_open(AT_FDCWD, temporary());
	_cleanup_(dirs_closep) DIR *dir = at < 0 ? NULL : dirs_list(at);
	struct dirent *entry;

	while (dir && dirs_next(dir, &entry) > 0) {
		_cleanup_(fd_closep) int fd = -1;

		if (strncmp(entry->d_name, PREFIX, strlen(PREFIX)) != 0 ||
		    strlen(entry->d_name) != strlen(PREFIX RANDOM))
			continue;
		fd = lock_directory(at, entry->d_name);
		if (fd >= 0)
			(void)!dirs_remove(at, entry->d_name);
	}
}

/* Make a directory that this process holds locked. */
static int make_directory(struct private_recorder *recorder)
{
	char *path;

	do {
		if (asprintf(&path, "%s/" PREFIX RANDOM, temporary()) < 0)
			return -ENOMEM;
		free(recorder->directory);
		recorder->directory = path;
		if (!mkdtemp(path)) {
			const int r = -errno;

			recorder->directory = NULL;
			free(path);
			return r;
		}
		recorder->lock_fd = lock_directory(AT_FDCWD, path);
		/* Another ptctl may sweep it away before it is locked. */
	} while (recorder->lock_fd == -EPERM || recorder->lock_fd == -EWOULDBLOCK ||
		 recorder->lock_fd == -ENOENT);
	return recorder->lock_fd < 0 ? recorder->lock_fd : 0;
}

static int write_settings(int directory)
{
	_cleanup_(fd_closep) int fd =
	    openat(directory, "ptd.conf", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	return fd < 0 ? -errno : fullwrite(fd, settings, strlen(settings));
}

/* Listen for the recorder, which takes the socket over: calls wait until it is ready. */
static int listen_at(const char *path, int *ret_fd)
{
	_cleanup_(fd_closep) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	if (strlen(path) >= sizeof(address.sun_path))
		return -ENAMETOOLONG;
	strcpy(address.sun_path, path);
	if (fd < 0 || bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0 ||
	    listen(fd, SOMAXCONN) < 0)
		return -errno;
	*ret_fd = TAKE_FD(fd);
	return 0;
}

/* What the child has of its parent. */
struct child {
	int life, log, lock, listen;
};

/* A terminal's signals are for the recorded program, and the service manager is another's. */
static void prepare_child(const struct child *child)
{
	char pid[16];

	(void)setsid();
	(void)unsetenv("NOTIFY_SOCKET");
	(void)unsetenv("WATCHDOG_USEC");
	(void)unsetenv("WATCHDOG_PID");
	(void)unsetenv("LISTEN_FDNAMES");
	(void)snprintf(pid, sizeof(pid), "%d", (int)getpid());
	(void)setenv("LISTEN_PID", pid, 1);
	(void)setenv("LISTEN_FDS", "1", 1);
	(void)dup2(child->life, STDIN_FILENO);
	(void)dup2(child->log, STDOUT_FILENO);
	(void)dup2(child->log, STDERR_FILENO);
	(void)dup2(child->listen, SD_LISTEN_FDS_START);
	/* Inherited, unlike the others. */
	(void)fcntl(child->lock, F_SETFD, 0);
}

/* Run in the child. Does not return. */
static void execute_ptd(const struct child *child, const char *path, const char *directory,
			char *source)
{
	static char options[][16] = { "ptd",         "--until-eof", "--config", "--runtime-dir",
				      "--state-dir", "--parent",    "--source" };
	char config[PATH_MAX], run[PATH_MAX], state[PATH_MAX], parent[16];
	char *argv[] = { options[0], options[1], options[2], config,     options[3],
			 run,        options[4], state,      options[5], parent,
			 options[6], source,     NULL };

	(void)snprintf(parent, sizeof(parent), "%d", (int)getppid());
	(void)snprintf(config, sizeof(config), "%s/ptd.conf", directory);
	(void)snprintf(run, sizeof(run), "%s/run", directory);
	(void)snprintf(state, sizeof(state), "%s/state", directory);
	prepare_child(child);
	execv(path, argv);
	log_error("%s: cannot execute it: %m", path);
	_exit(EXIT_FAILED);
}

/* Move a descriptor out of the way of those that the child has at fixed numbers. */
static int move_up(int *fd)
{
	const int moved = fcntl(*fd, F_DUPFD_CLOEXEC, SD_LISTEN_FDS_START + 1);

	if (moved < 0)
		return -errno;
	(void)fd_close(*fd);
	*fd = moved;
	return 0;
}

static int start_ptd(struct private_recorder *recorder, const char *path, bool emulated)
{
	static char sources[][8] = { "auto", "emu" };
	_cleanup_(fd_closep) int life = -1, log = -1, listen = -1;
	int ends[2], r;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	life = ends[0];
	recorder->life_fd = ends[1];
	log = openat(recorder->lock_fd, "ptd.log",
		     O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0600);
	if (log < 0)
		return -errno;
	r = write_settings(recorder->lock_fd);
	if (r == 0)
		r = listen_at(recorder->socket, &listen);
	r = r ?: move_up(&life) ?: move_up(&log) ?: move_up(&listen) ?: move_up(&recorder->lock_fd);
	if (r < 0)
		return r;
	recorder->pid = fork();
	if (recorder->pid < 0)
		return -errno;
	if (recorder->pid == 0)
		execute_ptd(&(struct child){ life, log, recorder->lock_fd, listen }, path,
			    recorder->directory, sources[emulated]);
	return 0;
}

int private_recorder_start(bool emulated, struct private_recorder *ret_recorder)
{
	static const char *const places[] = { "ptd", "../sbin/ptd" };
	struct private_recorder recorder = PRIVATE_RECORDER_NONE;
	_cleanup_(freep) char *path = NULL;
	int r;

	r = beside_find(places, ARRAY_LEN(places), X_OK, &path);
	if (r != 0)
		return log_as(EXIT_FAILED, "there is no ptd beside ptctl, which would record");
	sweep();
	r = make_directory(&recorder);
	if (r == 0 && asprintf(&recorder.socket, "%s/control", recorder.directory) < 0)
		r = -ENOMEM;
	if (r == 0)
		r = start_ptd(&recorder, path, emulated);
	if (r == 0) {
		*ret_recorder = recorder;
		return EXIT_OK;
	}
	(void)log_error_errno(r, "%s: cannot record privately: %m",
			      recorder.directory ? recorder.directory : temporary());
	private_recorder_stop(&recorder);
	return EXIT_FAILED;
}

void private_recorder_stop(struct private_recorder *recorder)
{
	int status = 0;

	(void)fd_close(recorder->life_fd);
	if (recorder->pid > 0)
		while (waitpid(recorder->pid, &status, 0) < 0 && errno == EINTR)
			;
	if (WIFSIGNALED(status))
		log_error("the private recorder was killed by signal %d (%s)%s", WTERMSIG(status),
			  strsignal(WTERMSIG(status)),
			  WTERMSIG(status) == SIGKILL ? ": was there too little memory?" : "");
	if (recorder->directory && recorder->lock_fd >= 0)
		(void)!dirs_remove(AT_FDCWD, recorder->directory);
	(void)fd_close(recorder->lock_fd);
	free(recorder->socket);
	free(recorder->directory);
	*recorder = PRIVATE_RECORDER_NONE;
}

void private_recorder_explain(const struct private_recorder *recorder)
{
	char text[4096];

	if (recorder->directory &&
	    textfile_read(recorder->lock_fd, "ptd.log", text, sizeof(text)) > 0)
		fputs(text, stderr);
}
