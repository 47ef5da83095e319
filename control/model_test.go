package control

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"agentrun.dev/api"
	"agentrun.dev/control/controltest"
	"agentrun.dev/errs"
)

// modelled is what somebody who uses the service may rely on about one sandbox.
type modelled struct {
	id     string
	parent string
	files  map[string]string
	cpu    time.Duration // that commands in it used
}

// TestModel does random things, kills the service at random steps, and lets nodes crash or vanish. What was acknowledged is there afterwards,
// nothing else is, and nobody is charged for more than was used.
func TestModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		l := newLab(t, 2)
		l.t = rt
		l.pool("p", 2)
		known := map[string]*modelled{}
		var used time.Duration // of all that ever was
		next := 0
		pick := func() *modelled {
			ids := make([]string, 0, len(known))
			for id := range known {
				ids = append(ids, id)
			}
			if len(ids) == 0 {
				return nil
			}
			slices.Sort(ids)
			return known[rapid.SampledFrom(ids).Draw(rt, "which")]
		}
		// do runs an operation, that a killer may end, and tells whether it was acknowledged.
		do := func(what string, f func() error) bool {
			l.k.mu.Lock()
			l.k.at = 0
			if n := rapid.IntRange(0, 40).Draw(rt, "kill"); n > 0 && n < 14 {
				l.k.at = l.k.now + n
			}
			l.k.mu.Unlock()
			err := f()
			l.k.mu.Lock()
			l.k.at = 0
			l.k.mu.Unlock()
			if l.k.isDead() {
				l.reopen()
				l.check("after a kill in " + what)
			} else if err != nil {
				rt.Fatalf("%s: %v", what, err)
			}
			return err == nil
		}
		// adopt takes up what an operation made that wasn't acknowledged, or forgets what one ended.
		adopt := func(from *modelled) {
			for _, b := range l.index.list() {
				r := b.rec.Load()
				if known[b.id] == nil && r.claimed() {
					m := &modelled{id: b.id, parent: r.Parent, files: map[string]string{}}
					if from != nil {
						for k, v := range from.files {
							m.files[k] = v
						}
					}
					known[b.id] = m
				}
			}
		}
		rt.Repeat(map[string]func(*rapid.T){
			"claim": func(*rapid.T) {
				if len(known) > 12 {
					return
				}
				next++
				do("claim", func() error {
					s, err := l.CreateSandbox(l.ctx, admin, api.CreateSandbox{Pool: "p", Name: fmt.Sprintf("s-%d", next)})
					if err == nil {
						known[s.ID] = &modelled{id: s.ID, files: map[string]string{}}
					}
					return err
				})
				adopt(nil)
				l.fill()
			},
			"fork": func(*rapid.T) {
				m := pick()
				if m == nil || len(known) > 12 {
					return
				}
				n := rapid.IntRange(1, 3).Draw(rt, "count")
				before := len(known)
				ok := do("fork", func() error {
					_, err := l.ForkSandbox(l.ctx, admin, m.id, api.ForkSandbox{Count: n})
					return err
				})
				adopt(m)
				if made := len(known) - before; made != n && (ok || made != 0) {
					rt.Fatalf("%d of %d forks", made, n)
				}
			},
			"write": func(*rapid.T) {
				m := pick()
				if m == nil {
					return
				}
				k, v := rapid.SampledFrom([]string{"a", "b"}).Draw(rt, "file"), fmt.Sprint(rapid.IntRange(0, 9).Draw(rt, "text"))
				do("write", func() error {
					_, err := l.run(m.id, "set", k, v)
					return err
				})
				for _, h := range l.hosts { // whether it was done before the end, nobody was told
					if s, ok := h.Sandboxes()[m.id]; ok {
						m.files = s.Files
					}
				}
			},
			"compute": func(*rapid.T) {
				m := pick()
				if m == nil {
					return
				}
				do("compute", func() error {
					_, err := l.run(m.id, "cpu", "1s")
					return err
				})
				used = 0
				for _, h := range l.hosts {
					used += time.Duration(h.Calls("cpu")) * time.Second
				}
			},
			"hibernate": func(*rapid.T) {
				if m := pick(); m != nil {
					do("hibernate", func() error { _, err := l.Hibernate(l.ctx, admin, m.id); return err })
				}
			},
			"resume": func(*rapid.T) {
				if m := pick(); m != nil {
					do("resume", func() error { _, err := l.Resume(l.ctx, admin, m.id); return err })
				}
			},
			"end": func(*rapid.T) {
				m := pick()
				if m == nil {
					return
				}
				ok := do("end", func() error { _, err := l.EndSandbox(l.ctx, admin, m.id); return err })
				if ok || l.box(m.id) == nil {
					delete(known, m.id)
				}
			},
			"promote": func(*rapid.T) {
				m := pick()
				if m == nil || m.parent == "" || l.box(l.resolved(m.parent)) == nil {
					return
				}
				over := l.resolved(m.parent)
				if ok := do("promote", func() error { _, err := l.Promote(l.ctx, admin, m.id); return err }); ok || l.box(over) == nil {
					delete(known, over)
					m.parent = l.box(m.id).rec.Load().Parent
				}
			},
			"sample": func(*rapid.T) {
				for _, p := range l.allPeers() {
					l.sample(l.ctx, p)
				}
				do("charge", func() error { return l.flushUsage(l.ctx) })
			},
			"node crash": func(*rapid.T) {
				i := rapid.IntRange(0, len(l.hosts)-1).Draw(rt, "node")
				lost := l.hosts[i].Sandboxes()
				l.hosts[i].Crash()
				l.settle()
				for id, s := range lost {
					if m := known[id]; m != nil && !s.Asleep {
						if b := l.box(id); b != nil {
							rt.Fatalf("%s died with its node, and is %s", id, b.rec.Load().State)
						}
						delete(known, id)
					}
				}
				l.fill()
			},
			"node lost": func(*rapid.T) {
				i := rapid.IntRange(0, len(l.hosts)-1).Draw(rt, "node")
				h, p := l.hosts[i], l.peer(l.names[i])
				had := h.Sandboxes()
				h.Vanish(true)
				l.lose(l.ctx, p)
				for id, m := range known {
					b := l.box(id)
					if s, here := had[id]; here && !s.Asleep && b != nil {
						rt.Fatalf("%s ran on a node that was lost, and is %s", id, b.rec.Load().State)
					} else if here && s.Asleep {
						if _, err := l.run(id, "get", "a"); !errs.Is(err, errs.Unavailable) {
							rt.Fatalf("%s sleeps on a node that was lost: %v", id, err)
						}
					} else if here {
						delete(known, m.id)
					}
				}
				h.Vanish(false)
				l.heard(l.ctx, p, &p.info)
				l.settle()
				l.fill()
			},
			"": func(*rapid.T) {
				l.check("now")
				there := map[string]controltest.Sandbox{}
				for _, h := range l.hosts {
					for id, s := range h.Sandboxes() {
						there[id] = s
					}
				}
				claimed := 0
				for _, b := range l.index.list() {
					if b.rec.Load().claimed() {
						claimed++
					}
				}
				if claimed != len(known) {
					rt.Fatalf("%d sandboxes, want %d", claimed, len(known))
				}
				for id, m := range known {
					s, ok := there[id]
					if !ok {
						rt.Fatalf("%s is lost", id)
					}
					if fmt.Sprint(s.Files) != fmt.Sprint(m.files) {
						rt.Fatalf("%s has %v, want %v", id, s.Files, m.files)
					}
				}
				if u := l.spent(l.ctx, "root"); u.CPUSeconds > used.Seconds() {
					rt.Fatalf("charged %v CPU-seconds for %v", u.CPUSeconds, used)
				}
			},
		})
	})
}
