package secret

import (
	"bytes"
	"math"
)

// dummies are in what people write where a secret would be. Of what was made at random one in some ten
// thousand holds one of them in its first 64 bytes.
var dummies = [][]byte{
	[]byte("example"), []byte("placeholder"), []byte("changeme"), []byte("change-me"), []byte("change_me"), []byte("dummy"),
	[]byte("xxxx"), []byte("redacted"), []byte("your"), []byte("0000000"), []byte("sample"),
	[]byte("insert"), []byte("replace"), []byte("fake"), []byte("foobar"), []byte("notreal"),
}

const (
	leastDistinct = 8 // different bytes in what was made at random
	leastEntropy  = 3.5
)

// plausible reports whether a text can have been made at random.
func plausible(v []byte) bool { return distinct(v) >= leastDistinct && !standIn(v) }

// standIn reports whether a text stands in the place of a secret: words for it, sequences.
func standIn(v []byte) bool {
	low := bytes.ToLower(v[:min(len(v), 64)])
	for _, d := range dummies {
		if bytes.Contains(low, d) {
			return true
		}
	}
	return sequence(low) >= 7
}

func distinct(v []byte) (n int) {
	var seen class
	for _, c := range v {
		if !seen.has(c) {
			seen[c>>6] |= 1 << (c & 63)
			n++
		}
	}
	return n
}

// sequence is the length of the longest run in which each byte follows the one before, or is the same.
func sequence(v []byte) (most int) {
	up, same := 1, 1
	for i := 1; i < len(v); i++ {
		up, same = up+1, same+1
		if v[i] != v[i-1]+1 {
			up = 1
		}
		if v[i] != v[i-1] {
			same = 1
		}
		most = max(most, up, same)
	}
	return most
}

// entropy of the bytes, in bits for each (Shannon).
func entropy(v []byte) float64 {
	var counts [256]int
	for _, c := range v {
		counts[c]++
	}
	sum := 0.0
	for _, n := range counts {
		if n > 0 {
			p := float64(n) / float64(len(v))
			sum -= p * math.Log2(p)
		}
	}
	return sum
}

// mixed reports whether there are letters and at least two digits among them.
func mixed(v []byte) bool {
	letters, tens := 0, 0
	for _, c := range v {
		switch {
		case c >= '0' && c <= '9':
			tens++
		case alnum.has(c):
			letters++
		}
	}
	return letters > 0 && tens >= 2
}

// reserved are names that are nobody's: a password for a host of that name opens nothing (RFC 2606,
// RFC 6761).
var reserved = [][]byte{[]byte("example"), []byte("localhost"), []byte(".test"), []byte(".invalid"), []byte(".local"), []byte("127.0.0."), []byte("0.0.0.0"), []byte("[::1]")}

// inURL returns the place of a password in a URL, of which i is the colon after the scheme:
// scheme://user:password@host.
func inURL(b []byte, i int) (from, to int) {
	const longest = 300 // of user and password
	if !bytes.HasPrefix(b[i:], []byte("://")) || i == 0 || !alnum.has(b[i-1]) {
		return 0, 0
	}
	rest := b[i+3 : min(len(b), i+3+longest)]
	end := bytes.IndexAny(rest, "@/ \t\"'`<>\\{}$*()")
	if end < 0 || rest[end] != '@' {
		return 0, 0
	}
	user, password, ok := bytes.Cut(rest[:end], []byte(":"))
	host := run(b[i+3+end+1:], dotted, 253)
	if !ok || len(password) < MinValue || bytes.Equal(user, password) || !mixed(password) || distinct(password) < 5 || standIn(password) {
		return 0, 0
	}
	if bytes.IndexByte(host, '.') < 0 { // of a network of its own, as containers have
		return 0, 0
	}
	low := bytes.ToLower(host)
	for _, r := range reserved {
		if bytes.Contains(low, r) {
			return 0, 0
		}
	}
	from = i + 3 + len(user) + 1
	return from, from + len(password)
}

// keywords end the name of what holds a secret.
var keywords = [][]byte{
	[]byte("password"), []byte("passwd"), []byte("secret"), []byte("token"), []byte("apikey"), []byte("api_key"), []byte("api-key"),
	[]byte("access_key"), []byte("accesskey"), []byte("secret_key"), []byte("secretkey"), []byte("private_key"), []byte("auth_key"),
}

const (
	leastAssigned = 20 // bytes of a value: no password that a person thought of, but what a machine made
	mostAssigned  = 200
)

// assigned returns the place of a secret that is assigned to a name that says so, of which i is the sign
// between them: name = "secret", "name": "secret", or NAME=secret as in a file of variables. The
// value has to be of one piece, with letters and digits, and as irregular as what is made at random;
// anything less precise would refuse more tests than leaks.
func assigned(b []byte, i int) (from, to int) {
	name := nameBefore(b, i)
	if !isSecretName(name) {
		return 0, 0
	}
	from, quoted := valueAfter(b, i)
	value := run(b[from:], assignable, mostAssigned+1)
	if len(value) < leastAssigned || len(value) > mostAssigned {
		return 0, 0
	}
	to = from + len(value)
	switch {
	case quoted && (to == len(b) || b[to] != b[from-1]):
	case !quoted && (!bytes.Equal(name, bytes.ToUpper(name)) || to < len(b) && b[to] > ' '):
	case !mixed(value), !plausible(value), entropy(value) < leastEntropy:
	default:
		return from, to
	}
	return 0, 0
}

// valueAfter is where the value begins of which i is the sign in front, and whether it is quoted.
func valueAfter(b []byte, i int) (from int, quoted bool) {
	from = i + 1
	for from < len(b) && from < i+4 && bytes.IndexByte([]byte(" =>"), b[from]) >= 0 {
		from++
	}
	if from < len(b) && bytes.IndexByte([]byte("\"'`"), b[from]) >= 0 {
		return from + 1, true
	}
	return from, false
}

var assignable = classOf(lowers + uppers + tens + "+/=_-.~")

// nameBefore is the name that ends before i, with at most a quote and spaces between.
func nameBefore(b []byte, i int) []byte {
	end := i
	for end > 0 && end > i-4 && (b[end-1] == ' ' || b[end-1] == '"' || b[end-1] == '\'' || b[end-1] == ':') {
		end--
	}
	begin := end
	for begin > 0 && end-begin < 64 && dashed.has(b[begin-1]) {
		begin--
	}
	return b[begin:end]
}

func isSecretName(name []byte) bool {
	if len(name) == 0 || bytes.IndexByte([]byte("dntyDNTY"), name[len(name)-1]) < 0 { // quick for most
		return false
	}
	low := bytes.ToLower(name)
	for _, k := range keywords {
		if bytes.HasSuffix(low, k) {
			return true
		}
	}
	return false
}
