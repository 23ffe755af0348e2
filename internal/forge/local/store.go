package local

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"interlock/internal/forge"
	"interlock/internal/git"
)

const (
	editTries = 200                    // rounds of compare-and-set of one write
	editPause = 250 * time.Millisecond // longest pause between two
	editTotal = 60 * time.Second       // after which a write that always meets others gives up
	editLocks = 3                      // rounds in a row that meet a lock file; git waits in each already
	readBatch = 8 << 20                // bytes of documents read by one process
	readLimit = readBatch + maxDocument + (1 << 20)
)

// entry is one ref of ours with the document of the commit it is at.
type entry struct {
	n    int64
	ref  string
	hash string
	data []byte // nil when there is no such file of a proper size in it
}

// load reads the document of one issue or change: forge.ErrNotFound, *DamagedError.
func (f *Forge) load(ctx context.Context, prefix, file string, n int64) (entry, error) {
	what := strings.TrimSuffix(file, ".json")
	if n <= 0 || n > maxNumber {
		return entry{}, &forge.MissingError{What: what, Number: n}
	}
	e := entry{n: n, ref: refOf(prefix, n)}
	var err error
	if e.hash, err = f.ref(ctx, e.ref); err != nil {
		return entry{}, err
	}
	if e.hash == "" {
		return entry{}, &forge.MissingError{What: what, Number: n}
	}
	e.data, err = f.repo.Blob(ctx, e.hash+":"+file, maxDocument)
	if errors.Is(err, git.ErrNoRef) || errors.Is(err, git.ErrTooBig) {
		return e, nil // no proper document; whoever reads it says so
	}
	if err != nil {
		return entry{}, fmt.Errorf("read %s: %w", e.ref, err)
	}
	return e, nil
}

// list reads all issues or changes, lowest number first. Refs whose name is no number are not ours.
func (f *Forge) list(ctx context.Context, prefix, file string) ([]entry, error) {
	refs, err := f.repo.Refs(ctx, prefix)
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", prefix, err)
	}
	var all []entry
	for ref, hash := range refs {
		if n, ok := number(ref, prefix); ok {
			all = append(all, entry{n: n, ref: ref, hash: hash})
		}
	}
	slices.SortFunc(all, func(a, b entry) int { return int(a.n - b.n) })
	return all, f.read(ctx, file, all)
}

// read fills in the documents: sizes first, so that a huge one costs nothing, then the contents,
// many by one process.
func (f *Forge) read(ctx context.Context, file string, all []entry) error {
	sizes, err := f.sizes(ctx, file, all)
	if err != nil {
		return err
	}
	var batch []int
	sum := 0
	flush := func() error {
		if len(batch) == 0 {
			return nil
		}
		err := f.contents(ctx, file, all, batch)
		batch, sum = batch[:0], 0
		return err
	}
	for i, size := range sizes {
		if size < 0 || size > maxDocument {
			continue
		}
		batch = append(batch, i)
		if sum += size; sum > readBatch {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	return flush()
}

// sizes asks for the size of each document, -1 where there is none.
func (f *Forge) sizes(ctx context.Context, file string, all []entry) ([]int, error) {
	if len(all) == 0 {
		return nil, nil
	}
	var ask strings.Builder
	for _, e := range all {
		fmt.Fprintf(&ask, "%s:%s\n", e.hash, file)
	}
	out, err := f.run(ctx, ask.String(), "cat-file", "--batch-check=%(objecttype) %(objectsize)")
	if err != nil {
		return nil, fmt.Errorf("read documents: %w", err)
	}
	lines := strings.Split(strings.TrimSuffix(string(out.Stdout), "\n"), "\n")
	if len(lines) != len(all) {
		return nil, fmt.Errorf("read documents: %d answers to %d questions", len(lines), len(all))
	}
	sizes := make([]int, len(all))
	for i, line := range lines {
		sizes[i] = -1
		if size, ok := strings.CutPrefix(line, "blob "); ok {
			if n, err := strconv.Atoi(size); err == nil {
				sizes[i] = n
			}
		}
	}
	return sizes, nil
}

func (f *Forge) contents(ctx context.Context, file string, all []entry, which []int) error {
	var ask strings.Builder
	for _, i := range which {
		fmt.Fprintf(&ask, "%s:%s\n", all[i].hash, file)
	}
	out, err := f.run(ctx, ask.String(), "cat-file", "--batch=%(objectsize)")
	if err != nil {
		return fmt.Errorf("read documents: %w", err)
	}
	rest := out.Stdout
	for _, i := range which {
		head, after, _ := bytes.Cut(rest, []byte("\n"))
		size, err := strconv.Atoi(string(head))
		if err != nil || size < 0 || size+1 > len(after) {
			return fmt.Errorf("read %s: git gives no readable answer", all[i].ref)
		}
		all[i].data, rest = after[:size:size], after[size+1:]
	}
	return nil
}

// run runs git in the repository. It has been named by the operator, whoever owns its files.
func (f *Forge) run(ctx context.Context, stdin string, args ...string) (git.Output, error) {
	return f.git.Run(ctx, git.Command{
		Dir: f.dir, Args: append([]string{"-c", "safe.directory=*"}, args...), Stdin: []byte(stdin), MaxOutput: readLimit,
	})
}

func (f *Forge) damage(e entry, why error) error {
	return &DamagedError{Ref: e.ref, Hash: e.hash, Why: why.Error(), Dir: f.dir}
}

var errNoDocument = errors.New("there is no document of a proper size in it")

func (f *Forge) asIssue(e entry) (issueDoc, error) {
	if e.data == nil {
		return issueDoc{}, f.damage(e, errNoDocument)
	}
	doc, err := decodeIssue(e.n, e.data)
	if err != nil {
		return issueDoc{}, f.damage(e, err)
	}
	i := &doc.Issue
	i.Labels, i.Assignees, i.Comments = orEmpty(i.Labels), orEmpty(i.Assignees), orEmpty(i.Comments)
	return doc, nil
}

func (f *Forge) asChange(e entry) (changeDoc, error) {
	if e.data == nil {
		return changeDoc{}, f.damage(e, errNoDocument)
	}
	doc, err := decodeChange(e.n, e.data)
	if err != nil {
		return changeDoc{}, f.damage(e, err)
	}
	return doc, nil
}

// orEmpty makes lists of a document arrays in JSON, never null.
func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// write makes the commit that holds a document; no ref is moved yet.
func (f *Forge) write(ctx context.Context, file string, doc any, parent, what string) (string, error) {
	data, err := encode(doc)
	if err != nil {
		return "", err
	}
	spec := git.CommitSpec{
		Files: map[string][]byte{file: data}, Message: "interlock: " + what + " [skip ci]\n", When: now(),
	}
	if parent != "" {
		spec.Parents = []string{parent}
	}
	hash, err := f.repo.WriteCommit(ctx, spec)
	if err != nil {
		return "", fmt.Errorf("write %s: %w", file, err)
	}
	return hash, nil
}

// retry calls once until it does not meet another writer any more. Each round reads anew what it
// decides by. A write that never gets its turn has written nothing; the error says what is in
// the way.
func (f *Forge) retry(ctx context.Context, once func() error) error {
	select {
	case f.turn <- struct{}{}:
		defer func() { <-f.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	begun, locks := time.Now(), 0
	for try := 0; ; try++ {
		err := once()
		switch {
		case errors.Is(err, git.ErrLocked):
			locks++
		case errors.Is(err, git.ErrStaleRef):
			locks = 0
		default:
			return err
		}
		if locks == editLocks || try == editTries || time.Since(begun) > editTotal {
			return fmt.Errorf("nothing was written: %w", err)
		}
		wait := time.NewTimer(rand.N(min(editPause, 5*time.Millisecond<<min(try, 10))))
		select {
		case <-wait.C:
		case <-ctx.Done():
			wait.Stop()
			return ctx.Err()
		}
	}
}

// nextNumber is one more than any number in use under prefix or, for issues, under a claim: a
// number that is given again would meet the claim of another issue.
func (f *Forge) nextNumber(ctx context.Context, prefix string) (int64, error) {
	refs, err := f.repo.Refs(ctx, dataPrefix)
	if err != nil {
		return 0, fmt.Errorf("list %s: %w", dataPrefix, err)
	}
	highest := int64(0)
	for ref := range refs {
		if n, ok := number(ref, prefix); ok {
			highest = max(highest, n)
		}
		if n, ok := number(ref, claimPrefix); ok && prefix == issuePrefix {
			highest = max(highest, n)
		}
	}
	if highest == maxNumber {
		return 0, fmt.Errorf("%w: all numbers under %s are in use", forge.ErrInvalid, prefix)
	}
	return highest + 1, nil
}
