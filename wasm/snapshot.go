package wasm

const formatVersion = 1

// Snapshot is an idle instance's state.
type Snapshot struct{}

func (m *Module) drain() {}
