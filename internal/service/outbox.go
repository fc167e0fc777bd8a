package service

import (
	"errors"
	"strconv"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"quotabroker/wire"
)

// roomBytes is the most room that is kept when it is not needed.
const roomBytes = 1 << 20

// outbox gathers the answers of a group until the group is decided. It keeps its
// room from group to group.
type outbox struct {
	bytes   []byte
	answers []answer
}

// answer is one reply. Its body is bytes[from:to] of the outbox.
type answer struct {
	verb     wire.Verb
	reply    string
	from, to int
	lease    wire.LeaseID // of a grant, else zero
	err      *wire.Error  // nil for a normal answer
}

func (o *outbox) reset() {
	if cap(o.bytes) > roomBytes {
		*o = outbox{}
		return
	}
	clear(o.answers)
	o.bytes, o.answers = o.bytes[:0], o.answers[:0]
}

// add closes the body that was appended to o.bytes since from.
func (o *outbox) add(a answer, from int) {
	a.from, a.to = from, len(o.bytes)
	o.answers = append(o.answers, a)
}

func (o *outbox) decision(reply string, d *wire.Decision) {
	from := len(o.bytes)
	o.bytes = wire.AppendDecision(o.bytes, d)
	o.add(answer{verb: wire.VerbAcquire, reply: reply, lease: d.Lease}, from)
}

func (o *outbox) fail(verb wire.Verb, reply string, err *wire.Error) {
	from := len(o.bytes)
	o.bytes = wire.AppendError(o.bytes, err)
	o.add(answer{verb: verb, reply: reply, err: err}, from)
}

// publishError sends an error reply: the micro service's headers and the
// protocol's body.
func publishError(conn *nats.Conn, reply string, err *wire.Error, body []byte) error {
	return conn.PublishMsg(&nats.Msg{
		Subject: reply,
		Header: nats.Header{
			micro.ErrorHeader:     {err.Message},
			micro.ErrorCodeHeader: {strconv.Itoa(err.Code.Status())},
		},
		Data: body,
	})
}

// publishReply sends a normal reply that could be large. One that NATS would not
// take is replaced by an error that says so, so that the asker does not wait.
func publishReply(conn *nats.Conn, reply string, body []byte) error {
	err := conn.Publish(reply, body)
	if !errors.Is(err, nats.ErrMaxPayload) {
		return err
	}
	e := wire.Errorf(wire.CodePayloadTooLarge, "the reply is %d bytes long, and NATS takes %d at most", len(body), conn.MaxPayload())
	return publishError(conn, reply, e, wire.AppendError(nil, e))
}
