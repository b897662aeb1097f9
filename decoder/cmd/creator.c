/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/cmd/creator.h"

#include <errno.h>
#include <fcntl.h>

#include "decoder/util/outdir.h"
#include "util/fdpass.h"

/* How many files are created at most; the drmemtrace sink needs one for each thread. */
#define FILES_MAX (1u << 20)

/* The numbers of the child's two descriptors; all descriptors above them are closed. */
enum { DIR_FD = 3, SOCKET_FD = 4, FIRST_OTHER };

/* Do what is asked. Return: 0, with the file's descriptor or -1 in @ret_fd; or negative errno. */
static int answer_question(const struct outdir_question *question, unsigned *n_files, int *ret_fd)
{
	const bool is_new = question->what == OUTDIR_CREATE;

	/* The question comes from the confined process, so its names may be anything. */
	if (question->what > OUTDIR_RENAME || !outdir_is_name(question->name))
		return -EINVAL;
	if (question->what == OUTDIR_RENAME)
		return outdir_is_name(question->new_name)
			   ? outdir_rename_here(DIR_FD, question->name, question->new_name)
			   : -EINVAL;
	if (is_new && (*n_files)++ >= FILES_MAX)
		return -EMFILE;
	*ret_fd = outdir_open_here(DIR_FD, question->name, is_new);
	return *ret_fd < 0 ? *ret_fd : 0;
}

/* Close all descriptors of the decoder but these two, so that none outlives the decoder here. */
static int keep_only(int dir_fd, int socket)
{
	int high[2] = { fcntl(dir_fd, F_DUPFD_CLOEXEC, FIRST_OTHER),
			fcntl(socket, F_DUPFD_CLOEXEC, FIRST_OTHER) };

	if (high[0] < 0 || high[1] < 0 || dup2(high[0], DIR_FD) < 0 ||
	    dup2(high[1], SOCKET_FD) < 0 || close_range(FIRST_OTHER, UINT32_MAX, 0) < 0)
		return -errno;
	return 0;
}

static void serve(int socket, void *dir_fd)
{
	const struct sandbox_root root = { .fd = DIR_FD, .writable = true };
	struct outdir_answer answer = {};
	struct outdir_question question;
	unsigned n_files = 0;

	if (keep_only(*(const int *)dir_fd, socket) < 0)
		return;
	/* The first answer says whether this process could be confined. */
	answer.r =
	    sandbox_enter(&(struct sandbox){ .roots = &root, .n_roots = 1, .creates = true });
	if (fdpass_send(SOCKET_FD, &answer, sizeof(answer), -1) < 0 || answer.r < 0)
		return;
	while (read(SOCKET_FD, &question, sizeof(question)) == sizeof(question)) {
		_cleanup_(fd_closep) int fd = -1;

		answer.r = answer_question(&question, &n_files, &fd);
		if (fdpass_send(SOCKET_FD, &answer, sizeof(answer), fd < 0 ? -1 : fd) < 0)
			return;
	}
}

int creator_start(int dir_fd, struct helper *ret_creator)
{
	struct outdir_answer answer = {};
	struct helper creator;
	int fd, r = helper_start(serve, &dir_fd, &creator);

	if (r < 0)
		return r;
	r = fdpass_receive(creator.socket, &answer, sizeof(answer), &fd);
	(void)fd_close(fd);
	r = r < 0 ? r : answer.r;
	if (r < 0)
		helper_stop(&creator);
	else
		*ret_creator = creator;
	return r;
}
