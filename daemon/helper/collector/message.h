/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Collector message
 *
 * What ptd and its collector, and the collector and its workers, say to each other over a channel
 * (daemon/helper/channel.h). A request has a path as its text and at most two descriptors. Each is
 * answered once, in any order, with at most one descriptor.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "daemon/helper/channel.h"
#include "daemon/proc/kernelmap.h"
#include "util/buildid.h"
#include "util/perf/tsc.h"
#include "util/sha256.h"

#define COLLECTOR_VERSION     6u
#define COLLECTOR_TIMEOUT_MAX 60000u /* ms */

enum collector_verb {
	COLLECTOR_FIND = 1, /* find the file that is mapped */
	/* Read the file whose descriptor is passed. The second descriptor, if there is one, has how
	 * many bytes were read so far, a uint64_t. */
	COLLECTOR_HASH,
	COLLECTOR_COPY, /* copy it into the second descriptor */
	/* Copy the executable memory of the process into the first descriptor, where each byte lies
	 * at its distance from @start; the rest of the file stays as it is. */
	COLLECTOR_MEMORY,
	/* Write MMAP2 records of the process's executable mappings into the first descriptor, an
	 * empty file. */
	COLLECTOR_MAPPINGS,
	COLLECTOR_OPEN_PATH, /* open the regular file at the path, in the collector's namespace */
	COLLECTOR_STAT,      /* find out how large the file is whose descriptor is passed */
	COLLECTOR_MAPPED,    /* find out whether the process has the file mapped there */
	/* Write who has perf events open, but for the process, into the first descriptor. */
	COLLECTOR_PERF_USERS,
	/* Copy the names of the kernel's functions into the first descriptor, and the list of its
	 * modules into the second, which are empty files. */
	COLLECTOR_KERNEL_NAMES,
	/* Copy the kernel's code into the first descriptor, and write MMAP records that say where
	 * it is into the second. Without descriptors: find out whether that can be done. */
	COLLECTOR_KERNEL_CODE,
	_COLLECTOR_VERBS,
};

enum collector_flag {
	/* The kernel says what is mapped, not a process. */
	COLLECTOR_TRUE = 1 << 0,
	/* The build-id of the file that is found is to be that of the request, if it has one. */
	COLLECTOR_VERIFY = 1 << 1,
	/* The file that is found is to be an ELF file. */
	COLLECTOR_ELF = 1 << 2,
	/* The answer is to have a descriptor. */
	COLLECTOR_OPEN = 1 << 3,
	/* COLLECTOR_OPEN_PATH: a symbolic link is not followed. */
	COLLECTOR_NOFOLLOW = 1 << 4,
	/* COLLECTOR_COPY: of a larger file, its first bytes are copied. */
	COLLECTOR_FIRST = 1 << 5,
	/* The file that is found is to be a jitdump, or to have nothing in it yet. */
	COLLECTOR_JITDUMP = 1 << 6,
	/* It is known that the user started the process, so that a file of theirs may be read. */
	COLLECTOR_OWN = 1 << 7,
	/* COLLECTOR_OPEN_PATH: the perf map of the process, where that writes it; the path counts
	 * only if the process has ended. */
	COLLECTOR_PERF_MAP = 1 << 8,
	_COLLECTOR_FLAGS = 1 << 9,
};

struct collector_request {
	uint64_t id; /* the link's own */
	enum collector_verb verb;
	uint32_t flags;      /* enum collector_flag */
	uint32_t timeout_ms; /* after which the collector gives up */

	/* For whom it is done; 0: the process is not known, or is to be treated as if it had
	 * ended. */
	uint32_t pid;

	uint64_t start, end; /* of the mapping, or the memory */

	/* COLLECTOR_FIND: what is said of the mapping's file; the same for COLLECTOR_MAPPED, which
	 * asks for all places if @end is 0. */
	uint64_t offset;
	uint64_t dev, ino; /* 0: not known */

	/* COLLECTOR_HASH, COLLECTOR_COPY: bytes that the file may have. COLLECTOR_MEMORY,
	 * COLLECTOR_MAPPINGS: bytes that are written at most. COLLECTOR_KERNEL_NAMES,
	 * COLLECTOR_KERNEL_CODE: bytes of text, or of memory, that are copied at most. */
	uint64_t size_max;

	struct tsc_conv clock; /* COLLECTOR_MAPPINGS: of the records */
	/* Who started the process, as far as ptd knows, should it have ended; 0: root, or not
	 * known. */
	uint32_t uid;

	struct buildid build_id; /* that the file is said to have; size 0: not known */

	const char *path; /* borrowed; NULL: none. The message's text. */
};

struct collector_answer {
	uint64_t id;
	/* How long it took, without the time for which the collector waited for a CPU. */
	uint32_t waited_us;
	int32_t error; /* 0, or negative errno: then the rest is 0 */

	/* Of the file; COLLECTOR_COPY: of the copy; COLLECTOR_MEMORY, COLLECTOR_KERNEL_NAMES,
	 * COLLECTOR_KERNEL_CODE: bytes that were copied. */
	uint64_t size;

	/* COLLECTOR_FIND, COLLECTOR_HASH, COLLECTOR_OPEN_PATH, COLLECTOR_STAT: which file it is. */
	uint32_t uid; /* its owner */
	uint64_t dev, ino;
	int64_t mtime_ns, ctime_ns;

	/* COLLECTOR_HASH */
	uint64_t disk_bytes; /* that the file takes on the disk */
	struct buildid build_id;
	char sha256[SHA256_HEX_SIZE]; /* "" if there is none */

	/* COLLECTOR_KERNEL_NAMES, COLLECTOR_KERNEL_CODE */
	enum kernellack lack; /* why the descriptors have nothing of use; 0: they have */
	uint64_t bytes_unreadable, n_left_out; /* as struct kernelcode has them */
};

/* Send a request with @fds, CHANNEL_FDS_MAX descriptors, borrowed, or -1; or NULL. Return: as
 * channel_send(). */
_must_check_ int collector_send_request(int socket, const struct collector_request *request,
					const int *fds);

/* Read a request. Return: 0 and @ret_request, whose path is in the message; or -EBADMSG if ptd
 * cannot mean that. */
_must_check_ int collector_read_request(const struct channel_message *message,
					struct collector_request *ret_request);

/* Send an answer with @fd, borrowed, unless it is -1. Return: as channel_send(). */
_must_check_ int collector_send_answer(int socket, const struct collector_answer *answer, int fd);

/* Read an answer. Return: 0; or -EBADMSG if the collector cannot mean that. */
_must_check_ int collector_read_answer(const struct channel_message *message,
				       struct collector_answer *ret_answer);
