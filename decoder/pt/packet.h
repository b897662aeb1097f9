/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Packet
 *
 * One PT packet, read from its bytes. This is the only place that knows how packets are written;
 * what they mean together is the walk's affair (walk.h).
 *
 * Nearly every packet can be read on its own. The exception is a PEBS record ("block"): the items
 * between its BBP and its BEP look like TNT packets, so that a reader has to remember that it is
 * in a block, and how long the items of that block are. struct packet_reader does.
 *
 * Source: SDM volume 3, chapter "Intel Processor Trace", section "Packet definitions"; of TRIG,
 * libipt 2.2.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"

/* No packet is longer. */
#define PACKET_SIZE_MAX 16

enum packet_type {
	PACKET_PAD,
	PACKET_TNT, /* @bits, @n_bits: branches taken or not */
	PACKET_TIP, /* @ip_bytes, @value: an address, as far as it is written */
	PACKET_TIP_PGE,
	PACKET_TIP_PGD,
	PACKET_FUP,
	PACKET_MODE_EXEC, /* @value: 16, 32 or 64; @flag: interrupts are enabled */
	PACKET_MODE_TSX,  /* @value: PACKET_TSX_… */
	PACKET_PIP,       /* @value: CR3, @extra: 1 of a guest, else 0 */
	PACKET_VMCS,      /* @value: its address */
	PACKET_TSC,       /* @value */
	PACKET_TMA,       /* @value: the crystal's count, @extra: TSC ticks since that */
	PACKET_MTC,       /* @value: 8 bits of the crystal's count */
	PACKET_CYC,       /* @value: cycles since the last CYC */
	PACKET_CBR,       /* @value: the ratio of the core's clock to the bus's */
	PACKET_PSB,
	PACKET_PSBEND,
	PACKET_OVF,
	PACKET_STOP,
	PACKET_MNT,    /* @value */
	PACKET_PTW,    /* @value: the operand, @extra: its size in bytes; @flag: a FUP follows */
	PACKET_MWAIT,  /* @value: hints, @extra: extensions */
	PACKET_PWRE,   /* @value: state << 4 | sub-state; @flag: by hardware */
	PACKET_PWRX,   /* @value: last << 4 | deepest, @extra: why (enum ptd_wake) */
	PACKET_EXSTOP, /* @flag: a FUP follows */
	PACKET_BBP,
	PACKET_BIP,
	PACKET_BEP,  /* @flag: a FUP follows */
	PACKET_CFE,  /* @value: enum ptd_cfe, @extra: vector; @flag: a FUP follows */
	PACKET_EVD,  /* @value: enum ptd_evd, @extra: the datum */
	PACKET_TRIG, /* @value: a bit for each trigger, and PTD_TRIG_MORE; @extra: how many
		      * instructions ago, + 1 (0: not said); @flag: a FUP follows */
	_PACKET_TYPES,
};

#define PACKET_TSX_BEGIN 1u
#define PACKET_TSX_ABORT 2u

struct packet {
	enum packet_type type;
	uint8_t size;     /* in bytes */
	uint8_t n_bits;   /* of a TNT */
	uint8_t ip_bytes; /* of an address: the field IPBytes */
	bool flag;
	uint64_t bits; /* of a TNT: the oldest branch is the highest bit */
	uint64_t value, extra;
};

enum {
	PACKET_BAD = 1, /* the bytes are no packet */
	PACKET_CUT = 2, /* the packet is longer than what is left; its type is set */
};

struct packet_reader {
	uint32_t errata;   /* of the CPU, enum erratum */
	uint8_t item_size; /* of the PEBS block that it is in; 0: it is in none, or begins anew */
};

/*
 * Read the packet at @p. @left bytes are there; more than PACKET_SIZE_MAX + 1 are not
 * looked at. Bytes that an erratum has spoiled are a packet of type PACKET_PAD.
 *
 * Return: 0; PACKET_BAD; PACKET_CUT.
 */
_must_check_ int packet_read(struct packet_reader *reader, const uint8_t *p, size_t left,
			     struct packet *ret_packet);

/*
 * Complete the address of a packet that has one. @last_ip: that of the last packet that had one, 0
 * behind a PSB or an OVF.
 *
 * Return: whether the packet has an address; if not, @last_ip stays as it is.
 */
bool packet_ip(const struct packet *packet, uint64_t *last_ip);

/* A set of types has a bit for each. */
#define PACKET_BIT(type) (UINT32_C(1) << PACKET_##type)

/* Packets that say what time it is, or nothing: they change nothing else. */
#define PACKETS_OF_TIME                                                                            \
	(PACKET_BIT(PAD) | PACKET_BIT(TSC) | PACKET_BIT(TMA) | PACKET_BIT(MTC) | PACKET_BIT(CYC) | \
	 PACKET_BIT(CBR))

/* Packets that report what happened beside the flow of code, and not where. */
#define PACKETS_OF_REPORTS                                                                         \
	(PACKET_BIT(MNT) | PACKET_BIT(BBP) | PACKET_BIT(BIP) | PACKET_BIT(BEP) | PACKET_BIT(CFE) | \
	 PACKET_BIT(EVD) | PACKET_BIT(TRIG))

/*
 * Return: whether it states a time that is not the host's if a guest runs: the TSC of a guest is
 *         offset, and may be scaled. MTC packets carry on the host's crystal all the same.
 */
static inline bool packet_is_of_tsc(const struct packet *packet)
{
	return packet->type == PACKET_TSC || packet->type == PACKET_TMA;
}

static inline bool packet_is_in(const struct packet *packet, uint32_t set)
{
	return set >> packet->type & 1;
}
