// Package broker is the server's side of the sockets. It reads one request of a connection, knows
// who asks, has it handled, and answers once. Reading, waiting and sending have budgets of their
// own; handling has none: what has begun is finished, and its outcome is told.
package broker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"interlock/internal/wire"
)

// Budgets are how long a client is waited for, and how long it waits.
type Budgets struct {
	Read  time.Duration // until the whole request is there
	Queue time.Duration // until it begins to be handled
	Send  time.Duration // until the reply is taken; counted from when there is one
}

// DefaultBudgets are what a client of this machine never needs.
var DefaultBudgets = Budgets{Read: time.Second, Queue: time.Second, Send: time.Second}

// connectionsMost is how many connections are served at once. Whoever comes then waits in the line
// of the kernel, and is refused there when that is full.
const connectionsMost = 1024

// Peer is the process at the other end, as the kernel knows it. It may have ended since.
type Peer struct {
	PID int // in the namespace of this process; 0 when it cannot be seen from here
	UID int
}

// Handler does what a request asks for and returns the whole reply. ctx does not end before it
// returns. queued ends when the request has waited long enough: what has to wait again, for the
// writer of a store, waits under it, and is answered by BROKER_BUSY if it did not begin.
type Handler func(ctx, queued context.Context, p Peer, r wire.Request) wire.Reply

// Options say where and how a server serves.
type Options struct {
	Path    string // of the socket; its directory is made, for this user alone
	Budgets Budgets
	Slots   int // how many requests are handled at once
	Handle  Handler
	// Admit returns an error for a peer that may not ask here; it is told to it.
	Admit func(Peer) error
	// Fault is told what went wrong on this side. It may be nil.
	Fault func(error)
}

// Server serves one socket.
type Server struct {
	opts   Options
	place  *place
	slots  chan struct{}
	conns  chan struct{}
	served sync.WaitGroup
	ended  chan struct{}

	mu   sync.Mutex
	open map[*net.UnixConn]bool // connections that nothing is handled for: they may be cut at any time
	over bool
}

// Serve makes the socket and serves it until Close. A socket that a dead server has left is
// replaced; one that is served, or that this package did not make, is a *TakenError.
func Serve(o Options) (*Server, error) {
	if o.Slots < 1 {
		return nil, errors.New("a broker without a slot handles nothing")
	}
	at, err := takePlace(o.Path)
	if err != nil {
		return nil, err
	}
	s := &Server{
		opts: o, place: at, slots: make(chan struct{}, o.Slots), conns: make(chan struct{}, connectionsMost),
		open: map[*net.UnixConn]bool{}, ended: make(chan struct{}),
	}
	go s.accept()
	return s, nil
}

// Close takes no further request, waits for what is being handled, and removes the socket. When
// ctx ends first it returns its error, and what is handled goes on.
func (s *Server) Close(ctx context.Context) error {
	s.mu.Lock()
	s.over = true
	_ = s.place.listener.Close()
	for c := range s.open {
		_ = c.SetDeadline(time.Now())
	}
	s.mu.Unlock()
	done := make(chan struct{})
	go func() {
		<-s.ended
		s.served.Wait()
		close(done)
	}()
	select {
	case <-done:
		return s.place.leave()
	case <-ctx.Done():
		return fmt.Errorf("requests are still being handled: %w", ctx.Err())
	}
}

func (s *Server) accept() {
	defer close(s.ended)
	for {
		s.conns <- struct{}{}
		c, err := s.place.listener.AcceptUnix()
		switch {
		case err == nil:
			s.served.Add(1)
			go s.serve(c)
			continue
		case errors.Is(err, net.ErrClosed):
			return
		case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
			time.Sleep(10 * time.Millisecond) // the others give some back
		}
		<-s.conns
		s.fault(fmt.Errorf("a connection could not be taken: %w", err))
	}
}

func (s *Server) fault(err error) {
	if s.opts.Fault != nil {
		s.opts.Fault(err)
	}
}

// serve is the life of one connection.
func (s *Server) serve(c *net.UnixConn) {
	defer func() {
		_ = c.Close()
		<-s.conns
		s.served.Done()
	}()
	reply, ok := s.reply(c)
	if !ok {
		return
	}
	frame, err := wire.Encode(reply, wire.MaxReply)
	if err != nil { // a fault of the handler; what it did is done
		s.fault(fmt.Errorf("the reply to request %q cannot be told: %w", reply.ID, err))
		return
	}
	// A fresh budget: however long the handling took, its outcome is told.
	_ = c.SetWriteDeadline(time.Now().Add(s.opts.Budgets.Send))
	if _, err := c.Write(frame); err != nil {
		s.fault(fmt.Errorf("the reply to request %q was not taken: %w", reply.ID, err))
	}
}

// reply reads the request and has it answered; ok is false when there is nobody to answer.
func (s *Server) reply(c *net.UnixConn) (r wire.Reply, ok bool) {
	peer, perr := peerOf(c)
	if perr == nil && s.opts.Admit != nil {
		perr = s.opts.Admit(peer)
	}
	frame, err := s.read(c)
	if err != nil {
		return wire.Reply{}, false // slow, silent or gone: it costs only itself
	}
	req, err := wire.DecodeRequest(frame)
	switch {
	case err != nil:
		return wire.Refuse(req.ID, wire.BadRequest, err.Error()), true
	case perr != nil:
		return wire.Refuse(req.ID, wire.WrongCaller, perr.Error()), true
	}
	return s.handle(peer, req)
}

// read returns all that the client sends, but no more than a request may have and one byte. It
// reads to the end, for what follows a request makes it none.
func (s *Server) read(c *net.UnixConn) ([]byte, error) {
	if !s.reading(c, true) {
		return nil, net.ErrClosed
	}
	defer s.reading(c, false)
	if err := c.SetReadDeadline(time.Now().Add(s.opts.Budgets.Read)); err != nil {
		return nil, err
	}
	frame, err := io.ReadAll(io.LimitReader(c, wire.MaxRequest+1))
	if err != nil {
		return nil, err
	}
	_, err = io.Copy(io.Discard, c) // else the kernel takes our reply back with what was not read
	return frame, err
}

// reading notes whether a connection is only being read, so that Close may cut it off. It reports
// whether it may be read at all.
func (s *Server) reading(c *net.UnixConn, is bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if is && !s.over {
		s.open[c] = true
		return true
	}
	delete(s.open, c)
	return false
}

// handle waits for a slot and then has the request handled, however long that takes. Exactly one of
// the two happens: it gets a slot, or it is withdrawn.
func (s *Server) handle(p Peer, r wire.Request) (reply wire.Reply, ok bool) {
	queued, cancel := context.WithTimeout(context.Background(), s.opts.Budgets.Queue)
	defer cancel()
	select {
	case s.slots <- struct{}{}:
	case <-queued.Done():
		return wire.Refuse(r.ID, wire.Busy, fmt.Sprintf("this request waited for %v and was withdrawn", s.opts.Budgets.Queue)), true
	}
	defer func() {
		<-s.slots
		if fault := recover(); fault != nil {
			// Whether it was done is not known, so nothing is said: the client takes that for no answer.
			s.fault(fmt.Errorf("a fault while request %q (%q) was handled: %v", r.ID, r.Op, fault))
			reply, ok = wire.Reply{}, false
		}
	}()
	reply = s.opts.Handle(context.Background(), queued, p, r)
	reply.Version, reply.ID = wire.Version, r.ID
	return reply, true
}

// peerOf asks the kernel who made the connection.
func peerOf(c *net.UnixConn) (Peer, error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return Peer{}, err
	}
	var cred *syscall.Ucred
	var cerr error
	if err := raw.Control(func(fd uintptr) {
		cred, cerr = syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED)
	}); err != nil {
		return Peer{}, err
	}
	if cerr != nil {
		return Peer{}, os.NewSyscallError("getsockopt", cerr)
	}
	return Peer{PID: int(cred.Pid), UID: int(cred.Uid)}, nil
}
