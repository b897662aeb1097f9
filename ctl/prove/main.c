/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * ptd-subject list | run SUBJECT | step SUBJECT PREFIX | agree TRUTH DECODED: what `ptctl check
 * --prove` records, steps and compares, by the script prove beside this file. It is linked to fixed
 * addresses and without shared libraries, so that every process of it has the same code at the same
 * place.
 */

#include <err.h>
#include <stdio.h>
#include <string.h>

#include "ctl/prove/agree.h"
#include "ctl/prove/step.h"
#include "ctl/prove/subject.h"

static const struct subject *find_subject(const char *name)
{
	for (size_t i = 0; i < n_subjects; i++)
		if (strcmp(subjects[i].name, name) == 0)
			return &subjects[i];
	errx(2, "there is no subject \"%s\"", name);
}

int main(int argc, char **argv)
{
	const char *verb = argc > 1 ? argv[1] : "";

	if (strcmp(verb, "list") == 0 && argc == 2)
		for (size_t i = 0; i < n_subjects; i++)
			puts(subjects[i].name);
	else if (strcmp(verb, "run") == 0 && argc == 3)
		find_subject(argv[2])->run();
	else if (strcmp(verb, "step") == 0 && argc == 4)
		step_subject(find_subject(argv[2]), argv[3]);
	else if (strcmp(verb, "agree") == 0 && argc == 4)
		return agree(argv[2], argv[3]);
	else
		errx(2, "usage: ptd-subject list | run SUBJECT | step SUBJECT PREFIX | agree TRUTH "
			"DECODED");
	return 0;
}
