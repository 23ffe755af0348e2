package outgoing

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"interlock/internal/run"
	"interlock/internal/secret"
)

var (
	// secretName is how the names of variables end that hold a secret.
	secretName = regexp.MustCompile(`(?i)(?:TOKEN|PASSWORD|PASSWD|PASSPHRASE|SECRET|CREDENTIALS?|API_?KEY|ACCESS_?KEY|(?:^|_)(?:KEY|PAT))$`)
	// settingName is how the names of variables end that may be handed to an agent and hold none.
	settingName = regexp.MustCompile(`(?i)(?:URL|URI|HOST|ENDPOINT|PORT|MODEL|REGION|ZONE|LOCATION|PROJECT|PROFILE|NAME|USER|MODE|LEVEL|LANG|VERSION|PATH|DIR|HOME|FILE|FLAGS|OPTS|OPTIONS|(?:^|_)ID)$`)
)

// Values are what this installation holds and must not get out: what is handed to the agent, but for
// variables whose names say that they are settings; variables of the operator's whose names say that they
// are secrets; passwords in URLs of any variable. A value that is the path of a file is none.
func Values(env, handed []string) (all []secret.Value) {
	for _, kv := range env {
		name, value, _ := strings.Cut(kv, "=")
		isSecret := secretName.MatchString(name) || slices.Contains(handed, name) && !settingName.MatchString(name)
		if isSecret && !isFile(value) {
			all = append(all, secret.Value{Name: name, Text: value})
		}
		if u, err := url.Parse(value); err == nil && u.User != nil {
			if password, set := u.User.Password(); set {
				all = append(all, secret.Value{Name: name, Text: password})
			}
		}
	}
	// Of one value under two names the one that the agent knows is told.
	slices.SortStableFunc(all, func(a, b secret.Value) int {
		return cmp.Compare(slices.Index(handed, b.Name), slices.Index(handed, a.Name))
	})
	return all
}

func isFile(value string) bool {
	if !filepath.IsAbs(value) {
		return false
	}
	_, err := os.Stat(value)
	return err == nil
}

// Known is what is looked for in the work of a run, and of each run that came before: what one agent was
// handed another one may have been told.
func (g *Guard) Known(p run.Plan) *secret.Known {
	g.mu.Lock()
	defer g.mu.Unlock()
	names := slices.Compact(slices.Sorted(slices.Values(slices.Concat(g.handed, p.Env))))
	if g.known == nil || len(names) > len(g.handed) {
		g.handed = names
		g.known = secret.New(g.Key, Values(g.Env, names)...)
	}
	return g.known
}

// Redact takes out of a text what is known by now.
func (g *Guard) Redact(text string) string { return g.Known(run.Plan{}).Redact(text) }

// Values are the texts that must not get into a log of a run.
func (g *Guard) Values(p run.Plan) (texts []string) {
	for _, v := range Values(g.Env, p.Env) {
		texts = append(texts, v.Text)
	}
	return texts
}

// keyFile is below the state directory. Without it a fingerprint says nothing. It is made whole and linked, so
// that nobody sees a part of it.
const keyFile = "secret.key"

// Key returns what fingerprints of a state directory are made with. It is made at the first use; of
// several processes that do so at once all get the same.
func Key(state string) ([]byte, error) {
	path := filepath.Join(state, keyFile)
	key, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		fresh := path + "." + rand.Text()
		defer os.Remove(fresh)
		if err = writeSynced(fresh, rand.Text()+rand.Text()); err != nil {
			return nil, err
		}
		if err = os.Link(fresh, path); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
		key, err = os.ReadFile(path)
	}
	if err == nil && len(key) < 32 {
		err = fmt.Errorf("%s is damaged; remove it: entries fingerprint:... that were allowed have to be looked up anew", path)
	}
	return key, err
}

// writeSynced writes a file that is not there yet, and returns when it is on disk.
func writeSynced(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Sync(), f.Close())
}
