package control

import (
	"bytes"
	"context"

	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"agentrun.dev/api"
	"agentrun.dev/errs"
	"agentrun.dev/kv"
)

// Bounds of builds.
const (
	maxBuilds   = 2       // at once
	maxLogLines = 50_000  // of one build
	maxLogLine  = 8 << 10 // bytes; longer lines are cut
	buildTries  = 3       // when it isn't the template's fault
)

// builder knows what is being built.
type builder struct {
	wake chan struct{}

	mu      sync.Mutex
	running map[string]*building // by image
	changed chan struct{}        // closed when a log or a state has changed
	pause   map[string]time.Duration
	tries   map[string]int
}

type building struct {
	cancel   context.CancelFunc
	progress float64
}

func newBuilder() *builder {
	return &builder{wake: make(chan struct{}, 1), running: map[string]*building{}, changed: make(chan struct{}), pause: map[string]time.Duration{}, tries: map[string]int{}}
}

func (b *builder) kick() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
	b.tell()
}

// watch returns what is closed at the next change.
func (b *builder) watch() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.changed
}

func (b *builder) tell() {
	b.mu.Lock()
	defer b.mu.Unlock()
	close(b.changed)
	b.changed = make(chan struct{})
}

func (b *builder) progress(image string) (float64, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if r := b.running[image]; r != nil {
		return r.progress, true
	}
	return 0, false
}

// cancel stops the builds of a template.
func (b *builder) cancel(template string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for image, r := range b.running {
		if strings.HasPrefix(image, template+"@") {
			r.cancel()
		}
	}
}

// begin makes a build known, unless it runs already or too many do.
func (b *builder) begin(ctx context.Context, image string, now time.Duration) (context.Context, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.running[image] != nil || len(b.running) >= maxBuilds || now < b.pause[image] {
		return nil, false
	}
	ctx, cancel := context.WithCancel(ctx)
	b.running[image] = &building{cancel: cancel}
	return ctx, true
}

func (b *builder) end(image string) {
	b.mu.Lock()
	if r := b.running[image]; r != nil {
		r.cancel()
		delete(b.running, image)
	}
	b.mu.Unlock()
	b.kick()
}

// runBuilds builds what waits for it, until the service ends. A build that a former service began begins again.
func (c *Control) runBuilds(ctx context.Context) {
	var all sync.WaitGroup
	defer all.Wait()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		var due []*api.Template
		c.versions.all(func(_ string, v *api.Template) bool {
			if v.State == api.BuildQueued || v.State == api.BuildRunning {
				due = append(due, v)
			}
			return true
		})
		slices.SortFunc(due, func(a, b *api.Template) int { return a.Created.Compare(b.Created) })
		for _, v := range due {
			image := imageOf(v.Name, v.Version)
			if bctx, ok := c.builds.begin(ctx, image, c.clock.since()); ok {
				all.Go(func() {
					defer c.builds.end(image)
					c.build(bctx, v)
				})
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-c.builds.wake:
		}
	}
}

// build builds a version and records what came of it.
func (c *Control) build(ctx context.Context, v *api.Template) {
	image, k := imageOf(v.Name, v.Version), versionKey(v.Name, v.Version)
	p, err := c.place(placing{engine: v.Spec.Engine, needs: needsOf(&v.Spec)})
	if errs.Is(err, errs.Unsupported) {
		c.built(ctx, v, nil, err)
		return
	}
	if err != nil {
		c.builds.put(image, c.clock.since()+time.Second) // perhaps there is a node then
		return
	}
	log := c.openLog(ctx, v)
	if v.State == api.BuildRunning {
		log.line("the build begins again")
	}
	started := *v
	started.State = api.BuildRunning
	t := new(txn)
	c.versions.set(c, t, k, v, &started)
	if err := c.commit(ctx, t); err != nil {
		c.builds.put(image, c.clock.since()+time.Second)
		c.o.Log.Error("record build", "image", image, "err", err)
		return
	}
	begun := time.Now()
	err = p.host.Build(ctx, c.plan(&started), log)
	log.close()
	if err == nil {
		c.timings.build.observe(time.Since(begun))
	}
	if err != nil && ctx.Err() != nil {
		return // the service ends, or the template was deleted
	}
	if err != nil && !errs.Is(err, errs.Invalid) && !errs.Is(err, errs.NotFound) && !errs.Is(err, errs.Unsupported) && c.builds.again(image, c.clock.since()) {
		c.o.Log.Warn("build failed, will be tried again", "image", image, "err", err)
		return
	}
	c.built(ctx, &started, p, err)
}

// built records what came of a build on a node, if it came to that.
func (c *Control) built(ctx context.Context, v *api.Template, p *peer, err error) {
	image, k := imageOf(v.Name, v.Version), versionKey(v.Name, v.Version)
	done := *v
	done.Built = c.clock.now()
	t := new(txn)
	e := api.Event{Kind: api.EventBuilt, Template: v.Name, Owner: v.Owner, Text: fmt.Sprintf("version %d is ready", v.Version)}
	if err != nil {
		text := err.Error()
		if hint := errs.HintOf(err); hint != "" {
			text += " (" + hint + ")"
		}
		done.State, done.Error, e.Text = api.BuildFailed, cut(text, 4096), fmt.Sprintf("version %d failed: %s", v.Version, cut(err.Error(), 500))
		e.Data = map[string]string{"error": cut(err.Error(), 500)}
	} else {
		done.State, done.Progress, e.Node = api.BuildReady, 1, p.name
		p.hold(image, true)
	}
	c.versions.set(c, t, k, v, &done)
	t.event(e)
	if err := c.commit(ctx, t); err != nil {
		c.builds.put(image, c.clock.since()+time.Second)
		c.o.Log.Error("record build", "image", image, "err", err)
	}
	c.builds.tell()
	c.kick()
}

func cut(s string, n int) string {
	if len(s) > n {
		return strings.ToValidUTF8(s[:n], "") + "…"
	}
	return s
}

// put puts a build off.
func (b *builder) put(image string, until time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pause[image] = until
}

// again reports whether a build that failed should be tried once more, and puts that off for a while.
func (b *builder) again(image string, now time.Duration) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tries[image]++
	n := b.tries[image]
	if n >= buildTries {
		delete(b.tries, image)
		delete(b.pause, image)
		return false
	}
	b.pause[image] = now + time.Duration(n*n)*time.Second
	return true
}

// ensureImage makes a node hold an image that is built already elsewhere.
func (c *Control) ensureImage(ctx context.Context, p *peer, image string) error {
	if p.holds(image) {
		return nil
	}
	if err := p.building.take(ctx); err != nil { // one after another, for a node
		return err
	}
	defer p.building.give()
	if p.holds(image) {
		return nil
	}
	name, number, _ := strings.Cut(image, "@")
	var n int
	if _, err := fmt.Sscanf(number, "%d", &n); err != nil {
		return invalid("find image", image, "no image of a template")
	}
	v, err := c.version("find image", name, n)
	if err != nil {
		return err
	}
	log := c.openLog(ctx, v)
	defer log.close()
	log.line("node " + p.name + " builds the image, too")
	if err := p.host.Build(ctx, c.plan(v), log); err != nil {
		return errs.New(errs.KindOf(err), "build image", image+" on "+p.name, err)
	}
	p.hold(image, true)
	return nil
}

// buildLog writes the lines of a build into records.
type buildLog struct {
	c    *Control
	ctx  context.Context
	v    *api.Template
	next uint64
	part []byte
	at   time.Duration // of the last commit
	t    *txn
	mu   sync.Mutex
	done int // init lines that have begun
}

func (c *Control) openLog(ctx context.Context, v *api.Template) *buildLog {
	l := &buildLog{c: c, ctx: ctx, v: v, next: 1, t: new(txn)}
	r := under(kindLog, versionKey(v.Name, v.Version))
	r.Reverse = true
	_ = c.o.KV.Scan(ctx, r, func(k, _ []byte) error {
		l.next = seqOf(k) + 1
		return kv.Stop
	})
	return l
}

// Write takes what init writes.
func (l *buildLog) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for rest := b; len(rest) > 0; {
		line, after, ended := bytes.Cut(rest, []byte("\n"))
		rest = after
		if len(l.part) < maxLogLine {
			l.part = append(l.part, line[:min(len(line), maxLogLine-len(l.part))]...)
		}
		if ended {
			l.add(string(l.part))
			l.part = l.part[:0]
		}
	}
	if l.c.clock.since()-l.at > 200*time.Millisecond {
		l.flush()
	}
	return len(b), nil
}

func (l *buildLog) line(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.add(text)
	l.flush()
}

func (l *buildLog) add(text string) {
	if l.next > maxLogLines {
		return
	}
	if l.next == maxLogLines {
		text = "… there is more, which isn't kept"
	}
	text = strings.ToValidUTF8(strings.TrimRight(text, "\r"), "\uFFFD")
	// An init line is shown before it runs: that is how far the build has come.
	if l.done < len(l.v.Spec.Init) && (text == "+ "+l.v.Spec.Init[l.done] || text == "$ "+l.v.Spec.Init[l.done]) {
		l.done++
		l.c.builds.advance(imageOf(l.v.Name, l.v.Version), float64(l.done)/float64(len(l.v.Spec.Init)+1))
	}
	l.t.put(key(kindLog, versionKey(l.v.Name, l.v.Version), number(l.next)), api.BuildLine{Time: l.c.clock.now(), Text: text})
	l.next++
}

func (b *builder) advance(image string, to float64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if r := b.running[image]; r != nil {
		r.progress = to
	}
}

// flush stores what came. That it isn't durable yet is no loss: a build that a crash ends begins again.
func (l *buildLog) flush() {
	l.at = l.c.clock.since()
	if l.t.b.Empty() {
		return
	}
	l.t.b.Lazy = true
	if err := l.c.commit(l.ctx, l.t); err != nil {
		l.c.o.Log.Warn("keep the log of a build", "template", l.v.Name, "err", err)
	}
	l.t = new(txn)
	l.c.builds.tell()
}

func (l *buildLog) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.part) > 0 {
		l.add(string(l.part))
		l.part = nil
	}
	l.flush()
}
