package wire

import "bytes"

// TokenPrefix begins every token that the engine makes for a promotion, so that a token is
// recognized wherever it stands, whole or cut off.
const TokenPrefix = "interlock-token-"

// redacted stands where a secret was.
const redacted = "[redacted]"

// secretNames are words that the name of a field holds whose value is not shown. They are in lower case.
var secretNames = [][]byte{[]byte("token"), []byte("secret"), []byte("password"), []byte("authorization"), []byte("credential"), []byte("api_key"), []byte("apikey")}

// Redact takes tokens and the values of secret fields out of a text that need not be JSON, may hold
// JSON in JSON, and may be cut off anywhere. Where it is in doubt it takes out more. It is linear in
// the length of the text.
func Redact(data []byte) []byte {
	return redactFields(redactTokens(data))
}

// redactTokens takes out what begins like a token, to the end of the word.
func redactTokens(data []byte) []byte {
	var out []byte
	for {
		i := bytes.Index(data, []byte(TokenPrefix))
		if i < 0 {
			return append(out, data...)
		}
		out = append(append(out, data[:i]...), redacted...)
		data = data[i+len(TokenPrefix):]
		for len(data) > 0 && wordByte(data[0]) {
			data = data[1:]
		}
	}
}

func wordByte(b byte) bool {
	return b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9' || b == '-' || b == '_'
}

// redactFields takes out what stands behind the name of a secret field and a colon or an equals sign.
func redactFields(data []byte) []byte {
	low := lower(data)
	next := make([]int, len(secretNames)) // where each of the names comes next; -1: not computed, len(data): nowhere
	for i := range next {
		next[i] = -1
	}
	var out []byte
	at := 0
	for {
		name, word := len(data), 0
		for i, n := range secretNames {
			if next[i] < at {
				next[i] = len(data)
				if j := bytes.Index(low[at:], n); j >= 0 {
					next[i] = at + j
				}
			}
			if next[i] < name {
				name, word = next[i], len(n)
			}
		}
		if name == len(data) {
			return append(out, data[at:]...)
		}
		begin, slashes, quoted, ok := valueOf(data, name+word)
		out, at = append(out, data[at:begin]...), begin
		if ok {
			out, at = append(out, redacted...), valueEnd(data, begin, slashes, quoted)
		}
	}
}

// lower makes the letters of ASCII small, and keeps every byte at its place.
func lower(data []byte) []byte {
	low := bytes.Clone(data)
	for i, b := range low {
		if b >= 'A' && b <= 'Z' {
			low[i] = b + 'a' - 'A'
		}
	}
	return low
}

// valueOf looks for the value of a field behind a part of its name: the rest of the name, a quote
// that may be escaped, a colon or an equals sign, and a quote again. It returns where the value
// begins and by how many backslashes its quote is escaped; or how far it has looked, and false.
func valueOf(data []byte, at int) (begin, slashes int, quoted, ok bool) {
	for at < len(data) && wordByte(data[at]) {
		at++
	}
	at = skip(data, at, " \t\r\n\\\"'")
	if at == len(data) || data[at] != ':' && data[at] != '=' {
		return at, 0, false, false
	}
	at = skip(data, at+1, " \t\r\n[{")
	for at < len(data) && data[at] == '\\' {
		slashes++
		at++
	}
	if at < len(data) && data[at] == '"' {
		return at + 1, slashes, true, true
	}
	return at, 0, false, true
}

func skip(data []byte, at int, set string) int {
	for at < len(data) && bytes.IndexByte([]byte(set), data[at]) >= 0 {
		at++
	}
	return at
}

// valueEnd returns where a value ends: at a quote that is escaped no more than the opening one was;
// a value without quotes at the end of its line, or of its field; or at the end of the text.
func valueEnd(data []byte, at, slashes int, quoted bool) int {
	run := 0
	for ; at < len(data); at++ {
		switch c := data[at]; {
		case c == '\\':
			run++
			continue
		case quoted && c == '"' && run <= slashes:
			return at - run
		case !quoted && bytes.IndexByte([]byte("\n\",}"), c) >= 0:
			return at
		}
		run = 0
	}
	return len(data)
}
