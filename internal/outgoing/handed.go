package outgoing

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"interlock/internal/run"
	"interlock/internal/secret"
	"interlock/internal/statedir"
)

// Hand notes, before an agent is started, which secret values it is handed: a keyed hash of each. Whoever
// pushes what it did has to know the very same ones, or could not find them in it.
func (g *Guard) Hand(r run.Run) error {
	noted, err := g.noted(r)
	if err != nil {
		return err
	}
	changed := false
	for _, v := range g.handedTo(r) {
		if h := g.hashOf(v); !slices.Contains(noted[v.Name], h) {
			noted[v.Name], changed = append(noted[v.Name], h), true
		}
	}
	if !changed {
		return nil
	}
	path := g.handedFile(r)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return statedir.WriteRecord(path, noted)
}

// handedTo are the values of variables that are handed to the agents of a run, but for those that are
// too short to be looked for.
func (g *Guard) handedTo(r run.Run) []secret.Value {
	return slices.DeleteFunc(Values(g.Env, r.Plan.Env), func(v secret.Value) bool {
		return !slices.Contains(r.Plan.Env, v.Name) || len(v.Text) < secret.MinValue
	})
}

// handedFile is one for each issue: a run goes on from what the runs before it have left.
func (g *Guard) handedFile(r run.Run) string {
	return filepath.Join(g.State, "handed", fmt.Sprintf("%s-%d.json", strings.TrimSuffix(filepath.Base(g.Repo.Dir()), ".git"), r.Issue))
}

func (g *Guard) noted(r run.Run) (map[string][]string, error) {
	noted := map[string][]string{}
	if _, err := statedir.ReadRecord(g.handedFile(r), &noted); err != nil {
		return nil, fmt.Errorf("read which values the agents of issue %d were handed: %w", r.Issue, err)
	}
	return noted, nil
}

func (g *Guard) hashOf(v secret.Value) string {
	h := hmac.New(sha256.New, g.Key)
	_, _ = fmt.Fprintf(h, "handed\x00%s\x00%s", v.Name, v.Text)
	return hex.EncodeToString(h.Sum(nil))
}

// unknown returns the event to save when an agent of the run was handed a value that is not known here.
func (g *Guard) unknown(r run.Run) (run.Event, error) {
	noted, err := g.noted(r)
	if err != nil || len(noted) == 0 {
		return nil, err
	}
	here := map[string]bool{}
	for _, v := range Values(g.Env, slices.Concat(r.Plan.Env, slices.Collect(maps.Keys(noted)))) {
		here[g.hashOf(v)] = true
	}
	for _, name := range slices.Sorted(maps.Keys(noted)) {
		for _, h := range noted[name] {
			if allow := "fingerprint:" + h[:16]; !here[h] && !slices.Contains(r.Plan.AllowSecrets, allow) {
				return run.ParkedBecause{
					Reason: fmt.Sprintf("an agent of this issue was handed %s, which is not set here, or to another value: whether that value is in the work cannot be told", name),
					Say:    "Nothing was pushed: what the agent was handed is not known where the work would be looked through.",
					Next:   "interlock show " + r.ID,
					Then:   fmt.Sprintf("set %s as it was, and: interlock retry %s; if that value is not in the work: interlock retry %s --allow-secret %s", name, r.ID, r.ID, allow),
					Exit:   run.ExitRefused,
				}, nil
			}
		}
	}
	return nil, nil
}
