/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * libptdecode
 *
 * Reads a snapshot, any perf.data with intel_pt, or a bare PT stream, and gives out batches. The
 * caller owns the loop:
 *
 *	while ((r = ptd_decoder_next(d, &batch)) == 0)
 *		…;
 *
 * Threads: a decoder, and what it gives out, is used by one thread at a time. Several decoders may
 * be used by as many threads at the same time: they share nothing that changes. The library reads
 * the environment (TMPDIR), which no thread may change meanwhile; it sets no locale, signal handler
 * or umask.
 *
 * The library is libptdecode.so.0, and 0 promises no ABI: a program is compiled anew for each
 * version of the library. pkg-config knows it as "ptdecode".
 */

#include "ptd/event.h"
#include "ptd/record.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ptd_decoder;

/* Return: the library's version, as ptdecode --version prints it. */
const char *ptd_version(void);

enum {
	PTD_END = 1, /* the stream is over */
};

/* In bytes: what a long recording that is compressed, or comes out of a pipe, takes. */
#define PTD_MAX_SPILL (UINT64_C(16) << 30)

/* What a decoder asks for by a build-id. */
enum ptd_fetch {
	PTD_FETCH_FILE,  /* the file itself */
	PTD_FETCH_DEBUG, /* what was stripped off it */
};

/* A piece of code for a bare PT stream: @size bytes of @path from @offset, seen at @address. */
struct ptd_raw_code {
	const char *path;
	uint64_t offset;
	uint64_t size;
	uint64_t address;
};

struct ptd_options {
	size_t size; /* sizeof(struct ptd_options): fields that a newer library adds are zero */

	const char *engine; /* "block" (the default if NULL), "insn" or "flow" */

	/* A snapshot directory or a perf.data file; or NULL and the fields below. */
	const char *input;
	bool force; /* decode although the manifest's hashes differ */

	/*
	 * Where to look for separate debug files, by build-id or .gnu_debuglink, before the
	 * system's /usr/lib/debug; or NULL. Laid out as that.
	 */
	const char *debug_dir;

	/* A bare PT stream. */
	const char *raw_pt;
	const struct ptd_raw_code *raw_code;
	size_t n_raw_code;

	/* Of the recording machine, where the input does not say; family 0 means unknown. */
	uint16_t cpu_family;
	uint8_t cpu_model;
	uint8_t cpu_stepping;
	uint8_t mtc_freq;
	uint8_t nom_freq;
	uint32_t cpuid_15_eax;
	uint32_t cpuid_15_ebx;

	/*
	 * Where else the files may be that were mapped: by build-id in a directory that is laid out
	 * as perf's ~/.debug; and by path below a directory that stands for the root. Or NULL.
	 */
	const char *buildid_dir;
	const char *symfs;

	/*
	 * Called for a file that is not found, to get it from elsewhere by its build-id. It is
	 * called by the thread that calls the decoder. NULL: nothing is ever asked for.
	 *
	 * Return: the file's descriptor, which the decoder closes, and @ret_path from malloc(),
	 *         which it frees; or negative errno: -ENOENT if nobody has it.
	 */
	int (*fetch)(void *userdata, enum ptd_fetch what, const uint8_t *build_id, size_t size,
		     char **ret_path);
	void *userdata; /* of fetch and opening */

	/* How many bytes may be put into temporary files; 0: PTD_MAX_SPILL. */
	uint64_t max_spill;

	/*
	 * Called after each MiB or so that ptd_decoder_new() reads: so many bytes are done, of so
	 * many that are known of by now. NULL: nobody wants to know.
	 *
	 * Return: 0 to go on; else opening ends with -ECANCELED.
	 */
	int (*opening)(void *userdata, uint64_t done, uint64_t total);
};

/* Return: whether there is an engine called @name. */
bool ptd_engine_exists(const char *name);

/*
 * Open the input.
 *
 * Return: 0; -ECANCELED if options->opening() did not want the rest; or another negative errno.
 *         With an error @reterr_message (if not NULL) is a text for the user that says what failed,
 *         on which file and where. The caller frees it.
 */
int ptd_decoder_new(const struct ptd_options *options, struct ptd_decoder **ret_decoder,
		    char **reterr_message);

const struct ptd_info *ptd_decoder_info(const struct ptd_decoder *decoder);

/*
 * Decode on until a batch is full.
 *
 * @ret_batch is the decoder's and valid until the next call. What cannot be decoded is a gap in the
 * stream, not an error.
 *
 * Return: 0; PTD_END; or negative errno, now and in every later call, and ptd_decoder_message()
 *         says what failed.
 */
int ptd_decoder_next(struct ptd_decoder *decoder, const struct ptd_batch **ret_batch);

/*
 * Return: what made ptd_decoder_next() fail, a text for the user that names the input and the
 *         place, and is the decoder's; NULL if nothing did.
 */
const char *ptd_decoder_message(const struct ptd_decoder *decoder);

/*
 * The next record that lies beside the PT, in the order of time, whatever was decoded meanwhile.
 *
 * Return: 0, and @ret_event is the decoder's until the next call; PTD_END.
 */
int ptd_decoder_next_event(struct ptd_decoder *decoder, const struct ptd_event **ret_event);

/* The account so far; complete after PTD_END. It is the decoder's. */
const struct ptd_stats *ptd_decoder_stats(struct ptd_decoder *decoder);

/* How far it came, in bytes of PT: for showing progress. */
void ptd_decoder_progress(const struct ptd_decoder *decoder, uint64_t *ret_done,
			  uint64_t *ret_total);

/* Return: NULL. */
struct ptd_decoder *ptd_decoder_free(struct ptd_decoder *decoder);

#ifdef __cplusplus
}
#endif
