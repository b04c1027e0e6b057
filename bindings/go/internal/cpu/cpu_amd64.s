#include "textflag.h"

// func Pause()
TEXT ·Pause(SB), NOSPLIT, $0-0
	PAUSE
	RET

// func Pauses()
TEXT ·Pauses(SB), NOSPLIT, $0-0
	PAUSE
	PAUSE
	PAUSE
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
