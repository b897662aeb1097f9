/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Bundle
 *
 * The files of a snapshot's directory, each entered into SHA256SUMS as it is added.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/base.h"
#include "util/sha256.h"

struct bundle;
struct object;

/* Writes the text of a file; errors show in the stream. */
typedef void (*bundle_write_fn)(FILE *stream, void *userdata);

/*
 * @dir_fd: the directory, empty; borrowed
 * @cancel: when another thread sets it, what is being added fails by -ECANCELED; borrowed, may be
 *          NULL
 *
 * Return: 0, or negative errno.
 */
_must_check_ int bundle_new(int dir_fd, const atomic_bool *cancel, struct bundle **ret_bundle);

/* Frees it, complete or not. Return: NULL. */
struct bundle *bundle_free(struct bundle *bundle);

DEFINE_CLEANUP(struct bundle *, bundle_free);

/* Write SHA256SUMS to the end: nothing can be added any more. Return: 0, or negative errno. */
_must_check_ int bundle_finish(struct bundle *bundle);

/*
 * Add a file that is there already and complete.
 *
 * @hash: of its content; "" to have it computed and set.
 *
 * Return: 0, or negative errno.
 */
_must_check_ int bundle_add_sum(struct bundle *bundle, const char *path,
				char hash[static SHA256_HEX_SIZE], uint64_t *ret_size);

/* Make the file @name of what @write prints. Return: 0, or negative errno. */
_must_check_ int bundle_add_file(struct bundle *bundle, const char *name, bundle_write_fn write,
				 void *userdata);

/*
 * Link the object's copy in the store @store_fd to its place, if it is not there yet.
 *
 * @by_content: that is the place of its content's hash; else that of its build-id
 *
 * Return: 0, and @ret_size is 0 if it was there already; or negative errno.
 */
_must_check_ int bundle_add_object(struct bundle *bundle, int store_fd, const struct object *object,
				   bool by_content, uint64_t *ret_size);
