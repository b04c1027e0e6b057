/* Generated from format/facts.toml by `make facts`: edit that, not this. */
/* The facts of the format that the hot path needs. */
#ifndef RAMWAY_FACTS_H
#define RAMWAY_FACTS_H

/* ---- The header page. ---- */

/* A ring's part of the header page, in bytes. */
#define RAMWAY_RING_BLOCK_SIZE 0x280u

/* ---- Frames. ---- */

/* The length of what precedes every payload: len u32, type id u32, tag u64. */
#define RAMWAY_FRAME_HEADER 16u
/* No message is longer, whatever the capacity: with its header it stays below 2^31. */
#define RAMWAY_MESSAGE_MAX 2147483631u
/* Type ids from here up are Ramway's own. */
#define RAMWAY_TYPE_ID_RESERVED 0xFFFF0000u

/* ---- Frames of a topic. ---- */

/* The length of what precedes every payload of a topic: a ring's header, then seq u64 and time u64. */
#define RAMWAY_TOPIC_FRAME_HEADER 32u
/* No message of a topic is longer, whatever the capacity: with its header it stays below 2^31. */
#define RAMWAY_TOPIC_MESSAGE_MAX 2147483615u

/* ---- How a call waits. A poll takes 25 ns: a load and a PAUSE. ---- */

/* The wake-up of a waiting producer is put off until this fraction of the capacity is free (a quarter), or the ring is
 * drained. */
#define RAMWAY_WAKE_FRACTION 4u

/* ---- Where a ring's words are, from the block's start. ---- */

/* u64: end of the last published frame. */
#define RAMWAY_OFF_TAIL 0x080u
/* Two last-tag records: the end and the tag of a published frame. */
#define RAMWAY_OFF_LAST_TAGS 0x088u
/* u64: start of the first frame that is not released. */
#define RAMWAY_OFF_HEAD 0x100u
/* The producer's role line. */
#define RAMWAY_OFF_PRODUCER 0x180u
/* The consumer's role line. */
#define RAMWAY_OFF_CONSUMER 0x200u

/* ---- A role's words, from the start of its line. ---- */

/* The futex: 1 while the holder sleeps or is about to. */
#define RAMWAY_OFF_ROLE_WAIT 0x0u
/* The role's flags, written anew at each attach. */
#define RAMWAY_OFF_ROLE_FLAGS 0x4u
/* How often the role was attached; 0 = never. */
#define RAMWAY_OFF_ROLE_EPOCH 0x8u
/* Of the consumer: the producer's epoch whose orderly close was delivered; 0 = none. */
#define RAMWAY_OFF_ROLE_CLOSE_SEEN 0xCu

#endif
