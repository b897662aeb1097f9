/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/calllog/ovnimeta.h"

#include <errno.h>
#include <string.h>

#include "base/cursor.h"
#include "decoder/calllog/logfile.h"
#include "decoder/calllog/ovninames.h"
#include "util/message.h"

/* --- JSON ------------------------------------------------------------------------------------- */

/*
 * Reads a JSON document (RFC 8259) from memory, value by value, in the order in which they stand:
 *
 *	r = jsonreader_open(&json, '{');
 *	while (r == 0 && (r = jsonreader_key(&json, key, sizeof(key))) > 0)
 *		r = …(&json);	each reads or skips the value of the key
 *
 * and the same with jsonreader_item() for an array, '['. All functions return -EBADMSG if the bytes
 * are not what is asked for; json.c.pos is where.
 */

#define JSONREADER_DEPTH_MAX 32

struct jsonreader {
	struct cursor c;
	unsigned int depth; /* objects and arrays that are open */
	bool is_first;      /* nothing was read of the innermost yet */
};

#define DIGITS_MAX 18 /* of a number that fits */

/* Make a reader of @size bytes, which are borrowed. */
static struct jsonreader jsonreader_from(const void *bytes, size_t size)
{
	return (struct jsonreader){ .c = cursor_from(bytes, size) };
}

/* Return: the next character that is no blank; 0: there is none. */
static char peek(struct jsonreader *json)
{
	struct cursor *c = &json->c;

	while (cursor_left(c) > 0 && memchr(" \t\r\n", *c->pos, 4))
		c->pos++;
	return cursor_left(c) > 0 ? (char)*c->pos : '\0';
}

static int take(struct jsonreader *json, char wanted)
{
	if (peek(json) != wanted)
		return -EBADMSG;
	return cursor_skip(&json->c, 1);
}

/* Return: whether the next value is an object ('{'), an array ('['), or a text ('"'). */
static bool jsonreader_is(struct jsonreader *json, char opener)
{
	return peek(json) == opener;
}

/* Enter the object or array that comes next. Return: 0 or -EBADMSG. */
static int jsonreader_open(struct jsonreader *json, char opener)
{
	if (json->depth == JSONREADER_DEPTH_MAX || take(json, opener) < 0)
		return -EBADMSG;
	json->depth++;
	json->is_first = true;
	return 0;
}

/* Go to the next value of what ends with @closer. Return: as jsonreader_item(). */
static int go_on(struct jsonreader *json, char closer)
{
	const bool is_first = json->is_first;

	json->is_first = false;
	if (peek(json) == closer) {
		json->depth--;
		return cursor_skip(&json->c, 1);
	}
	return is_first || take(json, ',') == 0 ? 1 : -EBADMSG;
}

/* --- texts ------------------------------------------------------------------------------------ */

struct text {
	char *bytes;
	size_t n, size;
	bool is_cut;
};

/* Add the bytes of one character. */
static void add(struct text *text, const char *bytes, size_t n)
{
	if (text->is_cut || n >= text->size - text->n) {
		text->is_cut = true;
		return;
	}
	memcpy(text->bytes + text->n, bytes, n);
	text->n += n;
}

static void add_code_point(struct text *text, uint32_t c)
{
	char bytes[4];
	size_t n = 1;

	if (c < 0x80) {
		bytes[0] = (char)c;
	} else if (c < 0x800) {
		bytes[0] = (char)(0xc0 | c >> 6);
		n = 2;
	} else if (c < 0x10000) {
		bytes[0] = (char)(0xe0 | c >> 12);
		n = 3;
	} else {
		bytes[0] = (char)(0xf0 | c >> 18);
		n = 4;
	}
	for (size_t i = 1; i < n; i++)
		bytes[i] = (char)(0x80 | (c >> 6 * (n - 1 - i) & 0x3f));
	add(text, bytes, n);
}

static int get_hex(struct jsonreader *json, uint32_t *ret_value)
{
	uint8_t digits[4];

	*ret_value = 0;
	if (cursor_get(&json->c, sizeof(digits), digits) < 0)
		return -EBADMSG;
	for (size_t i = 0; i < sizeof(digits); i++) {
		const char *all = "0123456789abcdef0123456789ABCDEF";
		const char *found = digits[i] ? strchr(all, digits[i]) : NULL;

		if (!found)
			return -EBADMSG;
		*ret_value = *ret_value << 4 | ((uint32_t)(found - all) & 15);
	}
	return 0;
}

/* A character beyond the first 65536 is two halves; one half alone, and a NUL, are replaced. */
static int take_unicode(struct jsonreader *json, struct text *text)
{
	uint32_t c, low;

	if (get_hex(json, &c) < 0)
		return -EBADMSG;
	if (c >= 0xd800 && c < 0xdc00 && cursor_left(&json->c) >= 6 &&
	    memcmp(json->c.pos, "\\u", 2) == 0) {
		json->c.pos += 2;
		if (get_hex(json, &low) < 0)
			return -EBADMSG;
		c = low >= 0xdc00 && low < 0xe000 ? 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00)
						  : 0xfffd;
	}
	if (c == 0 || (c >= 0xd800 && c < 0xe000))
		c = 0xfffd;
	add_code_point(text, c);
	return 0;
}

static int take_escape(struct jsonreader *json, struct text *text)
{
	static const char escapes[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
	uint8_t c;
	const char *found;

	if (cursor_get(&json->c, 1, &c) < 0)
		return -EBADMSG;
	if (c == 'u')
		return take_unicode(json, text);
	found = c ? strchr(escapes, c) : NULL;
	if (!found)
		return -EBADMSG;
	add(text, &meant[found - escapes], 1);
	return 0;
}

/* Read a text, which is cut to @size - 1 bytes. Return: 0 or -EBADMSG. */
static int jsonreader_text(struct jsonreader *json, char *ret_text, size_t size)
{
	struct text text = { .bytes = ret_text, .size = size };
	uint8_t c;

	if (take(json, '"') < 0)
		return -EBADMSG;
	for (;;) {
		if (cursor_get(&json->c, 1, &c) < 0 || c < ' ')
			return -EBADMSG;
		if (c == '"')
			break;
		if (c == '\\') {
			if (take_escape(json, &text) < 0)
				return -EBADMSG;
			continue;
		}
		add(&text, (const char *)&c, 1);
	}
	ret_text[text.n] = '\0';
	return 0;
}

/* --- other values ----------------------------------------------------------------------------- */

/* Read the integer part of a number; the largest one there is if it is larger. Return: likewise. */
static int jsonreader_number(struct jsonreader *json, int64_t *ret_number)
{
	const bool is_negative = peek(json) == '-';
	int64_t number = 0;
	size_t n = 0;

	if (is_negative)
		json->c.pos++;
	for (; cursor_left(&json->c) > 0 && *json->c.pos >= '0' && *json->c.pos <= '9'; n++) {
		if (n < DIGITS_MAX)
			number = 10 * number + (*json->c.pos - '0');
		json->c.pos++;
	}
	if (n == 0)
		return -EBADMSG;
	if (n > DIGITS_MAX)
		number = INT64_MAX;
	while (cursor_left(&json->c) > 0 && *json->c.pos != '\0' &&
	       strchr("0123456789.eE+-", *json->c.pos))
		json->c.pos++;
	*ret_number = is_negative ? -number : number;
	return 0;
}

/* Go to the next value of an object, whose key is cut to @size - 1 bytes, or of an array. Return:
 * 1; 0: it has ended, and was left; or -EBADMSG. */
static int jsonreader_key(struct jsonreader *json, char *ret_key, size_t size)
{
	const int r = go_on(json, '}');

	if (r <= 0)
		return r;
	return jsonreader_text(json, ret_key, size) == 0 && take(json, ':') == 0 ? 1 : -EBADMSG;
}

static int jsonreader_item(struct jsonreader *json)
{
	return go_on(json, ']');
}

static int skip_word(struct jsonreader *json)
{
	static const char *const words[] = { "true", "false", "null" };
	int64_t number;

	for (size_t i = 0; i < ARRAY_LEN(words); i++) {
		const size_t n = strlen(words[i]);

		if (peek(json) == words[i][0] && cursor_left(&json->c) >= n &&
		    memcmp(json->c.pos, words[i], n) == 0)
			return cursor_skip(&json->c, n);
	}
	return jsonreader_number(json, &number);
}

/* Values within values are not more than JSONREADER_DEPTH_MAX. */
/* Skip a value. Return: likewise. */
static int jsonreader_skip(struct jsonreader *json)
{
	const bool is_object = jsonreader_is(json, '{');
	char text[8];
	int r;

	if (jsonreader_is(json, '"'))
		return jsonreader_text(json, text, sizeof(text));
	if (!is_object && !jsonreader_is(json, '['))
		return skip_word(json);
	r = jsonreader_open(json, is_object ? '{' : '[');
	while (r == 0) {
		r = is_object ? jsonreader_key(json, text, sizeof(text)) : jsonreader_item(json);
		if (r <= 0)
			break;
		r = jsonreader_skip(json);
	}
	return r;
}

/* --- what it says ----------------------------------------------------------------------------- */

#define KEY_MAX 64

void ovnimeta_deinit(struct ovnimeta *meta)
{
	vec_deinit(&meta->cpus);
}

static int read_cpu(struct ovnimeta *meta, struct jsonreader *json)
{
	int64_t index = -1, number = -1;
	char key[KEY_MAX];
	uint32_t *cpu;
	int r = jsonreader_open(json, '{');

	while (r == 0 && (r = jsonreader_key(json, key, sizeof(key))) > 0) {
		if (strcmp(key, "index") == 0)
			r = jsonreader_number(json, &index);
		else if (strcmp(key, "phyid") == 0)
			r = jsonreader_number(json, &number);
		else
			r = jsonreader_skip(json);
	}
	if (r < 0)
		return r;
	if (index < 0 || index >= OVNIMETA_CPUS_MAX || number < 0 || number >= UINT32_MAX)
		return -EBADMSG;
	cpu = vec_at(&meta->cpus, (size_t)index, UINT32_MAX);
	if (!cpu)
		return -ENOMEM;
	*cpu = (uint32_t)number;
	return 0;
}

static int read_cpus(struct ovnimeta *meta, struct jsonreader *json)
{
	int r = jsonreader_open(json, '[');

	while (r == 0 && (r = jsonreader_item(json)) > 0)
		r = read_cpu(meta, json);
	return r;
}

static int parse_value(const char *text, int64_t *ret_value)
{
	struct jsonreader json = jsonreader_from(text, strlen(text));

	return jsonreader_number(&json, ret_value) == 0 && cursor_left(&json.c) == 0 ? 0 : -EBADMSG;
}

static int read_labels(struct ovninames *names, unsigned int type, struct jsonreader *json)
{
	char key[KEY_MAX], label[OVNINAMES_SIZE];
	int64_t value;
	int r = jsonreader_open(json, '{');

	while (r == 0 && (r = jsonreader_key(json, key, sizeof(key))) > 0) {
		r = parse_value(key, &value);
		if (r == 0)
			r = jsonreader_text(json, label, sizeof(label));
		if (r == 0)
			r = ovninames_label(names, type, value, label);
	}
	return r;
}

static int read_mark(struct ovninames *names, unsigned int type, struct jsonreader *json)
{
	char key[KEY_MAX], title[OVNINAMES_SIZE];
	int r = jsonreader_open(json, '{');

	while (r == 0 && (r = jsonreader_key(json, key, sizeof(key))) > 0) {
		if (strcmp(key, "labels") == 0) {
			r = read_labels(names, type, json);
		} else if (strcmp(key, "title") == 0) {
			r = jsonreader_text(json, title, sizeof(title));
			if (r == 0)
				r = ovninames_title(names, type, title);
		} else {
			r = jsonreader_skip(json);
		}
	}
	return r;
}

static int read_marks(struct ovninames *names, struct jsonreader *json)
{
	char key[KEY_MAX];
	int64_t type;
	int r = jsonreader_open(json, '{');

	while (r == 0 && (r = jsonreader_key(json, key, sizeof(key))) > 0) {
		r = parse_value(key, &type);
		if (r == 0 && (type < 0 || type >= OVNI_MARK_TYPES))
			r = -EBADMSG;
		if (r == 0)
			r = read_mark(names, (unsigned int)type, json);
	}
	return r;
}

/* The member "ovni" of a stream's metadata. */
static int read_ovni(struct ovnimeta *meta, struct ovninames *names, struct jsonreader *json)
{
	char key[KEY_MAX], text[KEY_MAX];
	int64_t number;
	int r = jsonreader_open(json, '{');

	while (r == 0 && (r = jsonreader_key(json, key, sizeof(key))) > 0) {
		if (strcmp(key, "pid") == 0) {
			r = jsonreader_number(json, &meta->pid);
		} else if (strcmp(key, "tid") == 0) {
			r = jsonreader_number(json, &meta->tid);
		} else if (strcmp(key, "loom") == 0) {
			r = jsonreader_text(json, meta->loom, sizeof(meta->loom));
		} else if (strcmp(key, "loom_cpus") == 0) {
			r = read_cpus(meta, json);
		} else if (strcmp(key, "mark") == 0) {
			r = read_marks(names, json);
		} else if (strcmp(key, "part") == 0) {
			r = jsonreader_text(json, text, sizeof(text));
			meta->is_thread = r == 0 && strcmp(text, "thread") == 0;
		} else if (strcmp(key, "finished") == 0) {
			r = jsonreader_number(json, &number);
			meta->is_finished = r == 0 && number == 1;
		} else {
			r = jsonreader_skip(json);
		}
	}
	return r;
}

static int read_ptd(struct ovnimeta *meta, struct jsonreader *json)
{
	char key[KEY_MAX];
	int r = jsonreader_open(json, '{');

	while (r == 0 && (r = jsonreader_key(json, key, sizeof(key))) > 0) {
		if (strcmp(key, "name") == 0 && jsonreader_is(json, '"'))
			r = jsonreader_text(json, meta->comm, sizeof(meta->comm));
		else
			r = jsonreader_skip(json);
	}
	return r;
}

static int read_document(struct ovnimeta *meta, struct ovninames *names, struct jsonreader *json)
{
	char key[KEY_MAX];
	int r = jsonreader_open(json, '{');

	while (r == 0 && (r = jsonreader_key(json, key, sizeof(key))) > 0) {
		if (strcmp(key, "version") == 0)
			r = jsonreader_number(json, &meta->version);
		else if (strcmp(key, "cpus") == 0)
			r = read_cpus(meta, json);
		else if (strcmp(key, "ovni") == 0)
			r = read_ovni(meta, names, json);
		else if (strcmp(key, "ptd") == 0)
			r = read_ptd(meta, json);
		else
			r = jsonreader_skip(json);
	}
	return r;
}

/* --- the file --------------------------------------------------------------------------------- */

static int parse(struct ovnimeta *meta, const char *path, const char *bytes, size_t size,
		 struct ovninames *names, char **reterr_message)
{
	struct jsonreader json = jsonreader_from(bytes, size);
	const int r = read_document(meta, names, &json);

	if (r == -EFBIG)
		return message_set(reterr_message, r, "%s: more than %u names", path,
				   OVNINAMES_MAX);
	if (r == -EBADMSG)
		return message_set(
		    reterr_message, r,
		    "%s: byte %zu: expected the metadata of a trace of ovni, in JSON", path,
		    (size_t)(json.c.pos - (const uint8_t *)bytes));
	return r;
}

int ovnimeta_read(struct ovnimeta *meta, const char *path, struct logwindow *window,
		  struct ovninames *names, char **reterr_message)
{
	_cleanup_(freep) char *bytes = NULL;
	size_t size;
	int r = logfile_read(path, OVNIMETA_SIZE_MAX, window, &bytes, &size, reterr_message);

	*meta = (struct ovnimeta){};
	if (r == 0)
		r = parse(meta, path, bytes, size, names, reterr_message);
	if (r < 0)
		ovnimeta_deinit(meta);
	return r;
}
