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

// func AwaitAnswer(word *uint64, seen uint64, line unsafe.Pointer, polls uint32) uint64
TEXT ·AwaitAnswer(SB), NOSPLIT, $0-40
	MOVQ word+0(FP), AX
	MOVQ seen+8(FP), BX
	MOVQ line+16(FP), CX
	MOVL polls+24(FP), DX
poll:
	MOVQ (AX), SI
	CMPQ SI, BX
	JNE done
	PREFETCHT0 (CX)
	SUBL $1, DX
	JLS done
	PAUSE
	JMP poll
done:
	MOVQ SI, ret+32(FP)
	RET
