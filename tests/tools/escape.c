/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * escape: ptdecode with a decoder that somebody got to run his code. Before the first batch it
 * tries what the sandbox is there to refuse, and says of each on stderr how it ended. The
 * environment variable OUTSIDE is a file that is below none of the roots.
 */

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ptd/decode.h"

int __real_ptd_decoder_next(struct ptd_decoder *decoder, const struct ptd_batch **ret_batch);
int __wrap_ptd_decoder_next(struct ptd_decoder *decoder, const struct ptd_batch **ret_batch);

static void say(const char *what, int r)
{
	fprintf(stderr, "escape: %s: %s\n", what, r < 0 ? strerror(errno) : "DONE");
}

static void try_files(void)
{
	const char *outside = getenv("OUTSIDE");
	char path[4096];

	say("read", open(outside, O_RDONLY | O_CLOEXEC));
	say("write", open(outside, O_WRONLY | O_CLOEXEC));
	say("truncate", truncate(outside, 0));
	say("remove", unlink(outside));
	(void)snprintf(path, sizeof(path), "%s.new", outside);
	say("create", open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
	say("rename", rename(outside, path));
}

static void try_all(void)
{
	const struct sockaddr_in discard = { .sin_family = AF_INET, .sin_port = htons(9) };
	char *const argv[] = { (char *)"true", NULL };
	const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	say("socket", fd);
	/* Whatever descriptor it may have got hold of. */
	say("connect", connect(STDIN_FILENO, (const struct sockaddr *)&discard, sizeof(discard)));
	say("ptrace", (int)ptrace(PTRACE_ATTACH, getppid(), NULL, NULL));
	try_files();
	say("privileges", prctl(PR_SET_NO_NEW_PRIVS, 0, 0, 0, 0));
	say("exec", execv("/bin/true", argv));
}

int __wrap_ptd_decoder_next(struct ptd_decoder *decoder, const struct ptd_batch **ret_batch)
{
	static bool tried;

	if (!tried)
		try_all();
	tried = true;
	return __real_ptd_decoder_next(decoder, ret_batch);
}
