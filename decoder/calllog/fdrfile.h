/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * FDR file
 *
 * A flight data recorder file (decoder/util/fdr.h): its blocks, their threads, and what is in
 * them. The file is gone through once when it is opened, so that damage is known before
 * anything is shown. A block ends before the first record that is not as it should be, and the next
 * one is looked for where the file says that this one ends.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/base.h"
#include "base/cursor.h"
#include "decoder/calllog/logfile.h"
#include "decoder/util/fdr.h"
#include "util/vec.h"

/* More blocks of one input are refused. */
#define FDRFILE_BLOCKS_MAX (1u << 24)

#define FDRFILE_PREFIX "xray-log." /* of the names of logs */

/* Versions of basic mode's logs that are known by name. */
#define FDRFILE_BASIC_MAX 3

/* How many bytes of an event's data are shown. */
#define FDRFILE_DATA_MAX 64

/* How the records of a file are to be read. */
struct fdrformat {
	uint16_t version;
	bool is_big_endian;
};

/* The header of a file. */
struct fdrheader {
	struct fdrformat format;
	uint32_t flags;     /* enum fdr_flag */
	uint64_t frequency; /* ticks per second; 0: not known */
	uint64_t data_size;
};

/* One record, whatever the version and byte order. */
struct fdrrecord {
	bool is_function;
	uint8_t kind; /* enum fdr_kind; of a function record: enum fdr_action */
	uint32_t function;
	bool has_delta; /* time is @delta ticks after the last; else, if the kind has one, @time */
	uint32_t delta;
	uint64_t time;   /* ticks; of FDR_WALL_TIME: seconds */
	uint32_t micros; /* of FDR_WALL_TIME */
	uint32_t cpu;
	uint32_t id;    /* of FDR_NEW_BUFFER and FDR_PID: thread or process */
	uint16_t type;  /* of FDR_TYPED_EVENT */
	uint64_t value; /* of FDR_CALL_ARGUMENT */
	uint64_t size;  /* bytes behind the record: of an event's data, or of the block */
};

struct fdrblock {
	uint32_t file;       /* index of its file; set by the collector of blocks */
	uint32_t pid, tid;   /* PTD_ID_UNKNOWN: the file does not say */
	uint32_t cpu;        /* where it begins */
	uint64_t time;       /* when: ticks */
	uint64_t begin, end; /* offsets of the calls in the file */
	uint64_t n_lost;     /* bytes behind them that cannot be read */
	bool is_cut;         /* they are missing, because the file ends */
};

struct fdrfile {
	struct logfile log;
	struct fdrheader header;
};

/* What is to be known of files, besides their blocks. */
struct fdrscan {
	VEC(struct fdrblock) blocks;
	uint64_t n_calls;

	/* Called with the id of each function that is called. Return: 0, or negative errno. */
	int (*function)(void *userdata, uint32_t function);
	/* Called with each argument and event, and the first bytes of an event's data. Return:
	 * likewise. */
	int (*event)(void *userdata, const struct fdrrecord *record, struct cursor data);
	/* Called with what is wrong with the file at the byte @offset. Return: likewise. */
	int (*fault)(void *userdata, const struct fdrfile *file, uint64_t offset,
		     const char *fault);
	void *userdata;
};

/*
 * Get a record at @offset of @file, before @end.
 *
 * Return: 0, and @offset is behind it and an event's data; -ENODATA: the bytes end in it; -EBADMSG
 *         and @reterr_fault; or -ESTALE or another negative errno and @reterr_message, if the file
 *         cannot be read.
 */
_must_check_ int fdrwindow_get(struct logwindow *window, const struct fdrfile *file, uint64_t end,
			       uint64_t *offset, struct fdrrecord *ret_record,
			       const char **reterr_fault, char **reterr_message);

/* Return: whether the record is of an argument, or of a custom or typed event. */
bool fdrfile_is_event(const struct fdrrecord *record);

/* Get the first bytes of the data of the event @record, which ends at @offset. Return: 0; or as
 * above. */
_must_check_ int fdrwindow_data(struct logwindow *window, const struct fdrfile *file,
				uint64_t offset, const struct fdrrecord *record,
				struct cursor *ret_data, char **reterr_message);

/* Return: whether the file at @path begins as such a file does, or as a log of XRay's basic mode,
 *         which fdrfile_open() refuses. */
bool fdrfile_is(const char *path);

/*
 * Open the file at @path, which is copied, and read its header.
 *
 * Return: 0; or negative errno and @reterr_message.
 */
_must_check_ int fdrfile_open(struct fdrfile *file, const char *path, struct logwindow *window,
			      char **reterr_message);

/*
 * Find the blocks of @file, and add them to @scan->blocks.
 *
 * Return: 0; or negative errno and @reterr_message, which may be NULL.
 */
_must_check_ int fdrfile_scan(const struct fdrfile *file, struct logwindow *window,
			      struct fdrscan *scan, char **reterr_message);

void fdrfile_deinit(struct fdrfile *file);
