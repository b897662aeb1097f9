/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Collector link
 *
 * ptd's side of the collector. Each thread that asks has a link of its own. If no collector serves,
 * the link starts one, unless a service manager runs ptd, whose business that is. A collector that
 * ends or does not answer costs what was asked for, and ptd goes on: until one answers again, every
 * request fails at once, but for one now and then.
 */

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/base.h"
#include "daemon/helper/collector/message.h"
#include "util/map.h"

/* Has the collector read a small file that ptd may not read, such as those of tracefs. */

#define SMALLFILE_MAX 64u /* bytes, with the NUL */

struct collectorlink;

/* Read the text of the file at @path, without white space at its end, or its beginning if it is
 * longer. Return: 0; or as collectorlink_ask(). */
_must_check_ int smallfile_read(struct collectorlink *link, const char *path,
				char ret_text[static SMALLFILE_MAX]);

/*
 * Make the link to the collector that serves at DIR/collector/socket, and connect to it.
 *
 * @thrifty: the thread must not wait for long: if many answers take long, some requests fail at
 *           once, so that waiting takes about a tenth of its time. Such a link logs once if no
 *           collector serves
 *
 * Return: 0, also if there is no collector; or -ENOMEM or -ENAMETOOLONG.
 */
_must_check_ int collectorlink_new(const char *runtime_dir, bool thrifty,
				   struct collectorlink **ret_link);

/* Return: NULL. */
struct collectorlink *collectorlink_free(struct collectorlink *link);

DEFINE_CLEANUP(struct collectorlink *, collectorlink_free);

/*
 * Ask, and wait for the answer, for not much longer than @request->timeout_ms.
 *
 * @request: whose id is set
 * @fds: two descriptors to pass, borrowed, or -1; may be NULL
 * @cancel: the link gives up once this is true; may be NULL
 * @ret_answer: may be NULL
 * @ret_fd: may be NULL if the answer is to have no descriptor
 *
 * Return: 0 and the answer, which has no error, with its descriptor, which is the caller's, or -1;
 *         the error of the answer; -ENOTCONN if no collector answers at present; -ETIMEDOUT;
 *         -EBUSY, also if the link is thrifty; or -ECANCELED.
 */
_must_check_ int collectorlink_ask(struct collectorlink *link, struct collector_request *request,
				   const int *fds, const atomic_bool *cancel,
				   struct collector_answer *ret_answer, int *ret_fd);

/*
 * Ask without waiting. What was begun before and has not been finished is given up.
 *
 * Return: 0; -ENOTCONN or -EBUSY as collectorlink_ask().
 */
_must_check_ int collectorlink_begin(struct collectorlink *link, struct collector_request *request,
				     const int *fds);

/* Wait for the answer to what was begun, for @wait_ns at most. Return: -EAGAIN if it has not come
 * yet; otherwise as collectorlink_ask(). */
_must_check_ int collectorlink_finish(struct collectorlink *link, uint64_t wait_ns,
				      struct collector_answer *ret_answer, int *ret_fd);

/* Return: whether an error of collectorlink_ask() says nothing of what was asked for: another
 *         attempt may succeed. */
static inline bool collectorlink_may_retry(int error)
{
	return error == -ENOTCONN || error == -ETIMEDOUT || error == -EBUSY ||
	       error == -ECONNABORTED;
}

/* --- hung users ------------------------------------------------------------------------------- */

struct hungusers {
	struct map users;
};

void hungusers_deinit(struct hungusers *hung);

/* Note that the collector took too long for the process @pid. */
void hungusers_note(struct hungusers *hung, uint32_t pid);

/* Return: whether that was so for a process of the same user. */
bool hungusers_has(const struct hungusers *hung, uint32_t pid);

/* The same for a user. */
void hungusers_note_user(struct hungusers *hung, uid_t user);
bool hungusers_has_user(const struct hungusers *hung, uid_t user);
