#### function 1
f() { for i in 1 2 3; do echo $i; done; while :; do break; done; until false; do break; done; case $x in a|b) echo 1;; *) echo 2;& c) ;; esac; select y in a b; do break; done; for ((i=0;i<3;i++)); do :; done; { a; } ; ( b; c ) ; [[ -n $x && ! -z "$y" ]]; ((x++)); a && b || c; a | b |& c; ! d; time e; a & b; cat <<EOF
hi $x
EOF
x=1 y=(1 2) cmd >out 2>&1 <in >>app <<<"str"; coproc X { a; }; function g() { :; }; echo $(a; b) `c d` "${x:-y}" $((1+2)) <(a) ; if a; then b; elif c; then d; else e; fi; }; declare -f f
#### function 2
f() ( echo sub; ); declare -f f; g() { echo a; } > out 2>&1; declare -f g; h() if a; then b; fi; declare -f h; i() for x; do echo $x; done; declare -f i; j() [[ a ]]; declare -f j; k() { while a; b; do c; d; done; if a; b; then c; d; fi; until a & b; do c & done; }; declare -f k
#### function here
f() { echo a >&2; echo b 2>/dev/null >&-; cat <&3 3<x 4<>y 2>>z &>q &>>r >|s; echo {fd}>x {fd}>&-; read x <<<$(echo "a;b";c);
cat <<-'E O' | tr a b
	foo $x
	E O
cat <<A <<B
a
A
b
B
}; declare -f f
#### function words
f() {
  # comment
  local a="x y" b='q' c=$'\n' d=(1 2 "3 4") e[1]=2
  a=5   b=6    cmd   x \
    y
  declare -A m=([a]=1 [b]=2)
  echo "$(
    echo inner
    if true; then echo z; fi
  )" "a
b" ${x//a/b} ${#x} "${a[@]}" $'\t' $"loc" 'sq'
  for (( i = 0 ; i < 3 ; i++ )); do :; done
  for ((;;)); do break; done
  case "$1" in
    (a) ;;
    b | c ) echo bc ;;&
    *) { grouped; }
  esac
  [[ $a == b* || ( $c =~ ^x.*$ ) ]] && [[ ! -f x ]] && [[ a -nt b ]]
  let x=1+2
  return 3
}; declare -f f; type f | head -3
#### debug commands
trap 'echo "[$BASH_COMMAND]"' DEBUG; { echo a; echo b; }; (echo c); x=$(echo d) y=2; a=(1 2); for i in a "b c"; do :; done; for ((i=0;i<1;i++)); do :; done; case x in y) ;; esac; echo a | cat; [[ a && b ]]; (( 1 + 2 )); echo > /dev/null 2>&1; f() { echo in; }; f x y; select q in a; do break; done <<<1; while false; do :; done; ! false; if :; then :; fi; cat <<EQ
x
EQ
:
#### xtrace
exec 2>&1
set -x; export E="q r" F=1; readonly G=a; declare -x H="i j"; declare -A m=([a]=b [c]="d e"); declare -a n=(1 "2 3" ); local_f() { local -a q=(1 2); local r=3; typeset s=4; }; local_f; declare -i i=3; y=(a "b c" [5]=d); y+=(z); y[2]+=q; declare -a k; export -n E; eval "echo a; eval echo b"; (echo x; echo $(echo y)); trap "echo t" EXIT; [[ -z "" || a == "b c" && x =~ "y z" ]]; [[ -n "" ]]; [[ 1 -eq 2 ]]; ((i+1 > 2)); for ((j=0;j<1;j++)); do :; done; case "a b" in "a b") : ;; esac; select z in a; do break; done <<<1; if [ 1 ]; then :; fi;  cat <<<"x y" >/dev/null; A="x y" B=1 :; echo "" "*" "~" a=b "a;b" $'\n' é; E=$(echo q) F="$(false)" ; function ff { return 3; }; ff "" ; [ "a b" = c ]; set -- 1 "2 3"; a=; b="";
#### xtrace levels
exec 2>&1
set -x; trap "echo u" USR1;   trap "echo er" ERR; false; f() { :; }; trap "echo ret" RETURN; . /dev/null; :
#### BASH_COMMAND
echo $BASH_COMMAND; x=$BASH_COMMAND; echo "$x"; trap 'echo "E:$BASH_COMMAND"' ERR; false 1 2 > /dev/null; (exit 3); f() { ls /nope 2>/dev/null; }; f; trap 'echo "X:$BASH_COMMAND $LINENO"' EXIT; [[ a == b ]]; ((0)); exit 4
#### mapfile
printf 'a\nb\nc' | { mapfile x; declare -p x; }; printf 'a\nb\nc\n' > f; mapfile -t x < f; declare -p x; mapfile -t -n 2 x < f; declare -p x; mapfile -t -s 1 x < f; declare -p x; mapfile -t -O 5 x < f; declare -p x; mapfile -d : -t x <<< "p:q:r"; declare -p x; cb() { echo "cb $1 $2"; }; mapfile -t -c 1 -C cb x < f; mapfile -t < f; echo ${MAPFILE[1]}; mapfile -u 7 x; echo $?; mapfile -n x y; echo $?; mapfile 1x <f; echo $?; readarray -t z < f; echo ${#z[@]}; mapfile -d '' w < <(printf 'a\0b\0'); declare -p w; mapfile -Z; echo $?
#### alias
shopt -s expand_aliases
alias a='echo A' b='a B ' c=C; alias; alias a; alias nosuch; echo $?
a x; b c; \a; 'a'; unalias a; alias a; unalias nosuch; echo $?; unalias -a; alias; alias 'x y=1'; echo $?; unalias
alias e='echo x; echo y'
e z
alias foo=bar
alias bar='echo rec'; foo
foo
alias for_='for i in 1 2; do'
for_ echo $i; done
#### unset
x=1; f() { echo f; }; unset x; echo ${x-un}; unset f; f; echo $?; unset -f nosuch; echo $?; unset 1x; echo $?; readonly r=1; unset r; echo $?; a=(1 2 3); unset a[1]; declare -p a; unset 'a[@]'; declare -p a; declare -A m=([a]=1 [b]=2); unset m[a]; declare -p m; unset -v x y z; echo $?; unset -fv x; echo $?; unset -n x; unset -Z; echo $?; x=1; x() { :; }; unset x; type -t x; unset x; type -t x; echo $?; unset IFS; echo "[$IFS]"
