// Package wire is the protocol between the host and the agent in a VM: frames of many streams over one connection.
//
// The host opens a stream for each call; its request goes with the opening frame. On a stream both sides then send messages (JSON), data on
// numbered channels (0 is input, 1 output, 2 errors) and the end of a channel; the host may cancel it, and the guest alone ends it, with
// success or an error. So both sides know at any time which streams there are: a frame for any other breaks the connection.
//
// What a side sends on a stream is bounded by credit, which its peer returns as it takes frames up: a slow reader holds up its own stream
// and no other, and a peer can't make one hold more than Window bytes per stream. Neither side trusts the other: every length, number and
// order is checked before anything is allocated, and what doesn't fit ends the connection with errs.Corrupt.
//
// A frame is a header of 12 bytes (type, channel, two zeros, stream and length of the payload, both 32 bits, little-endian) and its payload. Both
// sides begin with eight bytes, the magic and the version.
package wire

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"agentrun.dev/errs"
)

// Version of the protocol. Agent and host come from one build, so that there is but one.
const Version = 1

const magic = "AGRUN\x00"

// Limits, of both sides.
const (
	MaxStreams = 256       // at once, of one connection
	MaxRequest = 1 << 20   // bytes of an opening request
	MaxMessage = 64 << 10  // bytes of a message
	MaxData    = 32 << 10  // bytes of a frame of data
	Window     = 256 << 10 // bytes, headers included, that a side may send on a stream before credit comes back
	maxError   = 8 << 10   // bytes of the error at the end of a stream
	maxQueue   = 512 << 10 // bytes that wait to be written before senders are held up
	headerSize = 12
)

// Type is a frame's.
type Type uint8

const (
	Open    Type = 1 + iota // host → guest: a new stream; the payload is the request
	Cancel                  // host → guest: the result isn't wanted any more
	End                     // guest → host: the stream's last frame; the payload is an error, or empty
	Message                 // either way: JSON
	Data                    // either way: bytes of a channel
	Close                   // either way: no more data on a channel
	Credit                  // either way: the payload's four bytes say how much more may be sent
)

// The channels of data.
const (
	Input  = 0
	Output = 1
	Errors = 2
)

// Frame is what one side sent on a stream: a message, data, or the end of a channel.
type Frame struct {
	Type    Type
	Channel uint8
	Payload []byte
}

type header struct {
	kind    Type
	channel uint8
	stream  uint32
	length  uint32
}

func (h header) append(b []byte) []byte {
	b = append(b, byte(h.kind), h.channel, 0, 0)
	b = binary.LittleEndian.AppendUint32(b, h.stream)
	return binary.LittleEndian.AppendUint32(b, h.length)
}

// parseHeader checks a header for all that can be known without the streams: the payload may be allocated then.
func parseHeader(b []byte) (header, error) {
	h := header{kind: Type(b[0]), channel: b[1], stream: binary.LittleEndian.Uint32(b[4:]), length: binary.LittleEndian.Uint32(b[8:])}
	low, high := uint32(0), uint32(0)
	channels := uint8(0)
	switch h.kind {
	case Open:
		high = MaxRequest
	case Cancel:
	case End:
		high = maxError
	case Message:
		high = MaxMessage
	case Data:
		low, high, channels = 1, MaxData, Errors
	case Close:
		channels = Errors
	case Credit:
		low, high = 4, 4
	default:
		return h, corrupt("no frame has type %d", h.kind)
	}
	switch {
	case b[2] != 0 || b[3] != 0:
		return h, corrupt("the header's reserved bytes aren't zero")
	case h.channel > channels:
		return h, corrupt("a frame of type %d on channel %d", h.kind, h.channel)
	case h.length < low || h.length > high:
		return h, corrupt("a frame of type %d with %d bytes", h.kind, h.length)
	case h.stream == 0:
		return h, corrupt("a frame of stream 0")
	}
	return h, nil
}

func corrupt(format string, a ...any) error {
	return errs.New(errs.Corrupt, "guest protocol", "", fmt.Errorf(format, a...))
}

// failure is an error on the wire.
type failure struct {
	Kind  string `json:"kind"`
	Op    string `json:"op,omitempty"`
	Thing Text   `json:"thing,omitempty"`
	Text  string `json:"text,omitempty"`
}

// encodeError makes the payload of End. Long texts are cut.
func encodeError(err error) []byte {
	if err == nil {
		return nil
	}
	f := failure{Kind: errs.KindOf(err).String(), Text: cut(err.Error())}
	if e, ok := err.(*errs.Error); ok {
		f.Op, f.Thing, f.Text = cut(e.Op), Text(cut(e.Thing)), ""
		if e.Err != nil {
			f.Text = cut(e.Err.Error())
		}
	}
	b, jsonErr := json.Marshal(f)
	if jsonErr != nil || len(b) > maxError {
		return []byte(`{"kind":"other","text":"an error that can't be told"}`)
	}
	return b
}

func cut(s string) string {
	const most = 400 // three texts, each byte of which takes at most 6 in JSON, are less than maxError
	return s[:min(len(s), most)]
}

// decodeError is its inverse: what the guest says is an error, whatever it is.
func decodeError(b []byte) error {
	if len(b) == 0 {
		return nil
	}
	var f failure
	if err := json.Unmarshal(b, &f); err != nil {
		return errs.Msg(errs.Corrupt, "guest", "", "it failed, and its error can't be read")
	}
	if f.Text == "" {
		return errs.New(errs.ParseKind(f.Kind), f.Op, string(f.Thing), nil)
	}
	return errs.Msg(errs.ParseKind(f.Kind), f.Op, string(f.Thing), f.Text)
}

// Text is a string of any bytes, such as a path or an argument. JSON has Unicode only: what isn't stands there as {"b": BASE64}.
type Text string

// MarshalJSON implements json.Marshaler.
func (t Text) MarshalJSON() ([]byte, error) {
	if utf8.ValidString(string(t)) {
		return json.Marshal(string(t))
	}
	return json.Marshal(struct {
		B []byte `json:"b"`
	}{[]byte(t)})
}

// UnmarshalJSON implements json.Unmarshaler.
func (t *Text) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '{' {
		var raw struct {
			B []byte `json:"b"`
		}
		if err := json.Unmarshal(b, &raw); err != nil {
			return err
		}
		*t = Text(raw.B)
		return nil
	}
	return json.Unmarshal(b, (*string)(t))
}

// Texts converts.
func Texts(list []string) []Text {
	out := make([]Text, len(list))
	for i, s := range list {
		out[i] = Text(s)
	}
	return out
}

// Strings converts back.
func Strings(list []Text) []string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = string(s)
	}
	return out
}
