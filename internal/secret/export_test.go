package secret

// Window and LookAhead are what a Stream keeps of a line.
const (
	Window    = window
	LookAhead = lookAhead
)

// Samples are texts of each shape, made of what random returns: as short as it may be.
func Samples(random func(n int) int) map[string][]string {
	all := map[string][]string{}
	for _, s := range shapes {
		var chars []byte
		for c := range 256 {
			if s.body.has(byte(c)) && c != '.' && c != '=' && c != '-' {
				chars = append(chars, byte(c))
			}
		}
		body := make([]byte, s.least)
		for {
			for i := range body {
				body[i] = chars[random(len(chars))]
			}
			copy(body[2:], s.holds)
			if plausible(body) {
				break
			}
		}
		all[s.kind] = append(all[s.kind], s.prefix+string(body))
	}
	return all
}

// Forms are all forms in which a value is looked for.
func Forms(value string) (all []string) {
	for _, f := range forms(value) {
		if len(f) >= leastForm {
			all = append(all, f)
		}
	}
	return all
}
