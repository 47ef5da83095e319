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
