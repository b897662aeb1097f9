/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "daemon/proc/cgroup.h"
#include "tests/lib/tempdir.h"
#include "util/dirs.h"
#include "util/map.h"

/* A hierarchy, and the processes of each group. */
static const struct {
	const char *path, *pids;
} groups[] = {
	{ "", "1\n2\n" },
	{ "system.slice", "" },
	{ "system.slice/web.service", "100\n101\n" },
	{ "system.slice/web.service/worker", "102\n" },
	{ "system.slice/data.service", "200\n" },
	{ "user.slice", "" },
	{ "user.slice/user-1000", "" },
	{ "user.slice/user-1000/web.service", "300\n" },
	{ "user.slice/web", "400\n" },
};

static void make_groups(const char *dir)
{
	char path[256];

	for (size_t i = 0; i < ARRAY_LEN(groups); i++) {
		(void)snprintf(path, sizeof(path), "%s/cgroup.procs", groups[i].path);
		tempdir_put_text(dir, path + (path[0] == '/'), groups[i].pids);
	}
	/* It leads out of the hierarchy. */
	(void)snprintf(path, sizeof(path), "%s/link", dir);
	assert_int_equal(symlink("/", path), 0);
}

/* The descriptor is the caller's. */
static int open_dir(const char *dir)
{
	const int fd = dirs_open(AT_FDCWD, dir);

	assert_true(fd >= 0);
	return fd;
}

/* "100 101", in order. */
static void print_pids(const struct map *pids, char *text, size_t size)
{
	text[0] = '\0';
	for (uint64_t pid = 0; pid < 1000; pid++)
		if (map_get(pids, pid))
			(void)snprintf(text + strlen(text), size - strlen(text), "%s%u",
				       text[0] ? " " : "", (unsigned)pid);
}

static void find(void **state)
{
	static const struct {
		const char *name;
		int error;
		const char *pids;
	} rows[] = {
		/* A path, and what lies below it. */
		{ "/system.slice/web.service", 0, "100 101 102" },
		{ "/system.slice/web.service/worker", 0, "102" },
		{ "/system.slice", 0, "100 101 102 200" },
		{ "/user.slice/web", 0, "400" },
		/* A name, wherever the groups are. */
		{ "web.service", 0, "100 101 102 300" },
		{ "worker", 0, "102" },
		{ "user-1000", 0, "300" },
		/* There is none. */
		{ "/web.service", -ENOENT, "" },
		{ "/system.slice/web.service/worker/none", -ENOENT, "" },
		{ "/system.slice/cgroup.procs", -ENOENT, "" },
		{ "db.service", -ENOENT, "" },
		{ "cgroup.procs", -ENOENT, "" },
		/* What would lead out of the hierarchy. */
		{ "/link", -ENOENT, "" },
		{ "link", -ENOENT, "" },
		{ "/..", -EINVAL, "" },
		{ "/system.slice/../user.slice", -EINVAL, "" },
		{ "/system.slice/.", -EINVAL, "" },
		{ "..", -EINVAL, "" },
		{ ".", -EINVAL, "" },
		{ "/", -EINVAL, "" },
		{ "", -EINVAL, "" },
		{ "/system.slice/", -EINVAL, "" },
		{ "//system.slice", -EINVAL, "" },
		{ "system.slice/web.service", -EINVAL, "" },
	};
	char dir[TEMPDIR_SIZE], text[256];
	int root;

	(void)state;
	tempdir_make("cgroup", dir);
	make_groups(dir);
	root = open_dir(dir);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		_cleanup_(map_deinit) struct map pids = {};
		int r;

		r = cgroup_pids(root, rows[i].name, &pids);
		print_pids(&pids, text, sizeof(text));
		print_message("  \"%s\": %d, %s\n", rows[i].name, r, text);
		assert_int_equal(r, rows[i].error);
		assert_string_equal(text, rows[i].pids);
		assert_int_equal(cgroup_name_is_good(rows[i].name), r != -EINVAL);
	}
	close(root);
	tempdir_remove(dir);
}

/* It is deeper than tempdir_remove() goes. */
static void remove_deep(int root, char *path)
{
	for (char *last; (last = strrchr(path, '/')); *last = '\0') {
		assert_int_equal(unlinkat(root, path, last[1] == 'c' ? 0 : AT_REMOVEDIR), 0);
		if (last[1] == 'c')
			continue;
		(void)snprintf(last, sizeof("/cgroup.procs"), "/cgroup.procs");
		assert_int_equal(unlinkat(root, path, 0), 0);
	}
}

static void too_deep(void **state)
{
	_cleanup_(map_deinit) struct map pids = {};
	char dir[TEMPDIR_SIZE], path[4 * CGROUP_DEPTH_MAX] = "a/cgroup.procs", name[300];
	int root;

	(void)state;
	tempdir_make("cgroup", dir);
	root = open_dir(dir);
	for (unsigned i = 1; i <= CGROUP_DEPTH_MAX; i++) {
		tempdir_put_text(dir, path, "7\n");
		assert_int_equal(cgroup_pids(root, "a", &pids), 0);
		memmove(path + 2, path, strlen(path) + 1);
		memcpy(path, "a/", 2);
	}
	tempdir_put_text(dir, path, "7\n");
	assert_int_equal(cgroup_pids(root, "a", &pids), -EFBIG);
	memset(name, 'a', sizeof(name));
	name[sizeof(name) - 1] = '\0';
	assert_int_equal(cgroup_pids(root, name, &pids), -EINVAL);
	remove_deep(root, path);
	close(root);
	tempdir_remove(dir);
}

static void ourselves(void **state)
{
	_cleanup_(map_deinit) struct map pids = {};
	char path[256], line[256];
	FILE *f = fopen("/proc/self/cgroup", "re");
	const int root = cgroup_open_root();
	bool found = false;

	(void)state;
	if (root < 0 || !f) {
		print_message("SKIP: no control groups are mounted here\n");
		skip();
	}
	/* Of version 2, or else of systemd's hierarchy. */
	while (!found && fgets(line, sizeof(line), f))
		found = sscanf(line, "0::%255s", path) == 1 ||
			sscanf(line, "%*u:name=systemd:%255s", path) == 1;
	fclose(f);
	if (!found || strcmp(path, "/") == 0) {
		close(root);
		print_message("SKIP: this process is in the root of the control groups\n");
		skip();
	}
	assert_int_equal(cgroup_pids(root, path, &pids), 0);
	assert_non_null(map_get(&pids, (uint64_t)getpid()));
	close(root);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(find),
		cmocka_unit_test(too_deep),
		cmocka_unit_test(ourselves),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
