package cli

import "testing"

func TestCarry(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		next string
		args []string
		want string
	}{
		{"interlock runs", []string{"run"}, "interlock runs"},
		{"interlock runs", []string{"--state-dir", "a b", "run"}, "interlock runs --state-dir 'a b'"},
		{"interlock runs", []string{"run", "--state-dir=s", "--repo=r"}, "interlock runs --state-dir s --repo r"},
		{"interlock doctor", []string{"run", "--repo", "r"}, "interlock doctor"},
		{"interlock issue list", []string{"issue", "show", "7", "--repo", "r"}, "interlock issue list --repo r"},
		{"interlock change show --repo /x 1", []string{"run", "--repo", "r"}, "interlock change show --repo /x 1"},
		{"interlock show 1-a", []string{"run", "--state-dir", "s"}, "interlock show 1-a --state-dir s"},
		{"interlock issue new --title 'what is wrong'", []string{"run", "--repo", "r"}, "interlock issue new --title 'what is wrong' --repo r"},
		{"git -C x status", []string{"run", "--repo", "r"}, "git -C x status"},
		{"interlock logs 1-a, then mend the issue", []string{"run", "--repo", "r"}, "interlock logs 1-a, then mend the issue"},
		{"", []string{"run", "--repo", "r"}, ""},
		{"interlock runs", []string{"run", "--repo"}, "interlock runs"},
	} {
		if got := carry(c.next, c.args); got != c.want {
			t.Errorf("carry(%q, %q) = %q, want %q", c.next, c.args, got, c.want)
		}
	}
}
