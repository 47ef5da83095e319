package posix

const table = `
= alias
alias NAME=VALUE :: alias x='echo hi'; alias x => x='echo hi'
alias of an unset name :: alias nope 2>/dev/null => [1]
= ar ! no compiler, no object files
= asa
carriage controls :: printf ' one\n0two\n+over\n' | asa => one\n\ntwo\rover
= at ! no daemon runs jobs later; sleep in the background, or the host's scheduler
= awk
-F :: echo a:b | awk -F: '{print $2}' => b
-v :: awk -v x=3 'BEGIN{print x*2}' => 6
-f :: echo 'BEGIN{print "f"}' >p; awk -f p => f
var=value operand :: echo 1 >f; awk '{print x}' x=7 f => 7
getline and system :: awk 'BEGIN{"echo hi"|getline l; print l; system("echo s")}' => hi\ns
ARGV, ENVIRON :: V=e awk 'BEGIN{print ARGV[1], ENVIRON["V"]}' a => a e
user functions :: awk 'function f(n){return n<2?1:n*f(n-1)} BEGIN{print f(5)}' => 120
printf, substr, split, sub, gsub, match :: awk 'BEGIN{printf "%05.1f|%s|%d\n",3.14159,substr("hello",2,3),split("a,b",q,","); s="aaa"; gsub(/a/,"b",s); print s, match("xay",/a/), RSTART, RLENGTH}' => 003.1|ell|2\nbbb 2 2 1
= basename
STRING :: basename /usr/lib/x.c => x.c
STRING SUFFIX :: basename /usr/lib/x.c .c => x
/ :: basename / => /
= batch ! no daemon runs jobs later
= bc
arithmetic with scale :: echo 'scale=5; 2/3' | bc => .66666
-l :: echo 'e(1)' | bc -l => 2.71828182845904523536
ibase, obase :: echo 'obase=16;255;obase=10;ibase=2;101' | bc => FF\n5
define, auto, if, while, for :: printf 'define f(n){\nauto s,i\nfor(i=1;i<=n;i++)s+=i\nreturn(s)\n}\nf(10)\n' | bc => 55
arrays, length, sqrt, scale() :: echo 'a[3]=5;a[3];length(1234);scale(1.25);sqrt(49)' | bc => 5\n4\n2\n7
= bg
bg %JOB :: set -m; sleep 5 & kill -STOP %1; sleep .2; bg %1 >/dev/null; jobs | grep -c Running; kill %1 =~ (?m)^1$
= c99 ! no compiler; guests bring their own
= cal
month and year :: cal 2 2024 | head -3 | tail -1 =~ ^ +1 +2 +3 *$
year :: cal 2024 | head -1 =~ ^ +2024 *$
September 1752 :: cal 9 1752 | sed -n 3p =~ ^ +1 +2 14 15 16 *$
= cat
- operand :: echo a | cat - => a
-u :: echo a | cat -u => a
files in order :: echo a >f; echo b >g; cat f g => a\nb
missing file :: cat nope => [1] cat: nope: No such file or directory
= cd
DIRECTORY :: mkdir d; cd d; pwd => /w/d
- :: mkdir d; cd d; cd - => /w
-L, -P :: mkdir d; ln -s d l; cd -L l; pwd; cd ..; cd -P l; pwd => /w/l\n/w/d
CDPATH :: mkdir -p a/b; CDPATH=/w/a; cd b => /w/a/b
= cflow ! no compiler
= chgrp
-R :: mkdir d; touch d/f; chgrp -R 0 d && ls -ln d | tail -1 | awk '{print $4}' => 0
-h, -H, -L, -P :: touch f; ln -s f l; chgrp -h 0 l; chgrp -RH 0 l; chgrp -RL 0 l; chgrp -RP 0 l; echo $? => 0
= chmod
octal :: touch f; chmod 640 f; ls -l f | cut -c1-10 => -rw-r-----
symbolic :: touch f; chmod 600 f; chmod u+x,g=r,o-w f; ls -l f | cut -c1-10 => -rwxr-----
-R :: mkdir -p d/e; chmod -R go= d; ls -ld d/e | cut -c1-10 => drwx------
X, s, t and copies :: touch f; mkdir d; chmod 644 f; umask 022; chmod a+X f d; chmod g=u f; chmod u+s,+t d; ls -ld f d | cut -c1-10 => drwsr-xr-t\n-rw-rw-r--
= chown
OWNER:GROUP, -R, -h, -H, -L, -P :: touch f; ln -s f l; chown 0:0 f; chown -R 0 f; chown -h 0 l; chown -RH 0 l; chown -RL 0 l; chown -RP 0 l; echo $? => 0
= cksum
standard input :: printf 'hello\n' | cksum => 3015617425 6
= cmp
equal :: echo a >f; echo a >g; cmp f g; echo $? => 0
differing :: echo a >f; echo b >g; cmp f g => [1] f g differ: char 1, line 1 !! the message says byte, as GNU cmp's does
-l :: printf ab >f; printf ac >g; cmp -l f g => [1] 2 142 143
-s :: echo a >f; echo b >g; cmp -s f g => [1]
= comm
columns :: printf 'a\nb\n' >f; printf 'b\nc\n' >g; comm f g => a\n\t\tb\n\tc
-1 -2 -3 :: printf 'a\nb\n' >f; printf 'b\nc\n' >g; comm -12 f g; comm -3 f g => b\na\n\tc
= command
-v :: command -v cd => cd
-V :: command -V cd => cd is a shell builtin
-p :: PATH=/nowhere; command -p echo hi => hi
functions are passed by :: echo() { printf no; }; command echo yes => yes
= compress ! LZW is out of use; use gzip
= cp
file to file :: echo a >f; cp f g; cat g => a
files to directory :: mkdir d; touch f g; cp f g d; ls d => f\ng
-R :: mkdir -p d/e; touch d/e/f; cp -R d n; ls n/e => f
-p :: touch -d '2020-01-01T00:00:00Z' f; cp -p f g; ls -l g | grep -c 2020 => 1
-f, -i :: echo a >f; echo b >g; echo n | cp -i f g 2>/dev/null; cat g; cp -f f g; cat g => b\na
-H, -L, -P :: echo a >f; ln -s f l; cp -P l p; cp -L l q; cp -RH l r; ls -l p q r | cut -c1 => l\n-\n-
= crontab ! no daemon runs jobs later
= csplit
/RE/ and number :: printf '1\n2\n3\n4\n' >f; csplit f /2/ 4; cat xx01 => 2\n4\n2\n2\n3
-f, -k, -n, -s :: printf '1\n2\n3\n' >f; csplit -s -k -f p -n 3 f 2 9 2>/dev/null; ls p* => p000\np001
{N}, %RE%, offsets :: printf 'a\nb\na\nc\n' >f; csplit -s f /a/+1 {1}; ls xx* | wc -l; csplit -s f %c%; cat xx00 => 3\nc
= ctags ! no compiler; editors bring their own
= cut
-b, -n, -c :: echo hello | cut -b 2-3; echo hello | cut -c 1,5; echo hello | cut -n -b 1-2 => el\nho\nhe
-d, -f, -s :: printf 'a:b\nx\n' | cut -d: -f2; printf 'a:b\nx\n' | cut -s -d: -f1 => b\nx\na
= cxref ! no compiler
= date
+FORMAT :: TZ=UTC0 date -d @0 +%Y-%m-%dT%H:%M:%S => 1970-01-01T00:00:00
-u :: date -u +%Z => UTC
all conversions of XCU :: date -u -d @86400 '+%a %A %b %B %C %d %D %e %h %H %I %j %m %M %n%p %r %S %t%T %u %U %V %w %W %y %Y %Z %%' => Fri Friday Jan January 19 02 01/02/70  2 Jan 00 12 002 01 00 \nAM 12:00:00 AM 00 \t00:00:00 5 00 01 5 00 70 1970 UTC %
= dd
if, of, bs, count, skip, seek :: printf abcdef >f; dd if=f of=g bs=2 skip=1 count=1 2>/dev/null; cat g => cd
conv=ucase,lcase,swab,sync,notrunc,noerror :: printf ab | dd conv=ucase 2>/dev/null; printf abcd | dd conv=swab 2>/dev/null => ABbadc
ibs, obs, cbs, conv=block,unblock,ascii,ebcdic :: printf 'a\nb\n' | dd cbs=3 conv=block 2>/dev/null | od -c | head -1 =~ a +b
= delta ! SCCS is out of use; git
= df
-k :: df -k / | head -1 =~ ^Filesystem +1K-blocks
-P :: df -P / | head -1 =~ ^Filesystem +1024-blocks +Used Available Capacity Mounted on$
-t :: df -t tmpfs / | wc -l => 2
= diff
normal :: echo a >f; echo b >g; diff f g => [1] 1c1\n< a\n---\n> b
-b :: echo 'a  b' >f; echo 'a b' >g; diff -b f g; echo $? => 0
-c, -C :: echo a >f; echo b >g; diff -c f g | sed -n 3,5p; diff -C 1 f g | wc -l => ***************\n*** 1 ****\n! a\n7
-e :: echo a >f; echo b >g; diff -e f g => [1] 1c\nb\n.
-f :: echo a >f; echo b >g; diff -f f g => [1] c1\nb\n.
-r :: mkdir d e; echo a >d/f; echo b >e/f; diff -r d e => [1] diff -r d/f e/f\n1c1\n< a\n---\n> b
-u, -U :: echo a >f; echo b >g; diff -u f g | tail -3; diff -U 0 f g | tail -2 => @@ -1 +1 @@\n-a\n+b\n-a\n+b
= dirname
STRING :: dirname /usr/lib/x; dirname x; dirname / => /usr/lib\n.\n/
= du
-a :: mkdir d; touch d/f; du -a d | wc -l => 2
-k, -s :: mkdir d; du -ks d =~ ^\d+\td$
-H, -L, -x :: mkdir d; ln -s d l; du -sH l; du -sL l; du -sx d =~ l\n.*l\n.*d
= echo
STRING... :: echo a b => a b
backslash escapes (XSI) :: echo 'a\tb\c' => a\tb !! bash's echo, as sh here is bash in its POSIX mode; xpg_echo turns the escapes on
= ed
-s, a, w, q :: printf 'a\nhi\n.\nw f\nq\n' | ed -s; cat f => hi
-p :: printf 'q\n' | ed -p '> ' =~ ^> $
addresses, s, g, v, m, t, j, k, n, l :: printf '1\n2\n3\n' >f; printf 'g/2/s//two/\n1m$\n1t.\n,n\nQ\n' | ed -s f => 1\ttwo\n2\t3\n3\t1\n4\ttwo
u, d, i, c, r, e, f, h, H, =, ! :: printf '1\n2\n' >f; printf '1d\nu\n=\n1i\n0\n.\nf\nfoo\nh\n!echo x\nQ\n' | ed -s f => [1] 2\nf\n?\nUnexpected command suffix\nx
= env
NAME=VALUE COMMAND :: env A=1 sh -c 'echo $A' => 1
-i :: env -i A=1 env => A=1
= ex ! ed edits scripts, sed streams; no screen editor is built in
= expand
-t :: printf 'a\tb\n' | expand -t 4; printf 'a\tb\tc\n' | expand -t 2,6 => a   b\na b   c
= expr
arithmetic, comparison :: expr 2 + 3 \* 4; expr 5 \> 3; expr a = a => 14\n1\n1
: :: expr abc : 'a\(.*\)'; expr abc : '.*' => bc\n3
| and & :: expr '' \| x; expr 1 \& 0 => [1] x\n0
= false
false :: false => [1]
= fc
-l :: true =>
-s :: true =>
= fg
fg %JOB :: set -m; sleep .1 & fg %1 => sleep .1
= file
-h, -i, -L :: echo text >f; file f; file -h f => f: ASCII text\nf: ASCII text
= find
-name, -type, -print :: mkdir d; touch d/f; find d -name f -type f -print => d/f
-H, -L, -path, -prune, -depth :: mkdir -p d/e; find -H d -path d/e -prune -o -print; find d -depth => d\nd/e\nd
-exec ; and {} + :: touch a b; find . -type f -exec echo {} + | wc -w; find a -exec echo x{} \; => 2\nxa
-ok :: touch a; echo n | find a -ok rm {} \; 2>/dev/null; ls => a
-perm, -links, -user, -group, -nouser, -size, -atime, -mtime, -ctime, -newer, -xdev :: touch a; chmod 600 a; find a -perm 600 -links 1 -size 0 -mtime -1 -atime -1 -ctime -1 -xdev; find a -perm -400 ! -newer a => a\na
= fold
-w, -s, -b :: echo 'hello world' | fold -w 8; echo 'hello world' | fold -s -w 8; echo hello | fold -b -w 3 => hello wo\nrld\nhello \nworld\nhel\nlo
= fort77 ! no compiler
= fuser ! look at /proc/PID/fd
= gencat ! no message catalogues: messages are in English
= get ! SCCS is out of use; git
= getconf
system variable :: getconf ARG_MAX => 2097152
path variable :: getconf NAME_MAX / => 255
-v :: getconf -v POSIX_V7_LP64_OFF64 LONG_BIT => 64
= getopts
getopts :: set -- -a -b x y; while getopts ab: o; do echo $o $OPTARG; done; shift $((OPTIND-1)); echo $1 => a\nb x\ny
= grep
basic :: printf 'a\nb\n' | grep a => a
-E, -F :: printf 'a\nb\nc\n' | grep -E 'a|b'; echo 'a.b' | grep -F . => a\nb\na.b
-c, -l, -q, -v, -n, -i, -s, -x :: printf 'a\nB\n' >f; grep -c a f; grep -l a f; grep -q a f; echo $?; grep -v a f; grep -n B f; grep -i b f; grep -s x nope; grep -x a f => 1\nf\n0\nB\n2:B\nB\na
-e, -f :: printf 'a\nb\n' >f; echo b >p; grep -e a -e b f; grep -f p f => a\nb\nb
exit status :: echo a | grep b => [1]
= hash
hash, -r :: hash ls; hash -r; hash; echo $? => 0
= head
-n :: printf '1\n2\n3\n' | head -n 2 => 1\n2
several files :: echo a >f; echo b >g; head f g => ==> f <==\na\n\n==> g <==\nb
= iconv
-f, -t :: printf '\344' | iconv -f ISO-8859-1 -t UTF-8 => ä
-c, -s :: printf 'a\303\244' | iconv -c -f UTF-8 -t ASCII => a
-l :: iconv -l | grep -c UTF-8 =~ ^[1-9]
= id
-u, -g, -G, -n, -r :: id -u; id -g; id -G; id -ur => 0\n0\n0\n0
full form :: id =~ ^uid=0.* gid=0
= ipcrm ! no System V objects
= ipcs
no objects :: ipcs -q -m -s -a | grep -c Queues => 1
= jobs
-l, -p :: sleep 1 & jobs -p >/dev/null; jobs | grep -c sleep; kill $! => 1
= join
default :: printf '1 a\n2 b\n' >f; printf '1 x\n3 y\n' >g; join f g => 1 a x
-a, -v, -e, -o :: printf '1 a\n2 b\n' >f; printf '1 x\n3 y\n' >g; join -a 1 -e - -o 0,1.2,2.2 f g; join -v 2 f g => 1 a x\n2 b -\n3 y
-t, -1, -2 :: echo a:1 >f; echo 1:b >g; join -t : -1 2 -2 1 f g => 1:a:b
= kill
-s, -l :: kill -l 9; sleep 5 & kill -s TERM $!; wait $!; echo $? => KILL\n143
-NAME, -NUMBER :: sleep 5 & kill -9 $!; wait $!; echo $? =~ 137
= lex ! no compiler
= link
link :: echo a >f; link f g; cat g => a
= ln
hard :: echo a >f; ln f g; cat g => a
-s, -f :: echo a >f; touch g; ln -sf f g; cat g => a
-L, -P :: echo a >f; ln -s f l; ln -L l h; ln -P l s; ls -l h s | cut -c1 => -\nl
= locale
locale, -a :: locale | head -1; locale -a | head -1 => LANG=\nC
charmap, -k :: locale charmap; locale -k charmap => UTF-8\ncharmap="UTF-8"
= localedef ! one locale: C.UTF-8
= logger
message :: logger hello; echo $? => 0
= logname
logname :: logname 2>/dev/null =~ ^[a-z]*$
= lp ! no printer
= ls
plain, -1, -a, -A :: touch b a .h; ls; ls -A => a\nb\n.h\na\nb
-C, -m, -x :: touch a b; ls -C; ls -m; ls -x => a  b\na, b\na  b
-d, -F, -p :: mkdir d; ls -d d; ls -F; ls -p => d\nd/\nd/
-l, -n, -g, -o, -i, -s, -q :: touch f; ls -n f | awk '{print $1,$3,$4}'; ls -o f | wc -w; ls -g f | wc -w; ls -s f; ls -i f | wc -w; ls -q => -rw-r--r-- 0 0\n8\n8\n0 f\n2\nf
-r, -t, -u, -c, -S, -f, -k :: echo a >a; echo bb >b; touch -d 2020-01-01 a; ls -r; ls -t; ls -S; ls -f | wc -l; ls -tu | head -1 =~ ^b\na\nb\na\nb\na\n
-R, -H, -L :: mkdir d; touch d/f; ls -R; ln -s d l; ls -H l; ls -L l => .:\nd\n\n./d:\nf\nf\nf
= m4 ! not built in
= mailx ! no mail
= make
targets, prerequisites, recipes :: printf 'all: a b\n\t@cat a b\na:\n\t@echo one >a\nb: a\n\t@echo two >b\n' >Makefile; make; make => one\ntwo\none\ntwo
-f, - :: printf 'x: ; @echo hi\n' >m; make -f m; make -f - <m => hi\nhi
-n, -s :: printf 'x:\n\techo hi\n' >Makefile; make -n; make -s => echo hi\nhi
-i, -k, - prefix :: printf 'x: y z\ny:\n\tfalse\nz:\n\t@echo z\n' >Makefile; make -k 2>/dev/null | tail -1; make -i 2>/dev/null | tail -1; printf 'x:\n\t-@false\n\t@echo on\n' >Makefile; make 2>/dev/null => z\nz\non
-q, -t :: printf 'x: y\n\tcp y x\n' >Makefile; echo 1 >y; make -q; echo $?; make -t; make -q; echo $? => 1\ntouch x\n0
-e, macros, command line :: printf 'A = file\nx:\n\t@echo $(A)\n' >Makefile; make; A=env make; A=env make -e; make A=line => file\nfile\nenv\nline
-p, -r :: printf 'A = b\n' >Makefile; make -p 2>/dev/null | grep -c '^A = b'; make -r x.o 2>/dev/null; echo $? => 1\n2
-S :: printf 'x: y z\ny:\n\t@false\nz:\n\t@echo z\n' >Makefile; make -k -S 2>/dev/null | grep -c z; true => 0
$@ $< $? $* $% D F :: mkdir d; touch d/a.c; printf 'd/a.o: d/a.c\n\t@echo $@ $< $? $(@D) $(@F)\n.SUFFIXES: .c .q\n.c.q:\n\t@echo $* $<\n' >Makefile; make; make d/a.q => d/a.o d/a.c d/a.c d a.o\nd/a d/a.c
inference rules, .SUFFIXES :: printf '.SUFFIXES: .in .out\n.in.out:\n\t@cp $< $@\n' >Makefile; echo x >f.in; make f.out; cat f.out => x
.PHONY .SILENT .IGNORE .PRECIOUS .DEFAULT .POSIX :: printf '.POSIX:\n.SILENT: x\n.IGNORE: x\n.DEFAULT:\n\t@echo d $@\nx: y\n\tfalse\n\techo x\n' >Makefile; make 2>/dev/null => d y\nx
include and assignments with += ?= ::= != :: echo 'I = inc' >i.mk; printf 'include i.mk\nA ::= a\nA += b\nB ?= c\nC != echo s\nx: ; @echo $(I) $(A) $(B) $(C)\n' >Makefile; make => inc a b c s
subst references, $$ :: printf 'S = a.c b.c\nx: ; @echo $(S:.c=.o) $$((1+1))\n' >Makefile; make => a.o b.o 2
MAKEFLAGS, $(MAKE) :: printf 'x:\n\t@$(MAKE) y\ny:\n\techo hi\n' >Makefile; make -s --no-print-directory => hi
= man
page of a command :: man true 2>&1 | head -1 | cut -c1-6 => Usage:
-k :: man -k mkdir => mkdir (1)
no page :: man nosuch 2>/dev/null => [16]
= mesg
status :: mesg =~ [2]
= mkdir
-m, -p :: mkdir -p a/b; mkdir -m 700 c; ls -ld c | cut -c1-10; ls a => drwx------\nb
= mkfifo
-m :: mkfifo -m 600 p; ls -l p | cut -c1-10 => prw-------
= more
not at a terminal :: echo a >f; more f </dev/null | tail -1 => a
= mv
rename :: echo a >f; mv f g; cat g => a
-f, -i :: echo a >f; echo b >g; echo n | mv -i f g 2>/dev/null; cat g; mv -f f g; cat g => b\na
into directory :: mkdir d; touch f g; mv f g d; ls d => f\ng
= newgrp ! a process stays in its group
= nice
-n :: nice -n 5 echo hi => hi
= nl
-b, -d, -f, -h, -i, -l, -n, -p, -s, -v, -w :: printf 'a\n\nb\n' | nl -ba -i2 -nrz -s: -v10 -w3 => 010:a\n012:\n014:b
= nm ! no object files
= nohup
COMMAND :: nohup echo hi 2>/dev/null => hi
= od
-A, -j, -N, -t :: printf abcdef | od -An -tx1 -j1 -N3 =>  62 63 64
-b, -c, -d, -o, -s, -x, -v :: printf ab | od -c; printf ab | od -An -b; printf ab | od -An -x => 0000000   a   b\n0000002\n 141 142\n 6261
= paste
-d, -s :: printf '1\n2\n' >f; printf 'a\nb\n' >g; paste f g; paste -d: f g; paste -s -d, f => 1\ta\n2\tb\n1:a\n2:b\n1,2
= patch
-p, -i, unified :: printf '1\n2\n' >f; printf -- '--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n 1\n-2\n+two\n' >p; patch -p1 -i p; cat f => patching file f\n1\ntwo
-b, -c, -d, -D, -e, -l, -N, -n, -o, -R, -r :: printf '1\n2\n' >f; printf '2c2\n< 2\n---\n> two\n' >p; patch -n -o g f p >/dev/null; cat g; patch -b f p >/dev/null; ls f.orig; patch -R f p >/dev/null; cat f => 1\ntwo\nf.orig\n1\n2
= pathchk
-p, -P :: pathchk -p 'a b'; pathchk ok; echo $? =~ nonportable character
= pax
-w, -r, -f, -v :: echo a >f; pax -w -f x.tar f; rm f; pax -r -f x.tar; cat f => a
list :: echo a >f; pax -w f | pax => f
-x, -s, -p, -k, -u, -n, -c, -d, -i, -a, -b, -H, -L, -t, -X, -o :: mkdir d; echo a >d/f; pax -w -x cpio -s ,d,e, d | pax => e\ne/f
copy mode :: mkdir d e; echo a >d/f; (cd d; pax -rw . ../e); cat e/f => a
= pr
header :: echo a >f; pr -h title f | sed -n 3p =~ title +Page 1$
-t -COLUMNS :: printf '1\n2\n3\n4\n' | pr -t -2 -l 2 | expand => 1                                   3\n2                                   4
-m, -s :: echo a >f; echo b >g; pr -m -t -s: f g => a:b
-n :: echo x | pr -t -n =>     1\tx
-d, -o :: printf 'a\nb\n' | pr -t -d -o 2 =>   a\n\n  b\n\n
= printf
conversions :: printf '%d %s %c %5.2f %x %o %e %%\n' 5 abc xyz 3.14159 255 8 1.5 => 5 abc x  3.14 ff 10 1.500000e+00 %
%b, reuse of the format :: printf '%b-' 'a\tb' c => a\tb-c-
= prs ! SCCS is out of use; git
= ps
-e, -A, -o :: ps -A -o pid= | wc -l; ps -eo comm= | grep -c '^ps' =~ ^\d+\n1$
-f, -l, -a, -d, -g, -G, -n, -p, -t, -u, -U :: ps -f -p $$ | head -1; ps -l -p $$ | head -1 =~ ^UID +PID.*\nF S +UID
= pwd
-L, -P :: mkdir d; ln -s d l; cd l; pwd -L; pwd -P => /w/l\n/w/d
= qalter ! no batch queues (obsolescent)
= read
read -r :: printf 'a:b\n' | { IFS=: read -r x y; echo $y $x; } => b a
= renice
-n, -p, -g, -u :: renice -n 5 -p $$ >/dev/null; echo $? => 0
= rm
-f, -i, -r, -R :: mkdir -p d/e; touch f; rm -r d; rm -f f nope; ls => 
= rmdel ! SCCS is out of use; git
= rmdir
-p :: mkdir -p a/b; rmdir -p a/b; ls =>
= sact ! SCCS is out of use; git
= sccs ! SCCS is out of use; git
= sed
-n, -e, -f :: printf '1\n2\n' | sed -n -e 2p; echo s/1/x/ >p; echo 1 | sed -f p => 2\nx
commands :: printf 'a\nb\nc\n' | sed -e '1a\' -e 'x' -e '2d' -e '3s/c/C/;3h;3G' -e '$!y/a/z/' => z\nx\nC\nC
labels, n, N, D, P, w, r, l, q, = :: printf '1\n2\n3\n' | sed -n ':a;N;$!ba;s/\n/-/gp;=;l' => 1-2-3\n3\n1-2-3$
= sh
-c, arguments :: sh -c 'echo $0 $1' a b => a b
-e, -u, -x, -v, -n, -f, -C, -a, -m, -o :: sh -ec 'false; echo no'; sh -uc 'echo $x' 2>/dev/null; sh -nc 'echo no'; sh -xc 'echo hi' 2>&1; set -C; echo a >f; (echo b >f) 2>/dev/null; cat f => + echo hi\nhi\na
parameter expansion :: x=a.b.c; echo ${x%%.*} ${x##*.} ${#x} ${y:-d} ${x:+alt} => a c 5 d alt
arithmetic :: echo $((2+3*4)) $((7/2)) $((0x10|1)) $((x=5)) $x => 14 3 17 5 5
= sleep
SECONDS :: sleep 0; echo $? => 0
= sort
plain, -r, -n, -u, -f, -d, -i, -b :: printf '10\n9\n9\n' | sort; printf '10\n9\n9\n' | sort -nu; printf 'b\nA\n' | sort -f => 10\n9\n9\n9\n10\nA\nb
-k, -t, -o, -m, -c, -C :: printf 'a:2\nb:1\n' >f; sort -t: -k2,2n f; sort -o f -r f; cat f; sort -C f; echo $? => b:1\na:2\nb:1\na:2\n1
= split
-l, -a, -b :: printf '1\n2\n3\n' | split -l 2 -a 3 - p; ls; printf abcdef | split -b 4 - q; cat qab => paaa\npaab\nef
= strings
-n, -t, -a :: printf 'ab\001abcdef\002' >f; strings -n 4 -t d f =>       3 abcdef
= strip ! no object files
= stty
-a, -g outside of a terminal :: stty -a </dev/null =~ [1] nappropriate ioctl
= tabs
tabs outside of a terminal :: tabs -8 >/dev/null; echo $? => 0
= tail
-n, -c, +N :: printf '1\n2\n3\n' | tail -n 1; printf '1\n2\n3\n' | tail -n +2; printf abc | tail -c 1 => 3\n2\n3\nc
-f :: echo a >f; timeout 0.3 tail -f f => [124] a
= talk ! one user
= tee
-a, -i :: echo a | tee f; echo b | tee -ai f >/dev/null; cat f => a\na\nb
= test
files :: touch f; mkdir d; test -e f -a -f f && test -d d && test ! -s f && [ -r f ] && [ -w f ] && echo ok => ok
strings and numbers :: [ a = a ] && [ a != b ] && [ -n x ] && [ -z '' ] && [ 1 -lt 2 ] && [ 2 -ge 2 ] && echo ok => ok
= time
-p :: time -p true =~ (?m)^real \d.*\nuser \d.*\nsys \d
= touch
-a, -m, -c, -t, -d, -r :: touch -t 202001020304.05 f; ls -l f | grep -c 2020; touch -c nope; ls nope 2>/dev/null; touch -r f g; ls -l g | grep -c 2020; touch -d 2019-01-01T00:00:00 f; ls -l f | grep -c 2019 => 1\n1\n1
= tput
clear, init, reset :: tput clear | od -An -c | head -1 =~ 033
= tr
-d, -s, -c, -C :: echo hello | tr a-y b-z; echo aabb | tr -s a; echo a1b2 | tr -d 0-9; echo a1 | tr -cd 0-9 => ifmmp\nabb\nab\n1
classes :: echo aB | tr '[:lower:]' '[:upper:]' => AB
= true
true :: true; echo $? => 0
= tsort
pairs :: echo 'a b b c' | tsort => a\nb\nc
= tty
not a tty :: tty </dev/null => [1] not a tty
= type
type :: type cd => cd is a shell builtin
= ulimit
-f :: ulimit -f => unlimited
= umask
octal, -S :: umask 027; umask; umask -S; umask u=rwx,go=; umask => 0027\nu=rwx,g=rx,o=\n0077
= unalias
-a :: alias x=y; unalias -a; alias =>
= uname
-a, -m, -n, -r, -s, -v :: uname -s; uname | wc -l => Linux\n1
= uncompress ! LZW is out of use
= unexpand
-a, -t :: printf '        a\n' | unexpand; printf 'a       b\n' | unexpand -a; printf '    a\n' | unexpand -t 4 => \ta\na\tb\n\ta
= unget ! SCCS is out of use; git
= uniq
-c, -d, -u, -f, -s :: printf 'a\na\nb\n' | uniq -c; printf 'a\na\nb\n' | uniq -d; printf 'a\na\nb\n' | uniq -u; printf '1 a\n2 a\n' | uniq -f 1; printf 'xa\nya\n' | uniq -s 1 =>       2 a\n      1 b\na\nb\n1 a\nxa
= unlink
unlink :: touch f; unlink f; ls =>
= uucp ! no modem; see the network policy
= uudecode
-o :: printf 'begin 644 x\n#86)C\n` + "`" + `\nend\n' | uudecode -o - => abc
= uuencode
-m :: printf abc | uuencode -m x | sed -n 2p => YWJj
= uustat ! no modem
= uux ! no modem
= val ! SCCS is out of use; git
= vi ! no screen editor is built in
= wait
wait PID :: (exit 3) & wait $!; echo $? => 3
= wc
-c, -l, -m, -w :: printf 'a b\nc\n' | wc; printf 'ä' | wc -m; printf 'a\n' | wc -c; printf 'a\n' | wc -l; printf 'a b' | wc -w =>       2       3       6\n1\n2\n1\n2
= what ! SCCS is out of use; git
= who
-m, -q, -T, -u, -H :: who; who -q =~ # users=0
= write ! one user
= xargs
-n, -L, -I, -t, -p, -s, -x, -E :: printf 'a b c\n' | xargs -n 2; printf 'a\nb\n' | xargs -I {} echo x{}; printf 'a\nb\n' | xargs -L 1 echo; echo a b | xargs -E b echo => a b\nc\nxa\nxb\na\nb\na
= yacc ! no compiler
= zcat
from gzip :: echo hi | gzip | zcat => hi
= break
break N :: for i in 1 2; do for j in 1 2; do break 2; done; done; echo $i$j => 11
= colon
colon :: : anything; echo $? => 0
= continue
continue :: for i in 1 2; do [ $i = 1 ] && continue; echo $i; done => 2
= dot
dot :: echo 'x=5' >f; . ./f; echo $x => 5
= eval
eval :: x='echo hi'; eval "$x" => hi
= exec
exec COMMAND, redirections :: exec 3>f; echo a >&3; exec 3>&-; cat f; exec echo b => a\nb
= exit
exit N :: exit 7 => [7]
= export
export, -p :: export X=1; sh -c 'echo $X'; export -p | grep -c 'X="*1' => 1\n1
= readonly
readonly, -p :: readonly R=1; (R=2) 2>/dev/null || echo refused => refused
= return
return N :: f() { return 4; }; f; echo $? => 4
= set
set --, set -o :: set -- a b; echo $2; set -o | grep -c '^noglob' => b\n1
= shift
shift N :: set -- a b c; shift 2; echo $1 => c
= times
times :: times =~ ^\d+m
= trap
trap EXIT, signals, - :: trap 'echo bye' EXIT; trap 'echo int' INT; kill -INT $$; trap - INT; exit 0 => int\nbye
= unset
-v, -f :: x=1; f() { :; }; unset -v x; unset -f f; echo ${x-gone}; command -v f => [1] gone
`
