#### posix special builtin errors exit
bash --posix -c 'export 1a; echo not
'; echo $?
#### posix readonly assign exits
bash --posix -c 'readonly x=1; x=2; echo not
'; echo $?
#### posix unset readonly
bash --posix -c 'readonly x; unset x; echo not $?
'; echo $?
#### posix shift too many
bash --posix -c 'set -- a; shift 5; echo $?
'; echo $?
#### posix . missing
bash --posix -c '. /nope/x; echo not
'; echo $?
#### posix command prefix
bash --posix -c 'command . /nope/x; echo ok $?; command export 1a; echo ok $?; command exec nosuchcmd; echo ok $?
'; echo $?
#### posix redir on special
bash --posix -c ': > /nope/x; echo not
'; echo $?
#### posix redir exec
bash --posix -c 'exec 3< /nope; echo not
'; echo $?
#### posix assign persists
bash --posix -c 'x=1 :; echo $x; y=2 true; echo ${y-un}; z=3 export q=1; echo $z; a=1 eval '\''echo $a'\''; echo $a; f() { :; }; b=1 f; echo ${b-un}
'; echo $?
#### posix function name special
bash --posix -c 'eval() { echo f; }; echo $?
'; echo $?
#### posix aliases on
bash --posix -c 'alias x='\''echo A'\''
x
'; echo $?
#### posix tilde in assignment
bash --posix -c 'HOME=/h; export A=~/b; echo $A; readonly B=~/c; echo $B; echo C=~/d
'; echo $?
#### posix arithmetic
bash --posix -c 'x=010; echo $((x)) $((0x10)); echo $((1 + 1))
'; echo $?
#### posix syntax err
bash --posix -c 'eval '\''if'\''; echo not
'; echo $?
#### posix expansion error
bash --posix -c 'echo ${x:?bad}; echo not
'; echo $?
#### posix set -e
bash --posix -c 'set -e; (exit 3); echo not
'; echo $?
#### posix trap signals
bash --posix -c 'trap '\''echo x'\'' INT; trap; trap - INT; trap -p; trap '\''e'\'' SIGINT; echo $?; kill -l 2; kill -l INT; 
'; echo $?
#### posix test
bash --posix -c '[ a = a -a b = b ]; echo $?; test -a x; echo $?
'; echo $?
#### posix printf
bash --posix -c 'printf '\''%d\n'\'' "'\''a"; printf '\''%s %s\n'\'' a; printf '\''%b\n'\'' '\''a\0101'\''
'; echo $?
#### posix export -p
bash --posix -c 'x=1; export x y='\''a b'\''; export -p | grep -E '\'' (x|y)'\''; readonly z=1; readonly -p | grep z=; set | grep ^y=; alias q='\''a b'\''; alias
'; echo $?
#### posix getopts
bash --posix -c 'while getopts a:b o -a 1 -b -c; do echo "$o $OPTARG"; done
'; echo $?
#### posix read
bash --posix -c 'echo '\''a\b c'\'' | { read x y; echo "$x|$y"; }; echo "a b" | { read -r x; echo "$x"; }; read <<E
x
E
echo $? $REPLY
'; echo $?
#### posix umask
bash --posix -c 'umask 022; umask; umask -S; umask g+w; umask
'; echo $?
#### posix here
bash --posix -c 'cat <<E
$((1+1)) `echo a` \$x
E
cat <<'\''E'\''
$x
E
'; echo $?
#### posix wait jobs
bash --posix -c 'sleep 0.1 & wait $!; echo $?; jobs; (exit 3) & wait $!; echo $?
'; echo $?
#### posix case
bash --posix -c 'case a in a) echo 1;; esac; case x in (x) echo 2; esac
'; echo $?
#### posix for
bash --posix -c 'for i do echo $i; done; set -- a b; for i do echo $i; done; for i in a b
do echo $i; done
'; echo $?
#### posix function
bash --posix -c 'f() { echo $# $1; return 3; }; f a b; echo $?; f () (echo sub); f
'; echo $?
#### posix pattern
bash --posix -c 'x=a.b.c; echo ${x%.*} ${x%%.*} ${x#*.} ${x##*.} ${#x}; echo ${y:-d} ${y-d} ${y:=s} ${y:+p}
'; echo $?
#### posix ifs
bash --posix -c 'IFS=:; x=a:b::c; for i in $x; do echo "[$i]"; done; set -- $x; echo $#; echo "$*"; unset IFS; echo $x
'; echo $?
#### posix exec
bash --posix -c 'exec echo replaced; echo not
'; echo $?
#### posix set
bash --posix -c 'set -a; q=1; env | grep ^q=; set +a; set -f; echo *; set +f; set -u; (echo $nope); echo $?; set +u; set -C; echo a > f; echo b > f; echo $?; set +C; set -v
echo v
set +v; set -x; echo x; set +x; set -- -a b; echo $1; set -o | wc -l; set +o | head -3
'; echo $?
