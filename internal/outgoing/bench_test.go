package outgoing_test

import (
	"fmt"
	"strings"
	"testing"

	"interlock/internal/run"
)

// BenchmarkCheck looks at one commit with many files: all of its lines are read.
func BenchmarkCheck(b *testing.B) {
	for name, c := range map[string]struct{ files, size int }{"5000 files": {5000, 10 << 10}, "one file": {1, 50 << 20}} {
		b.Run(name, func(b *testing.B) {
			s := newSite(b, "MODEL_KEY=own-value-4711")
			s.plan.Env = []string{"MODEL_KEY"}
			files := map[string]string{}
			for i := range c.files {
				line := fmt.Sprintf("\tfor i, field := range fields[%d:] { // one for each parent, in order\n", i)
				files[fmt.Sprint(i)] = strings.Repeat(line, c.size/len(line))
			}
			head := s.commit("m", files, s.base)
			b.SetBytes(int64(c.files * c.size))
			for b.Loop() {
				if ev := s.check(head, "T"); ev != run.Event(nil) {
					b.Fatalf("%#v", ev)
				}
			}
		})
	}
}
