package policy

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"syscall"
)

// minMemory is what a session needs at least.
const minMemory = 64 << 20

// aSize is a number with a unit: a share of the machine's memory, or bytes in powers of 1024.
var aSize = regexp.MustCompile(`^([0-9]{1,12})(%|(?:([KMGT])(?:iB|i|B)?|B)?)$`)

var errSize = errors.New("a share of the machine's memory as in 75%, or a size as in 8GiB")

// bytesSize is a size without a share.
const bytesSize = `^[0-9]{1,12}(?:[KMGT](?:iB|i|B)?|B)?$`

var (
	aBytes   = regexp.MustCompile(bytesSize)
	errBytes = errors.New("a size as in 8GiB")
)

// SizeBytes is what a value of kind Size stands for.
func SizeBytes(s string) (int64, error) {
	if !aBytes.MatchString(s) {
		return 0, errBytes
	}
	return parseSize(aSize.FindStringSubmatch(s))
}

// Bytes is what a value of kind Memory stands for on this machine; 0: no limit.
func Bytes(s string) (int64, error) {
	m := aSize.FindStringSubmatch(s)
	if m == nil {
		return 0, errSize
	}
	n, err := parseSize(m)
	if err != nil {
		return 0, err
	}
	switch {
	case m[2] == "%" && n > 100:
		return 0, errors.New("the machine has 100%")
	case m[2] == "%":
		return share(n)
	case n != 0 && n < minMemory:
		return 0, errors.New("at least 64MiB are needed to build anything, or 0 for no limit")
	}
	return n, nil
}

// parseSize reads what aSize has found.
func parseSize(m []string) (int64, error) {
	n, err := strconv.ParseInt(m[1], 10, 64)
	if err != nil {
		return 0, errSize
	}
	switch m[3] {
	case "K":
		n <<= 10
	case "M":
		n <<= 20
	case "G":
		n = min(n, 1<<30) << 30
	case "T":
		n = min(n, 1<<20) << 40
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
