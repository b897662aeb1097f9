/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Container
 *
 * The bytes of a file of a drmemtrace directory, whatever compresses it. The suffix of its name
 * states how: ".zip" (minizip), ".lz4" (lz4 frames); a file of any other name is read by zlib,
 * which takes gzip and plain bytes. Files are read as a stream, in memory that does not depend on
 * their size.
 *
 * A zip file has components, which are read in the order of the archive. A read never goes beyond
 * the end of a component, and container_component() says to which component its bytes belong.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/base.h"

struct container;

/*
 * Open the file at @path, which must be a regular file.
 *
 * Return: 0; -EBADMSG if it is not what its suffix states; -EOPNOTSUPP if ptdecode cannot
 *         decompress it (".sz"); or another negative errno.
 */
_must_check_ int container_open(const char *path, struct container **ret_container);
struct container *container_free(struct container *container);

/*
 * Read the next bytes: @size, unless the file or a component ends before.
 *
 * Return: 0 and @ret_n, which is 0 only at the end of the file; -EBADMSG if the compressed bytes
 *         are damaged or cut; or another negative errno.
 */
_must_check_ int container_read(struct container *container, void *bytes, size_t size,
				size_t *ret_n);

/* Return: the component that the last bytes belong to, from 0; 0 for files that have none. */
uint64_t container_component(const struct container *container);

/*
 * Read all of the file at @path, a text beside a trace, if it has at most @max bytes.
 *
 * Return: 0 and @ret_text, which the caller frees, of @ret_size bytes and a NUL; -EFBIG if it has
 *         more; or as above.
 */
_must_check_ int container_read_all(const char *path, size_t max, char **ret_text,
				    size_t *ret_size);

DEFINE_CLEANUP(struct container *, container_free);
