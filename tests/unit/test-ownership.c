/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Whom the collector is asked about when, and that nobody else waits for its answers. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <systemd/sd-event.h>
#include <unistd.h>

#include "base/clock.h"
#include "daemon/collector/message.h"
#include "daemon/ownership.h"
#include "daemon/source/source.h"
#include "daemon/tasks/owned.h"
#include "record/codec.h"
#include "record/record.h"
#include "tests/lib/tempdir.h"
#include "tests/unit/records.h"

#define G     100
#define MS    UINT64_C(1000000)
#define LINKS 8

/* Processes are those of the user whose number theirs begins with: user 1 has 1000 to 1999. */
#define USER_OF(pid) ((pid) / 1000)

struct fixture {
	char dir[TEMPDIR_SIZE];
	struct source source;
	sd_event *event;
	struct ownership *ownership;
	int listen_fd, links[LINKS];
	size_t n_links;
	uid_t mute;           /* about whose processes the collector does not answer */
	unsigned n_mute;      /* requests about them */
	unsigned n_processes; /* in all requests */
	unsigned n_done;
	uint64_t longest_ns; /* that one turn of the event loop took */
};

static int owner(struct source *source, uint32_t pid, uid_t *ret_uid)
{
	(void)source;
	*ret_uid = USER_OF(pid);
	return 0;
}

static const struct source_ops ops = { .owner = owner };

static void on_done(void *userdata)
{
	struct fixture *f = userdata;

	f->n_done++;
}

/* --- a collector ------------------------------------------------------------------------------ */

static void listen_in(struct fixture *f)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s/collector", f->dir);
	assert_int_equal(mkdir(address.sun_path, 0700), 0);
	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s/collector/socket", f->dir);
	f->listen_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	assert_true(f->listen_fd >= 0);
	assert_int_equal(bind(f->listen_fd, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(f->listen_fd, LINKS), 0);
}

static void answer(struct fixture *f, int link, const struct collector_request *request, int fd)
{
	struct collector_answer says = { .id = request->id };
	struct collector_process processes[COLLECTOR_PROCESSES_MAX];
	const size_t size = request->size_max * sizeof(*processes);
	uint8_t bytes[COLLECTOR_MESSAGE_MAX];

	assert_int_equal(request->verb, COLLECTOR_TRACEABLE);
	assert_int_equal(pread(fd, processes, size, 0), size);
	f->n_processes += (unsigned)request->size_max;
	if (request->uid == f->mute) {
		f->n_mute++;
		return;
	}
	for (size_t i = 0; i < request->size_max; i++) {
		assert_int_equal(USER_OF(processes[i].pid), request->uid);
		processes[i].uid = request->uid;
		processes[i].gid = G;
		processes[i].birth = 7;
	}
	assert_int_equal(pwrite(fd, processes, size, 0), size);
	assert_int_equal(collector_send(link, bytes, collector_write_answer(&says, bytes), NULL, 0),
			 0);
}

/* Answer what was asked. */
static void serve(struct fixture *f)
{
	uint8_t bytes[COLLECTOR_MESSAGE_MAX];
	int fds[COLLECTOR_FDS_MAX], fd;
	size_t size;

	while ((fd = accept4(f->listen_fd, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
		assert_true(f->n_links < LINKS);
		f->links[f->n_links++] = fd;
	}
	for (size_t i = 0; i < f->n_links; i++)
		while (collector_receive(f->links[i], bytes, &size, fds) == 0) {
			struct collector_request request;

			assert_int_equal(collector_read_request(bytes, size, &request), 0);
			answer(f, f->links[i], &request, fds[0]);
			(void)close(fds[0]);
		}
}

/* --- records ---------------------------------------------------------------------------------- */

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	*state = f;
	tempdir_make("ownership", f->dir);
	listen_in(f);
	f->mute = UINT32_MAX;
	f->source = (struct source){ .ops = &ops, .facts.tsc = { .valid = true, .mult = 1 } };
	assert_int_equal(sd_event_new(&f->event), 0);
	return ownership_new(f->event, &f->source, f->dir, &f->ownership);
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	(void)ownership_free(f->ownership);
	(void)sd_event_unref(f->event);
	for (size_t i = 0; i < f->n_links; i++)
		(void)close(f->links[i]);
	(void)close(f->listen_fd);
	tempdir_remove(f->dir);
	free(f);
	return 0;
}

/* The processes from @pid on are there. */
static void put_found(struct fixture *f, uint32_t pid, unsigned n)
{
	struct records r = {};

	for (unsigned i = 0; i < n; i++)
		records_comm(&r, pid + i, "found", 1);
	ownership_add(f->ownership, r.bytes, r.size, 0);
	records_deinit(&r);
}

/* Let the event loop turn for so long, or until somebody who waits goes on. */
static void turn(struct fixture *f, uint64_t ms)
{
	const uint64_t until = clock_ns(CLOCK_MONOTONIC) + ms * MS;
	const unsigned n_done = f->n_done;
	uint64_t begun = clock_ns(CLOCK_MONOTONIC);

	while (begun < until && f->n_done == n_done) {
		uint64_t took;

		assert_true(sd_event_run(f->event, 1000) >= 0);
		took = clock_ns(CLOCK_MONOTONIC) - begun;
		f->longest_ns = took > f->longest_ns ? took : f->longest_ns;
		serve(f);
		begun = clock_ns(CLOCK_MONOTONIC);
	}
}

/* Return: how many processes are known to be the user's once the answers count. */
static size_t count(struct fixture *f, uid_t uid)
{
	struct owned_life *lives;
	size_t n;

	ownership_add(f->ownership, NULL, 0, UINT64_MAX);
	assert_int_equal(ownership_list(f->ownership, uid, G, &lives, &n), 0);
	free(lives);
	return n;
}

/* --- tests ------------------------------------------------------------------------------------ */

static void a_user_waits(void **state)
{
	struct fixture *f = *state;

	put_found(f, 1000, 200);
	put_found(f, 2000, 200);
	assert_int_equal(ownership_ask_of(f->ownership, 1, on_done, f), 0);
	assert_int_equal(f->n_done, 0);
	turn(f, 5000);
	assert_int_equal(f->n_done, 1);
	assert_int_equal(count(f, 1), 200);
	/* All are asked about again for the next one, and none twice for him. */
	f->n_processes = 0;
	assert_int_equal(ownership_ask_of(f->ownership, 1, NULL, NULL), 0);
	assert_int_equal(ownership_ask_of(f->ownership, 1, on_done, f), 0);
	turn(f, 5000);
	assert_int_equal(f->n_done, 2);
	assert_in_range(f->n_processes, 200, 400);
	assert_int_equal(ownership_ask_of(f->ownership, 1, on_done, f), 0);
	ownership_stop_asking(f->ownership);
	turn(f, 100);
	assert_int_equal(f->n_done, 2);
}

/* The event loop does not wait with him, and he does not wait for long. */
static void no_answer(void **state)
{
	struct fixture *f = *state;
	uint64_t begun;

	put_found(f, 1000, 200);
	put_found(f, 2000, 10);
	f->mute = 1;
	begun = clock_ns(CLOCK_MONOTONIC);
	assert_int_equal(ownership_ask_of(f->ownership, 1, on_done, f), 0);
	turn(f, 5000);
	assert_int_equal(f->n_done, 1);
	assert_in_range(clock_ns(CLOCK_MONOTONIC) - begun, 500 * MS, 2000 * MS);
	assert_true(f->longest_ns < 200 * MS);
	assert_int_equal(count(f, 1), 0);
	/* Somebody else then does not wait for him. */
	begun = clock_ns(CLOCK_MONOTONIC);
	assert_int_equal(ownership_ask_of(f->ownership, 2, on_done, f), 0);
	turn(f, 5000);
	assert_int_equal(f->n_done, 2);
	assert_true(clock_ns(CLOCK_MONOTONIC) - begun < 500 * MS);
	assert_int_equal(count(f, 2), 10);
}

/* One user's processes are asked about beside those of another who has very many, and does not have
 * the collector answer. */
static void nobody_waits(void **state)
{
	struct fixture *f = *state;
	struct records r = {};

	put_found(f, 1000, 500);
	put_found(f, 2000, 10);
	f->mute = 1;
	turn(f, 2500);
	assert_int_equal(count(f, 2), 10);
	assert_int_equal(count(f, 1), 0);
	assert_true(f->longest_ns < 200 * MS);
	/* Then he is left alone. */
	records_comm(&r, 2500, "found", 1);
	ownership_add(f->ownership, r.bytes, r.size, 0);
	records_deinit(&r);
	f->n_mute = 0;
	turn(f, 1000);
	assert_int_equal(count(f, 2), 11);
	assert_int_equal(f->n_mute, 0);
}

static void no_collector(void **state)
{
	struct fixture *f = *state;

	put_found(f, 1000, 10);
	serve(f);
	for (size_t i = 0; i < f->n_links; i++)
		(void)close(f->links[i]);
	f->n_links = 0;
	(void)close(f->listen_fd);
	assert_int_equal(ownership_ask_of(f->ownership, 1, on_done, f), 0);
	turn(f, 5000);
	assert_int_equal(f->n_done, 1);
	assert_int_equal(count(f, 1), 0);
}

static void put_exec(struct records *r, uint32_t pid, uint64_t time)
{
	const struct record_comm comm = { .exec = true, .pid = pid, .tid = pid, .comm = "x" };
	const struct trailer trailer = record_trailer(pid, pid, time);
	uint8_t bytes[RECORD_OWN_MAX];

	records_add(r, bytes, record_write_comm(&comm, &trailer, bytes, sizeof(bytes)));
}

/* What was recorded before lies in a stream of each user, and is taken in the order of time. */
static void streams(void **state)
{
	struct fixture *f = *state;
	struct records r[3] = {};
	struct cursor spans[3];
	struct owned_life *lives;
	size_t n;

	/* It was root's before, is user 1's, and the daemon found it in between. */
	put_exec(&r[0], 1000, 40);
	put_exec(&r[1], 1000, 20);
	records_comm(&r[1], 1000, "found", 30);
	records_fork(&r[2], 1000, 1, 10);
	for (size_t i = 0; i < ARRAY_LEN(r); i++)
		spans[i] = cursor_from(r[i].bytes, r[i].size);
	assert_int_equal(ownership_resume(f->ownership, spans, ARRAY_LEN(r)), 0);
	assert_int_equal(ownership_ask_of(f->ownership, 1, on_done, f), 0);
	turn(f, 5000);
	assert_int_equal(count(f, 1), 1);
	assert_int_equal(ownership_list(f->ownership, 1, G, &lives, &n), 0);
	assert_int_equal(n, 1);
	assert_int_equal(lives[0].begun, 40);
	free(lives);
	for (size_t i = 0; i < ARRAY_LEN(r); i++)
		records_deinit(&r[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_user_waits, set_up, tear_down),
		cmocka_unit_test_setup_teardown(no_answer, set_up, tear_down),
		cmocka_unit_test_setup_teardown(nobody_waits, set_up, tear_down),
		cmocka_unit_test_setup_teardown(no_collector, set_up, tear_down),
		cmocka_unit_test_setup_teardown(streams, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
