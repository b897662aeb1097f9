/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Ownership
 *
 * Keeps what each user may see of what hardware recorded (daemon/tasks/owned.h): asks the collector
 * whose the processes are. A user can make the collector wait for his processes, so it is asked
 * about the processes of one user at a time, and when that took long, those of this user are left
 * alone for ten times as long. All of it happens in the event loop, which never waits for an
 * answer. A user who asks for what is his waits, until all his processes were asked about or he has
 * waited long enough.
 */

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/base.h"
#include "base/cursor.h"

struct owned_count;
struct owned_life;
struct ownership;
struct source;
typedef struct sd_event sd_event;

/* @event and @source are borrowed; @runtime_dir, where the collector's socket is, for the call.
 * Return: 0, or negative errno. */
_must_check_ int ownership_new(sd_event *event, struct source *source, const char *runtime_dir,
			       struct ownership **ret_ownership);
struct ownership *ownership_free(struct ownership *ownership);

DEFINE_CLEANUP(struct ownership *, ownership_free);

/* Return: the time now on the records' clock, in ns. */
uint64_t ownership_now(const struct ownership *ownership);

/* Take note of task records, whole ones: all from before @upto that were not added. */
void ownership_add(struct ownership *ownership, const uint8_t *bytes, size_t size, uint64_t upto);

/* Take note of the task records that are left of the time before the daemon was started, which lie
 * in @n_spans streams. Return: 0; or -ENOMEM: nothing is known of them. */
_must_check_ int ownership_resume(struct ownership *ownership, const struct cursor *spans,
				  size_t n_spans);

/* Take note of the record of a task that the source found when it looked. */
void ownership_add_found(struct ownership *ownership, const void *bytes, size_t size);

/* Take an answer if one has come, and ask about processes for which it is time: do not wait. This
 * happens now and then, too. */
void ownership_ask(struct ownership *ownership);

/*
 * Ask about all that may be the user's, or about as many as is possible in a second. An earlier
 * call for which that has not been done is forgotten.
 *
 * @done: is called in the event loop, not by this function; then the answers count after the next
 *        ownership_add(). May be NULL
 * @userdata: borrowed until @done() is called
 *
 * Return: 0, or negative errno.
 */
_must_check_ int ownership_ask_of(struct ownership *ownership, uid_t uid,
				  void (*done)(void *userdata), void *userdata);

/* Forget the last call of ownership_ask_of(), if @done() has not been called. */
void ownership_stop_asking(struct ownership *ownership);

/* As owned_list(). */
_must_check_ int ownership_list(const struct ownership *ownership, uid_t uid, gid_t gid,
				struct owned_life **ret_lives, size_t *ret_n);

/* As owned_count(). */
struct owned_count ownership_count(const struct ownership *ownership);
