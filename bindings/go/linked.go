package ramway

// linkedList is a doubly linked list whose nodes are part of what is listed: adding and removing allocate nothing, and either takes the
// same time wherever in the list. What is in it is in at most one place of one list by each of its nodes.
type linkedList[T any] struct{ first, last *linkedNode[T] }

// linkedNode is a place in a list. of is what is listed.
type linkedNode[T any] struct {
	of            *T
	before, after *linkedNode[T]
}

// add puts a node at the end.
func (l *linkedList[T]) add(n *linkedNode[T]) {
	if n.before = l.last; l.last != nil {
		l.last.after = n
	} else {
		l.first = n
	}
	l.last = n
}

// remove takes out a node, which is in the list.
func (l *linkedList[T]) remove(n *linkedNode[T]) {
	if n.before != nil {
		n.before.after = n.after
	} else {
		l.first = n.after
	}
	if n.after != nil {
		n.after.before = n.before
	} else {
		l.last = n.before
	}
	n.before, n.after = nil, nil
}

// front is what has been in the list the longest; nil if it is empty.
func (l *linkedList[T]) front() *T {
	if l.first == nil {
		return nil
	}
	return l.first.of
}
