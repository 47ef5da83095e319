package coreutils_test

import (
	"strings"
	"testing"

	"agentrun.dev/command"
	"agentrun.dev/command/commandtest"
)

func FuzzPrintf(f *testing.F) {
	for _, s := range [][2]string{{"%d %s\\n", "1"}, {"%*.*f|%-08.3e", "-5"}, {"%b\\c%q", "\\0101\\x41\\u00e9\\U0010ffff"}, {"%99999999999999999999d", "0x"}, {"%.99999999999s", "a"}, {"%c%%%", "'é"},
		{"%#x%+i%o%a%g%G%A", "-9223372036854775808"}, {"\\", "inf"}, {"%", "nan"}, {"%ld%hhd%jd%zd%Lf", "1e999999999"}, {"%1$s", "0x1p-99999"}, {"\\x\\u\\U\\400", ""}} {
		f.Add(s[0], s[1])
	}
	set := command.NewSet(nil)
	f.Fuzz(func(t *testing.T, format, arg string) {
		if strings.ContainsRune(format, 0) || strings.ContainsRune(arg, 0) {
			t.Skip("an argument has no NUL")
		}
		(&commandtest.Table{}).Survives(t, set, "printf", "--", format, arg, "-2", "7")
	})
}
