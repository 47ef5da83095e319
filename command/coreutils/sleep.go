package coreutils

import (
	"math/big"
	"strings"
	"time"

	"agentrun.dev/command/cfmt"
	"agentrun.dev/command/tool"
)

var sleepSpec = tool.Spec{
	Usage:   []string{"NUMBER[SUFFIX]...", "OPTION"},
	About:   "Pause for NUMBER seconds, where NUMBER is an integer or floating-point.\nSUFFIX may be 's','m','h', or 'd', for seconds, minutes, hours, days.\nWith multiple arguments, pause for the sum of their values.",
	Package: tool.Coreutils,
}

// maxSleep is as long as a time.Duration can be.
const maxSleep = time.Duration(1<<63 - 1)

// Sleep waits.
func Sleep(t *tool.T) int {
	_, args := t.Parse(&sleepSpec)
	if len(args) == 0 {
		t.Missing(1)
	}
	var total time.Duration
	bad := false
	for _, a := range args {
		d, ok := parseInterval(a)
		if !ok {
			t.Warn("invalid time interval %s", tool.Quote(a))
			bad = true
		}
		if total += d; total < 0 {
			total = maxSleep
		}
	}
	if bad {
		t.Try(1)
	}
	return t.RunAs(&sleeping{Until: t.Sandbox().Now().Add(total)})
}

// parseInterval reads a number of seconds, or with a suffix of minutes, hours or days.
func parseInterval(s string) (time.Duration, bool) {
	v, rest, ok, _ := cfmt.ParseFloat(s)
	if !ok || v.Value == nil || v.Value.Signbit() && v.Value.Sign() != 0 || len(rest) > 1 || strings.TrimLeft(s, " ") != s {
		return 0, false
	}
	unit := time.Second
	if rest != "" {
		i := strings.IndexByte("smhd", rest[0])
		if i < 0 {
			return 0, false
		}
		unit = []time.Duration{time.Second, time.Minute, time.Hour, 24 * time.Hour}[i]
	}
	if v.Value.IsInf() {
		return maxSleep, true
	}
	n, _ := new(big.Float).Mul(v.Value, big.NewFloat(float64(unit))).Float64()
	if n >= float64(maxSleep) {
		return maxSleep, true
	}
	return time.Duration(n), true
}
