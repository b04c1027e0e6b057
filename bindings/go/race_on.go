//go:build race

package ramway

// guardAlways: see Options.Guard.
const guardAlways = true
