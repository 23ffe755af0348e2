// Package bench measures two sides of a comparison in turns and says whether a goal holds. What it
// says is a ratio of figures taken inside one run: absolute figures move with the machine. It knows no
// part of the program, and it never passes a goal that it could not measure.
package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"
)

// Sample is what one side did in one round, by the name of the figure: times in seconds, sizes in
// bytes, rates per second. Units has what each name stands for.
type Sample map[string]float64

// Subject is one side while it is measured. Round does the same work each time.
type Subject interface {
	Round(ctx context.Context) (Sample, error)
	Close() error
}

// Side is one side of a comparison, before it is opened.
type Side struct {
	Name string
	Open func(ctx context.Context, e *Env) (Subject, error)
}

// Env is what a measurement is done with.
type Env struct {
	Dir     string        // a directory for all that is made; on the filesystem that is measured
	Root    string        // the source tree, from which programs are built
	Rivals  string        // the directory in it that has the module of the rivals
	Rounds  int           // of each side; their median is taken
	Seconds time.Duration // that a side is under load in one round
	Part    int           // sizes are divided by it; 1 unless a test wants a row that is quick

	built map[string]built
}

// Count is n, or the part of it that a quick run does: never less than 2.
func (e *Env) Count(n int) int { return max(2, n/max(1, e.Part)) }

// Place makes a new directory.
func (e *Env) Place() (string, error) { return os.MkdirTemp(e.Dir, "") }

// Row is one comparison: the first side is ours.
type Row struct {
	ID     string // of the goal
	What   string // is measured
	Sides  []Side
	Bounds []Bound
	Note   string // what a reader has to know about it
	Long   bool   // it takes minutes, and is measured only where it is asked for
}

// Bound is what is demanded of one figure of ours.
type Bound struct {
	Figure string // of our side
	Of     string // the side that it is compared with; "" when the figure itself is bounded
	Base   string // the figure of that side, "" for the same one
	Goal   Goal   // of the ratio, or of the figure where Of is ""
	Or     Goal   // of the figure itself: it is enough when this holds
	Worst  bool   // not the median of the rounds counts but the worst of them
}

// Goal is a limit. The zero Goal is none: the figure is only shown.
type Goal struct {
	limit float64
	way   int
}

// The ways of a goal.
const (
	atMost = 1 + iota
	atLeast
)

// AtMost demands a figure that is not above the limit.
func AtMost(limit float64) Goal { return Goal{limit, atMost} }

// AtLeast demands a figure that is not below the limit.
func AtLeast(limit float64) Goal { return Goal{limit, atLeast} }

func (g Goal) holds(is float64) bool {
	switch g.way {
	case atMost:
		return is <= g.limit
	case atLeast:
		return is >= g.limit
	}
	return false
}

// worst is the figure that is farthest from the goal.
func (g Goal) worst(all []float64) float64 {
	if g.way == atLeast {
		return slices.Min(all)
	}
	return slices.Max(all)
}

// Outcomes of a bound.
const (
	Holds       = "holds"
	Fails       = "does not hold"
	Shown       = "no goal" // measured, and nothing is demanded
	NotMeasured = "not measured"
)

// Result is what became of one bound.
type Result struct {
	ID      string  `json:"id"`
	What    string  `json:"what"`
	Figure  string  `json:"figure"`
	Unit    string  `json:"unit"`
	Is      float64 `json:"is"`
	Against string  `json:"against"` // the side that it was compared with, "" if with none
	Base    float64 `json:"base"`    // what that side had
	Ratio   float64 `json:"ratio"`   // ours divided by theirs; 0 when it was compared with none
	Goal    string  `json:"goal"`
	Outcome string  `json:"outcome"`
	Reason  string  `json:"reason"` // why it was not measured
	Rounds  int     `json:"rounds"`
	Note    string  `json:"note"`
}

// Measure does the rounds of a row, each side in turn and each round beginning with the next side,
// and judges its bounds. A side that cannot be had, or that fails, makes the bounds that need it not
// measured: never holding.
func Measure(ctx context.Context, e *Env, row Row) []Result {
	open := make([]opened, len(row.Sides))
	for i, s := range row.Sides {
		if err := ctx.Err(); err != nil {
			open[i] = opened{side: s, err: errors.New("interrupted")}
			continue
		}
		subject, err := s.Open(ctx, e)
		open[i] = opened{side: s, subject: subject, err: err}
	}
	for round := range e.Rounds {
		for i := range open {
			open[(round+i)%len(open)].round(ctx)
		}
	}
	for i := range open {
		open[i].close()
	}
	var results []Result
	for _, b := range row.Bounds {
		results = append(results, judge(row, b, open, e.Rounds))
	}
	return results
}

// opened is a side with what it has said so far.
type opened struct {
	side    Side
	subject Subject
	samples []Sample
	err     error
}

func (o *opened) round(ctx context.Context) {
	if o.err != nil {
		return
	}
	s, err := o.subject.Round(ctx)
	if err != nil {
		o.err = err
		return
	}
	o.samples = append(o.samples, s)
}

func (o *opened) close() {
	if o.subject != nil {
		o.err = errors.Join(o.err, o.subject.Close())
	}
}

// figures are all that a side said of one figure.
func (o *opened) figures(name string) ([]float64, error) {
	if o.err != nil {
		return nil, fmt.Errorf("%s: %w", o.side.Name, o.err)
	}
	var all []float64
	for _, s := range o.samples {
		v, ok := s[name]
		if !ok {
			return nil, fmt.Errorf("%s does not say its %q", o.side.Name, name)
		}
		all = append(all, v)
	}
	return all, nil
}

// judge says of one bound whether it holds.
func judge(row Row, b Bound, open []opened, rounds int) Result {
	r := Result{
		ID: row.ID, What: row.What, Figure: b.Figure, Unit: Units[b.Figure], Against: b.Of, Goal: b.text(),
		Rounds: rounds, Note: row.Note, Outcome: NotMeasured,
	}
	ours, err := open[0].figures(b.Figure)
	if err == nil && len(ours) == 0 {
		err = errors.New("no round was done")
	}
	if err != nil {
		r.Reason = err.Error()
		return r
	}
	r.Is = b.of(ours, Goal{})
	bounded := r.Is
	if b.Of == "" {
		r.Is = b.of(ours, b.Goal)
		bounded = r.Is
	} else {
		ratios, theirs, err := b.compare(ours, open)
		if err != nil {
			r.Reason = err.Error()
			return r
		}
		r.Base, r.Ratio = Median(theirs), b.of(ratios, b.Goal)
		bounded = r.Ratio
	}
	switch {
	case b.Goal.way == 0:
		r.Outcome = Shown
	case b.Goal.holds(bounded), b.Or.holds(b.of(ours, b.Or)):
		r.Outcome = Holds
	default:
		r.Outcome = Fails
	}
	return r
}

// of is the median of the rounds, or the worst of them for a goal.
func (b Bound) of(all []float64, g Goal) float64 {
	if b.Worst {
		return g.worst(all)
	}
	return Median(all)
}

// compare divides ours by theirs, round by round.
func (b Bound) compare(ours []float64, open []opened) (ratios, theirs []float64, err error) {
	at := slices.IndexFunc(open, func(o opened) bool { return o.side.Name == b.Of })
	if at < 0 {
		return nil, nil, fmt.Errorf("there is no side %q", b.Of)
	}
	base := b.Base
	if base == "" {
		base = b.Figure
	}
	if theirs, err = open[at].figures(base); err != nil {
		return nil, nil, err
	}
	for i, is := range ours {
		if theirs[i] <= 0 {
			return nil, nil, fmt.Errorf("%s: its %s is %v, so that nothing can be compared with it", b.Of, base, theirs[i])
		}
		ratios = append(ratios, is/theirs[i])
	}
	return ratios, theirs, nil
}

// Median is the one in the middle, or the mean of the two there.
func Median(all []float64) float64 {
	if len(all) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(all))
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}

// Percentile is the smallest figure that so many of a hundred do not exceed.
func Percentile(all []float64, percent float64) float64 {
	if len(all) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(all))
	at := int(float64(len(s)) * percent / 100)
	return s[min(at, len(s)-1)]
}
