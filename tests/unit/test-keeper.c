/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "daemon/helper/keeper/keeper.h"
#include "daemon/helper/keeper/link.h"
#include "daemon/helper/keeper/message.h"
#include "tests/lib/tempdir.h"

/* A keeper in a thread of its own, at DIR/keeper/socket. */
struct fixture {
	char dir[TEMPDIR_SIZE];
	struct sockaddr_un address;
	int listen_fd;
	uid_t user;
	unsigned seconds;
	pthread_t thread;
	int result;
};

static void *serve(void *userdata)
{
	struct fixture *f = userdata;

	f->result = keeper_run(f->listen_fd, f->user, f->seconds);
	return NULL;
}

static void start_keeper(struct fixture *f, uid_t user, unsigned seconds)
{
	f->listen_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	f->user = user;
	f->seconds = seconds;
	(void)unlink(f->address.sun_path);
	assert_return_code(bind(f->listen_fd, (struct sockaddr *)&f->address, sizeof(f->address)),
			   errno);
	assert_return_code(listen(f->listen_fd, 4), errno);
	assert_int_equal(pthread_create(&f->thread, NULL, serve, f), 0);
}

static void await_keeper(struct fixture *f)
{
	assert_int_equal(pthread_join(f->thread, NULL), 0);
	assert_int_equal(f->result, 0);
}

static int set_up(void **state)
{
	static struct fixture f;
	char dir[TEMPDIR_SIZE + 8];

	f = (struct fixture){ .address = { .sun_family = AF_UNIX } };
	tempdir_make("keeper", f.dir);
	(void)snprintf(dir, sizeof(dir), "%s/keeper", f.dir);
	assert_return_code(mkdir(dir, 0700), errno);
	(void)snprintf(f.address.sun_path, sizeof(f.address.sun_path), "%s/socket", dir);
	/* Links find keepers, and start none. */
	(void)setenv("NOTIFY_SOCKET", "/none", 1);
	*state = &f;
	return 0;
}

static int tear_down(void **state)
{
	tempdir_remove(((struct fixture *)*state)->dir);
	return 0;
}

static int memory(const char *text)
{
	const int fd = memfd_create("kept", MFD_CLOEXEC);

	assert_return_code(fd, errno);
	assert_int_equal(pwrite(fd, text, strlen(text), 0), strlen(text));
	return fd;
}

static void assert_kept(struct keeperlink *link, const char *name, const char *form,
			const char *text)
{
	char read[32] = "";
	struct keepable kept;

	assert_true(keeperlink_take(link, name, form, &kept));
	assert_int_equal(kept.data_size, 0);
	assert_int_equal(pread(kept.fd, read, sizeof(read) - 1, 0), strlen(text));
	assert_string_equal(read, text);
	(void)close(kept.fd);
}

static void assert_none(struct keeperlink *link, const char *name, const char *form)
{
	struct keepable kept;

	assert_false(keeperlink_take(link, name, form, &kept));
}

static void keep(struct keeperlink *link, const char *name, const char *form, int fd)
{
	assert_int_equal(keeperlink_keep(link, name, form, &(struct keepable){ .fd = fd }), 0);
}

static struct keeperlink *new_link(const struct fixture *f, unsigned seconds)
{
	struct keeperlink *link;

	assert_int_equal(keeperlink_new(f->dir, seconds, &link), 0);
	return link;
}

/* Each ptd finds what the one before it gave; what it does not want any more is gone. */
static void gives_back_what_it_was_given(void **state)
{
	struct fixture *f = *state;
	struct keeperlink *link;
	const int a = memory("a"), b = memory("b"), c = memory("c");

	start_keeper(f, geteuid(), 60);
	link = new_link(f, 60);
	assert_none(link, "pool", "1");
	keep(link, "pool", "1", a);
	keep(link, "state", "1", b);
	keeperlink_settle(link);
	link = keeperlink_free(link);

	link = new_link(f, 60);
	assert_none(link, "pool", "2");
	assert_none(link, "ring", "1");
	assert_kept(link, "state", "1", "b");
	assert_none(link, "state", "1");
	keep(link, "state", "2", c);
	keeperlink_settle(link);
	link = keeperlink_free(link);

	link = new_link(f, 0);
	assert_none(link, "state", "2");
	link = keeperlink_free(link);
	link = new_link(f, 1);
	assert_none(link, "pool", "1");
	assert_kept(link, "state", "2", "c");
	keep(link, "state", "2", c);
	keeperlink_settle(link);
	link = keeperlink_free(link);
	await_keeper(f);
	(void)close(a);
	(void)close(b);
	(void)close(c);
}

/* A recorder that is not to outlive itself leaves nothing. */
static void zero_seconds_keep_nothing(void **state)
{
	struct fixture *f = *state;
	struct keeperlink *link;
	const int a = memory("a");

	start_keeper(f, geteuid(), 60);
	link = new_link(f, 60);
	keep(link, "pool", "1", a);
	keeperlink_settle(link);
	keeperlink_set_seconds(link, 0);
	await_keeper(f);
	keeperlink_look_after(link);
	link = keeperlink_free(link);
	(void)close(a);
}

/* The keeper's death costs nothing as long as ptd lives. */
static void the_next_keeper_gets_everything(void **state)
{
	struct fixture *f = *state;
	struct keeperlink *link;
	const int a = memory("a");

	link = new_link(f, 60);
	keep(link, "pool", "1", a);
	keeperlink_settle(link);
	start_keeper(f, geteuid(), 60);
	keeperlink_look_after(link);
	keeperlink_set_seconds(link, 0);
	await_keeper(f);

	keeperlink_set_seconds(link, 1);
	start_keeper(f, geteuid(), 60);
	keeperlink_look_after(link);
	link = keeperlink_free(link);
	link = new_link(f, 1);
	assert_kept(link, "pool", "1", "a");
	link = keeperlink_free(link);
	await_keeper(f);
	(void)close(a);
}

/* What is added or goes while ptd runs reaches the keeper at once. */
static void things_come_and_go(void **state)
{
	struct fixture *f = *state;
	struct keeperlink *link;
	struct keepable kept;
	const int a = memory("a"), b = memory("b"), c = memory("c");

	start_keeper(f, geteuid(), 60);
	link = new_link(f, 1);
	keep(link, "pt.0", "1", a);
	keep(link, "pt.1", "1", a);
	keeperlink_settle(link);
	keep(link, "pt.2", "1", b);
	keep(link, "pt.1", "1", c);
	assert_int_equal(
	    keeperlink_keep(link, "pt.3", "1",
			    &(struct keepable){ .fd = a, .data_size = 4096, .aux_size = 8192 }),
	    0);
	keeperlink_drop(link, "pt.0");
	keeperlink_drop(link, "pt.9");
	link = keeperlink_free(link);

	link = new_link(f, 1);
	assert_none(link, "pt.0", "1");
	assert_kept(link, "pt.1", "1", "c");
	assert_kept(link, "pt.2", "1", "b");
	assert_true(keeperlink_take(link, "pt.3", "1", &kept));
	assert_int_equal(kept.data_size, 4096);
	assert_int_equal(kept.aux_size, 8192);
	(void)close(kept.fd);
	keeperlink_drop_rest(link);
	link = keeperlink_free(link);
	await_keeper(f);
	keeperlink_drop_rest(NULL);
	keeperlink_drop(NULL, "pt.0");
	(void)close(a);
	(void)close(b);
	(void)close(c);
}

static void other_users_are_not_served(void **state)
{
	struct fixture *f = *state;
	struct keeperlink *link;
	const int a = memory("a");

	start_keeper(f, geteuid() + 1, 1);
	link = new_link(f, 60);
	keep(link, "pool", "1", a);
	keeperlink_settle(link);
	link = keeperlink_free(link);
	await_keeper(f);
	(void)close(a);
}

static int connect_raw(const struct fixture *f)
{
	const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	assert_return_code(connect(fd, (const struct sockaddr *)&f->address, sizeof(f->address)),
			   errno);
	return fd;
}

/* A request that makes no sense ends the connection, and harms nothing that is kept. */
static void nonsense_ends_the_connection(void **state)
{
	static const struct keeper_message good = { .verb = KEEPER_DROP, .name = "none" };
	struct fixture *f = *state;
	struct keeper_message m[8], answer;
	struct keeperlink *link;
	const int a = memory("a");
	int fd, got;

	start_keeper(f, geteuid(), 60);
	link = new_link(f, 60);
	keep(link, "pool", "1", a);
	keeperlink_settle(link);
	link = keeperlink_free(link);

	fd = connect_raw(f);
	assert_int_equal(keeper_send(fd, &good, -1), 0);
	assert_int_equal(keeper_receive(fd, &answer, &got), 0);
	assert_int_equal(answer.verb, KEEPER_DONE);
	assert_int_equal(answer.status, -ENOENT);
	(void)close(fd);

	for (size_t i = 0; i < ARRAY_LEN(m); i++)
		m[i] = good;
	m[0].status = 1;
	m[1].verb = 0;
	m[2].verb = _KEEPER_VERBS;
	m[3].verb = KEEPER_DONE;
	m[3].name[0] = 0;
	m[4].verb = KEEPER_KEPT;
	m[5].name[0] = 0;
	memset(m[6].name, 'x', sizeof(m[6].name));
	memset(m[7].form, 'x', sizeof(m[7].form));
	for (size_t i = 0; i < ARRAY_LEN(m); i++) {
		fd = connect_raw(f);
		assert_int_equal(keeper_send(fd, &m[i], i % 2 ? a : -1), 0);
		assert_int_equal(keeper_receive(fd, &answer, &got), -EPIPE);
		(void)close(fd);
	}
	fd = connect_raw(f);
	assert_int_equal(channel_send(fd, KEEPER_VERSION + 1, &good, sizeof(good), NULL, NULL), 0);
	assert_int_equal(keeper_receive(fd, &answer, &got), -EPIPE);
	(void)close(fd);
	fd = connect_raw(f);
	assert_int_equal(channel_send(fd, KEEPER_VERSION, &good, sizeof(good) - 1, NULL, NULL), 0);
	assert_int_equal(keeper_receive(fd, &answer, &got), -EPIPE);
	(void)close(fd);
	/* Nothing comes with a request to keep something. */
	m[0] = good;
	m[0].verb = KEEPER_KEEP;
	fd = connect_raw(f);
	assert_int_equal(keeper_send(fd, &m[0], -1), 0);
	assert_int_equal(keeper_receive(fd, &answer, &got), 0);
	assert_int_equal(answer.status, -EBADF);
	(void)close(fd);

	link = new_link(f, 1);
	assert_kept(link, "pool", "1", "a");
	keeperlink_settle(link);
	keeperlink_set_seconds(link, 1);
	link = keeperlink_free(link);
	fd = connect_raw(f);
	m[0].verb = KEEPER_WAIT;
	m[0].name[0] = 0;
	assert_int_equal(keeper_send(fd, &m[0], -1), 0);
	assert_int_equal(keeper_receive(fd, &answer, &got), 0);
	(void)close(fd);
	await_keeper(f);
	(void)close(a);
}

/* However many things ptd gives, the keeper keeps no more than its limit. */
static void there_is_a_limit(void **state)
{
	struct fixture *f = *state;
	struct keeper_message m = { .verb = KEEPER_KEEP }, answer = {};
	const int a = memory("a");
	int fd, got;

	start_keeper(f, geteuid(), 60);
	fd = connect_raw(f);
	for (unsigned i = 0; i <= KEEPER_THINGS_MAX; i++) {
		(void)snprintf(m.name, sizeof(m.name), "%u", i);
		assert_int_equal(keeper_send(fd, &m, a), 0);
		assert_int_equal(keeper_receive(fd, &answer, &got), 0);
		if (answer.status == -EBADF) /* RLIMIT_NOFILE */
			break;
		assert_int_equal(answer.status, i < KEEPER_THINGS_MAX ? 0 : -ENOSPC);
	}
	m = (struct keeper_message){ .verb = KEEPER_WAIT };
	assert_int_equal(keeper_send(fd, &m, -1), 0);
	assert_int_equal(keeper_receive(fd, &answer, &got), 0);
	(void)close(fd);
	await_keeper(f);
	(void)close(a);
}

/* Without a service manager the link starts the program. */
static void starts_a_keeper(void **state)
{
	struct fixture *f = *state;
	struct keeperlink *link;
	char path[128];
	const int a = memory("a");

	(void)unsetenv("NOTIFY_SOCKET");
	link = new_link(f, 1);
	assert_int_equal(access(f->address.sun_path, F_OK), -1);
	keep(link, "pool", "1", a);
	keeperlink_settle(link);
	assert_int_equal(access(f->address.sun_path, F_OK), 0);
	link = keeperlink_free(link);
	link = new_link(f, 1);
	assert_kept(link, "pool", "1", "a");
	link = keeperlink_free(link);
	/* It ends by itself, and leaves no socket. */
	for (unsigned i = 0; i < 200 && access(f->address.sun_path, F_OK) == 0; i++)
		(void)usleep(50000);
	assert_int_equal(access(f->address.sun_path, F_OK), -1);
	(void)close(a);

	/* There is no folder for its socket. */
	(void)snprintf(path, sizeof(path), "%s/none", f->dir);
	assert_int_equal(keeperlink_new(path, 1, &link), 0);
	keep(link, "pool", "1", 0);
	keeperlink_settle(link);
	link = keeperlink_free(link);
	memset(path, 'x', sizeof(path) - 1);
	path[sizeof(path) - 1] = 0;
	assert_int_equal(keeperlink_new(path, 1, &link), -ENAMETOOLONG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(gives_back_what_it_was_given, set_up, tear_down),
		cmocka_unit_test_setup_teardown(zero_seconds_keep_nothing, set_up, tear_down),
		cmocka_unit_test_setup_teardown(the_next_keeper_gets_everything, set_up, tear_down),
		cmocka_unit_test_setup_teardown(things_come_and_go, set_up, tear_down),
		cmocka_unit_test_setup_teardown(other_users_are_not_served, set_up, tear_down),
		cmocka_unit_test_setup_teardown(nonsense_ends_the_connection, set_up, tear_down),
		cmocka_unit_test_setup_teardown(there_is_a_limit, set_up, tear_down),
		cmocka_unit_test_setup_teardown(starts_a_keeper, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
