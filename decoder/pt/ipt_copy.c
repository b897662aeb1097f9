/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/pt/ipt_copy.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ptd/record.h"

#define WINDOW       (UINT64_C(1) << 22)
#define FIRST_WINDOW (UINT64_C(1) << 8)

#define UNKNOWN 0xd9 /* TRIG, which libipt 2.0.5 does not know */

static const uint8_t exstop_ip[] = { 0x02, 0xe2 }; /* an EXSTOP packet with an address */

int ipt_copy_init(struct ipt_copy *copy, const struct fileparts *pt, uint64_t window,
		  uint32_t errata, bool has_events)
{
	void *p;

	*copy = (struct ipt_copy){ .size = pt->size,
				   .n_at_once = window ?: WINDOW,
				   .reader = { .errata = errata },
				   .has_events = has_events };
	window_init(&copy->window, pt, WINDOW_SIZE);
	p = mmap(NULL, IPT_COPY_LEAD + pt->size, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED)
		return -ENOMEM;
	copy->bytes = (uint8_t *)p + IPT_COPY_LEAD;
	return 0;
}

void ipt_copy_deinit(struct ipt_copy *copy)
{
	if (copy->bytes)
		(void)munmap(copy->bytes - IPT_COPY_LEAD, IPT_COPY_LEAD + copy->size);
	window_deinit(&copy->window);
	*copy = (struct ipt_copy){};
}

/* Give back the memory of the pages before @used. */
static void release(struct ipt_copy *copy, uint64_t used)
{
	const uint64_t page_size = (uint64_t)sysconf(_SC_PAGESIZE);

	(void)madvise(copy->bytes, used & ~(page_size - 1), MADV_DONTNEED);
}

/* Return: whether a FUP behind the packet is of it alone, and not of an interruption or of a PSB or
 * an OVF before it. */
static bool has_own_fup(const struct ipt_copy *copy, const struct packet *packet)
{
	switch (packet->type) {
	case PACKET_MWAIT:
		return true;
	case PACKET_BEP:
	case PACKET_TRIG:
		return packet->flag && !copy->is_status;
	case PACKET_CFE:
		return packet->flag && !copy->is_status &&
		       (copy->is_off || packet->value == PTD_CFE_IRET ||
			packet->value == PTD_CFE_VMENTRY || packet->value == PTD_CFE_UIRET);
	default:
		return false;
	}
}

/* Let the packet at the end wait for a FUP. */
static void wait_for_fup(struct ipt_copy *copy, bool is_mode)
{
	copy->waits = true;
	copy->is_mode = is_mode;
	copy->waiting = copy->end;
}

static void take_fup(struct ipt_copy *copy)
{
	if (copy->waits)
		memcpy(copy->bytes + copy->waiting, exstop_ip, sizeof(exstop_ip));
	copy->is_off = copy->is_off && !copy->is_status;
	copy->waits = copy->is_status = false;
}

/* Note what the packet at the end changes, and blank it if libipt does not know it. @size: how many
 * of its bytes are there. */
static void take_packet(struct ipt_copy *copy, const struct packet *packet, size_t size)
{
	/* Bytes that an erratum has spoiled are a PAD, too. */
	if (packet_is_in(packet, PACKET_BIT(PAD) | PACKET_BIT(MWAIT) | PACKETS_OF_REPORTS) ||
	    (copy->is_guest && packet_is_of_tsc(packet)))
		memset(copy->bytes + copy->end, 0, size);
	if (packet_is_in(packet, PACKETS_OF_TIME))
		return;
	if (has_own_fup(copy, packet))
		wait_for_fup(copy, false);
	else if (copy->is_mode && packet->type != PACKET_FUP)
		copy->waits = false;
	switch (packet->type) {
	case PACKET_PIP:
		copy->is_guest = packet->extra;
		return;
	case PACKET_MODE_EXEC:
		if (copy->has_events && !copy->is_status && !copy->waits)
			wait_for_fup(copy, true);
		return;
	case PACKET_FUP:
		take_fup(copy);
		return;
	case PACKET_EXSTOP:
		/* It has a FUP itself; or it has none, and neither has the MWAIT before it. */
		copy->waits = false;
		return;
	case PACKET_PSB:
	case PACKET_OVF:
		copy->is_off = copy->is_status = true;
		copy->is_in_psb = packet->type == PACKET_PSB;
		copy->waits = false;
		return;
	case PACKET_PSBEND:
		copy->is_status = copy->is_in_psb = false;
		return;
	case PACKET_TIP_PGE:
		copy->is_off = copy->is_status = copy->waits = false;
		return;
	case PACKET_TIP_PGD:
		copy->is_off = true;
		return;
	default:
		return;
	}
}

/* Return: whether a packet that is to come may change those that are there, or is of the same PSB+,
 * in which libipt 2.1 knows all packets. fill() waits for it, but for no more than a window. */
static bool is_open(const struct ipt_copy *copy)
{
	return copy->waits || copy->is_status || copy->is_in_psb;
}

/* Copy the next window; the one behind it is larger. */
static int fill(struct ipt_copy *copy)
{
	const uint64_t begin = copy->end, n_open = 2 * copy->n_at_once, n_closed = copy->n_next;
	int status = 0;

	copy->n_next = 2 * n_closed < copy->n_at_once ? 2 * n_closed : copy->n_at_once;
	while (copy->end < copy->size && copy->end - begin < (is_open(copy) ? n_open : n_closed)) {
		struct packet packet;
		size_t n;
		const uint8_t *p = window_at(&copy->window, copy->end, PACKET_SIZE_MAX + 1, &n);

		status = packet_read(&copy->reader, p, n, &packet);
		if (copy->window.error || status == PACKET_BAD)
			break;
		if (status != PACKET_CUT)
			n = packet.size;
		memcpy(copy->bytes + copy->end, p, n);
		take_packet(copy, &packet, n);
		copy->end += n;
	}
	copy->is_bad = status == PACKET_BAD;
	if (copy->end < copy->size)
		copy->bytes[copy->end] = UNKNOWN;
	return copy->window.error;
}

int ipt_copy_begin(struct ipt_copy *copy, uint64_t offset, const uint8_t *psb, size_t n)
{
	assert(n <= IPT_COPY_LEAD);
	if (n > 0)
		memcpy(copy->bytes + offset - n, psb, n);
	copy->end = offset;
	copy->n_next = FIRST_WINDOW < copy->n_at_once ? FIRST_WINDOW : copy->n_at_once;
	copy->reader.item_size = 0;
	copy->is_off = copy->is_status = copy->is_in_psb = copy->waits = false;
	return fill(copy);
}

int ipt_copy_go_on(struct ipt_copy *copy, uint64_t offset, uint64_t used)
{
	if (offset != copy->end || copy->is_bad)
		return -EBADMSG;
	release(copy, used);
	return fill(copy);
}
