# The driver of shell sessions. It reads requests from what was its standard input: fields that each end in a NUL byte. See node/session.go.
set --
exec {__agentrun_in}<&0 </dev/null
exec {__agentrun_out}>&1 {__agentrun_err}>&2
__agentrun_given=()
__agentrun_read() { IFS= read -r -d '' "$1" <&"$__agentrun_in" || builtin exit 0; }
while :; do
  __agentrun_read __agentrun_marker
  __agentrun_read __agentrun_kind
  exec >&"$__agentrun_out" 2>&"$__agentrun_err"
  __agentrun_status=0
  if [ "$__agentrun_kind" = run ]; then
    __agentrun_read __agentrun_setup
    __agentrun_read __agentrun_after
    __agentrun_read __agentrun_stdin
    __agentrun_read __agentrun_text
    builtin printf '%s\n' "$__agentrun_marker" >&"$__agentrun_out"
    eval "$__agentrun_setup"
    if [ "$?" != 0 ]; then
      __agentrun_status=1
    elif [ -z "$__agentrun_stdin" ]; then
      eval "$__agentrun_text" </dev/null
      __agentrun_status=$?
    else
      eval "$__agentrun_text" < <(printf %s "$__agentrun_stdin")
      __agentrun_status=$?
    fi
    eval "$__agentrun_after"
  fi
  [ "$__agentrun_kind" = run ] || builtin printf '%s\n' "$__agentrun_marker" >&"$__agentrun_out"
  builtin printf '%s\n' "$__agentrun_marker" >&"$__agentrun_err"
  builtin printf '%s{"status":%d}\n' "$__agentrun_marker" "$__agentrun_status" >&"$__agentrun_out"
done
