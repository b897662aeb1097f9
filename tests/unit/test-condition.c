/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * What is a condition and what is not; which holds; and that ptctl answers the processes that it
 * listens for, whatever they send.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "ctl/client.h"
#include "ctl/trigger.h"
#include "ctl/verb.h"
#include "daemon/plugin/process.h"
#include "tests/lib/failing.h"
#include "util/condition.h"

static void parses(void **state)
{
	static const struct {
		const char *text;
		enum condition_kind kind;
		uint32_t number;
		const char *function, *object;
	} rows[] = {
		{ "enter:main", CONDITION_ENTER, 0, "main", NULL },
		{ "enter:_ZN1a1bEv@libx.so.1", CONDITION_ENTER, 0, "_ZN1a1bEv", "libx.so.1" },
		{ "signal:SEGV", CONDITION_SIGNAL, SIGSEGV, NULL, NULL },
		{ "signal:SIGUSR1", CONDITION_SIGNAL, SIGUSR1, NULL, NULL },
		{ "signal:64", CONDITION_SIGNAL, 64, NULL, NULL },
		{ "exit:0", CONDITION_EXIT, 0, NULL, NULL },
		{ "exit:255", CONDITION_EXIT, 255, NULL, NULL },
		{ "exit:failure", CONDITION_EXIT, CONDITION_ANY_STATUS, NULL, NULL },
		{ "return:f@/usr/bin/x", CONDITION_RETURN, 0, "f", "/usr/bin/x" },
		{ "core", CONDITION_CORE, 0, NULL, NULL },
		{ "oom", CONDITION_OOM, 0, NULL, NULL },
	};
	struct condition c;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		assert_int_equal(condition_parse(rows[i].text, &c), 0);
		assert_int_equal(c.kind, rows[i].kind);
		assert_int_equal(c.number, rows[i].number);
		assert_int_equal(!c.function, !rows[i].function);
		assert_int_equal(!c.object, !rows[i].object);
		if (c.function)
			assert_string_equal(c.function, rows[i].function);
		if (c.object)
			assert_string_equal(c.object, rows[i].object);
		condition_deinit(&c);
	}
}

static void parses_longer(void **state)
{
	struct condition c;

	(void)state;
	assert_int_equal(condition_parse("longer:20ms:f@/usr/bin/x", &c), 0);
	assert_int_equal(c.kind, CONDITION_LONGER);
	assert_int_equal(c.limit_ns, 20000000);
	assert_string_equal(c.function, "f");
	assert_null(c.until);
	assert_string_equal(c.object, "/usr/bin/x");
	condition_deinit(&c);
	assert_int_equal(condition_parse("longer:1.5:f,g@/usr/bin/x", &c), 0);
	assert_int_equal(c.limit_ns, 1500000000);
	assert_string_equal(c.function, "f");
	assert_string_equal(c.until, "g");
	condition_deinit(&c);
}

static void refuses(void **state)
{
	static const char *const rows[] = {
		"",
		":",
		"main",
		"enter",
		"enter:",
		"enter:@x",
		"enter:f@",
		"oom:",
		"return:",
		"signal:",
		"signal:SEG",
		"signal:0",
		"signal:65",
		"signal:-1",
		"exit:",
		"exit:256",
		"exit:1x",
		"exit:fail",
		"leave:main",
		"Enter:main",
		"enter main",
		"longer:",
		"longer:1s",
		"longer:1s:",
		"longer:f@x",
		"longer:0:f@x",
		"longer:1x:f@x",
		"longer:1s:f,@x",
		"longer:1s:,g@x",
		"longer:1s:f,f@x",
		"longer:1s:f@",
		"longer::f@x",
	};
	static char longest[CONDITION_TEXT_MAX + sizeof("enter:")];
	struct condition c;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		assert_int_equal(condition_parse(rows[i], &c), -EINVAL);
	memcpy(longest, "enter:", strlen("enter:"));
	memset(longest + strlen("enter:"), 'f', CONDITION_TEXT_MAX);
	assert_int_equal(condition_parse(longest, &c), -EINVAL);
}

/* Return: what tripwire_holds() says of the conditions in @text. */
static uint32_t holds(const char *text, enum condition_kind kind, uint32_t number)
{
	struct tripwire tripwire;
	uint32_t r;

	assert_int_equal(tripwire_init(&tripwire, "nobody", text), 0);
	r = tripwire_holds(&tripwire, kind, number);
	atomic_store(&tripwire.is_over, true);
	assert_int_equal(tripwire_holds(&tripwire, kind, number), 0);
	for (size_t i = 0; i < tripwire.n_conditions; i++)
		condition_deinit(&tripwire.conditions[i]);
	return r;
}

static int parse(void *userdata)
{
	return condition_parse("longer:1s:f,g@/x", userdata);
}

static void check(void *userdata)
{
	struct condition *c = userdata;

	assert_string_equal(c->function, "f");
	assert_string_equal(c->until, "g");
	condition_deinit(c);
}

static void lacks_memory(void **state)
{
	struct condition c;

	(void)state;
	failing_each(parse, check, &c);
}

static void hold(void **state)
{
	(void)state;
	assert_int_equal(holds("signal:SEGV+exit:3", CONDITION_SIGNAL, SIGSEGV), 1);
	assert_int_equal(holds("signal:SEGV+exit:3", CONDITION_EXIT, 3), 2);
	assert_int_equal(holds("signal:SEGV+exit:3", CONDITION_EXIT, SIGSEGV), 0);
	assert_int_equal(holds("signal:SEGV+exit:3", CONDITION_SIGNAL, SIGBUS), 0);
	assert_int_equal(holds("exit:failure", CONDITION_EXIT, 0), 0);
	assert_int_equal(holds("exit:failure", CONDITION_EXIT, 1), 1);
	assert_int_equal(holds("exit:0", CONDITION_EXIT, 0), 1);
	assert_int_equal(holds("enter:f", CONDITION_SIGNAL, 0), 0);
}

static void too_many(void **state)
{
	char text[16 * 9 + 16] = "signal:1";
	struct tripwire tripwire;

	(void)state;
	for (int i = 1; i < CONDITIONS_MAX; i++)
		strcat(text, "+signal:1");
	assert_int_equal(tripwire_init(&tripwire, "nobody", text), 0);
	strcat(text, "+exit:1");
	assert_int_equal(tripwire_init(&tripwire, "nobody", text), -EINVAL);
	assert_int_equal(tripwire_init(&tripwire, "nobody", "signal:1+"), -EINVAL);
}

/* Connect to the socket that is in the options, send @size bytes, and return the answer, or 0. */
static uint8_t knock(const char *options, const void *bytes, size_t size)
{
	const char *name = strrchr(options, '=') + 1;
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	uint8_t answer = 0;

	assert_true(fd >= 0);
	strcpy(address.sun_path + 1, name);
	assert_int_equal(
	    connect(fd, (const struct sockaddr *)&address,
		    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name))),
	    0);
	(void)send(fd, bytes, size, MSG_NOSIGNAL);
	(void)!recv(fd, &answer, sizeof(answer), 0);
	(void)close(fd);
	return answer;
}

/* There is no recorder: each snapshot fails, and the processes are answered nevertheless. */
static void answers(void **state)
{
	const struct context context = { .socket = "/nonexistent/control" };
	const struct client_scope scope = {};
	const struct trigger_wish wish = { .conditions = { "enter:a,b", "exit:failure" },
					   .n_conditions = 2,
					   .count = 2,
					   .context = &context,
					   .scope = &scope };
	struct condition_event event = { .index = 2 };
	static const uint8_t garbage[4096];
	struct trigger *trigger;
	uint32_t n_taken = 0;

	(void)state;
	assert_int_equal(trigger_new(&wish, &trigger), 0);
	assert_memory_equal(trigger_options(trigger), ",when=enter:a,,b+exit:failure,trigger=", 38);
	assert_int_equal(knock(trigger_options(trigger), garbage, 0), 0);
	assert_int_equal(knock(trigger_options(trigger), garbage, sizeof(event) - 1), 0);
	assert_int_equal(knock(trigger_options(trigger), garbage, sizeof(garbage)), 0);
	assert_int_equal(knock(trigger_options(trigger), &event, sizeof(event)), 0);
	event.index = 1;
	assert_int_equal(knock(trigger_options(trigger), &event, sizeof(event)), CONDITION_GO_ON);
	assert_int_equal(knock(trigger_options(trigger), &event, sizeof(event)), CONDITION_OVER);
	assert_int_equal(knock(trigger_options(trigger), &event, sizeof(event)), CONDITION_OVER);
	assert_int_equal(trigger_finish(trigger, &n_taken), EXIT_UNREACHABLE);
	assert_int_equal(n_taken, 2);
	(void)trigger_free(trigger);
}

/* A thread learns that ptctl has ended, or wants no more. */
static void learns(void **state)
{
	const struct context context = { .socket = "/nonexistent/control" };
	const struct client_scope scope = {};
	const struct trigger_wish wish = { .conditions = { "exit:1" },
					   .n_conditions = 1,
					   .count = 1,
					   .context = &context,
					   .scope = &scope };
	const struct condition_event event = {};
	struct tripwire tripwire;
	struct trigger *trigger;
	char name[108];

	(void)state;
	assert_int_equal(trigger_new(&wish, &trigger), 0);
	strcpy(name, strrchr(trigger_options(trigger), '=') + 1);
	assert_int_equal(tripwire_init(&tripwire, name, "exit:1"), 0);
	tripwire_pull(&tripwire, &event);
	assert_true(atomic_load(&tripwire.is_over));
	(void)trigger_free(trigger);

	assert_int_equal(tripwire_init(&tripwire, name, "exit:1"), 0);
	tripwire_pull(&tripwire, &event);
	assert_true(atomic_load(&tripwire.is_over));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parses),       cmocka_unit_test(parses_longer),
		cmocka_unit_test(lacks_memory), cmocka_unit_test(refuses),
		cmocka_unit_test(hold),         cmocka_unit_test(too_many),
		cmocka_unit_test(answers),      cmocka_unit_test(learns),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
