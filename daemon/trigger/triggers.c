/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/trigger/triggers.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <systemd/sd-event.h>
#include <unistd.h>

#include "base/log.h"
#include "daemon/helper/collector/link.h"
#include "util/message.h"
#include "util/number.h"
#include "util/regular.h"
#include "util/textfile.h"
#include "util/vec.h"

/* --- trigger file ----------------------------------------------------------------------------- */

/*
 * The triggers that survive a restart of the recorder, a line each, with tabs between the fields:
 *
 * 	ID COUNT TAKEN INTERVAL DELAY UID COMM CONDITION
 *
 * Times are in ns. COMM is "-" for threads of any name. The condition, which comes last, has no
 * control characters.
 */

/* More than the longest line has. */
#define LINE_SIZE (TRIGGERS_CONDITION_MAX + 256)

/* Cut the next field off. Return: the field; NULL if there is none. */
static char *next_field(char **rest)
{
	char *field = strsep(rest, "\t");

	return field && field[0] ? field : NULL;
}

static bool read_number(char **rest, uint64_t max, uint64_t *ret_number)
{
	const char *field = next_field(rest);

	return field && number_parse(field, max, ret_number) == 0;
}

static bool read_string(const char *field, char *ret_text, size_t size)
{
	if (!field || strlen(field) >= size)
		return false;
	strcpy(ret_text, field);
	return true;
}

/* Parse @line, which is changed. Return: whether it makes sense. */
static bool parse_line(char *line, struct trigger_state *ret_state)
{
	struct trigger_state s = {};
	uint64_t id, count, taken, uid;
	char *rest = line;

	if (!read_number(&rest, UINT32_MAX, &id) || !read_number(&rest, UINT32_MAX, &count) ||
	    !read_number(&rest, UINT32_MAX, &taken) ||
	    !read_number(&rest, UINT64_MAX, &s.wish.interval_ns) ||
	    !read_number(&rest, UINT64_MAX, &s.wish.delay_ns) ||
	    !read_number(&rest, UINT32_MAX, &uid) ||
	    !read_string(next_field(&rest), s.wish.comm, sizeof(s.wish.comm)) ||
	    !read_string(next_field(&rest), s.wish.condition, sizeof(s.wish.condition)) || rest ||
	    id == 0 || taken >= count)
		return false;
	if (strcmp(s.wish.comm, "-") == 0)
		s.wish.comm[0] = '\0';
	s.id = (uint32_t)id;
	s.wish.count = (uint32_t)count;
	s.n_taken = (uint32_t)taken;
	s.uid = (uid_t)uid;
	*ret_state = s;
	return true;
}

/*
 * Read the file at @path into @ret_states, TRIGGERS_MAX at most. A line that makes no sense is
 * logged and left out.
 *
 * Return: 0 and @ret_n, also if there is no such file; or negative errno.
 */
static int triggerfile_read(const char *path, struct trigger_state *ret_states, size_t *ret_n)
{
	_cleanup_(textfile_closep) FILE *f = NULL;
	char line[LINE_SIZE];
	unsigned number = 0;
	int r;

	*ret_n = 0;
	r = textfile_from(regular_open(AT_FDCWD, path, O_NOFOLLOW), "r", &f);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	while (*ret_n < TRIGGERS_MAX && fgets(line, sizeof(line), f)) {
		number++;
		line[strcspn(line, "\n")] = '\0';
		if (parse_line(line, &ret_states[*ret_n]))
			(*ret_n)++;
		else
			log_warning("%s: line %u: is no trigger, ignoring", path, number);
	}
	return ferror(f) ? -EIO : 0;
}

/* Close @fd, too. */
static int write_lines(int fd, const struct trigger_state *states, size_t n)
{
	FILE *f;
	int r;

	r = textfile_from(fd, "w", &f);
	if (r < 0)
		return r;
	for (size_t i = 0; i < n; i++) {
		const struct trigger_state *s = &states[i];

		fprintf(f,
			"%" PRIu32 "\t%" PRIu32 "\t%" PRIu32 "\t%" PRIu64 "\t%" PRIu64
			"\t%u\t%s\t%s\n",
			s->id, s->wish.count, s->n_taken, s->wish.interval_ns, s->wish.delay_ns,
			(unsigned)s->uid, s->wish.comm[0] ? s->wish.comm : "-", s->wish.condition);
	}
	if (fflush(f) != 0 || ferror(f) || fsync(fileno(f)) < 0)
		r = errno > 0 ? -errno : -EIO;
	if (fclose(f) != 0 && r == 0)
		r = -errno;
	return r;
}

/* Replace the file; on failure the old one stays. Return: 0, or negative errno. */
static int triggerfile_write(const char *path, const struct trigger_state *states, size_t n)
{
	_cleanup_(freep) char *temporary = NULL;
	int fd, r;

	temporary = message_text("%s.new", path);
	if (!temporary)
		return -ENOMEM;
	fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0640);
	r = write_lines(fd < 0 ? -errno : fd, states, n);
	if (r == 0 && rename(temporary, path) < 0)
		r = -errno;
	if (r < 0)
		(void)unlink(temporary);
	return r;
}

/* --- triggers --------------------------------------------------------------------------------- */

struct trigger {
	struct triggers *triggers; /* borrowed */
	uint32_t id;
	struct trigger_wish wish;
	uint32_t n_taken;
	uid_t uid;

	struct probe *probe; /* NULL: it could not be made, or is not needed any more */
	char *error;         /* why not; NULL: nothing failed */
	VEC(sd_event_source *) ios;
	sd_event_source *timer; /* armed: of the period; then of the delay and the interval */
	bool is_armed;
	bool is_delayed; /* the timer is that of the delay */
	struct probe_hit hit;
};

struct triggers {
	struct collectorlink *link;
	sd_event *event;
	triggers_take_fn take;
	void *userdata;
	char *path; /* of the file */
	uint32_t last_id;
	VEC(struct trigger *) list;
};

static struct trigger *free_trigger(struct trigger *trigger)
{
	vec_deinit_each(&trigger->ios, io, sd_event_source_disable_unref(*io));
	(void)sd_event_source_disable_unref(trigger->timer);
	(void)probe_free(trigger->probe);
	free(trigger->error);
	free(trigger);
	return NULL;
}

static struct trigger_state state_of(const struct trigger *trigger)
{
	const char *what = "waiting";

	if (trigger->error)
		what = "failed";
	else if (trigger->is_armed)
		what = "armed";
	return (struct trigger_state){ .id = trigger->id,
				       .wish = trigger->wish,
				       .n_taken = trigger->n_taken,
				       .uid = trigger->uid,
				       .what = what,
				       .error = trigger->error };
}

/* Write all triggers to the file. */
static int save(const struct triggers *triggers)
{
	struct trigger_state states[TRIGGERS_MAX];

	for (size_t i = 0; i < triggers->list.n; i++)
		states[i] = state_of(triggers->list.items[i]);
	return triggerfile_write(triggers->path, states, triggers->list.n);
}

static void save_or_say(const struct triggers *triggers)
{
	const int r = save(triggers);

	if (r < 0)
		log_error_errno(r,
				"%s: cannot write it, the triggers will be as before after the "
				"next start: %m",
				triggers->path);
}

/* --- a condition holds ------------------------------------------------------------------------ */

static void remove_trigger(struct triggers *triggers, size_t i)
{
	(void)free_trigger(triggers->list.items[i]);
	memmove(&triggers->list.items[i], &triggers->list.items[i + 1],
		(--triggers->list.n - i) * sizeof(*triggers->list.items));
}

static void wait_for(struct trigger *trigger, uint64_t ns)
{
	(void)sd_event_source_set_time_relative(trigger->timer, ns / 1000);
	(void)sd_event_source_set_enabled(trigger->timer, SD_EVENT_ONESHOT);
}

/* Have the probe looked at, if that does not say itself when to. */
static void wait_for_period(struct trigger *trigger)
{
	if (probe_period(trigger->probe) > 0)
		wait_for(trigger, probe_period(trigger->probe));
}

static int arm(struct trigger *trigger)
{
	const int r = probe_arm(trigger->probe);

	trigger->is_armed = r == 0;
	if (r == 0)
		wait_for_period(trigger);
	return r;
}

static void arm_again(struct trigger *trigger)
{
	struct probe_hit late;
	int r;

	/* What held on another CPU before that was disabled does not count. */
	(void)probe_take(trigger->probe, &late);
	r = arm(trigger);
	if (r < 0)
		(void)message_set(&trigger->error, r, "cannot be armed: %s", strerror(-r));
}

/* Take the snapshot. The trigger goes when it was the last that is wanted. */
static void take(struct trigger *trigger)
{
	struct triggers *triggers = trigger->triggers;
	const struct trigger_state state = state_of(trigger);
	const uint64_t rest = trigger->wish.interval_ns > trigger->wish.delay_ns
				  ? trigger->wish.interval_ns - trigger->wish.delay_ns
				  : 0;
	size_t i = 0;

	if (triggers->take(triggers->userdata, &state, &trigger->hit) == 0)
		trigger->n_taken++;
	if (trigger->n_taken < trigger->wish.count) {
		wait_for(trigger, rest);
	} else {
		while (triggers->list.items[i] != trigger)
			i++;
		remove_trigger(triggers, i);
	}
	save_or_say(triggers);
}

/* Look whether the condition held. */
static void look(struct trigger *trigger)
{
	if (!probe_take(trigger->probe, &trigger->hit) || !trigger->is_armed)
		return;
	probe_disarm(trigger->probe);
	trigger->is_armed = false;
	trigger->is_delayed = trigger->wish.delay_ns > 0;
	if (trigger->is_delayed)
		wait_for(trigger, trigger->wish.delay_ns);
	else
		take(trigger);
}

static int on_time(sd_event_source *source, uint64_t usec, void *userdata)
{
	struct trigger *trigger = userdata;

	if (trigger->is_armed) {
		wait_for_period(trigger);
		look(trigger);
	} else if (trigger->is_delayed) {
		trigger->is_delayed = false;
		take(trigger);
	} else {
		arm_again(trigger);
	}
	return 0;
}

static int on_event(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	look(userdata);
	return 0;
}

/* --- adding and removing ---------------------------------------------------------------------- */

static bool is_comm(const char *comm)
{
	/* In the file it stands for any name. */
	if (strcmp(comm, "-") == 0)
		return false;
	for (; *comm; comm++)
		if (!isalnum((unsigned char)*comm) && !strchr("_-.:/+@", *comm))
			return false;
	return true;
}

static bool has_control(const char *text)
{
	for (; *text; text++)
		if (iscntrl((unsigned char)*text))
			return true;
	return false;
}

static int check_wish(const struct trigger_wish *wish, struct condition *ret_condition,
		      char **reterr_message)
{
	int r;

	if (!is_comm(wish->comm))
		return message_set(reterr_message, -EINVAL, "\"%s\" is no name of a thread",
				   wish->comm);
	if (wish->count == 0 || wish->interval_ns < TRIGGERS_INTERVAL_MIN ||
	    wish->interval_ns > TRIGGERS_TIME_MAX || wish->delay_ns > TRIGGERS_TIME_MAX)
		return message_set(reterr_message, -EINVAL,
				   "the count must be at least 1, the interval from 100 ms to a "
				   "day, and the delay at most a day");
	r = has_control(wish->condition) ? -EINVAL
					 : condition_parse(wish->condition, ret_condition);
	if (r == -EINVAL)
		return message_set(reterr_message, r, "\"%s\" is no condition", wish->condition);
	return r;
}

/* Make the probe and what waits for it. */
static int watch(struct trigger *trigger, const struct condition *condition, char **reterr_message)
{
	sd_event *event = trigger->triggers->event;
	int r;

	r = probe_new(condition, trigger->wish.comm[0] ? trigger->wish.comm : NULL,
		      trigger->triggers->link, &trigger->probe, reterr_message);
	if (r == 0)
		r = sd_event_add_time(event, &trigger->timer, CLOCK_MONOTONIC, UINT64_MAX, 1000,
				      on_time, trigger);
	for (size_t i = 0; r >= 0 && i < probe_n(trigger->probe); i++) {
		sd_event_source *io = NULL;

		r = sd_event_add_io(event, &io, probe_fd(trigger->probe, i), EPOLLIN, on_event,
				    trigger);
		if (r >= 0)
			r = vec_push(&trigger->ios, io);
		if (r < 0)
			(void)sd_event_source_disable_unref(io);
	}
	if (r >= 0)
		r = sd_event_source_set_enabled(trigger->timer, SD_EVENT_OFF);
	return r < 0 ? r : arm(trigger);
}

/* Make a trigger of @state. Return: 0; or negative errno and @reterr_message. */
static int make_trigger(struct triggers *triggers, const struct trigger_state *state,
			struct trigger **ret_trigger, char **reterr_message)
{
	struct trigger *trigger = calloc(1, sizeof(*trigger));
	struct condition condition;
	int r;

	if (!trigger)
		return -ENOMEM;
	trigger->triggers = triggers;
	trigger->id = state->id;
	trigger->wish = state->wish;
	trigger->n_taken = state->n_taken;
	trigger->uid = state->uid;
	r = check_wish(&trigger->wish, &condition, reterr_message);
	if (r == 0) {
		r = watch(trigger, &condition, reterr_message);
		condition_deinit(&condition);
	}
	*ret_trigger = trigger;
	return r;
}

int triggers_add(struct triggers *triggers, const struct trigger_wish *wish, uid_t uid,
		 uint32_t *ret_id, char **reterr_message)
{
	const struct trigger_state state = { .id = triggers->last_id + 1,
					     .wish = *wish,
					     .uid = uid };
	struct trigger *trigger = NULL;
	int r;

	*reterr_message = NULL;
	if (triggers->list.n == TRIGGERS_MAX)
		return message_set(reterr_message, -ENOSPC, "there are %d triggers already",
				   TRIGGERS_MAX);
	r = make_trigger(triggers, &state, &trigger, reterr_message);
	if (r == 0)
		r = vec_push(&triggers->list, trigger);
	if (r < 0) {
		if (trigger)
			(void)free_trigger(trigger);
		return r;
	}
	r = save(triggers);
	if (r < 0) {
		remove_trigger(triggers, triggers->list.n - 1);
		return message_set(reterr_message, r, "%s: cannot write it: %s", triggers->path,
				   strerror(-r));
	}
	triggers->last_id++;
	*ret_id = trigger->id;
	log_notice("trigger %" PRIu32 ", %s: armed", trigger->id, trigger->wish.condition);
	return 0;
}

int triggers_remove(struct triggers *triggers, uint32_t id)
{
	for (size_t i = 0; i < triggers->list.n; i++) {
		if (triggers->list.items[i]->id != id)
			continue;
		log_notice("trigger %" PRIu32 ", %s: removed", id,
			   triggers->list.items[i]->wish.condition);
		remove_trigger(triggers, i);
		return save(triggers);
	}
	return -ENOENT;
}

size_t triggers_count(const struct triggers *triggers)
{
	return triggers->list.n;
}

struct trigger_state triggers_get(const struct triggers *triggers, size_t i)
{
	return state_of(triggers->list.items[i]);
}

/* --- life ------------------------------------------------------------------------------------- */

/* A trigger that cannot be watched for stays, so that its user learns why. */
static int restore(struct triggers *triggers, const struct trigger_state *state)
{
	struct trigger *trigger = NULL;
	char *message = NULL;
	int r;

	r = make_trigger(triggers, state, &trigger, &message);
	if (!trigger)
		return r;
	if (r < 0) {
		trigger->error = message ? message : strdup(strerror(-r));
		log_warning("trigger %" PRIu32 ", %s: %s", state->id, state->wish.condition,
			    trigger->error ? trigger->error : "out of memory");
	}
	if (state->id > triggers->last_id)
		triggers->last_id = state->id;
	r = vec_push(&triggers->list, trigger);
	if (r < 0)
		(void)free_trigger(trigger);
	return r;
}

int triggers_new(sd_event *event, const char *state_dir, const char *runtime_dir,
		 triggers_take_fn take_snapshot, void *userdata, struct triggers **ret_triggers)
{
	_cleanup_(triggers_freep) struct triggers *triggers = calloc(1, sizeof(*triggers));
	struct trigger_state states[TRIGGERS_MAX];
	size_t n = 0;
	int r;

	if (!triggers)
		return -ENOMEM;
	triggers->event = event;
	triggers->take = take_snapshot;
	triggers->userdata = userdata;
	triggers->path = message_text("%s/triggers", state_dir);
	if (!triggers->path)
		return -ENOMEM;
	r = collectorlink_new(runtime_dir, true, &triggers->link);
	if (r == 0)
		r = triggerfile_read(triggers->path, states, &n);
	for (size_t i = 0; i < n && r == 0; i++)
		r = restore(triggers, &states[i]);
	if (r == 0)
		*ret_triggers = TAKE(triggers);
	return r;
}

struct triggers *triggers_free(struct triggers *triggers)
{
	if (!triggers)
		return NULL;
	vec_deinit_each(&triggers->list, trigger, free_trigger(*trigger));
	(void)collectorlink_free(triggers->link);
	free(triggers->path);
	free(triggers);
	return NULL;
}
