package virtio

import (
	"encoding/json"
	"fmt"

	"agentrun.dev/errs"
)

// stateVersion is of the encoding below. It changes when an older program couldn't restore what it describes.
const stateVersion = 1

// MaxState is the largest state that SetState takes, in bytes.
const MaxState = 4 << 20

// state is a device at rest, as JSON: snapshots are read by people too, and devices have little of it.
type state struct {
	Version    int          `json:"version"`
	ID         uint32       `json:"id"`
	Status     uint32       `json:"status"`
	Features   uint64       `json:"features"`
	FeatureSel [2]uint32    `json:"featureSel"`
	QueueSel   uint32       `json:"queueSel"`
	ISR        uint32       `json:"isr"`
	Generation uint32       `json:"generation"`
	Queues     []queueState `json:"queues"`
	Device     []byte       `json:"device,omitempty"`
}

type queueState struct {
	Num       uint32   `json:"num"`
	At        place    `json:"at"`
	Ready     bool     `json:"ready,omitempty"`
	Live      bool     `json:"live,omitempty"` // in use by a link
	Stopped   bool     `json:"stopped,omitempty"`
	NextAvail uint16   `json:"nextAvail,omitempty"`
	NextUsed  uint16   `json:"nextUsed,omitempty"`
	Signalled uint16   `json:"signalled,omitempty"`
	Returned  []uint16 `json:"returned,omitempty"` // chains taken but not begun, in order
}

// State returns the transport's and the device's state, for SetState in another process. It is Unavailable unless paused.
func (m *MMIO) State() ([]byte, error) {
	m.life.Lock()
	defer m.life.Unlock()
	if !m.paused || m.closed {
		return nil, errs.Msg(errs.Unavailable, "virtio", "state", "the device isn't paused")
	}
	dev, err := m.dev.State()
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	s := state{Version: stateVersion, ID: m.dev.ID(), Status: m.status, Features: m.driver, FeatureSel: [2]uint32{m.offeredSel, m.driverSel},
		QueueSel: m.sel, ISR: m.isr.Load(), Generation: m.generation.Load(), Device: dev}
	for i, r := range m.regs {
		qs := queueState{Num: r.num, At: r.at, Ready: r.ready}
		if m.link != nil && m.link.queues[i] != nil {
			m.link.queues[i].save(&qs)
		}
		s.Queues = append(s.Queues, qs)
	}
	return json.Marshal(s)
}

func (q *Queue) save(s *queueState) {
	q.mu.Lock()
	defer q.mu.Unlock()
	s.Num, s.At = uint32(q.size), q.at
	s.Live, s.Stopped = true, q.stopped.Load()
	s.NextAvail, s.NextUsed, s.Signalled = q.nextAvail, q.nextUsed, q.signalled
	s.Returned = append([]uint16(nil), q.returned...)
}

// SetState puts a paused device where another was when State was taken; a driver that was alive continues at Resume. The
// state may come from anywhere: what couldn't be is Invalid, and leaves the device reset.
func (m *MMIO) SetState(data []byte) error {
	m.life.Lock()
	defer m.life.Unlock()
	if !m.paused || m.closed {
		return errs.Msg(errs.Unavailable, "virtio", "restore", "the device isn't paused")
	}
	m.reset()
	var s state
	if len(data) > MaxState {
		return errs.Msg(errs.TooLarge, "virtio", "restore", "the state is too large")
	}
	if err := json.Unmarshal(data, &s); err != nil {
		return errs.New(errs.Invalid, "virtio", "restore", err)
	}
	if err := m.check(&s); err != nil {
		return err
	}
	if err := m.dev.SetState(s.Device); err != nil {
		return err
	}
	m.mu.Lock()
	m.status, m.driver, m.sel = s.Status, s.Features, s.QueueSel
	m.offeredSel, m.driverSel = s.FeatureSel[0], s.FeatureSel[1]
	m.isr.Store(s.ISR & (interruptUsed | interruptConfig))
	m.generation.Store(s.Generation)
	for i, qs := range s.Queues {
		r := &m.regs[i]
		r.num, r.at, r.ready = qs.Num, qs.At, qs.Ready || qs.Live
	}
	m.mu.Unlock()
	if s.Status&StatusDriverOK == 0 {
		return nil
	}
	m.start(func(l *Link) error {
		for i, qs := range s.Queues {
			if q := l.queues[i]; q != nil {
				if !qs.Live { // made ready without ever being used: as if it weren't there
					l.queues[i] = nil
					continue
				}
				q.nextAvail, q.nextUsed, q.signalled = qs.NextAvail, qs.NextUsed, qs.Signalled
				q.returned = qs.Returned
				q.stopped.Store(qs.Stopped)
			}
		}
		if s.Status&(StatusNeedsReset|StatusFailed) != 0 {
			l.broken.Store(true)
		}
		return nil
	})
	m.mu.Lock()
	for i, qs := range s.Queues {
		m.regs[i].ready = qs.Ready
	}
	m.mu.Unlock()
	return nil
}

// check finds what no State returns.
func (m *MMIO) check(s *state) error {
	bad := func(what string) error { return errs.Msg(errs.Invalid, "virtio", "restore", what) }
	switch {
	case s.Version != stateVersion:
		return errs.Msg(errs.Unsupported, "virtio", "restore", fmt.Sprintf("state version %d, wanted %d", s.Version, stateVersion))
	case s.ID != m.dev.ID():
		return bad(fmt.Sprintf("state of a device of type %d, wanted %d", s.ID, m.dev.ID()))
	case len(s.Queues) != len(m.regs):
		return bad(fmt.Sprintf("%d queues, wanted %d", len(s.Queues), len(m.regs)))
	case s.Status&^(statusKnown|StatusNeedsReset) != 0 || s.Status&StatusDriverOK != 0 && s.Status&statusBeforeReady != statusBeforeReady:
		return bad(fmt.Sprintf("status %#x", s.Status))
	case s.Status&StatusFeaturesOK != 0 && (s.Features&^m.offered != 0 || s.Features>>FeatureVersion1&1 == 0):
		return errs.Msg(errs.Unsupported, "virtio", "restore", fmt.Sprintf("features %#x of %#x", s.Features, m.offered))
	}
	for i, q := range s.Queues {
		if (q.Ready || q.Live) && (q.Num == 0 || q.Num > uint32(m.regs[i].max) || q.Num&(q.Num-1) != 0) {
			return bad(fmt.Sprintf("queue %d of size %d", i, q.Num))
		}
		seen := make(map[uint16]bool)
		for _, head := range q.Returned {
			if uint32(head) >= q.Num || seen[head] || !q.Live {
				return bad(fmt.Sprintf("queue %d holds chain %d", i, head))
			}
			seen[head] = true
		}
	}
	return nil
}
