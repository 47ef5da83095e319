#### words that are read while the script runs
f() { echo $(( $(echo $((x + $(sleep 0.01; echo 2)))) * 2 )); }
x=3
for i in 1 2 3; do
  a=( [$(echo $i)]=$(echo "v$i") )
  echo "$(( $(sleep 0.01; echo $i) + ${#a[@]} + $(f) ))" "${a[$(echo $i)]}"
done
PS4='+$(sleep 0.01; echo p) '
(set -x; : one; : two) 2>&1
#### a function that replaces itself while it runs
f() { f() { echo second "$@"; }; sleep 0.01; echo first "$@"; }
f a; f b
unset -f f
g() { unset -f g; for i in 1 2; do sleep 0.01; echo "g $i"; done; }
g
#### aliases
shopt -s expand_aliases
alias e='for i in 1 2; do sleep 0.01; echo'
e $i; done
alias b='{ '
b sleep 0.01; echo grouped; }
#### functions from the environment
f() { sleep 0.01; echo "in f: $1 $(echo sub)"; }
export -f f
bash -c 'f x; sleep 0.01; f y'
#### here-documents and comments
while read -r l; do sleep 0.01; echo "<$l>" # a comment ( " '
done <<A
one $(sleep 0.01; echo two)
$(cat <<'B'
three ' "
B
)
A
cat <<-'C' | while read -r l; do echo "[$l]"; sleep 0.01; done
	four `echo`
	C
#### patterns as words
shopt -s extglob
for x in aa ab b; do
  case $x in
    +(a)) echo "$x: as"; sleep 0.01 ;;&
    @(a|b)*) echo "$x: a or b" ;;
  esac
done
#### in the middle of everything
declare -A m=([k 1]=v1 [k2]=$'v\xff2')
declare -ir n=5
declare -a s=([3]=x [7]=y)
local_() { local -a l=(1 2); local IFS=,; sleep 0.02; echo "${l[*]} $1 ${#FUNCNAME[@]}"; }
trap 'echo trapped; sleep 0.01; echo out' EXIT
set -- a "b c" ''
{ local_ x; echo "${m[k 1]}" "${m[k2]}" "$n" "${!s[@]}" "$#"; } | sed 's/^/- /'
for ((i = 0; i < 3; i++)); do sleep 0.01; echo "$i" && ! false || echo no; done
if sleep 0.01; then echo yes; fi
time_() { time sleep 0.01; }
time_ 2>/dev/null
x=$(sleep 0.02; echo "$BASHPID" >/dev/null; echo sub) y=$(sleep 0.01; echo y)
echo "$x$y"
coproc { read -r l; sleep 0.01; echo "co $l"; }
echo hi >&"${COPROC[1]}"
read -r l <&"${COPROC[0]}"
echo "$l"
#### jobs and waits
sleep 0.05 & p=$!
(sleep 0.02; exit 3) & q=$!
wait $q; echo $?
wait -n $p; echo $?
jobs
#### eval and source
printf 'sleep 0.01; echo "sourced $1"\nreturn 4\n' > src
. ./src arg; echo $?
eval 'for i in 1 2; do sleep 0.01; echo "e $i"; done
echo line two'

#### a trap after the trap of an error
trap 'echo usr' USR1; trap 'echo err' ERR
{ sleep 0.1; kill -USR1 $$; sleep 0.1; } & wait $!; echo w$?
(exit 7); kill -USR1 $$; kill -USR1 $$; echo end

#### traps that rest
nap() { read -t 0.003 -u 9; }; mkfifo nap; exec 9<>nap
trap 'nap; echo "D $BASH_COMMAND $?"' DEBUG
x=1; echo a "$x"; false; (echo sub)
f() { local y=2; echo "in f $y"; return 3; }
f; echo "f $?"
set -T; f; set +T
echo p | cat
! true; echo "neg $?"
trap - DEBUG
g() { trap 'nap; echo "R $?"; nap' RETURN; nap; echo g; return 5; }
g; echo "g $?"
printf 'nap; echo sourced; return 6; echo no' > src
set -T; . ./src; echo "s $?"; trap - RETURN
mapfile -t lines < <(for i in 1 2 3; do nap; echo "l $i"; done); echo "${lines[@]}" ${#lines[@]}
mapfile -s 1 -O 5 -d ' ' w < <(printf 'a b '; nap; printf 'c d'); echo "${!w[@]}" "${w[@]}"
