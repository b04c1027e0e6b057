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

// func Await(word *uint64, seen uint64, line unsafe.Pointer, polls uint32) (now uint64, left uint32)
TEXT ·Await(SB), NOSPLIT, $0-44
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
	JEQ done
	PAUSE
	JMP poll
done:
	MOVQ SI, now+32(FP)
	MOVL DX, left+40(FP)
	RET
