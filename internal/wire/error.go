package wire

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
)

// Kind is what was wrong with an exchange. None of them is an answer.
type Kind string

// The kinds.
const (
	Empty     Kind = "empty"     // the peer closed without a byte
	Truncated Kind = "truncated" // no newline at the end
	Trailing  Kind = "trailing"  // something behind the newline, in whichever packet
	Malformed Kind = "malformed" // not the one JSON object that belongs here
	Oversized Kind = "oversized"
	TimedOut  Kind = "timed out"
	Socket    Kind = "socket" // no connection, or it broke
)

// previewMost is how many bytes of what came are shown.
const previewMost = 256

// FrameError is an exchange that came to nothing that can be believed. It shows what came only
// after secrets were taken out, and then only its beginning.
type FrameError struct {
	Kind     Kind
	Why      string // half a sentence
	Attempts int    // always 1: nobody tries again behind the caller's back
	Length   int    // of what came, in bytes; where it is too long, of what was read of it
	SHA256   string // of what Length counts, in hex
	Text     string // its beginning, redacted, then cut at 256 bytes, escaped like a Go string
	Hex      string // the same bytes in hex
	Err      error  // of the system; nil if it said none
}

func (e *FrameError) Error() string {
	s := fmt.Sprintf("%s message: %s", e.Kind, e.Why)
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	if e.Length == 0 {
		return s + " (0 bytes)"
	}
	return fmt.Sprintf("%s (%d bytes, sha256 %s, begins %s)", s, e.Length, e.SHA256, e.Text)
}

// Unwrap returns the error of the system.
func (e *FrameError) Unwrap() error { return e.Err }

func wrong(kind Kind, data []byte, format string, args ...any) *FrameError {
	sum := sha256.Sum256(data)
	// First the secrets, then the cut: half a secret is still one, and no pattern finds it.
	shown := Redact(data)
	shown = shown[:min(len(shown), previewMost)]
	return &FrameError{
		Kind: kind, Why: fmt.Sprintf(format, args...), Attempts: 1, Length: len(data), SHA256: hex.EncodeToString(sum[:]),
		Text: strconv.QuoteToASCII(string(shown)), Hex: hex.EncodeToString(shown),
	}
}

func broken(kind Kind, data []byte, err error, why string) *FrameError {
	e := wrong(kind, data, "%s", why)
	e.Err = err
	return e
}
