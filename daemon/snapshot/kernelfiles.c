/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/snapshot/kernelfiles.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "daemon/helper/collector/link.h"
#include "util/perf/codec.h"
#include "util/perf/perfrec.h"

/* Of each request. No user can delay the kernel's files; a machine that does much else can. */
#define PATIENCE_MS COLLECTOR_TIMEOUT_MAX

#define START_NS UINT64_C(5000000000) /* in which a collector that is being started is there */
#define AGAIN_NS 50000000             /* between two attempts */

/* A kernel has some 20 MiB of code, and 10 MiB of names. */
#define NAMES_MAX   (UINT64_C(64) << 20)
#define CODE_MAX    (UINT64_C(512) << 20)
#define CODE_MORE   (UINT64_C(32) << 20) /* bytes of the file beside the code: headers, and holes */
#define RECORDS_MAX (UINT64_C(4) << 20)

#define WHY_NO_ANSWER "the collector did not answer in time"
#define WHY_ODD       "the collector's answer makes no sense"
#define WHY_ERROR     "the collector could not read the kernel's code"

/* Return: 0; KERNELFILES_NONE; or the negative errno of what is not the collector's fault. */
static int judge(int error, const struct collector_answer *answer, const char **reterr_why)
{
	switch (error) {
	case 0:
		if (!answer->lack)
			return 0;
		*reterr_why = kernellack_text(answer->lack);
		return KERNELFILES_NONE;
	/* It writes to our disk. */
	case -EIO:
	case -ENOSPC:
	case -EDQUOT:
	case -ECANCELED:
	case -ENOMEM:
		return error;
	default:
		*reterr_why = collectorlink_may_retry(error) ? WHY_NO_ANSWER : WHY_ERROR;
		return KERNELFILES_NONE;
	}
}

int kernelfiles_check(const char *runtime_dir, const char **reterr_why)
{
	_cleanup_(collectorlink_freep) struct collectorlink *link = NULL;
	const uint64_t until = clock_ns(CLOCK_MONOTONIC) + START_NS;
	struct collector_request request = { .verb = COLLECTOR_KERNEL_CODE,
					     .timeout_ms = PATIENCE_MS };
	struct collector_answer answer;
	int r;

	r = collectorlink_new(runtime_dir, false, &link);
	if (r < 0)
		return r;
	for (;;) {
		r = collectorlink_ask(link, &request, NULL, NULL, &answer, NULL);
		if (r != -ENOTCONN || clock_ns(CLOCK_MONOTONIC) >= until)
			break;
		(void)nanosleep(&(struct timespec){ .tv_nsec = AGAIN_NS }, NULL);
	}
	return judge(r, &answer, reterr_why);
}

static int create_file(int dir_fd, const char *name, int *ret_fd)
{
	*ret_fd = openat(dir_fd, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0640);
	return *ret_fd < 0 ? -errno : 0;
}

/* The collector wrote the file, and could have written more than was asked for. */
static int check_size(int fd, uint64_t size_max, const char **reterr_why)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	if ((uint64_t)st.st_size <= size_max)
		return 0;
	*reterr_why = WHY_ODD;
	return KERNELFILES_NONE;
}

static int ask(struct collectorlink *link, const struct kernelfiles_request *request,
	       struct collector_request *what, const int fds[static CHANNEL_FDS_MAX],
	       struct kernelfiles *files, const char **reterr_why)
{
	struct collector_answer answer;
	int r;

	r = collectorlink_ask(link, what, fds, request->cancel, &answer, NULL);
	r = judge(r, &answer, reterr_why);
	if (r != 0)
		return r;
	files->bytes += answer.size;
	files->bytes_unreadable += answer.bytes_unreadable;
	files->n_left_out += answer.n_left_out;
	return 0;
}

static int write_names(struct collectorlink *link, const struct kernelfiles_request *request,
		       struct kernelfiles *files, const char **reterr_why)
{
	_cleanup_(fd_closep) int names_fd = -1, modules_fd = -1;
	struct collector_request what = { .verb = COLLECTOR_KERNEL_NAMES,
					  .timeout_ms = PATIENCE_MS,
					  .size_max = NAMES_MAX };
	int r;

	r = create_file(request->dir_fd, "kallsyms", &names_fd);
	if (r == 0)
		r = create_file(request->dir_fd, "modules", &modules_fd);
	if (r == 0)
		r = ask(link, request, &what, (const int[]){ names_fd, modules_fd }, files,
			reterr_why);
	if (r == 0)
		r = check_size(names_fd, NAMES_MAX, reterr_why);
	return r == 0 ? check_size(modules_fd, NAMES_MAX, reterr_why) : r;
}

/* Return: 0; PERFREC_END; or -EBADMSG. */
static int next_mmap(struct cursor *c, struct record_mmap2 *ret_mmap)
{
	struct trailer trailer;
	struct perfrec rec;
	int r;

	r = perfrec_next(c, &rec);
	if (r != 0)
		return r == PERFREC_END ? r : -EBADMSG;
	if (rec.type != PERF_RECORD_MMAP || rec.misc != PERF_RECORD_MISC_KERNEL ||
	    trailer_take(&rec.body, PERFABI_SAMPLE_TYPE, &trailer) < 0 ||
	    record_read_mmap2(rec.type, rec.misc, rec.body, ret_mmap) < 0)
		return -EBADMSG;
	return ret_mmap->pid == UINT32_MAX ? 0 : -EBADMSG;
}

/* Written anew, so that nothing is in it that was not looked at. */
static int put_mmap(const struct record_mmap2 *mmap, record_put_fn put, void *userdata)
{
	const struct record_mmap2 own = {
		.misc = mmap->misc,
		.pid = mmap->pid,
		.addr = mmap->addr,
		.len = mmap->len,
		.pgoff = mmap->pgoff,
		.name = mmap->name,
	};
	const struct trailer trailer = record_trailer(0, 0, 0);
	uint8_t record[RECORD_OWN_MAX];

	return put(userdata, record, record_write_mmap(&own, &trailer, record, sizeof(record)));
}

int kernelfiles_put_records(const uint8_t *bytes, size_t size, record_put_fn put, void *userdata)
{
	struct cursor c = cursor_from(bytes, size);
	struct record_mmap2 mmap;
	int r;

	do
		r = next_mmap(&c, &mmap);
	while (r == 0);
	if (r < 0)
		return r;
	c = cursor_from(bytes, size);
	while (next_mmap(&c, &mmap) == 0) {
		r = put_mmap(&mmap, put, userdata);
		if (r < 0)
			return r;
	}
	return 0;
}

static int read_records(int fd, const struct kernelfiles_request *request, const char **reterr_why)
{
	_cleanup_(freep) uint8_t *bytes = NULL;
	struct stat st;
	int r;

	r = check_size(fd, RECORDS_MAX, reterr_why);
	if (r != 0)
		return r;
	if (fstat(fd, &st) < 0)
		return -errno;
	bytes = malloc((size_t)st.st_size + 1);
	if (!bytes)
		return -ENOMEM;
	r = pread(fd, bytes, (size_t)st.st_size, 0) == st.st_size
		? kernelfiles_put_records(bytes, (size_t)st.st_size, request->put,
					  request->userdata)
		: -EBADMSG;
	if (r != -EBADMSG)
		return r;
	*reterr_why = WHY_ODD;
	return KERNELFILES_NONE;
}

static int write_code(struct collectorlink *link, const struct kernelfiles_request *request,
		      struct kernelfiles *files, const char **reterr_why)
{
	_cleanup_(fd_closep) int code_fd = -1, records_fd = -1;
	struct collector_request what = { .verb = COLLECTOR_KERNEL_CODE,
					  .timeout_ms = PATIENCE_MS,
					  .size_max = CODE_MAX };
	int r;

	records_fd = memfd_create("records", MFD_CLOEXEC);
	if (records_fd < 0)
		return -errno;
	r = create_file(request->dir_fd, "kcore", &code_fd);
	if (r == 0)
		r = ask(link, request, &what, (const int[]){ code_fd, records_fd }, files,
			reterr_why);
	if (r == 0)
		r = check_size(code_fd, CODE_MAX + CODE_MORE, reterr_why);
	return r == 0 ? read_records(records_fd, request, reterr_why) : r;
}

int kernelfiles_write(const struct kernelfiles_request *request, struct kernelfiles *ret_files,
		      const char **reterr_why)
{
	_cleanup_(collectorlink_freep) struct collectorlink *link = NULL;
	struct kernelfiles files = {};
	int r;

	r = collectorlink_new(request->runtime_dir, false, &link);
	if (r == 0)
		r = write_names(link, request, &files, reterr_why);
	if (r == 0)
		r = write_code(link, request, &files, reterr_why);
	if (r == 0)
		*ret_files = files;
	return r;
}
