package ramway

import (
	"strings"
	"testing"
)

// TestTheGuidesParts: what docs/guides/one-to-many.md shows of Go compiles, each part in a function that has what it uses.
func TestTheGuidesParts(t *testing.T) {
	blocks := strings.Split(string(repositoryFile(t, "docs/guides/one-to-many.md")), "```go\n")[1:]
	around := []string{
		"func merged(ctx context.Context, pictures *ramway.Subscriber, commands *ramway.Receiver, handle func(int, []byte)) error {\nBLOCK\nreturn err\n}",
		"func readings(ctx context.Context, name string, meters int, store func(ID, tag uint64, reading []byte)) error {\nBLOCK\nreturn inbox.Err()\n}",
		"func worker(ctx context.Context, do func([]byte)) error {\nBLOCK\nreturn tasks.Err()\n}",
	}
	if len(blocks) != len(around) {
		t.Fatalf("%d parts in Go; this test knows of %d", len(blocks), len(around))
	}
	program := "package main\n\nimport (\n\"context\"\n\"errors\"\n\"fmt\"\n\nramway \"github.com/ramway/ramway/bindings/go\"\n)\n\n"
	for i, part := range blocks {
		part, _, ends := strings.Cut(part, "```\n")
		if !ends {
			t.Fatal(part)
		}
		part = strings.Replace(part, "\n...\n", "\nif err != nil {\nreturn err\n}\n", 1)
		program += strings.Replace(around[i], "BLOCK", part, 1) + "\n\n"
	}
	program += "var _ = []any{merged, readings, worker}\n\nfunc main() {}\n"
	lines, _, found := strings.Cut(block(t, string(repositoryFile(t, "bindings/go/README.md")), "## Install", "sh"), "go run ")
	if !found {
		t.Fatal(lines)
	}
	clone(t, newFolder(t), program, "", lines, "go vet .")
}
