package forge

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"unicode"
	"unicode/utf8"
)

// CleanText returns s without what a reader cannot see: HTML comments (one without an end goes on
// to the end of the text), control and format characters, bidirectional overrides, variation
// selectors, tag characters and other default-ignorable code points. Line ends become "\n", bytes
// that are not UTF-8 become U+FFFD. It is used for agent and human alike, so that both read the
// same text. CleanText(CleanText(s)) == CleanText(s).
//
// A comment ends at "-->" only. Renderers disagree about "<!-->" and "--!>"; what any of them
// would hide is removed.
func CleanText(s string) string {
	return stripComments(stripHidden(s))
}

// OneLine is CleanText with all white space folded to single spaces, cut to at most limit runes.
func OneLine(s string, limit int) string {
	s = strings.Join(strings.Fields(CleanText(s)), " ")
	if utf8.RuneCountInString(s) <= limit {
		return s
	}
	return strings.TrimSpace(string([]rune(s)[:limit-1])) + "…"
}

// stripHidden runs before stripComments: a hidden character inside an opener must not save it.
func stripHidden(s string) string {
	s = strings.ReplaceAll(s, "\r\n", "\n")
	var b strings.Builder
	b.Grow(len(s))
	for _, r := range s { // a byte that is not UTF-8 arrives as U+FFFD
		switch {
		case r == '\r' || r == '\u2028' || r == '\u2029':
			b.WriteByte('\n')
		case r == '\n' || r == '\t' || !hidden(r):
			b.WriteRune(r)
		}
	}
	return b.String()
}

func hidden(r rune) bool {
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Variation_Selector,
		unicode.Other_Default_Ignorable_Code_Point) ||
		r >= 0xE0000 && r <= 0xE0FFF
}

// stripComments looks for the opener at the end of what it has kept, not in the input: so an
// opener that only the removal of an inner comment forms is found too, in one linear pass.
func stripComments(s string) string {
	const open, end = "<!--", "-->"
	kept := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		kept = append(kept, s[i])
		if s[i] != '-' || !strings.HasSuffix(string(kept[max(0, len(kept)-len(open)):]), open) {
			continue
		}
		kept = kept[:len(kept)-len(open)]
		n := strings.Index(s[i+1:], end)
		if n < 0 {
			break
		}
		i += n + len(end)
	}
	return string(kept)
}

// TaskDigest is the SHA-256, in hex, of title, NUL and body: what is frozen when an issue is picked.
func TaskDigest(title, body string) string {
	sum := sha256.Sum256([]byte(title + "\x00" + body))
	return hex.EncodeToString(sum[:])
}
