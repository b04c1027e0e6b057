//go:build !((linux || darwin) && (amd64 || arm64 || loong64 || mips64le || ppc64le || riscv64))

// Package sys does not exist here: version 1 of the format knows only 64-bit little-endian processors, and this port
// only Linux and macOS.
package sys

// The next line is there to be the compiler's message.
var _ = ramway_needs_linux_or_macos_on_a_64_bit_little_endian_processor
