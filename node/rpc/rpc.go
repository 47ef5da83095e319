// Package rpc is a node far away: the protocol of api/proto between the service and forkd, its daemon on each host.
//
// NewServer serves a node.Host, NewClient is one. Both ends prove by certificates of one authority who they are (TLS
// and ClientTLS, over HTTP/2): a node is who its certificate names, and only certificates made for the service may tell a
// node what to do. Errors keep their kinds on the way.
//
// Output is sent as fast as its reader takes it. Input is sent as far as the other side has granted (Window), so that a
// command which doesn't read can't hold up the signals that come after.
package rpc

import (
	"context"
	"errors"
	"io"

	"connectrpc.com/connect"

	pb "agentrun.dev/api/gen/agentrun/node/v1"
	"agentrun.dev/errs"
)

// Limits of the protocol.
const (
	Window     = 256 << 10 // bytes of input that a node holds for one command
	chunk      = 32 << 10  // bytes in one message of a stream
	maxMessage = 8 << 20   // bytes in any message
)

// codes are Connect's words for the kinds, for whoever speaks the protocol without knowing Problem.
var codes = map[errs.Kind]connect.Code{
	errs.Other: connect.CodeInternal, errs.Invalid: connect.CodeInvalidArgument, errs.NotFound: connect.CodeNotFound,
	errs.Exists: connect.CodeAlreadyExists, errs.NotEmpty: connect.CodeFailedPrecondition, errs.Conflict: connect.CodeAborted,
	errs.Precondition: connect.CodeFailedPrecondition, errs.Denied: connect.CodePermissionDenied, errs.Unauthorized: connect.CodeUnauthenticated,
	errs.TooLarge: connect.CodeOutOfRange, errs.Limit: connect.CodeResourceExhausted, errs.NoSpace: connect.CodeResourceExhausted,
	errs.Corrupt: connect.CodeDataLoss, errs.Unavailable: connect.CodeUnavailable, errs.Unsupported: connect.CodeUnimplemented,
	errs.Canceled: connect.CodeCanceled,
}

// toWire makes an error of the protocol.
func toWire(err error) error {
	if err == nil {
		return nil
	}
	p := &pb.Problem{Kind: errs.KindOf(err).String(), Hint: errs.HintOf(err), Cause: err.Error()}
	var e *errs.Error
	if errors.As(err, &e) {
		p.Op, p.Thing = e.Op, e.Thing
		if e.Err != nil {
			p.Cause = e.Err.Error()
		}
		if error(e) != err { // it is wrapped, or one of several: the words of all
			p.Op, p.Thing, p.Cause = "", "", err.Error()
		}
	}
	out := connect.NewError(codes[errs.KindOf(err)], errors.New(err.Error()))
	if d, detailErr := connect.NewErrorDetail(p); detailErr == nil {
		out.AddDetail(d)
	}
	return out
}

// fromWire makes an error of ours. What has no Problem didn't come from a node's own hand: the connection, or something else
// at its address.
func fromWire(ctx context.Context, op, thing string, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return errs.New(errs.Canceled, op, thing, context.Cause(ctx))
	}
	var ce *connect.Error
	if errors.As(err, &ce) {
		for _, d := range ce.Details() {
			v, valueErr := d.Value()
			if p, ok := v.(*pb.Problem); ok && valueErr == nil {
				e := &errs.Error{Op: p.Op, Thing: p.Thing, Kind: errs.ParseKind(p.Kind), Hint: p.Hint}
				if p.Cause != "" {
					e.Err = errors.New(p.Cause)
				}
				return e
			}
		}
		err = errors.New(ce.Message())
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return errs.New(errs.Unavailable, op, thing, err)
}
