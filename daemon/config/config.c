/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/config/config.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "util/mapfile.h"
#include "util/number.h"
#include "util/suffix.h"
#include "util/timespan.h"

#define FILE_MAX    ((size_t)1 << 20)
#define LINE_SIZE   1024u
#define SECONDS_MAX 86400u
#define RING_MIN    UINT64_C(4096)
#define SPACE_CHARS " \t\r"

void config_init(struct config *ret_config)
{
	*ret_config = (struct config){
		.source = CONFIG_SOURCE_AUTO,
		.aux_size = UINT64_C(64) << 20,
		.switch_size = UINT64_C(4) << 20,
		.task_size = UINT64_C(4) << 20,
		.jit_max = UINT64_C(256) << 20,
		.mem_max = UINT64_C(64) << 20,
		.sideband_max = UINT64_C(64) << 20,
		.keep_rings = 30,
		.max_use = { .percent = 10 },
		.keep_free = { .percent = 15, .bytes = UINT64_C(4) << 30 },
	};
	ptterms_init(&ret_config->pt);
}

struct where {
	const char *file;
	unsigned line;
	config_warn_fn warn;
};

_printf_(2, 3) static void complain(const struct where *where, const char *format, ...)
{
	char message[2 * LINE_SIZE];
	va_list ap;

	if (!where->warn)
		return;
	va_start(ap, format);
	(void)vsnprintf(message, sizeof(message), format, ap);
	va_end(ap);
	where->warn(where->file, where->line, message);
}

/* As systemd does. */
static void set_bool(const struct where *where, const char *value, void *field)
{
	static const char *const words[2][4] = { { "0", "no", "false", "off" },
						 { "1", "yes", "true", "on" } };

	for (size_t i = 0; i < 2; i++)
		for (size_t j = 0; j < ARRAY_LEN(words[i]); j++)
			if (strcasecmp(value, words[i][j]) == 0) {
				*(bool *)field = i;
				return;
			}
	complain(where, "\"%s\" is not yes or no, ignoring", value);
}

static void set_ring(const struct where *where, const char *value, void *field)
{
	uint64_t n;

	if (number_parse_bytes(value, CONFIG_SIZE_MAX, &n) < 0 || n < RING_MIN || (n & (n - 1)))
		complain(where, "\"%s\" is not a power of two from 4K to 1G, ignoring", value);
	else
		*(uint64_t *)field = n;
}

static void set_size(const struct where *where, const char *value, void *field)
{
	uint64_t n;

	if (number_parse_bytes(value, UINT64_MAX, &n) < 0)
		complain(where, "\"%s\" is not a size such as 512M, ignoring", value);
	else
		*(uint64_t *)field = n;
}

/* Parse "10%" or "10 %". Return: 0, or -EINVAL. */
static int parse_percent(const char *value, uint64_t *ret_percent)
{
	char digits[LINE_SIZE];
	const size_t n_digits = strspn(value, "0123456789");
	const char *rest = value + n_digits;

	if (strcmp(rest + strspn(rest, SPACE_CHARS), "%") != 0)
		return -EINVAL;
	(void)snprintf(digits, sizeof(digits), "%.*s", (int)n_digits, value);
	return number_parse(digits, 100, ret_percent);
}

/* Set a limit to a size, or a share of the file system. */
static void set_limit(const struct where *where, const char *value, void *field)
{
	struct config_limit limit = {};

	if (parse_percent(value, &limit.percent) < 0 &&
	    number_parse_bytes(value, UINT64_MAX, &limit.bytes) < 0)
		complain(where,
			 "\"%s\" is neither a size such as 512M nor a share of the file system "
			 "such as 10%%, ignoring",
			 value);
	else
		*(struct config_limit *)field = limit;
}

static void set_span(const struct where *where, const char *value, void *field)
{
	if (timespan_parse(value, field) < 0)
		complain(where, "\"%s\" is not a time such as 12h or 30d, ignoring", value);
}

static void set_cpus(const struct where *where, const char *value, void *field)
{
	uint64_t n;

	if (number_parse(value, CONFIG_CPUS_MAX, &n) < 0 || n < 1)
		complain(where, "\"%s\" is not a number from 1 to %u, ignoring", value,
			 CONFIG_CPUS_MAX);
	else
		*(uint32_t *)field = (uint32_t)n;
}

static void set_seconds(const struct where *where, const char *value, void *field)
{
	uint64_t n;

	if (number_parse(value, SECONDS_MAX, &n) < 0)
		complain(where, "\"%s\" is not a number of seconds from 0 to %u, ignoring", value,
			 SECONDS_MAX);
	else
		*(uint32_t *)field = (uint32_t)n;
}

/* Return: the index of @word among @names, or -EINVAL. */
static int find_word(const char *word, const char *const *names, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(word, names[i]) == 0)
			return (int)i;
	return -EINVAL;
}

int config_source_from_string(const char *word, enum config_source *ret_source)
{
	static const char *const names[] = {
		[CONFIG_SOURCE_AUTO] = "auto",
		[CONFIG_SOURCE_EMU] = "emu",
		[CONFIG_SOURCE_PT] = "pt",
	};
	const int i = find_word(word, names, ARRAY_LEN(names));

	if (i < 0)
		return i;
	*ret_source = (enum config_source)i;
	return 0;
}

static void set_trace(const struct where *where, const char *value, void *field)
{
	static const char *const names[] = {
		[CONFIG_TRACE_USER] = "user",
		[CONFIG_TRACE_KERNEL] = "kernel",
		[CONFIG_TRACE_ALL] = "all",
	};
	const int i = find_word(value, names, ARRAY_LEN(names));

	if (i < 0)
		complain(where, "\"%s\" is none of user, kernel, all, ignoring", value);
	else
		*(enum config_trace *)field = (enum config_trace)i;
}

static void set_source(const struct where *where, const char *value, void *field)
{
	if (config_source_from_string(value, field) < 0)
		complain(where, "\"%s\" is none of auto, emu, pt, ignoring", value);
}

static void set_pt(const struct where *where, const char *value, void *field)
{
	char copy[LINE_SIZE], message[LINE_SIZE + 64], *save = NULL;

	(void)snprintf(copy, sizeof(copy), "%s", value);
	for (char *term = strtok_r(copy, ", \t", &save); term; term = strtok_r(NULL, ", \t", &save))
		if (ptterms_set(field, term, message, sizeof(message)) < 0)
			complain(where, "%s, ignoring", message);
}

/* All settings. Those that are @live can change while the recorder runs. */
static const struct key {
	const char *name;
	void (*set)(const struct where *where, const char *value, void *field);
	size_t offset, size; /* of the field in struct config */
	bool live;
} keys[] = {
#define KEY(name, set, field, live)                                                             \
	{                                                                                       \
		name, set, offsetof(struct config, field), sizeof(((struct config *)0)->field), \
		    live                                                                        \
	}
	KEY("Source", set_source, source, false),
	KEY("PT", set_pt, pt, false),
	KEY("Trace", set_trace, trace, false),
	KEY("Cpus", set_cpus, n_cpus, false),
	KEY("LongTNT", set_bool, long_tnt, false),
	KEY("AuxSize", set_ring, aux_size, false),
	KEY("SwitchSize", set_ring, switch_size, false),
	KEY("TaskSize", set_ring, task_size, false),
	KEY("SidebandMax", set_size, sideband_max, true),
	KEY("JitMax", set_size, jit_max, true),
	KEY("MemMax", set_size, mem_max, true),
	KEY("KeepRings", set_seconds, keep_rings, true),
	KEY("MaxUse", set_limit, max_use, true),
	KEY("KeepFree", set_limit, keep_free, true),
	KEY("MaxAge", set_span, max_age_ns, true),
#undef KEY
};

static void set_key(struct config *config, const struct where *where, const char *key,
		    const char *value)
{
	for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
		if (strcmp(key, keys[i].name) == 0) {
			keys[i].set(where, value, (char *)config + keys[i].offset);
			return;
		}
	}
	complain(where, "unknown setting \"%s\", ignoring", key);
}

void config_update(struct config *config, const struct config *wanted, config_changed_fn changed)
{
	for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
		char *field = (char *)config + keys[i].offset;
		const char *new = (const char *)wanted + keys[i].offset;

		if (memcmp(field, new, keys[i].size) == 0)
			continue;
		if (keys[i].live)
			memcpy(field, new, keys[i].size);
		changed(keys[i].name, keys[i].live);
	}
}

/* Remove white space at both ends, in place. */
static char *strip(char *s)
{
	char *end;

	s += strspn(s, SPACE_CHARS);
	end = s + strlen(s);
	while (end > s && strchr(SPACE_CHARS, end[-1]))
		*--end = 0;
	return s;
}

/* @section is 0 before the first header, 1 in [Recorder], and -1 in another section. */
static void parse_line(struct config *config, const struct where *where, char *line, int *section)
{
	char *equals;

	line = strip(line);
	if (line[0] == 0 || line[0] == '#' || line[0] == ';')
		return;
	if (line[0] == '[') {
		*section = strcmp(line, "[Recorder]") == 0 ? 1 : -1;
		if (*section < 0)
			complain(where, "unknown section \"%s\", ignoring what is in it", line);
		return;
	}
	if (*section < 0)
		return;
	if (*section == 0) {
		complain(where, "setting outside of [Recorder], ignoring");
		return;
	}
	equals = strchr(line, '=');
	if (!equals) {
		complain(where, "\"%s\" is not of the form Key=value, ignoring", line);
		return;
	}
	*equals = 0;
	set_key(config, where, strip(line), strip(equals + 1));
}

void config_parse(struct config *config, const char *file, const char *text, size_t size,
		  config_warn_fn warn)
{
	struct where where = { .file = file, .warn = warn };
	const char *end = text + size;
	int section = 0;

	while (text < end) {
		const char *newline = memchr(text, '\n', (size_t)(end - text));
		const char *stop = newline ? newline : end;
		const size_t length = (size_t)(stop - text);
		char line[LINE_SIZE];

		where.line++;
		if (length >= sizeof(line) || memchr(text, 0, length)) {
			complain(&where, "line is too long or holds a NUL, ignoring");
		} else {
			memcpy(line, text, length);
			line[length] = 0;
			parse_line(config, &where, line, &section);
		}
		text = newline ? newline + 1 : end;
	}
}

static int load_file(struct config *config, const char *path, config_warn_fn warn)
{
	struct mapfile file;
	int r;

	r = mapfile_read(&file, AT_FDCWD, path);
	if (r < 0)
		return r;
	if (file.size > FILE_MAX)
		r = -EFBIG;
	else if (file.size > 0)
		config_parse(config, path, (const char *)file.bytes, file.size, warn);
	mapfile_deinit(&file);
	return r;
}

static int is_conf(const struct dirent *entry)
{
	return entry->d_name[0] != '.' && suffix_is(entry->d_name, ".conf");
}

int config_load(struct config *config, const char *path, bool optional, config_warn_fn warn,
		char **reterr_path)
{
	char directory[PATH_MAX], file[PATH_MAX];
	struct dirent **entries = NULL;
	int n, r;

	(void)snprintf(file, sizeof(file), "%s", path);
	r = load_file(config, path, warn);
	if (r == -ENOENT && optional)
		r = 0;

	(void)snprintf(directory, sizeof(directory), "%s.d", path);
	n = r < 0 ? 0 : scandir(directory, &entries, is_conf, alphasort);
	if (n < 0 && errno != ENOENT) {
		r = -errno;
		(void)snprintf(file, sizeof(file), "%s", directory);
	}
	for (int i = 0; i < n; i++) {
		if (r == 0) {
			if ((size_t)snprintf(file, sizeof(file), "%s/%s", directory,
					     entries[i]->d_name) >= sizeof(file))
				r = -ENAMETOOLONG;
			else
				r = load_file(config, file, warn);
		}
		free(entries[i]);
	}
	free(entries);
	if (r < 0 && reterr_path)
		*reterr_path = strdup(file);
	return r;
}
