package secret

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"strings"
)

// class is a set of bytes.
type class [4]uint64

func (c *class) has(b byte) bool { return c[b>>6]&(1<<(b&63)) != 0 }

func classOf(chars string) *class {
	c := new(class)
	for i := range len(chars) {
		c[chars[i]>>6] |= 1 << (chars[i] & 63)
	}
	return c
}

const (
	lowers = "abcdefghijklmnopqrstuvwxyz"
	uppers = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	tens   = "0123456789"
)

var (
	alnum   = classOf(lowers + uppers + tens)
	word    = classOf(lowers + uppers + tens + "_")
	dashed  = classOf(lowers + uppers + tens + "_-")
	dotted  = classOf(lowers + uppers + tens + "_-.")
	tilded  = classOf(lowers + uppers + tens + "_-.~")
	base64s = classOf(lowers + uppers + tens + "+/")
	padded  = classOf(lowers + uppers + tens + "+/=")
	hexes   = classOf("abcdef" + tens)
	upper   = classOf(uppers + tens)
	pathed  = classOf(uppers + lowers + tens + "/")
)

// shape is how a kind of secret looks: a prefix that says what it is, and a body. Only what its issuer
// documents, or what is seen in all of them, is here.
type shape struct {
	kind   string
	prefix string
	body   *class
	least  int // bytes of the body
	most   int
	holds  string // somewhere in the body, "" for nothing
}

const (
	long           = lookAhead - 64 // a body of any length
	kindPrivateKey = "private key"
	kindToken      = "JSON web token"
)

// shapes is the table. Each has to be so long, and so unlike other text, that it is hardly there by
// chance; what has no shape of its own (tokens of Gitea and Forgejo, passwords) is found in URLs and in
// assignments only.
var shapes = []shape{
	{"GitHub token", "ghp_", alnum, 36, 255, ""},
	{"GitHub token", "gho_", alnum, 36, 255, ""},
	{"GitHub token", "ghu_", alnum, 36, 255, ""},
	{"GitHub token", "ghs_", alnum, 36, 255, ""},
	{"GitHub token", "ghr_", alnum, 36, 255, ""},
	{"GitHub token", "github_pat_", word, 60, 255, ""},
	{"GitLab token", "glpat-", dotted, 20, 300, ""},
	{"GitLab token", "gldt-", dotted, 20, 300, ""},
	{"GitLab token", "glrt-", dotted, 20, 300, ""},
	{"GitLab token", "glptt-", dotted, 20, 300, ""},
	{"GitLab token", "glft-", dotted, 20, 300, ""},
	{"GitLab token", "glsoat-", dotted, 20, 300, ""},
	{"GitLab token", "glagent-", dotted, 20, 300, ""},
	{"GitLab token", "glcbt-", dotted, 20, 300, ""},
	{"GitLab token", "gloas-", dotted, 20, 300, ""},
	{"AWS access key", "AKIA", upper, 16, 16, ""},
	{"AWS access key", "ASIA", upper, 16, 16, ""},
	{"AWS Bedrock key", "ABSK", padded, 109, 300, ""},
	{"Google API key", "AIza", dashed, 35, 35, ""},
	{"Google OAuth secret", "GOCSPX-", dashed, 28, 28, ""},
	{"Google OAuth token", "ya29.", dashed, 40, long, ""},
	{"Azure storage key", "AccountKey=", padded, 86, 90, ""},
	{"Azure access key", "SharedAccessKey=", padded, 43, 90, ""},
	{"Slack token", "xoxa-", dashed, 24, 300, ""},
	{"Slack token", "xoxb-", dashed, 24, 300, ""},
	{"Slack token", "xoxe-", dashed, 24, 300, ""},
	{"Slack token", "xoxp-", dashed, 24, 300, ""},
	{"Slack token", "xoxr-", dashed, 24, 300, ""},
	{"Slack token", "xoxs-", dashed, 24, 300, ""},
	{"Slack token", "xapp-", dashed, 24, 300, ""},
	{"Slack webhook", "hooks.slack.com/services/", pathed, 40, 100, "/B"},
	{"Stripe key", "sk_live_", alnum, 20, 255, ""},
	{"Stripe key", "rk_live_", alnum, 20, 255, ""},
	{"Stripe webhook secret", "whsec_", padded, 32, 128, ""},
	{"OpenAI key", "sk-proj-", dashed, 40, 300, ""},
	{"OpenAI key", "sk-svcacct-", dashed, 40, 300, ""},
	{"OpenAI key", "sk-admin-", dashed, 40, 300, ""},
	{"OpenAI key", "sk-", alnum, 40, 64, "T3BlbkFJ"},
	{"Anthropic key", "sk-ant-", dashed, 40, 300, ""},
	{"OpenRouter key", "sk-or-v1-", hexes, 64, 64, ""},
	{"npm token", "npm_", alnum, 36, 36, ""},
	{"PyPI token", "pypi-AgE", dashed, 50, long, ""},
	{"Hugging Face token", "hf_", alnum, 34, 40, ""},
	{"Docker token", "dckr_pat_", dashed, 27, 40, ""},
	{"DigitalOcean token", "dop_v1_", hexes, 64, 64, ""},
	{"SendGrid key", "SG.", dotted, 64, 70, "."},
	{"Shopify token", "shpat_", hexes, 32, 32, ""},
	{"Vault token", "hvs.", dashed, 90, 300, ""},
	{"age key", "AGE-SECRET-KEY-1", upper, 58, 58, ""},
	// Private keys without their armour: the first bytes of each format, in base64.
	{kindPrivateKey, "b3BlbnNzaC1rZXktdjE", padded, 40, long, ""},       // OpenSSH
	{kindPrivateKey, "MHcCAQEE", padded, 40, long, ""},                  // SEC 1
	{kindPrivateKey, "MIGHAgEAMBMGByqGSM49", padded, 40, long, ""},      // PKCS #8 of an elliptic curve
	{kindPrivateKey, "MC4CAQAwBQYDK2VwBCIEI", padded, 40, long, ""},     // PKCS #8 of Ed25519
	{kindPrivateKey, "MII", padded, 50, long, "IBAAK"},                  // PKCS #1
	{kindPrivateKey, "MII", padded, 50, long, "IBADANBgkqhkiG9w0BAQEF"}, // PKCS #8 of RSA
}

// byFirst has the shapes by the first byte of their prefix.
var byFirst = func() (by [256][]*shape) {
	for i := range shapes {
		s := &shapes[i]
		by[s.prefix[0]] = append(by[s.prefix[0]], s)
	}
	return by
}()

// pairs are those of two bytes with which anything that findAt looks for begins: most text is passed
// over by them.
var pairs = func() (p [256]class) {
	add := func(a, b byte) { p[a][b>>6] |= 1 << (b & 63) }
	for i := range shapes {
		add(shapes[i].prefix[0], shapes[i].prefix[1])
	}
	for _, a := range []string{"ey", "Q~", "--"} {
		add(a[0], a[1])
	}
	for b := range 256 {
		add(':', byte(b))
		add('=', byte(b))
	}
	return p
}()

func promising(a, b byte) bool { return pairs[a].has(b) }

// finding is a shape in a line.
type finding struct {
	kind     string
	from, to int
}

// find returns the shapes in a line of which what is looked for first is at from or later and before to,
// in order.
func find(b []byte, from, to int) (all []finding) {
	for i := from; i < to; i++ {
		if i+1 < len(b) && !promising(b[i], b[i+1]) {
			continue
		}
		if f, ok := findAt(b, i); ok {
			all = append(all, f)
			i = f.to - 1
		}
	}
	return all
}

// findAt looks for the shape of which something characteristic is at i.
func findAt(b []byte, i int) (finding, bool) {
	for _, s := range byFirst[b[i]] {
		if n := s.length(b, i); n > 0 {
			return finding{s.kind, i, i + n}, true
		}
	}
	switch b[i] {
	case 'e':
		if n := webToken(b, i); n > 0 {
			return finding{kindToken, i, i + n}, true
		}
	case 'Q':
		if n := azureSecret(b, i); n > 0 {
			return finding{"Azure client secret", i - 4, i - 4 + n}, true
		}
	case '-':
		if n := keyInLine(b, i); n > 0 {
			return finding{kindPrivateKey, i, i + n}, true
		}
	case ':', '=':
		if from, to := inURL(b, i); to > from {
			return finding{"password in a URL", from, to}, true
		}
		if from, to := assigned(b, i); to > from && !hasShape(b, from) {
			return finding{"secret in an assignment", from, to}, true
		}
	}
	return finding{}, false
}

// hasShape reports whether a shape of the table, or a web token, begins at i.
func hasShape(b []byte, i int) bool {
	for _, s := range byFirst[b[i]] {
		if s.length(b, i) > 0 {
			return true
		}
	}
	return webToken(b, i) > 0
}

// length of the shape that begins at i, 0 if none does.
func (s *shape) length(b []byte, i int) int {
	rest := b[i:]
	if len(rest) < len(s.prefix)+s.least || string(rest[:len(s.prefix)]) != s.prefix || !begins(b, i) {
		return 0
	}
	rest = rest[len(s.prefix):]
	if s.holds != "" && !bytes.Contains(run(rest, s.body, 64), []byte(s.holds)) {
		return 0
	}
	most := s.most + 1 // one more tells that it is longer
	if s.most == long {
		most = lookAhead
	}
	body := run(rest, s.body, most)
	if s.body == dotted { // the end of a sentence is not of it
		body = bytes.TrimRight(body, ".")
	}
	if len(body) < s.least || len(body) >= most && s.most < long {
		return 0
	}
	if s.kind == kindPrivateKey && distinct(body) < leastDistinct || s.kind != kindPrivateKey && !plausible(body) {
		return 0
	}
	return len(s.prefix) + len(body)
}

// run returns the first bytes that are of a class.
func run(b []byte, c *class, most int) []byte {
	n := 0
	for n < len(b) && n < most && c.has(b[n]) {
		n++
	}
	return b[:n]
}

// begins reports whether a word begins at i. What stands before it may be an escape of a URL or a
// string, as in %3D or \n.
func begins(b []byte, i int) bool {
	if i == 0 || !alnum.has(b[i-1]) {
		return true
	}
	return i >= 3 && b[i-3] == '%' || i >= 2 && b[i-2] == '\\'
}

// webToken is the length of a JSON web token that begins at i: a header that names an algorithm, a
// payload that is an object, and a signature (RFC 7519).
func webToken(b []byte, i int) int {
	const longest = 1024 // of a header
	if !bytes.HasPrefix(b[i:], []byte("eyJ")) || !begins(b, i) {
		return 0
	}
	head := run(b[i:], dashed, longest)
	rest := b[i+len(head):]
	if !bytes.HasPrefix(rest, []byte(".eyJ")) {
		return 0
	}
	var fields map[string]any
	text, err := base64.RawURLEncoding.DecodeString(string(head))
	if err != nil || json.Unmarshal(text, &fields) != nil || fields["alg"] == nil || fields["alg"] == "none" {
		return 0
	}
	payload := run(rest[1:], dashed, len(rest))
	rest = rest[1+len(payload):]
	if len(rest) == 0 || rest[0] != '.' { // cut by the end of the window, or none
		if len(payload) < lookAhead/2 {
			return 0
		}
		return len(head) + 1 + len(payload)
	}
	signature := run(rest[1:], dashed, len(rest))
	if len(signature) < 20 {
		return 0
	}
	return len(head) + 1 + len(payload) + 1 + len(signature)
}

// azureSecret is the length of a client secret of Azure, of which i is the Q: three of the class and a
// digit before it, a tilde and 31 to 34 after it.
func azureSecret(b []byte, i int) int {
	if i < 4 || i+1 >= len(b) || b[i+1] != '~' || b[i-1] < '0' || b[i-1] > '9' || len(run(b[i-4:], tilded, 3)) < 3 {
		return 0
	}
	n := len(run(b[i+2:], tilded, 40))
	if n < 31 || n > 34 || !plausible(b[i-4:i+2+n]) {
		return 0
	}
	return 4 + 2 + n
}

const (
	armour   = "-----BEGIN "
	leastKey = 40 // bytes in base64 of the first line of a key
)

// armourHead is the length of the first line of a private key's armour, 0 if it is none (RFC 7468).
func armourHead(b []byte) int {
	if !bytes.HasPrefix(b, []byte(armour)) {
		return 0
	}
	line := b[:min(len(b), 80)]
	end := bytes.Index(line[len(armour):], []byte("-----"))
	if end < 0 || !strings.Contains(string(line[len(armour):len(armour)+end]), "PRIVATE KEY") {
		return 0
	}
	return len(armour) + end + len("-----")
}

// keyInLine is the length of an armour with a private key in one line: in a string with \n, or in a
// variable.
func keyInLine(b []byte, i int) int {
	head := armourHead(b[i:])
	if head == 0 {
		return 0
	}
	skipped := i + head
	for skipped < len(b) && skipped < i+head+8 && bytes.IndexByte([]byte(`\nr `), b[skipped]) >= 0 {
		skipped++
	}
	body := keyBody(b[skipped:])
	if len(body) == 0 {
		return 0
	}
	return skipped - i + len(body)
}

// keyBody is what can be the first line of a key in base64, "" if it is none. Whatever a language puts
// in front of a line in a string or a comment is left out.
func keyBody(b []byte) []byte {
	b = bytes.TrimLeft(b, " \t\"'`+#*>|-/,")
	body := run(b, base64s, lookAhead)
	if len(body) < leastKey || distinct(body) < leastDistinct {
		return nil
	}
	return body
}

// betweenArmour reports whether a line may stand between the armour and the key: empty, or a header
// (RFC 1421).
func betweenArmour(b []byte) bool {
	b = bytes.TrimSpace(b)
	name, _, ok := bytes.Cut(b, []byte(": "))
	return len(b) == 0 || ok && len(run(name, dashed, len(name))) == len(name)
}

func isBase64(c byte) bool { return base64s.has(c) }
