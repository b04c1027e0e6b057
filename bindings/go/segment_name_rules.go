package ramway

import (
	"crypto/rand"
	"encoding/hex"
	"strings"
)

// Which names may stand in the Ramway directory, and which files belong to which name (ABI.md, section 9).

// validName says whether a name may stand in the Ramway directory.
func validName(name string) bool {
	if len(name) < 1 || len(name) > nameMax || name[0] == '.' || strings.HasSuffix(name, socketSuffix) {
		return false
	}
	for _, c := range []byte(name) {
		letter := c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z'
		if !letter && (c < '0' || c > '9') && c != '.' && c != '_' && c != '-' {
			return false
		}
	}
	return true
}

// validListenerName says whether a name may be a listener's, whose socket can then not be taken for a path's segment.
func validListenerName(name string) bool {
	return validName(name) && !strings.HasSuffix(name, lockSuffix)
}

// socketOf is the socket that belongs to a listener's segment, both as file names.
func socketOf(segment string) string {
	if path, found := strings.CutSuffix(segment, lockSuffix); found && path != "" {
		return path
	}
	return segment + socketSuffix
}

// newStagedName is a name that nobody takes for a segment.
func newStagedName() string {
	var random [8]byte
	// Never fails (Go 1.24 says so; before, the file's O_EXCL catches a repetition).
	_, _ = rand.Read(random[:])
	return stagedPrefix + hex.EncodeToString(random[:]) + stagedSuffix
}

// isStagedName says whether a name is that of a segment that was never finished.
func isStagedName(file string) bool {
	random, isOne := strings.CutPrefix(file, stagedPrefix)
	random, ends := strings.CutSuffix(random, stagedSuffix)
	return isOne && ends && len(random) == 16 && strings.Trim(random, "0123456789abcdef") == ""
}
