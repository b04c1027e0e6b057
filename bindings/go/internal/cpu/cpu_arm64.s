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

// func AwaitAnswer(word *uint64, seen uint64, line unsafe.Pointer, polls uint32) uint64
TEXT ·AwaitAnswer(SB), NOSPLIT, $0-40
	MOVD word+0(FP), R0
	MOVD seen+8(FP), R1
	MOVD line+16(FP), R2
	MOVWU polls+24(FP), R3
poll:
	LDAR (R0), R4
	CMP R1, R4
	BNE done
	PRFM (R2), PLDL1KEEP
	CMP $1, R3
	BLS done
	SUB $1, R3
	YIELD
	B poll
done:
	MOVD R4, ret+32(FP)
	RET
