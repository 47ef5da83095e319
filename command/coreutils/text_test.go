package coreutils_test

import (
	"testing"

	"agentrun.dev/command"
	"agentrun.dev/command/commandtest"
)

func TestText(t *testing.T) {
	commandtest.Run(t, command.NewSet(nil), commandtest.Table{Setup: []string{"f a one\ntwo\nthree\n", "f b 1\n2\n", "f n x\ny", "d d", "f sums ba1f2511fc30423bdbb183fe33f3dd0f  c\nbad line\n", "f c 123\n", "f e "}, Stdin: "Hello  World\nfoo bar\n", Lines: []string{
		"tr a-z A-Z", "tr -d l", "tr -s ' '", "tr -s l o", "tr -c a-z _", "tr -cd '[:alpha:]'", "tr '[:lower:]' '[:upper:]'", "tr -d '\\n'", "tr ' ' '\\n'", "tr abc x", "tr -t abc x", "tr 'a-c' '[x*]'", "tr o '[x*2]'", "tr -ds l o", "tr '\\141' b", "tr", "tr a", "tr -d", "tr -d a b", "tr a b c", "tr z-a x", "tr '[:foo:]' x", "tr a ''", "tr -s '[:space:]' ' '", "tr -sc '[:alnum:]' '\\n'", "tr '[=a=]' b", "tr lo '\\n-'", "tr a-", "tr -d a-", "tr '\\' x", "tr x '[:digit:]'", "tr -C a b", "tr '[a]' x", "tr -s ''", "tr eo --",
		"date -d @0", "date -u -d @0 +%F", "date -d '2024-01-02 03:04:05' +%s", "date -d 2024-02-30", "date -d nonsense", "date -I -d @0", "date -Iseconds -d @0", "date -Ins -d @0", "date -R -d @0", "date --rfc-3339=seconds -d @0", "date --rfc-3339=x -d @0", "date -r a +%s", "date -r nope", "date +x y", "date -d @0 x", "date -d '2024-01-31 +1 month' +%F", "date -f nope", "date -u -d 'TZ=\"EST5EDT\" 2024-01-01 00:00' +%s", "date --date=@86400 '+%Y/%m/%d %H:%M:%S'", "date -d @0 -r a", "date -I -R",
		"expr 1 + 2", "expr 2 '*' 3", "expr 7 / 2", "expr -7 % 3", "expr 1 / 0", "expr a + 1", "expr 1 '<' 2", "expr 10 '<' 9", "expr a '<' b", "expr a = a", "expr 1 '|' 2", "expr 0 '|' 2", "expr '' '|' ''", "expr 1 '&' 0", "expr abc : 'a\\(.\\)c'", "expr abc : ab", "expr abc : x", "expr abc : '\\(x\\)'", "expr length abc", "expr substr abcdef 2 3", "expr index abc cb", "expr match abc 'a.'", "expr ( 1 + 2 ) '*' 3", "expr", "expr 1 +", "expr ( 1", "expr 1 2", "expr 0", "expr ''", "expr 00", "expr -0", "expr + length", "expr 99999999999999999999 + 1", "expr 1 - 2", "expr 2 = 2.0", "expr ) 1", "expr a : '['", "expr 5 '>=' 5 '&' 3 != 4",
		"md5sum a", "md5sum", "md5sum a b", "md5sum nope a", "md5sum d", "md5sum -c sums", "md5sum --tag a", "md5sum -b a", "md5sum -z a", "sha1sum a", "sha256sum a", "sha512sum a", "sha224sum a", "sha384sum a", "b2sum a", "b2sum -l 256 a", "md5sum -c nope", "md5sum -c a", "md5sum --status -c sums", "md5sum -w -c sums", "md5sum --strict -c sums", "md5sum --ignore-missing -c sums", "sha1sum -c sums",
		"base64", "base64 a", "base64 -w 4 a", "base64 -w0 a", "base64 -d a", "base64 -di a", "base64 nope", "base64 e", "base64 a b", "base64 -w x", "base32 a", "base32 -d a", "base32",
		"paste a b", "paste -d, a b", "paste -s a", "paste -s -d, a b", "paste - -", "paste -d '\\n' a b", "paste -d ',:' a b n", "paste a nope", "paste -s e", "paste -d '\\0' a b", "paste n b", "paste -s -d '' a", "paste -d '\\' a b", "paste",
		"tac a", "tac n", "tac a n", "tac", "tac -s o a", "tac -b -s o a", "tac nope", "tac -r -s '[ne]' a", "rev a", "rev n", "rev nope", "rev",
		"xargs", "xargs echo x", "xargs -n1", "xargs -n 2 echo", "xargs -I{} echo [{}]", "xargs -i echo {} {}", "xargs -L1", "xargs -d '\\n' echo", "xargs -d , echo", "xargs -t echo", "xargs false", "xargs nocommand", "xargs -n x", "xargs -n 0", "xargs -r < e", "xargs < e", "xargs -0 echo", "xargs -P2 -n1 true", "xargs -a a echo", "xargs -s 10 echo", "xargs -E foo", "xargs -I x echo x", "xargs -l echo"}})
	commandtest.Run(t, command.NewSet(nil), commandtest.Table{Stdin: "a 'b c' \"d\"\\ e\nx\\y\n", Lines: []string{"xargs -n1 echo", "xargs", "xargs -I{} echo '<{}>'", "xargs -0 -n1 echo"}})
	commandtest.Run(t, command.NewSet(nil), commandtest.Table{Stdin: "it's\n", Lines: []string{"xargs", "xargs -d '\\n'"}})
}
