/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/calllog/ovnimeta.h"

#include <errno.h>
#include <string.h>

#include "decoder/calllog/jsonreader.h"
#include "decoder/calllog/logfile.h"
#include "decoder/calllog/ovninames.h"
#include "util/message.h"

#define KEY_MAX 64

void ovnimeta_deinit(struct ovnimeta *meta)
{
	vec_deinit(&meta->cpus);
}

/* --- what it says ----------------------------------------------------------------------------- */

static int read_cpu(struct ovnimeta *meta, struct jsonreader *json)
{
	int64_t index = -1, number = -1;
	char key[KEY_MAX];
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
	while (meta->cpus.n <= (size_t)index)
		if (vec_push(&meta->cpus, UINT32_MAX) < 0)
			return -ENOMEM;
	meta->cpus.items[index] = (uint32_t)number;
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
