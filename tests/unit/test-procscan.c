/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "daemon/helper/collector/mappings.h"
#include "daemon/pt/procscan.h"
#include "tests/lib/tempdir.h"
#include "tests/unit/records.h"
#include "util/dirs.h"
#include "util/mapfile.h"

#define LINES_MAX 512

struct tree;

/* What a scan told, a line of text for each record, in its order. */
struct told {
	char *lines[LINES_MAX];
	size_t n;
	uint64_t time; /* of the clock: grows by 1 each time it is asked */
	uint64_t last; /* stamp */
	void (*at_time)(struct told *told);
	const struct tree *tree;
	uint32_t only; /* tell of this process only; 0: of all */

	int proc_fd;
	uint32_t late;    /* a process that takes too long, */
	unsigned n_late;  /* so often; */
	unsigned n_again; /* how often those were asked for again */
	bool was_asked;   /* for the mappings of the present process */
	struct mappings *mappings;
};

static int put(void *userdata, const void *bytes, size_t size)
{
	struct told *t = userdata;
	struct cursor c = cursor_from(bytes, size);
	struct record_mmap2 m;
	struct record record;
	char hex[BUILDID_HEX_MAX];
	uint32_t ids[2];

	assert_int_equal(record_next(&c, &record), 0);
	assert_int_equal(cursor_left(&c), 0);
	assert_int_equal(record.trailer.id, RECORD_ID_SIDEBAND);
	assert_true(record.trailer.time >= t->last && record.trailer.time <= t->time);
	t->last = record.trailer.time;
	if (t->only && record.trailer.pid != t->only)
		return 0;
	assert_true(t->n < LINES_MAX);
	if (record.header.type == PERF_RECORD_COMM) {
		assert_int_equal(cursor_get(&record.body, sizeof(ids), ids), 0);
		assert_true(asprintf(&t->lines[t->n++], "comm %u %u %s", ids[0], ids[1],
				     (const char *)record.body.pos) > 0);
		return 0;
	}
	assert_int_equal(record_get_mmap2(&record, &m), 0);
	assert_int_equal(m.tid, m.pid);
	assert_true(asprintf(&t->lines[t->n++], "map %u %lx+%lx@%lx %u%s %s %u:%u:%lu %s", m.pid,
			     (unsigned long)m.addr, (unsigned long)m.len, (unsigned long)m.pgoff,
			     m.prot, m.flags & MAP_SHARED ? "s" : "p",
			     m.build_id.size ? buildid_hex(&m.build_id, hex) : "-", m.maj, m.min,
			     (unsigned long)m.ino, m.name) > 0);
	return 0;
}

static uint64_t count(void *userdata)
{
	struct told *t = userdata;

	if (t->at_time)
		t->at_time(t);
	return ++t->time;
}

/* What the collector does for ptd. */
struct written {
	struct told *told;
	uint8_t *bytes;
	size_t size;
};

static uint64_t count_for_maps(void *userdata)
{
	return count(((struct written *)userdata)->told);
}

static int write_map(void *userdata, const void *bytes, size_t size)
{
	struct written *w = userdata;

	w->bytes = realloc(w->bytes, w->size + size);
	assert_non_null(w->bytes);
	memcpy(w->bytes + w->size, bytes, size);
	w->size += size;
	return 0;
}

/* It has to be asked twice. */
static int maps_of(void *userdata, uint32_t pid, uint64_t wait_ns, uint8_t **ret_bytes,
		   size_t *ret_size)
{
	struct told *told = userdata;
	struct written written = { .told = told };
	char name[16];
	int r, pid_fd;

	(void)wait_ns;
	told->was_asked = !told->was_asked;
	if (told->was_asked)
		return -EAGAIN;
	if (pid == told->late && told->n_late > 0) {
		told->n_late--;
		return -ETIMEDOUT;
	}

	(void)snprintf(name, sizeof(name), "%u", pid);
	pid_fd = openat(told->proc_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (pid_fd < 0)
		return -errno;
	if (!told->mappings)
		assert_int_equal(mappings_new(&told->mappings), 0);
	r = mappings_write(told->mappings, &(struct mappings_options){ .pid_fd = pid_fd,
								       .pid = pid,
								       .now = count_for_maps,
								       .put = write_map,
								       .userdata = &written });
	(void)close(pid_fd);
	if (r < 0)
		free(written.bytes);
	*ret_bytes = r < 0 ? NULL : written.bytes;
	*ret_size = r < 0 ? 0 : written.size;
	return r;
}

static void count_again(void *userdata)
{
	struct told *told = userdata;

	told->n_again++;
}

static struct procscan_stats scan(struct told *told, const char *dir, uint64_t budget_ns)
{
	const int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct procscan_stats stats;
	struct procscan *scan;
	int r;

	assert_true(fd >= 0);
	told->proc_fd = fd;
	assert_int_equal(procscan_new(&(struct procscan_options){ .proc_fd = fd,
								  .now = count,
								  .maps = maps_of,
								  .put = put,
								  .again = count_again,
								  .userdata = told },
				      &scan),
			 0);
	while ((r = procscan_step(scan, budget_ns)) == PROCSCAN_MORE)
		;
	assert_int_equal(r, 0);
	stats = procscan_stats(scan);
	(void)procscan_free(scan);
	told->mappings = mappings_free(told->mappings);
	(void)close(fd);
	return stats;
}

static void told_deinit(struct told *t)
{
	for (size_t i = 0; i < t->n; i++)
		free(t->lines[i]);
	t->n = 0;
}

static bool has(const struct told *t, const char *line)
{
	for (size_t i = 0; i < t->n; i++)
		if (strcmp(t->lines[i], line) == 0)
			return true;
	return false;
}

/* --- a tree that looks like /proc ------------------------------------------------------------ */

struct tree {
	char dir[TEMPDIR_SIZE];
	char self[64]; /* a link to our own program */
	struct buildid id;
	uint64_t ino; /* of our own program */
};

/* Make the folders above @name, which may end with a slash. */
static void make(const struct tree *t, const char *name)
{
	const int fd = open(t->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char path[256];

	(void)snprintf(path, sizeof(path), "%s", name);
	*strrchr(path, '/') = '\0';
	assert_int_equal(dirs_make(fd, path, 0755), 0);
	(void)close(fd);
}

static void make_link(const struct tree *t, const char *name, const char *to)
{
	char path[256];

	make(t, name);
	(void)snprintf(path, sizeof(path), "%s/%s", t->dir, name);
	(void)unlink(path);
	assert_int_equal(symlink(to, path), 0);
}

static int set_up(void **state)
{
	struct tree *t = calloc(1, sizeof(*t));
	struct stat st;
	int fd;

	tempdir_make("procscan", t->dir);
	(void)snprintf(t->self, sizeof(t->self), "/proc/%d/exe", (int)getpid());
	fd = open(t->self, O_RDONLY | O_CLOEXEC);
	assert_int_equal(buildid_read(fd, &t->id), 0);
	assert_int_not_equal(t->id.size, 0);
	assert_int_equal(fstat(fd, &st), 0);
	t->ino = st.st_ino;
	(void)close(fd);
	*state = t;
	return 0;
}

static int tear_down(void **state)
{
	struct tree *t = *state;

	tempdir_remove(t->dir);
	free(t);
	return 0;
}

/* Every kind of line that a maps file has, and what is told of it. */
static void kinds_of_mappings(void **state)
{
	static const struct {
		const char *maps;
		const char *told; /* behind "map 100 "; NULL: nothing */
	} rows[] = {
		{ "1000-3000 r-xp 00002000 08:02 77   /bin/a",
		  "1000+2000@2000 5p - 8:2:77 /bin/a" },
		{ "1000-3000 r--p 00002000 08:02 77   /bin/a", NULL },
		{ "1000-3000 ---p 00002000 08:02 77   /bin/a", NULL },
		{ "1000-3000 --xs 00000000 103:ab 77  /bin/a b ",
		  "1000+2000@0 4s - 259:171:77 /bin/a b " },
		{ "1000-2000 r-xp 00000000 08:02 77   /tmp/gone (deleted)",
		  "1000+1000@0 5p - 8:2:77 /tmp/gone (deleted)" },
		{ "1000-2000 rwxs 00000000 00:01 9    /memfd:jit (deleted)",
		  "1000+1000@0 7s - 0:1:9 /memfd:jit (deleted)" },
		{ "1000-2000 rwxp 00000000 00:00 0 ", "1000+1000@0 7p - 0:0:0 //anon" },
		{ "1000-2000 rwxp 00000000 00:00 0", "1000+1000@0 7p - 0:0:0 //anon" },
		{ "1000-2000 rwxp 00000000 00:00 0    [anon:v8]", "1000+1000@0 7p - 0:0:0 //anon" },
		{ "1000-2000 rwxs 00000000 00:01 5    [anon_shmem:x]",
		  "1000+1000@0 7s - 0:1:5 /dev/zero (deleted)" },
		{ "1000-2000 rwxp 00000000 00:00 0    [heap]", "1000+1000@0 7p - 0:0:0 [heap]" },
		{ "7ffd1000-7ffd3000 r-xp 00000000 00:00 0   [vdso]",
		  "7ffd1000+2000@0 5p - 0:0:0 [vdso]" },
		{ "ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0 [vsyscall]", NULL },
		{ "1000-2000 r-xp 00000000 08:02 77   /tmp/a\\012b",
		  "1000+1000@0 5p - 8:2:77 /tmp/a\nb" },
		{ "1000-2000 r-xp 00000000 08:02 77   /tmp/\\012\\0121\\",
		  "1000+1000@0 5p - 8:2:77 /tmp/\n\n1\\" },
		{ "3000-1000 r-xp 00000000 08:02 77   /bin/a", NULL },
		{ "1000-1000 r-xp 00000000 08:02 77   /bin/a", NULL },
		{ "1000 r-xp 00000000 08:02 77   /bin/a", NULL },
		{ "1000-2000 r-x", NULL },
		{ "1000-2000 r-xp 0", NULL },
		{ "1000-2000 r-xp 00000000 08-02 77   /bin/a", NULL },
		{ "1000-2000 r-xp 00000000 08:02 7f   /bin/a", NULL },
		{ "1000-2000 r-xp 00000000 123456789:02 7   /bin/a", NULL },
		{ "11112222333344445-2000 r-xp 00000000 08:02 7   /bin/a", NULL },
		{ "nonsense", NULL },
		{ "", NULL },
	};
	struct tree *t = *state;

	tempdir_put_text(t->dir, "100/task/100/comm", "a\n");
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char text[256], line[256];
		struct told told = {};
		struct procscan_stats stats;

		(void)snprintf(text, sizeof(text), "%s\n", rows[i].maps);
		tempdir_put_text(t->dir, "100/maps", text);
		stats = scan(&told, t->dir, 0);
		assert_int_equal(stats.n_processes, 1);
		assert_int_equal(stats.n_threads, 1);
		assert_int_equal(stats.n_maps, rows[i].told != NULL);
		assert_int_equal(told.n, rows[i].told ? 2 : 1);
		assert_string_equal(told.lines[0], "comm 100 100 a");
		if (rows[i].told) {
			(void)snprintf(line, sizeof(line), "map 100 %s", rows[i].told);
			assert_string_equal(told.lines[1], line);
		}
		told_deinit(&told);
	}
}

static void threads(void **state)
{
	struct tree *t = *state;
	struct told told = {};
	struct procscan_stats stats;

	tempdir_put_text(t->dir, "7/task/7/comm", "main\n");
	tempdir_put_text(t->dir, "7/task/8/comm", "a\nb) R 1\n");
	tempdir_put_text(t->dir, "7/task/9/comm", "123456789abcdef\n");
	tempdir_put_text(t->dir, "7/task/10/comm", ""); /* it has just ended */
	make(t, "7/task/11/");
	tempdir_put_text(t->dir, "7/task/x/comm", "none\n");
	tempdir_put_text(t->dir, "7/maps",
			 "1000-2000 r-xp 0 8:2 77 /a\n3000-4000 r-xp 0 8:2 77 /a\n");
	tempdir_put_text(t->dir, "2/task/2/comm", "kthreadd\n"); /* no address space */
	tempdir_put_text(t->dir, "2/maps", "");
	make(t, "3/"); /* has ended */
	tempdir_put_text(t->dir, "4/task/4/comm", "zombie\n");
	make(t, "self/task/1/");
	make(t, "99999999999/task/1/");
	make(t, "0/task/1/");

	stats = scan(&told, t->dir, UINT64_MAX);
	assert_int_equal(stats.n_processes, 3);
	assert_int_equal(stats.n_threads, 5);
	assert_int_equal(stats.n_maps, 2);
	assert_int_equal(told.n, 7);
	assert_true(has(&told, "comm 7 7 main"));
	assert_true(has(&told, "comm 7 8 a\nb) R 1"));
	assert_true(has(&told, "comm 7 9 123456789abcdef"));
	assert_true(has(&told, "comm 2 2 kthreadd"));
	assert_true(has(&told, "comm 4 4 zombie"));
	assert_true(has(&told, "map 7 1000+1000@0 5p - 8:2:77 /a"));
	assert_true(has(&told, "map 7 3000+1000@0 5p - 8:2:77 /a"));
	told_deinit(&told);
}

/* Names as long as the kernel can make them, longer ones, and more text than a buffer takes. */
static void long_names(void **state)
{
	static const size_t sizes[] = { 4094, 4095, 4096, 16384, 32700, 32768, 40000, 70000 };
	struct tree *t = *state;

	tempdir_put_text(t->dir, "100/task/100/comm", "a\n");
	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		const size_t n = sizes[i];
		char *text = malloc(n + 256), *line;
		struct told told = {};
		int at;

		at = sprintf(text, "1000-2000 r-xp 0 8:2 77 ");
		memset(text + at, '/', n);
		memset(text + at + 1, 'x', n - 1);
		(void)sprintf(text + at + n, "\n8000-9000 r-xp 0 8:2 78 /last\n");
		tempdir_put_text(t->dir, "100/maps", text);
		(void)scan(&told, t->dir, 0);
		assert_string_equal(told.lines[told.n - 1],
				    "map 100 8000+1000@0 5p - 8:2:78 /last");
		assert_int_equal(told.n, n < 32768 ? 3 : 2);
		text[at + (int)n] = '\0';
		assert_true(asprintf(&line, "map 100 1000+1000@0 5p - 8:2:77 %s",
				     n < PATH_MAX ? text + at : "//toolong") > 0);
		if (n < 32768)
			assert_string_equal(told.lines[1], line);
		free(line);
		free(text);
		told_deinit(&told);
	}
}

/* The file of a mapping is told by map_files; else by its path in the process's own root, if it is
 * the one that is meant; and whatever lies there. */
static void build_ids(void **state)
{
	struct tree *t = *state;
	struct told told = {};
	char maps[512], hex[BUILDID_HEX_MAX], line[256];

	buildid_hex(&t->id, hex);
	tempdir_put_text(t->dir, "100/task/100/comm", "a\n");
	make_link(t, "100/root", "../root");
	make_link(t, "100/map_files/1000-2000", t->self);
	make_link(t, "100/map_files/2000-3000", t->self);
	make_link(t, "root/bin/by-path", t->self); /* leads out of the root: not followed */
	tempdir_put_text(t->dir, "root/bin/other", "no ELF file");
	make_link(t, "root/bin/leads-out", "../../../../../../../bin/other");
	make(t, "root/dev/");
	(void)snprintf(maps, sizeof(maps), "%s/root/dev/fifo", t->dir);
	assert_int_equal(mkfifo(maps, 0600), 0);
	(void)snprintf(maps, sizeof(maps),
		       "1000-2000 r-xp 0 8:2 %lu /gone (deleted)\n"
		       "2000-3000 r-xp 0 8:2 %lu /bin/again\n"
		       "3000-4000 r-xp 0 8:2 5 /bin/by-path\n"
		       "4000-5000 r-xp 0 8:2 6 /bin/other\n"
		       "5000-6000 r-xp 0 8:2 7 /dev/fifo\n"
		       "6000-7000 r-xp 0 8:2 8 /bin/leads-out\n"
		       "7000-8000 r-xp 0 8:2 9 /bin/missing\n",
		       (unsigned long)t->ino, (unsigned long)t->ino);
	tempdir_put_text(t->dir, "100/maps", maps);
	(void)scan(&told, t->dir, 0);
	assert_int_equal(told.n, 8);
	(void)snprintf(line, sizeof(line), "map 100 1000+1000@0 5p %s 0:0:0 /gone (deleted)", hex);
	assert_string_equal(told.lines[1], line);
	(void)snprintf(line, sizeof(line), "map 100 2000+1000@0 5p %s 0:0:0 /bin/again", hex);
	assert_string_equal(told.lines[2], line);
	assert_string_equal(told.lines[3], "map 100 3000+1000@0 5p - 8:2:5 /bin/by-path");
	assert_string_equal(told.lines[4], "map 100 4000+1000@0 5p - 8:2:6 /bin/other");
	assert_string_equal(told.lines[5], "map 100 5000+1000@0 5p - 8:2:7 /dev/fifo");
	assert_string_equal(told.lines[6], "map 100 6000+1000@0 5p - 8:2:8 /bin/leads-out");
	assert_string_equal(told.lines[7], "map 100 7000+1000@0 5p - 8:2:9 /bin/missing");
	told_deinit(&told);
}

/* Once the first process has been told of, the file that both map has another build-id. */
static void rewrites(struct told *told)
{
	struct mapfile file;
	const uint8_t *at;
	char path[256];
	int fd;

	if (told->n != 2)
		return;
	told->at_time = NULL;
	(void)snprintf(path, sizeof(path), "%s/root/bin/program", told->tree->dir);
	assert_int_equal(mapfile_read(&file, AT_FDCWD, path), 0);
	at = memmem(file.bytes, file.size, told->tree->id.bytes, told->tree->id.size);
	assert_non_null(at);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	(void)usleep(50000); /* the clock of files is slow */
	assert_int_equal(pwrite(fd, "\xee", 1, at - file.bytes), 1);
	(void)close(fd);
	mapfile_deinit(&file);
}

/* An inode number, and a device, are no file: it may be another by now, or always have been on
 * btrfs. */
static void one_inode_two_files(void **state)
{
	struct tree *t = *state;
	struct told told = { .at_time = rewrites, .tree = t };
	char path[256], maps[128], hex[BUILDID_HEX_MAX];
	struct buildid other = t->id;
	struct mapfile self;
	struct stat st;
	int fd;

	other.bytes[0] = 0xee;
	make(t, "root/bin/");
	(void)snprintf(path, sizeof(path), "%s/root/bin/program", t->dir);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0755);
	assert_int_equal(mapfile_read(&self, AT_FDCWD, t->self), 0);
	assert_int_equal(write(fd, self.bytes, self.size), self.size);
	assert_int_equal(fstat(fd, &st), 0);
	(void)close(fd);
	mapfile_deinit(&self);
	(void)snprintf(maps, sizeof(maps), "1000-2000 r-xp 0 8:2 %lu /bin/program\n",
		       (unsigned long)st.st_ino);
	for (const char *const *pid = (const char *[]){ "100", "101", NULL }; *pid; pid++) {
		char name[64];

		(void)snprintf(name, sizeof(name), "%s/task/%s/comm", *pid, *pid);
		tempdir_put_text(t->dir, name, "a\n");
		(void)snprintf(name, sizeof(name), "%s/maps", *pid);
		tempdir_put_text(t->dir, name, maps);
		(void)snprintf(name, sizeof(name), "%s/root", *pid);
		make_link(t, name, "../root");
	}
	(void)scan(&told, t->dir, 0);
	assert_int_equal(told.n, 4);
	assert_non_null(strstr(told.lines[1], buildid_hex(&t->id, hex)));
	assert_non_null(strstr(told.lines[3], buildid_hex(&other, hex)));
	told_deinit(&told);
}

/* Between the stamp and the look at its maps, the process executes another program. */
static void executes(struct told *told)
{
	const struct tree *t = told->tree;

	if (told->time != 1) /* 0: before its name is read */
		return;
	make_link(t, "100/exe", "b");
	tempdir_put_text(t->dir, "100/maps", "2000-3000 r-xp 0 8:2 78 /b\n");
}

/* While one is told of, the next one begins: 101, 102, ... */
static void forks(struct told *told)
{
	char name[64];

	if (told->n % 2 == 0 || told->n >= 6)
		return;
	(void)snprintf(name, sizeof(name), "%zu/task/%zu/comm", 101 + told->n / 2,
		       101 + told->n / 2);
	tempdir_put_text(told->tree->dir, name, "child\n");
	(void)snprintf(name, sizeof(name), "%zu/maps", 101 + told->n / 2);
	tempdir_put_text(told->tree->dir, name, "1000-2000 r-xp 0 8:2 77 /a\n");
}

static void fork_meanwhile(void **state)
{
	const struct tree *t = *state;
	struct told told = { .at_time = forks, .tree = t };
	struct procscan_stats stats;

	tempdir_put_text(t->dir, "100/task/100/comm", "first\n");
	tempdir_put_text(t->dir, "100/maps", "1000-2000 r-xp 0 8:2 77 /a\n");
	stats = scan(&told, t->dir, 0);
	assert_int_equal(stats.n_processes, 4);
	assert_int_equal(told.n, 8);
	assert_true(has(&told, "map 100 1000+1000@0 5p - 8:2:77 /a"));
	assert_true(has(&told, "map 101 1000+1000@0 5p - 8:2:77 /a"));
	assert_true(has(&told, "map 102 1000+1000@0 5p - 8:2:77 /a"));
	assert_true(has(&told, "map 103 1000+1000@0 5p - 8:2:77 /a"));
	told_deinit(&told);
}

/* On a busy machine a process may take too long: it is asked for again, some times. */
static void takes_too_long(void **state)
{
	const struct tree *t = *state;
	struct procscan_stats stats;

	for (uint32_t pid = 100; pid < 103; pid++) {
		char name[32];

		(void)snprintf(name, sizeof(name), "%u/task/%u/comm", pid, pid);
		tempdir_put_text(t->dir, name, "program\n");
		(void)snprintf(name, sizeof(name), "%u/maps", pid);
		tempdir_put_text(t->dir, name, "1000-2000 r-xp 0 8:2 77 /a\n");
	}
	for (unsigned n = 1; n <= 5; n++) {
		struct told told = { .late = 101, .n_late = n };

		stats = scan(&told, t->dir, 0);
		assert_int_equal(stats.n_unreadable, n > 3);
		assert_int_equal(has(&told, "map 101 1000+1000@0 5p - 8:2:77 /a"), n <= 3);
		assert_true(has(&told, "map 102 1000+1000@0 5p - 8:2:77 /a"));
		assert_int_equal(told.n_again, n <= 3 ? n : 3);
		told_deinit(&told);
	}
}

static void exec_meanwhile(void **state)
{
	struct tree *t = *state;
	struct told told = { .at_time = executes, .tree = t };

	tempdir_put_text(t->dir, "100/a", "");
	tempdir_put_text(t->dir, "100/b", "");
	make_link(t, "100/exe", "a");
	tempdir_put_text(t->dir, "100/task/100/comm", "a\n");
	tempdir_put_text(t->dir, "100/maps", "1000-2000 r-xp 0 8:2 77 /a\n");
	(void)scan(&told, t->dir, UINT64_MAX);
	assert_int_equal(told.n, 2);
	assert_string_equal(told.lines[1], "map 100 2000+1000@0 5p - 8:2:78 /b");
	/* Stamped when it was that program already. */
	assert_true(told.last > 2);
	told_deinit(&told);
}

static void bad_options(void **state)
{
	struct procscan *scan;
	const int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	(void)state;
	assert_int_equal(procscan_new(&(struct procscan_options){ .proc_fd = fd }, &scan),
			 -ENOTDIR);
	(void)close(fd);
}

/* --- the real one ---------------------------------------------------------------------------- */

static void *sleeper(void *userdata)
{
	(void)prctl(PR_SET_NAME, "sleep(\n)er");
	(void)pthread_barrier_wait(userdata);
	(void)pthread_barrier_wait(userdata);
	return NULL;
}

static void ourselves(void **state)
{
	struct told told = { .only = (uint32_t)getpid() };
	struct procscan_options options = {
		.now = count, .maps = maps_of, .put = put, .userdata = &told
	};
	struct procscan *going = NULL;
	struct procscan_stats stats;
	struct tree *t = *state;
	char hex[BUILDID_HEX_MAX], line[64];
	pthread_barrier_t barrier;
	pthread_t thread;
	bool self = false, vdso = false, anon = false;
	int r;
	void *map = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(map, MAP_FAILED);
	(void)pthread_barrier_init(&barrier, NULL, 2);
	assert_int_equal(pthread_create(&thread, NULL, sleeper, &barrier), 0);
	(void)pthread_barrier_wait(&barrier);
	(void)scan(&told, "/proc", 1000000);
	assert_true(told.n > 4);
	told_deinit(&told);
	/* The same as a source does it. */
	options.proc_fd = told.proc_fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	do
		r = procscan_go_on(&going, &options, 100000, &stats);
	while (r == PROCSCAN_MORE);
	assert_int_equal(r, 0);
	assert_null(going);
	told.mappings = mappings_free(told.mappings);
	(void)close(options.proc_fd);
	(void)pthread_barrier_wait(&barrier);
	(void)pthread_join(thread, NULL);
	(void)munmap(map, 4096);

	(void)snprintf(line, sizeof(line), "comm %d %d test-procscan", (int)getpid(),
		       (int)getpid());
	assert_true(has(&told, line));
	buildid_hex(&t->id, hex);
	for (size_t i = 0; i < told.n; i++) {
		const char *name = strrchr(told.lines[i], ' ') + 1;

		self = self || (strstr(told.lines[i], hex) && strstr(name, "/test-procscan"));
		vdso = vdso || strcmp(name, "[vdso]") == 0;
		anon = anon || strcmp(name, "//anon") == 0;
	}
	assert_true(self && vdso && anon);
	assert_true(told.n > 4 && strstr(told.lines[1], " sleep(\n)er"));
	told_deinit(&told);
	(void)pthread_barrier_destroy(&barrier);
}

/* What the kernel itself tells of a process that begins. */
struct listener {
	int fd;
	uint8_t *ring;
};

#define LISTENER_SIZE ((size_t)64 * 4096)

static bool listener_init(struct listener *l, pid_t pid)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_DUMMY,
		.sample_type = PERFABI_SAMPLE_TYPE,
		.exclude_kernel = 1,
		.sample_id_all = 1,
		.mmap = 1,
		.mmap2 = 1,
		.comm = 1,
		.comm_exec = 1,
		.build_id = 1,
	};

	l->fd = (int)syscall(SYS_perf_event_open, &attr, pid, -1, -1, PERF_FLAG_FD_CLOEXEC);
	if (l->fd < 0)
		return false;
	l->ring = mmap(NULL, 4096 + LISTENER_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, l->fd, 0);
	assert_ptr_not_equal(l->ring, MAP_FAILED);
	return true;
}

/* Take its records; their ids are the kernel's, and become ours. */
static void listener_read(struct listener *l, struct told *told)
{
	const uint64_t size = ((struct perf_event_mmap_page *)(void *)l->ring)->data_head;

	assert_true(size < LISTENER_SIZE);
	told->time = UINT64_MAX;
	for (uint64_t at = 0; at < size;) {
		uint8_t bytes[RECORD_SIZE_MAX]; /* newer kernels let nobody write to the ring */
		const uint64_t id = RECORD_ID_SIDEBAND;
		struct perf_event_header h;

		memcpy(&h, l->ring + 4096 + at, sizeof(h));
		memcpy(bytes, l->ring + 4096 + at, h.size);
		memcpy(bytes + h.size - sizeof(id), &id, sizeof(id));
		if (h.type == PERF_RECORD_MMAP2)
			assert_int_equal(put(told, bytes, h.size), 0);
		at += h.size;
	}
}

static void as_the_kernel(void **state)
{
	struct told kernel = {}, ours = {};
	struct listener listener = { .fd = -1 };
	size_t n_files = 0;
	int ready[2], status;
	pid_t pid;
	char byte;

	(void)state;
	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	pid = fork();
	if (pid == 0) {
		if (read(ready[0], &byte, 1) == 1)
			(void)execl("/bin/sleep", "sleep", "60", NULL);
		_exit(1);
	}
	if (!listener_init(&listener, pid)) {
		print_message("cannot listen to perf's records: %s\n", strerror(errno));
		(void)kill(pid, SIGKILL);
		(void)waitpid(pid, &status, 0);
		skip();
	}
	assert_int_equal(write(ready[1], "", 1), 1);
	/* Until it sleeps: until all is mapped. */
	for (struct timespec ms = { .tv_nsec = 1000000 };; (void)nanosleep(&ms, NULL)) {
		char path[64], text[256] = "";
		int fd;

		(void)snprintf(path, sizeof(path), "/proc/%d/syscall", (int)pid);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		assert_true(fd >= 0 && read(fd, text, sizeof(text) - 1) > 0);
		(void)close(fd);
		if (atoi(text) == SYS_clock_nanosleep || atoi(text) == SYS_nanosleep)
			break;
	}
	ours.only = (uint32_t)pid;
	(void)scan(&ours, "/proc", UINT64_MAX);
	listener_read(&listener, &kernel);
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, &status, 0);

	/* All that we tell, the kernel told, to the letter; it may have told of what is gone
	 * again. */
	assert_true(kernel.n >= ours.n - 1);
	for (size_t i = 1; i < ours.n; i++) {
		/* Its flags say more than /proc does. */
		assert_true(has(&kernel, ours.lines[i]));
		n_files += strchr(ours.lines[i], '/') != NULL;
	}
	assert_true(n_files >= 1); /* and libc and the loader, if it needs them */
	(void)munmap(listener.ring, 4096 + LISTENER_SIZE);
	(void)close(listener.fd);
	(void)close(ready[0]);
	(void)close(ready[1]);
	told_deinit(&ours);
	told_deinit(&kernel);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(kinds_of_mappings, set_up, tear_down),
		cmocka_unit_test_setup_teardown(threads, set_up, tear_down),
		cmocka_unit_test_setup_teardown(long_names, set_up, tear_down),
		cmocka_unit_test_setup_teardown(build_ids, set_up, tear_down),
		cmocka_unit_test_setup_teardown(one_inode_two_files, set_up, tear_down),
		cmocka_unit_test_setup_teardown(fork_meanwhile, set_up, tear_down),
		cmocka_unit_test_setup_teardown(takes_too_long, set_up, tear_down),
		cmocka_unit_test_setup_teardown(exec_meanwhile, set_up, tear_down),
		cmocka_unit_test(bad_options),
		cmocka_unit_test_setup_teardown(ourselves, set_up, tear_down),
		cmocka_unit_test(as_the_kernel),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
