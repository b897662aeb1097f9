/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* ptdecode: the command over libptdecode. */

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/base.h"
#include "base/log.h"
#include "decoder/cmd/command.h"
#include "decoder/cmd/creator.h"
#include "decoder/cmd/fetcher.h"
#include "decoder/cmd/sandbox.h"
#include "decoder/cmd/verify.h"
#include "decoder/sink/answer/diff.h"
#include "decoder/sink/answer/rank.h"
#include "decoder/sink/answer/rankexec.h"
#include "decoder/sink/sink.h"
#include "decoder/symbol/debugfile.h"
#include "decoder/util/spill.h"
#include "decoder/util/threads.h"
#include "ptd/decode.h"
#include "ptd/snapshot.h"
#include "util/buildid.h"
#include "util/dirs.h"
#include "util/mapfile.h"
#include "util/message.h"
#include "util/objectsmap.h"
#include "util/regular.h"
#include "util/vec.h"

#define TREE_FDS 16 /* that are open while a directory is looked through */

/* So many files that a snapshot lacks are looked for on this machine. */
#define LACKED_MAX 4096u

static bool is_file(const char *path, const struct stat *st)
{
	struct stat other;

	return path && stat(path, &other) == 0 && other.st_dev == st->st_dev &&
	       other.st_ino == st->st_ino;
}

static struct stat sought; /* nftw() passes nothing on */

static int compare_file(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	if (kind == FTW_SL)
		return is_file(path, &sought);
	return kind == FTW_F && st->st_dev == sought.st_dev && st->st_ino == sought.st_ino;
}

/* Return: whether @st is of the input, or of a file below it. */
static bool is_of_input(const char *input, const struct stat *st)
{
	sought = *st;
	return is_file(input, st) || nftw(input, compare_file, TREE_FDS, FTW_PHYS) > 0;
}

/* Return: whether writing the output would destroy an input or what another output writes. */
static bool is_taken(const struct command *c, size_t output)
{
	const char *path = c->outputs.items[output].path;
	struct stat st;
	bool taken = false;

	if (!path || stat(path, &st) < 0 || !S_ISREG(st.st_mode))
		return false;
	for (size_t i = 0; i < c->inputs.n; i++)
		taken = taken || is_of_input(c->inputs.items[i], &st);
	for (size_t i = 0; i < output; i++)
		taken = taken || is_file(c->outputs.items[i].path, &st);
	return taken;
}

static int cannot_write(const struct command *c, const struct requested_output *o, int r)
{
	const char *name = o->path ? o->path : "standard output";

	if (r == -EFBIG && o->config.room) {
		log_error("%s: cannot write: more than the %" PRIu64 " bytes of --max-output", name,
			  c->max_output);
		return r;
	}
	return log_error_errno(r, "%s: cannot write: %m", name);
}

/*
 * Open what the outputs write to, before anything foreign is read. A file keeps its contents until
 * the input has been opened, too.
 */
static int open_targets(struct command *c)
{
	c->room = c->max_output;
	for (size_t i = 0; i < c->outputs.n; i++) {
		struct requested_output *o = &c->outputs.items[i];
		int r;

		if (is_taken(c, i)) {
			log_error(
			    "%s: will not be written: it is read, or another output goes there",
			    o->path);
			return -EEXIST;
		}
		r = o->config.fd = sink_target_open(o->ops, o->path);
		if (r >= 0 && o->ops->directories) {
			r = creator_start(o->config.fd, &o->creator);
			(void)fd_close(o->config.fd);
			o->config.fd = r < 0 ? -1 : fcntl(o->creator.socket, F_DUPFD_CLOEXEC, 0);
		}
		if (r < 0)
			return cannot_write(c, o, r);
		o->config.is_emptied = o->path;
		o->config.room = c->max_output ? &c->room : NULL;
	}
	return 0;
}

/* @d is the decoder that the outputs may ask for source positions; NULL: none. */
static int open_outputs(struct command *c, const struct ptd_info *info, struct ptd_decoder *d)
{
	for (size_t i = 0; i < c->outputs.n; i++) {
		struct requested_output *o = &c->outputs.items[i];
		char *message = NULL;
		int r;

		o->config.info = info;
		o->config.decoder = d;
		o->config.threads = c->threads;
		r = sink_new(o->ops, &o->config, &o->sink, &message);
		if (message)
			command_log(r, message);
		else if (r < 0)
			(void)cannot_write(c, o, r);
		if (r < 0)
			return r;
	}
	return 0;
}

static void close_outputs(struct command *c)
{
	for (size_t i = 0; i < c->outputs.n; i++) {
		struct requested_output *o = &c->outputs.items[i];

		if (o->sink)
			sink_free(o->sink);
		else
			(void)fd_close(o->config.fd);
		helper_stop(&o->creator);
	}
}

/* The line on the terminal that says how far the work has come. */
static struct {
	bool is_wanted; /* there is a terminal, and no output writes to it meanwhile */
	bool is_there;
	time_t shown; /* second of CLOCK_MONOTONIC in which that was checked last */
} progress;

static void prepare_progress(const struct command *c)
{
	struct timespec now;

	progress.is_wanted = isatty(STDERR_FILENO);
	for (size_t i = 0; i < c->outputs.n && isatty(STDOUT_FILENO); i++)
		if (!c->outputs.items[i].path && !c->outputs.items[i].ops->writes_last)
			progress.is_wanted = false;
	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	progress.shown = now.tv_sec;
}

/* Return: whether another line is due. The terminal is asked for once a second. */
static bool progress_is_due(void)
{
	struct timespec now;

	if (!progress.is_wanted)
		return false;
	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	if (now.tv_sec == progress.shown)
		return false;
	progress.shown = now.tv_sec;
	return true;
}

static void show_done(const char *what, uint64_t done, uint64_t total)
{
	fprintf(stderr, "\rptdecode: %3.0f %% of %.1f MiB %s\033[K ",
		total ? 100.0 * (double)done / (double)total : 100.0, (double)total / (1 << 20),
		what);
	progress.is_there = true;
}

static void show_progress(const struct ptd_decoder *d)
{
	uint64_t done, total;

	if (!progress_is_due())
		return;
	ptd_decoder_progress(d, &done, &total);
	show_done("of PT decoded", done, total);
}

/* While ptd_decoder_new() reads. */
static int show_opening(void *userdata, uint64_t done, uint64_t total)
{
	if (progress_is_due())
		show_done("read", done, total);
	return 0;
}

static void clear_progress(void)
{
	if (progress.is_there)
		fputs("\r\033[K", stderr);
	progress.is_there = false;
}

/* Say that the sandbox limits memory: the machine may have enough of it. */
static void explain(const struct command *c, int r)
{
	if (r == -ENOMEM)
		log_notice("ptdecode takes at most %.1f GiB of address space for this input",
			   (double)c->max_memory / (1 << 30));
}

static int list_sideband(struct command *c, struct ptd_decoder *d)
{
	const struct ptd_sideband *record;
	int r;

	while (ptd_decoder_next_sideband(d, &record) == 0) {
		for (size_t i = 0; i < c->outputs.n; i++) {
			struct requested_output *o = &c->outputs.items[i];

			r = sink_take_sideband(o->sink, record);
			if (r < 0)
				return cannot_write(c, o, r);
		}
	}
	return 0;
}

/* Log that @writer failed. */
static int cannot_write_batch(const struct command *c, const struct writer *writer, int r)
{
	for (size_t i = 0; i < c->outputs.n; i++)
		if (c->outputs.items[i].sink == writer_failed(writer))
			return cannot_write(c, &c->outputs.items[i], r);
	return log_error_errno(r, "cannot write: %m");
}

/* Return: PTD_END, or negative errno. */
static int decode_batches(struct command *c, struct ptd_decoder *d, struct writer *writer)
{
	const bool is_log = ptd_decoder_info(d)->logs_calls;
	const struct ptd_logged *logged;
	const struct ptd_batch *batch;
	int r;

	while ((r = is_log ? ptd_decoder_next_logged(d, &logged) : ptd_decoder_next(d, &batch)) ==
	       0) {
		r = is_log ? writer_logged(writer, logged) : writer_batch(writer, batch);
		if (r < 0)
			return cannot_write_batch(c, writer, r);
		show_progress(d);
	}
	clear_progress();
	if (r < 0) {
		log_error("cannot decode on: %s", ptd_decoder_message(d));
		explain(c, r);
		return r;
	}
	r = writer_flush(writer);
	return r < 0 ? cannot_write_batch(c, writer, r) : PTD_END;
}

static int write_batches(struct command *c, struct ptd_decoder *d)
{
	struct sink *sinks[REQUESTED_MAX];
	struct writer *writer;
	int r;

	for (size_t i = 0; i < c->outputs.n; i++)
		sinks[i] = c->outputs.items[i].sink;
	r = writer_new(c->threads, sinks, c->outputs.n, &writer);
	if (r < 0)
		return log_error_errno(r, "cannot write: %m");
	r = decode_batches(c, d, writer);
	writer_free(writer);
	return r;
}

/* Return: whether a sink wants batches (@batches), or sideband records (else). */
static bool wants(const struct command *c, bool batches)
{
	for (size_t i = 0; i < c->outputs.n; i++)
		if (batches ? sink_wants_batches(c->outputs.items[i].sink)
			    : sink_wants_sideband(c->outputs.items[i].sink))
			return true;
	return false;
}

/* Log what of the input could not be used. */
static void complain(const struct command *c, const struct ptd_decoder *d)
{
	const struct ptd_info *info = ptd_decoder_info(d);

	if (info->truncated_at)
		log_warning("%s: ends inside the record at byte %" PRIu64
			    "; what is before it was decoded",
			    c->options.input, info->truncated_at);
	for (size_t i = 0; i < info->n_complaints; i++)
		log_warning("%s", info->complaints[i]);
}

static int decode(struct command *c, struct ptd_decoder *d)
{
	int r = 0;

	if (wants(c, false))
		r = list_sideband(c, d);
	if (r == 0 && wants(c, true))
		r = write_batches(c, d);
	complain(c, d);
	return r < 0 ? r : 0;
}

/* An export that a viewer would hardly open. */
#define SIZE_LARGE (UINT64_C(200) << 20)
#define SIZE_HANDY (UINT64_C(20) << 20)

/* Say what was left out, and how an export that is too large becomes smaller. */
static void tell_size(const struct requested_output *o)
{
	const uint64_t n = sink_n_left_out(o->sink);
	uint64_t ns;
	struct stat st;

	if (n > 0)
		log_notice("%s: %" PRIu64 " calls are part of their callers, since they took less, "
			   "or are deeper, than was asked for",
			   o->path ? o->path : "standard output", n);
	if (!o->path || !isatty(STDERR_FILENO) || stat(o->path, &st) < 0 || !S_ISREG(st.st_mode) ||
	    (uint64_t)st.st_size < SIZE_LARGE)
		return;
	ns = sink_duration_of(o->sink, (uint64_t)st.st_size / SIZE_HANDY + 1);
	if (ns < UINT64_MAX)
		log_notice("%s has %" PRIu64 " MiB: with --min-duration=%" PRIu64
			   "ns it has less than %" PRIu64,
			   o->path, (uint64_t)st.st_size >> 20, ns, SIZE_HANDY >> 20);
}

static int finish_outputs(struct command *c, const struct ptd_stats *stats)
{
	int r;

	for (size_t i = 0; i < c->outputs.n; i++) {
		struct requested_output *o = &c->outputs.items[i];
		const char *omission;

		r = sink_finish(o->sink, stats);
		if (r < 0)
			return cannot_write(c, o, r);
		omission = sink_omission(o->sink);
		if (omission)
			log_warning("%s: %s", o->path ? o->path : "standard output", omission);
		tell_size(o);
	}
	return 0;
}

/*
 * Some gaps are no fault of the input: the CPU overflowed, an overwritten ring begins mid-way, or
 * the recorder lost something.
 */
static bool is_no_fault(enum ptd_gap_reason reason, bool raw)
{
	switch (reason) {
	case PTD_GAP_OVERFLOW:
	case PTD_GAP_NO_SYNC:
	case PTD_GAP_BEFORE_SIDEBAND:
	case PTD_GAP_LOST:
	case PTD_GAP_TRUNCATED:
	case PTD_GAP_PARTIAL:
	case PTD_GAP_COLLISION:
	case PTD_GAP_OVERWRITTEN:
	case PTD_GAP_LOST_RECORDS:
	case PTD_GAP_LOST_SAMPLES:
	case PTD_GAP_RECORDS_DROPPED:
	case PTD_GAP_STEPPED:
		return true;
	case PTD_GAP_EMPTY:
		return !raw;
	default:
		return false;
	}
}

/* Return: whether there is PT and not one instruction, since no PSB says where it begins. */
static bool is_nothing(const struct ptd_stats *stats)
{
	for (size_t i = 0; i < stats->n_cpus; i++)
		if (stats->cpus[i].n_insns > 0)
			return false;
	return stats->n_gaps[PTD_GAP_EMPTY] > 0;
}

/* Return: whether the input was damaged or code was missing. */
static bool is_damaged(const struct command *c, struct ptd_decoder *d)
{
	const struct ptd_stats *stats = ptd_decoder_stats(d);

	if (ptd_decoder_info(d)->truncated_at)
		return true;
	if (!c->diff && !c->rank && !wants(c, true))
		return false;
	if (is_nothing(stats)) {
		log_warning("%s: no instruction was decoded: its PT has no PSB, from which "
			    "decoding could begin",
			    c->options.input ?: c->options.raw_pt);
		return true;
	}
	for (size_t i = 0; i < stats->n_gap_reasons; i++) {
		if (stats->n_gaps[i] && !is_no_fault((enum ptd_gap_reason)i, c->options.raw_pt))
			return true;
	}
	return false;
}

/*
 * Return: whether @input has a snapshot's manifest.
 *
 * A snapshot has the objects that it needs, or says which it lacks; those of another recording are
 * at the paths from which they were mapped.
 */
static bool has_manifest(const char *input)
{
	_cleanup_(freep) char *manifest = message_text("%s/" PTD_SNAPSHOT_MANIFEST, input);

	return manifest && access(manifest, F_OK) == 0;
}

/* --- confinement ------------------------------------------------------------------------------ */

/* The roots of the sandbox. Their paths belong to the command line, or to @paths. */
struct roots {
	VEC(struct sandbox_root) items;
	VEC(char *) paths;
};

static void roots_deinit(struct roots *roots)
{
	vec_deinit_each(&roots->paths, path, free(*path));
	vec_deinit(&roots->items);
}

static int add_root(struct roots *roots, const char *path)
{
	return path ? vec_push(&roots->items, { .path = path }) : 0;
}

/* @path belongs to @roots afterwards, and is freed on failure. NULL means -ENOMEM. */
static int add_own_root(struct roots *roots, char *path)
{
	int r = path ? vec_push(&roots->paths, path) : -ENOMEM;

	if (r < 0) {
		free(path);
		return r;
	}
	return add_root(roots, path);
}

/* Add all files except devices and the kernel's own files (/proc, /sys). */
static int add_everywhere(struct roots *roots)
{
	static const char *const left_out[] = { "dev", "proc", "sys" };
	_cleanup_(dirs_closep) DIR *dir = opendir("/");
	struct dirent *entry;
	int r = dir ? 0 : -errno;

	while (r == 0 && dirs_next(dir, &entry) > 0) {
		bool is_out = false;

		for (size_t i = 0; i < ARRAY_LEN(left_out); i++)
			is_out = is_out || strcmp(entry->d_name, left_out[i]) == 0;
		if (!is_out)
			r = add_own_root(roots, message_text("/%s", entry->d_name));
	}
	return r < 0 ? r : add_root(roots, "/dev/shm");
}

/* A snapshot may name any path: what has no build-id, nor the @hash that the snapshot states unless
 * it is empty, it cannot have meant. */
static bool may_be_meant(const char *path, const char *hash)
{
	_cleanup_(fd_closep) int fd = path[0] == '/' ? regular_open(AT_FDCWD, path, 0) : -1;
	struct buildid id;

	if (fd < 0)
		return false;
	if (hash[0] != '\0' && sha256_fd_is(fd, hash))
		return true;
	return buildid_read(fd, &id) == 0 && id.size > 0;
}

/* Add the file that @line of a snapshot's map says is not in the snapshot, if it is on this
 * machine. */
static int add_lacked(struct roots *roots, char *line, uint32_t *n_lacked, uint32_t *n_here)
{
	struct objectsmap_inode inode;
	char hash[SHA256_HEX_SIZE];
	const char *id, *path;
	char *copy;
	int r;

	if (objectsmap_split(line, &id, &path) < 0 || objectsmap_take_inode(&id, &inode) < 0 ||
	    !objectsmap_is_missing(id, hash) || ++*n_lacked > LACKED_MAX ||
	    !may_be_meant(path, hash))
		return 0;
	copy = strdup(path);
	r = add_own_root(roots, copy);
	*n_here += r == 0;
	return r;
}

/* Add the files on this machine for which the snapshot @input had no room: the decoder takes those
 * that have the build-id or the content of what ran. */
static int add_all_lacked(struct roots *roots, const char *input)
{
	_cleanup_(mapfile_deinit) struct mapfile file = {};
	_cleanup_(freep) char *path = message_text("%s/" PTD_SNAPSHOT_OBJECTS_MAP, input);
	_cleanup_(freep) char *text = NULL;
	uint32_t n_lacked = 0, n_here = 0;
	int r = 0;

	if (!path)
		return -ENOMEM;
	/* What is wrong with it, the decoder says. */
	if (mapfile_read(&file, AT_FDCWD, path) < 0 || file.size == 0)
		return 0;
	text = strndup((const char *)file.bytes, file.size);
	if (!text)
		return -ENOMEM;
	for (char *rest = text, *line; r == 0 && (line = strsep(&rest, "\n"));)
		r = add_lacked(roots, line, &n_lacked, &n_here);
	if (n_here > 0)
		log_notice("%s lacks %" PRIu32 " file%s: %" PRIu32 " of this machine %s taken, "
			   "if %s the build-id or the hash of what ran",
			   input, n_lacked, plural(n_lacked), n_here, n_here == 1 ? "is" : "are",
			   n_here == 1 ? "it has" : "each has");
	return r;
}

static int collect_roots(const struct command *c, struct roots *roots)
{
	const struct ptd_options *o = &c->options;
	const char *const places[] = { DEBUGFILE_SYSTEM_DIR, o->debug_dir, o->buildid_dir,
				       o->symfs };
	bool is_whole;
	int r = 0;

	for (size_t i = 0; i < ARRAY_LEN(places) && r == 0; i++)
		r = add_root(roots, places[i]);
	for (size_t i = 0; i < c->inputs.n && r == 0; i++)
		r = add_root(roots, c->inputs.items[i]);
	/* Debug files are beside files of code. */
	for (size_t i = 0; i < c->code.n && r == 0; i++) {
		_cleanup_(freep) char *copy = strdup(c->code.items[i].path);

		r = copy ? add_own_root(roots, strdup(dirname(copy))) : -ENOMEM;
	}
	is_whole = !o->input || has_manifest(o->input);
	for (size_t i = 0; i < c->others.n; i++)
		is_whole = is_whole && has_manifest(c->others.items[i]);
	if (!is_whole)
		return r < 0 ? r : add_everywhere(roots);
	if (r == 0 && o->input && !o->symfs)
		r = add_all_lacked(roots, o->input);
	for (size_t i = 0; i < c->others.n && r == 0 && !o->symfs; i++)
		r = add_all_lacked(roots, c->others.items[i]);
	return r;
}

/* Confine this process, before anything foreign is read. */
static int enter_sandbox(struct command *c)
{
	_cleanup_(roots_deinit) struct roots roots = {};
	uint64_t *spills = &c->options.max_spill, inputs = 0;
	struct sandbox sandbox = {};
	int r;

	for (size_t i = 0; i < c->inputs.n; i++)
		inputs += budget_size_of(c->inputs.items[i]);
	/* To verify, it is read twice, side by side. */
	inputs *= c->verify ? 2 : 1;
	if (!*spills)
		*spills = PTD_MAX_SPILL;
	spill_prepare();
	r = collect_roots(c, &roots);
	sandbox.roots = roots.items.items;
	sandbox.n_roots = roots.items.n;
	c->max_memory = budget_for(inputs, *spills, c->n_threads_max);
	sandbox.memory_max = c->max_memory;
	sandbox.threads = c->n_threads_max > 1;
	/* The kernel has one limit for the size of all files, also of temporary files. */
	if (c->max_output)
		sandbox.file_max = c->max_output > *spills ? c->max_output : *spills;
	if (r == 0)
		r = sandbox_enter(&sandbox);
	return r < 0 ? log_error_errno(r, "cannot confine this process: %m") : 0;
}

static int close_inherited(const struct command *c)
{
	VEC(const char *) paths = {};
	int r = 0;

	for (size_t i = 0; i < c->inputs.n && r == 0; i++)
		r = vec_push(&paths, c->inputs.items[i]);
	for (size_t i = 0; i < c->outputs.n && r == 0; i++)
		r = vec_push(&paths, c->outputs.items[i].path);
	if (r == 0)
		r = inherit_only(paths.items, paths.n);
	vec_deinit(&paths);
	return r < 0 ? log_error_errno(r, "cannot close inherited descriptors: %m") : 0;
}

/* Check that the inputs can be read, so that a mistyped name is found before outputs are made. */
static int check_inputs(const struct command *c)
{
	for (size_t i = 0; i < c->inputs.n; i++) {
		const char *path = c->inputs.items[i];

		if (strcmp(path, "-") != 0 && faccessat(AT_FDCWD, path, R_OK, AT_EACCESS) < 0)
			return log_error_errno(-errno, "%s: %m", path);
	}
	return 0;
}

/* Start the fetcher if the user asked for it. */
static int start_fetcher(struct command *c, struct helper *fetcher)
{
	char *message = NULL;
	int r;

	if (!c->debuginfod)
		return 0;
	r = fetcher_start(fetcher, &message);
	if (r < 0)
		command_log(r, message);
	c->options.fetch = fetcher_get;
	c->options.userdata = fetcher;
	return r;
}

/* Start threads, which are confined as this one is. */
static int start_threads(struct command *c)
{
	const int r = threads_start(c->n_threads ?: 1, c->n_threads_max, &c->threads);

	c->options.threads = c->threads;
	return r < 0 ? log_error_errno(r, "cannot start threads, as --threads %zu asks: %m",
				       c->n_threads_max)
		     : 0;
}

/* Do all that needs the user's rights, and then give these rights up. */
static int prepare(struct command *c, struct helper *fetcher)
{
	int r;

	c->n_threads_max = c->n_threads ?: threads_n_cpus();
	prepare_progress(c);
	c->options.opening = show_opening;
	r = close_inherited(c);
	if (r == 0)
		r = check_inputs(c);
	if (r == 0)
		r = start_fetcher(c, fetcher);
	if (r == 0)
		r = open_targets(c);
	if (r == 0)
		r = enter_sandbox(c);
	return r < 0 ? r : start_threads(c);
}

static int next_batch(void *userdata, const struct ptd_batch **ret_batch)
{
	struct ptd_decoder *d = userdata;
	const int r = ptd_decoder_next(d, ret_batch);

	show_progress(d);
	if (r < 0)
		log_error("cannot decode on: %s", ptd_decoder_message(d));
	return r;
}

/* Print the first difference, once the terminal is free for it. Return: as verify_streams(). */
static int show_difference(const struct verify_stream streams[static 2], uint64_t *ret_n_insns)
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);
	int r;

	if (!f)
		return -ENOMEM;
	r = verify_streams(streams, f, ret_n_insns);
	if (fclose(f) != 0 && r >= 0)
		r = -ENOMEM;
	clear_progress();
	if (r >= 0)
		fputs(text, stdout);
	free(text);
	return r;
}

/* Return: 0; or -EINVAL, after it was logged that the input has calls only. */
static int check_has_insns(const struct ptd_decoder *d, const char *what)
{
	if (!ptd_decoder_info(d)->logs_calls)
		return 0;
	log_error("%s compares instructions, and the input has none", what);
	return -EINVAL;
}

/* Decode with both engines, side by side. Return: an exit status. */
static int verify(struct command *c)
{
	static const char *const engines[] = { "flow", "insn" };
	struct ptd_decoder *decoders[ARRAY_LEN(engines)] = {};
	struct verify_stream streams[ARRAY_LEN(engines)];
	char *message = NULL;
	uint64_t n_insns = 0;
	int r = 0;

	for (size_t i = 0; i < ARRAY_LEN(engines) && r == 0; i++) {
		c->options.engine = engines[i];
		r = ptd_decoder_new(&c->options, &decoders[i], &message);
		if (r < 0)
			command_log(r, message);
		streams[i] = (struct verify_stream){ .name = engines[i],
						     .next = next_batch,
						     .userdata = decoders[i] };
	}
	if (r == 0)
		r = check_has_insns(decoders[0], "verify");
	if (r == 0)
		r = show_difference(streams, &n_insns);
	explain(c, r);
	if (r >= 0)
		printf(r == VERIFY_EQUAL ? "%" PRIu64 " instructions, which both engines list\n"
					 : "The engines differ behind %" PRIu64 " instructions.\n",
		       n_insns);
	if (r >= 0 && fflush(stdout) != 0)
		r = log_error_errno(-errno, "standard output: cannot write: %m");
	for (size_t i = 0; i < ARRAY_LEN(decoders); i++)
		ptd_decoder_free(decoders[i]);
	return r == VERIFY_EQUAL ? PTDECODE_OK : PTDECODE_FAILED;
}

/* What takes a stream that is compared with others. */
struct taker {
	const char *verb;
	int (*begin)(void *userdata, struct ptd_decoder *d);
	int (*batch)(void *userdata, const struct ptd_batch *batch);
	int (*end)(void *userdata);
	void *userdata;
	bool complains; /* about the input, which it did not do before */
};

/* Have it take the stream of one input. Return: 0, or negative errno after it was logged. */
static int take_stream(struct command *c, const struct taker *taker, bool *damaged)
{
	const struct ptd_batch *batch;
	struct ptd_decoder *d = NULL;
	char *message = NULL;
	int r;

	r = ptd_decoder_new(&c->options, &d, &message);
	if (r < 0) {
		clear_progress();
		command_log(r, message);
		explain(c, r);
		return r;
	}
	r = taker->begin(taker->userdata, d);
	if (r == 0)
		r = check_has_insns(d, taker->verb);
	while (r == 0 && (r = next_batch(d, &batch)) == 0)
		r = taker->batch(taker->userdata, batch);
	clear_progress();
	if (r >= 0)
		r = taker->end(taker->userdata);
	explain(c, r);
	if (taker->complains) {
		complain(c, d);
		*damaged = *damaged || is_damaged(c, d);
	}
	ptd_decoder_free(d);
	return r;
}

/* A pass of diff over one stream. */
struct diff_pass {
	struct diff *diff;
	unsigned int pass;
	enum diff_side side;
};

static int begin_diff(void *userdata, struct ptd_decoder *d)
{
	const struct diff_pass *p = userdata;

	return diff_begin(p->diff, p->pass, p->side, ptd_decoder_info(d));
}

static int diff_take(void *userdata, const struct ptd_batch *batch)
{
	return diff_batch(((struct diff_pass *)userdata)->diff, batch);
}

static int end_diff(void *userdata)
{
	return diff_end(((struct diff_pass *)userdata)->diff);
}

static int show_stream(struct command *c, struct diff_pass *pass, bool *damaged)
{
	const struct taker taker = { .verb = "diff",
				     .begin = begin_diff,
				     .batch = diff_take,
				     .end = end_diff,
				     .userdata = pass,
				     .complains = pass->pass == 0 };

	return take_stream(c, &taker, damaged);
}

/* Compare the two inputs. Return: an exit status. */
static int write_diff(struct command *c)
{
	const struct sink_config *config = &c->outputs.items[0].config;
	const char *const inputs[] = { c->options.input,
				       c->others.n > 0 ? c->others.items[0] : c->options.input };
	struct diff_subject subject = {
		.names = { inputs[0], inputs[1] },
		.function = sink_option(config, "function"),
		.numbers = { 1, c->others.n > 0 ? 1 : 2 },
	};
	const struct ptd_stats no_stats = {};
	struct ptd_info info = {};
	struct diff *diff = NULL;
	bool damaged = false;
	int r;

	r = option_number(config, "a", &subject.numbers[DIFF_A]) ?:
		option_number(config, "b", &subject.numbers[DIFF_B]) ?: diff_new(&subject, &diff);
	if (r < 0)
		(void)log_error_errno(r, "cannot compare: %m");
	c->outputs.items[0].config.userdata = diff;
	for (unsigned int pass = 0; r == 0 && pass < DIFF_PASSES && diff_needs(diff, pass); pass++)
		for (size_t i = 0; r == 0 && i < ARRAY_LEN(inputs); i++) {
			c->options.input = inputs[i];
			r = show_stream(c, &(struct diff_pass){ diff, pass, (enum diff_side)i },
					&damaged);
		}
	if (r == 0) {
		info.clock = diff_clock(diff);
		r = open_outputs(c, &info, NULL);
	}
	if (r == 0)
		r = finish_outputs(c, &no_stats);
	close_outputs(c);
	diff_free(diff);
	if (r < 0)
		return PTDECODE_FAILED;
	return damaged ? PTDECODE_GAPS : PTDECODE_OK;
}

/* A run that rank takes. */
struct ranked {
	struct rank *rank;
	enum rank_kind kind;
	const char *function;
	struct rank_run *run;
};

static int begin_rank(void *userdata, struct ptd_decoder *d)
{
	struct ranked *ranked = userdata;

	rank_use(ranked->rank, d);
	return rank_run_new(ranked->rank, ranked->kind, ranked->function, &ranked->run);
}

static int rank_take(void *userdata, const struct ptd_batch *batch)
{
	return rank_run_batch(((struct ranked *)userdata)->run, batch);
}

static int end_rank(void *userdata)
{
	return rank_run_end(((struct ranked *)userdata)->run);
}

/* Have @rank take all inputs, one after the other. Return: 0, or negative errno after it was
 * logged. */
static int rank_inputs(struct command *c, struct rank *rank, bool *damaged)
{
	const char *bad = sink_option(&c->outputs.items[0].config, "bad");
	const size_t n = 1 + c->others.n;
	int r = 0;

	for (size_t i = 0; i < n && r == 0; i++) {
		struct ranked run = { rank, i >= n - c->n_behind ? RANK_BAD : RANK_GOOD, NULL,
				      NULL };
		const struct taker taker = { .verb = "rank",
					     .begin = begin_rank,
					     .batch = rank_take,
					     .end = end_rank,
					     .userdata = &run,
					     .complains = true };

		if (i > 0)
			c->options.input = c->others.items[i - 1];
		if (bad)
			r = rank_kind_of(bad, &run.kind, &run.function);
		if (r == 0)
			r = take_stream(c, &taker, damaged);
		rank_run_free(run.run);
	}
	return r;
}

static int begin_executions(void *userdata, struct ptd_decoder *d)
{
	return rankexec_begin(userdata, d);
}

static int executions_take(void *userdata, const struct ptd_batch *batch)
{
	return rankexec_batch(userdata, batch);
}

static int end_executions(void *userdata)
{
	return rankexec_end(userdata);
}

/* Have @rank take the executions of @function. Return: 0, or negative errno after it was logged. */
static int rank_executions(struct command *c, struct rank *rank, const char *function,
			   bool *damaged)
{
	_cleanup_(rankexec_freep) struct rankexec *rankexec = NULL;
	struct taker taker = { .verb = "rank",
			       .begin = begin_executions,
			       .batch = executions_take,
			       .end = end_executions,
			       .complains = true };
	int r = rankexec_new(rank, function, &rankexec);

	if (r < 0)
		return log_error_errno(r, "cannot compare: %m");
	taker.userdata = rankexec;
	for (int pass = 0; pass < RANKEXEC_PASSES && r == 0; pass++) {
		r = take_stream(c, &taker, damaged);
		taker.complains = false;
	}
	return r;
}

/* Rank what good and bad runs do differently. Return: an exit status. */
static int write_rank(struct command *c)
{
	const struct ptd_stats no_stats = {};
	const struct ptd_info info = {};
	struct rank *rank = NULL;
	const char *function = sink_option(&c->outputs.items[0].config, "function");
	bool damaged = false, is_one_kind, is_none;
	int r = rank_new(&rank);

	c->outputs.items[0].config.userdata = rank;
	if (r < 0)
		(void)log_error_errno(r, "cannot compare: %m");
	else
		r = function ? rank_executions(c, rank, function, &damaged)
			     : rank_inputs(c, rank, &damaged);
	if (r == 0)
		r = open_outputs(c, &info, NULL);
	if (r == 0)
		r = finish_outputs(c, &no_stats);
	is_one_kind = r == 0 && (rank_n_runs(rank, true) == 0 || rank_n_runs(rank, false) == 0);
	if (is_one_kind)
		log_warning("all runs are %s ones: there is nothing to compare them with",
			    rank_n_runs(rank, true) == 0 ? "good" : "bad");
	is_none = r == 0 && sink_is_empty(c->outputs.items[0].sink);
	if (is_none)
		log_warning("nothing of what was asked for was executed in any of the runs");
	close_outputs(c);
	rank_free(rank);
	if (r < 0)
		return PTDECODE_FAILED;
	return damaged ? PTDECODE_GAPS : is_one_kind || is_none ? PTDECODE_EMPTY : PTDECODE_OK;
}

/* Return: whether only what some processes, functions and so on executed is asked for. */
static bool asks_for_part(const struct ptd_part *part)
{
	return part->time || part->n_cpus > 0 || part->n_pids > 0 || part->n_tids > 0 ||
	       part->n_comms > 0 || part->n_symbols > 0 || part->n_objects > 0;
}

/* Return: whether what is asked for is not in the recording, which is said. */
static bool is_empty(const struct command *c, struct ptd_decoder *d)
{
	const struct ptd_stats *stats = ptd_decoder_stats(d);
	const struct ptd_part *part = &c->options.part;
	uint64_t n_insns = 0;

	for (size_t i = 0; i < stats->n_cpus; i++)
		n_insns += stats->cpus[i].n_insns;
	if (n_insns == 0 && wants(c, true) && asks_for_part(part) &&
	    !ptd_decoder_info(d)->logs_calls) {
		log_warning("%s: nothing of what was asked for was executed; %s lists what was",
			    c->options.input ?: c->options.raw_pt,
			    part->n_symbols > 0 ? "functions" : "summary");
		return true;
	}
	for (size_t i = 0; i < c->outputs.n; i++)
		if (sink_is_empty(c->outputs.items[i].sink))
			return true;
	return false;
}

/* Decode into the outputs. Return: an exit status. */
static int write_outputs(struct command *c)
{
	struct ptd_decoder *d = NULL;
	int r, status = PTDECODE_FAILED;
	char *message = NULL;

	c->options.no_symbols = true;
	for (size_t i = 0; i < c->outputs.n; i++)
		c->options.no_symbols =
		    c->options.no_symbols && c->outputs.items[i].ops->no_symbols;
	r = ptd_decoder_new(&c->options, &d, &message);
	clear_progress();
	if (r < 0) {
		command_log(r, message);
		explain(c, r);
	} else if (open_outputs(c, ptd_decoder_info(d), d) == 0 && decode(c, d) == 0 &&
		   finish_outputs(c, ptd_decoder_stats(d)) == 0) {
		status = is_damaged(c, d) ? PTDECODE_GAPS : PTDECODE_OK;
		/* What is missing may be in the gaps. */
		if (is_empty(c, d) && status == PTDECODE_OK)
			status = PTDECODE_EMPTY;
	}
	close_outputs(c);
	ptd_decoder_free(d);
	return status;
}

int main(int argc, char **argv)
{
	struct helper fetcher = {};
	struct command c;
	int r, status;

	/* A recording is as secret as the memory that it shows. */
	(void)umask(077);
	status = command_parse(&c, argc, argv);
	if (status == PTDECODE_OK) {
		status = PTDECODE_FAILED;
		r = prepare(&c, &fetcher);
		if (r == 0)
			r = command_read_code(&c);
		if (r == 0)
			status = c.verify ? verify(&c)
				 : c.diff ? write_diff(&c)
				 : c.rank ? write_rank(&c)
					  : write_outputs(&c);
		else
			close_outputs(&c);
	}

	ptd_threads_free(c.threads);
	helper_stop(&fetcher);
	command_deinit(&c);
	return status;
}
