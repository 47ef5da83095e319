package coreutils_test

import (
	"testing"

	"agentrun.dev/command"
	"agentrun.dev/command/commandtest"
)

func TestNumfmt(t *testing.T) {
	commandtest.Run(t, command.NewSet(nil), commandtest.Table{
		Setup: []string{"f h header\n1000\n2000000\n", "f f a 2048 b\na   1000000 b\nx 5 y\n", "f d a:2048:b\n", "f bad 1\nx\n3\n"}, Stdin: "1000\n1500000\n",
		Lines: []string{"numfmt --to=iec 1024 1500 1000000", "numfmt --to=si 1000 1500 999999", "numfmt --from=iec 1K 1.5M 2Gi", "numfmt --from=iec-i 1Ki 1K", "numfmt --from=auto 1Ki 1K", "numfmt --to=iec-i 2048 5", "numfmt x", "numfmt --from=si 1Q", "numfmt --to=iec --suffix=B 2048", "numfmt --suffix=B --from=si 2KB", "numfmt --padding=10 5", "numfmt --padding=-10 5", "numfmt --format=%10.2f 3.14159", "numfmt --format=%f| 3", "numfmt --format=%.3f --to=si 1234567", "numfmt --format=x%05fy 42", "numfmt --format=%-8fx 42", "numfmt --round=down --to=si 1999", "numfmt --round=up --to=si 1001", "numfmt --round=nearest --to=si 1049 1051", "numfmt --round=towards-zero --to=si -- -1999", "numfmt --field=2 --to=iec < f", "numfmt -d: --field=2 --to=iec < d", "numfmt --header --to=si < h", "numfmt --header=2 --to=si < h", "numfmt --invalid=ignore x 5", "numfmt --invalid=fail x 5", "numfmt --invalid=warn x 5", "numfmt < bad", "numfmt --invalid=fail < bad", "numfmt --grouping 1000000", "numfmt --from-unit=512 --to=iec 4", "numfmt --to-unit=1024 2048", "numfmt --to-unit=K 2000", "numfmt --to-unit=Ki 2048", "numfmt 1K", "numfmt --to=si 1.5", "numfmt -- -5", "numfmt --to=si --field=- '1000 2000'", "numfmt --field=1,3 --to=si '1000 2000 3000'", "numfmt --field=2- --to=si '1000 2000 3000'", "numfmt ' 5'", "numfmt --to=si '   5000'", "numfmt 1e3", "numfmt 0x1", "numfmt", "numfmt --to=si", "numfmt 12345678901234567890123", "numfmt --to=si 12345678901234567890", "numfmt --to=zz 1", "numfmt 5x", "numfmt --from=iec 5x", "numfmt --from=si 1Ki", "numfmt ''", "numfmt 1,5", "numfmt 1..2", "numfmt 1.", "numfmt .5", "numfmt --format=%d 5", "numfmt --format=5 5", "numfmt --format=%f%f 5", "numfmt --round=nearest --to=iec 1535 1537", "numfmt --to=iec 0.5 999 1023.5 10239 1048575", "numfmt --from=si 1.23456K", "numfmt --to=si 9.99 99.9 9999 99999 999.9", "numfmt 3.14", "numfmt --padding=0 5", "numfmt --field=0 5", "numfmt --to=iec 9007199254740993", "numfmt 999999999999999999", "numfmt 1000000000000000000", "numfmt --from=iec 1E", "numfmt --round=x 1", "numfmt --debug 5", "numfmt --to=iec 1073741824 1099511627776 1125899906842624", "numfmt --from=iec 1G 1T 1P", "numfmt --from=si --to=iec 1M", "numfmt '5 K' --from=si", "numfmt --from=auto '5'"},
	})
}
