package proc

// Path returns the absolute path by which the file was opened, as far as it has one: "" for pipes and the like.
func (h *handle) Path() string {
	if f, ok := h.d.file.(interface{ Path() string }); ok {
		return f.Path()
	}
	return h.d.path
}

// CloseOnExec tells whether a descriptor is closed when a program is executed: EBADF.
func (p *Process) CloseOnExec(fd int) (bool, error) {
	if _, err := p.fds.get(fd); err != nil {
		return false, err
	}
	p.fds.mu.Lock()
	defer p.fds.mu.Unlock()
	return fd < len(p.fds.slots) && p.fds.slots[fd].cloexec, nil
}
