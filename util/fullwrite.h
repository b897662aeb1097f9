/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Full write
 *
 * write(2) may write fewer bytes than it was given, and may be interrupted by a signal. A pipe that
 * another program made may be non-blocking, and have no room at the moment. These functions go on
 * until all bytes are written, or read.
 */

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/base.h"

/*
 * Write all of the @size bytes.
 *
 * Return: 0; or negative errno, such as -ENOSPC: then some of the bytes may be written.
 */
_must_check_ int fullwrite(int fd, const void *bytes, size_t size);

/* Write them at @offset of the file, whose own offset stays where it is. Return: likewise. */
_must_check_ int fullwrite_at(int fd, const void *bytes, size_t size, uint64_t offset);

/* Read @size bytes at @offset of the file. Return: how many there are, fewer at its end; or
 * negative errno. */
_must_check_ ssize_t fullread_at(int fd, void *ret_bytes, size_t size, uint64_t offset);
