package sys

// Out of <sys/fcntl.h>; golang.org/x/sys does not have them.
const (
	ofdSetLock = 90
	ofdGetLock = 92
)
