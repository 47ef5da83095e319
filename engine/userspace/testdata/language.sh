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
#### utf8
x=héllo; echo ${#x} ${x:1:1} ${x^^} ${x/é/e} ${x%llo}; printf '%5s|%-6s|%.2s\n' é é éàü; printf '%c\n' é; [[ é == ? ]] && echo one; case é in [a-z]) echo r;; *) echo n;; esac; echo é{1..2}; LC_ALL=C; echo ${#x}; LC_ALL=C.UTF-8; echo ${#x}; printf '%q\n' "é ü" $'\u200b' $'\xff'; echo $'\u00e9' $'\U0001F600' "\u00e9"; printf '\u00e9\n'; read -n 2 y <<< éàü; echo $y; IFS=é; z=aébéc; set -- $z; echo $#; unset IFS; y=日本; echo ${y:0:1} ${#y} ${y/日/x}; [[ ÄB =~ ^(.)B ]] && echo ${BASH_REMATCH[1]}; shopt -s nocasematch; [[ É == é ]] && echo ci; declare -u u=éa; echo $u; echo ${x@U} ${x@u} ${x@Q}; mapfile -d é m <<< aébéc; echo ${#m[@]}; touch é; echo ?; echo [é]; echo [[:alpha:]]
#### extglob more
shopt -s extglob; x=foobar; echo ${x//@(foo|bar)/X} ${x/+(o)/0} ${x##!(b*)} ${x%%@(bar|ar)} ${x#?(f)o}; case foo in !(bar)) echo nb;; esac; case abc in a*(b)c) echo y;; esac; [[ ab == +([ab]) ]] && echo p; [[ "a b" == @(a b|c) ]] && echo sp; touch a.c b.h c.o; echo !(*.o); echo *.@(c|h); echo ?(a|b).*; echo +([a-b]).*; shopt -u extglob; [[ a == @(a|b) ]] && echo always; eval 'echo @(a|b)' 2>&1 | head -1; x='@(a|b)'; [[ a == $x ]] && echo var; case a in $x) echo casevar;; *) echo no;; esac
#### brace more
echo {a,b}c{d,e} {1..3..2} {a..c}{1..2} "{a,b}" {a,"b c"} {a,$((1+1))} {$(echo a),b} x{,y}z {,a}{b,} {a,b}{,} {{1..3},x} {a..} {..a} {1.2} {1..2..0} {z..w} {1..-1} a{b}c {a,b\,c} {a\},b} {a,b}' q' {'a,b'} {1..3}{a..b} \{a,b} {a,b\} ${x}{1,2} {01..10..3} {1..03} {-5..-1..2} {c..a} {Z..a..5} {a,b,c{d,e{f,g}}}
#### IFS corner
IFS=' :'; x='a : b::c '; set -- $x; for i; do echo "<$i>"; done; IFS=:; x='a:b:'; set -- $x; echo $#; x='::'; set -- $x; echo $#; IFS=$'\n'; set -- $(printf 'a b\nc d\n\n'); echo $#; IFS=; set -- $(echo 'a b'); echo $#; IFS=ab; x=xaybz; echo $x; set -- "$*"; unset IFS; read a b <<< ' x  y  z '; echo "<$a><$b>"; IFS=, read -r a b c <<< 'p,,q,r'; echo "<$a><$b><$c>"; IFS=, read -ra arr <<< 'a,,b,'; echo ${#arr[@]}; IFS=' ,' read a b <<< 'a , b ,'; echo "<$a><$b>"; printf '%s\n' "$(IFS=+; set -- 1 2 3; echo "$*")"; IFS=0; echo $((100)); unset IFS; v='  lead'; echo $v "$v" ${v}x; set -- ''; echo $# ${1-u} ${1:-e}
#### assign forms
a=1 b=2; echo $a$b; a=$b c=$a; echo $c; x=~; echo $x | head -c1; x=a:~; echo ${x%/*} | tail -c2; a+=x; echo $a; y=(1); y+=(2); echo ${y[@]}; z="a b"; w=$z; echo "$w"; w=$(echo "  a  b "); echo "[$w]"; e=; echo "[$e]"; q=*; echo "$q"; r={a,b}; echo $r; s=a{1,2}; echo $s; t=$'a\tb'; echo "$t"; u="$@"; v=$*; echo "[$u][$v]"; declare d=$(echo "a b"); echo "$d"; export f=$z; echo "$f"; local g=1; A=1 B=$A; echo $B; A=5 eval 'echo $A'; echo $A; n=1; n+=2; echo $n; declare -i m=1; m+=2; echo $m; i=5; : $((i+=2)); echo $i; x=1 y=2 z=3; echo $x$y$z; arr[0]=a arr[2]=c; echo ${!arr[@]}; a=b=c; echo $a; 1a=2; echo $?; a-b=1; echo $?; a =1; echo $?; "a"=1; echo $?; a[1]=2 cmd_not; echo $?
#### functions
f() { local x=1; g; echo $x; }; g() { x=2; }; f; h() { return; }; false; h; echo $?; i() { echo "$@"; shift; echo $#; }; i a b c; echo $#; j() { set -- x y; echo $1; }; set -- p; j; echo $1; function k { echo k; }; k; function l() { echo l; }; l; m() ( x=sub; echo $x ); m; echo ${x-un}; n() { n2() { echo inner; }; }; n; n2; unset -f n2; n2; echo $?; o() { echo $FUNCNAME; p; }; p() { echo ${FUNCNAME[1]}; }; o; q() if true; then echo if; fi; q; r() { echo "$0" "$1"; }; r z; s() { [ $1 -le 0 ] && return; echo $1; s $(($1-1)); }; s 3; t() { cat; }; echo in | t; t <<< here; u() { echo err >&2; }; u 2>&1 | cat; declare -f m; readonly -f m; m() { :; }; echo $?; unset -f m; echo $?; export -f k; bash -c k; a-b() { echo dash; }; a-b; a.b() { echo dot; }; a.b; 'x y'() { :; }; echo $?
#### cmd subst
echo $(echo a; echo b) "$(echo a; echo b)"; echo `echo a \`echo b\``; x=$(printf 'a\n\n\n'); echo "[$x]"; echo $(cat <<E
h
E
); echo "$(echo "$(echo "q")")"; echo $(exit 3)$?; y=$(exit 4); echo $?; echo $( (echo sub) ) $( { echo grp; } ); echo $(case a in a) echo c;; esac); echo $(case a in (a) echo c;; esac); echo "$(echo \"x\")" `echo "\"y\""` `echo '\\'`; z=$(<f); echo $?; echo hi > f; z=$(< f); echo $z; echo $(# comment
echo c
); echo $(echo a \
b); v=$(trap 'echo t' EXIT); echo $v; echo ${x:-$(echo d)}; echo $((1+$(echo 2))); $(echo echo run); a=$(echo 'x*'); echo "$a"; echo $(echo -e 'a\0b') | cat -A; f() { echo $(return 5)$?; }; f; echo $(set -e; false; echo no)$?
#### arrays more
a=([5]=e [2]=b c); declare -p a; a+=([0]=z); declare -p a; b=("${a[@]}"); declare -p b; unset 'a[5]'; echo ${#a[@]} "${!a[@]}"; a[-1]=last; declare -p a; c=(); c+=(x); c+=y; declare -p c; d=x; d+=(y z); declare -p d; e=(1 2 3); e=(${e[@]/2/}); declare -p e; declare -a f='(1 2)'; declare -p f; g=($(echo a b)); echo ${g[1]}; h=(a b c); echo ${h[@]:1} ${h[@]::2} ${#h[@]}; for i in "${!h[@]}"; do echo $i=${h[i]}; done; i=1; echo ${h[i+1]} ${h[$i]} ${h["1"]}; read -ra r <<< "p q r"; echo ${r[2]}; local_arr() { local -a l=(1 2); l+=(3); echo ${l[*]}; }; local_arr; echo "${h[@]@A}"; k[3]=x; echo ${#k[@]} ${k[@]:0:1}; declare -ai n=(1+1 2*3); declare -p n; n[0]+=5; echo ${n[0]}; s=(a b); s[1]+=c; echo ${s[1]}; unset s[0]; echo "${s-unset}" "${s[1]-x}"; readonly -a ro=(1); ro[0]=2; echo $?
#### assoc more
declare -A m=([a]=1 [b c]=2 ["d"]=3); m[e]=4; m+=([f]=5 [a]=10); for k in a 'b c' d e f; do echo "$k ${m[$k]}"; done; echo ${#m[@]}; unset "m[b c]"; echo "${m[b c]-gone}"; k='x]y'; m[$k]=br; echo "${m[$k]}"; m['q"']=dq; echo "${m['q"']}"; declare -A n=(k1 v1 k2 v2); echo ${n[k1]} ${n[k2]}; [[ -v n[k1] ]] && echo yes; n[k1]+=x; echo ${n[k1]}; unset n; declare -A n; n[@]=at; n[*]=st; echo "${n[@]}" | wc -w; f() { local -A l=([z]=1); echo ${l[z]} ${!l[@]}; }; f; declare -Ai ni=([a]=1+2); echo ${ni[a]}; ni[a]+=3; echo ${ni[a]}; declare -Al lo=([k]=ABC); echo ${lo[k]}; i=a; declare -A o; o[$i$i]=v; echo ${o[aa]}; echo ${o[$(echo aa)]}; o=([x]=1); echo ${!o[@]}; echo "${o[x]:-d}" "${o[nope]:-d}"; declare -A p=([$'a\nb']=1 [é]=2); declare -p p
#### arithmetic more
echo $((1,2)) $((x=5)) $((x++ + ++x)) $x $((x--)) $((--x)) $((-x)) $((+x)) $((!x)) $((~x)); echo $((7/-2)) $((-7/2)) $((7%-3)) $((-7%3)) $((2**0)) $((2**3**2)) $((-2**2)); echo $((1<2)) $((1<=1)) $((1==2)) $((1!=2)) $((3&5)) $((3|5)) $((3^5)) $((1&&0)) $((1||0)) $((1?2:3)) $((0?2:0?4:5)); echo $((16#ff)) $((16#FF)) $((2#1111)) $((8#77)) $((36#zZ)) $((62#Z)) $((64#_)) $((0xFf)) $((0777)); a=(1 2 3); echo $((a[0]+a[1])) $((a[a[0]])) $((${#a[@]}*2)); echo $((  )) $(( 1 + ( 2 * 3 ) )); let y=1+2 z=y*2; echo $y $z; ((q=1?2:3)); echo $q; echo $((9223372036854775807+1)) $((-9223372036854775808)) $((1<<63)) $((1<<64)) $((5>>1)) $((-5>>1)); for ((i=0,j=10;i<j;i+=3,j-=2)); do echo $i,$j; done; ((w+=5)); echo $w; v='3+4'; echo $((v*2)) $(($v*2)); echo $((u)) $((u+1)); let "k = 1 << 4"; echo $k; let 'e=(1+2)*3'; echo $e; echo $(( 'a' )) 2>/dev/null; echo x
#### pipes
true | false; echo $? ${PIPESTATUS[@]}; ! true | false; echo $?; echo a | { read x; echo $x; }; x=1; echo 2 | read x; echo $x; shopt -s lastpipe; echo 3 | read x; echo $x; set -o pipefail; (exit 3) | true; echo $?; (exit 3) | (exit 4); echo $?; true | true; echo $?; set +o pipefail; yes | head -1; echo ${PIPESTATUS[0]}; echo a |& cat; { echo e >&2; } |& cat; false | true && echo ok; true | false || echo no; echo x | cat | cat | tr x y; (echo 1; echo 2) | while read l; do echo "[$l]"; done; seq 3 | { mapfile a; echo ${#a[@]}; }; time true 2>/dev/null; cat < <(echo ps) | tr a-z A-Z
