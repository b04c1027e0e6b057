#include "textflag.h"

// The three PAUSEs come before the first look: whoever calls has just looked.

// func Await(word *uint64, seen uint64, looks uint32) uint64
TEXT ·Await(SB), NOSPLIT, $0-32
	MOVQ word+0(FP), DI
	MOVQ seen+8(FP), CX
	MOVL looks+16(FP), DX
	PAUSE
	PAUSE
	PAUSE
look:
	MOVQ (DI), AX
	CMPQ AX, CX
	JNE  moved
	PAUSE
	SUBL $1, DX
	JHI  look
moved:
	MOVQ AX, ret+24(FP)
	RET

// func StorePlain(word *uint64, value uint64)
TEXT ·StorePlain(SB), NOSPLIT, $0-16
	MOVQ word+0(FP), DI
	MOVQ value+8(FP), AX
	MOVQ AX, (DI)
	RET

// func StoreMarked(word *uint64, value uint64, mark *[2]uint64, tag uint64)
TEXT ·StoreMarked(SB), NOSPLIT, $0-32
	MOVQ word+0(FP), DI
	MOVQ value+8(FP), AX
	MOVQ mark+16(FP), SI
	MOVQ tag+24(FP), CX
	MOVQ AX, 0(SI)
	MOVQ CX, 8(SI)
	MOVQ AX, (DI)
	RET
