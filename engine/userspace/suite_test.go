package userspace

import (
	"testing"

	"agentrun.dev/engine"
	"agentrun.dev/engine/enginetest"
)

func TestSuite(t *testing.T) {
	enginetest.Run(t, enginetest.Config{Saves: true, New: func(testing.TB) engine.Engine { return NewEngine(EngineOptions{}) }})
}
