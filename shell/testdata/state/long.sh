#### nap
nap() { read -t ${1:-0.001} -u 9; return 0; }; mkfifo nap 2>/dev/null; exec 9<>nap; for i in 1 2 3 4 5 6 7 8; do nap; echo $i; done
#### substitution in flight
mkfifo nap 2>/dev/null; exec 9<>nap; nap() { read -t 0.002 -u 9; echo $1; }; for i in 1 2 3 4; do x=$(nap $i) y=$(nap b$i); echo "$x-$y-$(nap c)$(nap d)"; done; false; echo "$? $(nap e) $?"; echo ${u:=$(nap u)} $u; declare v=$(nap v); echo $v; a=($(nap 1) [5]=$(nap 5)); echo ${a[@]}; case $(nap z) in $(nap y)) echo no;; $(nap z)) echo z;; esac
#### arithmetic and conditions in flight
mkfifo nap 2>/dev/null; exec 9<>nap; nap() { read -t 0.002 -u 9; echo $1; }; for ((i=$(nap 0); i<$(nap 3); i+=$(nap 1))); do echo $i; done; [[ $(nap x) == x ]] && echo eq; (( $(nap 2) > 1 )) && echo gt; while [ $((n++)) -lt $(nap 3) ]; do echo n$n; done; for w in $(nap "p q r") end; do echo $w; done > f; while read l; do echo "f:$l"; done < f; echo $(( $(nap 1) + $(( $(nap 2) * 3 )) ))
#### pipelines
mkfifo nap 2>/dev/null; exec 9<>nap; nap() { read -t 0.002 -u 9; return ${1:-0}; }; for i in 1 2 3; do { nap; echo $i; nap 2; } | while read l; do nap; echo "<$l>"; done | { read x; echo "$x $(nap 3; echo $?)"; }; echo ${PIPESTATUS[@]}; done; set -o pipefail; { nap 4; } | nap; echo $?
#### subshells and jobs
mkfifo nap 2>/dev/null; exec 9<>nap; nap() { read -t 0.003 -u 9; return ${1:-0}; }; (nap 3); echo $?; nap 5 & p=$!; nap 6 & q=$!; wait $q; echo $?; wait $p; echo $?; (exit 2) & nap; wait -n; echo $?; for i in 1 2 3; do { nap; echo j$i > j$i; } & done; wait; for i in 1 2 3; do read x < j$i; echo $x; done; jobs; coproc { while read l; do nap; echo "got $l"; done; }; for i in a b c; do echo $i >&${COPROC[1]}; read r <&${COPROC[0]}; echo "$r"; done; eval "exec ${COPROC[1]}>&-"; wait
#### traps
mkfifo nap 2>/dev/null; exec 9<>nap; nap() { read -t 0.003 -u 9; return ${1:-0}; }; trap 'nap; echo usr' USR1; trap 'nap; echo err' ERR; trap 'nap; echo bye $?' EXIT; kill -USR1 $$; echo after; nap 3; { read -t 0.2 -u 9; kill -USR1 $$; nap; nap; } & wait $!; echo w$?; wait; f() { trap 'echo ret' RETURN; nap; echo inf; }; f; trap - RETURN; (trap 'nap; echo sub $?' EXIT; nap; exit 7); echo $?; exit 4
#### functions and scopes
mkfifo nap 2>/dev/null; exec 9<>nap; nap() { read -t 0.001 -u 9; }; f() { local a=$1 b; b=$(nap; echo $a$a); if ((a>0)); then nap; f $((a-1)); fi; echo "$a $b ${FUNCNAME[@]} $#"; }; f 4; g() { for x in "$@"; do nap; case $x in b) continue;; d) return 9;; esac; echo $x; done; }; g a b c d e; echo $?; declare -A m=([k]=v); a=(1 2 3); z=1 IFS=, g "${a[*]}" "${m[k]}"; echo "$z"; set -- q w e; shift; nap; echo $1 $#; local_test() { local -n r=a; nap; r+=(4); }; local_test; echo ${a[@]}
#### process substitution
mkfifo nap 2>/dev/null; exec 9<>nap; nap() { read -t 0.002 -u 9; echo $1; }; while read l; do nap; echo "+$l"; done < <(for i in 1 2 3; do nap $i; done); { while read a <&3 && read b <&4; do echo "$a$b"; done; } 3< <(nap 1; nap 2) 4< <(nap x; nap y); echo out > >(read l; nap; echo "got $l" > g); until [ -s g ]; do read -t 0.002 -u 9; done; read x < g; echo $x
#### eval, source and redirections
mkfifo nap 2>/dev/null; exec 9<>nap; nap() { read -t 0.002 -u 9; echo $1; }; eval 'nap 1; eval "nap 2; nap 3"; nap 4'; echo 'nap s$1; return 6; nap no' > s.sh; . ./s.sh X; echo $?; { nap 5; nap 6 >&2; } > o 2>&1; while read l; do echo "o:$l"; done < o; exec 5> five; nap five >&5; exec 5>&-; read x < five; echo $x; x=tmp nap 7; time_it() { { TIMEFORMAT=; time nap 8; } 2>&1; }; time_it; select w in a b; do echo $w $REPLY; nap; [ $REPLY = 2 ] && break; done 2>/dev/null <<< $'1\n2'
#### a script from its input
bash <<'END'
mkfifo nap 2>/dev/null; exec 9<>nap; nap() { read -t 0.002 -u 9; echo $1; }
nap 1
if nap 2; then
  nap 3
fi
alias n='nap al'
shopt -s expand_aliases
n 1
nap 4
exit 3
END
echo $?; for i in 1 2 3; do echo "read -t 0.002 -u 9; echo l$i"; done | { mkfifo nap 2>/dev/null; exec 9<>nap; bash; }
#### options and state
mkfifo nap 2>/dev/null; exec 9<>nap; nap() { read -t 0.002 -u 9; return 0; }; set -u; shopt -s nullglob; cd /tmp; pushd / >/dev/null; nap; dirs; alias x=y; nap; alias x; hash -r; getopts ab: o -a -b 1; nap; echo $o $OPTIND; getopts ab: o -a -b 1; echo $o $OPTARG; readonly R=1; nap; (R=2) 2>/dev/null || echo ro; umask 077; nap; umask; popd >/dev/null; echo $PWD; set -e; nap; (false; echo no) || echo caught; printf -v pv '%03d' 7; nap; echo $pv $_; mapfile -t ml <<< $'a\nb'; nap; echo ${ml[1]}; echo $- | { read f; nap; echo ${f//[^eu]/}; }
