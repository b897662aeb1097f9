/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Config
 *
 * The settings in ptd.conf and its drop-ins, which ptd.conf(5) describes. A line that is not
 * understood is reported with file and line and ignored, because a recorder with defaults is better
 * than none.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "daemon/config/ptterms.h"

#define CONFIG_FILE_DEFAULT "/etc/ptd/ptd.conf"
#define CONFIG_CPUS_MAX     128u
#define CONFIG_SIZE_MAX     (UINT64_C(1) << 30) /* of one ring */

enum config_source {
	CONFIG_SOURCE_AUTO,
	CONFIG_SOURCE_EMU,
	CONFIG_SOURCE_PT,
};

/* Whose code hardware records. */
enum config_trace {
	CONFIG_TRACE_USER,
	CONFIG_TRACE_KERNEL,
	CONFIG_TRACE_ALL,
};

/* A limit of the spool. */
struct config_limit {
	uint64_t bytes;   /* if there is no @percent; otherwise at most these, 0: no bound */
	uint64_t percent; /* of the size of the spool's file system, 1 to 100; 0: none */
};

struct config {
	enum config_source source;
	struct ptterms pt;
	enum config_trace trace;
	uint32_t n_cpus; /* virtual CPUs of the software source; 0: as many as are online */
	bool long_tnt;   /* the software source writes long TNT packets, too */
	uint64_t aux_size;
	uint64_t switch_size;
	uint64_t task_size;
	uint64_t sideband_max;
	uint64_t jit_max;    /* bytes of jitdumps in one snapshot */
	uint64_t mem_max;    /* bytes of anonymous code in one snapshot */
	uint32_t keep_rings; /* seconds for which the keeper keeps the rings; 0: it does not */
	struct config_limit max_use;
	struct config_limit keep_free;
	uint64_t max_age_ns; /* of a snapshot; 0: no limit */

	/* No setting, but an option of ptd. 0: hardware records all tasks; otherwise what the
	 * children of this process, the caller's, execute. */
	uint32_t parent;
};

/* Called for each line that was not understood. @file is what the caller gave to the parser. */
typedef void (*config_warn_fn)(const char *file, unsigned line, const char *message);

/* Set the defaults. */
void config_init(struct config *ret_config);

/* Take over the settings in @text, the content of one file. @warn may be NULL. */
void config_parse(struct config *config, const char *file, const char *text, size_t size,
		  config_warn_fn warn);

/*
 * Read the file at @path, then every *.conf in the directory @path.d in the order of their names;
 * later settings win. @path itself may be absent if @optional.
 *
 * Return: 0; or negative errno if a file exists and cannot be read, and @reterr_path, if not NULL,
 *         is the path of that file, which the caller frees.
 */
_must_check_ int config_load(struct config *config, const char *path, bool optional,
			     config_warn_fn warn, char **reterr_path);

/* Called for each setting that differs; @live: it has been taken over. */
typedef void (*config_changed_fn)(const char *key, bool live);

/* Take over from @wanted into @config, which is in use, the settings that can change while the
 * recorder runs. */
void config_update(struct config *config, const struct config *wanted, config_changed_fn changed);

/* Return: 0, or -EINVAL if @word is none of auto, emu, pt. */
_must_check_ int config_source_from_string(const char *word, enum config_source *ret_source);
