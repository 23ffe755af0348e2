package policy

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"interlock/internal/run"
)

// Layers are the sources of settings, each nil where there is none.
type Layers struct {
	Typed      Values // flags
	Here       Values // the operator's file, the section of this repository
	General    Values // the operator's file
	Repository Values // the file of the base branch
}

// Setting is one value with where it comes from.
type Setting struct {
	Key   *Key
	Value any // nil: not set
	Whose Whose
	At    string   // "FILE:LINE", the flag, or ""
	Notes []string // what was set elsewhere and does not count, each with the reason
}

// Settings are all settings of a run.
type Settings struct {
	by map[string]*Setting
}

// Settle decides each setting. A flag comes first, then the operator's section for the repository,
// the operator's general word, the repository's file, and the default. What the repository may
// only lower is the lower one of its value and the operator's general one; what it may choose for
// the sandbox only is left out where it would run without one.
func Settle(l Layers) *Settings {
	s := &Settings{by: map[string]*Setting{}}
	for _, k := range keys {
		s.by[k.Name] = k.settle(l)
	}
	s.confine()
	return s
}

// settle takes the strongest value of one key.
func (k *Key) settle(l Layers) *Setting {
	s := &Setting{Key: k, Whose: Builtin}
	for _, from := range []struct {
		whose  Whose
		values Values
	}{{Typed, l.Typed}, {Here, l.Here}, {General, l.General}} {
		f, ok := from.values[k.Name]
		switch {
		case !ok || !k.allows(from.whose):
		case s.Whose == Builtin:
			s.Value, s.Whose, s.At = f.Value, from.whose, f.At
		default:
			s.note(f, "comes after "+s.At)
		}
	}
	if s.Whose == Builtin {
		s.Value = k.standard()
	}
	if f, ok := l.Repository[k.Name]; ok && k.allows(Repository) {
		s.weigh(f)
	}
	return s
}

// weigh lets the repository's value count where it may.
func (s *Setting) weigh(theirs Found) {
	switch lowers := s.Key.Right == Lower && (s.Whose == Builtin || s.Whose == General); {
	case lowers && s.Key.rank(theirs.Value) <= s.Key.rank(s.Value):
		if s.Whose == General {
			s.note(Found{Value: s.Value, At: s.At}, "the repository's is lower")
		}
		s.Value, s.Whose, s.At = theirs.Value, Repository, theirs.At
	case lowers && s.Whose == General:
		s.note(theirs, "more than the operator's "+Show(s.Value)+" at "+s.At)
	case lowers:
		s.note(theirs, "more than the default "+Show(s.Value)+", which only the operator can raise")
	case s.Whose != Builtin:
		s.note(theirs, "comes after "+s.At)
	default:
		s.Value, s.Whose, s.At = theirs.Value, Repository, theirs.At
	}
}

// standard is the default, nil where there is none.
func (k *Key) standard() any {
	if k.Default == "" {
		return nil
	}
	v, err := k.read(k.Default)
	if err != nil {
		panic(fmt.Sprintf("the default of %s: %v", k.Name, err)) // the table is ours, and tested
	}
	return v
}

func (s *Setting) note(f Found, why string) {
	s.Notes = append(s.Notes, fmt.Sprintf("%s says %s: %s", f.At, Show(f.Value), why))
}

// drop takes a value away that may not be used.
func (s *Setting) drop(why string) {
	s.note(Found{Value: s.Value, At: s.At}, why)
	s.Value, s.Whose, s.At = nil, Builtin, ""
}

// confine leaves out the lines of a repository's file that would run unconfined, or would be
// handed what is the operator's.
func (s *Settings) confine() {
	level, env := s.by["sandbox.level"].Value, s.by["agent.env"]
	for _, k := range keys {
		if set := s.by[k.Name]; k.Right == Confined && set.Whose == Repository {
			names, _ := env.Value.([]string)
			switch {
			case level == "none":
				set.drop("not used at sandbox level none: " + k.Why)
			case k.Kind == Line && len(names) > 0:
				set.drop("not used while variables are handed to the agent (" + Show(names) + "): they would go to a program of the repository's choice")
			}
		}
	}
}

// List returns all settings in the order of the table.
func (s *Settings) List() []*Setting {
	all := make([]*Setting, len(keys))
	for i, k := range keys {
		all[i] = s.by[k.Name]
	}
	return all
}

// Of returns the setting with a name, which has to be one of the table's.
func (s *Settings) Of(name string) *Setting { return s.by[name] }

// Text is a setting of kind Word, Line or Dir; "" where it is not set.
func (s *Settings) Text(name string) string {
	v, _ := s.by[name].Value.(string)
	return v
}

// Span is a setting of kind Span.
func (s *Settings) Span(name string) time.Duration {
	v, _ := s.by[name].Value.(time.Duration)
	return v
}

// Missing says what a run needs and is not set, nil if all is there.
func (s *Settings) Missing() error {
	for _, need := range []struct{ name, what string }{
		{"agent.command", "the shell line that starts the agent"},
		{"checks", "at least one shell line that tells whether the work is right"},
	} {
		set := s.by[need.name]
		if set.Value != nil {
			continue
		}
		what := fmt.Sprintf("--%s is missing: %s; give it, or set %s in a configuration (interlock init writes one)", set.Key.Flag, need.what, need.name)
		for _, n := range set.Notes {
			what += "; " + n
		}
		return errors.New(what)
	}
	return nil
}

// Plan is what a new run is started with.
func (s *Settings) Plan() (run.Plan, error) {
	var p run.Plan
	for _, set := range s.List() {
		if err := set.into(&p); err != nil {
			return run.Plan{}, err
		}
		if set.Key.Right == Confined && set.Whose == Repository {
			p.Theirs = append(p.Theirs, set.Key.Name)
		}
	}
	return p, nil
}

func (s *Setting) into(p *run.Plan) error {
	if s.Key.apply == nil || s.Value == nil {
		return nil
	}
	if err := s.Key.apply(p, s.Value); err != nil {
		return fmt.Errorf("%s: %w", s.Key.Name, err)
	}
	return nil
}

// Onto is what a run that was started with old goes on with: what it was started with, and what
// was typed now. Files that have changed since decide nothing. The error says why the two do not
// go together.
func (s *Settings) Onto(old run.Plan) (run.Plan, error) {
	p := old
	p.Theirs = slices.Clone(old.Theirs)
	for _, set := range s.List() {
		if set.Whose != Typed {
			continue
		}
		if err := set.into(&p); err != nil {
			return run.Plan{}, err
		}
		p.Theirs = slices.DeleteFunc(p.Theirs, func(name string) bool { return name == set.Key.Name })
	}
	if len(p.Theirs) == 0 {
		p.Theirs = nil
	}
	for _, name := range p.Theirs {
		switch k := Named(name); {
		case p.Sandbox == "none":
			return run.Plan{}, fmt.Errorf("the run goes on with what the repository's file set as %s, and not at sandbox level none: give --%s as well", name, k.Flag)
		case k.Kind == Line && len(p.Env) > 0:
			return run.Plan{}, fmt.Errorf("the run goes on with what the repository's file set as %s, to which no variable is handed: give --%s as well", name, k.Flag)
		}
	}
	return p, nil
}

// ReadTyped reads what was typed for one key, once or, for a list, several times. The error begins
// with the flag, and never repeats a value that stands where a name is wanted.
func (k *Key) ReadTyped(typed []string) (Found, error) {
	f := Found{At: "--" + k.Flag}
	var all []string
	if err := k.tooMany(len(typed)); k.Kind.list() && err != nil {
		return f, fmt.Errorf("--%s %w", k.Flag, err)
	}
	for _, s := range typed {
		v, err := k.read(s)
		if err != nil {
			return f, fmt.Errorf("--%s %w", k.Flag, err)
		}
		f.Value = v
		if entry, ok := v.(string); ok {
			all = append(all, entry)
		}
	}
	if k.Kind.list() {
		f.Value = all
	}
	return f, nil
}
