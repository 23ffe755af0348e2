package sqlite_test

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"interlock/internal/store"
	"interlock/internal/store/sqlite"
)

// fuseVariable has the test binary mount a FUSE filesystem on this directory, and serve it.
const fuseVariable = "INTERLOCK_TEST_FUSE"

// TestLiveFUSE: a real FUSE mount is refused by name, and nothing is asked of it but what it is. The
// server is a process with a mount namespace of its own, so nothing of it outlives the test.
func TestLiveFUSE(t *testing.T) {
	t.Parallel()
	at := t.TempDir()
	server := exec.Command("/proc/self/exe")
	server.Env = []string{fuseVariable + "=" + at}
	server.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
	out, err := server.StdoutPipe()
	must(t, err)
	if err := server.Start(); err != nil {
		mayNotMount(t, err)
	}
	t.Cleanup(func() { _ = server.Process.Kill(); _ = server.Wait() })
	said := bufio.NewScanner(out)
	if !said.Scan() || said.Text() != "mounted" {
		mayNotMount(t, errors.New(said.Text()))
	}
	mounted := fmt.Sprintf("/proc/%d/root%s", server.Process.Pid, at)
	for _, dir := range []string{mounted, filepath.Join(mounted, "not", "yet", "there")} {
		refused(t, dir, sqlite.Options{}, store.ErrUnfit, " FUSE,", "--state-dir", "local")
	}
	must(t, server.Process.Kill())
	for said.Scan() {
		t.Errorf("a refused filesystem was asked for more than what it is: %s", said.Text())
	}
}

// mayNotMount skips the test where nobody may mount, but in CI.
func mayNotMount(t *testing.T, err error) {
	t.Helper()
	if os.Getenv("INTERLOCK_CI") != "" || !errors.Is(err, syscall.EPERM) && !strings.Contains(err.Error(), "not permitted") {
		t.Fatal(err)
	}
	t.Skipf("no FUSE filesystem can be mounted here: %v", err)
}

// The requests of FUSE that looking at an empty directory makes, as <linux/fuse.h> numbers them.
const (
	fuseLookup                                                = 1
	fuseForget                                                = 2
	fuseGetattr                                               = 3
	fuseStatfs                                                = 17
	fuseInit                                                  = 26
	fuseOpendir, fuseReaddir, fuseReleasedir, fuseReaddirplus = 27, 28, 29, 44
)

// serveFUSE mounts an empty filesystem and answers until it is killed. It tells of each request
// that more than looking takes.
func serveFUSE(at string) int {
	dev, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0)
	if err == nil {
		err = syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, "")
	}
	if err == nil {
		options := fmt.Sprintf("fd=%d,rootmode=40000,user_id=0,group_id=0", dev.Fd())
		err = syscall.Mount("interlock-test", at, "fuse", 0, options)
	}
	if err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println("mounted")
	request := make([]byte, 1<<20)
	for {
		n, err := syscall.Read(int(dev.Fd()), request)
		if errors.Is(err, syscall.EINTR) || errors.Is(err, syscall.ENOENT) {
			continue // a request that was withdrawn
		}
		if err != nil || n < 40 {
			fmt.Println(n, err)
			return 1
		}
		if reply := answerFUSE(request[:n]); reply != nil {
			if _, err := syscall.Write(int(dev.Fd()), reply); err != nil {
				fmt.Println(err)
				return 1
			}
		}
	}
}

// answerFUSE returns the reply to a request; nil if there is to be none.
func answerFUSE(request []byte) []byte {
	order := binary.NativeEndian
	body, code := []byte(nil), syscall.Errno(0)
	switch op := order.Uint32(request[4:]); op {
	case fuseInit:
		body = make([]byte, 64)
		order.PutUint32(body, 7)
		order.PutUint32(body[4:], 31)
		order.PutUint32(body[20:], 1<<16) // max_write
	case fuseGetattr:
		body = make([]byte, 16+88)
		order.PutUint64(body[16:], 1)                        // ino
		order.PutUint32(body[16+60:], syscall.S_IFDIR|0o700) // mode
		order.PutUint32(body[16+64:], 2)                     // nlink
	case fuseStatfs:
		body = make([]byte, 80)
		order.PutUint32(body[40:], 4096) // bsize
	case fuseOpendir:
		body = make([]byte, 16)
	case fuseReaddir, fuseReaddirplus, fuseReleasedir:
		// nothing is in it
	case fuseLookup:
		code = syscall.ENOENT
	case fuseForget:
		return nil
	default:
		fmt.Println("request", op)
		code = syscall.ENOSYS
	}
	reply := make([]byte, 16, 16+len(body))
	order.PutUint32(reply, uint32(16+len(body)))
	order.PutUint32(reply[4:], uint32(-int32(code)))
	copy(reply[8:], request[8:16])
	return append(reply, body...)
}
