/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * attack-stuckfs DIRECTORY FILE USER OWNER VERB...: a file server that serves USER only.
 *
 * It mounts a file system at the directory, in which any name is a file with the content of FILE,
 * which says that it belongs to OWNER; a jitdump says that it has 200 MiB. Requests of other
 * users, of the kinds that the verbs name (look, stat, open, read), are taken and never answered,
 * so that whoever waits for them cannot even be killed; with the verb "slow" each page that
 * others read takes 2 ms; all other requests are answered at once. Prints "ready" when it is
 * mounted. At SIGTERM it leaves, and whoever waits gets an error.
 */

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"

#define IN_MAX   (1u << 20)
#define FILE_MAX (8u << 20)
#define READ_MAX (1u << 17)
#define FIRST    2u /* the inode of the first name; the directory is 1 */
#define NAMES    4096u

#define JITDUMP_SIZE (UINT64_C(200) << 20)

static int dev;
static uint32_t user, owner;
static char content[FILE_MAX];
static size_t content_size;
static char names[NAMES][64];
static uint64_t n_names;
static bool silent[FUSE_RENAME2 + 1]; /* by opcode */
static bool slow;

static void reply(const struct fuse_in_header *in, int error, const void *bytes, size_t size)
{
	static char out[sizeof(struct fuse_out_header) + READ_MAX];
	const struct fuse_out_header header = { .len = (uint32_t)(sizeof(header) + size),
						.error = error,
						.unique = in->unique };

	memcpy(out, &header, sizeof(header));
	if (size > 0)
		memcpy(out + sizeof(header), bytes, size);
	(void)!write(dev, out, header.len); /* who asked may be gone */
}

static struct fuse_attr attr_of(uint64_t ino)
{
	const bool is_dir = ino == FUSE_ROOT_ID;
	const uint64_t size = is_dir ? 0
			      : strncmp(names[ino - FIRST], "jit-", strlen("jit-")) == 0
				  ? JITDUMP_SIZE
				  : content_size;

	return (struct fuse_attr){ .ino = ino,
				   .size = size,
				   .blocks = (size + 511) / 512,
				   .mode = is_dir ? S_IFDIR | 0755 : S_IFREG | 0755,
				   .nlink = 1,
				   .uid = owner,
				   .gid = owner,
				   .blksize = 4096 };
}

/* Nothing is remembered by the kernel: it asks each time. */
static void look(const struct fuse_in_header *in, const char *name)
{
	struct fuse_entry_out out = {};
	uint64_t i = 0;

	while (i < n_names && strcmp(names[i], name) != 0)
		i++;
	if (i == NAMES || strlen(name) >= sizeof(names[0])) {
		reply(in, -ENOENT, NULL, 0);
		return;
	}
	if (i == n_names)
		strcpy(names[n_names++], name);
	out.nodeid = FIRST + i;
	out.attr = attr_of(out.nodeid);
	reply(in, 0, &out, sizeof(out));
}

static void stat_file(const struct fuse_in_header *in)
{
	const struct fuse_attr_out out = { .attr = attr_of(in->nodeid) };

	reply(in, 0, &out, sizeof(out));
}

static void read_file(const struct fuse_in_header *in, const struct fuse_read_in *arg)
{
	const size_t at = arg->offset < content_size ? arg->offset : content_size;
	size_t size = arg->size < READ_MAX ? arg->size : READ_MAX;

	size = size < content_size - at ? size : content_size - at;
	reply(in, 0, content + at, size);
}

static void begin(const struct fuse_in_header *in, const struct fuse_init_in *arg)
{
	const struct fuse_init_out out = { .major = FUSE_KERNEL_VERSION,
					   .minor = arg->minor < FUSE_KERNEL_MINOR_VERSION
							? arg->minor
							: FUSE_KERNEL_MINOR_VERSION,
					   .max_write = 4096,
					   .time_gran = 1 };

	reply(in, 0, &out, sizeof(out));
}

static void answer(const struct fuse_in_header *in, const void *arg)
{
	const struct fuse_open_out opened = {};

	switch (in->opcode) {
	case FUSE_INIT:
		begin(in, arg);
		break;
	case FUSE_LOOKUP:
		look(in, arg);
		break;
	case FUSE_GETATTR:
		stat_file(in);
		break;
	case FUSE_OPEN:
	case FUSE_OPENDIR:
		reply(in, 0, &opened, sizeof(opened));
		break;
	case FUSE_READ:
		read_file(in, arg);
		break;
	case FUSE_FLUSH:
	case FUSE_RELEASE:
	case FUSE_RELEASEDIR:
		reply(in, 0, NULL, 0);
		break;
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
	case FUSE_INTERRUPT:
		break;
	default:
		reply(in, -ENOSYS, NULL, 0);
		break;
	}
}

static void make_silent(const char *verb)
{
	if (strcmp(verb, "look") == 0)
		silent[FUSE_LOOKUP] = true;
	else if (strcmp(verb, "stat") == 0)
		silent[FUSE_GETATTR] = true;
	else if (strcmp(verb, "open") == 0)
		silent[FUSE_OPEN] = true;
	else if (strcmp(verb, "read") == 0)
		silent[FUSE_READ] = true;
	else if (strcmp(verb, "slow") == 0)
		slow = true;
	else
		errx(2, "%s: no such verb", verb);
}

static void read_content(const char *path)
{
	_cleanup_(fd_closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
	const ssize_t n = fd < 0 ? -1 : read(fd, content, sizeof(content));

	if (n < 0 || n == FILE_MAX)
		err(1, "%s", path);
	content_size = (size_t)n;
}

static const char *mounted;

static void leave(int signal)
{
	(void)signal;
	(void)umount2(mounted, MNT_DETACH);
	_exit(0);
}

int main(int argc, char **argv)
{
	static char buffer[IN_MAX] __attribute__((aligned(8)));
	const struct fuse_in_header *in = (const void *)buffer;
	char options[128];

	if (argc < 5)
		errx(2, "Usage: attack-stuckfs DIRECTORY FILE USER OWNER VERB...");
	user = (uint32_t)strtoul(argv[3], NULL, 10);
	owner = (uint32_t)strtoul(argv[4], NULL, 10);
	read_content(argv[2]);
	for (int i = 5; i < argc; i++)
		make_silent(argv[i]);
	dev = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	if (dev < 0)
		err(77, "/dev/fuse");
	(void)snprintf(options, sizeof(options),
		       "fd=%d,rootmode=40000,user_id=%u,group_id=%u,allow_other,max_read=4096", dev,
		       user, user);
	mounted = argv[1];
	if (mount("stuckfs", mounted, "fuse.stuckfs", MS_NOSUID | MS_NODEV, options) < 0)
		err(77, "mount");
	(void)signal(SIGTERM, leave);
	puts("ready");
	(void)fflush(stdout);
	for (;;) {
		const ssize_t n = read(dev, buffer, sizeof(buffer));

		if (n < 0 && errno == ENODEV)
			return 0;
		if (n < (ssize_t)sizeof(*in))
			continue;
		if (in->opcode <= FUSE_RENAME2 && silent[in->opcode] && in->uid != user)
			continue;
		if (slow && in->opcode == FUSE_READ && in->uid != user)
			(void)nanosleep(&(struct timespec){ .tv_nsec = 2000000 }, NULL);
		answer(in, in + 1);
	}
}
