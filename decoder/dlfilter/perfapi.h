/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The interface between perf script and a dlfilter, as perf-dlfilter(1) documents it: what perf
 * looks for in the shared object, and what it hands over. Perf's own header need not be installed;
 * where it is, test-dlfilter.sh compares the two.
 *
 * Perf and the filter may be of different versions: each structure states its size, and members are
 * only ever added at the end.
 */

#include <stdint.h>

struct perf_event_attr;

/* Bits of perf_dlfilter_sample.flags. */
enum {
	PERF_DLFILTER_FLAG_BRANCH = 1 << 0,
	PERF_DLFILTER_FLAG_ASYNC = 1 << 5,
	PERF_DLFILTER_FLAG_TX_ABORT = 1 << 7,
	PERF_DLFILTER_FLAG_TRACE_BEGIN = 1 << 8,
	PERF_DLFILTER_FLAG_TRACE_END = 1 << 9,
};

/* The members up to the last one that is used here. */
struct perf_dlfilter_sample {
	uint32_t size;
	uint16_t ins_lat;
	uint16_t p_stage_cyc;
	uint64_t ip;
	int32_t pid;
	int32_t tid;
	uint64_t time;
	uint64_t addr;
	uint64_t id;
	uint64_t stream_id;
	uint64_t period;
	uint64_t weight;
	uint64_t transaction;
	uint64_t insn_cnt;
	uint64_t cyc_cnt;
	int32_t cpu; /* -1: not known */
	uint32_t flags;
};

/* What perf knows of an address. The filter sets @size before it asks for an address of its own. */
struct perf_dlfilter_al {
	uint32_t size;
	uint32_t symoff;
	const char *sym;
	uint64_t addr; /* in the object, as are the next two */
	uint64_t sym_start;
	uint64_t sym_end;
	const char *dso;
	uint8_t sym_binding;
	uint8_t is_64_bit;
	uint8_t is_kernel_ip;
	uint32_t buildid_size;
	uint8_t *buildid;
	uint8_t filtered;
	const char *comm; /* only from resolve_ip() */
	void *priv;       /* perf's own, since 6.6 */
};

/* Perf fills this in when it loads the filter. A function that a perf does not have is NULL. What
 * resolve_address() gave is in use until al_cleanup(). */
struct perf_dlfilter_fns {
	const struct perf_dlfilter_al *(*resolve_ip)(void *ctx);
	const struct perf_dlfilter_al *(*resolve_addr)(void *ctx);
	char **(*args)(void *ctx, int *n);
	int32_t (*resolve_address)(void *ctx, uint64_t address, struct perf_dlfilter_al *al);
	const uint8_t *(*insn)(void *ctx, uint32_t *size);
	const char *(*srcline)(void *ctx, uint32_t *line);
	struct perf_event_attr *(*attr)(void *ctx);
	int32_t (*object_code)(void *ctx, uint64_t ip, void *bytes, uint32_t size);
	void (*al_cleanup)(void *ctx, struct perf_dlfilter_al *al); /* since perf 6.6 */
	void *(*reserved[119])(void *);
};

extern struct perf_dlfilter_fns perf_dlfilter_fns;

/* Perf calls these. Return: 0; negative to end perf; filter_event(): 1, perf leaves it out. */
int start(void **ret_data, void *ctx);
int filter_event(void *data, const struct perf_dlfilter_sample *sample, void *ctx);
int stop(void *data, void *ctx);

/* Return: a line on what the filter does, and @ret_long, a longer text. */
const char *filter_description(const char **ret_long);
