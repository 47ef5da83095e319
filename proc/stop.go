package proc

// stops tells whether a signal stops a process by default.
func stops(sig int) bool {
	return sig == SIGSTOP || sig == SIGTSTP || sig == SIGTTIN || sig == SIGTTOU
}

// stop stops the process at its next gate, and tells the parent at once. TSTP, TTIN and TTOU don't stop an orphaned
// process group, which nobody could continue.
func (p *Process) stop(sig int) {
	if sig != SIGSTOP && p.sb.orphaned(p) {
		return
	}
	p.mu.Lock()
	if p.stopSig != 0 || p.state != running || p.isKilled() {
		p.mu.Unlock()
		return
	}
	p.stopSig, p.cont, p.news = sig, make(chan struct{}), newsStopped
	p.attn.Or(attnStopped)
	p.mu.Unlock()
	p.tellParent()
}

// resume lets a stopped process go on.
func (p *Process) resume() {
	p.mu.Lock()
	if p.stopSig == 0 || p.isKilled() {
		p.mu.Unlock()
		return
	}
	p.stopSig, p.news = 0, newsContinued
	p.attn.And(^uint32(attnStopped))
	close(p.cont)
	p.mu.Unlock()
	p.tellParent()
}

func (p *Process) tellParent() {
	p.sb.mu.Lock()
	parent := p.parent
	p.sb.mu.Unlock()
	if parent != nil {
		parent.childChanged()
	}
}

// Stopped returns the signal that has stopped the process, 0 when it isn't stopped. Any goroutine may call it.
func (p *Process) Stopped() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stopSig
}

// orphaned tells whether no member of the process's group has a parent in another group of the same session.
func (s *Sandbox) orphaned(p *Process) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.orphanedLocked(p.pgid, p.sid)
}

func (s *Sandbox) orphanedLocked(pgid, sid int) bool {
	for _, q := range s.procs {
		if q.pgid == pgid && q.sid == sid && !q.ended() && q.parent != nil && q.parent.pgid != pgid && q.parent.sid == sid && !q.parent.ended() {
			return false
		}
	}
	return true
}

// continueOrphans sends HUP and CONT to groups with stopped members that have become orphaned by the end of a process: its
// children's groups and, if it was the last link of it, its own.
func (s *Sandbox) continueOrphans(groups [][2]int) {
	for _, g := range groups {
		s.mu.Lock()
		var members []*Process
		stopped := false
		if s.orphanedLocked(g[0], g[1]) {
			for _, q := range s.sorted() {
				if q.pgid == g[0] && q.sid == g[1] && !q.ended() {
					members = append(members, q)
					stopped = stopped || q.attn.Load()&attnStopped != 0
				}
			}
		}
		s.mu.Unlock()
		if !stopped {
			continue
		}
		for _, q := range members {
			q.post(SIGHUP)
			q.post(SIGCONT)
		}
	}
}
