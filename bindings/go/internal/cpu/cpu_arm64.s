#include "textflag.h"

// func Await(word *uint64, seen uint64, looks uint32) uint64
TEXT ·Await(SB), NOSPLIT, $0-32
	MOVD  word+0(FP), R0
	MOVD  seen+8(FP), R1
	MOVWU looks+16(FP), R2
	YIELD
	YIELD
	YIELD
look:
	LDAR  (R0), R3
	CMP   R1, R3
	BNE   moved
	YIELD
	SUBS  $1, R2, R2
	BHI   look
moved:
	MOVD  R3, ret+24(FP)
	RET
