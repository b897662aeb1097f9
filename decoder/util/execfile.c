/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/util/execfile.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#define HEADERS_MAX 64

int execfile_check(const char *path)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EACCES;
	return faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) < 0 ? -errno : 0;
}

/* "#! interpreter argument", where the argument goes on to the end of the line. */
static void read_script(const char head[static EXECFILE_HEAD], struct execfile *file)
{
	const char *end = memchr(head, '\n', EXECFILE_HEAD), *at, *to;

	/* Without an end of line the interpreter's name may be cut off. */
	if (!end || memchr(head, '\0', (size_t)(end - head)))
		return;
	while (end > head && strchr(" \t", end[-1]))
		end--;
	for (at = head + 2; at < end && strchr(" \t", *at);)
		at++;
	for (to = at; to < end && !strchr(" \t", *to);)
		to++;
	if (to == at)
		return;
	memcpy(file->interpreter, at, (size_t)(to - at));
	for (at = to; at < end && strchr(" \t", *at);)
		at++;
	if (at < end)
		memcpy(file->argument, at, (size_t)(end - at));
	file->kind = EXECFILE_SCRIPT;
}

static void read_loader(int fd, const Elf64_Ehdr *elf, struct execfile *file)
{
	for (unsigned i = 0; i < elf->e_phnum && i < HEADERS_MAX; i++) {
		const off_t at = (off_t)(elf->e_phoff + (uint64_t)i * sizeof(Elf64_Phdr));
		Elf64_Phdr p;

		if (at < 0 || pread(fd, &p, sizeof(p), at) != (ssize_t)sizeof(p)) {
			file->kind = EXECFILE_OTHER;
			return;
		}
		if (p.p_type != PT_INTERP)
			continue;
		if (p.p_filesz == 0 || p.p_filesz >= sizeof(file->loader) ||
		    pread(fd, file->loader, p.p_filesz, (off_t)p.p_offset) != (ssize_t)p.p_filesz)
			file->kind = EXECFILE_OTHER;
		return;
	}
}

static void read_elf(int fd, const char *head, size_t size, struct execfile *file)
{
	Elf64_Ehdr elf;

	memcpy(&elf, head, sizeof(elf));
	if (size < sizeof(elf) || memcmp(elf.e_ident, ELFMAG, SELFMAG) != 0)
		return;
	if (elf.e_type != ET_EXEC && elf.e_type != ET_DYN)
		return;
	file->kind = EXECFILE_FOREIGN;
	if (elf.e_ident[EI_CLASS] != ELFCLASS64 || elf.e_ident[EI_DATA] != ELFDATA2LSB ||
	    elf.e_machine != EM_X86_64 || elf.e_phentsize != sizeof(Elf64_Phdr))
		return;
	file->kind = EXECFILE_PROGRAM;
	read_loader(fd, &elf, file);
}

int execfile_read(const char *path, struct execfile *ret_file)
{
	/* A FIFO must not hold us up. */
	_cleanup_(fd_closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	char head[EXECFILE_HEAD] = "";
	struct stat st;
	ssize_t n;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	n = pread(fd, head, sizeof(head), 0);
	if (n < 0)
		return -errno;

	*ret_file = (struct execfile){
		.kind = EXECFILE_OTHER,
		.privileged = (st.st_mode & (S_ISUID | S_ISGID)) ||
			      fgetxattr(fd, "security.capability", NULL, 0) > 0,
	};
	if (head[0] == '#' && head[1] == '!')
		read_script(head, ret_file);
	else
		read_elf(fd, head, (size_t)n, ret_file);
	return 0;
}
