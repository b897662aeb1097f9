/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/source/source.h"

#include <errno.h>
#include <inttypes.h>

#include "base/log.h"
#include "daemon/config/config.h"
#include "daemon/proc/meminfo.h"
#include "daemon/pt/source_pt.h"
#include "daemon/soft/emuterms.h"
#include "daemon/soft/source_emu.h"

#define RING_SIZE_MIN (UINT64_C(64) << 10)

/* A private recorder shares what memory a control group allows with the program: rings, and the
 * copies that a snapshot makes of them, take half of it at most. */
static void fit_rings(struct config *config)
{
	const uint64_t available = meminfo_available(), limit = meminfo_limit();
	const uint64_t most = (available > 0 && available < limit ? available : limit) / 4;
	const uint64_t wanted = config->aux_size, n = emuterms_layout(config).n_cpus;

	while (config->aux_size > RING_SIZE_MIN && n * config->aux_size > most)
		config->aux_size /= 2;
	if (config->aux_size < wanted)
		log_notice("memory is short: rings of %" PRIu64 " KiB instead of %" PRIu64,
			   config->aux_size >> 10, wanted >> 10);
}

static int new_emu(const struct config *config, struct keeperlink *link, struct source **ret_source)
{
	struct config fitted = *config;
	int r;

	if (config->parent > 0)
		fit_rings(&fitted);
	for (unsigned i = 0; i < _PTTERMS; i++)
		if (config->pt.values[i] > 0 && !emuterms_knows(i))
			log_warning("PT=%s: the software source does not write that, ignoring",
				    ptterms_name(i));
	r = source_emu_new(&fitted, link, ret_source);
	if (r == -EOPNOTSUPP)
		return log_error_errno(r, "PT=: the software source writes TSC packets always: "
					  "set tsc=1");
	if (r < 0)
		return log_error_errno(r, "cannot make the software source's rings: %m");
	return 0;
}

int source_new(const struct config *config, struct keeperlink *link, const char *runtime_dir,
	       struct source **ret_source)
{
	if (config->source == CONFIG_SOURCE_EMU)
		return new_emu(config, link, ret_source);
	if (source_pt_exists()) {
		const int r = source_pt_new(config, link, runtime_dir, ret_source);

		if (r == 0 || config->parent == 0 || config->source == CONFIG_SOURCE_PT)
			return r;
		/* A program can be recorded anyhow. Why it is not by PT has been logged. */
		return new_emu(config, link, ret_source);
	}
	if (config->source == CONFIG_SOURCE_PT)
		return log_as(
		    -EOPNOTSUPP,
		    "Source=pt: there is no Intel PT on this machine (%s does not exist): use "
		    "Source=emu",
		    SOURCE_PT_DEVICE);
	log_notice(
	    "no Intel PT on this machine (%s does not exist): using the software source, which "
	    "records programs started by `ptctl record`",
	    SOURCE_PT_DEVICE);
	return new_emu(config, link, ret_source);
}
