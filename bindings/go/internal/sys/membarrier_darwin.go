package sys

// CanMembarrier: there is no such call.
func CanMembarrier() bool { return false }

// Membarrier says that there was none.
func Membarrier() bool { return false }
