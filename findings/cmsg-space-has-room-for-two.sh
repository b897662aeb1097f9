#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# One would guess that a receiver whose buffer has CMSG_SPACE(sizeof(int)) bytes gets one descriptor, and that a
# sender of two is told by MSG_CTRUNC. CMSG_SPACE() rounds up to 8 bytes, and the kernel puts in what there is room
# for: the receiver gets both, no flag is set, and the second one stays open if it is not looked for. A
# msg_controllen of CMSG_LEN(sizeof(int)) is what takes one only.
#
# Depended on by: util/fdpass.c, fdpass_receive_parts().
. "$(dirname "$0")/lib.sh"
command -v cc >/dev/null || missing "cc is not installed"
cat >passed.c <<'EOP'
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

int main(void)
{
	const int fds[] = { 0, 1 };
	const size_t rooms[] = { CMSG_SPACE(sizeof(int)), CMSG_LEN(sizeof(int)) };
	int sockets[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sockets) < 0)
		return 2;
	for (size_t i = 0; i < 2; i++) {
		_Alignas(struct cmsghdr) char sent[CMSG_SPACE(sizeof(fds))] = "", got[64] = "";
		struct iovec part = { "x", 1 };
		struct msghdr m = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = sent, .msg_controllen = sizeof(sent) };
		struct cmsghdr *header = CMSG_FIRSTHDR(&m);
		char byte;

		header->cmsg_level = SOL_SOCKET;
		header->cmsg_type = SCM_RIGHTS;
		header->cmsg_len = CMSG_LEN(sizeof(fds));
		memcpy(CMSG_DATA(header), fds, sizeof(fds));
		if (sendmsg(sockets[0], &m, 0) < 0)
			return 2;
		part.iov_base = &byte;
		m.msg_control = got;
		m.msg_controllen = rooms[i];
		if (recvmsg(sockets[1], &m, 0) < 0)
			return 2;
		header = CMSG_FIRSTHDR(&m);
		printf("2 sent, room of %zu bytes: %zu received, %s\n", rooms[i],
		       (header->cmsg_len - CMSG_LEN(0)) / sizeof(int), m.msg_flags & MSG_CTRUNC ? "MSG_CTRUNC" : "no flag");
	}
	return 0;
}
EOP
echo "Linux $(uname -r), $(uname -m)"
cc -o passed passed.c || changed "it does not compile"
./passed >said || missing "descriptors cannot be passed"
cat said
[[ $(uname -m) == x86_64 ]] || missing "another machine"
printf '2 sent, room of %s received, %s\n' "24 bytes: 2" "no flag" "20 bytes: 1" MSG_CTRUNC | cmp -s - said ||
	changed "other numbers"
