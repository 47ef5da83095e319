#### if and case
if false; then echo 1; elif true; then echo 2; else echo 3; fi; if [ 1 -eq 2 ]; then :; fi; echo $?
case abc in a*) echo one;;& *c) echo two;& zzz) echo three;; *) echo four;; esac; case x in y) ;; esac; echo $?; case "a b" in "a b") echo sp;; esac
#### loops
for i in 1 2 3; do [ $i = 2 ] && continue; echo $i; done; for ((i=0;i<3;i++)); do echo c$i; done; i=0; while [ $i -lt 3 ]; do i=$((i+1)); [ $i = 2 ] && break; done; echo $i
until [ $i -ge 5 ]; do ((i++)); done; echo $i; for i in a b; do for j in 1 2; do [ $j = 2 ] && continue 2; echo $i$j; done; done; while :; do while :; do break 2; done; done; echo out
for i in; do echo no; done; echo $?; for x in "$@"; do :; done; while read l; do echo "l:$l"; done <<< $'a\nb'; for ((;;)); do break; done; echo $i
printf '1\n2\n' | while read n; do s=$((s+n)); done; echo "s=$s"; select x in p q; do echo "sel $x $REPLY"; break; done <<< 2 2>/dev/null
#### arithmetic
echo $((1+2*3)) $(((1+2)*3)) $((7/2)) $((-7/2)) $((-7%3)) $((2**10)) $((1<<4)) $((0xff)) $((010)) $((2#101)) $((36#z)) $((5>3)) $((5&3|8^1)) $((~5)) $((!0)) $((1?2:3)) $((0?2:1?5:6))
x=5; echo $((x++)) $x $((++x)) $((x--)) $((--x)) $((x+=3)) $((x*=2)) $((x%=7)) $x; ((x>1)) && echo yes; ((0)) || echo no; let y=x+1 z=2; echo $y $z; a=(1 2 3); echo $((a[1]+a[2])) $((a[0]++)) ${a[0]}
n=x; echo $((n+1)) $(( x , 3 )); e='1+2'; echo $((e*2)) $(($e*2)); echo $((1 == 1 && 2 > 3 || 4)); echo $[3+4]; i=3; echo $((i<5?i:5)); : $((k=9)); echo $k; echo $((9223372036854775807+1))
(echo $((1/0))) 2>/dev/null || echo div; (( 5 % 0 )) 2>/dev/null; echo $?; op=+; echo $((3 $op 4)) $(( (2) ** 3 ** 2 )) $((-2**2))
echo $((08)) 2>/dev/null; echo after
echo next line
#### conditions
[[ a == a* ]] && echo 1; [[ "a*" == "a*" ]] && echo 2; [[ ab == "a*" ]] || echo 3; [[ abc =~ ^a(b)(c)$ ]] && echo ${BASH_REMATCH[@]}; [[ -z "" && -n x ]] && echo 4; [[ 2 -lt 10 ]] && echo 5; [[ b > a ]] && echo 6; [[ ! a == b ]] && echo 7; [[ (a == b || a == a) && 1 -eq 1 ]] && echo 8
re='([0-9]+)-([a-z]+)'; [[ x12-ab =~ $re ]] && echo "${BASH_REMATCH[0]} ${BASH_REMATCH[1]} ${BASH_REMATCH[2]}"; [[ a.b =~ a\.b ]] && echo 9; [[ axb =~ "a.b" ]] || echo 10; x=; [[ $x ]] || echo 11; [[ -v x ]] && echo 12; [[ -v nope ]] || echo 13
touch f; mkdir d; [ -f f ] && [ -d d ] && [ ! -e g ] && echo 14; [ -s f ] || echo 15; [ f -nt g ] && echo 16; [ a = a -a b = b ] && echo 17; [ "" ] || echo 18; [ 3 -gt 2 ] && test 1 -ne 2 && echo 19; [ a \< b ] && echo 20; [ x = ] 2>/dev/null; echo $?; test; echo $?; [[ 10 -eq 0xa ]] && echo 21; [ -n ] && echo 22
#### errexit and friends
(set -e; false; echo no); echo $?; (set -e; if false; then :; fi; false || true; ! true; echo yes; false && true; echo yes2); (set -e; f() { false; echo infunc; }; f || echo handled); (set -e; x=$(false); echo no); echo $?
(set -u; echo ${x-ok}; echo $nope; echo no) 2>/dev/null; echo $?; (set -e; (false); echo no); echo $?; (set -eo pipefail; false | true; echo no); echo $?; set -e; f() { return 3; }; f || echo $?; while false; do :; done; echo end
#### xtrace
exec 2>&1; set -x; x=1; echo "a b" $x; [ a = b ] || y='q q'; for i in 1; do :; done; f() { echo in; }; f z; PS4='> '; echo hi; (( 1 + 1 )); [[ a == a ]]; case x in x) :; esac; a=(1 2); z=2 true; set +x
#### traps
trap 'echo exit $?' EXIT; (trap 'echo sub' EXIT; exit 2); echo $?; trap 'echo usr' USR1; kill -USR1 $$; echo after; f() { trap 'echo ret' RETURN; :; }; f; trap - RETURN; trap 'echo err $?' ERR; false; if false; then :; fi; (exit 4); trap - ERR; trap; trap '' INT; trap -p INT USR1; exit 5
#### debug trap
trap 'echo "d:$BASH_COMMAND"' DEBUG; x=1; echo hi; for i in 1 2; do :; done; trap - DEBUG; echo bye
#### jobs and wait
(exit 3) & wait $!; echo $?; { read -t 0.05 x <> <(:); exit 4; } & p=$!; wait $p; echo $?; true & false & wait; echo $?; cat <> /dev/zero >/dev/null & kill $!; wait $! 2>/dev/null; echo $?; wait 99999 2>/dev/null; echo $?; kill -l 9 15; kill -0 $$ && echo alive
#### wait for any
(exit 7) & wait -n; echo $?; wait -n 2>/dev/null; echo $?
#### coproc
coproc { while read l; do echo "got $l"; done; }; echo one >&${COPROC[1]}; read r <&${COPROC[0]}; echo $r; eval "exec ${COPROC[1]}>&-"; wait; coproc N { echo named; read y; }; read x <&${N[0]}; echo $x
#### eval source exec
eval 'x=1; echo $x'; eval echo '$x' "'a  b'"; printf 'y=2; echo sourced $1 $0; return 6\necho no\n' > s.sh; . ./s.sh arg; echo $? $y; source ./s.sh; (exec echo replaced; echo no); (exec 2>/dev/null; nosuchcmd; echo $?); f() { eval 'return 3'; }; f; echo $?; command echo c; builtin echo b; type -t echo if f ls nosuch; command -v echo f
#### exit statuses
nosuch 2>/dev/null; echo $?; ./ 2>/dev/null; echo $?; touch nx; ./nx 2>/dev/null; echo $?; sh -c 'exit 300'; echo $?; bash -c 'kill -9 $$'; echo $?; (exit -1); echo $?; return 2>/dev/null; echo $?; false; true; echo $?; x=$(exit 9) y=1; echo $?; local x 2>/dev/null; echo $?; cd /nonexistent 2>/dev/null; echo $?; > f; echo $?; < nofile cat 2>/dev/null; echo $?; ! ! true; echo $?
#### getopts
f() { local OPTIND o; while getopts ':ab:c' o; do case $o in a|c) echo $o;; b) echo "b=$OPTARG";; :) echo "need $OPTARG";; \?) echo "bad $OPTARG";; esac; done; shift $((OPTIND-1)); echo "rest $*"; }; f -a -b x -c y z; f -ab; f -xb1 -- -a; f -ca arg -b
#### syntax errors
eval 'echo a; fi' 2>/dev/null; echo $?; eval 'if' 2>/dev/null; echo $?; bash -c 'echo "unclosed' 2>/dev/null; echo $?; eval 'echo ${x!}' 2>/dev/null; echo $?; bash -c $'echo one\necho two; )' 2>/dev/null; echo $?
#### $? between commands
false; f() { echo $?; }; f; false; { echo $?; }; false; if echo $?; then :; fi; (exit 3); case a in a) echo $?;; esac; (exit 4); (echo $?); (exit 5); eval 'echo $?'; (exit 6); for i in 1; do echo $?; done; false; x=$?; echo $x
#### exit trap on signals
for s in TERM HUP INT USR1 PIPE ALRM QUIT; do bash -c "trap 'echo exit \$?' EXIT; kill -$s \$\$; echo not" 2>/dev/null; echo $s $?; done
#### exit trap while child runs
bash -c 'trap "echo bye" EXIT; sleep 5' & sleep 0.2; kill $!; wait $!; echo $?
#### exit trap in subshell signal
(trap 'echo sub' EXIT; kill -TERM $BASHPID; echo not); echo $?
#### term trap with child
bash -c 'trap "echo got; exit 3" TERM; sleep 0.5; echo after' & sleep 0.2; kill $!; wait $!; echo $?
#### wait with trap
trap 'echo usr' USR1; sleep 0.5 & (sleep 0.1; kill -USR1 $$) & wait; echo $?; wait
#### read with trap
trap 'echo alrm' ALRM; (sleep 0.1; kill -ALRM $$) & read -t 0.5 x < <(sleep 1); echo $?
#### trap in function, return
f() { trap 'echo ret $FUNCNAME' RETURN; g; echo in f; }; g() { echo g; }; f; g; trap - RETURN; set -T; trap 'echo R' RETURN; f; g
#### ERR in functions
trap 'echo ERR $LINENO $?' ERR; f() { false; }; f; set -E; f; (false); x=$(false); false || :; ! false; if false; then :; fi; while false; do :; done; false && :; { false; }; false | true; true | false; echo $(false; echo x)
#### DEBUG extdebug
shopt -s extdebug; trap '[[ $BASH_COMMAND != echo\ skip ]]' DEBUG; echo a; echo skip; echo b; trap - DEBUG; f() { :; }; declare -F f
#### trap reset in subshell
trap 'echo x' EXIT; (exit 1); (trap; exit 0); bash -c 'trap'; trap -p; trap - EXIT; trap '' INT; bash -c 'trap -p'; (trap -p)
#### exit in trap
trap 'exit 7' EXIT; exit 3
#### nested traps
trap 'trap "echo inner" EXIT; echo outer' EXIT; exit 2
#### return in trap
f() { trap 'return 5' USR1; kill -USR1 $$; echo after; }; f; echo $?
#### break outside
break; echo $?; continue; echo $?; f() { break; }; for i in 1 2; do f; echo $i; done
#### signals ignored child
trap '' TERM; bash -c 'kill -TERM $$; echo alive'; sh -c 'trap - TERM; kill -TERM $$; echo alive2'
#### coproc extras
coproc { while read l; do echo "<$l>"; done; }; echo a >&"${COPROC[1]}"; read -u "${COPROC[0]}" r; echo $r; exec {COPROC[1]}>&-; wait; echo $?; coproc true; wait; echo ${COPROC-unset}; coproc X=1; echo
#### e1
trap 'echo ERR $LINENO $?' ERR; f() { false; }; f; echo 1
#### e2
trap 'echo ERR $LINENO $?' ERR; set -E; f() { false; }; f; echo 2; (false); echo 3
#### e3
trap 'echo ERR $LINENO $?' ERR; set -E; x=$(false); echo 3; false || :; ! false; if false; then :; fi; while false; do :; done; false && :; { false; }; echo 4
#### e4
trap 'echo ERR $LINENO $?' ERR; set -E; false | true; echo 1; true | false; echo 2; echo $(false; echo x)
#### c1
coproc { while read l; do echo "<$l>"; done; }; echo a >&"${COPROC[1]}"; read -u "${COPROC[0]}" r; echo $r; exec {COPROC[1]}>&-; wait; echo $?;
#### c2
coproc true; wait; echo ${COPROC-unset}
