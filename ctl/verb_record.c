/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* ptctl record */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/printable.h"
#include "ctl/client.h"
#include "ctl/decode.h"
#include "ctl/emulator.h"
#include "ctl/jit.h"
#include "ctl/private.h"
#include "ctl/program.h"
#include "ctl/run.h"
#include "ctl/show.h"
#include "ctl/trigger.h"
#include "ctl/verb.h"
#include "ptd/control.h"

/* So often a snapshot is asked for once more, because ptd ended before it answered. */
#define RETRIES_MAX 3u

#define PT_DEVICE "/sys/bus/event_source/devices/intel_pt"

/* What the command line asks for. */
struct wish {
	struct decode_wish then; /* what becomes of the snapshot */
	bool is_private;         /* by a recorder of the caller's own */
	int reason;              /* why the system's is not asked, as of client_probe(); 0: none */
	bool timing;
	bool jit; /* have runtimes write down the names of the code that they make */
	struct trigger_wish trigger; /* with a condition: instead of a snapshot at the end */
	char **command;
	bool under_qemu; /* found out: that is how the program ran */
};

static int find_plugin(char **ret_path)
{
	_cleanup_(freep) char *path = NULL;
	const int r = emulator_probe_plugin(&path);

	if (r < 0)
		return log_errno_as(EXIT_FAILED, r, "%s: cannot read the plugin for QEMU: %m",
				    path ? path : "/proc/self/exe");
	*ret_path = TAKE(path);
	return EXIT_OK;
}

static int cannot_execute(const char *path, int r)
{
	(void)log_error_errno(r, "%s: cannot execute it: %m", path);
	return r == -ENOENT ? EXIT_NOT_FOUND : EXIT_CANNOT_EXECUTE;
}

/* Run the program without recording it, as the plugin does when a recorded program executes it, and
 * say so in the same words. */
static int run_unseen(const struct program *program, char **command, pid_t *ret_pid,
		      int *ret_status)
{
	int r;

	log_warning("%s: not recorded: %s", program->path, program->unseen);
	r = run_native(program->file, command, ret_pid, ret_status);
	return r < 0 ? cannot_execute(program->file, r) : EXIT_OK;
}

/*
 * Run the program under QEMU, and take snapshots when the conditions hold, if there are any.
 *
 * Return: EXIT_OK, or an exit status.
 */
static int run_under_qemu(struct run *run, const struct wish *wish, pid_t *ret_pid, int *ret_status)
{
	_cleanup_(trigger_freep) struct trigger *trigger = NULL;
	uint32_t n_taken;
	int r;

	if (wish->trigger.n_conditions > 0) {
		if (trigger_new(&wish->trigger, &trigger) < 0)
			return EXIT_FAILED;
		run->options = trigger_options(trigger);
	}
	r = run_program(run, ret_pid, ret_status);
	if (r < 0)
		return log_errno_as(EXIT_FAILED, r, "%s: cannot execute it: %m", run->qemu);
	if (!trigger)
		return EXIT_OK;
	r = trigger_finish(trigger, &n_taken);
	if (r == EXIT_OK && n_taken == 0)
		log_notice("%s ended, and no condition of --when held: there is no snapshot",
			   run->program->path);
	return r;
}

static int run_emulated(sd_bus *bus, const struct program *program, const struct wish *wish,
			struct client_scope *scope, pid_t *ret_pid, int *ret_status)
{
	_cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
	_cleanup_(freep) char *qemu = NULL, *plugin = NULL;
	const char *name;
	int pool, r = EXIT_OK;

	if (!program->unseen && emulator_find(program->emulator, &qemu) < 0)
		r = EXIT_FAILED;
	if (r == EXIT_OK && !program->unseen)
		r = find_plugin(&plugin);
	if (r == EXIT_OK)
		r = client_call(bus, "OpenSource", &reply, "a{sv}", 1, "timing", "b",
				(int)wish->timing);
	if (r != EXIT_OK)
		return r;
	r = sd_bus_message_read(reply, "sh", &name, &pool); /* both borrowed from the message */
	if (r < 0)
		return client_bad_reply("OpenSource", r);
	/* The snapshot is not to have what other programs did before. */
	scope->since_ns = scope->started_ns = clock_ns(CLOCK_MONOTONIC);
	if (program->unseen)
		return run_unseen(program, wish->command, ret_pid, ret_status);
	return run_under_qemu(&(struct run){ .qemu = qemu,
					     .plugin = plugin,
					     .pool_fd = pool,
					     .timing = wish->timing,
					     .options = "",
					     .program = program },
			      wish, ret_pid, ret_status);
}

/* Return: the program's exit status, as a shell shows it. */
static int own_status(const char *path, int status)
{
	if (WIFSIGNALED(status)) {
		log_notice("%s was killed by signal %d (%s)", path, WTERMSIG(status),
			   strsignal(WTERMSIG(status)));
		return EXIT_SIGNAL + WTERMSIG(status);
	}
	return WEXITSTATUS(status);
}

/* Remove a snapshot of nothing. Return: EXIT_NO_SNAPSHOT, or as client_call(). */
static int leave_nothing(sd_bus *bus, const char *id)
{
	_cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
	const int r = client_call(bus, "RemoveSnapshot", &reply, "s", id);

	return r == EXIT_OK ? EXIT_NO_SNAPSHOT : r;
}

static int save_snapshot(sd_bus *bus, const struct client_scope *scope, const struct wish *wish,
			 int status, bool json)
{
	_cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
	_cleanup_(client_snapshot_deinit) struct client_snapshot snapshot = {};
	int kept = EXIT_OK, r;

	r = client_snapshot(bus, scope, &reply, &snapshot);
	/* QEMU could not begin, such as with a plugin of another interface, and has said why. */
	if (r == EXIT_OK && wish->under_qemu && status == EXIT_FAILURE && snapshot.bytes_pt == 0)
		return leave_nothing(bus, snapshot.id);
	if (r == EXIT_OK)
		kept = show_without_room(&snapshot);
	if (r == EXIT_OK)
		r = decode_taken(bus, snapshot.id, &wish->then);
	/* Standard output belongs to the program, so the reply goes to standard error. */
	if (r == EXIT_OK && json && !wish->then.what)
		r = show_reply(stderr, reply, "WaitSnapshot");
	else if (r == EXIT_OK && !wish->then.what)
		show_taken(&snapshot, wish->then.output, scope->started_ns);
	return r == EXIT_OK ? kept : r;
}

static int record_emulated(sd_bus *bus, struct wish *wish, struct client_scope *scope,
			   int *ret_status)
{
	_cleanup_(program_deinit) struct program program = {};
	int status = 0, r;
	pid_t pid = 0;

	r = program_init(&program, wish->command);
	if (r == EXIT_OK)
		r = run_emulated(bus, &program, wish, scope, &pid, &status);
	if (r != EXIT_OK)
		return r;
	scope->command_pid = (uint32_t)pid;
	wish->under_qemu = !program.unseen;
	*ret_status = own_status(program.path, status);
	return EXIT_OK;
}

/* The recorder records everything; the snapshot is limited to the program and its descendants. */
static int record_native(const struct wish *wish, struct client_scope *scope, int *ret_status)
{
	char **command = wish->command;
	_cleanup_(freep) char *path = NULL;
	int status = 0, r;
	pid_t pid;

	if (wish->timing)
		return log_as(
		    EXIT_FAILED,
		    "--timing is for the software source; for hardware, set PT=mtc,cyc in "
		    "ptd.conf");
	if (wish->trigger.n_conditions > 0)
		return log_as(EXIT_FAILED,
			      "--when is for the software source, and ptd records hardware");
	r = program_find(command[0], &path);
	scope->started_ns = clock_ns(CLOCK_MONOTONIC);
	if (r == 0)
		r = run_native(path, command, &pid, &status);
	if (r < 0)
		return cannot_execute(command[0], r);
	scope->pid = scope->command_pid = (uint32_t)pid;
	*ret_status = own_status(path, status);
	return EXIT_OK;
}

/* Write a command as text. */
static void join_command(char **command, char ret_text[static CLIENT_COMMAND_SIZE])
{
	size_t n = 0;

	for (size_t i = 0; command[i] && n < CLIENT_COMMAND_SIZE - 1; i++) {
		const int more = snprintf(ret_text + n, CLIENT_COMMAND_SIZE - n, "%s%s",
					  i > 0 ? " " : "", command[i]);

		n = more < 0 ? n : n + (size_t)more;
	}
	printable_clean(ret_text, strlen(ret_text));
}

/* If another ptd runs now, see to it that what the program wrote is in its rings. Return: EXIT_OK,
 * or an exit status. */
static int find_recording(const struct context *context, const struct client_scope *scope,
			  const char *name, sd_bus **bus)
{
	struct client_source source;
	bool is_other;
	int r;

	if (context->is_private && client_is_closed(*bus))
		return log_as(EXIT_FAILED, "the recorder ended while %s ran: the recording is lost",
			      name);
	r = client_reconnect(context->socket, bus, &is_other);
	if (r != EXIT_OK || !is_other)
		return r;
	r = client_source(*bus, &source);
	/* Hardware records the program even if the rings are new. */
	if (r != EXIT_OK || !source.is_emulated || source.rings_ns <= scope->started_ns)
		return r;
	return log_as(
	    EXIT_FAILED,
	    "ptd was restarted while %s ran, and made its rings anew: the recording is lost "
	    "(see KeepRings= in ptd.conf(5))",
	    name);
}

/* Save what the program did, from whichever ptd has its rings: one may end at any moment, also
 * while it makes the snapshot. Return: EXIT_OK, or an exit status. */
static int save_recording(const struct context *context, const struct client_scope *scope,
			  const struct wish *wish, int status, sd_bus **bus)
{
	int r;

	for (unsigned n = 0;; n++) {
		r = find_recording(context, scope, wish->command[0], bus);
		if (r == EXIT_OK)
			r = save_snapshot(*bus, scope, wish, status, context->json);
		if (r == EXIT_OK || context->is_private || !client_is_closed(*bus) ||
		    n == RETRIES_MAX)
			return r;
	}
}

/* These are the software source's. */
static bool needs_emulator(const struct wish *wish)
{
	return wish->timing || wish->trigger.n_conditions > 0;
}

/* Say in one line what a private recorder does. */
static void say_private(const struct wish *wish, const struct client_source *source)
{
	static const char slower[] = "5 to 27 times slower than without";
	const uint64_t kib = source->aux_size / 1024;
	const bool may_not = wish->reason == -EACCES;
	const char *why = may_not            ? "you are not in group " PTD_CONTROL_GROUP ": "
			  : wish->reason < 0 ? "no ptd runs here: "
					     : "";

	if (!source->is_emulated)
		log_notice("%srecording privately, by PT, the last %" PRIu64 " KiB of each CPU",
			   why, kib);
	else if (!needs_emulator(wish) && access(PT_DEVICE, F_OK) == 0)
		log_notice("PT is here, but not permitted: recording privately, emulated, the last "
			   "%" PRIu64 " KiB of each CPU, %s; to change this: %s",
			   kib, slower,
			   may_not ? "adduser NAME " PTD_CONTROL_GROUP
				   : "sysctl kernel.perf_event_paranoid=2, and end what uses PT");
	else
		log_notice("%srecording privately, emulated, the last %" PRIu64
			   " KiB of each CPU, %s",
			   why, kib, slower);
}

static int record_program(const struct context *context, struct wish *wish, int *ret_status)
{
	_cleanup_(sd_bus_flush_close_unrefp) sd_bus *bus = NULL;
	struct client_scope scope = {};
	struct client_source source;
	int r;

	join_command(wish->command, scope.command);
	wish->trigger.context = context;
	wish->trigger.output = wish->then.output;
	wish->trigger.scope = &scope;
	r = client_connect(context->socket, &bus);
	if (r == EXIT_OK)
		r = client_source(bus, &source);
	if (r == EXIT_OK && context->is_private)
		say_private(wish, &source);
	if (r == EXIT_OK)
		r = source.is_emulated ? record_emulated(bus, wish, &scope, ret_status)
				       : record_native(wish, &scope, ret_status);
	if (r != EXIT_OK || wish->trigger.n_conditions > 0)
		return r;
	r = save_recording(context, &scope, wish, *ret_status, &bus);
	if (r != EXIT_OK && r != EXIT_NO_SNAPSHOT)
		log_notice("%s ran, and ended with status %d", wish->command[0], *ret_status);
	return r;
}

/* Nothing of a private recorder is left when it ends, so that somebody has to take the result. */
static int check_private(const struct wish *wish)
{
	if (wish->then.what || wish->then.output)
		return EXIT_OK;
	return log_as(EXIT_USAGE,
		      "record: nothing of a private recording is kept: --then VERB, such as --then "
		      "calls, decodes it, and -o DIR copies it");
}

static int record_privately(const struct context *context, struct wish *wish, int *ret_status)
{
	struct private_recorder recorder = PRIVATE_RECORDER_NONE;
	struct context own = *context;
	int r;

	r = check_private(wish);
	if (r != EXIT_OK)
		return r;
	r = private_recorder_start(needs_emulator(wish), &recorder);
	if (r != EXIT_OK)
		return r;
	own.socket = recorder.socket;
	own.is_private = true;
	r = record_program(&own, wish, ret_status);
	if (r != EXIT_OK)
		private_recorder_explain(&recorder);
	private_recorder_stop(&recorder);
	return r;
}

static int record_anyhow(const struct context *context, struct wish *wish, int *ret_status)
{
	int r;

	r = decode_check(&wish->then);
	if (r != EXIT_OK)
		return r;
	if (!wish->is_private && !context->is_named)
		wish->reason = client_probe(context->socket);
	return wish->is_private || wish->reason < 0 ? record_privately(context, wish, ret_status)
						    : record_program(context, wish, ret_status);
}

/* Add the condition that is @text to the struct trigger_wish. Return: 0, or -EINVAL. */
static int add_condition(const char *text, void *userdata)
{
	struct trigger_wish *trigger = userdata;
	struct condition condition;
	enum condition_kind kind;

	if (trigger->n_conditions == CONDITIONS_MAX)
		return log_as(-EINVAL, "record: more than %d conditions", CONDITIONS_MAX);
	if (strchr(text, CONDITION_SEPARATOR) || condition_parse(text, &condition) < 0)
		return log_as(
		    -EINVAL,
		    "record: \"%s\" is no condition: enter:FUNCTION[@OBJECT], signal:NAME, "
		    "exit:STATUS and exit:failure are",
		    text);
	kind = condition.kind;
	condition_deinit(&condition);
	if (kind != CONDITION_ENTER && kind != CONDITION_SIGNAL && kind != CONDITION_EXIT)
		return log_as(-EINVAL, "record: \"%s\" is a condition for ptctl trigger only",
			      text);
	trigger->conditions[trigger->n_conditions++] = text;
	return 0;
}

/* Check that the options belong together. Return: 0, or -EINVAL. */
static int check_wish(struct wish *wish)
{
	struct trigger_wish *trigger = &wish->trigger;

	if (wish->then.what && trigger->n_conditions > 0)
		return log_as(-EINVAL, "record: --then is not for --when");
	if (trigger->count > 0 && trigger->n_conditions == 0)
		return log_as(-EINVAL, "record: --count is for --when");
	if (trigger->count > 1 && wish->then.output)
		return log_as(-EINVAL,
			      "record: -o is for one snapshot, and --count allows %" PRIu32,
			      trigger->count);
	if (trigger->count == 0)
		trigger->count = 1;
	return 0;
}

static int parse_record(int argc, char **argv, struct wish *wish)
{
	const struct verb_option options[] = {
		{ "output", 'o', .text = &wish->then.output },
		{ "then", .text = &wish->then.what },
		{ "private", .flag = &wish->is_private },
		{ "timing", .flag = &wish->timing },
		{ "jit", .flag = &wish->jit },
		{ "when", .read = add_condition, .userdata = &wish->trigger },
		{ "count", .number = &wish->trigger.count, .what = "number of snapshots" },
	};
	const int first = verb_parse(argc, argv, options, ARRAY_LEN(options), true);

	if (first < 0)
		return first;
	if (first >= argc)
		return log_as(
		    -EINVAL, "record: which program? ptctl record [-o DIR | --then VERB [-o FILE]] "
			     "[--timing] [--jit] [--when CONDITION]... -- COMMAND...");
	wish->command = argv + first;
	return check_wish(wish);
}

int verb_record(const struct context *context, int argc, char **argv)
{
	_cleanup_(freep) char **made = NULL;
	struct wish wish = {};
	int status = 0, r;

	if (parse_record(argc, argv, &wish) < 0)
		return EXIT_NOT_RECORDED;
	if (wish.jit) {
		r = jit_prepare(wish.command, &made);
		if (r < 0)
			return log_errno_as(EXIT_NOT_RECORDED, r, "--jit: %m");
		wish.command = made;
	}
	r = record_anyhow(context, &wish, &status);
	if (r == EXIT_OK)
		return status;
	if (r == EXIT_NO_ROOM)
		return EXIT_NOT_KEPT;
	return r == EXIT_CANNOT_EXECUTE || r == EXIT_NOT_FOUND ? r : EXIT_NOT_RECORDED;
}
