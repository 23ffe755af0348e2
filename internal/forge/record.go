package forge

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

const (
	// recordSubject is the first line of each claim's message. Forges start no CI for it.
	recordSubject = "interlock claim [skip ci]"
	maxRecord     = 4 << 10 // bytes of a whole message
	maxGeneration = 1 << 53 // what every JSON reader keeps exactly
	maxToken      = 128     // bytes of a nonce or an installation
	maxHolder     = 200     // runes
	emptyTree     = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"

	stateHeld     = "held"
	stateReleased = "released"
)

// record is what a claim commit says: one line of JSON below the subject. ID makes each commit
// new even where all else is equal: two pushers of one and the same object both win.
type record struct {
	Version      int    `json:"v"`
	Issue        int64  `json:"issue"`
	Nonce        string `json:"nonce"`
	Installation string `json:"installation"`
	Holder       string `json:"holder"`
	Generation   int64  `json:"generation"`
	State        string `json:"state"`
	Time         string `json:"time"` // for people; nothing is decided by it
	ID           string `json:"id"`   // random, after the process that wrote it and a slash if that is told
}

// by returns the process that wrote the record, "" if that is not told.
func (r record) by() string {
	by, _, ok := strings.Cut(r.ID, "/")
	if !ok || !token(by) {
		return ""
	}
	return by
}

// message returns the commit message.
func (r record) message() (string, error) {
	var b bytes.Buffer
	b.WriteString(recordSubject + "\n\n")
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(r); err != nil {
		return "", fmt.Errorf("claim record: %w", err)
	}
	if b.Len() > maxRecord {
		return "", fmt.Errorf("claim record: %d bytes, more than %d", b.Len(), maxRecord)
	}
	return b.String(), nil
}

// parseRecord reads a message that anybody may have written. It accepts exactly what message
// writes, byte for byte, so that no two readers can understand it differently.
func parseRecord(message string) (record, error) {
	var r record
	if len(message) > maxRecord {
		return r, fmt.Errorf("the message has %d bytes, more than %d", len(message), maxRecord)
	}
	line, ok := strings.CutPrefix(message, recordSubject+"\n\n")
	if !ok {
		return r, errors.New("the message is not one of a claim")
	}
	dec := json.NewDecoder(strings.NewReader(line))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&r); err != nil {
		return record{}, errors.New("its fields cannot be read")
	}
	if err := r.check(); err != nil {
		return record{}, err
	}
	same, err := r.message()
	if err != nil || strings.TrimRight(message, "\n") != strings.TrimRight(same, "\n") {
		return record{}, errors.New("its fields are not in their one form")
	}
	return r, nil
}

func (r record) check() error {
	switch {
	case r.Version != 1:
		return fmt.Errorf("version %d is not known here", r.Version)
	case r.Issue <= 0:
		return errors.New("it names no issue")
	case !token(r.Nonce):
		return errors.New("it has no proper nonce")
	case !token(r.Installation):
		return errors.New("it has no proper installation")
	case r.Generation < 1 || r.Generation > maxGeneration:
		return fmt.Errorf("generation %d is out of range", r.Generation)
	case r.State != stateHeld && r.State != stateReleased:
		return errors.New("its state is neither held nor released")
	}
	if _, err := time.Parse(time.RFC3339, r.Time); err != nil {
		return errors.New("its time cannot be read")
	}
	return nil
}

// token reports whether s is what a nonce or an installation may look like: printable ASCII
// without spaces.
func token(s string) bool {
	if s == "" || len(s) > maxToken {
		return false
	}
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}
