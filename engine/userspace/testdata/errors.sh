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
wait; echo $?; (exit 3) & wait $!; echo $?; (exit 4) & p=$!; wait -n; echo $?; wait $p; echo $?; wait 99999; echo $?; wait %9; echo $?; wait x; echo $?; (exit 5) & (sleep 0.2; exit 6) & wait -n -p v; echo $? $((v>0)); wait; echo $?; wait -n; echo $?; wait -x; echo $?; sleep 0.1 & sleep 0.1 & wait %1 %2; echo $?; (exit 7) & wait -f $!; echo $?
