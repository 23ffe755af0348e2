package policy_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"interlock/internal/policy"
)

const documentHead = "# Configuration\n\n" +
	"Made of the table in `internal/policy/keys.go` (`go test ./internal/policy -run Document -update`).\n\n" +
	"A value comes from the first of these that has one: a flag; the operator's file, its section for the\n" +
	"repository; the operator's file; `.interlock/config.yaml` on the base branch; the default. There are no\n" +
	"environment variables. `interlock config show` says what holds and why.\n\n" +
	"| key | flag | who may set it | default | meaning |\n|---|---|---|---|---|\n"

// who says who may set a key.
func who(k *policy.Key) string {
	switch k.Right {
	case policy.Lower:
		return "operator; a repository may lower it"
	case policy.Confined:
		return "operator; a repository for the sandbox only: " + k.Why
	case policy.Operator:
		return "operator only: " + k.Why
	case policy.Machine:
		return "operator only, for all repositories: " + k.Why
	}
	return "operator, repository"
}

// TestDocument: docs/configuration.md is the table of keys.
func TestDocument(t *testing.T) {
	t.Parallel()
	want := documentHead
	for _, k := range policy.Keys() {
		flag, standard := "", k.Default
		if k.Flag != "" {
			flag = "`--" + k.Flag + "`"
		}
		if standard == "" {
			standard = k.Else
		}
		meaning := strings.Join(append([]string{k.Short + "."}, k.Long...), " ")
		want += fmt.Sprintf("| `%s` | %s | %s | %s | %s |\n", k.Name, flag, who(k), standard, meaning)
	}
	want += "\nThe operator's file may also hold `repositories`: the same settings but those for all repositories, by the path of a repository.\n"
	path := filepath.Join("..", "..", "docs", "configuration.md")
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("docs/configuration.md is not the table of keys (-want +got):\n%s", diff)
	}
}
