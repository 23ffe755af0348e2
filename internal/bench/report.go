package bench

import (
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"
)

// Units are those of the figures.
var Units = map[string]string{
	"p50": "s", "p99": "s", "max": "s", "adds": "s", "took": "s",
	"rate": "/s",
	"peak": "B", "resident": "B", "size": "B",
	"lost": "", "unsynced": "", "failures": "", "transactions": "", "kills": "", "share": "", "operations": "",
}

// text is the goal as people read it.
func (b Bound) text() string {
	unit := Units[b.Figure]
	main := b.Goal.text(unit)
	if b.Of != "" {
		main = b.Goal.text("x")
	}
	if b.Or.way != 0 {
		main += " or " + b.Or.text(unit)
	}
	return main
}

func (g Goal) text(unit string) string {
	switch g.way {
	case atMost:
		return "<= " + format(g.limit, unit)
	case atLeast:
		return ">= " + format(g.limit, unit)
	}
	return "-"
}

// format writes a figure with a unit that suits its size.
func format(v float64, unit string) string {
	switch unit {
	case "s":
		switch {
		case v >= 1:
			return fmt.Sprintf("%.2f s", v)
		case v >= 1e-3:
			return fmt.Sprintf("%.3g ms", v*1e3)
		}
		return fmt.Sprintf("%.3g us", v*1e6)
	case "/s":
		return fmt.Sprintf("%.0f /s", v)
	case "B":
		return fmt.Sprintf("%.1f MiB", v/(1<<20))
	case "x":
		return fmt.Sprintf("%.3g x", v)
	}
	return fmt.Sprintf("%.4g", v)
}

// Short is a result in a few words.
func (r Result) Short() string {
	switch {
	case r.Outcome == NotMeasured:
		return r.Outcome + ": " + r.Reason
	case r.Against != "":
		return fmt.Sprintf("%s, %s of %s: %s", format(r.Is, r.Unit), format(r.Ratio, "x"), r.Against, r.Outcome)
	}
	return format(r.Is, r.Unit) + ": " + r.Outcome
}

// Text prints results as a table of Markdown, with a last line that counts.
func Text(w io.Writer, results []Result) error {
	t := tabwriter.NewWriter(w, 0, 0, 1, ' ', 0)
	fmt.Fprintln(t, "| row\t| what\t| figure\t| ours\t| against\t| it has\t| ratio\t| goal\t| \t|")
	fmt.Fprintln(t, "|---\t|---\t|---\t|---\t|---\t|---\t|---\t|---\t|---\t|")
	for _, r := range results {
		is, base, ratio, outcome := format(r.Is, r.Unit), "-", "-", r.Outcome
		against := r.Against
		switch {
		case r.Outcome == NotMeasured:
			is, outcome = "-", outcome+": "+r.Reason
		case against != "":
			base, ratio = format(r.Base, r.Unit), format(r.Ratio, "x")
		}
		if against == "" {
			against = "-"
		}
		fmt.Fprintf(t, "| %s\t| %s\t| %s\t| %s\t| %s\t| %s\t| %s\t| %s\t| %s\t|\n", r.ID, r.What, r.Figure, is, against, base, ratio, r.Goal, outcome)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	n := Tally(results)
	_, err := fmt.Fprintf(w, "\n%d hold, %d do not hold, %d not measured, %d without a goal\n", n[Holds], n[Fails], n[NotMeasured], n[Shown])
	return err
}

// JSON prints the results as one object.
func JSON(w io.Writer, results []Result) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(map[string][]Result{"results": results})
}

// Tally counts results by their outcome.
func Tally(results []Result) map[string]int {
	n := map[string]int{}
	for _, r := range results {
		n[r.Outcome]++
	}
	return n
}

// Good reports whether everything that has a goal was measured and holds.
func Good(results []Result) bool {
	n := Tally(results)
	return n[Fails] == 0 && n[NotMeasured] == 0
}
