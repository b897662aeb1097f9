/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Ipt
 *
 * What libipt's block decoder and its instruction decoder have in common as engines:
 * synchronising, events, errors, the account of bytes. The two differ in the calls they make and
 * in the step that takes instructions; that is struct ipt_ops.
 */

#include <intel-pt.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "decoder/pt/engine.h"
#include "decoder/pt/ipt_code.h"
#include "decoder/pt/ipt_iflag.h"
#include "decoder/pt/ipt_newer.h"
#include "decoder/pt/ipt_walk.h"
#include "decoder/pt/scan.h"
#include "decoder/pt/when.h"
#include "util/map.h"
#include "util/vec.h"

/* What a step of the decoder adds to; cut into runs as blocks demand. */
struct ipt_output {
	struct ptd_run *runs;
	size_t n;
	size_t n_max;

	/* Of the code that the last run is in. */
	uint64_t last;    /* its last address, inclusive */
	uint64_t n_insns; /* in all runs */
};

/*
 * Where the instruction that was given out last leads. libipt does not promise that it goes there:
 * on bytes that are no code its lengths differ from ours, and broken packets lead it astray.
 */
struct ipt_flow {
	enum {
		IPT_FLOW_ANYWHERE, /* the bytes do not say, or the caller was told of a break */
		IPT_FLOW_ON,
		IPT_FLOW_TARGET,
		IPT_FLOW_EITHER,
	} way;
	uint64_t ip; /* the instruction's */
	uint64_t next;
	uint64_t target;
	bool is_far_return;
};

struct ipt_engine;

struct ipt_ops {
	void *(*alloc)(const struct pt_config *config);
	void (*free)(void *decoder);
	int (*sync_forward)(void *decoder);
	int (*sync_set)(void *decoder, uint64_t offset);
	int (*get_offset)(const void *decoder, uint64_t *ret_offset);
	int (*get_sync_offset)(const void *decoder, uint64_t *ret_offset);
	int (*get_time)(void *decoder, uint64_t *ret_tsc);
	int (*set_image)(void *decoder, struct pt_image *image);
	int (*event)(void *decoder, struct pt_event *ret_event);

	/* Take some instructions. Return: libipt's status; -pte_nomem also for our own lack of it.
	 */
	int (*step)(struct ipt_engine *engine, struct ipt_output *output);
};

struct ipt_engine {
	struct engine engine;
	const struct ipt_ops *ops;
	struct engine_config config;
	void *decoder;
	struct pt_config pt_config;
	struct scan *scan; /* made when it is needed */
	struct when *when; /* NULL: nobody wants to know */
	struct ipt_newer newer;
	struct ipt_iflag iflag;

	VEC(struct ipt_image *) images; /* one for each space met; owned */
	struct map image_of;            /* space → index in images */
	struct ipt_image *image;        /* the one in use; NULL: nowhere */
	uint8_t mode;                   /* of the code, as libipt said last: 16, 32 or 64 */
	struct pt_image *empty;
	uint64_t n_rewound; /* mappings applied anew because time went back */

	/* State of the walk. */
	int status;     /* libipt's, of the last call */
	bool no_memory; /* we had none; libipt says pte_nomem of other things, too */
	bool has_event;
	struct pt_event event; /* taken from libipt; marks that belong before it go first */
	uint64_t event_end;    /* offset up to which packets had been used up then */
	bool started;
	bool ask; /* just synchronised: the caller must say whose code this is */
	bool ended;
	uint64_t t;
	struct when_bounds bounds; /* of the stretch of code */
	uint64_t bounds_t;         /* while this is @t */
	bool is_user;              /* and where it begins */
	bool has_kernel;           /* the kernel's code was among what was executed */
	uint64_t from;             /* offset from which bytes are not accounted for */
	uint64_t decoded;          /* bytes */
	uint64_t pause;            /* offset to stop at */
	bool passed;               /* what follows is told by packets behind it */
	uint64_t ip;               /* of the instruction that an error hit */
	struct ipt_flow flow;

	/* What the packets said last, to tell what is new from what a PSB+ repeats. */
	bool in_transaction;
	uint64_t cbr, cr3, non_root, vmcs;

	uint64_t spin_offset; /* progress: instructions taken since this offset was reached */
	uint64_t spin_insns;
	uint64_t paid;      /* the highest such offset */
	uint64_t circle_ip; /* where one of the last direct branches led, and how many there were */
	uint64_t n_direct;  /* since packets were last asked where to go */
};

int ipt_engine_new(const struct engine_ops *engine_ops, const struct ipt_ops *ops,
		   const struct pt_conf_flags *flags, const struct engine_config *config,
		   struct engine **ret_engine);
struct engine *ipt_engine_free(struct engine *engine);
int ipt_engine_set_space(struct engine *engine, const struct space *space, size_t generation,
			 size_t until);
int ipt_engine_next(struct engine *engine, struct ptd_run *runs, size_t n_runs_max,
		    struct engine_step *ret_step);
uint64_t ipt_engine_decoded(const struct engine *engine);
uint64_t ipt_engine_offset(const struct engine *engine);
void ipt_engine_pause_at(struct engine *engine, uint64_t offset);

/* The PT in memory, which libipt reads, and which these engines write to. */
static inline uint8_t *ipt_bytes(const struct engine_config *config)
{
	return (uint8_t *)(uintptr_t)config->pt.memory;
}

/* Return: whether a TIP.PGD may not say to where a direct branch left the code that PT is of. */
bool ipt_has_skl014(const struct engine_config *config);

/* Take the event that is pending. Return: whether @ret_step is one that the caller must see; if
 * not, see engine->status. */
bool ipt_take_event(struct ipt_engine *engine, struct engine_step *ret_step);

/* Must a mark that waits in engine->newer be given out before anything else? */
bool ipt_newer_is_due(const struct ipt_engine *engine);

/* Take the oldest of them. */
void ipt_take_newer(struct ipt_engine *engine, struct engine_step *ret_step);

/* That which packets behind the offset to pause at tell begins after @n_before runs. */
void ipt_pass(struct ipt_engine *engine, size_t n_before, struct engine_step *ret_step);

/*
 * Does it begin with the instruction that @output ends with? @offset: of the packets that had not
 * been used before that. Return: whether it does; then it is a run of its own, and @ret_step says
 * so.
 */
bool ipt_pass_branch(struct ipt_engine *engine, struct ipt_output *output, uint64_t offset,
		     struct engine_step *ret_step);

/*
 * A stretch of code begins at @ip, by a packet that begins or ends at @offset: between which times
 * did it run? @counts: the engine's time is that of the cycles up to there.
 */
void ipt_begin_stretch(struct ipt_engine *engine, uint64_t offset, uint64_t ip, bool counts);

/* Return: the offset up to which packets have been used up. */
uint64_t ipt_offset(const struct ipt_engine *engine);

/* Return: 16, 32 or 64. */
uint8_t ipt_mode_bits(enum pt_exec_mode mode);

/*
 * Add @n instructions from @ip on, which follow each other in memory, but for direct branches.
 *
 * Return: 0; -pte_nomap if the code is not there; -pte_bad_insn if it is no code; -pte_bad_query if
 *         what was added before does not lead there; -pte_nomem.
 */
int ipt_emit(struct ipt_engine *engine, struct ipt_output *output, uint64_t ip, size_t n,
	     uint8_t mode);

/* Add the one instruction at @ip whose bytes cross mappings. Return: as ipt_emit(). */
int ipt_emit_stitched(struct ipt_engine *engine, struct ipt_output *output, uint64_t ip,
		      uint8_t mode, const uint8_t *bytes, size_t size);

/*
 * libipt's two decoders have the same calls by other names and types. This makes a file's own set
 * of them: IPT_CALLS(blk) or IPT_CALLS(insn), and IPT_CALLS_OPS fills them into its struct ipt_ops.
 */
#define IPT_CALLS(d)                                                           \
	static void *alloc(const struct pt_config *config)                     \
	{                                                                      \
		return pt_##d##_alloc_decoder(config);                         \
	}                                                                      \
	static void release(void *decoder)                                     \
	{                                                                      \
		pt_##d##_free_decoder(decoder);                                \
	}                                                                      \
	static int sync_forward(void *decoder)                                 \
	{                                                                      \
		return pt_##d##_sync_forward(decoder);                         \
	}                                                                      \
	static int sync_set(void *decoder, uint64_t offset)                    \
	{                                                                      \
		return pt_##d##_sync_set(decoder, offset);                     \
	}                                                                      \
	static int get_offset(const void *decoder, uint64_t *ret_offset)       \
	{                                                                      \
		return pt_##d##_get_offset(decoder, ret_offset);               \
	}                                                                      \
	static int get_sync_offset(const void *decoder, uint64_t *ret_offset)  \
	{                                                                      \
		return pt_##d##_get_sync_offset(decoder, ret_offset);          \
	}                                                                      \
	static int get_time(void *decoder, uint64_t *ret_tsc)                  \
	{                                                                      \
		return pt_##d##_time(decoder, ret_tsc, NULL, NULL);            \
	}                                                                      \
	static int set_image(void *decoder, struct pt_image *image)            \
	{                                                                      \
		return pt_##d##_set_image(decoder, image);                     \
	}                                                                      \
	static int event(void *decoder, struct pt_event *ret_event)            \
	{                                                                      \
		return pt_##d##_event(decoder, ret_event, sizeof(*ret_event)); \
	}

#define IPT_CALLS_OPS                                                                        \
	.alloc = alloc, .free = release, .sync_forward = sync_forward, .sync_set = sync_set, \
	.get_offset = get_offset, .get_sync_offset = get_sync_offset, .get_time = get_time,  \
	.set_image = set_image, .event = event
