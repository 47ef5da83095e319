package dump_test

import (
	"strings"
	"testing"

	"agentrun.dev/command"
	"agentrun.dev/command/commandtest"
)

func TestHexdump(t *testing.T) {
	h := "hello world, this is\x00\x01\x02 a test\n\xff\xfe" + strings.Repeat("\x00", 64)
	commandtest.Run(t, command.NewSet(nil), commandtest.Table{
		Setup: []string{"f h " + h, "f u \x00\x07\x1f\x7f\x80\x20A", "f e ", "f ff # c\n\"%08.8_ax  \" 8/1 \"%02x \" \"\\n\"\n", "f abc abc"}, Stdin: "standard input\n",
		Lines: []string{"hexdump h", "hexdump", "hexdump -b h", "hexdump -c h", "hexdump -C h", "hexdump -d h", "hexdump -o h", "hexdump -x h", "hexdump -v h", "hexdump -n 5 -C h", "hexdump -s 3 -C h", "hexdump -vC h", "hd h", "hd -v u", "hd", "hexdump -C e", "hexdump e", "hexdump -C abc", "hexdump -o -x u", "hexdump -C u abc", "hexdump -C nope", "hexdump -C nope u", "hexdump -n 0 -C h", "hexdump -s 100 -C u", "hexdump -s 0x2 -n 1k -C u", "hexdump -n x u", "hexdump -f ff u", "hexdump -f nope u", "hexdump -L u", "hexdump -Q",
			`hexdump -e '16/1 "%02x " "\n"' h`, `hexdump -e '4/1 "%02x" " "' -e '4/1 "%_p" "\n"' h`, `hexdump -e '"%08.8_ax  " 8/1 "%02X " "\n"' h`, `hexdump -e '1/4 "%d\n"' -n 10 h`, `hexdump -e '"%_u %_c|"' -n 20 h`, `hexdump -ve '1/1 "%.2x"' -n 4 h`, `hexdump -e '2/2 "%u " "\n"' -n 9 h`, `hexdump -e '"%_Ad\n"' -e '4/1 "%3d " "\n"' -n 6 h`, `hexdump -e '8/1 "%c" "\n"' -n 8 h`, `hexdump -e '1/1 "[%_u]"' u`, `hexdump -e '1/1 "[%_c]"' u`, `hexdump -e '"%5_u|%-5_c|"' u`, `hexdump -e '3 "a%1d"' u`, `hexdump -e '1/3 "%d"' u`, `hexdump -e '1/4 "%d %d"' u`, `hexdump -e '1/2 "%c"' u`, `hexdump -e '"%q"' u`, `hexdump -e '"%d' u`, `hexdump -e '1/x "%d"' u`, `hexdump -e x u`, `hexdump -e '"%s\n"' u`, `hexdump -e '4/2 "%04x " " |" ' -e '8/1 "%_p" "|\n"' h`, `hexdump -e '2 "%2.2s." "\n"' h`, `hexdump -e '/2 "%x\n"' u`, `hexdump -e '"x" "\n"' u`, `hexdump -e '1/4 "%_ad %x\n"' u`, `hexdump -e '1/8 "%g\n"' -n 8 h`, `hexdump -e '"%07.7_ax " 4/4 "%10i " "\n"' h`, `hexdump -e '1/1 "%02x" "\n"' abc`, `hexdump -ve '/1 "%02x "' abc`, `hexdump -e '"%x "' u`, `hexdump -v -e '1/1 "%u "' -e '1/1 "%c\n"' abc`},
	})
}
