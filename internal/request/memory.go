package request

import (
	"fmt"
	"regexp"
	"strconv"
	"syscall"

	"interlock/internal/text"
)

// What a session needs at least, the sandbox's own processes included.
const (
	minTasks  = 32
	minMemory = 64 << 20
)

// aSize is a number with a unit: a share of the machine's memory, or bytes in powers of 1024.
var aSize = regexp.MustCompile(`^([0-9]{1,12})(%|(?:([KMGT])(?:iB|i|B)?|B)?)$`)

// memory is what --max-memory says, in bytes; 0: no limit.
func (o Options) memory() (int64, error) {
	m := aSize.FindStringSubmatch(o.MaxMemory)
	if m == nil {
		return 0, fmt.Errorf("--max-memory %s: a share of the machine's memory as in 75%%, or a size as in 8GiB", text.Quote(o.MaxMemory))
	}
	n, err := strconv.ParseInt(m[1], 10, 64)
	if err != nil {
		return 0, fmt.Errorf("--max-memory %s: %v", text.Quote(o.MaxMemory), err)
	}
	switch m[3] {
	case "K":
		n <<= 10
	case "M":
		n <<= 20
	case "G":
		n <<= 30
	case "T":
		n = min(n, 1<<20) << 40
	}
	if m[2] == "%" {
		if n > 100 {
			return 0, fmt.Errorf("--max-memory %s: the machine has 100%%", text.Quote(o.MaxMemory))
		}
		return share(n)
	}
	if n != 0 && n < minMemory {
		return 0, fmt.Errorf("--max-memory %s: at least 64MiB are needed to build anything, or 0 for no limit", text.Quote(o.MaxMemory))
	}
	return n, nil
}

// share is a part of the machine's memory, in whole steps of 64 MiB: what the kernel keeps for
// itself differs a little from boot to boot.
func share(percent int64) (int64, error) {
	var info syscall.Sysinfo_t
	if err := syscall.Sysinfo(&info); err != nil {
		return 0, fmt.Errorf("ask for the size of the memory: %w", err)
	}
	whole := int64(info.Totalram) * int64(info.Unit)
	return whole / 100 * percent / minMemory * minMemory, nil
}
