package ramway

import (
	"fmt"
	"testing"
)

// What a region's calls cost; "copy" is the runtime's memmove, which promises nothing about words that change meanwhile.
func BenchmarkRegion(b *testing.B) {
	const size = 1 << 20
	r, err := CreateRegion("bench", size, Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer r.Close()
	private := make([]byte, size)
	for _, n := range []int{32, 4096, size} {
		for what, call := range map[string]func(){
			"ReadAt":  func() { _, _ = r.ReadAt(private[:n], 0) },
			"WriteAt": func() { _, _ = r.WriteAt(private[:n], 0) },
			"copy":    func() { copy(private[:n], r.Bytes()) },
		} {
			b.Run(fmt.Sprintf("%s/%d", what, n), func(b *testing.B) {
				b.ReportAllocs()
				b.SetBytes(int64(n))
				for range b.N {
					call()
				}
			})
		}
	}
	b.Run("Notify", func(b *testing.B) {
		b.ReportAllocs()
		for range b.N {
			_ = r.Notify()
		}
	})
	b.Run("TryWait", func(b *testing.B) {
		b.ReportAllocs()
		for range b.N {
			r.TryWait()
		}
	})
}
