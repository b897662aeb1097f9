/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/source/source.h"

#include <errno.h>

#include "base/log.h"
#include "daemon/config/config.h"
#include "daemon/pt/source_pt.h"
#include "daemon/soft/emuterms.h"
#include "daemon/soft/source_emu.h"

static int new_emu(const struct config *config, struct keeperlink *link, struct source **ret_source)
{
	int r;

	for (unsigned i = 0; i < _PTTERMS; i++)
		if (config->pt.values[i] > 0 && !emuterms_knows(i))
			log_warning("PT=%s: the software source does not write that, ignoring",
				    ptterms_name(i));
	r = source_emu_new(config, link, ret_source);
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
	if (config->source == CONFIG_SOURCE_PT) {
		log_error(
		    "Source=pt: there is no Intel PT on this machine (%s does not exist): use "
		    "Source=emu",
		    SOURCE_PT_DEVICE);
		return -EOPNOTSUPP;
	}
	log_notice(
	    "no Intel PT on this machine (%s does not exist): using the software source, which "
	    "records programs started by `ptctl record`",
	    SOURCE_PT_DEVICE);
	return new_emu(config, link, ret_source);
}
