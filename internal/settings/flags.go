package settings

import (
	"github.com/spf13/pflag"

	"interlock/internal/policy"
)

// typedFlag is one setting as a flag. It takes what is typed as it is; values are judged together,
// in words that never repeat a secret.
type typedFlag struct {
	key   *policy.Key
	typed []string
}

// String implements the flag's Value: the default.
func (f *typedFlag) String() string {
	if f.key == nil {
		return ""
	}
	return f.key.Default
}

// Set implements the flag's Value.
func (f *typedFlag) Set(s string) error {
	f.typed = append(f.typed, s)
	return nil
}

// Type implements the flag's Value: what help calls it.
func (f *typedFlag) Type() string {
	switch f.key.Kind {
	case policy.Count:
		return "int"
	case policy.Span:
		return "duration"
	case policy.Switch:
		return "bool"
	case policy.Lines, policy.Names, policy.Paths, policy.Secrets:
		return "stringArray"
	}
	return "string"
}

// Flags are the settings of one command line.
type Flags []*typedFlag

// AddFlags adds a flag for each setting.
func AddFlags(to *pflag.FlagSet) Flags {
	var all Flags
	for _, k := range policy.Keys() {
		if k.Flag == "" {
			continue
		}
		f := &typedFlag{key: k}
		pf := to.VarPF(f, k.Flag, "", k.Help())
		if k.Kind == policy.Switch {
			pf.NoOptDefVal = "true"
		}
		all = append(all, f)
	}
	return all
}

// Values judges what was typed.
func (all Flags) Values() (policy.Values, error) {
	values := policy.Values{}
	for _, f := range all {
		if f.typed == nil {
			continue
		}
		found, err := f.key.ReadTyped(f.typed)
		if err != nil {
			return nil, err
		}
		values[f.key.Name] = found
	}
	return values, nil
}
