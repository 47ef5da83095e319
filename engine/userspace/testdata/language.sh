#### redirections on any descriptor
exec 3>out 4<>rw; echo three >&3; echo four >&4; exec 3>&-; cat out
echo err >&2 2>/dev/null; { echo a; echo b >&2; } 2>&1 | cat
exec {fd}>named; echo $((fd >= 10)); echo n >&$fd; exec {fd}>&-; cat named
cat 5<out <&5; echo x &>both; echo y &>>both; cat both; echo z >|both; cat both
while read -r l <&6; do echo "[$l]"; done 6<both
{ echo 1; echo 2; } > f; cat < f | { read a; read b; echo $b$a; }
#### here-documents
x=5; cat <<A; cat <<'B'; cat <<-C
$x $((x+1)) `echo q` "quoted" \$x \\ 'single'
A
$x $((x+1)) \$x
B
	tab $x
	  two
	C
cat <<< "here $x"; cat <<< 'a
b'
f() { cat <<E; }
in f $1
E
f 1; f 2
#### pipelines and statuses
false | true; echo $? ${PIPESTATUS[@]}
true | false | (exit 3); echo $? ${PIPESTATUS[*]}
set -o pipefail; (exit 2) | true; echo $?; set +o pipefail
! true; echo $?; ! false | false; echo $?
{ echo out; echo err >&2; } |& sort
echo a | { cat; echo b; } | while read l; do echo "<$l>"; done
shopt -s lastpipe; echo v | read w; echo "w=$w"
#### command and process substitution
echo $(echo a; echo b) "$(printf 'x\n\n\n')" `echo c`
cat <(echo 1) <(echo 2); while read l; do echo "+$l"; done < <(printf '1\n2\n')
x=$(exit 4); echo $?; y=$(echo $(echo $(echo deep))); echo $y
echo hi > >(cat > f3); wait; sleep 0.05; cat f3; echo "$(<f2)" 2>/dev/null; echo data > f2; echo "$(<f2)"
#### subshells keep their changes
x=1; (x=2; cd /; echo $x); echo $x; f() { echo f1; }; (f() { echo f2; }; f); f
(exit 3); echo $?; (set -e; false; echo no); echo $?
a=(1 2); (a+=(3); echo ${a[@]}); echo ${a[@]}; echo $BASH_SUBSHELL $(echo $BASH_SUBSHELL)
#### functions
f() { local x=$1 y; y=$((x*2)); echo $y $# "$@"; return $((x+1)); }; f 3 4; echo $?
g() { local a=1; h; echo "a=$a"; }; h() { a=2; echo in $FUNCNAME ${FUNCNAME[1]}; }; g; echo "a=$a"
fact() { if (( $1 <= 1 )); then echo 1; else echo $(( $1 * $(fact $(( $1 - 1 ))) )); fi; }; fact 6
function k { echo k "${@:2}" $*; }; k a b c; x=1 f 2 >/dev/null; echo "[$x]"
r() { for i in 1 2 3; do [ $i = 2 ] && return 5; done; }; r; echo $?
unset -f k; k 2>/dev/null || echo gone; declare -F f
#### arrays
a=(x 'y z' [5]=w); echo ${#a[@]} ${!a[@]} "${a[1]}" ${a[-1]}; a+=(q); echo ${!a[@]}
unset 'a[1]'; echo "${a[@]}" ${#a[5]}; b=("${a[@]}"); declare -p b
for i in "${a[@]}"; do echo "<$i>"; done; echo "${a[*]}"; IFS=,; echo "${a[*]}"; unset IFS
c=({1..5}); echo ${c[@]:1:3} ${c[@]: -2} ${c[@]/3/X} ${c[@]#1} "${c[@]/%/.}"
declare -a e=(); echo ${#e[@]} "[${e[@]}]"; e[3]=1; declare -p e; e=(${e[@]} $(echo 1 2)); declare -p e
a=(1 2 3); a[1]+=5; a[10]=t; declare -p a; read -a r <<< "p q r"; declare -p r
#### associative arrays
declare -A m=([one]=1 ["two words"]=2 [c]=3); for k in "${!m[@]}"; do echo "$k=${m[$k]}"; done
m[new]=4; unset 'm[one]'; echo ${#m[@]} ${m[new]} "${m[two words]}" "${m[none]-unset}"
k=c; echo ${m[$k]} ${m["$k"]}; [[ -v m[c] ]] && echo has; [[ -v m[zz] ]] || echo hasnt; m[c]+=x; echo ${m[c]}
declare -p m; declare -A n; n[a]=1; n+=([b]=2); declare -p n; for w in a b a; do ((count_$w++)); done; echo $count_a $count_b
for i in {1..40}; do m[k$i]=$i; done; echo "${!m[@]}"
#### namerefs and declare
declare -n ref=target; ref=5; echo $target; target=6; echo $ref ${!ref}; f() { local -n r=$1; r=changed; }; f target; echo $target
declare -i n=3+4; echo $n; n+=2; echo $n; declare -l lo=ABC; declare -u up=abc; echo $lo $up; declare -r ro=1; (ro=2) 2>/dev/null || echo readonly
declare -x ex=1; declare -p ex n lo up ro; export q=1 w; declare -p q; readonly rr=4; declare -p rr
f() { declare v=1; declare -g gv=2; }; f; echo "[$v][$gv]"; declare +x ex; declare -p ex; local 2>/dev/null || echo outside
#### parameter expansion
v=hello.tar.gz; echo ${v%.*} ${v%%.*} ${v#*.} ${v##*.} ${#v} ${v:1:3} ${v: -3} ${v:2} ${v/l/L} ${v//l/L} ${v/#h/H} ${v/%z/Z}
echo ${u-def} ${u:-def} "${e-}" ${u:=set} $u ${u:+alt} ${zz+x}; e=; echo "[${e:-empty}]" "[${e-not}]"; echo ${v^} ${v^^} ${v^^[a-l]}; w=ABC; echo ${w,} ${w,,}
p=v; echo ${!p} ${!p:0:2}; set -- a 'b c' d; echo ${@:2} "${@:1:2}" ${*: -1} $# ${#@} "${*}" ; echo "${@/b/X}"; for i; do echo "$i"; done
x='a  b'; echo $x "$x" "${x@Q}" ${x@U} "${x@A}"; y=$'t\tb'; echo "${y@Q}"; (: ${nope:?message}) 2>/dev/null; echo $?; echo "${v:(-2)}" "${v:0:-3}"
echo "${u2:-$(echo cmd)}" ${u2:-"q q"} ${u2:-'s s'} "${u2:-'s s'}"; prefix_a=1 prefix_b=2; echo ${!prefix_*} "${!prefix_@}"; echo ${v//[aeiou]} ${v//./\/}
path=/a/b/c.d; echo ${path##*/} ${path%/*}; s='x*y'; echo "${s/\*/+}" "${s%%\**}"; t='  trim  '; t=${t#"${t%%[! ]*}"}; echo "[${t%"${t##*[! ]}"}]"
#### quoting
echo 'a\nb' "a\nb" $'a\nb' "a\"b" a\ b "\$x" '$x' $'\x41\u00e9\101\'' "`echo \"in\"`" ""; printf '<%s>' a "" 'b c' "d"e'f'; echo
x='*'; echo "$x" '*' \*; echo "a'b" 'a"b' "a
b" a\
b; printf '%q ' 'a b' "it's" $'n\n' '' '$x' ; echo; echo ${x:+"q$x"}; set -- "a b" c; printf '[%s]' "$@" "$*" $@; echo
#### word splitting
IFS=:; x=a:b::c:; set -- $x; echo $#; printf '[%s]' "$@"; echo; IFS=' :'; x=' a : b '; set -- $x; printf '[%s]' "$@"; echo
IFS=; x='a b'; set -- $x; echo $#; unset IFS; x='  a   b  '; set -- $x; echo $# "[$*]"; IFS=,; set -- 1 2 3; echo "$*" $*; unset IFS; y="$*"; echo $y
read a b c <<< ' 1  2  3 4 '; echo "[$a][$b][$c]"; IFS=: read a b <<< 'x:y:z'; echo "[$a][$b]"; IFS=: read a b <<< 'x:y:'; echo "[$a][$b]"; echo -e 'a\\b\nc' | { read l; echo "$l"; read -r m; echo $m; }
set -- one "" two; IFS=x; for i in $@; do echo =$i=; done; unset IFS; for i in $@; do echo =$i=; done
{bare}>f; : {named}>g; echo "[$bare] $((named >= 10))"
#### globs
touch a.txt b.txt .hid 'sp ace' c.md; mkdir -p d/e; touch d/x.txt d/e/y.txt; echo *.txt * .h* [ab].* ?.md d/*; echo nomatch*; shopt -s nullglob; echo [no*]; shopt -u nullglob
shopt -s dotglob; echo *; shopt -u dotglob; shopt -s globstar; echo **/*.txt; echo **/; shopt -s extglob
echo !(*.txt) @(a|b).txt *.+(t|x)xt; echo "*.txt" \*.txt; for f in *.txt; do echo "$f"; done
set -f; echo *.txt; set +f; x='*.txt'; echo $x "$x"; echo [!a]*.txt [[:alpha:]].md; case foo.txt in *.md) echo md;; *.txt|*.x) echo txt;; esac; echo d/*/y.txt
#### brace expansion
echo {a,b}{1,2} {1..5} {5..1} {01..10..3} {a..e..2} x{,y}z {a,{b,c}d} "{a,b}" \{a,b} {a} {a..} {1..3}{a,b} pre{fix,}; echo {-2..2} {z..w}; x=1; echo {$x,b}$x
#### tilde
HOME=/home/user; echo ~ ~/x "~" a~ ; x=~/bin:~; echo $x; cd /; echo ~+; y=\~; echo $y; PATH=~/a:~/b; echo $PATH
#### syntax error s1
exec 2>&1
eval 'if; then :; fi'; echo $?
#### syntax error s2
exec 2>&1
eval 'for 1x in a; do :; done'; echo $?
#### syntax error s3
exec 2>&1
eval 'for x y; do :; done'; echo $?
#### syntax error s5
exec 2>&1
eval '!'; echo $?
#### syntax error s6
exec 2>&1
eval 'time'; echo $?
#### syntax error s7
exec 2>&1
eval 'coproc'; echo $?
#### syntax error s8
exec 2>&1
eval 'if true; then fi'; echo $?
#### syntax error s9
exec 2>&1
eval 'case x in a) echo; b) esac'; echo $?
#### syntax error s10
exec 2>&1
eval 'cat <<'; echo $?
#### syntax error s11
exec 2>&1
eval '$('; echo $?
#### syntax error s12
exec 2>&1
eval 'echo ${x:-a'; echo $?
#### syntax error s13
exec 2>&1
eval 'echo $((1+2'; echo $?
#### syntax error s14
exec 2>&1
eval '[[ a =='; echo $?
#### syntax error s15
exec 2>&1
eval '[[ ( a ]]'; echo $?
#### syntax error s16
exec 2>&1
eval '((1'; echo $?
#### syntax error s17
exec 2>&1
eval 'f() '; echo $?
#### syntax error s18
exec 2>&1
eval 'echo ${a'; echo $?
#### syntax error s19
exec 2>&1
eval 'echo $(a'; echo $?
#### syntax error s20
exec 2>&1
eval 'echo `a'; echo $?
#### syntax error s21
exec 2>&1
eval 'a &; b'; echo $?
#### syntax error s22
exec 2>&1
eval 'f( { :; }'; echo $?
#### syntax error s23
exec 2>&1
eval '[[ a'; echo $?
#### wait
wait; echo $?; (exit 3) & wait $!; echo $?; (exit 4) & p=$!; wait -n; echo $?; wait $p; echo $?; wait 99999; echo $?; wait %9; echo $?; wait x; echo $?; (exit 5) & (sleep 0.2; exit 6) & wait -n -p v; echo $? $((v>0)); wait; echo $?; wait -n; echo $?; wait -x; echo $?; (exit 7) & wait -f $!; echo $?
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
