#### h1
set -o history
echo a
for i in 1; do
echo $i
done
history
echo "x
y" 'z'
cat <<E
here
E
f() {
 echo f
}
if true
then echo t
fi
case x in
x) echo c;;
esac
# comment
(
echo sub
)
echo a && 
echo b |
cat
history
fc -l
fc -s echo
set +o history
echo no
history 2
#### h2
history -s "foo bar"; history -s x y; history; history 1; history -d 1; history; history -c; history; echo $?; history -d 5; echo $?; history -a; echo $?; history x; echo $?; history -z; echo $?; fc -l; echo $?; history 1 2; echo $?
#### h3
printf 'a\nb\nc\n' > h; HISTFILE=h; history -r; history; history -s new; history -w; cat h; history -a; history -n; history 2; history -p '!!' '!a' '!nosuch'; echo $?; fc -l; fc -ln 1 2; fc -l -2; fc -s a; fc -s b=Q b; fc -e - ; echo $?; fc -lr
#### h4
history -s 'echo one two three'; history -s 'ls /a/b.c /d/e.f'; for e in '!!' '!$' '!^' '!*' '!!:1' '!!:0' '!-2' '!echo' '!?two?' '!-2:2-3' '!-2:*' '!-2:2*' '!-2:1-' '!!:1:h' '!!:1:t' '!!:1:r' '!!:1:e' '!!:s/a/Z' '!!:gs/e/E/' '!!:q' '!!:x' '^a^b' '^a^b^' 'x !! y' '!#' 'a b !#:1' '"!!"' "'!!'" '\!!' '!' '! a' 'a!=b' '!1' '!99' 'a!' '!$:h' '!ls:$' '!{ls}x' '!!:5' '!!:%' '!?two?:%' '$!x' '!!:s/zz/y/' '!!:z' '!!:p' '!!:&' '!-1' '!0' '"a!"' '!?b.c' 'echo "hi!" !$'; do echo "$e => $(history -p "$e" 2>&1)"; done
#### h5
HISTCONTROL=ignoredups:ignorespace
set -o history
echo a
echo a
 echo sp
echo b
history
HISTCONTROL=erasedups
echo a
HISTIGNORE='echo z*:history'
echo zz
history
HISTSIZE=3
history
echo $HISTCMD
HISTTIMEFORMAT='%Y '
history | sed 's/20[0-9][0-9]/YYYY/'
shopt -u cmdhist
for i in 1
do :
done
history | tail -4 | sed 's/20[0-9][0-9]/YYYY/'
#### h6
printf "cmd %s\n" {1..10} > tmp
HISTFILE=tmp
HISTFILESIZE=5
cat tmp | wc -l
history -r; history; history -d 2-3; history; history -d -1; history; history -d 1-; history -s q; history -w out; cat out; HISTTIMEFORMAT=x; history -w out; sed 's/#[0-9]*/#N/' out; history -c; history -r nofile; echo $?; history -w /nope/x; echo $?
#### h7
set -o history -o histexpand
echo foo bar
echo !$
!!
echo !nosuch
echo after
^after^before
!e:p
history
#### h8
HISTFILE=x
fc -l 1 2
EDITOR=cat fc 1
set -o history
echo one
echo two
FCEDIT='sed -i s/two/three/' fc
fc -e 'sed -i s/one/uno/' -2
history
fc -l -n -r 1 2
fc -x
fc -l nosuch
fc -s nosuch
