/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/helper/collector/message.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#define ERRNO_MAX 4095 /* the kernel's */

/* As the fields lie in a message. Both sides run on one machine. */
struct wire_id {
	uint8_t size;
	uint8_t bytes[BUILDID_MAX];
	uint8_t rest[3];
};

struct wire_request {
	uint32_t version, verb, flags, timeout_ms;
	uint64_t id;
	uint64_t start, end, offset, dev, ino, size_max;
	uint32_t pid, path_size; /* with the NUL; the path follows all */
	struct wire_id build_id;
	uint64_t zero; /* of the clock, as the next two; mult 0: there is none */
	uint32_t mult, shift;
	uint32_t uid, rest;
};

struct wire_answer {
	uint32_t version;
	int32_t error;
	uint64_t id;
	uint64_t dev, ino, size, disk_bytes;
	int64_t mtime_ns, ctime_ns;
	uint32_t uid;
	struct wire_id build_id;
	char sha256[SHA256_HEX_SIZE];
	uint8_t rest[3];
	uint32_t lack, waited_us;
	uint64_t bytes_unreadable, n_left_out;
};

static_assert(sizeof(struct wire_request) + COLLECTOR_PATH_MAX <= COLLECTOR_MESSAGE_MAX,
	      "a request fits");
static_assert(sizeof(struct wire_answer) <= COLLECTOR_MESSAGE_MAX, "an answer fits");

static struct wire_id wire_from_id(const struct buildid *id)
{
	struct wire_id wire = { .size = id->size };

	memcpy(wire.bytes, id->bytes, sizeof(wire.bytes));
	return wire;
}

static int id_from_wire(const struct wire_id *wire, struct buildid *ret_id)
{
	if (wire->size > BUILDID_MAX)
		return -EBADMSG;
	*ret_id = (struct buildid){ .size = wire->size };
	memcpy(ret_id->bytes, wire->bytes, wire->size);
	return 0;
}

size_t collector_write_request(const struct collector_request *request,
			       uint8_t ret_bytes[static COLLECTOR_MESSAGE_MAX])
{
	const size_t path_size = strlen(request->path) + 1;
	const struct wire_request wire = {
		.version = COLLECTOR_VERSION,
		.verb = request->verb,
		.flags = request->flags,
		.timeout_ms = request->timeout_ms,
		.id = request->id,
		.start = request->start,
		.end = request->end,
		.offset = request->offset,
		.dev = request->dev,
		.ino = request->ino,
		.size_max = request->size_max,
		.pid = request->pid,
		.path_size = (uint32_t)path_size,
		.build_id = wire_from_id(&request->build_id),
		.zero = request->clock.zero,
		.mult = request->clock.valid ? request->clock.mult : 0,
		.shift = request->clock.shift,
		.uid = request->uid,
	};

	memcpy(ret_bytes, &wire, sizeof(wire));
	memcpy(ret_bytes + sizeof(wire), request->path, path_size);
	return sizeof(wire) + path_size;
}

int collector_read_request(const uint8_t *bytes, size_t size, struct collector_request *ret_request)
{
	struct collector_request request;
	struct wire_request wire;

	if (size < sizeof(wire))
		return -EBADMSG;
	memcpy(&wire, bytes, sizeof(wire));
	if (wire.version != COLLECTOR_VERSION || wire.verb == 0 || wire.verb >= _COLLECTOR_VERBS ||
	    wire.flags >= _COLLECTOR_FLAGS || wire.timeout_ms == 0 ||
	    wire.timeout_ms > COLLECTOR_TIMEOUT_MAX || wire.pid > INT32_MAX ||
	    wire.shift > TSC_SHIFT_MAX || wire.rest != 0 || wire.path_size == 0 ||
	    wire.path_size > COLLECTOR_PATH_MAX || size != sizeof(wire) + wire.path_size ||
	    memchr(bytes + sizeof(wire), 0, wire.path_size) != bytes + size - 1)
		return -EBADMSG;
	request = (struct collector_request){
		.id = wire.id,
		.verb = (enum collector_verb)wire.verb,
		.flags = wire.flags,
		.timeout_ms = wire.timeout_ms,
		.pid = wire.pid,
		.start = wire.start,
		.end = wire.end,
		.offset = wire.offset,
		.dev = wire.dev,
		.ino = wire.ino,
		.size_max = wire.size_max,
		.clock = { .valid = wire.mult > 0,
			   .shift = (uint16_t)wire.shift,
			   .mult = wire.mult,
			   .zero = wire.zero },
		.uid = wire.uid,
		.path = (const char *)bytes + sizeof(wire),
	};
	if (id_from_wire(&wire.build_id, &request.build_id) < 0)
		return -EBADMSG;
	*ret_request = request;
	return 0;
}

size_t collector_write_answer(const struct collector_answer *answer,
			      uint8_t ret_bytes[static COLLECTOR_MESSAGE_MAX])
{
	struct wire_answer wire = {
		.version = COLLECTOR_VERSION,
		.error = answer->error,
		.id = answer->id,
		.dev = answer->dev,
		.ino = answer->ino,
		.size = answer->size,
		.disk_bytes = answer->disk_bytes,
		.mtime_ns = answer->mtime_ns,
		.ctime_ns = answer->ctime_ns,
		.uid = answer->uid,
		.build_id = wire_from_id(&answer->build_id),
		.lack = answer->lack,
		.waited_us = answer->waited_us,
		.bytes_unreadable = answer->bytes_unreadable,
		.n_left_out = answer->n_left_out,
	};

	memcpy(wire.sha256, answer->sha256, sizeof(wire.sha256));
	memcpy(ret_bytes, &wire, sizeof(wire));
	return sizeof(wire);
}

/* The hash becomes the name of a file. */
static bool is_hash(const char text[static SHA256_HEX_SIZE])
{
	return text[0] == '\0' || (strspn(text, "0123456789abcdef") == SHA256_HEX_SIZE - 1 &&
				   text[SHA256_HEX_SIZE - 1] == '\0');
}

int collector_read_answer(const uint8_t *bytes, size_t size, struct collector_answer *ret_answer)
{
	struct collector_answer answer;
	struct wire_answer wire;

	if (size != sizeof(wire))
		return -EBADMSG;
	memcpy(&wire, bytes, sizeof(wire));
	if (wire.version != COLLECTOR_VERSION || wire.error > 0 || wire.error < -ERRNO_MAX ||
	    !memchr(wire.sha256, 0, sizeof(wire.sha256)) || !is_hash(wire.sha256) ||
	    wire.lack >= _KERNELLACKS)
		return -EBADMSG;
	answer = (struct collector_answer){ .id = wire.id,
					    .error = wire.error,
					    .waited_us = wire.waited_us };
	if (wire.error == 0) {
		answer.uid = wire.uid;
		answer.dev = wire.dev;
		answer.ino = wire.ino;
		answer.size = wire.size;
		answer.mtime_ns = wire.mtime_ns;
		answer.ctime_ns = wire.ctime_ns;
		answer.disk_bytes = wire.disk_bytes;
		answer.lack = (enum kernellack)wire.lack;
		answer.bytes_unreadable = wire.bytes_unreadable;
		answer.n_left_out = wire.n_left_out;
		memcpy(answer.sha256, wire.sha256, sizeof(answer.sha256));
		if (id_from_wire(&wire.build_id, &answer.build_id) < 0)
			return -EBADMSG;
	}
	*ret_answer = answer;
	return 0;
}

/* --- the socket ------------------------------------------------------------------------------ */

union control {
	struct cmsghdr header;
	char bytes[CMSG_SPACE(COLLECTOR_FDS_MAX * sizeof(int))];
};

int collector_send(int socket, const uint8_t *bytes, size_t size, const int *fds, size_t n_fds)
{
	struct iovec part = { .iov_base = (void *)(uintptr_t)bytes, .iov_len = size };
	struct msghdr m = { .msg_iov = &part, .msg_iovlen = 1 };
	union control control = {};
	int *to = (int *)(void *)CMSG_DATA(&control.header);
	size_t n = 0;

	for (size_t i = 0; i < n_fds; i++)
		if (fds[i] >= 0)
			to[n++] = fds[i];
	if (n > 0) {
		control.header.cmsg_level = SOL_SOCKET;
		control.header.cmsg_type = SCM_RIGHTS;
		control.header.cmsg_len = CMSG_LEN(n * sizeof(int));
		m.msg_control = &control;
		m.msg_controllen = CMSG_SPACE(n * sizeof(int));
	}
	return sendmsg(socket, &m, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? -errno : 0;
}

int collector_receive(int socket, uint8_t ret_bytes[static COLLECTOR_MESSAGE_MAX], size_t *ret_size,
		      int ret_fds[static COLLECTOR_FDS_MAX])
{
	union control control;
	struct iovec part = { .iov_base = ret_bytes, .iov_len = COLLECTOR_MESSAGE_MAX };
	struct msghdr m = { .msg_iov = &part,
			    .msg_iovlen = 1,
			    .msg_control = &control,
			    .msg_controllen = sizeof(control) };
	const struct cmsghdr *header;
	size_t n_fds = 0;
	ssize_t n;

	for (size_t i = 0; i < COLLECTOR_FDS_MAX; i++)
		ret_fds[i] = -1;
	n = recvmsg(socket, &m, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
	if (n < 0)
		return errno == ECONNRESET ? -EPIPE : -errno;
	if (n == 0)
		return -EPIPE;
	header = CMSG_FIRSTHDR(&m);
	if (header && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS) {
		n_fds = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		memcpy(ret_fds, CMSG_DATA(header), n_fds * sizeof(int));
	}
	/* The kernel has closed the descriptors for which there was no room. */
	if (m.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) {
		for (size_t i = 0; i < n_fds; i++)
			ret_fds[i] = fd_close(ret_fds[i]);
		return -EBADMSG;
	}
	*ret_size = (size_t)n;
	return 0;
}
