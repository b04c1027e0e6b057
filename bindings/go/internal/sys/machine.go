//go:build (linux || darwin) && (amd64 || arm64 || loong64 || mips64le || ppc64le || riscv64)

// Package sys is what Ramway needs of the operating system: raw calls without policy, one topic a file. Every
// descriptor that it opens is close-on-exec, and every call that a signal can interrupt is made again.
package sys

// LimitError says which limit stands in the way of memory or space.
type LimitError struct{ Text string }

func (e *LimitError) Error() string { return e.Text }

// SettingError says which setting or property of the system stands in the way.
type SettingError struct{ Text string }

func (e *SettingError) Error() string { return e.Text }

// ArgumentError says what is wrong with what was asked for.
type ArgumentError struct{ Text string }

func (e *ArgumentError) Error() string { return e.Text }
