package wire

import (
	"context"
	"errors"
	"syscall"
	"time"
)

// maxPath is how long the path of a Unix socket may be.
const maxPath = 107

// Call sends one request to the broker's socket and returns its reply. It tries once. What is not
// one whole reply to this very request is a *FrameError; a refusal of the broker is a reply.
//
// The deadline of ctx ends the exchange, whatever the broker does meanwhile; without one the call
// takes no longer than a minute. A ctx that is canceled otherwise is noticed before each step only:
// this is for a program that has one thing to do, and does it with the system's own calls, because
// package net alone would make it slower by a quarter.
func Call(ctx context.Context, socket string, r Request) (Reply, error) {
	frame, err := Encode(r, MaxRequest)
	if err != nil {
		return Reply{}, err
	}
	deadline, ok := ctx.Deadline()
	if !ok {
		deadline = time.Now().Add(time.Minute)
	}
	if len(socket) > maxPath {
		return Reply{}, broken(Socket, nil, syscall.ENAMETOOLONG, "the path of the socket is too long")
	}
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return Reply{}, broken(Socket, nil, err, "no socket can be made")
	}
	defer syscall.Close(fd)
	c := conn{ctx: ctx, fd: fd, deadline: deadline}
	got, err := c.exchange(socket, frame)
	if err != nil {
		return Reply{}, err
	}
	return DecodeReply(got, r.ID)
}

// conn is one connection, with the deadline of all that is done on it.
type conn struct {
	ctx      context.Context
	fd       int
	deadline time.Time
}

// exchange sends a frame, says that nothing else comes, and reads what the peer says until it
// closes: only then is it known that nothing follows the reply.
func (c conn) exchange(socket string, frame []byte) ([]byte, error) {
	if err := c.try(syscall.SO_SNDTIMEO, func() error { return syscall.Connect(c.fd, &syscall.SockaddrUnix{Name: socket}) }); err != nil {
		return nil, c.failed(nil, err, "the broker's socket cannot be reached")
	}
	for sent := 0; sent < len(frame); {
		var n int
		err := c.try(syscall.SO_SNDTIMEO, func() (err error) {
			n, err = syscall.SendmsgN(c.fd, frame[sent:], nil, nil, syscall.MSG_NOSIGNAL)
			return err
		})
		if errors.Is(err, syscall.EPIPE) {
			break // the peer may have answered without reading all of it: that it is busy, for one
		}
		if err != nil {
			return nil, c.failed(nil, err, "the request could not be sent whole")
		}
		sent += n
	}
	if err := syscall.Shutdown(c.fd, syscall.SHUT_WR); err != nil && !errors.Is(err, syscall.ENOTCONN) {
		return nil, c.failed(nil, err, "the request could not be ended")
	}
	var got []byte
	room := make([]byte, 4096)
	for len(got) <= MaxReply {
		var n int
		err := c.try(syscall.SO_RCVTIMEO, func() (err error) {
			n, err = syscall.Read(c.fd, room)
			return err
		})
		if err != nil {
			return nil, c.failed(got, err, "the reply did not come to its end")
		}
		if n == 0 {
			break
		}
		got = append(got, room[:n]...)
	}
	return got, nil
}

// errLate is a deadline that has passed between two calls.
var errLate = errors.New("the deadline has passed")

// try makes one call of the system with the time that is left; an interruption by a signal, which
// Go sends to itself, begins it again with the time that is left then.
func (c conn) try(option int, call func() error) error {
	for {
		left := time.Until(c.deadline)
		if err := c.ctx.Err(); err != nil || left <= 0 {
			return errors.Join(errLate, err)
		}
		tv := syscall.NsecToTimeval(max(left, time.Microsecond).Nanoseconds())
		if err := syscall.SetsockoptTimeval(c.fd, syscall.SOL_SOCKET, option, &tv); err != nil {
			return err
		}
		if err := call(); !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

func (c conn) failed(got []byte, err error, why string) error {
	if errors.Is(err, errLate) || errors.Is(err, syscall.EAGAIN) {
		return broken(TimedOut, got, err, why+" in time")
	}
	return broken(Socket, got, err, why)
}
