// Package check verifies one exact commit: it runs the declared commands in a clean checkout, each
// confined and supervised, and says what they said. It never runs anything in a tree an agent
// worked in, never reads a cache an agent could write, and never moves a ref.
package check

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"interlock/internal/filetree"
	"interlock/internal/git"
	"interlock/internal/run"
	"interlock/internal/sandbox"
)

var (
	// ErrNoChecks: no command was declared, so nothing can be verified.
	ErrNoChecks = errors.New("no checks are declared")
	// ErrRoom: the directory for the checkout holds what is not a left-over of a check.
	ErrRoom = errors.New("the room for the checks is not empty")
)

// Request says what is to be verified, and how.
type Request struct {
	Repo         *git.Repo // holds Head; its objects are borrowed by the checkout
	Facts        sandbox.Facts
	Level        sandbox.Level
	Network      string // "host" or "none"; "" is "host"
	Head         run.Commit
	Base         string // hash, recorded with the verdict
	Commands     []string
	AllowNoTests bool          // a check that counts tests and runs none may pass
	Total        time.Duration // per command; 0 is run.CheckTotal
	MaxTasks     int64         // processes and threads of a command at once; 0: any
	MaxMemory    int64         // bytes of a command; 0: any
	Room         string        // absolute; a directory that is not there or empty, and is removed
	Log          string        // absolute; file the whole output is appended to, 0600
	Env          []string      // the operator's environment, of which little is passed on
	Secrets      []string      // texts that must not get into the log or the verdict
	Compare      *Compare      // nil: nothing is compared with the base

	// OnSession is called with what proves a session's end, before it starts: save it. OnEnd is
	// called when its end is confirmed. An error of either ends the checks.
	OnSession func(sandbox.Identity) error
	OnEnd     func(sandbox.Identity) error
	// Progress is called with one line at a time, safe to print.
	Progress func(line string)
}

// Run verifies Request.Head and returns what the checks said of it. A check that fails is a
// verdict; an error means that nothing can be said: the checks were stopped, the machine is not
// fit, or the request is wrong (ErrNoChecks, ErrRoom, git.ErrNoCommit). Commands run in their
// order, each in a room and a checkout of its own, with caches that at most code of the base has
// written to: what the commit's code does in one decides nothing of the next. After the first that fails the rest are not run.
func Run(ctx context.Context, req Request) (v run.Verdict, err error) {
	if err := req.complete(); err != nil {
		return run.Verdict{}, fmt.Errorf("check: %w", err)
	}
	if err := clearRoom(req.Room); err != nil {
		return run.Verdict{}, fmt.Errorf("check: %w", err)
	}
	defer req.tidy(req.Room)
	v, err = req.verify(ctx)
	if err != nil {
		return run.Verdict{}, fmt.Errorf("check: %w", err)
	}
	return v, nil
}

// tidy removes a room. One that cannot be removed is said, and voids nothing.
func (req *Request) tidy(dir string) {
	if err := filetree.Remove(context.Background(), dir, nil); err != nil {
		req.Progress(fmt.Sprintf("left behind: %s cannot be removed: %.300s", dir, err.Error()))
	}
}

// complete fills in defaults and refuses what cannot be meant.
func (req *Request) complete() error {
	if len(req.Commands) == 0 {
		return ErrNoChecks
	}
	for i, line := range req.Commands {
		if strings.TrimSpace(line) == "" {
			return fmt.Errorf("%w: number %d is blank", ErrNoChecks, i+1)
		}
		if strings.ContainsRune(line, 0) {
			return fmt.Errorf("check number %d holds a NUL", i+1)
		}
	}
	if req.Repo == nil || req.Head.Hash == "" || req.Head.Tree == "" {
		return errors.New("a repository, a commit and its tree are needed")
	}
	if !filepath.IsAbs(req.Room) || filepath.Clean(req.Room) == "/" || !filepath.IsAbs(req.Log) {
		return fmt.Errorf("room %q and log %q must be absolute", req.Room, req.Log)
	}
	if req.Network == "" {
		req.Network = "host"
	}
	if req.Total <= 0 {
		req.Total = run.CheckTotal
	}
	if req.Progress == nil {
		req.Progress = func(string) {}
	}
	return req.Facts.CheckNetwork(req.Level, req.Network)
}

// checkOut puts the exact commit into the room.
func (req *Request) checkOut(ctx context.Context, room sandbox.Room) error {
	commit, err := req.Repo.Resolve(ctx, req.Head.Hash)
	if err != nil {
		return err
	}
	if commit.Hash != req.Head.Hash || commit.Tree != req.Head.Tree {
		return fmt.Errorf("commit %s has the tree %s, not %s", commit.Hash, commit.Tree, req.Head.Tree)
	}
	objects := req.Repo.Objects()
	if req.Level == sandbox.Full {
		objects = sandbox.ObjectsInside
	}
	return req.Repo.Workspace(ctx, git.WorkspaceSpec{Dir: room.Tree(), Commit: req.Head.Hash, Objects: objects})
}

// verify runs the commands and draws the verdict.
func (req *Request) verify(ctx context.Context) (run.Verdict, error) {
	v := run.Verdict{Head: req.Head, Base: req.Base, Sandbox: string(req.Level), Passed: true}
	name, err := sessionName()
	if err != nil {
		return run.Verdict{}, err
	}
	for i, line := range req.Commands {
		if !v.Passed {
			v.Commands = append(v.Commands, run.Command{Line: line, Exit: -1, Why: run.NotRun})
			continue
		}
		at := fmt.Sprintf("check %d of %d", i+1, len(req.Commands))
		req.Progress(fmt.Sprintf("%s: %s", at, oneLine(line)))
		c, tests, err := req.one(ctx, at, fmt.Sprintf("%s-%d", name, i+1), line, i+1)
		if err != nil {
			return run.Verdict{}, fmt.Errorf("%s (%s): %w", at, oneLine(line), err)
		}
		for _, note := range tests.notes {
			v.Warnings = append(v.Warnings, fmt.Sprintf("%s (`%s`): %s", at, oneLine(line), note))
		}
		v.Commands = append(v.Commands, c)
		if c.Tests != nil {
			sum := *c.Tests
			if v.Tests != nil {
				sum += *v.Tests
			}
			v.Tests = &sum
		}
		if c.Why != "" {
			v.Passed = false
			v.Why = fmt.Sprintf("%s (`%s`): %s", at, oneLine(line), c.Why)
		}
		req.Progress(at + ": " + outcome(c))
	}
	seen, err := req.look(ctx)
	if err != nil {
		return run.Verdict{}, err
	}
	v.Warnings = append(v.Warnings, seen...)
	return v, nil
}

// one runs one command and holds it against the base. Where it is known beforehand that it counts tests
// the base comes first, so that its home is there for the commit.
func (req *Request) one(ctx context.Context, at, session, line string, number int) (run.Command, counted, error) {
	p := place{number: number, session: session, line: line}
	if req.Compare != nil {
		base, err := req.baseOf(ctx, line)
		if err == nil && countsTests(line) {
			base, err = req.counted(ctx, at, session, line, number)
		}
		if err != nil {
			return run.Command{}, counted{}, err
		}
		p.home = req.homeFile(base)
	}
	c, tests, err := req.inRoom(ctx, p)
	if err == nil {
		err = req.compare(ctx, at, session, line, number, &c, &tests)
	}
	return c, tests, err
}

// place is where one command runs.
type place struct {
	number  int
	session string
	line    string
	remark  string // added to its line in the log
	home    string // what its home begins with, "" or not there: nothing
	keep    bool   // and what it leaves there becomes that
}

// inRoom runs one command in a fresh checkout, and removes it.
func (req *Request) inRoom(ctx context.Context, p place) (run.Command, counted, error) {
	room, err := sandbox.NewRoom(filepath.Join(req.Room, strconv.Itoa(p.number)))
	if err != nil {
		return run.Command{}, counted{}, err
	}
	defer req.tidy(room.Root)
	if err := req.checkOut(ctx, room); err != nil {
		return run.Command{}, counted{}, err
	}
	if err := req.warm(ctx, p.home, room); err != nil {
		return run.Command{}, counted{}, err
	}
	c, tests, err := req.command(ctx, req.policy(ctx, room), p.session, p.line, p.remark)
	if err == nil && p.keep && tests.ended {
		if err := keepHome(ctx, room.Home(), p.home); err != nil {
			req.Progress(fmt.Sprintf("the home that it left at the base is not kept: %.300s", err.Error()))
		}
	}
	return c, tests, err
}

func outcome(c run.Command) string {
	text := "passed"
	if c.Why != "" {
		text = "failed: " + c.Why
	}
	if c.Tests != nil {
		text += fmt.Sprintf(" (tests: %d)", *c.Tests)
	}
	return fmt.Sprintf("%s after %s", text, c.Duration.Round(100*time.Millisecond))
}

func sessionName() (string, error) {
	var b [6]byte
	if _, err := rand.Read(b[:]); err != nil {
		return "", fmt.Errorf("session name: %w", err)
	}
	return "check-" + hex.EncodeToString(b[:]), nil
}
