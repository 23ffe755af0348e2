package process_test

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"interlock/internal/sandbox/process"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestAlive(t *testing.T) {
	t.Parallel()
	self, err := process.Self()
	must(t, err)
	cmd := exec.Command("/bin/true")
	must(t, cmd.Start())
	t.Cleanup(func() { cmd.Wait() })
	zombie := process.ID{PID: cmd.Process.Pid, Boot: self.Boot}
	for deadline, zombied := time.Now().Add(time.Minute), false; !zombied; {
		if time.Now().After(deadline) {
			t.Fatal("it does not become a zombie")
		}
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", cmd.Process.Pid))
		must(t, err)
		f := strings.Fields(string(b)[strings.LastIndex(string(b), ")")+2:])
		zombie.Start, err = strconv.ParseUint(f[19], 10, 64)
		must(t, err)
		zombied = f[0] == "Z"
		time.Sleep(time.Millisecond)
	}
	for name, c := range map[string]struct {
		p     process.ID
		alive bool
		fails bool
	}{
		"self":       {self, true, false},
		"later":      {process.ID{PID: self.PID, Start: self.Start + 1, Boot: self.Boot}, false, false},
		"other boot": {process.ID{PID: self.PID, Start: self.Start, Boot: "x"}, false, false},
		"no pid":     {process.ID{PID: 1 << 22, Start: 1, Boot: self.Boot}, false, false},
		"zombie":     {zombie, false, false},
		"empty":      {process.ID{}, false, true},
		"no boot":    {process.ID{PID: self.PID, Start: self.Start}, false, true},
	} {
		if alive, err := c.p.Alive(); alive != c.alive || (err != nil) != c.fails {
			t.Errorf("%s: %v %v", name, alive, err)
		}
	}
}
