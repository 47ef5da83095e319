package web

import (
	"fmt"
	"time"
)

// meter is curl's progress meter on standard error. It is drawn at the beginning and at the end; nobody watches a sandbox
// in between.
type meter struct{ x *transfer }

// newMeter starts the meter; nil if nobody wants it.
func newMeter(x *transfer) *meter {
	g := x.c.global
	if g.silent || g.noProgress || g.bar || (x.out == curlOutput{} || x.out.file == "-") && x.c.t.IsTerminal(1) {
		return nil
	}
	x.c.errorf("  %% Total    %% Received %% Xferd  Average Speed   Time    Time     Time  Current\n" +
		"                                 Dload  Upload   Total   Spent    Left  Speed\n")
	m := &meter{x}
	m.draw()
	return m
}

// end draws the last state.
func (m *meter) end() {
	if m == nil {
		return
	}
	m.draw()
	m.x.c.errorf("\n")
}

func (m *meter) draw() {
	x := m.x
	took := time.Since(x.started).Seconds()
	speed := func(n int64) int64 {
		if took < 0.000001 {
			return 0
		}
		return int64(float64(n) / took)
	}
	total := max(x.total, 0)
	percent := func(n, of int64) int64 {
		if of <= 0 {
			return 0
		}
		return n * 100 / of
	}
	all := max(total, x.received) + x.sent
	x.c.errorf("\r%3d %s  %3d %s  %3d %s  %s  %s %s %s %s %s", percent(x.received+x.sent, all), short(all), percent(x.received, total), short(x.received),
		percent(x.sent, x.sent), short(x.sent), short(speed(x.received)), short(speed(x.sent)), "--:--:--", spent(took), "--:--:--", short(speed(x.received)))
}

func spent(seconds float64) string {
	if seconds < 1 {
		return "--:--:--"
	}
	s := int(seconds)
	return fmt.Sprintf("%2d:%02d:%02d", s/3600, s/60%60, s%60)
}

// short renders a number in five characters.
func short(n int64) string {
	switch {
	case n < 100000:
		return fmt.Sprintf("%5d", n)
	case n < 10000<<10:
		return fmt.Sprintf("%4dk", n>>10)
	case n < 100<<20:
		return fmt.Sprintf("%2d.%0dM", n>>20, n%(1<<20)/(1<<20/10))
	case n < 10000<<20:
		return fmt.Sprintf("%4dM", n>>20)
	}
	return fmt.Sprintf("%4dG", n>>30)
}
