package ramway

import "unsafe"

// copies is where a subscriber copies messages to: those that can be overwritten while they are read, and those that are given
// out as a slice, because a slice can be written and the log is mapped read-only. None of them moves while another is made.
type copies struct {
	// chunks stay where they are until the lease ends; the last one is filled next, from taken on.
	chunks [][]byte
	taken  int
}

// copiesChunk is the smallest chunk.
const copiesChunk = 64 << 10

// room is room for n bytes whose address has the same remainder by align, and by a tensor's alignment, as like.
func (c *copies) room(n int, like unsafe.Pointer, align uint32) []byte {
	mask := uintptr(max(align, tensorAlign)) - 1
	need := n + int(mask)
	if len(c.chunks) == 0 || len(c.chunks[len(c.chunks)-1])-c.taken < need {
		c.chunks = append(c.chunks, make([]byte, max(need, copiesChunk)))
		c.taken = 0
	}
	chunk := c.chunks[len(c.chunks)-1]
	free := uintptr(unsafe.Pointer(unsafe.SliceData(chunk))) + uintptr(c.taken)
	at := c.taken + int((uintptr(like)-free)&mask)
	c.taken = at + n
	return chunk[at : at+n : at+n]
}

// clear: every copy is given back. The largest chunk stays: the next batch may fit into it.
func (c *copies) clear() {
	c.taken = 0
	if len(c.chunks) > 1 {
		largest := c.chunks[0]
		for _, chunk := range c.chunks {
			if len(chunk) > len(largest) {
				largest = chunk
			}
		}
		clear(c.chunks)
		c.chunks = append(c.chunks[:0], largest)
	}
}

// view is a copy of a message that lies in the log, made when it is asked for and not before.
func (c *copies) view(r *Receiver, f *frame) []byte {
	if uintptr(f.data)-uintptr(r.data) < uintptr(2*r.capacity) {
		to := c.room(int(f.len), f.data, r.align)
		copy(to, f.bytes())
		f.data = unsafe.Pointer(unsafe.SliceData(to))
	}
	return f.bytes()
}

func (c *copies) revoke(*Receiver) { c.clear() }

func (c *copies) close() { *c = copies{} }
