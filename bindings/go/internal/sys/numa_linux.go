package sys

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	nodeBits = 1024
	wordBits = 64
	// linux/mempolicy.h
	mpolBind  = 2
	mpolFNode = 1
	mpolFAddr = 2
)

// nodeMask is one bit a node, for as many nodes as any kernel has.
type nodeMask [nodeBits / wordBits]uint64

func onlyNode(node int) (*nodeMask, error) {
	if node >= 0 && node < nodeBits {
		if _, err := os.Stat("/sys/devices/system/node/node" + strconv.Itoa(node)); err == nil {
			mask := new(nodeMask)
			mask[node/wordBits] = 1 << (node % wordBits)
			return mask, nil
		}
	}
	text, err := os.ReadFile("/sys/devices/system/node/online")
	online := strings.TrimSpace(string(text))
	switch {
	case err != nil || online == "":
		online = "none that the kernel names"
	case strings.ContainsAny(online, "-,"):
		online = "nodes " + online
	default:
		online = "node " + online
	}
	return nil, &ArgumentError{fmt.Sprintf("NUMA node %d does not exist; this machine has %s", node, online)}
}

// PreferNode tells a file that the pages of this range belong on a node: shared memory keeps that with the file, so that
// it holds for the allocation that follows, in every mapping.
func PreferNode(fd int, offset, length int64, node int) error {
	mask, err := onlyNode(node)
	if err != nil || length == 0 {
		return err
	}
	at, err := unix.MmapPtr(fd, offset, nil, uintptr(length), unix.PROT_NONE, unix.MAP_SHARED)
	if err != nil {
		return &doing{fmt.Sprintf("NUMANode: binding %d bytes to node %d", length, node), err}
	}
	// The kernel takes one off the number of bits.
	_, _, errno := unix.Syscall6(unix.SYS_MBIND, uintptr(at), uintptr(length), mpolBind, uintptr(unsafe.Pointer(mask)), nodeBits+1, 0)
	_ = Unmap(at, int(length))
	if errno != 0 {
		return &doing{fmt.Sprintf("NUMANode: binding %d bytes to node %d (mbind)", length, node), errno}
	}
	return nil
}

// verifyNode asks where the first, the middle and the last page of a mapping are.
func verifyNode(at unsafe.Pointer, length, node int) error {
	if _, err := onlyNode(node); err != nil {
		return err
	}
	for _, offset := range []int{0, length / 2, length - 1} {
		found := int32(-1)
		_, _, errno := unix.Syscall6(unix.SYS_GET_MEMPOLICY, uintptr(unsafe.Pointer(&found)), 0, 0,
			uintptr(unsafe.Add(at, offset)), mpolFNode|mpolFAddr, 0)
		if errno != 0 {
			return &doing{"NUMANode: asking where a page is (get_mempolicy)", errno}
		}
		if int(found) != node {
			return &SettingError{fmt.Sprintf("NUMANode: the data is on node %d, not on node %d; pages are placed when the "+
				"segment is created, in memory: let the creator ask for the node", found, node)}
		}
	}
	return nil
}
