#include "textflag.h"

// func Pause()
TEXT ·Pause(SB), NOSPLIT, $0-0
	YIELD
	RET

// func Pauses()
TEXT ·Pauses(SB), NOSPLIT, $0-0
	YIELD
	YIELD
	YIELD
	RET

// func Await(word *uint64, seen uint64, line unsafe.Pointer, polls uint32) (now uint64, left uint32)
TEXT ·Await(SB), NOSPLIT, $0-44
	MOVD word+0(FP), R0
	MOVD seen+8(FP), R1
	MOVD line+16(FP), R2
	MOVWU polls+24(FP), R3
poll:
	LDAR (R0), R4
	CMP R1, R4
	BNE done
	PRFM (R2), PLDL1KEEP
	SUBS $1, R3
	BEQ done
	YIELD
	B poll
done:
	MOVD R4, now+32(FP)
	MOVW R3, left+40(FP)
	RET
