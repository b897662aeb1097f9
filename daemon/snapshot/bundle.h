/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Bundle
 *
 * Collects the files of a snapshot's directory: each one is entered into SHA256SUMS as it is added.
 * One thread uses a bundle.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/base.h"
#include "util/sha256.h"

struct bundle;
struct object;

/* Writes the text of a file to @stream, which remembers errors. */
typedef void (*bundle_write_fn)(FILE *stream, void *userdata);

/*
 * @dir_fd: the directory, which is empty; borrowed
 * @cancel: once another thread sets it, what is being added fails by -ECANCELED; borrowed, may be
 *          NULL
 *
 * Return: 0, or negative errno.
 */
_must_check_ int bundle_new(int dir_fd, const atomic_bool *cancel, struct bundle **ret_bundle);

/* Free the bundle. Its files stay. Return: NULL. */
struct bundle *bundle_free(struct bundle *bundle);

DEFINE_CLEANUP(struct bundle *, bundle_free);

/* Write SHA256SUMS, after which nothing can be added. Return: 0, or negative errno. */
_must_check_ int bundle_finish(struct bundle *bundle);

/*
 * Add a file that is in the directory already, and complete.
 *
 * @hash: of its content; if it is "", the hash is computed and stored there
 * @ret_size: bytes of the file
 *
 * Return: 0, or negative errno.
 */
_must_check_ int bundle_add_sum(struct bundle *bundle, const char *path,
				char hash[static SHA256_HEX_SIZE], uint64_t *ret_size);

/* Add a new file @name with the text that @write writes. Return: 0, or negative errno. */
_must_check_ int bundle_add_file(struct bundle *bundle, const char *name, bundle_write_fn write,
				 void *userdata);

/*
 * Add an object: link its copy in the folder @store_fd to its place.
 *
 * @by_content: the place is that of the hash of its content; otherwise that of its build-id
 * @ret_size: bytes of the object; 0 if it was added before
 *
 * Return: 0; or negative errno.
 */
_must_check_ int bundle_add_object(struct bundle *bundle, int store_fd, const struct object *object,
				   bool by_content, uint64_t *ret_size);
