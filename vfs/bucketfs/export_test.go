package bucketfs

// Held returns how many bytes are held back in memory.
func (f *FS) Held() int64 { return f.dirtyBytes.Load() }

// Known returns how many inodes are remembered.
func (f *FS) Known() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.inos)
}
