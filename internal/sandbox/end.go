package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"interlock/internal/sandbox/cgroup"
	"interlock/internal/sandbox/process"
)

// termGrace is how long a living supervisor gets to end its tree by itself.
const termGrace = 5 * time.Second

// End ends what is left of a session's tree and proves it gone, from any process of this
// machine, also when the supervisor is long dead. The proof is a sentence for people. Without
// one the error is ErrNotProved with the reason; the tree may then still run.
func End(ctx context.Context, id Identity) (proof string, err error) {
	boot, err := process.Boot()
	if err != nil {
		return "", notProved(id, err)
	}
	if id.Boot == "" || id.PID <= 0 {
		return "", notProved(id, errors.New("its record is incomplete"))
	}
	if boot != id.Boot {
		return "the machine was restarted since", nil
	}
	if err := endSupervisor(ctx, process.ID{PID: id.PID, Start: id.Start, Boot: id.Boot}); err != nil {
		return "", notProved(id, err)
	}
	proof, err = endTree(ctx, id)
	err = errors.Join(err, cgroup.Clear(ctx, id.Tasks), cgroup.Clear(ctx, id.Memory))
	if err != nil {
		return "", notProved(id, err)
	}
	return proof, nil
}

// endTree ends a tree whose supervisor is dead.
func endTree(ctx context.Context, id Identity) (proof string, err error) {
	switch id.Way {
	case "cgroup":
		if err := cgroup.End(ctx, id.Cgroup); err != nil {
			return "", err
		}
		return "the supervisor is dead, the cgroup is empty and removed", nil
	case "pidns":
		if err := endInit(ctx, process.ID{PID: id.Init, Start: id.InitAt, Boot: id.Boot}); err != nil {
			return "", err
		}
		return "the supervisor is dead, the pid namespace has ended", nil
	case "cgroup1":
		if err := cgroup.Clear(ctx, id.Tasks); err != nil {
			return "", err
		}
		return "the supervisor is dead, the cgroup (version 1) is empty and removed", nil
	case "subreaper":
		if err := confirmed(id); err != nil {
			return "", err
		}
		return "the supervisor confirmed the end before it exited", nil
	}
	return "", fmt.Errorf("the way %q is unknown", id.Way)
}

func notProved(id Identity, err error) error {
	return fmt.Errorf("session %s: %w: %w", id.Session, ErrNotProved, err)
}

// endSupervisor lets a living supervisor end its tree, and kills it when it does not.
func endSupervisor(ctx context.Context, p process.ID) error {
	for _, step := range []struct {
		sig   unix.Signal
		grace time.Duration
	}{{unix.SIGTERM, termGrace}, {unix.SIGKILL, termGrace}} {
		if err := p.Signal(step.sig); err != nil {
			return fmt.Errorf("supervisor %d: %w", p.PID, err)
		}
		if gone, err := waitGone(ctx, p, step.grace); gone || err != nil {
			return err
		}
	}
	return fmt.Errorf("supervisor %d does not die", p.PID)
}

// waitGone waits until the process is proved dead, for at most grace of waking time.
func waitGone(ctx context.Context, p process.ID, grace time.Duration) (bool, error) {
	for until, pause := time.Now().Add(grace), time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		alive, err := p.Alive()
		if err != nil || !alive {
			return err == nil, err
		}
		if time.Now().After(until) {
			return false, nil
		}
		if !sleep(ctx, pause) {
			return false, context.Cause(ctx)
		}
	}
}

// endInit kills the first process of a pid namespace. It becomes a zombie only after the kernel
// has killed every other process in there.
func endInit(ctx context.Context, p process.ID) error {
	if err := p.Signal(unix.SIGKILL); err != nil {
		return fmt.Errorf("init %d: %w", p.PID, err)
	}
	gone, err := waitGone(ctx, p, endBound)
	if err == nil && !gone {
		err = fmt.Errorf("init %d does not die", p.PID)
	}
	return err
}

// confirmed reads what the supervisor wrote after it had reaped everything.
func confirmed(id Identity) error {
	b, err := os.ReadFile(id.Record)
	if errors.Is(err, os.ErrNotExist) {
		return errors.New("its supervisor died without a word, and this machine gave it neither a cgroup " +
			"nor a pid namespace by which its processes could be found")
	}
	if err != nil {
		return err
	}
	var said Identity
	if err := json.Unmarshal(b, &said); err != nil || said != id {
		return fmt.Errorf("%s is about another session", id.Record)
	}
	return nil
}

// sleep waits d; false when ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
