package local_test

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"interlock/internal/forge"
)

// TestIssueOnce: of many who file the same at once one does; the others are given its issue. A closed
// one, and another text, are no reason not to file.
func TestIssueOnce(t *testing.T) {
	t.Parallel()
	f := repository(t, false).open()
	var wait sync.WaitGroup
	numbers, filed := make(chan int64, 8), make(chan bool, 8)
	for range 8 {
		wait.Go(func() {
			is, made, err := f.IssueOnce(t.Context(), "The same", "text", nil, "me")
			if err != nil {
				t.Error(err)
			}
			numbers <- is.Number
			filed <- made
		})
	}
	wait.Wait()
	close(numbers)
	close(filed)
	made := 0
	for is := range filed {
		if is {
			made++
		}
	}
	for n := range numbers {
		if n != 1 || made != 1 {
			t.Errorf("issue %d was given, %d were filed", n, made)
		}
	}
	if is, made, err := f.IssueOnce(t.Context(), "The same", "other text", nil, "me"); err != nil || !made || is.Number != 2 {
		t.Errorf("another text: %+v, %t, %v", is, made, err)
	}
	if _, err := f.CloseIssue(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	if is, made, err := f.IssueOnce(t.Context(), "The same", "text", nil, "me"); err != nil || !made || is.Number != 3 {
		t.Errorf("after the first was closed: %+v, %t, %v", is, made, err)
	}
}

// TestPersonsCommentsAndLabels: comments of people are never taken for one another, labels are put on
// once, and ours are not theirs to set.
func TestPersonsCommentsAndLabels(t *testing.T) {
	t.Parallel()
	f := repository(t, false).open()
	if _, err := f.NewIssue(t.Context(), "T", "", []string{"a"}, "me"); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if c, err := f.Say(t.Context(), 1, "the same", ""); err != nil || c.Author == "" || c.Key != "" {
			t.Errorf("%+v, %v", c, err)
		}
	}
	if is, err := f.Issue(t.Context(), 1); err != nil || len(is.Comments) != 2 || is.Comments[1].ID != 2 {
		t.Errorf("%+v, %v", is, err)
	}
	for _, bad := range []string{"", " \n", strings.Repeat("x", 65<<10)} {
		if _, err := f.Say(t.Context(), 1, bad, "me"); !errors.Is(err, forge.ErrInvalid) {
			t.Errorf("%.10q: %v", bad, err)
		}
	}
	is, changed, err := f.Label(t.Context(), 1, []string{"b", "a"}, []string{"none"})
	if err != nil || !changed || strings.Join(is.Labels, " ") != "a b" {
		t.Errorf("%+v, %t, %v", is, changed, err)
	}
	before := is.Updated
	if is, changed, err = f.Label(t.Context(), 1, []string{"b"}, []string{"none"}); err != nil || changed || !is.Updated.Equal(before) {
		t.Errorf("nothing to do: %+v, %t, %v", is, changed, err)
	}
	if is, changed, err = f.Label(t.Context(), 1, nil, []string{"a"}); err != nil || !changed || strings.Join(is.Labels, " ") != "b" {
		t.Errorf("%+v, %t, %v", is, changed, err)
	}
	for _, bad := range []string{forge.LabelPrefix + "done", strings.Repeat("x", 51), ""} {
		if _, _, err := f.Label(t.Context(), 1, nil, []string{bad}); !errors.Is(err, forge.ErrInvalid) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if _, _, err := f.Label(t.Context(), 9, []string{"x"}, nil); !errors.Is(err, forge.ErrNotFound) {
		t.Errorf("no such issue: %v", err)
	}
}
