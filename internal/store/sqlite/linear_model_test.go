package sqlite_test

import (
	"time"

	"interlock/internal/lineartest"
	"interlock/internal/run"
)

// runsOfKey is how many runs an issue has in its life here.
const runsOfKey = 3

// asked is what a client asks of the store.
type asked struct {
	Do     string        `json:"do"`
	Holder string        `json:"holder,omitempty"` // who asks, or whom the lease names
	Fence  run.Fence     `json:"fence,omitempty"`  // of the lease that is shown
	TTL    time.Duration `json:"ttl,omitempty"`
	Dead   run.Fence     `json:"dead,omitempty"`
	Run    int           `json:"run"`                // which of the runs of the issue
	Rev    int64         `json:"revision,omitempty"` // at which it was read
	Live   bool          `json:"live,omitempty"`     // what a save makes of it
	Value  string        `json:"value,omitempty"`    // what a save or a request says
}

// answered is what the client was told.
type answered struct {
	Err     string        `json:"err,omitempty"` // a word of store's errors, "" when it was done
	Holder  string        `json:"holder,omitempty"`
	Fence   run.Fence     `json:"fence,omitempty"`
	Granted time.Duration `json:"granted,omitempty"`
	Expires time.Duration `json:"expires,omitempty"`
	Free    time.Duration `json:"free,omitempty"`
	Held    bool          `json:"held,omitempty"` // a lease is shown; a cancel was asked for
	Rev     int64         `json:"revision,omitempty"`
	Live    bool          `json:"live,omitempty"`
	Value   string        `json:"value,omitempty"`
	Cancels int           `json:"cancels,omitempty"` // events of that kind
}

type (
	storeHistory   = lineartest.History[asked, answered]
	storeOperation = lineartest.Operation[asked, answered]
)

// noFence is the fence of a grant that nobody was told of: any above the last.
const noFence run.Fence = -1

// issue is what there is to know of one issue: its lease, its runs, what was asked of them. Of a
// grant that was never answered the expiry is known only to lie in a span.
type issue struct {
	Last     run.Fence // no fence up to this one may be granted
	Fence    run.Fence // of the last grant; 0 when there was none
	Holder   string
	Boot     int64
	Released bool
	From, To time.Duration // when it expires, between these
	Runs     [runsOfKey]row

	In   int64         // the boot that it is now
	Now  time.Duration // it is not earlier than that
	Mark time.Duration // nor was it in any boot that was
}

type row struct {
	Rev     int64 // 0: there is no such run
	Live    bool
	Value   string
	Asked   string // why it shall be canceled
	Cancels int    // how often it was
}

var storeModel = lineartest.Model[issue, asked, answered]{
	Init: func(string) issue { return issue{} },
	Step: func(h *storeHistory, s issue, op *storeOperation) []issue {
		switch {
		case op.Boot < s.In && op.Unknown: // its boot is over and nothing of it was seen
			return []issue{s}
		case op.Boot != s.In: // leases of other boots are dead, but time goes on from its mark
			s.In, s.Now = op.Boot, s.Mark
		}
		c := instant{from: time.Duration(op.From[0] + h.Ahead[op.Boot]), to: time.Duration(op.To[0] + h.Ahead[op.Boot])}
		if op.Unknown {
			return append(s.perhaps(c, op.In), s)
		}
		if s, ok := s.done(c, op.In, op.Out); ok {
			return []issue{s}
		}
		return nil
	},
}

// instant is between which times an operation was done.
type instant struct{ from, to time.Duration }

// at lets an operation be done at a known time; false when it cannot have been then.
func (s *issue) at(c instant, now time.Duration) bool {
	if now < s.Now || now < c.from || now > c.to {
		return false
	}
	s.Now = now
	return true
}

// earliest is the first time at which an operation can be done. To be early excludes nothing later.
func (s *issue) earliest(c instant) bool { return s.at(c, max(s.Now, c.from)) }

// after is earliest, but not before a time.
func (s *issue) after(c instant, t time.Duration) bool { return s.at(c, max(s.Now, c.from, t)) }

// wrote says that an operation was not only a refusal: the store keeps the time of it.
func (s *issue) wrote() bool {
	s.Mark = max(s.Mark, s.Now)
	return true
}

// done is what an answer means. Nothing of a state may be looked at after false.
func (s issue) done(c instant, in asked, out answered) (issue, bool) {
	var ok bool
	switch in.Do {
	case "acquire":
		ok = s.acquired(c, in, out)
	case "claim":
		ok = s.claimed(c, in, out)
	case "renew":
		ok = s.renewed(c, in, out)
	case "release", "save", "take", "session":
		ok = s.written(c, in, out)
	case "request":
		r := &s.Runs[in.Run]
		if r.Rev == 0 {
			ok = out.Err == "not found"
			break
		}
		if ok = out.Err == "" && s.earliest(c); ok && r.Asked == "" {
			r.Asked = in.Value
			s.wrote()
		}
	default:
		ok = s.shown(in, out)
	}
	return s, ok
}

// pin says which the present grant is; false when it cannot be that one.
func (s *issue) pin(holder string, fence run.Fence, expires time.Duration) bool {
	if s.Fence == 0 || s.Holder != holder || s.Fence != noFence && s.Fence != fence || expires < s.From || expires > s.To {
		return false
	}
	if s.Fence == noFence {
		if fence <= s.Last {
			return false
		}
		s.Fence, s.Last = fence, fence
	}
	s.From, s.To = expires, expires
	return true
}

// live reports whether there is a grant that can still be in force.
func (s *issue) live() bool { return s.Fence != 0 && !s.Released && s.Boot == s.In }

// holds reports whether a lease that is shown is the present grant, expired or not.
func (s *issue) holds(in asked) bool { return s.live() && s.Fence == in.Fence && s.Holder == in.Holder }

// inForce lets an operation be done under the lease that is shown, before it expires.
func (s *issue) inForce(c instant, in asked) bool {
	if !s.holds(in) || !s.earliest(c) || s.To <= s.Now {
		return false
	}
	s.From = max(s.From, s.Now+1)
	return true
}

// fenced lets an operation be refused: the lease that is shown is another one, or it has expired.
func (s *issue) fenced(c instant, in asked) bool {
	if !s.holds(in) {
		return s.earliest(c)
	}
	if !s.after(c, s.From) {
		return false
	}
	s.To = min(s.To, c.to)
	return true
}

// give is a new grant at s.Now.
func (s *issue) give(in asked, fence run.Fence, from, to time.Duration) {
	s.Fence, s.Holder, s.Boot, s.Released, s.From, s.To = fence, in.Holder, s.In, false, from+in.TTL, to+in.TTL
	if fence != noFence {
		s.Last = fence
	}
}

// mayGive reports from when on a new grant is possible; false when it never is.
func (s *issue) mayGive(in asked) (from time.Duration, ok bool) {
	switch {
	case !s.live(), in.Dead != 0 && (in.Dead == s.Fence || s.Fence == noFence && in.Dead > s.Last):
		return 0, true
	case s.Holder == in.Holder:
		return s.From, true
	}
	return s.From + run.LockDelay, true
}

func (s *issue) acquired(c instant, in asked, out answered) bool {
	switch out.Err {
	case "":
		if out.Holder != in.Holder || out.Expires <= out.Granted {
			return false
		}
		now := out.Expires - in.TTL
		if s.holds(asked{Holder: in.Holder, Fence: out.Fence}) { // it had it, and has it longer now
			if s.To <= now || in.Dead == s.Fence || !s.at(c, now) {
				return false
			}
			s.From, s.To = out.Expires, out.Expires
			return s.wrote()
		}
		from, _ := s.mayGive(in)
		last := s.Last
		if s.Fence == noFence {
			last++ // a fence was used that nobody was told
		}
		if now != out.Granted || now < from || out.Fence <= last || !s.at(c, now) {
			return false
		}
		s.give(in, out.Fence, now, now)
		return s.wrote()
	case "held":
		return s.live() && s.Holder != in.Holder && s.pin(out.Holder, out.Fence, out.Expires) && in.Dead != s.Fence &&
			out.Free == s.To+run.LockDelay && s.earliest(c) && s.Now < out.Free
	}
	return false
}

func (s *issue) claimed(c instant, in asked, out answered) bool {
	r := &s.Runs[in.Run]
	there := r.Rev != 0 || s.otherLive(in.Run)
	switch out.Err {
	case "duplicate": // it could have had the lease, and does not
		from, _ := s.mayGive(in)
		if s.live() && s.Holder == in.Holder {
			from = 0
		}
		return there && s.after(c, from)
	case "":
		if there || out.Rev != 1 || !s.acquired(c, in, out) {
			return false
		}
		s.Runs[in.Run] = row{Rev: 1, Live: true}
		return true
	}
	return s.acquired(c, in, out)
}

func (s *issue) otherLive(n int) bool {
	for i, r := range s.Runs {
		if i != n && r.Live {
			return true
		}
	}
	return false
}

func (s *issue) renewed(c instant, in asked, out answered) bool {
	if out.Err == "fenced" {
		return s.fenced(c, in)
	}
	now := out.Expires - in.TTL
	if out.Err != "" || out.Fence != in.Fence || !s.holds(in) || s.To <= now || !s.at(c, now) {
		return false
	}
	s.From, s.To = out.Expires, out.Expires
	return s.wrote()
}

// written judges the writes under a lease that do not tell when they were done.
func (s *issue) written(c instant, in asked, out answered) bool {
	if out.Err == "fenced" {
		return s.fenced(c, in)
	}
	if !s.inForce(c, in) {
		return false
	}
	r := &s.Runs[in.Run]
	switch {
	case in.Do == "release":
		s.Released = true
		return out.Err == "" && s.wrote()
	case r.Rev == 0:
		return out.Err == "not found"
	case in.Do == "session":
		return out.Err == "" && s.wrote()
	case r.Rev != in.Rev:
		return out.Err == "stale"
	case in.Live && s.otherLive(in.Run):
		return out.Err == "duplicate"
	}
	s.save(in)
	return out.Err == "" && out.Rev == r.Rev && s.Runs[in.Run].Cancels <= 1 && s.wrote()
}

func (s *issue) save(in asked) {
	r := &s.Runs[in.Run]
	r.Rev, r.Live, r.Value = r.Rev+1, in.Live, in.Value
	if in.Do == "take" {
		r.Cancels++
		r.Value = r.Asked // what is written as the reason must be what was asked for first
	}
}

// shown judges what only reads.
func (s *issue) shown(in asked, out answered) bool {
	r := s.Runs[in.Run]
	switch in.Do {
	case "lease":
		if there := s.Fence != 0 && !s.Released; !there || !out.Held {
			return there == out.Held
		}
		return s.pin(out.Holder, out.Fence, out.Expires)
	case "load":
		if r.Rev == 0 {
			return out.Err == "not found"
		}
		return out.Err == "" && out.Rev == r.Rev && out.Live == r.Live && out.Value == r.Value
	case "cancel":
		if r.Rev == 0 {
			return out.Err == "not found"
		}
		return out.Err == "" && out.Held == (r.Asked != "") && out.Value == r.Asked
	case "history": // each save left its one event, with it or not at all
		if r.Rev == 0 {
			return out.Err == "not found"
		}
		return out.Err == "" && out.Rev == r.Rev && out.Cancels == r.Cancels
	}
	return false
}

// perhaps is every state that an operation can have led to, of which nobody knows whether it was done.
func (s issue) perhaps(c instant, in asked) []issue {
	var all []issue
	add := func(s issue, ok bool) {
		if ok {
			s.wrote()
			all = append(all, s)
		}
	}
	switch in.Do {
	case "acquire", "claim":
		for _, s := range s.mayHave(c, in) {
			if in.Do == "claim" {
				if s.Runs[in.Run].Rev != 0 || s.otherLive(in.Run) {
					continue
				}
				s.Runs[in.Run] = row{Rev: 1, Live: true}
			}
			add(s, true)
		}
	case "renew":
		ok := s.inForce(c, in)
		s.From, s.To = s.Now+in.TTL, c.to+in.TTL
		add(s, ok)
	case "release", "save", "take":
		ok := s.inForce(c, in)
		if r := s.Runs[in.Run]; in.Do == "release" {
			s.Released = true
		} else if ok = ok && r.Rev != 0 && r.Rev == in.Rev && !(in.Live && s.otherLive(in.Run)); ok {
			s.save(in)
		}
		add(s, ok)
	case "request":
		r := &s.Runs[in.Run]
		ok := r.Rev != 0 && r.Asked == ""
		r.Asked = in.Value
		add(s, ok)
	}
	return all
}

// mayHave is what an acquire can have led to that nobody was told of.
func (s issue) mayHave(c instant, in asked) []issue {
	var all []issue
	if s.live() && s.Holder == in.Holder { // renewed
		n := s
		if n.earliest(c) && n.To > n.Now {
			n.From, n.To = n.Now+in.TTL, c.to+in.TTL
			all = append(all, n)
		}
	}
	if from, ok := s.mayGive(in); ok && s.after(c, from) {
		if s.Fence == noFence {
			s.Last++
		}
		s.give(in, noFence, s.Now, c.to)
		all = append(all, s)
	}
	return all
}

// leftOpen reports whether an answer leaves open what has happened: a word that is none of the contract's.
func leftOpen(out answered) bool { return out.Err == "unknown" }
