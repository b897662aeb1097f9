/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/drmemtrace/container.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <lz4frame.h>
#include <minizip/unzip.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "util/regular.h"
#include "util/suffix.h"
#include "util/vec.h"

/* Bytes of compressed data that are read at once. */
#define INPUT_SIZE ((size_t)1 << 14)

#define TEXT_BUFFER (1u << 16)

struct container_ops {
	int (*open)(struct container *c);
	int (*read)(struct container *c, void *bytes, size_t size, size_t *ret_n);
	void (*close)(struct container *c);
};

struct container {
	const struct container_ops *ops;
	int fd; /* -1: it is minizip's */
	uint64_t component;

	z_stream gz;
	bool has_gz;    /* it was made */
	bool has_frame; /* a stream of gzip began */
	bool is_plain;  /* nothing is compressed */

	unzFile zip;
	bool in_component;
	bool past_last;

	LZ4F_dctx *lz4;

	/* Of gzip and lz4: compressed bytes. */
	uint8_t *input; /* of INPUT_SIZE bytes */
	size_t n_input, at_input;
	bool in_frame; /* of lz4, or a stream of gzip */
};

/*
 * Read @size bytes, or up to the end, by a function of a library that reads some. It returns how
 * many, 0 at the end, or negative errno. Return: 0 and @ret_n, how many; or negative errno.
 */
static int read_full(struct container *c,
		     int (*read_some)(struct container *c, void *bytes, unsigned int size),
		     void *bytes, size_t size, size_t *ret_n)
{
	size_t n = 0;

	while (n < size) {
		const size_t left = size - n;
		const int got = read_some(c, (uint8_t *)bytes + n,
					  left < INT_MAX ? (unsigned int)left : INT_MAX);

		if (got < 0)
			return got;
		if (got == 0)
			break;
		n += (size_t)got;
	}
	*ret_n = n;
	return 0;
}

/* --- compressed bytes ------------------------------------------------------------------------- */

static int open_input(struct container *c)
{
	c->input = malloc(INPUT_SIZE);
	return c->input ? 0 : -ENOMEM;
}

/* Have @n compressed bytes at hand, or what is left of the file. Return: 0 or negative errno. */
static int need_input(struct container *c, size_t n)
{
	const size_t left = c->n_input - c->at_input;

	if (left >= n)
		return 0;
	memmove(c->input, c->input + c->at_input, left);
	c->n_input = left;
	c->at_input = 0;
	while (c->n_input < n) {
		const ssize_t got =
		    read(c->fd, c->input + c->n_input, (size_t)INPUT_SIZE - c->n_input);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (got == 0)
			break;
		c->n_input += (size_t)got;
	}
	return 0;
}

/* --- gzip and plain --------------------------------------------------------------------------- */

/*
 * This does not ask zlib's own reader of files, gzread(): whether that reports a file that was cut
 * off depends on its version, and on how often it is asked. Here the stream says whether it ended.
 */

static int open_gz(struct container *c)
{
	if (inflateInit2(&c->gz, 15 + 16) != Z_OK)
		return -ENOMEM;
	c->has_gz = true;
	return open_input(c);
}

/* Where no stream is open: begin the next one, unless the file is plain or ends. Return: 0 or
 * negative errno. */
static int begin_gz(struct container *c)
{
	static const uint8_t magic[] = { 0x1f, 0x8b };
	int r = need_input(c, sizeof(magic));

	if (r < 0 || c->at_input == c->n_input)
		return r;
	c->in_frame = c->n_input - c->at_input >= sizeof(magic) &&
		      memcmp(c->input + c->at_input, magic, sizeof(magic)) == 0;
	/* Nothing but another stream may follow one. */
	if (!c->in_frame && c->has_frame)
		return -EBADMSG;
	c->is_plain = !c->in_frame;
	c->has_frame = true;
	return c->in_frame && inflateReset(&c->gz) != Z_OK ? -EBADMSG : 0;
}

static int inflate_some(struct container *c, uint8_t *bytes, unsigned int size)
{
	int r;

	c->gz.next_in = c->input + c->at_input;
	c->gz.avail_in = (unsigned int)(c->n_input - c->at_input);
	c->gz.next_out = bytes;
	c->gz.avail_out = size;
	r = inflate(&c->gz, Z_NO_FLUSH);
	c->at_input = c->n_input - c->gz.avail_in;
	c->in_frame = r != Z_STREAM_END;
	if (r == Z_OK || r == Z_STREAM_END || r == Z_BUF_ERROR)
		return (int)(size - c->gz.avail_out);
	return r == Z_MEM_ERROR ? -ENOMEM : -EBADMSG;
}

static int read_some_gz(struct container *c, void *bytes, unsigned int size)
{
	int n = 0, r;

	while (n == 0) {
		if (!c->in_frame && !c->is_plain) {
			r = begin_gz(c);
			if (r < 0 || (!c->in_frame && !c->is_plain))
				return r;
		}
		r = need_input(c, 1);
		if (r < 0)
			return r;
		if (c->is_plain) {
			const size_t left = c->n_input - c->at_input;

			n = (int)(left < size ? left : size);
			memcpy(bytes, c->input + c->at_input, (size_t)n);
			c->at_input += (size_t)n;
			return n;
		}
		if (c->at_input == c->n_input)
			return -EBADMSG; /* the file ends in the stream */
		n = inflate_some(c, bytes, size);
	}
	return n;
}

static int read_gz(struct container *c, void *bytes, size_t size, size_t *ret_n)
{
	return read_full(c, read_some_gz, bytes, size, ret_n);
}

static void close_gz(struct container *c)
{
	if (c->has_gz)
		(void)inflateEnd(&c->gz);
}

static const struct container_ops gz_ops = { open_gz, read_gz, close_gz };

/* --- zip -------------------------------------------------------------------------------------- */

/* minizip reads the file that is open already, and closes it. */
static voidpf zip_open(voidpf opaque, const void *name, int mode)
{
	struct container *c = opaque;
	FILE *file = fdopen(c->fd, "re");

	if (file)
		c->fd = -1;
	return file;
}

static int open_zip(struct container *c)
{
	zlib_filefunc64_def functions;

	fill_fopen64_filefunc(&functions);
	functions.zopen64_file = zip_open;
	functions.opaque = c;
	c->zip = unzOpen2_64("", &functions);
	if (!c->zip)
		return -EBADMSG;
	return unzGoToFirstFile(c->zip) == UNZ_OK ? 0 : -EBADMSG;
}

/* Open the component at which the archive stands. */
static int open_component(struct container *c)
{
	const int r = unzOpenCurrentFile(c->zip);

	if (r != UNZ_OK)
		return r == UNZ_INTERNALERROR ? -ENOMEM : -EBADMSG;
	c->in_component = true;
	return 0;
}

/* The component is over: go to the next one, if there is one. */
static int leave_component(struct container *c)
{
	int r;

	c->in_component = false;
	r = unzCloseCurrentFile(c->zip); /* it compares the CRC */
	if (r != UNZ_OK)
		return -EBADMSG;
	r = unzGoToNextFile(c->zip);
	if (r != UNZ_OK && r != UNZ_END_OF_LIST_OF_FILE)
		return -EBADMSG;
	c->past_last = r == UNZ_END_OF_LIST_OF_FILE;
	c->component += !c->past_last;
	return 0;
}

static int read_some_component(struct container *c, void *bytes, unsigned int size)
{
	const int n = unzReadCurrentFile(c->zip, bytes, size);

	return n < 0 ? -EBADMSG : n;
}

static int read_zip(struct container *c, void *bytes, size_t size, size_t *ret_n)
{
	size_t n = 0;
	int r;

	/* Components may be empty. */
	while (n == 0 && !c->past_last) {
		if (!c->in_component) {
			r = open_component(c);
			if (r < 0)
				return r;
		}
		r = read_full(c, read_some_component, bytes, size, &n);
		if (r == 0 && n == 0)
			r = leave_component(c);
		if (r < 0)
			return r;
	}
	*ret_n = n;
	return 0;
}

static void close_zip(struct container *c)
{
	if (c->zip)
		(void)unzClose(c->zip);
}

static const struct container_ops zip_ops = { open_zip, read_zip, close_zip };

/* --- lz4 -------------------------------------------------------------------------------------- */

static int open_lz4(struct container *c)
{
	if (LZ4F_isError(LZ4F_createDecompressionContext(&c->lz4, LZ4F_VERSION)))
		return -ENOMEM;
	return open_input(c);
}

static int read_lz4(struct container *c, void *bytes, size_t size, size_t *ret_n)
{
	size_t n = 0;
	int r;

	while (n < size) {
		size_t n_out = size - n, n_in, hint;

		r = need_input(c, 1);
		if (r < 0)
			return r;
		n_in = c->n_input - c->at_input;
		/* What was decompressed already may be waiting behind the end of the input. */
		hint = LZ4F_decompress(c->lz4, (uint8_t *)bytes + n, &n_out, c->input + c->at_input,
				       &n_in, NULL);
		if (LZ4F_isError(hint))
			return -EBADMSG;
		c->at_input += n_in;
		n += n_out;
		if (n_in > 0 || n_out > 0)
			c->in_frame = hint != 0;
		else if (c->n_input == 0)
			break;
	}
	*ret_n = n;
	return n == 0 && c->in_frame ? -EBADMSG : 0;
}

static void close_lz4(struct container *c)
{
	(void)LZ4F_freeDecompressionContext(c->lz4);
}

static const struct container_ops lz4_ops = { open_lz4, read_lz4, close_lz4 };

/* --- all -------------------------------------------------------------------------------------- */

int container_open(const char *path, struct container **ret_container)
{
	_cleanup_(container_freep) struct container *c = calloc(1, sizeof(*c));
	int r;

	if (!c)
		return -ENOMEM;
	c->ops = suffix_is(path, ".zip") ? &zip_ops : suffix_is(path, ".lz4") ? &lz4_ops : &gz_ops;
	c->fd = suffix_is(path, ".sz") ? -EOPNOTSUPP : regular_open(AT_FDCWD, path, 0);
	if (c->fd < 0) {
		r = c->fd;
		c->fd = -1;
		return r;
	}
	r = c->ops->open(c);
	if (r < 0)
		return r;
	*ret_container = TAKE(c);
	return 0;
}

struct container *container_free(struct container *container)
{
	if (!container)
		return NULL;
	container->ops->close(container);
	free(container->input);
	(void)fd_close(container->fd);
	free(container);
	return NULL;
}

int container_read(struct container *container, void *bytes, size_t size, size_t *ret_n)
{
	return container->ops->read(container, bytes, size, ret_n);
}

uint64_t container_component(const struct container *container)
{
	return container->component;
}

int container_read_all(const char *path, size_t max, char **ret_text, size_t *ret_size)
{
	_cleanup_(container_freep) struct container *container = NULL;
	VEC(char) text = {};
	size_t n = 1;
	int r;

	r = container_open(path, &container);
	while (r == 0 && n > 0) {
		r = text.n > max ? -EFBIG : vec_reserve(&text, TEXT_BUFFER + 1);
		if (r == 0)
			r = container_read(container, text.items + text.n, TEXT_BUFFER, &n);
		text.n += r == 0 ? n : 0;
	}
	if (r < 0) {
		vec_deinit(&text);
		return r;
	}
	text.items[text.n] = '\0';
	*ret_text = text.items;
	*ret_size = text.n;
	return 0;
}
