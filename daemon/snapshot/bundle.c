/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/snapshot/bundle.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/objects/objectstore.h"
#include "ptd/snapshot.h"
#include "util/copyfile.h"
#include "util/dirs.h"
#include "util/effort.h"
#include "util/fullwrite.h"
#include "util/mapname.h"

/* What is printed to @stream. */
struct text {
	FILE *stream;
	char *bytes;
	size_t size;
};

struct bundle {
	int dir_fd; /* borrowed */
	struct effort effort;
	struct text sums;
};

/*
 * Make a file of @text. It was gathered in memory, because a stream over the file would forget what
 * the error was that it met.
 */
static int write_file(int dir_fd, const char *name, const struct text *text)
{
	_cleanup_(fd_closep) int fd =
	    openat(dir_fd, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0640);

	return fd < 0 ? -errno : fullwrite(fd, text->bytes, text->size);
}

static int text_init(struct text *text)
{
	*text = (struct text){};
	text->stream = open_memstream(&text->bytes, &text->size);
	return text->stream ? 0 : -ENOMEM;
}

/* No more is printed; @text->bytes is complete. */
static int text_finish(struct text *text)
{
	const bool failed = ferror(text->stream) != 0;

	return fclose(TAKE(text->stream)) != 0 || failed ? -ENOMEM : 0;
}

static void text_deinit(struct text *text)
{
	if (text->stream)
		(void)fclose(text->stream);
	free(text->bytes);
}

int bundle_new(int dir_fd, const atomic_bool *cancel, struct bundle **ret_bundle)
{
	_cleanup_(bundle_freep) struct bundle *b = malloc(sizeof(*b));
	int r;

	if (!b)
		return -ENOMEM;
	*b = (struct bundle){
		.dir_fd = dir_fd,
		.effort = { .size_max = UINT64_MAX, .cancel = cancel },
	};
	r = text_init(&b->sums);
	if (r < 0)
		return r;
	*ret_bundle = TAKE(b);
	return 0;
}

struct bundle *bundle_free(struct bundle *bundle)
{
	if (!bundle)
		return NULL;

	text_deinit(&bundle->sums);
	free(bundle);
	return NULL;
}

int bundle_finish(struct bundle *bundle)
{
	int r;

	r = text_finish(&bundle->sums);
	return r < 0 ? r : write_file(bundle->dir_fd, PTD_SNAPSHOT_SUMS, &bundle->sums);
}

int bundle_add_sum(struct bundle *bundle, const char *path, char hash[static SHA256_HEX_SIZE],
		   uint64_t *ret_size)
{
	_cleanup_(fd_closep) int fd = openat(bundle->dir_fd, path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	uint64_t size;
	int r;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	size = (uint64_t)st.st_size;
	if (!hash[0]) {
		r = sha256_fd(fd, &bundle->effort, NULL, hash, &size);
		if (r < 0)
			return r;
	}
	if (fprintf(bundle->sums.stream, "%s  %s\n", hash, path) < 0)
		return -errno;
	*ret_size = size;
	return 0;
}

int bundle_add_file(struct bundle *bundle, const char *name, bundle_write_fn print, void *userdata)
{
	_cleanup_(text_deinit) struct text text = {};
	char hash[SHA256_HEX_SIZE] = "";
	uint64_t size;
	int r;

	r = text_init(&text);
	if (r < 0)
		return r;
	print(text.stream, userdata);
	r = text_finish(&text);
	if (r == 0)
		r = write_file(bundle->dir_fd, name, &text);
	return r < 0 ? r : bundle_add_sum(bundle, name, hash, &size);
}

/* Folder of an object in the snapshot, as perf's build-id cache has it. */
static void object_folder(const struct object *object, bool by_content, char *ret_folder,
			  size_t size)
{
	char place[BUILDID_PLACE_MAX];

	if (!by_content) {
		(void)snprintf(ret_folder, size, PTD_SNAPSHOT_OBJECTS "/%s",
			       buildid_place(&object->build_id, place));
	} else {
		(void)snprintf(ret_folder, size, PTD_SNAPSHOT_OBJECTS "/sha256/%s", object->sha256);
	}
}

static int copy_object(const struct bundle *b, int store_fd, const char *from, const char *to)
{
	_cleanup_(fd_closep) int in = -1, out = -1;

	in = openat(store_fd, from, O_RDONLY | O_CLOEXEC);
	if (in < 0)
		return -errno;
	out = openat(b->dir_fd, to, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0640);
	if (out < 0)
		return -errno;
	return copyfile_fd(in, out, &b->effort);
}

int bundle_add_object(struct bundle *bundle, int store_fd, const struct object *object,
		      bool by_content, uint64_t *ret_size)
{
	char hash[SHA256_HEX_SIZE], folder[192], to[200];
	int r;

	object_folder(object, by_content, folder, sizeof(folder));
	(void)snprintf(to, sizeof(to), "%s/%s", folder, mapname_in_cache(object->path));
	memcpy(hash, object->sha256, sizeof(hash));

	/* Two paths may lead to one object. */
	if (faccessat(bundle->dir_fd, to, F_OK, 0) == 0) {
		*ret_size = 0;
		return 0;
	}
	r = dirs_make(bundle->dir_fd, folder, 0750);
	if (r < 0)
		return r;
	if (linkat(store_fd, hash, bundle->dir_fd, to, 0) < 0) {
		/* Too many links, or a file system without. */
		r = copy_object(bundle, store_fd, hash, to);
		if (r < 0)
			return r;
	}
	return bundle_add_sum(bundle, to, hash, ret_size);
}
