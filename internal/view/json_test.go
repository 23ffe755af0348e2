package view_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"interlock/internal/claim"
	"interlock/internal/forge"
	"interlock/internal/reason"
	"interlock/internal/run"
	"interlock/internal/store"
	"interlock/internal/view"
)

var update = flag.Bool("update", false, "write docs/json.md anew")

// fill gives every field of a value something, so that nothing is left out of its JSON.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0))
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)))
			return
		}
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				fill(v.Field(i))
			}
		}
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(1500 * int64(time.Millisecond))
	case reflect.Uint64:
		v.SetUint(1)
	case reflect.Float64:
		v.SetFloat(1.5)
	case reflect.Uint8:
		v.SetUint('1') // a byte of JSON: 1
	}
}

func full[T any]() T {
	var v T
	fill(reflect.ValueOf(&v).Elem())
	return v
}

// keys are all keys of a JSON value by their path, with the type of what they hold.
func keys(path string, v any, all map[string]string) {
	switch v := v.(type) {
	case map[string]any:
		if path != "" {
			all[path] = "object"
		}
		for k, below := range v {
			keys(strings.TrimPrefix(path+"."+k, "."), below, all)
		}
	case []any:
		all[path] = "array"
		for _, below := range v {
			before := maps.Clone(all)
			keys(path+"[]", below, all)
			if len(all) == len(before)+1 && all[path+"[]"] != "object" {
				all[path] = "array of " + all[path+"[]"] + "s"
			}
			delete(all, path+"[]")
		}
	case float64:
		all[path] = "number"
	case bool:
		all[path] = "boolean"
	case string:
		all[path] = "string"
		if _, err := time.Parse(time.RFC3339, v); err == nil {
			all[path] = "time"
		}
	default:
		all[path] = fmt.Sprintf("%T", v)
	}
}

// TestJSONDocument: docs/json.md has each key that --json prints, and no other.
func TestJSONDocument(t *testing.T) {
	recorded := view.Recorded{Run: full[run.Run](), Stopped: "x", History: store.History{
		Events:   []store.Record{{Seq: 1, At: time.Now(), Kind: "accepted", Data: []byte(`1`)}},
		Effects:  []store.EffectRecord{full[store.EffectRecord]()},
		Sessions: []store.Session{full[store.Session]()},
	}}
	var b strings.Builder
	b.WriteString("# What --json prints\n\nMade of the program's own values (`go test ./internal/view -run JSONDocument -update`). Keys are added, and none is\n" +
		"renamed or taken away without a line in CHANGELOG.md. A key that has nothing to say may be left\n" +
		"out. Times are RFC 3339. Names end in their unit where a number has one; `exit` is an exit code.\n")
	for _, one := range []struct {
		command string
		v       any
	}{
		{"interlock show RUN", recorded}, {"interlock runs (one of the array)", view.Listed{Run: full[run.Run](), Stopped: "x"}},
		{"interlock explain RUN", full[reason.Answer]()},
		{"interlock run, watch and retry: one line for each event", map[string]view.Event{"event": full[view.Event]()}},
		{"interlock run, watch and retry: the last line", map[string]view.Result{"result": full[view.Result]()}},
		{"interlock retry: the first line", map[string]view.Retry{"retry": full[view.Retry]()}},
		{"interlock issue show ISSUE", full[forge.Issue]()},
		{"interlock change show CHANGE", view.Proposal{Change: full[forge.Change](), Verdict: ptr(full[run.Verdict]()), Patch: "x", Truncated: true}},
		{"interlock change diff CHANGE", full[view.Difference]()}, {"interlock claim show ISSUE", full[claim.Sight]()},
	} {
		data, err := json.Marshal(one.v)
		if err != nil {
			t.Fatal(err)
		}
		var v any
		if err := json.Unmarshal(data, &v); err != nil {
			t.Fatal(err)
		}
		all := map[string]string{}
		keys("", v, all)
		fmt.Fprintf(&b, "\n## %s\n\n| key | type |\n|---|---|\n", one.command)
		for _, k := range slices.Sorted(maps.Keys(all)) {
			fmt.Fprintf(&b, "| `%s` | %s |\n", k, all[k])
			if bare := strings.TrimSuffix(k, "_seconds"); bare == k && (strings.HasSuffix(k, "duration") || strings.HasSuffix(k, "_total") || strings.HasSuffix(k, "_idle")) {
				t.Errorf("%s: %s is a time without a unit in its name", one.command, k)
			}
		}
	}
	const file = "../../docs/json.md"
	if *update {
		if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(have), b.String()); diff != "" {
		t.Errorf("docs/json.md is not what is printed (write it anew with -update, and say it in CHANGELOG.md):\n%s", diff)
	}
}

// TestRecordedJSON: what was recorded is JSON and no text of JSON in base 64; times have their unit.
func TestRecordedJSON(t *testing.T) {
	t.Parallel()
	plan := run.Plan{AgentTotal: 90 * time.Second, CheckTotal: time.Minute}
	event := func(e run.Event) store.Record {
		data, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		return store.Record{Kind: e.Kind(), Data: data}
	}
	r := view.Recorded{Run: run.Run{ID: "1-a", Plan: plan}, History: store.History{Events: []store.Record{
		event(run.Reconfigured{Plan: plan}), event(run.Verified{Verdict: run.Verdict{Commands: []run.Command{{Line: "true", Duration: 1234900000}}}}),
		event(run.CanceledBy{Reason: "why"}), {Kind: "broken", Data: []byte("{")}, {Kind: "of tomorrow", Data: []byte(`{"new":1}`)},
	}}}
	data, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`"agent_total_seconds":90,"agent_idle_seconds":0,"check_total_seconds":60}`, `"duration_seconds":1.234`, `"data":{"reason":"why"}`, `"data":"{"`, `"data":{"new":1}`,
		`"effects":[],"sessions":[]`,
	} {
		if !strings.Contains(string(data), want) {
			t.Errorf("%s is not in\n%s", want, data)
		}
	}
	for _, bad := range []string{"1234900000", "90000000000", `"agent_total":`, `"duration":`} {
		if strings.Contains(string(data), bad) {
			t.Errorf("%s is in\n%s", bad, data)
		}
	}
}
