package policy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// Schema is the JSON Schema of a file, for editors: indented, with a newline at its end. It accepts
// what Parse accepts and says what can be said of the rest without a program.
func Schema(whose Whose) ([]byte, error) {
	s := level(whose)
	s.Schema = "https://json-schema.org/draft/2020-12/schema"
	s.Title = "Interlock: the operator's configuration"
	if whose == Repository {
		s.Title = "Interlock: " + Path + " of a repository"
	}
	if whose == General {
		one := level(Here)
		one.Types, one.Type = []string{"object", "null"}, ""
		s.Properties[sections] = &jsonschema.Schema{
			Types: []string{"object", "null"}, Description: "The same settings for one repository, by its path.",
			AdditionalProperties: one, PropertyNames: &jsonschema.Schema{Pattern: "^(/|~/)"},
			MaxProperties: most(mostEntries),
		}
		s.PropertyOrder = append(s.PropertyOrder, sections)
	}
	data, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("write the schema: %w", err)
	}
	var b bytes.Buffer
	if err := json.Indent(&b, data, "", "  "); err != nil {
		return nil, fmt.Errorf("write the schema: %w", err)
	}
	b.WriteByte('\n')
	return b.Bytes(), nil
}

// level is the schema of the keys of one level, with the groups below it.
func level(whose Whose) *jsonschema.Schema {
	s := object()
	for _, k := range keys {
		if !k.allows(whose) {
			continue
		}
		in := s
		group, name := k.group()
		if group != "" {
			if s.Properties[group] == nil {
				s.Properties[group] = object()
				s.PropertyOrder = append(s.PropertyOrder, group)
			}
			in = s.Properties[group]
		}
		in.Properties[name] = k.schema()
		in.PropertyOrder = append(in.PropertyOrder, name)
	}
	return s
}

// object takes the keys that are named and no others; a file or a group may be empty.
func object() *jsonschema.Schema {
	return &jsonschema.Schema{
		Types: []string{"object", "null"}, Properties: map[string]*jsonschema.Schema{},
		AdditionalProperties: &jsonschema.Schema{Not: &jsonschema.Schema{}},
	}
}

// schema is what one key takes.
func (k *Key) schema() *jsonschema.Schema {
	s := &jsonschema.Schema{Type: "string", Description: strings.Join(append([]string{k.Short + "."}, k.Long...), " ")}
	switch k.Kind {
	case Word:
		s.Pattern, s.MaxLength = `\S`, most(maxWord)
	case Line:
		s.Pattern, s.MaxLength = `\S`, most(maxLine)
	case Dir:
		s.Pattern, s.MaxLength = "^(/|~/)", most(maxWord)
	case Lines:
		s = k.listOf(s, `\S`)
		s.Items.MaxLength = most(maxLine)
	case Names:
		s = k.listOf(s, envName.String())
	case Paths, Secrets:
		s = k.listOf(s, `^[^/]`)
	case Count:
		s.Type, s.Minimum, s.Maximum = "integer", bound(k.Least), bound(k.Most)
		if k.Any {
			s.Minimum = bound(0)
		}
	case Span:
		// Go durations; a number alone is refused, but for 0.
		s.Type, s.Types, s.Pattern, s.Maximum = "", []string{"string", "integer"}, `^\+?(?:0|(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:ns|us|µs|μs|ms|s|m|h))+$`, bound(0)
	case Memory:
		s.Type, s.Types, s.Pattern, s.Minimum = "", []string{"string", "integer"}, aSize.String(), bound(0)
	case Size:
		s.Type, s.Types, s.Pattern, s.Minimum = "", []string{"string", "integer"}, bytesSize, bound(0)
	case Switch:
		s.Type = "boolean"
	}
	for _, w := range k.Words {
		s.Enum = append(s.Enum, w)
	}
	if k.Default != "" {
		s.Default = k.standardJSON()
	}
	return s
}

func (k *Key) listOf(s *jsonschema.Schema, pattern string) *jsonschema.Schema {
	return &jsonschema.Schema{Type: "array", Description: s.Description, MaxItems: most(k.most()), Items: &jsonschema.Schema{Type: "string", Pattern: pattern}}
}

func most(n int) *int { return &n }

func bound(n int64) *float64 {
	f := float64(n)
	return &f
}

// standardJSON is the default as JSON has it.
func (k *Key) standardJSON() json.RawMessage {
	if k.Kind == Count || k.Kind == Switch {
		return json.RawMessage(k.Default)
	}
	return json.RawMessage(fmt.Sprintf("%q", k.Default))
}
