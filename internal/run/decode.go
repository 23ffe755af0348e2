package run

import (
	"encoding/json"
	"errors"
	"fmt"
)

// ErrUnknownEvent means that no event of this program has the kind.
var ErrUnknownEvent = errors.New("unknown kind of event")

// decoders holds one entry per event type, by the kind the store keeps.
var decoders = map[string]func([]byte) (Event, error){
	Claimed{}.Kind():        decode[Claimed],
	Refused{}.Kind():        decode[Refused],
	TakenOver{}.Kind():      decode[TakenOver],
	Reconfigured{}.Kind():   decode[Reconfigured],
	SessionStarted{}.Kind(): decode[SessionStarted],
	SessionStopped{}.Kind(): decode[SessionStopped],
	Crashed{}.Kind():        decode[Crashed],
	Delivered{}.Kind():      decode[Delivered],
	Failed{}.Kind():         decode[Failed],
	Verified{}.Kind():       decode[Verified],
	BaseMoved{}.Kind():      decode[BaseMoved],
	Settled{}.Kind():        decode[Settled],
	Renewed{}.Kind():        decode[Renewed],
	ParkedBecause{}.Kind():  decode[ParkedBecause],
	CanceledBy{}.Kind():     decode[CanceledBy],
	Accepted{}.Kind():       decode[Accepted],
	Retried{}.Kind():        decode[Retried],
}

// DecodeEvent turns a stored event back into its value: kind as Event.Kind gave it, data as
// encoding/json wrote it. ErrUnknownEvent for a kind that is not one of this program's.
func DecodeEvent(kind string, data []byte) (Event, error) {
	d, ok := decoders[kind]
	if !ok {
		return nil, fmt.Errorf("%w: %q", ErrUnknownEvent, kind)
	}
	return d(data)
}

func decode[E Event](data []byte) (Event, error) {
	var e E
	if err := json.Unmarshal(data, &e); err != nil {
		return nil, fmt.Errorf("event %q: %w", e.Kind(), err)
	}
	return e, nil
}
