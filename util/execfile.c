/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "util/execfile.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "util/regular.h"

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

/* What of the headers counts, in either class. */
struct headers {
	uint64_t at;
	size_t size; /* of one */
	unsigned n;
};

/* Return: 0; -EBADMSG if it is cut off. */
static int read_header(int fd, enum execfile_kind kind, uint64_t at, Elf64_Phdr *ret_header)
{
	Elf32_Phdr p32;
	Elf64_Phdr p64;

	if (at > INT64_MAX)
		return -EBADMSG;
	if (kind == EXECFILE_X86_64) {
		if (pread(fd, &p64, sizeof(p64), (off_t)at) != (ssize_t)sizeof(p64))
			return -EBADMSG;
	} else {
		if (pread(fd, &p32, sizeof(p32), (off_t)at) != (ssize_t)sizeof(p32))
			return -EBADMSG;
		p64 = (Elf64_Phdr){
			.p_type = p32.p_type,
			.p_offset = p32.p_offset,
			.p_filesz = p32.p_filesz,
		};
	}
	*ret_header = p64;
	return 0;
}

static void read_loader(int fd, const struct headers *headers, struct execfile *file)
{
	for (unsigned i = 0; i < headers->n && i < HEADERS_MAX; i++) {
		Elf64_Phdr p;

		if (read_header(fd, file->kind, headers->at + i * headers->size, &p) < 0) {
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

/* The program headers of a program that is for x86. Return: its kind. */
static enum execfile_kind find_headers(const Elf32_Ehdr *e32, const Elf64_Ehdr *e64,
				       struct headers *ret_headers)
{
	/* The first fields are in the same place in both. */
	if (e32->e_ident[EI_DATA] != ELFDATA2LSB)
		return EXECFILE_FOREIGN;
	if (e32->e_ident[EI_CLASS] == ELFCLASS64 && e64->e_machine == EM_X86_64 &&
	    e64->e_phentsize == sizeof(Elf64_Phdr)) {
		*ret_headers = (struct headers){ e64->e_phoff, sizeof(Elf64_Phdr), e64->e_phnum };
		return EXECFILE_X86_64;
	}
	/* Also x32's are of this class, but for the other machine. */
	if (e32->e_ident[EI_CLASS] == ELFCLASS32 && e32->e_machine == EM_386 &&
	    e32->e_phentsize == sizeof(Elf32_Phdr)) {
		*ret_headers = (struct headers){ e32->e_phoff, sizeof(Elf32_Phdr), e32->e_phnum };
		return EXECFILE_I386;
	}
	return EXECFILE_FOREIGN;
}

static void read_elf(int fd, const char *head, size_t size, struct execfile *file)
{
	struct headers headers = {};
	Elf32_Ehdr e32;
	Elf64_Ehdr e64;

	memcpy(&e32, head, sizeof(e32));
	memcpy(&e64, head, sizeof(e64));
	if (size < sizeof(e32) || memcmp(e32.e_ident, ELFMAG, SELFMAG) != 0)
		return;
	if (e32.e_ident[EI_CLASS] == ELFCLASS64 && size < sizeof(e64))
		return;
	if (e32.e_type != ET_EXEC && e32.e_type != ET_DYN)
		return;
	file->kind = find_headers(&e32, &e64, &headers);
	if (file->kind != EXECFILE_FOREIGN)
		read_loader(fd, &headers, file);
}

/* As the kernel sees it: fs/exec.c bprm_fill_uid(), security/commoncap.c. */
static bool is_privileged(int fd, const struct stat *st)
{
	struct statvfs fs;

	if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1)
		return false;
	if (fstatvfs(fd, &fs) == 0 && fs.f_flag & ST_NOSUID)
		return false;
	if (st->st_mode & S_ISUID && st->st_uid != geteuid())
		return true;
	/* Without the right to execute it is a file for mandatory locks. */
	if (st->st_mode & S_ISGID && st->st_mode & S_IXGRP && st->st_gid != getegid())
		return true;
	return geteuid() != 0 && fgetxattr(fd, "security.capability", NULL, 0) > 0;
}

const char *execfile_unseen(const struct execfile *file)
{
	if (file->kind == EXECFILE_FOREIGN)
		return "it is no program for x86 that QEMU runs";
	if (file->privileged)
		return "it gains privileges, which it would not under the emulator";
	return NULL;
}

int execfile_read(const char *path, struct execfile *ret_file)
{
	_cleanup_(fd_closep) int fd = regular_open(AT_FDCWD, path, 0);
	char head[EXECFILE_HEAD] = "";
	struct stat st;
	ssize_t n;

	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	n = pread(fd, head, sizeof(head), 0);
	if (n < 0)
		return -errno;

	*ret_file = (struct execfile){
		.kind = EXECFILE_OTHER,
		.privileged = is_privileged(fd, &st),
	};
	if (head[0] == '#' && head[1] == '!')
		read_script(head, ret_file);
	else
		read_elf(fd, head, (size_t)n, ret_file);
	return 0;
}
