/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Snapshots of a source whose rings are filled by hand. What is written is read back by perf, which
 * knows nothing of us.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/objects/codestore.h"
#include "daemon/objects/copier.h"
#include "daemon/objects/jitfile.h"
#include "daemon/objects/objectstore.h"
#include "daemon/plugin/coderecord.h"
#include "daemon/proc/caller.h"
#include "daemon/share/share.h"
#include "daemon/sideband/sideband.h"
#include "daemon/snapshot/snapshot.h"
#include "daemon/source/ptclock.h"
#include "daemon/source/source.h"
#include "daemon/spool/spool.h"
#include "decoder/file/input.h"
#include "ptd/snapshot.h"
#include "tests/lib/copied.h"
#include "tests/lib/failing.h"
#include "tests/lib/recordwalk.h"
#include "tests/lib/tempdir.h"
#include "tests/unit/records.h"
#include "tests/unit/sources.h"
#include "util/mapfile.h"
#include "util/perf/codec.h"
#include "util/perf/perfabi.h"

#define DATA   "../shared/data/drpt2trace"
#define N_CPUS 3

/* --- a source of our own --------------------------------------------------------------------- */

struct ring {
	struct records bytes;
	size_t split; /* where the second span begins */
	uint64_t head;
	uint64_t overwritten;
};

struct fake {
	struct source source;
	struct ring aux[N_CPUS];
	struct records switches[N_CPUS]; /* whole ones */
	bool switches_cut[N_CPUS];
	struct source_moment moment;
	bool held, suspends;
};

static int hold(struct source *source, struct source_moment *ret_moment)
{
	struct fake *fake = (struct fake *)source;

	fake->held = true;
	*ret_moment = fake->moment;
	return 0;
}

/* As if the machine were suspended just then. */
static void release(struct source *source)
{
	if (!((struct fake *)source)->suspends)
		return;
	source->facts.tsc.mult = 3;
	source->facts.tsc.zero = 77;
	ptclock_log_clear(source->clock);
}

static uint64_t aux_room(struct source *source, uint32_t cpu)
{
	(void)source;
	(void)cpu;
	return 0;
}

static int view(struct source *source, uint32_t cpu, uint64_t since_ns, bool exact,
		struct source_view *ret_view)
{
	const struct ring *ring = &((struct fake *)source)->aux[cpu];

	(void)since_ns;
	(void)exact;
	*ret_view = (struct source_view){
		.a = ring->bytes.bytes,
		.a_size = ring->bytes.size - ring->split,
		.b = ring->split ? ring->bytes.bytes + (ring->bytes.size - ring->split) : NULL,
		.b_size = ring->split,
		.head = ring->head ? ring->head : ring->bytes.size,
		.overwritten = ring->overwritten,
	};
	return 0;
}

static int copy_switches(struct source *source, uint32_t cpu, uint64_t since_ns,
			 uint8_t **ret_bytes, size_t *ret_size, bool *ret_cut)
{
	const struct fake *fake = (const struct fake *)source;
	const struct records *switches = &fake->switches[cpu];
	uint8_t *bytes = malloc(switches->size + 1);

	(void)since_ns;
	if (!bytes)
		return -ENOMEM;
	if (switches->size > 0)
		memcpy(bytes, switches->bytes, switches->size);
	*ret_bytes = bytes;
	*ret_size = switches->size;
	*ret_cut = fake->switches_cut[cpu];
	return 0;
}

/* The last CPU but one is that of a user. */
#define USER     60001
#define USER_CPU 1

static const struct source_ops fake_ops = {
	.aux_room = aux_room,
	.hold = hold,
	.release = release,
	.view = view,
	.copy_switches = copy_switches,
};

static const struct caller caller = { .uid = 1000, .pid = 42, .comm = "somebody" };

struct fixture {
	struct fake fake;
	char dir[TEMPDIR_SIZE];
	int dir_fd, store_fd, out_fd;
	struct sideband *sideband;
	struct objectstore *store;
	struct records tasks;
	struct snapshot_request request;
	struct snapshot_known known;
	struct snapshot_result result;
	struct sideband_cut cuts[3]; /* uid 0: nobody's records begin later */
	bool forgets;                /* the object store gives up what it has */
	const char *changes;         /* a file that is written to once all are copied */
	const char *failed;          /* what snapshot_write() names if it fails */
	unsigned int n_asked;        /* how often the snapshot asked what is known */
};

/* It is asked for when the rings are there. */
static int gather(void *userdata, struct snapshot_known *ret_known)
{
	struct fixture *f = userdata;

	assert_true(f->fake.held);
	f->n_asked++;
	for (size_t i = 0; f->changes && i < f->known.n_objects; i++)
		assert_int_equal(copied_wait(f->store, f->known.objects[i]), 0);
	if (f->changes)
		assert_int_equal(utimensat(AT_FDCWD, f->changes, NULL, 0), 0);
	*ret_known = f->known;
	return 0;
}

_printf_(2, 3) static char *output_of(size_t *ret_lines, const char *format, ...)
{
	char command[512], *text = NULL, line[1024];
	size_t size = 0, lines = 0;
	FILE *to = open_memstream(&text, &size), *from;
	va_list ap;

	va_start(ap, format);
	(void)vsnprintf(command, sizeof(command), format, ap);
	va_end(ap);
	from = popen(command, "re");
	assert_non_null(from);
	for (; fgets(line, sizeof(line), from); lines++)
		fputs(line, to);
	assert_int_equal(pclose(from), 0);
	fclose(to);
	if (ret_lines)
		*ret_lines = lines;
	return text;
}

static int set_up(void **state)
{
	const struct spool_limits limits = { .max_use = UINT64_MAX };
	struct fixture *f = calloc(1, sizeof(*f));
	char path[128];

	tempdir_make("snapshot", f->dir);
	f->dir_fd = open(f->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	(void)snprintf(path, sizeof(path), "%s/snap", f->dir);
	assert_int_equal(mkdirat(f->dir_fd, "snap", 0750), 0);
	assert_int_equal(mkdirat(f->dir_fd, "store", 0750), 0);
	f->out_fd = openat(f->dir_fd, "snap", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	f->store_fd = openat(f->dir_fd, "store", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(sideband_new(1 << 20, NULL, &source_that_knows, &f->sideband), 0);
	assert_int_equal(objectstore_new(f->store_fd, &limits, f->dir, &f->store), 0);

	f->fake.source = (struct source){
		.ops = &fake_ops,
		.n_cpus = N_CPUS,
		.facts = { .name = "fake",
			   .pmu_type = 8,
			   .attr_config = 0x2401,
			   .mask_tsc = 0x400,
			   .mask_noretcomp = 0x800,
			   .tsc = { .valid = true, .mult = 1 },
			   .cpuid = "GenuineIntel,6,85,7",
			   .user = true },
	};
	f->fake.moment = (struct source_moment){ .complete_until_ns = 4990,
						 .ns = 5000,
						 .monotonic_ns = 5000,
						 .realtime_ns = UINT64_C(1700000000123456789) };
	f->request = (struct snapshot_request){
		.id = "ID-1",
		.source = &f->fake.source,
		.runtime_dir = f->dir,
		.store_fd = f->store_fd,
		.copier = objectstore_copier(f->store),
		.caller = &caller,
		.snapshots_max = UINT64_MAX,
		.gather = gather,
		.userdata = f,
	};
	*state = f;
	return 0;
}

/* A snapshot has everybody's code: whatever is in it, only its owner and his group may read it. */
static void assert_modes(const struct fixture *f)
{
	char command[256];

	(void)snprintf(command, sizeof(command),
		       "find %s/snap -mindepth 1 -type f ! -perm 640 -print -o -type d ! -perm 750 "
		       "-print | { ! grep . ; }",
		       f->dir);
	assert_int_equal(system(command), 0);
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	assert_modes(f);
	tempdir_remove(f->dir);
	(void)close(f->dir_fd);
	(void)close(f->store_fd);
	(void)close(f->out_fd);
	for (size_t i = 0; i < N_CPUS; i++) {
		records_deinit(&f->fake.aux[i].bytes);
		records_deinit(&f->fake.switches[i]);
	}
	records_deinit(&f->tasks);
	(void)sideband_free(f->sideband);
	(void)objectstore_free(f->store);
	free(f);
	return 0;
}

/* As if room had to be made for others. */
static void forget_all(struct objectstore *store)
{
	struct object **objects;
	size_t n;

	assert_int_equal(objectstore_list(store, &objects, &n), 0);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(copied_wait(store, objects[i]), 0);
		(void)object_unref(objects[i]);
	}
	free(objects);
	/* A lane has an object for some time after it was copied. */
	while (objectstore_count(store) > 0) {
		while (objectstore_next_failed(store))
			;
		assert_int_equal(objectstore_forget(store, objectstore_moment(store)), 0);
		(void)usleep(1000);
	}
}

static void add_mapped(struct fixture *f, const struct record *record,
		       const struct record_mmap2 *mmap)
{
	struct object *object;

	assert_int_equal(objectstore_add(f->store, mmap, 0, &object), 0);
	if (object && object_is_by_inode(object) && mmap->build_id.size > 0)
		record_set_inode(f->tasks.bytes + (record->bytes - f->tasks.bytes),
				 object->mapped.maj, object->mapped.min, object->mapped.ino);
}

/* What the manager does: keep the objects of the task records, then write. */
static int take(struct fixture *f)
{
	struct cursor c = cursor_from(f->tasks.bytes, f->tasks.size);
	struct object **objects;
	struct sideband_view tasks;
	struct record_mmap2 mmap;
	struct record record;
	int r;

	while (record_next(&c, &record) == 0)
		if (record_get_mmap2(&record, &mmap) == 0)
			add_mapped(f, &record, &mmap);
	if (f->forgets)
		forget_all(f->store);
	assert_int_equal(sideband_add(f->sideband, f->tasks.bytes, f->tasks.size), 0);
	assert_int_equal(sideband_view_init(f->sideband, &tasks), 0);
	assert_int_equal(objectstore_list(f->store, &objects, &f->known.n_objects), 0);
	for (size_t i = 0; i < ARRAY_LEN(f->cuts) && f->cuts[i].uid > 0; i++)
		tasks.cuts[tasks.n_cuts++] = f->cuts[i];
	f->known.tasks = &tasks;
	f->known.objects = objects;
	r = snapshot_write(&f->request, f->out_fd, &f->result, &f->failed);
	for (size_t i = 0; i < f->known.n_objects; i++)
		(void)object_unref(objects[i]);
	free(objects);
	sideband_view_deinit(&tasks);
	return r;
}

static bool has_perf(void)
{
	if (system("command -v perf >/dev/null") == 0)
		return true;
	print_message("  perf is not installed: not judged\n");
	return false;
}

static void assert_has(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("\"%s\" is not in:\n%s", part, text);
}

static void assert_has_not(const char *text, const char *part)
{
	if (strstr(text, part))
		fail_msg("\"%s\" is in:\n%s", part, text);
}

static char *manifest(const struct fixture *f)
{
	return output_of(NULL, "cat %s/snap/manifest", f->dir);
}

/* --- tests ----------------------------------------------------------------------------------- */

static void an_earlier_recorder(void **state)
{
	struct fixture *f = *state;
	_cleanup_(freep) char *text = NULL;

	f->fake.moment.monotonic_ns = 4500;
	f->known.taken_over_ns = 4000;
	f->known.code_lost_bytes = 77;
	assert_int_equal(take(f), 0);
	text = manifest(f);
	assert_has_not(text, "sideband_dropped");
	assert_has(text, "\ntaken_over_ns=4500\ncode_lost_bytes=77\n");
}

/* A user had more records than their share. */
static void whose_records_begin_later(void **state)
{
	struct fixture *f = *state;
	_cleanup_(freep) char *text = NULL;

	f->cuts[0] = (struct sideband_cut){ .uid = 1001, .since_ns = 4321, .n_dropped = 99 };
	assert_int_equal(take(f), 0);
	text = manifest(f);
	assert_has(text, "\nsideband_since_ns=0\nsideband_since_ns.1001=4321\n"
			 "sideband_dropped.1001=99\n");
}

static void nothing_recorded(void **state)
{
	struct fixture *f = *state;
	_cleanup_(freep) char *text = NULL;

	assert_int_equal(take(f), 0);
	assert_int_equal(f->result.n_cpus, 0);
	text = manifest(f);
	assert_has(text, "format=ptd-snapshot-1\nid=ID-1\n"
			 "created=2023-11-14T22:13:20.123456Z\n");
	assert_has(text, "\nrealtime_offset_ns=1700000000123451789\n");
	assert_has(text, "\ncomplete_until_ns=4990\n");
	assert_has(text, "\nsource=fake\ncpuid=GenuineIntel,6,85,7\n");
	assert_has(text, "\ntaken_by_uid=1000\ntaken_by_pid=42\ntaken_by_comm=somebody\n");
	free(output_of(NULL, "cd %s/snap && sha256sum --quiet --strict -c SHA256SUMS", f->dir));
	if (has_perf())
		free(output_of(NULL, "perf script -i %s/snap 2>&1", f->dir));
}

/* Return: the TSC that the first AUXTRACE record of the perf.data at @path states. */
static uint64_t read_reference(const char *path)
{
	_cleanup_(mapfile_deinit) struct mapfile file = {};
	struct recordwalk walk;
	uint64_t words[3] = {}; /* size, offset, reference */

	assert_int_equal(mapfile_read(&file, AT_FDCWD, path), 0);
	assert_int_equal(recordwalk_read(file.bytes, file.size, &walk), 0);
	for (size_t i = 0; i < walk.records.n && words[0] == 0; i++)
		if (walk.records.items[i].type == PERFABI_AUXTRACE)
			memcpy(words, walk.records.items[i].payload, sizeof(words));
	recordwalk_deinit(&walk);
	return words[2];
}

/* What is said of time goes with the rings, whatever becomes of the machine then. */
static void suspended_meanwhile(void **state)
{
	struct fixture *f = *state;
	_cleanup_(trace_freep) struct trace *trace = NULL;
	_cleanup_(freep) char *text = NULL, *message = NULL;
	char path[128];

	f->fake.suspends = true;
	assert_int_equal(ptclock_log_new(&f->fake.source.clock), 0);
	for (uint64_t i = 1; i < 4; i++)
		ptclock_log_add(f->fake.source.clock,
				&(struct ptclock_sample){ i * 1000, i * 1001, i * 1002 });
	f->fake.source.facts.tsc.mult = 2;
	records_add(&f->fake.aux[0].bytes, "12345678", 8);
	records_switch(&f->fake.switches[0], 42, false, 5000, 0);
	assert_int_equal(take(f), 0);
	assert_int_equal(f->fake.source.facts.tsc.mult, 3);

	/* The first at 5000, which was 2500 of the TSC. */
	text = output_of(NULL, "cat %s/snap/clock", f->dir);
	assert_string_equal(text, "2000 2002 2004\n3000 3003 3006\n");
	(void)snprintf(path, sizeof(path), "%s/snap", f->dir);
	assert_int_equal(input_open(path, false, NULL, &trace, &message), 0);
	assert_int_equal(trace->facts.clock.mult, 2);
	assert_int_equal(trace->facts.clock.zero, 0);
	assert_int_equal(trace->n_queues, 1);
	(void)snprintf(path, sizeof(path), "%s/snap/data", f->dir);
	assert_int_equal(read_reference(path), 2500);
	(void)ptclock_log_free(f->fake.source.clock);
}

/* perf shows the records as they were put in. */
static void records_are_read_by_perf(void **state)
{
	const struct buildid id = { .size = 20, .bytes = { 0x11, 0x22 } };
	struct fixture *f = *state;
	_cleanup_(freep) char *text = NULL;
	size_t n;

	records_fork(&f->tasks, 42, 41, 1000);
	records_comm(&f->tasks, 42, "worker", 1001);
	records_mmap2(&f->tasks, 42, "/no/such/lib.so", &id, 1002);
	records_switch(&f->fake.switches[0], 42, false, 1010, 0);
	records_switch(&f->fake.switches[0], 42, true, 1020, 0);
	records_switch(&f->fake.switches[2], 43, false, 1015, 2);
	assert_int_equal(take(f), 0);
	assert_int_equal(f->result.n_missing, 1);

	if (!has_perf())
		return;
	text = output_of(&n,
			 "perf script --ns -i %s/snap --show-task-events --show-mmap-events "
			 "--show-switch-events 2>&1",
			 f->dir);
	assert_int_equal(n, 6);
	assert_has(text, "PERF_RECORD_FORK(42:42):(41:41)");
	assert_has(text, "PERF_RECORD_COMM: worker:42/42");
	assert_has(text, "<1122000000000000000000000000000000000000>]: r-xp /no/such/lib.so");
	assert_has(text, "42 [000]     0.000001010: PERF_RECORD_SWITCH_CPU_WIDE IN");
	assert_has(text, "42 [000]     0.000001020: PERF_RECORD_SWITCH_CPU_WIDE OUT");
	assert_has(text, "43 [002]     0.000001015: PERF_RECORD_SWITCH_CPU_WIDE IN");
	free(text);
	text = output_of(NULL, "perf report --header-only -i %s/snap 2>&1", f->dir);
	assert_has(text, "# cpuid : GenuineIntel,6,85,7");
	assert_has(text, "# nrcpus online : 3");
	assert_has(text, "# event : name = intel_pt//u, , id = { 1 }, type = 8");
	assert_has(text, "intel_pt = 8");
	free(text);
	text = output_of(NULL, "cat %s/snap/objects.map", f->dir);
	assert_string_equal(text, "- No such file or directory\t/no/such/lib.so\n");
}

/* The oldest records of a ring are gone, and who ran is said once more. */
static void switches_that_are_cut(void **state)
{
	struct fixture *f = *state;
	_cleanup_(freep) char *text = NULL;
	size_t n;

	records_switch(&f->fake.switches[1], 52, false, 2002, 1);
	records_switch(&f->fake.switches[1], 53, true, 2003, 1);
	f->fake.switches_cut[1] = true;
	assert_int_equal(take(f), 0);

	text = manifest(f);
	assert_has(text, "cpu.1.switch_oldest_ns=2002\ncpu.1.switch_newest_ns=2003\n"
			 "cpu.1.switch_complete=no\n");
	if (!has_perf())
		return;
	free(text);
	text = output_of(&n, "perf script --ns -i %s/snap --show-switch-events 2>&1", f->dir);
	assert_int_equal(n, 2);
	assert_has(text, "52 [001]     0.000002002: PERF_RECORD_SWITCH_CPU_WIDE IN");
	free(text);
	text = output_of(NULL, "perf report -D -i %s/snap 2>&1 | grep -a ITRACE_START", f->dir);
	assert_has(text, "2002");
	assert_has(text, "52");
}

static void pt_bytes(void **state)
{
	static const uint8_t bytes[] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 };
	struct fixture *f = *state;
	_cleanup_(freep) char *text = NULL;
	struct ring *ring = &f->fake.aux[2];

	records_add(&ring->bytes, bytes, sizeof(bytes));
	ring->split = 3;
	ring->head = 1011;
	ring->overwritten = 2;
	records_add(&f->fake.aux[0].bytes, bytes, sizeof(bytes));
	f->fake.aux[0].overwritten = sizeof(bytes);
	assert_int_equal(take(f), 0);
	assert_int_equal(f->result.n_cpus, 1);
	assert_int_equal(f->result.bytes_pt, 9);

	text = manifest(f);
	assert_has(text, "cpu.0.bytes=0\ncpu.0.head=11\ncpu.0.dropped=11\ncpu.0.overwritten=11\n");
	assert_has(text,
		   "cpu.2.bytes=9\ncpu.2.head=1011\ncpu.2.dropped=2\ncpu.2.overwritten=1002\n");
	assert_has(text, "\npt_dropped=13\npt_overwritten=1013\n");
	assert_has_not(text, "cpu.1.");
	if (!has_perf())
		return;
	free(text);
	text = output_of(NULL, "perf report -D -i %s/snap 2>&1 | grep -a AUXTRACE", f->dir);
	assert_has(text,
		   "AUXTRACE size: 0x10  offset: 0x3ea  ref: 0x1388  idx: 2  tid: -1  cpu: 2");
}

/* A ring that went round says how much of it is gone, and since when it is whole. */
static void overwritten(void **state)
{
	static const uint8_t psb[] = { 0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82,
				       0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82,
				       0x19, 0xa0, 0x0f, 0,    0,    0,    0,    0 };
	struct fixture *f = *state;
	_cleanup_(freep) char *text = NULL;
	struct ring *ring = f->fake.aux;

	records_add(&ring[0].bytes, psb, sizeof(psb));
	records_add(&ring[1].bytes, psb, sizeof(psb));
	records_add(&ring[2].bytes, psb, 8);
	/* At 4000, as all say; this one never went round. */
	f->fake.moment.monotonic_ns = 4900;
	ring[1].head = 124;
	f->request.scope.command_pid = 17;
	strcpy(f->request.scope.trigger, "exit:1");
	f->request.scope.trigger_tid = 18;
	f->request.scope.trigger_ns = 19;
	f->request.scope.started_ns = 3899;
	strcpy(f->request.scope.command, "a command");
	assert_int_equal(take(f), 0);
	assert_int_equal(f->result.bytes_overwritten, 100);
	assert_int_equal(f->result.complete_since_ns, 3900);
	assert_int_equal(f->result.taken_ns, 4900);

	text = manifest(f);
	assert_has(text, "\npt_dropped=0\npt_overwritten=100\n"
			 "complete_since=2023-11-14T22:13:20.123455Z\ncomplete_since_ns=4000\n");
	assert_has(text, "cpu.0.dropped=0\ncpu.0.overwritten=0\ncpu.0.oldest_ns=4000\n");
	assert_has(text, "cpu.1.dropped=0\ncpu.1.overwritten=100\ncpu.1.oldest_ns=4000\n");
	assert_has(text, "cpu.2.overwritten=0\ncpu.2.end");
	assert_has(text, "\ncommand_complete=no\ncommand=a command\ncommand_pid=17\n"
			 "trigger=exit:1\ntrigger_tid=18\ntrigger_ns=119\n");
}

/* Of one without a PSB nothing can be decoded. */
static void overwritten_without_psb(void **state)
{
	static const uint8_t bytes[9] = { 1 };
	struct fixture *f = *state;
	_cleanup_(freep) char *text = NULL;

	records_add(&f->fake.aux[2].bytes, bytes, sizeof(bytes));
	f->fake.aux[2].head = 10;
	assert_int_equal(take(f), 0);
	assert_int_equal(f->result.bytes_overwritten, 1);
	assert_int_equal(f->result.complete_since_ns, 5000);
	text = manifest(f);
	assert_has(text, "\npt_overwritten=1\n");
	assert_has(text, "\ncomplete_since_ns=5000\n");
	assert_has_not(text, "oldest_ns=5000");
}

/* Objects of those who ran, and of their parents, whose mappings they have; no others. */
static void objects_of_those_who_ran(void **state)
{
	struct fixture *f = *state;
	_cleanup_(freep) char *text = NULL;
	char paths[4][128];
	size_t n;

	for (size_t i = 0; i < 4; i++) {
		(void)snprintf(paths[i], sizeof(paths[i]), "%s/p%zu", f->dir, i);
		/* Four objects without build-id, of different content. */
		free(output_of(NULL,
			       "cp /proc/%d/exe %s && objcopy -R .note.gnu.build-id %s && "
			       "printf %%%zuc x >>%s",
			       (int)getpid(), paths[i], paths[i], i + 1, paths[i]));
	}
	records_mmap2(&f->tasks, 10, paths[0], NULL, 1);
	records_fork(&f->tasks, 20, 10, 2);
	records_mmap2(&f->tasks, 20, paths[1], NULL, 3);
	records_fork(&f->tasks, 30, 20, 4);
	records_mmap2(&f->tasks, 30, paths[2], NULL, 5);
	records_mmap2(&f->tasks, 40, paths[3], NULL, 6);
	records_switch(&f->fake.switches[0], 30, false, 7, 0);
	assert_int_equal(take(f), 0);
	assert_int_equal(f->result.n_objects, 3);
	assert_int_equal(f->result.n_missing, 0);

	text = output_of(&n, "cat %s/snap/objects.map", f->dir);
	assert_int_equal(n, 3);
	assert_has(text, paths[0]);
	assert_has(text, paths[2]);
	assert_has_not(text, paths[3]);
	free(output_of(NULL, "cd %s/snap && sha256sum --quiet --strict -c SHA256SUMS", f->dir));
	/* Each is named by its content, and shared with the store. */
	free(text);
	text = output_of(&n,
			 "cd %s/snap/objects/sha256 && for d in *; do "
			 "echo \"$d  $d/elf\" | sha256sum --quiet -c && stat -c %%h $d/elf; done",
			 f->dir);
	assert_string_equal(text, "2\n2\n2\n");
}

#define FIRST  60001u
#define SECOND 60002u

/*
 * Take a snapshot of programs of the same size: p0 to p3 of one user, who ran in the order p2, p0,
 * p3, p1; p4 of another one; and p5 of root, who has the content of p1, too, if @twin.
 *
 * @max, @before: how many such programs all snapshots may have, and those have that are there
 * @expected: which are in the snapshot
 */
static void take_programs(struct fixture *f, uint64_t max, uint64_t before, bool twin,
			  const char *expected)
{
	static const uint64_t ran[] = { 20, 40, 10, 30, 15, 5 };
	_cleanup_(freep) char *text = NULL;
	struct share share;
	char path[128], line[256];
	struct stat st;

	free(output_of(NULL,
		       "cd %s && objcopy -R .note.gnu.build-id /usr/bin/true p && "
		       "head -c 614400 /dev/urandom >>p",
		       f->dir));
	for (uint32_t i = 0; i < ARRAY_LEN(ran); i++) {
		(void)snprintf(path, sizeof(path), "%s/p%u", f->dir, i);
		free(output_of(NULL, "{ cat %s/p && echo %u; } >%s", f->dir, twin && i == 5 ? 1 : i,
			       path));
		assert_int_equal(stat(path, &st), 0);
		if (chown(path, i == 5 ? 0 : i == 4 ? SECOND : FIRST, 0) < 0)
			skip();
		records_mmap2(&f->tasks, 10 + i, path, NULL, 1 + i);
		/* It is a child that ran p3 last. */
		records_switch(&f->fake.switches[0], i == 3 ? 20 : 10 + i, false, ran[i], 0);
		records_switch(&f->fake.switches[1], 10 + i, false, 1, 0);
	}
	records_fork(&f->tasks, 20, 13, 7);
	/* Less than one of them more. */
	f->request.snapshots_max = max * (uint64_t)st.st_blocks * 512 + 4096;
	f->request.snapshots_taken = before * (uint64_t)st.st_blocks * 512;
	assert_int_equal(take(f), 0);
	text = output_of(NULL, "cat %s/snap/objects.map", f->dir);
	for (uint32_t i = 0; i < ARRAY_LEN(ran); i++) {
		(void)snprintf(line, sizeof(line),
			       " it is more than its user's share of a snapshot\t%s/p%u\n", f->dir,
			       i);
		if ((strstr(text, line) == NULL) != (strchr(expected, '0' + (int)i) != NULL))
			fail_msg("p%u of %s:\n%s", i, expected, text);
	}
	assert_int_equal(f->result.n_missing, ARRAY_LEN(ran) - strlen(expected));
	assert_int_equal(f->result.n_objects, strlen(expected) - (twin ? 1 : 0));
	free(output_of(NULL, "cd %s/snap && sha256sum --quiet --strict -c SHA256SUMS", f->dir));
	objectstore_get_share(f->store, &share);
	for (size_t i = 0; i < share.n_users; i++)
		assert_int_equal(share.users[i].refused[SHARE_REASON_SHARE],
				 share.users[i].uid == FIRST ? f->result.n_missing : 0);
}

static void all_while_there_is_room(void **state)
{
	take_programs(*state, 1000, 0, false, "012345");
}

/* Who ran last is there. Nothing of the other one or of root is missing for that. */
static void a_part_of_one_users(void **state)
{
	take_programs(*state, 32, 32, false, "1345");
}

static void more_than_a_part(void **state)
{
	take_programs(*state, 32, 12, false, "01345");
}

/* What somebody else has in the snapshot takes no more room. */
static void one_content_of_two(void **state)
{
	take_programs(*state, 32, 32, true, "01345");
}

/* Make a process whose vDSO is as it was, or not. */
static pid_t fork_with_vdso(bool changed)
{
	const uintptr_t at = getauxval(AT_SYSINFO_EHDR);
	int ready[2];
	pid_t pid;
	char byte;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (changed && mmap((void *)at, 8192, PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
			_exit(1);
		if (changed) {
			memset((void *)at, 0xc3, 8192);
			if (mprotect((void *)at, 8192, PROT_READ | PROT_EXEC) < 0)
				_exit(1);
		}
		(void)!write(ready[1], "!", 1);
		for (;;)
			(void)pause();
	}
	(void)close(ready[1]);
	if (read(ready[0], &byte, 1) != 1)
		pid = -1;
	(void)close(ready[0]);
	return pid;
}

static void put_mmap2(const struct record_mmap2 *mmap, uint64_t time, struct records *r)
{
	const struct trailer trailer = record_trailer(mmap->pid, mmap->tid, time);
	struct record_mmap2 whole = *mmap;
	uint8_t record[RECORD_OWN_MAX];

	whole.misc = PERF_RECORD_MISC_USER;
	records_add(r, record, record_write_mmap2(&whole, &trailer, record, sizeof(record)));
}

/* One who wrote to his has it kept as his own memory. */
static void anothers_vdso(void **state)
{
	const pid_t pids[] = { fork_with_vdso(false), fork_with_vdso(true) };
	const uintptr_t at = getauxval(AT_SYSINFO_EHDR);
	struct fixture *f = *state;
	char *text;
	size_t n;

	if (pids[1] < 0) {
		print_message("this kernel does not let a process take its vDSO away\n");
		(void)kill(pids[0], SIGKILL);
		(void)waitpid(pids[0], NULL, 0);
		skip();
	}
	for (size_t i = 0; i < ARRAY_LEN(pids); i++) {
		const struct record_mmap2 mmap = { .pid = (uint32_t)pids[i],
						   .tid = (uint32_t)pids[i],
						   .addr = at,
						   .len = 8192,
						   .prot = PROT_READ | PROT_EXEC,
						   .name = "[vdso]" };

		put_mmap2(&mmap, i + 1, &f->tasks);
		records_switch(&f->fake.switches[0], (uint32_t)pids[i], false, 3 + i, 0);
	}
	f->request.mem_max = 1 << 20;
	assert_int_equal(take(f), 0);
	text = output_of(&n, "cd %s/snap && ls mem && grep ^mem manifest", f->dir);
	assert_non_null(strstr(text, "pages\n"));
	for (size_t i = 0; i < ARRAY_LEN(pids); i++) {
		char line[64];

		(void)snprintf(line, sizeof(line), "mem.%d=8192\n", (int)pids[i]);
		assert_int_equal(strstr(text, line) != NULL, i == 1);
		(void)kill(pids[i], SIGKILL);
		(void)waitpid(pids[i], NULL, 0);
	}
	assert_int_equal(n, 2);
	free(text);
}

/* Processes of two users. */
static pid_t users_pids[2];

static int owner_of_two(struct source *source, uint32_t pid, uid_t *ret_uid)
{
	(void)source;
	*ret_uid = pid == (uint32_t)users_pids[0] ? 1001 : 1002;
	return 0;
}

static const struct source_ops source_of_two = { .tasks = sources_tell_known,
						 .owner = owner_of_two };

/* They have so many KiB of code, of which so much is to be taken. */
static void take_of_two(struct fixture *f, const size_t kib[static 2],
			const char *const expected[static 2])
{
	struct source source = { .ops = &source_of_two };
	_cleanup_(freep) char *text = NULL;
	char line[96];

	f->sideband = sideband_free(f->sideband);
	assert_int_equal(sideband_new(8 << 20, NULL, &source, &f->sideband), 0);
	for (size_t i = 0; i < ARRAY_LEN(users_pids); i++) {
		const size_t size = kib[i] << 10;
		char *memory = mmap(NULL, size, PROT_READ | PROT_WRITE | PROT_EXEC,
				    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		struct record_mmap2 mmap2 = { .addr = (uintptr_t)memory,
					      .len = size,
					      .prot = PROT_READ | PROT_EXEC,
					      .name = "//anon" };

		assert_true(memory != MAP_FAILED);
		memset(memory, 0x90, size);
		users_pids[i] = fork();
		if (users_pids[i] == 0) {
			(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
			for (;;)
				(void)pause();
		}
		(void)munmap(memory, size);
		mmap2.pid = mmap2.tid = (uint32_t)users_pids[i];
		put_mmap2(&mmap2, 1 + i, &f->tasks);
		records_switch(&f->fake.switches[0], mmap2.pid, false, 3 + i, 0);
	}
	f->request.mem_max = 160 << 10;
	assert_int_equal(take(f), 0);
	text = manifest(f);
	for (size_t i = 0; i < ARRAY_LEN(users_pids); i++) {
		(void)kill(users_pids[i], SIGKILL);
		(void)waitpid(users_pids[i], NULL, 0);
		(void)snprintf(line, sizeof(line), "\nmem.%d=%s\n", (int)users_pids[i],
			       expected[i]);
		assert_has(text, line);
	}
}

/* One user's compiler has made more code than MemMax= allows: the other's is all there. */
static void memory_of_two_users(void **state)
{
	take_of_two(*state, (const size_t[]){ 256, 64 },
		    (const char *const[]){ "98304: more than MemMax= may be missing", "65536" });
}

/* Both have more than their part. */
static void memory_of_two_users_with_much(void **state)
{
	take_of_two(*state, (const size_t[]){ 256, 96 },
		    (const char *const[]){ "81920: more than MemMax= may be missing",
					   "81920: more than MemMax= may be missing" });
}

/* Of a user who has more code than a snapshot may have of it. */
static void memory_beyond_a_part(void **state)
{
	struct fixture *f = *state;

	f->request.snapshots_max = f->request.snapshots_taken = 1 << 20;
	take_of_two(f, (const size_t[]){ 256, 32 },
		    (const char *const[]){ "65536: more than their share of MaxUse= may be missing",
					   "32768" });
}

/* Programs decide how many pieces of memory there are: all lie in one file. */
static void scattered_pages(void **state)
{
	enum { N = 64, PAGE = 4096 };
	struct fixture *f = *state;
	const uint32_t self = (uint32_t)getpid();
	char *memory = mmap(NULL, (size_t)2 * N * PAGE, PROT_READ | PROT_WRITE | PROT_EXEC,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const struct record_mmap2 mmap2 = { .pid = self,
					    .tid = self,
					    .addr = (uintptr_t)memory,
					    .len = (uint64_t)2 * N * PAGE,
					    .prot = PROT_READ | PROT_EXEC,
					    .name = "//anon" };
	const size_t size =
	    sizeof(struct ptd_pages_header) + N * (sizeof(struct ptd_pages_piece) + PAGE);
	char *text, line[96];

	assert_true(memory != MAP_FAILED);
	for (size_t i = 0; i < N; i++)
		memset(memory + 2 * i * PAGE, (int)i + 1, PAGE);
	put_mmap2(&mmap2, 1, &f->tasks);
	records_switch(&f->fake.switches[0], self, false, 2, 0);
	f->request.mem_max = 1 << 20;
	assert_int_equal(take(f), 0);
	text = output_of(NULL,
			 "cd %s/snap && ls mem && stat -c %%s mem/pages && grep ^mem manifest && "
			 "sha256sum --quiet --strict -c SHA256SUMS",
			 f->dir);
	(void)snprintf(line, sizeof(line), "pages\n%zu\nmem.%u=%u\n", size, self, N * PAGE);
	assert_string_equal(text, line);
	free(text);
	(void)munmap(memory, (size_t)2 * N * PAGE);
}

/* A record may claim any amount of memory, also what it would take hours to look at. */
static void claimed_memory(void **state)
{
	struct fixture *f = *state;
	const uint32_t self = (uint32_t)getpid();
	const struct record_mmap2 mmap2 = { .pid = self,
					    .tid = self,
					    .addr = UINT64_C(1) << 47, /* nobody's */
					    .len = UINT64_C(1) << 60,
					    .prot = PROT_READ | PROT_EXEC,
					    .name = "//anon" };
	char *text, line[96];
	size_t n;

	put_mmap2(&mmap2, 1, &f->tasks);
	records_switch(&f->fake.switches[0], self, false, 2, 0);
	f->request.mem_max = 1 << 20;
	assert_int_equal(take(f), 0);
	text = output_of(&n, "grep ^mem %s/snap/manifest", f->dir);
	(void)snprintf(line, sizeof(line),
		       "mem.%" PRIu32 "=0: there may be more of it than was looked at\n", self);
	assert_string_equal(text, line);
	free(text);
}

static void put_code(struct codestore *store, uid_t uid, enum coderecord_kind kind,
		     const char *code)
{
	const uint32_t n = (uint32_t)strlen(code), self = (uint32_t)getpid();
	const struct coderecord record = { .size = coderecord_size(n),
					   .kind = kind,
					   .uid = uid,
					   .pid = self,
					   .start = 100,
					   .time = 110,
					   .address = 0x1000,
					   .n_bytes = n };
	uint8_t bytes[128] = {};

	memcpy(bytes, &record, sizeof(record));
	memcpy(bytes + sizeof(record), code, n);
	assert_int_equal(codestore_add(store, bytes, record.size), 0);
}

/*
 * A record names memory of a process that its writer cannot read. The kernel writes no such record;
 * of a source whose programs write them no memory is read, but what they handed over is kept.
 */
static void forged_memory(void **state)
{
	_cleanup_(codestore_freep) struct codestore *store = NULL;
	struct fixture *f = *state;
	const uint32_t self = (uint32_t)getpid();
	char *memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const struct record_mmap2 mmap2 = { .pid = self,
					    .tid = self,
					    .addr = (uintptr_t)memory,
					    .len = 4096,
					    .prot = PROT_READ | PROT_EXEC,
					    .name = "//anon" };
	char *text, line[96];
	size_t n;

	assert_true(memory != MAP_FAILED);
	strcpy(memory, "a secret of mine");
	assert_int_equal(codestore_new(1 << 20, &store), 0);
	put_code(store, 0, CODERECORD_START, "");
	put_code(store, 0, CODERECORD_NEW, "abcd");
	f->known.code = store;
	put_mmap2(&mmap2, 1, &f->tasks);
	records_switch(&f->fake.switches[0], self, false, 2, 0);
	f->request.mem_max = 1 << 20;
	assert_int_equal(take(f), 0);
	text = output_of(&n,
			 "cd %s/snap && ls mem && grep ^mem manifest && grep -c abcd mem/* && "
			 "! grep -rq 'a secret' mem",
			 f->dir);
	(void)snprintf(line, sizeof(line), "%u-100.code\nmem.%u=52\n1\n", self, self);
	assert_string_equal(text, line);
	free(text);
	(void)munmap(memory, 4096);
}

/* Take a snapshot in which code of the user's, which changed once, finds no room. It is not left
 * out: a record without bytes says that it is not known, and the manifest says why. */
static void expect_code_refused(struct fixture *f, uid_t uid, const char *why)
{
	_cleanup_(codestore_freep) struct codestore *store = NULL;
	const uint32_t self = (uint32_t)getpid();
	_cleanup_(freep) char *text = NULL;
	char line[96];

	assert_int_equal(codestore_new(1 << 20, &store), 0);
	put_code(store, uid, CODERECORD_START, "");
	put_code(store, uid, CODERECORD_NEW, "abcd");
	put_code(store, uid, CODERECORD_CHANGED, "efgh");
	f->known.code = store;
	records_switch(&f->fake.switches[0], self, false, 2, 0);
	assert_int_equal(take(f), 0);
	text = output_of(NULL, "cd %s/snap && stat -c %%s mem/* && grep ^mem manifest", f->dir);
	(void)snprintf(line, sizeof(line), "48\nmem.%u=refused: %s\n", self, why);
	assert_string_equal(text, line);
}

static void code_for_which_there_is_no_room(void **state)
{
	struct fixture *f = *state;

	f->request.mem_max = 48 + 4 + 32;
	expect_code_refused(f, 0, "more than MemMax= allows");
}

/* Its user has too much for a snapshot. */
static void code_beyond_a_part(void **state)
{
	struct fixture *f = *state;

	f->request.mem_max = 1 << 20;
	f->request.snapshots_max = f->request.snapshots_taken = (uint64_t)16 * (48 + 4 + 32);
	expect_code_refused(f, FIRST, "more than their share of MaxUse= allows");
}

/* No process has such a number. */
#define NOBODY UINT32_C(10000000)

/* The manifest says of whose memory there is none, and why. */
static void memory_of_a_process_that_is_gone(void **state)
{
	struct fixture *f = *state;
	const struct record_mmap2 mmap2 = { .pid = NOBODY,
					    .tid = NOBODY,
					    .addr = 0x400000,
					    .len = 4096,
					    .prot = PROT_READ | PROT_EXEC,
					    .name = "//anon" };
	_cleanup_(freep) char *text = NULL;

	put_mmap2(&mmap2, 1, &f->tasks);
	records_switch(&f->fake.switches[0], NOBODY, false, 2, 0);
	f->request.mem_max = 1 << 20;
	assert_int_equal(take(f), 0);
	text = output_of(NULL, "grep ^mem %s/snap/manifest", f->dir);
	assert_string_equal(text, "mem.10000000=refused: it is no process that is recorded now\n");
}

/* Three CPUs: on one ran a child of 10, on the next 30, on the third nobody knows who. */
static void make_three_cpus(struct fixture *f)
{
	records_comm(&f->tasks, NOBODY + 10, "ten", 1);
	records_fork(&f->tasks, NOBODY + 20, NOBODY + 10, 2);
	records_comm(&f->tasks, NOBODY + 30, "thirty", 3);
	records_switch(&f->fake.switches[0], NOBODY + 20, false, 4, 0);
	records_switch(&f->fake.switches[1], NOBODY + 30, false, 5, 1);
	for (uint32_t i = 0; i < N_CPUS; i++)
		records_add(&f->fake.aux[i].bytes, "sixteen bytes PT", 16);
}

static void scopes(void **state)
{
	static const struct {
		uint32_t pid;
		const char *cpus, *pt, *says; /* of which CPUs there is PT */
		const char * not ;            /* what is not in the data */
	} rows[] = {
		{ 0, "", "012", "", "none" },
		{ 0, "1", "1", "scope_cpus=1\n", "none" },
		{ 0, "0,2", "02", "scope_cpus=0,2\n", "thirty" },
		{ NOBODY + 10, "", "02", "scope_pid=10000010\nscope_pids=10000020\n", "thirty" },
		{ NOBODY + 20, "", "02", "scope_pid=10000020\nscope_pids=10000020\n", "thirty" },
		{ NOBODY + 30, "", "12", "scope_pid=10000030\nscope_pids=10000030\n", "ten" },
		{ NOBODY + 30, "1-2", "12",
		  "scope_pid=10000030\nscope_pids=10000030\nscope_cpus=1,2\n", "ten" },
		{ NOBODY + 30, "0", NULL, NULL, NULL },
		{ NOBODY + 7, "", NULL, NULL, NULL },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct fixture *f;
		char *manifest, *data;
		size_t n;

		(void)tear_down(state);
		(void)set_up(state);
		f = *state;
		print_message("  row %zu\n", i);
		make_three_cpus(f);
		f->request.scope.pid = rows[i].pid;
		assert_int_equal(cpulist_parse(rows[i].cpus, &f->request.scope.cpus), 0);
		f->request.scope.some_cpus = rows[i].cpus[0] != 0;
		if (!rows[i].pt) {
			assert_int_equal(take(f), -ESRCH);
			continue;
		}
		assert_int_equal(take(f), 0);
		assert_int_equal(f->result.n_cpus, strlen(rows[i].pt));
		assert_int_equal(f->n_asked, 1);
		manifest = output_of(&n, "cat %s/snap/manifest", f->dir);
		for (char cpu = '0'; cpu < '0' + N_CPUS; cpu++) {
			char line[32];

			(void)snprintf(line, sizeof(line), "cpu.%c.bytes=16\n", cpu);
			assert_int_equal(strstr(manifest, line) != NULL,
					 strchr(rows[i].pt, cpu) != NULL);
		}
		assert_has(manifest, rows[i].says);
		data = output_of(&n, "strings %s/snap/data", f->dir);
		assert_has_not(data, rows[i].not );
		free(manifest);
		free(data);
	}
}

/* What was mapped and is not known any more is told, once; but not what never is an object. */
static void objects_that_were_given_up(void **state)
{
	static const char *const names[] = { "/memfd:x (deleted)", "//anon", "/tmp/jit-10.dump",
					     "[heap]", "/dev/zero (deleted)" };
	struct fixture *f = *state;
	_cleanup_(freep) char *text = NULL;
	uint64_t time = 1;

	f->forgets = true;
	records_mmap2(&f->tasks, 10, "/proc/self/exe", NULL, time++);
	records_mmap2(&f->tasks, 10, "/no/such\nfile", NULL, time++);
	records_mmap2(&f->tasks, 11, "/proc/self/exe", NULL, time++);
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		records_mmap2(&f->tasks, 10, names[i], NULL, time++);
	records_mmap2(&f->tasks, 12, "/bin/did-not-run", NULL, time++);
	records_switch(&f->fake.switches[0], 10, false, time++, 0);
	records_switch(&f->fake.switches[0], 11, false, time++, 0);
	assert_int_equal(take(f), 0);
	assert_int_equal(f->result.n_objects, 0);
	assert_int_equal(f->result.n_missing, 2);
	text = output_of(NULL, "cat %s/snap/objects.map; grep objects_missing %s/snap/manifest",
			 f->dir, f->dir);
	assert_string_equal(
	    text, "- there was no room for it, or room was made for others\t/proc/self/exe\n"
		  "- there was no room for it, or room was made for others\t/no/such\\012file\n"
		  "objects_missing=2\n");
}

/* The kernel maps it into every process, from no file. */
static void the_vdso(void **state)
{
	struct fixture *f = *state;
	_cleanup_(freep) char *text = NULL, *path = NULL;
	struct mapfile vdso;
	size_t n;

	records_mmap2(&f->tasks, 10, "[vdso]", NULL, 1);
	records_mmap2(&f->tasks, 20, "[vdso]", NULL, 2);
	records_switch(&f->fake.switches[0], 10, false, 3, 0);
	records_switch(&f->fake.switches[0], 20, false, 4, 0);
	assert_int_equal(take(f), 0);
	assert_int_equal(f->result.n_objects, 1);
	assert_int_equal(f->result.n_missing, 0);
	text = output_of(&n, "cat %s/snap/objects.map", f->dir);
	assert_int_equal(n, 1);
	assert_has(text, "\t[vdso]\n");

	path = output_of(&n, "ls %s/snap/objects/.build-id/*/*/vdso", f->dir);
	assert_int_equal(n, 1);
	path[strcspn(path, "\n")] = '\0';
	assert_int_equal(mapfile_read(&vdso, AT_FDCWD, path), 0);
	assert_memory_equal(vdso.bytes, (const void *)getauxval(AT_SYSINFO_EHDR), vdso.size);
	mapfile_deinit(&vdso);
	free(output_of(NULL, "cd %s/snap && sha256sum --quiet --strict -c SHA256SUMS", f->dir));
}

/*
 * A build-id is only a note that anybody can write. Of two files with one, the first must not stand
 * for the second: each is found by its path; and if both were at one path, neither.
 */
static void two_files_with_one_build_id(void **state)
{
	struct fixture *f = *state;
	_cleanup_(freep) char *text = NULL, *expected = NULL;
	char paths[2][128], *hashes[2];
	struct object *object;
	struct buildid id;
	size_t n;
	int fd;

	for (size_t i = 0; i < 2; i++) {
		(void)snprintf(paths[i], sizeof(paths[i]), "%s/p%zu", f->dir, i);
		free(output_of(NULL, "cp /proc/%d/exe %s && printf %%%zuc x >>%s", (int)getpid(),
			       paths[i], i + 1, paths[i]));
		hashes[i] = output_of(NULL, "sha256sum <%s | cut -c-64 | tr -d '\\n'", paths[i]);
	}
	fd = open(paths[0], O_RDONLY | O_CLOEXEC);
	assert_int_equal(buildid_read(fd, &id), 0);
	(void)close(fd);
	records_mmap2(&f->tasks, 10, paths[0], &id, 1);
	records_mmap2(&f->tasks, 10, paths[1], &id, 2);
	records_switch(&f->fake.switches[0], 10, false, 3, 0);
	assert_int_equal(take(f), 0);
	assert_int_equal(f->result.n_objects, 2);
	text = output_of(&n, "cat %s/snap/objects.map", f->dir);
	assert_true(asprintf(&expected, "sha256:%s\t%s\nsha256:%s\t%s\n", hashes[0], paths[0],
			     hashes[1], paths[1]) > 0);
	assert_string_equal(text, expected);
	free(output_of(NULL,
		       "cd %s/snap && cmp objects/sha256/%s/elf %s && test ! -e objects/.build-id",
		       f->dir, hashes[0], paths[0]));
	free(output_of(NULL, "cd %s/snap && sha256sum --quiet --strict -c SHA256SUMS", f->dir));

	/* The one path with the other's content: two lines, so a reader knows that he does not. */
	free(output_of(NULL, "cp %s %s && rm -r %s/snap/*", paths[1], paths[0], f->dir));
	assert_int_equal(objectstore_add(f->store,
					 &(struct record_mmap2){
					     .prot = PROT_EXEC, .name = paths[0], .build_id = id },
					 0, &object),
			 0);
	assert_int_equal(take(f), 0);
	free(TAKE(text));
	text = output_of(&n, "grep -c '%s$' %s/snap/objects.map", paths[0], f->dir);
	assert_string_equal(text, "2\n");
	for (size_t i = 0; i < 2; i++)
		free(hashes[i]);
}

/* Two files of one path and build-id: the inode tells the second one from the first. */
static void two_files_at_one_path(void **state)
{
	struct fixture *f = *state;
	_cleanup_(freep) char *text = NULL;
	char path[128], other[128];
	struct buildid id;
	int fd;

	(void)snprintf(path, sizeof(path), "%s/program", f->dir);
	(void)snprintf(other, sizeof(other), "%s/other", f->dir);
	free(output_of(NULL, "cp /proc/%d/exe %s && cp %s %s && echo >>%s", (int)getpid(), path,
		       path, other, other));
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_int_equal(buildid_read(fd, &id), 0);
	(void)close(fd);
	records_mmap2(&f->tasks, 10, path, &id, 1);
	records_switch(&f->fake.switches[0], 10, false, 2, 0);
	assert_int_equal(take(f), 0);
	free(output_of(NULL, "cd %s/snap && rm -r * && ln %s %s.first && mv %s %s", f->dir, path,
		       path, other, path));
	records_mmap2(&f->tasks, 11, path, &id, 3);
	records_switch(&f->fake.switches[0], 11, false, 4, 0);
	assert_int_equal(take(f), 0);
	assert_int_equal(f->result.n_objects, 2);
	text =
	    output_of(NULL,
		      "cd %s/snap && cut -f 1 objects.map | sed \"s/sha256:$(sha256sum <%s.first "
		      "| cut -c -64)/first/; s/sha256:$(sha256sum <%s | cut -c -64)/second/; "
		      "s/$(stat -c %%Hd:%%Ld:%%i %s)/inode/\"",
		      f->dir, path, path, path);
	assert_string_equal(text, "first\n@inode second\n");
}

/*
 * Of two files with one build-id, one cannot be kept: the other must not be found by the build-id,
 * or it would be taken for that.
 */
static void a_missing_file_claims_a_build_id(void **state)
{
	struct fixture *f = *state;
	char kept[128], large[128];
	struct buildid id;
	int fd;

	(void)snprintf(kept, sizeof(kept), "%s/kept", f->dir);
	(void)snprintf(large, sizeof(large), "%s/large", f->dir);
	free(output_of(NULL, "cp /proc/%d/exe %s && cp %s %s && truncate -s 513M %s", (int)getpid(),
		       kept, kept, large, large));
	fd = open(kept, O_RDONLY | O_CLOEXEC);
	assert_int_equal(buildid_read(fd, &id), 0);
	(void)close(fd);
	records_mmap2(&f->tasks, 10, kept, &id, 1);
	records_switch(&f->fake.switches[0], 10, false, 2, 0);

	/* Alone it lies under its build-id, whatever those claim who did not run. */
	records_mmap2(&f->tasks, 11, large, &id, 3);
	assert_int_equal(take(f), 0);
	free(output_of(NULL, "cd %s/snap && grep -q '^[0-9a-f]*\t%s$' objects.map && rm -r *",
		       f->dir, kept));

	records_mmap2(&f->tasks, 10, large, &id, 4);
	assert_int_equal(take(f), 0);
	free(output_of(NULL,
		       "cd %s/snap && test ! -e objects/.build-id && "
		       "grep -q '^sha256:[0-9a-f]*\t%s$' objects.map && "
		       "grep -q '^- it is larger than 512 MiB.*\t%s$' objects.map",
		       f->dir, kept, large));
}

static void say(const struct fixture *f, const char *name, const char *text, struct jitfile *file)
{
	file->fd = openat(f->dir_fd, name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_true(file->fd >= 0);
	assert_int_equal(write(file->fd, text, strlen(text)), strlen(text));
	file->size = strlen(text);
}

/* What JITs wrote, of those who ran: as far as it went then, within the limit; or why not. */
static void files_of_jits(void **state)
{
	struct fixture *f = *state;
	_cleanup_(freep) char *text = NULL;
	struct jitfile files[] = {
		{ .pid = 10, .is_dump = true },
		{ .pid = 11 },
		{ .pid = 12, .is_dump = true },
		{ .pid = 13, .is_dump = true, .fd = -1, .reason = "it is a symbolic link" },
		{ .pid = 14, .is_dump = true },
		/* Read at 0 it is an error: as of a server that lost the file. */
		{ .pid = 15, .is_dump = true, .fd = open("/proc/self/mem", O_RDONLY | O_CLOEXEC) },
		{ .pid = 16 },
	};

	for (uint32_t i = 0; i < ARRAY_LEN(files); i++)
		if (i != 4)
			records_switch(&f->fake.switches[0], 10 + i, false, 7 + i, 0);
	say(f, "d10", "JiTD1", &files[0]);
	say(f, "m11", "400000 10 f", &files[1]);
	say(f, "d12", "", &files[2]);
	say(f, "d14", "did not run", &files[4]);
	say(f, "m16", "400000 10 g", &files[6]);
	files[0].size = 4; /* it grew since */
	files[5].size = 4;
	assert_int_equal(ftruncate(files[2].fd, 1 << 30), 0);
	files[2].size = 1 << 30; /* all zeros */
	f->known.jitfiles = files;
	f->known.n_jitfiles = ARRAY_LEN(files);
	f->request.jit_max = 256 << 20;
	assert_int_equal(take(f), 0);

	text = manifest(f);
	assert_has(text,
		   "\njit.10=4\nperfmap.11=11\n"
		   "jit.12=refused: its 1073741824 bytes are more than JitMax= leaves to user "
		   "0\n"
		   "jit.13=refused: it is a symbolic link\n"
		   "jit.15=refused: it cannot be read: Input/output error\n"
		   "perfmap.16=11\n");
	assert_has_not(text, "jit.14");
	free(text);
	text = output_of(NULL, "cd %s/snap/jit && ls && cat jit-10.dump perf-1*.map", f->dir);
	assert_string_equal(text, "jit-10.dump\nperf-11.map\nperf-16.map\n"
				  "JiTD400000 10 f400000 10 g");
	free(output_of(NULL, "cd %s/snap && sha256sum --quiet --strict -c SHA256SUMS", f->dir));
	for (size_t i = 0; i < ARRAY_LEN(files); i++)
		(void)fd_close(files[i].fd);
}

/* The files of a user who has many leave room for another one's, in whatever order they come; what
 * is left then is for the former. */
static void files_of_two_users(void **state)
{
	struct fixture *f = *state;
	_cleanup_(freep) char *text = NULL;
	struct jitfile files[] = {
		{ .pid = 10, .uid = 1000 }, { .pid = 11, .uid = 1000 }, { .pid = 12, .uid = 1000 },
		{ .pid = 13, .uid = 1001 }, { .pid = 14, .uid = 1000 },
	};
	char name[8];

	for (uint32_t i = 0; i < ARRAY_LEN(files); i++) {
		records_switch(&f->fake.switches[0], 10 + i, false, 7 + i, 0);
		(void)snprintf(name, sizeof(name), "m%u", i);
		say(f, name, "0123456789", &files[i]);
	}
	f->known.jitfiles = files;
	f->known.n_jitfiles = ARRAY_LEN(files);
	f->request.jit_max = 40;
	assert_int_equal(take(f), 0);
	text = manifest(f);
	assert_has(text, "\nperfmap.10=10\nperfmap.11=10\nperfmap.12=10\nperfmap.13=10\n"
			 "perfmap.14=refused: its 10 bytes are more than JitMax= leaves to user "
			 "1000\n");
	for (size_t i = 0; i < ARRAY_LEN(files); i++)
		(void)fd_close(files[i].fd);
}

/* Nor do they make a snapshot of somebody else large. */
static void files_beyond_a_part(void **state)
{
	struct fixture *f = *state;
	_cleanup_(freep) char *text = NULL;
	struct jitfile files[] = {
		{ .pid = 10, .uid = FIRST },  { .pid = 11, .uid = FIRST },
		{ .pid = 12, .uid = FIRST },  { .pid = 13, .uid = 0 },
		{ .pid = 14, .uid = SECOND },
	};
	char name[8];

	for (uint32_t i = 0; i < ARRAY_LEN(files); i++) {
		records_switch(&f->fake.switches[0], 10 + i, false, 7 + i, 0);
		(void)snprintf(name, sizeof(name), "m%u", i);
		say(f, name, i == 3 ? "01234567890123456789012345" : "0123456789", &files[i]);
	}
	f->known.jitfiles = files;
	f->known.n_jitfiles = ARRAY_LEN(files);
	f->request.jit_max = 1000;
	f->request.snapshots_max = f->request.snapshots_taken = 320;
	assert_int_equal(take(f), 0);
	text = manifest(f);
	assert_has(text, "\nperfmap.10=10\nperfmap.11=10\n"
			 "perfmap.12=refused: its 10 bytes are more than MaxUse= leaves to user "
			 "60001\n"
			 "perfmap.13=26\nperfmap.14=10\n");
	for (size_t i = 0; i < ARRAY_LEN(files); i++)
		(void)fd_close(files[i].fd);
}

static void failures(void **state)
{
	struct fixture *f = *state;
	const atomic_bool cancel = true;

	f->request.cancel = &cancel;
	assert_int_equal(take(f), -ECANCELED);
	f->request.cancel = NULL;
	assert_int_equal(take(f), 0);
	/* The directory is not empty any more. */
	assert_int_equal(take(f), -EEXIST);
}

/* Make the directory of the snapshot anew. */
static void empty_directory(struct fixture *f)
{
	char command[256];

	(void)close(f->out_fd);
	(void)snprintf(command, sizeof(command), "rm -rf %s/snap && mkdir %s/snap", f->dir, f->dir);
	assert_int_equal(system(command), 0);
	(void)snprintf(command, sizeof(command), "%s/snap", f->dir);
	f->out_fd = (int)syscall(SYS_open, command, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(f->out_fd >= 0);
}

/* A failure names the file or folder that could not be written: something lies in its place. */
static void failures_are_named(void **state)
{
	static const struct {
		const char *name;
		int error;
	} rows[] = {
		{ "data", -EEXIST },     { "mem", -ENOTDIR },       { "objects.map", -EEXIST },
		{ "manifest", -EEXIST }, { "SHA256SUMS", -EEXIST },
	};
	_cleanup_(codestore_freep) struct codestore *store = NULL;
	struct fixture *f = *state;
	int fd;

	assert_int_equal(codestore_new(1 << 20, &store), 0);
	put_code(store, 0, CODERECORD_START, "");
	put_code(store, 0, CODERECORD_NEW, "abcd");
	f->known.code = store;
	records_switch(&f->fake.switches[0], (uint32_t)getpid(), false, 2, 0);
	f->request.mem_max = 1 << 20;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		print_message("  %s\n", rows[i].name);
		empty_directory(f);
		fd = openat(f->out_fd, rows[i].name, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
		assert_true(fd >= 0);
		(void)close(fd);
		assert_int_equal(take(f), rows[i].error);
		assert_string_equal(f->failed, rows[i].name);
	}
	empty_directory(f);
}

/* Real PT, of which it is known what it decodes to. */
static void a_real_trace(void **state)
{
	struct fixture *f = *state;
	struct source_facts *facts = &f->fake.source.facts;
	_cleanup_(freep) char *text = NULL;
	char *path = realpath(DATA "/hello", NULL);
	struct mapfile pt;
	const uint64_t tsc = UINT64_C(0x2fa1088fac05e2); /* its first TSC packet */
	uint64_t ns;
	size_t n;

	if (!path || mapfile_read(&pt, AT_FDCWD, DATA "/pt.bin") < 0) {
		print_message("  " DATA " is not here\n");
		free(path);
		skip();
	}
	*facts = (struct source_facts){
		.name = "fake",
		.pmu_type = 6,
		.attr_config = 0x2601 | 3 << 14,
		.mask_tsc = 0x400,
		.mask_noretcomp = 0x800,
		.mask_mtc = 0x200,
		.mask_mtc_period = 0x3c000,
		.mask_cyc = 2,
		.tsc = { .valid = true,
			 .shift = 31,
			 .mult = 581029125,
			 .zero = UINT64_C(18444502336406842448) },
		.tsc_ctc_numerator = 308,
		.tsc_ctc_denominator = 2,
		.max_nonturbo_ratio = 37,
		.cpuid = "GenuineIntel,6,85,4",
	};
	ns = facts->tsc.zero + (tsc >> 31) * facts->tsc.mult +
	     (((tsc & 0x7fffffff) * facts->tsc.mult) >> 31);
	f->fake.moment.ns = ns + 1000000;
	records_mmap2(&f->tasks, 42, path, NULL, ns - 2000);
	records_switch(&f->fake.switches[1], 42, false, ns - 1000, 1);
	records_add(&f->fake.aux[1].bytes, pt.bytes, pt.size);
	mapfile_deinit(&pt);
	assert_int_equal(take(f), 0);
	free(path);

	if (!has_perf())
		return;
	text = output_of(&n, "perf script -i %s/snap --itrace=i1i -F tid,ip 2>&1", f->dir);
	assert_int_equal(n, 8);
	assert_has(text, " 401000\n");
	assert_has(text, " 401025\n");
}

static int write_again(void *userdata)
{
	struct fixture *f = userdata;
	const char *what = NULL;
	int r;

	empty_directory(f);
	r = snapshot_write(&f->request, f->out_fd, &f->result, &what);
	if (r < 0)
		assert_non_null(what);
	return r;
}

/* It may lack an object or a clock; but it is whole, and what it says is in it is. */
static void is_whole(void *userdata)
{
	struct fixture *f = userdata;
	_cleanup_(trace_freep) struct trace *trace = NULL;
	_cleanup_(freep) char *path = NULL, *text = NULL;
	char *message = NULL;
	size_t n;

	assert_true(asprintf(&path, "%s/snap", f->dir) > 0);
	if (input_open(path, false, NULL, &trace, &message) < 0)
		fail_msg("%s failed, and: %s", failing_name(), message);
	assert_int_equal(trace->truncated_at, 0);
	assert_int_equal(f->result.n_cpus, 2);
	assert_int_equal(trace->n_queues, 2);
	assert_int_equal(f->result.bytes_pt, 5000 + 300);
	assert_modes(f);
	/* Each object is there, or it is said why not. */
	assert_int_equal(f->result.n_objects + f->result.n_missing, f->known.n_objects);
	text = output_of(&n, "cat %s/snap/objects.map", f->dir);
	assert_int_equal(n, f->known.n_objects);
	assert_has(text, "\t/usr/bin/true\n");
	free(output_of(&n, "find %s/snap/objects -name elf -type f 2>&1 | cat", f->dir));
	assert_int_equal(n, f->result.n_objects);
	free(output_of(NULL, "cd %s/snap && sha256sum --quiet --strict -c SHA256SUMS", f->dir));
}

static void calls_that_fail(void **state)
{
	struct fixture *f = *state;
	static const uint8_t pt[5000] = { 0x02, 0x82, 0x02, 0x82 };
	struct object **objects;
	struct sideband_view tasks;

	records_add(&f->fake.aux[0].bytes, pt, 5000);
	records_add(&f->fake.aux[2].bytes, pt, 300);
	records_switch(&f->fake.switches[0], 7, false, 50, 0);
	records_comm(&f->tasks, 7, "demo", 5);
	records_mmap2(&f->tasks, 7, "/usr/bin/true", NULL, 6);
	assert_int_equal(take(f), 0);
	assert_int_equal(sideband_view_init(f->sideband, &tasks), 0);
	assert_int_equal(objectstore_list(f->store, &objects, &f->known.n_objects), 0);
	f->known.tasks = &tasks;
	f->known.objects = objects;
	failing_each(write_again, is_whole, f);
	for (size_t i = 0; i < f->known.n_objects; i++)
		(void)object_unref(objects[i]);
	free(objects);
	sideband_view_deinit(&tasks);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(an_earlier_recorder, set_up, tear_down),
		cmocka_unit_test_setup_teardown(whose_records_begin_later, set_up, tear_down),
		cmocka_unit_test_setup_teardown(nothing_recorded, set_up, tear_down),
		cmocka_unit_test_setup_teardown(suspended_meanwhile, set_up, tear_down),
		cmocka_unit_test_setup_teardown(records_are_read_by_perf, set_up, tear_down),
		cmocka_unit_test_setup_teardown(switches_that_are_cut, set_up, tear_down),
		cmocka_unit_test_setup_teardown(pt_bytes, set_up, tear_down),
		cmocka_unit_test_setup_teardown(overwritten, set_up, tear_down),
		cmocka_unit_test_setup_teardown(overwritten_without_psb, set_up, tear_down),
		cmocka_unit_test_setup_teardown(objects_of_those_who_ran, set_up, tear_down),
		cmocka_unit_test_setup_teardown(all_while_there_is_room, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_part_of_one_users, set_up, tear_down),
		cmocka_unit_test_setup_teardown(more_than_a_part, set_up, tear_down),
		cmocka_unit_test_setup_teardown(one_content_of_two, set_up, tear_down),
		cmocka_unit_test_setup_teardown(two_files_with_one_build_id, set_up, tear_down),
		cmocka_unit_test_setup_teardown(two_files_at_one_path, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_missing_file_claims_a_build_id, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(objects_that_were_given_up, set_up, tear_down),
		cmocka_unit_test_setup_teardown(the_vdso, set_up, tear_down),
		cmocka_unit_test_setup_teardown(scopes, set_up, tear_down),
		cmocka_unit_test_setup_teardown(anothers_vdso, set_up, tear_down),
		cmocka_unit_test_setup_teardown(memory_of_two_users, set_up, tear_down),
		cmocka_unit_test_setup_teardown(memory_of_two_users_with_much, set_up, tear_down),
		cmocka_unit_test_setup_teardown(memory_beyond_a_part, set_up, tear_down),
		cmocka_unit_test_setup_teardown(scattered_pages, set_up, tear_down),
		cmocka_unit_test_setup_teardown(claimed_memory, set_up, tear_down),
		cmocka_unit_test_setup_teardown(forged_memory, set_up, tear_down),
		cmocka_unit_test_setup_teardown(memory_of_a_process_that_is_gone, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(code_for_which_there_is_no_room, set_up, tear_down),
		cmocka_unit_test_setup_teardown(code_beyond_a_part, set_up, tear_down),
		cmocka_unit_test_setup_teardown(files_of_jits, set_up, tear_down),
		cmocka_unit_test_setup_teardown(files_of_two_users, set_up, tear_down),
		cmocka_unit_test_setup_teardown(files_beyond_a_part, set_up, tear_down),
		cmocka_unit_test_setup_teardown(failures, set_up, tear_down),
		cmocka_unit_test_setup_teardown(failures_are_named, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_real_trace, set_up, tear_down),
		cmocka_unit_test_setup_teardown(calls_that_fail, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
