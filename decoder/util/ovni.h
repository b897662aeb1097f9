/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * ovni
 *
 * The streams of ovni, a library by which parallel runtimes and programs note events. A trace is a
 * directory, in which each thread has a stream: a sequence of events, each with a header, and then
 * a payload or, if it is a jumbo event, the size of its data, and these.
 *
 * Version 1 of a trace has, for each process, a directory with a file of metadata in JSON, and in a
 * file for each thread its stream, which begins with the first event. Later versions have a
 * directory for each thread, with its metadata and its stream, which has a header.
 *
 * All is in the order of bytes of the machine that wrote it.
 *
 * Source: ovni, "Trace specification version 1" and "v3".
 */

#include <stdint.h>

/* The header of a stream, but for version 1: these bytes, and the version of streams. */
#define OVNI_MAGIC          "ovni"
#define OVNI_MAGIC_SIZE     4
#define OVNI_STREAM_VERSION 1u
#define OVNI_HEADER_SIZE    8

/* The header of an event: flags and a code of the size, in 4 bits each; three letters, which are
 * the model, the category and the value of the event; and the clock in ns. */
#define OVNI_EVENT_SIZE             12
#define OVNI_PAYLOAD_MAX            16
#define OVNI_FLAG_JUMBO             1u
#define OVNI_JUMBO_CODE             3u /* of a jumbo event's payload: a size of 4 bytes */
#define OVNI_LETTERS                3
#define OVNI_FLAGS_AND(flags, code) ((uint8_t)((flags) << 4 | (code)))

/* Return: the code of the size of a payload, which is not 1. */
static inline uint8_t ovni_size_code(uint8_t size)
{
	return size == 0 ? 0 : (uint8_t)(size - 1);
}

/* Return: the size of the payload that has this code. */
static inline uint8_t ovni_payload_size(uint8_t code)
{
	return code == 0 ? 0 : (uint8_t)(code + 1);
}

/* Names in the directory of a trace. */
#define OVNI_DIR           "ovni"
#define OVNI_LOOM_PREFIX   "loom."
#define OVNI_PROC_PREFIX   "proc."
#define OVNI_THREAD_PREFIX "thread."
#define OVNI_PROC_METADATA "metadata.json"
#define OVNI_METADATA      "stream.json"
#define OVNI_STREAM        "stream.obs"

/* Types of marks have these numbers. */
#define OVNI_MARK_TYPES 100
