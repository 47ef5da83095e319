#### printf
printf '%s %d %5d|%-5d|%05d %x %X %o %c %%\n' a 42 42 42 42 255 255 8 xyz; printf '%s\n' a b c; printf '%s-%s\n' 1 2 3; printf '%5.2f %e %g %g\n' 3.14159 1234.5 0.0001 1e10; printf '%b' 'a\tb\n' 'c\0101\n'; printf '%q\n' 'a b'; printf -v x '%03d' 7; echo $x; printf '%*d|%-*d|\n' 5 1 5 2; printf '%.3s|%10s|%-10s|\n' abcdef r l; printf '%d\n' "'a" 0x1f 010; printf 'no args %s %d\n'; printf '\x41\u00e9\n'; printf '%(%Y)T\n' 0; printf '%+d % d %#x %#o\n' 5 5 255 8; printf -- '-%s\n' x; printf '%d\n' abc 2>/dev/null; echo $?; printf '%i %u\n' -1 3; a=(1 2); printf '<%s>' "${a[@]}"; echo; printf -v arr[2] z; echo ${arr[2]}
printf '%u %d %x\n' 18446744073709551615 9223372036854775807 -1; printf '%u\n' -18446744073709551615 2>/dev/null
#### echo
echo -n a; echo -e 'b\tc\\d\x41\0101' ; echo -E 'a\nb'; echo -ne 'x\n'; echo -- x; echo -z; echo -e 'stop\cnot'; echo; echo "a  b" c; echo -nE 'q\n'; echo
#### read
printf 'a b c\n' | { read x y; echo "$x|$y"; }; printf 'l1\nl2\n' > f; { read a; read b; read c; echo "$a $b [$c] $?"; } < f; read -r x <<< 'a\b'; echo "$x"; read x <<< 'a\ b'; echo "$x"; read -d : x <<< 'p:q'; echo $x; read -n 2 x <<< abcd; echo $x; read -N 3 x <<< 'a b c'; echo "[$x]"; echo abc | { read -n1 a; read -n1 b; echo $b$a; }; read -t 0.01 x < /dev/null; echo $?; read -a arr <<< '1 2 3'; echo ${#arr[@]}; echo -n noeol | { read x; echo $? $x; }; printf 'x\0y\0' | while read -r -d '' v; do echo "v=$v"; done; read <<< '  keep  '; echo "[$REPLY]"; read -u 3 z 3<<< three; echo $z
#### mapfile
printf 'a\nb\nc' > f; mapfile -t m < f; declare -p m; mapfile n < f; echo ${#n[@]} "${n[0]}"; mapfile -t -s 1 -n 1 o < f; declare -p o; readarray -d : -t q <<< 'x:y'; echo ${#q[@]} ${q[0]}; mapfile -t -O 2 m < f; declare -p m
#### set and shift
set -- a b c; shift; echo $1 $#; shift 2; echo $#; shift; echo $?; set -- -x y; echo $1; set -u; echo $-; set +u; set -- ; echo $#; set a 'b c'; echo "$2"; (set -o nosuch) 2>/dev/null; echo $?; shopt -q extglob; echo $?; shopt -s extglob; shopt extglob; shopt -p nullglob; set -o noglob; [[ -o noglob ]] && echo on; set +o noglob; set -o; shopt; set +o
#### cd and pwd
mkdir -p a/b; cd a/b; echo ${PWD##*/} ${OLDPWD##*/} | wc -w; cd - >/dev/null; cd a; pushd b >/dev/null; dirs | wc -w; popd >/dev/null; echo ${PWD##*/}; cd /; cd tmp; pwd; cd ../usr; pwd; cd ./; pwd; cd /tmp/..; pwd; cd nonexist 2>/dev/null || pwd
#### type and command
type cd; type if; type -t cat; f() { echo x; }; type f; command -V f; alias ll='ls -l'; type -t ll; type nosuch 2>/dev/null; echo $?; declare -f f; command -v if cd f
#### alias
shopt -s expand_aliases
alias hi='echo hello' e='echo '
hi world
alias w=there
e w
unalias hi; hi 2>/dev/null; echo $?
alias
\e x 2>/dev/null; echo $?
alias loop='for i in 1 2; do'
loop echo $i; done
#### umask and ulimit
umask 022; umask; umask 027; umask; umask -S; umask u=rwx,g=rx,o=; umask; ulimit -f
#### let
let a=1+1 'b = a * 2'; echo $a $b; let 0; echo $?; let 'c=(1,2)'; echo $c
#### declare -f
f() { if [ $1 ]; then echo a; else echo b; fi; for i in 1 2; do echo $i; done; while read x; do :; done < /dev/null; case $1 in a|b) echo c;; *) ;; esac; (echo sub); { echo grp; } 2>&1; a=1 b=2 cmd; [[ a == b ]] && echo d || echo e; echo a | cat; echo "q $x" 'y'; }
declare -f f
g() { local x=$(echo a); return 3; }; declare -f g
#### unset
x=1 a=(1 2 3); unset x 'a[1]'; echo "[$x]" ${a[@]}; f() { :; }; unset -f f; type f 2>/dev/null; echo $?; readonly r=1; unset r 2>/dev/null; echo $?; unset nope; echo $?; g() { local x=1; unset x; echo "[$x]"; }; x=glob; g; echo $x; unset a; echo ${#a[@]}
#### special variables
echo $# $0 $?; set -- a b; echo "$*" "$@" $#; echo ${BASH_VERSION%%.*} ${#BASH_VERSINFO[@]} $UID | wc -w; echo $LINENO; f() { echo $LINENO ${FUNCNAME[0]} ${#FUNCNAME[@]}; }; f; echo x y; echo $_; RANDOM=5; a=$RANDOM b=$RANDOM; RANDOM=5; [ $a = $RANDOM ] && [ $b = $RANDOM ] && echo same; echo $a; [ $SECONDS -ge 0 ] && echo s; [ ${#EPOCHSECONDS} -ge 10 ] && echo e; echo $((BASHPID == $$)) $(( $(echo $BASHPID) == $$ )); SECONDS=100; [ $SECONDS -ge 100 ] && echo sec
#### env
x=1 bash -c 'echo $x'; export y=2; bash -c 'echo $y'; z=3; bash -c 'echo [$z]'; f() { bash -c 'echo $v'; }; v=4 f; export -n y; bash -c 'echo [$y]'; A=1 B=$A; echo $B; g() { echo fn; }; export -f g; bash -c g; export arr=(1 2); bash -c 'echo [$arr]'
#### strings and unicode
s='héllo wörld'; echo ${#s} ${s:1:4} ${s^^} ${s/ö/o}; for ((i=0;i<3;i++)); do echo "${s:i:1}"; done; [[ é == ? ]] && echo one; printf '%s|%5s|\n' é é; x=$'\xff'; echo ${#x}; echo ${s//[^a-z]/_}
