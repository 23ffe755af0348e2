package scriptmodel

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// requestMost is the most that a request may have. An agent sends the whole conversation each time.
const requestMost = 32 << 20

// headerTotal bounds how long a client may take to say what it wants.
const headerTotal = 10 * time.Second

// Server serves a model on loopback. It is safe for use by many goroutines.
type Server struct {
	// Key is what a client has to show, as x-api-key or as a bearer: a made-up one, for this server
	// alone. Nobody else on the machine can use it, and no key of anybody is sent here.
	Key string

	model Model
	http  *http.Server
	addr  string
	calls atomic.Int64 // counts the calls that were named here
	done  chan struct{}

	mu   sync.Mutex
	seen []Seen
}

// Seen is a request that came, whether it was answered or not.
type Seen struct {
	Path string
	Key  bool // it showed the key
	Request
}

// Start serves a model at a port of 127.0.0.1 that the kernel chooses. Close ends it.
func Start(model Model) (*Server, error) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen on loopback for the scripted model: %w", err)
	}
	s := &Server{Key: "scripted-" + rand.Text(), model: model, addr: l.Addr().String(), done: make(chan struct{})}
	s.http = &http.Server{Handler: http.HandlerFunc(s.serve), ReadHeaderTimeout: headerTotal}
	go func() {
		defer close(s.done)
		_ = s.http.Serve(l) // ends with ErrServerClosed; a listener that broke shows as a refused connection
	}()
	return s, nil
}

// URL is the address of the server, without a path. Anthropic's clients take it as it is, OpenAI's
// want "/v1" behind it.
func (s *Server) URL() string { return "http://" + s.addr }

// Close ends the server and every connection.
func (s *Server) Close() error {
	err := s.http.Close()
	<-s.done
	return err
}

// Seen returns the requests that came so far.
func (s *Server) Seen() []Seen {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.seen)
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	api, known := apiOf(r.URL.Path)
	seen := Seen{Path: r.URL.Path, Key: s.shows(r)}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, requestMost))
	var req Request
	var stream bool
	if err == nil && known {
		req, stream, err = parse(api, body)
		seen.Request = req
	}
	s.mu.Lock()
	s.seen = append(s.seen, seen)
	s.mu.Unlock()
	switch tooLarge := (*http.MaxBytesError)(nil); {
	case !seen.Key:
		fail(w, api, Failure{Status: http.StatusUnauthorized, Kind: "authentication_error", Text: "this is not the key of this scripted model"})
	case errors.As(err, &tooLarge):
		fail(w, api, Failure{Status: http.StatusRequestEntityTooLarge, Kind: "request_too_large", Text: err.Error()})
	case err != nil:
		fail(w, api, Failure{Status: http.StatusBadRequest, Kind: "invalid_request_error", Text: err.Error()})
	case strings.HasSuffix(r.URL.Path, "/messages/count_tokens"):
		_ = json.NewEncoder(w).Encode(map[string]int{"input_tokens": len(body) / 4}) // about what a token is
	case !known || r.Method != http.MethodPost:
		fail(w, api, Failure{Status: http.StatusNotFound, Kind: "not_found_error", Text: "the scripted model does not serve " + r.Method + " " + r.URL.Path})
	default:
		s.answer(w, r, req, stream)
	}
}

func (s *Server) shows(r *http.Request) bool {
	bearer := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	is := func(key string) bool { return subtle.ConstantTimeCompare([]byte(key), []byte(s.Key)) == 1 }
	return is(r.Header.Get("X-Api-Key")) || is(bearer)
}

func apiOf(path string) (API, bool) {
	for _, api := range []API{Messages, Responses} {
		if strings.HasSuffix(path, "/"+string(api)) {
			return api, true
		}
	}
	return Messages, false
}

func parse(api API, body []byte) (Request, bool, error) {
	if api == Responses {
		return parseResponses(body)
	}
	return parseMessages(body)
}

// answer asks the model and sends what it says.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, req Request, stream bool) {
	a := s.model(req)
	if a.Delay > 0 {
		select {
		case <-time.After(a.Delay):
		case <-r.Context().Done():
			return
		}
	}
	if a.Fail != nil {
		fail(w, req.API, *a.Fail)
		return
	}
	a.Calls = slices.Clone(a.Calls)
	for i := range a.Calls {
		if a.Calls[i].ID == "" {
			a.Calls[i].ID = fmt.Sprintf("call_%d", s.calls.Add(1))
		}
	}
	body, err := render(req, a, stream)
	if err != nil { // a fault of the script
		fail(w, req.API, Failure{Status: http.StatusInternalServerError, Kind: "api_error", Text: err.Error()})
		return
	}
	kind := "application/json"
	if stream {
		kind = "text/event-stream"
	}
	w.Header().Set("Content-Type", kind)
	if a.Cut > 0 && a.Cut < len(body) {
		_, _ = w.Write(body[:a.Cut])
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler) // net/http's way to end a connection in mid-answer
	}
	_, _ = w.Write(body)
}

func render(req Request, a Answer, stream bool) ([]byte, error) {
	if req.API == Responses {
		return renderResponses(req, a, stream)
	}
	return renderMessages(req, a, stream)
}

// fail answers with an error in the form of the protocol.
func fail(w http.ResponseWriter, api API, f Failure) {
	w.Header().Set("Content-Type", "application/json")
	if f.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(f.RetryAfter.Seconds())))
	}
	w.WriteHeader(f.Status)
	inner := map[string]any{"type": f.Kind, "message": f.Text}
	outer := map[string]any{"error": inner}
	if api == Messages {
		outer["type"] = "error"
	} else {
		inner["code"] = f.Kind
	}
	_ = json.NewEncoder(w).Encode(outer)
}
