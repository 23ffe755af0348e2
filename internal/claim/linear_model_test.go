package claim_test

import (
	"strings"

	"interlock/internal/lineartest"
	"interlock/internal/run"
)

// wanted is what a process wants of the claim of an issue.
type wanted struct {
	Do           string `json:"do"`
	Nonce        string `json:"nonce,omitempty"`
	Installation int    `json:"installation"` // which clock it goes by, too
	Hash         string `json:"hash,omitempty"`
	Generation   int64  `json:"generation,omitempty"` // that it knows of
}

// got is what came of it: the claim that it made or saw.
type got struct {
	Err          string `json:"err,omitempty"`
	Nonce        string `json:"nonce,omitempty"`
	Installation string `json:"installation,omitempty"`
	Hash         string `json:"hash,omitempty"`
	Generation   int64  `json:"generation,omitempty"`
	Released     bool   `json:"released,omitempty"`
	Over         bool   `json:"over,omitempty"` // it was taken over
}

type (
	claimHistory   = lineartest.History[wanted, got]
	claimOperation = lineartest.Operation[wanted, got]
)

// chain is what there is to know of the claim of one issue. Hash is "" when nobody was told it.
type chain struct {
	Generation int64 // 0: there is no claim
	Hash       string
	Nonce      string
	Released   bool
	Process    int   // that wrote the last commit
	Since      int64 // the generation since which it was that process alone
	Given      string
	// Boot and Moved are when the last commit was begun, on the clocks of all installations.
	Boot  int64
	Moved [lineartest.Clocks]int64
}

var claimModel = lineartest.Model[chain, wanted, got]{
	Init: func(string) chain { return chain{} },
	Step: func(_ *claimHistory, s chain, op *claimOperation) []chain {
		if op.Unknown {
			if next, ok := s.write(op); ok {
				return []chain{next, s}
			}
			return []chain{s}
		}
		if s, ok := s.answered(op); ok {
			return []chain{s}
		}
		return nil
	},
}

// mine reports whether the claim carries the nonce and is held. Nonces are of one installation.
func (s chain) mine(in wanted) bool {
	return s.Generation > 0 && s.Nonce == in.Nonce && !s.Released
}

// given is how a nonce is kept that was given back.
func given(nonce string) string { return "/" + nonce + "/" }

// abandoned reports whether the claim can have been seen unmoved for long enough by the clock of who
// asks: a clock sees nothing across a reboot.
func (s chain) abandoned(op *claimOperation) bool {
	i := op.In.Installation
	moved := s.Moved[i]
	if s.Boot != op.Boot {
		moved = 0
	}
	return op.To[i]-moved >= int64(run.ClaimAbandoned)
}

// write is what an operation that is allowed to write leaves; false when it is not.
func (s chain) write(op *claimOperation) (chain, bool) {
	in, ok := op.In, false
	switch in.Do {
	case "take":
		ok = s.Generation == 0 || s.Released || s.mine(in) || s.abandoned(op)
	case "renew":
		ok = s.mine(in) && s.Since <= in.Generation
	case "adopt", "release":
		ok = s.mine(in)
	case "break":
		ok = s.Generation == in.Generation && (s.Hash == in.Hash || s.Hash == "") && !s.Released
	}
	if !ok {
		return s, false
	}
	s.Generation++
	s.Hash, s.Nonce, s.Released = "", in.Nonce, in.Do == "release" || in.Do == "break"
	if s.Released && !strings.Contains(s.Given, given(in.Nonce)) {
		s.Given += given(in.Nonce)
	}
	if s.Process != op.Process {
		s.Process, s.Since = op.Process, s.Generation
	}
	s.Boot, s.Moved = op.Boot, op.From
	return s, true
}

// is makes sure that what was seen is what is there.
func (s *chain) is(o got) bool {
	if s.Generation != o.Generation || s.Generation > 0 && (s.Nonce != o.Nonce || s.Released != o.Released) {
		return false
	}
	if s.Hash == "" {
		s.Hash = o.Hash
	}
	return s.Hash == o.Hash
}

// answered is what an answer means.
func (s chain) answered(op *claimOperation) (chain, bool) {
	in, out := op.In, op.Out
	switch out.Err {
	case "":
		if in.Do == "read" {
			return s, s.is(out)
		}
		if in.Do == "release" && !s.mine(in) { // given back before, also if others have had it since
			return s, strings.Contains(s.Given, given(in.Nonce))
		}
		if out.Over && (s.Generation == 0 || s.Released || s.mine(in)) { // there was nobody to take it from
			return s, false
		}
		next, ok := s.write(op)
		if in.Do == "release" {
			return next, ok // it is not told which commit that was
		}
		return next, ok && next.is(out)
	case "held": // by the very claim that is named; a break wants the one that was looked at, and it has moved
		if in.Do == "break" {
			return s, s.Generation != in.Generation && s.is(out)
		}
		return s, !s.Released && !s.mine(in) && s.is(out)
	case "lost":
		return s, !s.mine(in) || in.Do == "renew" && s.Since > in.Generation
	case "busy": // it lost every race: nothing was moved
		return s, true
	}
	return s, false
}
