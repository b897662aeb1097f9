/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "ctl/jit.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"

/*
 * What a runtime of another name or version does not know must not stop it: variables that only the
 * runtime reads, and options that older versions ignore, are set for all programs; others only if
 * the command is that runtime.
 */
static const struct runtime {
	const char *programs; /* names of its commands, and " NAME"; a digit or '.' may follow */
	bool is_for_all;
	const char *variable; /* NULL: arguments */
	const char *value;
	const char *arguments[3]; /* put behind the command's name */
} runtimes[] = {
	{ .programs = " node nodejs npm npx yarn",
	  .is_for_all = true,
	  .variable = "NODE_OPTIONS",
	  .value = "--perf-prof --interpreted-frames-native-stack" },
	{ .programs = " deno",
	  .is_for_all = true,
	  .variable = "DENO_V8_FLAGS",
	  .value = "--perf-prof,--interpreted-frames-native-stack" },
	{ .programs = " bun bunx",
	  .is_for_all = true,
	  .variable = "BUN_JSC_useJITDump",
	  .value = "1" },
	{ .programs = " jsc", .is_for_all = true, .variable = "JSC_useJITDump", .value = "1" },
	{ .programs = " java",
	  .is_for_all = true,
	  .variable = "JDK_JAVA_OPTIONS",
	  .value = "-XX:+IgnoreUnrecognizedVMOptions -XX:+UnlockDiagnosticVMOptions "
		   "-XX:+DumpPerfMapAtExit" },
	{ .programs = " dotnet",
	  .is_for_all = true,
	  .variable = "DOTNET_PerfMapEnabled",
	  .value = "3" },
	{ .programs = " python",
	  .is_for_all = true,
	  .variable = "PYTHONPERFSUPPORT",
	  .value = "1" },
	{ .programs = " python",
	  .is_for_all = true,
	  .variable = "PYTHON_PERF_JIT_SUPPORT",
	  .value = "1" },
	{ .programs = " erl elixir iex mix rabbitmq-server",
	  .variable = "ERL_AFLAGS",
	  .value = "+JPperf true" },
	{ .programs = " php", .arguments = { "-d", "opcache.jit_debug=32" } },
};

/* Return: whether @name is one of the names, maybe with a version behind it. */
static bool is_among(const char *name, const char *programs)
{
	const size_t size = strspn(name, "abcdefghijklmnopqrstuvwxyz-");
	const char *at = programs;

	if (size == 0 || name[size + strspn(name + size, "0123456789.")])
		return false;
	while ((at = strchr(at, ' '))) {
		at++;
		if (strncmp(at, name, size) == 0 && (at[size] == ' ' || !at[size]))
			return true;
	}
	return false;
}

/* Add @value to the words that the variable has. Return: 0 or -ENOMEM. */
static int add_words(const char *variable, const char *value)
{
	const char *old = getenv(variable);
	_cleanup_(freep) char *both = NULL;

	if (!old || !old[0])
		return setenv(variable, value, 1) < 0 ? -ENOMEM : 0;
	if (strstr(old, value))
		return 0;
	if (asprintf(&both, "%s%s%s", old, strchr(value, ',') ? "," : " ", value) < 0) {
		both = NULL;
		return -ENOMEM;
	}
	return setenv(variable, both, 1) < 0 ? -ENOMEM : 0;
}

/* A variable of one word is a setting, which the user may have chosen. */
static int set(const struct runtime *runtime)
{
	if (runtime->value[0] == '-' || runtime->value[0] == '+')
		return add_words(runtime->variable, runtime->value);
	return setenv(runtime->variable, runtime->value, 0) < 0 ? -ENOMEM : 0;
}

/* Say what was set for the program @name, or for all if it is none that is known. */
static void say(const char *name, bool is_known)
{
	for (size_t i = 0; i < ARRAY_LEN(runtimes); i++) {
		const struct runtime *runtime = &runtimes[i];

		if (is_known ? !is_among(name, runtime->programs) : !runtime->is_for_all)
			continue;
		if (runtime->variable)
			log_notice("--jit: %s=%s", runtime->variable, getenv(runtime->variable));
		else
			log_notice("--jit: %s %s %s", name, runtime->arguments[0],
				   runtime->arguments[1]);
	}
}

int jit_prepare(char *const *command, char ***ret_command)
{
	const char *slash = strrchr(command[0], '/'), *name = slash ? slash + 1 : command[0];
	size_t n = 0, k = 0;
	bool is_known = false;
	char **made;
	int r = 0;

	while (command[n])
		n++;
	made = calloc(n + ARRAY_LEN(runtimes[0].arguments) + 1, sizeof(*made));
	if (!made)
		return -ENOMEM;
	made[k++] = command[0];
	for (size_t i = 0; i < ARRAY_LEN(runtimes) && r == 0; i++) {
		const struct runtime *runtime = &runtimes[i];
		const bool is_it = is_among(name, runtime->programs);

		is_known = is_known || is_it;
		if (runtime->variable && (is_it || runtime->is_for_all))
			r = set(runtime);
		for (const char *const *a = runtime->arguments; is_it && *a; a++)
			made[k++] = (char *)(uintptr_t)*a;
	}
	memcpy(made + k, command + 1, (n - 1) * sizeof(*made));
	if (r < 0) {
		free(made);
		return r;
	}
	say(name, is_known);
	*ret_command = made;
	return 0;
}
