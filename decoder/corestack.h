/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Core stacks
 *
 * The functions that were open in the threads of a core file: what ptd_decoder_core_stack() gives.
 * They are found by the registers and the stack in the file, in the code that the recording's
 * sideband says was mapped, by the call frame information of its objects.
 */

#include <stdbool.h>
#include <stddef.h>

#include "base/base.h"
#include "ptd/decode.h"

struct codemap;
struct corestacks;
struct timeline;

/*
 * Open the core file at @path. @timeline is borrowed.
 *
 * Return: 0; or negative errno, and @reterr_message as core_open() has it.
 */
_must_check_ int corestacks_new(const char *path, const struct timeline *timeline,
				struct corestacks **ret_stacks, char **reterr_message);
struct corestacks *corestacks_free(struct corestacks *stacks);

/* Return: the threads. */
const struct ptd_core_thread *corestacks_threads(const struct corestacks *stacks, size_t *ret_n);

/* See ptd_decoder_core_stack(). @map finds the code. Return: 0 or -ENOMEM. */
_must_check_ int corestacks_walk(struct corestacks *stacks, struct codemap *map, size_t i,
				 const struct ptd_core_frame **ret_frames, size_t *ret_n,
				 bool *ret_complete);

DEFINE_CLEANUP(struct corestacks *, corestacks_free);
