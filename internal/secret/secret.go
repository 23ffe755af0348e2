// Package secret finds secrets in text, and takes them out: tokens and keys of known shapes, and the
// values that this installation holds itself. It never repeats a secret: a finding says what kind it
// is of and where, and has a fingerprint that only the holder of a key can make. It reads no file
// and asks nobody.
package secret

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// MinValue is the length, in bytes, from which a value of this installation is looked for. What is
// shorter is in too many texts by chance.
const MinValue = 8

// Value is something that this installation holds and that must not get out.
type Value struct {
	Name string // what it is called, for people: the name of a variable
	Text string
}

// Known is what is looked for. It does not change, and can be used by many goroutines.
type Known struct {
	key []byte
	own automaton
}

// New returns what finds the shapes and these values. key is what fingerprints are made with; two
// with the same key give the same value the same one.
func New(key []byte, values ...Value) *Known {
	k := &Known{key: key}
	for _, v := range values {
		text := strings.TrimSpace(v.Text)
		if len(text) < MinValue {
			continue
		}
		mark := ownValue{kind: "value of " + v.Name, fingerprint: k.fingerprint([]byte(text))}
		for _, form := range forms(text) {
			k.own.add(form, mark)
		}
	}
	k.own.link()
	return k
}

// Values reports whether there are values of this installation to be looked for.
func (k *Known) Values() bool { return len(k.own.nodes) > 1 }

// Hit is one secret that was found. It does not hold the secret.
type Hit struct {
	Kind        string // what it is, for people; safe to print
	Line        int    // where it begins, the first line is 1
	Own         bool   // it is a value of this installation
	Fingerprint string // 16 hex digits: the same secret has the same one
}

const (
	fingerprinted = 512 // bytes of a secret that make its fingerprint
	digits        = 16
)

// fingerprint is a keyed hash: without the key a guess cannot be tried.
func (k *Known) fingerprint(value []byte) string {
	h := hmac.New(sha256.New, k.key)
	h.Write(value[:min(len(value), fingerprinted)])
	return hex.EncodeToString(h.Sum(nil))[:digits]
}

// Scan returns what is found in a text, in its order by lines.
func (k *Known) Scan(text string) []Hit {
	var hits []Hit
	s := k.Stream(func(h Hit) { hits = append(hits, h) })
	s.Write([]byte(text))
	s.Close()
	return hits
}
