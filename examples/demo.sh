#!/usr/bin/env bash
# The main job of AgentRun in under a minute: real files go into a bucket over S3, the bucket is forked for ten agents, three
# of them work in a sandbox over their fork, and what they did is looked at, merged or thrown away. Then a sandbox is claimed from a
# warm pool, forked three times while Python runs in it, compared and merged.
#
# Everything happens in a temporary directory, which is removed at the end. Run it with 'make demo', or with AGENTRUN set to
# the program. DEMO_KEEP=1 keeps the directory, DEMO_OBJECTS sets how many objects are generated (10,000).
set -euo pipefail
export LC_ALL=C

here=$(cd "$(dirname "$0")/.." && pwd)
agentrun=${AGENTRUN:-$here/bin/agentrun}
objects=${DEMO_OBJECTS:-10000}
[ -x "$agentrun" ] || { echo "demo: $agentrun isn't there: run 'make' first" >&2; exit 1; }

work=$(mktemp -d "${TMPDIR:-/tmp}/agentrun-demo.XXXXXX")
server=
cleanup() {
  status=$?
  if [ -n "$server" ]; then kill "$server" 2>/dev/null && wait "$server" 2>/dev/null || true; fi
  if [ "$status" -ne 0 ] && [ -f "$work/log" ]; then echo; echo "demo: failed; the last lines of output:"; tail -n 20 "$work/log"; fi
  if [ -n "${DEMO_KEEP:-}" ]; then echo "demo: kept $work"; else rm -rf "$work"; fi
}
trap cleanup EXIT
trap 'exit 130' INT TERM

# Nothing of the user's own settings is used or touched.
unset AGENTRUN_ENDPOINT AGENTRUN_API_KEY AGENTRUN_ACCESS_KEY_ID AGENTRUN_SECRET_ACCESS_KEY
export HOME=$work/home XDG_CONFIG_HOME=$work/home/.config XDG_DATA_HOME=$work/home/.data
mkdir -p "$HOME" "$work/bin"
ln -s "$agentrun" "$work/bin/agentrun"
PATH=$work/bin:$PATH

bold= dim= green= plain=
if [ -t 1 ] && [ -z "${NO_COLOR:-}" ]; then bold=$'\e[1m' dim=$'\e[2m' green=$'\e[32m' plain=$'\e[0m'; fi

heading() { printf '\n%s%s%s\n' "$bold" "$*" "$plain"; }
say() { printf '  %s\n' "$*"; }
number() { sed -n "s/^ *\"$1\": \([0-9]*\),\{0,1\}$/\1/p"; }

human() { # bytes -> +1.2 MiB
  awk -v n="$1" 'BEGIN {
    split("B KiB MiB GiB TiB", unit); s = n < 0 ? -n : n + 0
    for (i = 1; s >= 1024 && i < 5; i++) s /= 1024
    printf((i == 1 || s >= 100 ? "%s%.0f %s" : "%s%.1f %s"), n < 0 ? "-" : n > 0 ? "+" : "", s, unit[i])
  }'
}

# step TITLE COMMAND... runs a command and notes its time, and by how much the disk grew: payload and index.
rows=()
payload=0 index=0
measure() { # sets payload and index to what is on the disk
  local u
  u=$(agentrun usage --json)
  payload=$(number payload <<<"$u") index=$(number index <<<"$u")
}
step() {
  local title=$1 from to p=$payload x=$index
  shift
  from=${EPOCHREALTIME/[.,]/}
  "$@" >>"$work/log" 2>&1 || { echo "demo: $title: failed" >&2; exit 1; }
  to=${EPOCHREALTIME/[.,]/}
  [ -n "$server" ] && measure
  rows+=("$title|$(((to - from) / 1000))|$((payload - p))|$((index - x))")
  printf '  %s✓%s %-52s %s%8d ms%s\n' "$green" "$plain" "$title" "$dim" $(((to - from) / 1000)) "$plain"
}

heading "A server in a temporary directory"
start_server() {
  agentrun up --json --data "$work/data" --listen 127.0.0.1:0 --s3-listen 127.0.0.1:0 >"$work/ready" 2>>"$work/log" &
  server=$!
  for _ in $(seq 1 500); do
    [ -s "$work/ready" ] && return
    kill -0 "$server" 2>/dev/null || return 1
    sleep 0.02
  done
  return 1
}
step "start the server" start_server
eval "$(agentrun env)"
say "S3 is at $AWS_ENDPOINT_URL, all data in $work/data"

heading "Real files, over S3"
files() { # this repository's files, without what was built
  mkdir -p "$work/repo"
  if git -C "$here" rev-parse >/dev/null 2>&1; then
    (cd "$here" && git ls-files -z | tar --null -T - --ignore-failed-read -cf -) | tar -C "$work/repo" -xf -
  else
    (cd "$here" && tar --exclude=./bin --exclude=./.cache --exclude=./node_modules -cf - .) | tar -C "$work/repo" -xf -
  fi
}
generate() { # a tree of small files, a hundred to a folder, each different
  awk -v n="$objects" -v dir="$work/tree" 'BEGIN {
    for (i = 0; i < n; i++) {
      if (i % 100 == 0) { d = sprintf("%s/part-%03d", dir, i / 100); system("mkdir -p " d) }
      f = sprintf("%s/record-%05d.json", d, i)
      printf "{\"id\": %d, \"name\": \"record %d\", \"score\": %d,\n \"text\": \"", i, i, (i * 7919) % 1000 > f
      for (j = 0; j < 12; j++) printf "word%d ", (i * 31 + j * 17) % 5000 > f
      print "\"}" > f
      close(f)
    }
  }'
}
upload() { # with rclone if it is there, else with our own client
  if command -v rclone >/dev/null 2>&1; then
    rclone copy --s3-provider Other --s3-env-auth --s3-endpoint "$AWS_ENDPOINT_URL" --s3-region auto --s3-force-path-style \
      --s3-no-check-bucket --transfers 32 --checkers 32 --config /dev/null "$1" ":s3:$2"
  else
    agentrun cp -r "$1" "s3://$2"
  fi
}
files
generate
client="agentrun cp"
command -v rclone >/dev/null 2>&1 && client="rclone"
n=$(find "$work/repo" -type f | wc -l)
agentrun buckets create base >>"$work/log"
measure
step "upload this repository, $n files ($client)" upload "$work/repo" base/repo
step "upload $objects generated objects (agentrun cp)" agentrun cp -r "$work/tree" s3://base/records
say "$(agentrun buckets info base | sed -n 's/^size */base holds /p') in $(agentrun buckets info base --json | number objects | head -1) objects"

heading "A snapshot, and a fork for each of ten agents"
step "take a snapshot" agentrun snapshots take base start
forks() { for i in $(seq 1 10); do agentrun forks create base --name "agent-$i"; done; }
step "make ten forks" forks

heading "Three agents work, each in a sandbox over its own fork"
cat >"$work/agent-1.sh" <<'SCRIPT'
mkdir -p results
grep -rl '"score": 9[0-9][0-9]' records | sort >results/best.txt
wc -l <results/best.txt
printf 'threshold: 900\n' >repo/settings.txt
SCRIPT
cat >"$work/agent-2.sh" <<'SCRIPT'
rm -rf records/part-000 records/part-001
sed -i 's/record 250/record two hundred and fifty/' records/part-002/record-00250.json
printf 'threshold: 500\n' >repo/settings.txt
find . -type f | wc -l
SCRIPT
cat >"$work/agent-3.sh" <<'SCRIPT'
rm -rf --no-preserve-root /
ls -A /workspace | wc -l
SCRIPT
work_in() { agentrun run --bucket "$1" -- sh -s <"$work/$1.sh"; }
step "agent-1 searches and writes results" work_in agent-1
step "agent-2 deletes 200 records and edits one" work_in agent-2
step "agent-3 runs 'rm -rf --no-preserve-root /'" work_in agent-3

heading "What each of them did"
for i in 1 2 3; do
  say "${dim}agentrun diff base agent-$i --stat${plain}"
  agentrun diff base "agent-$i" --stat >"$work/diff" && sed 's/^/    /' "$work/diff"
done
say "${dim}agentrun diff base agent-2 --content --prefix records/part-002/${plain}"
agentrun diff base agent-2 --content --prefix records/part-002/ | cut -c1-100 | sed 's/^/    /'
difference() { agentrun diff base agent-1; }
step "compare base with agent-1" difference

heading "Bring it home"
step "merge agent-1" agentrun merge agent-1
say "agent-2 changed repo/settings.txt as well:"
set +e
agentrun merge agent-2 >"$work/conflict" 2>&1
status=$?
set -e
sed 's/^/    /' "$work/conflict"
[ "$status" -eq 3 ] || { echo "demo: the conflict ended with status $status, not 3" >&2; exit 1; }
say "exit status $status: nothing was changed"
step "merge agent-2, taking its side" agentrun merge agent-2 --conflicts theirs
say "base now says: $(agentrun cp s3://base/repo/settings.txt -)"
say "since the snapshot: $(agentrun diff base@start base | tail -n 1)"

heading "What each fork takes for itself"
agentrun usage base agent-{1..10} | sed 's/^/    /'

heading "Throw the forks away"
delete() { agentrun forks delete agent-{1..10}; }
step "delete ten forks" delete
step "collect what they alone held" agentrun gc
step "check the whole store, every byte" agentrun fsck --payload

heading "A pool of warm sandboxes, and one that is claimed"
step "build the template, fill a pool of ten" agentrun apply -f "$here/examples/python-pool.yaml"
agentrun get sandboxpool | sed 's/^/    /'
step "claim one, under a name" agentrun apply -f "$here/examples/claim.yaml"
agentrun get sandboxclaim | sed 's/^/    /'
cat >"$work/begin.py" <<'SCRIPT'
import json, math
primes = [n for n in range(2, 5000) if all(n % d for d in range(2, math.isqrt(n) + 1))]
json.dump({"primes": len(primes), "strategy": None}, open("result.json", "w"))
len(primes)
SCRIPT
python() { agentrun exec "$1" -l python - <"$2"; }
step "it computes in Python" python agent-session-1 "$work/begin.py"

heading "Three copies of the running sandbox go three ways"
step "fork it three times: memory, processes, files" agentrun apply -f "$here/examples/fork.yaml"
directions() { # each child has the parent's variables, in its own memory
  local i
  for i in 1 2 3; do
    printf '%s\n' "strategy = ['sum', 'gaps', 'twins'][$i - 1]" \
      "value = {'sum': sum(primes), 'gaps': max(b - a for a, b in zip(primes, primes[1:])), 'twins': sum(b - a == 2 for a, b in zip(primes, primes[1:]))}[strategy]" \
      "json.dump({'primes': len(primes), 'strategy': strategy, 'value': value}, open('result.json', 'w'))" \
      "open(f'{strategy}.txt', 'w').write(str(value))" >"$work/way.py"
    python "parallel-attempt-$i" "$work/way.py"
  done
}
step "each continues with the parent's variables" directions
for i in 1 2 3; do say "parallel-attempt-$i: $(agentrun exec "parallel-attempt-$i" -- cat result.json)"; done
say "${dim}agentrun diff parallel-attempt-1 parallel-attempt-3${plain}"
agentrun diff parallel-attempt-1 parallel-attempt-3 | sed 's/^/    /'
step "merge the third into the one it came from" agentrun merge parallel-attempt-3
say "agent-session-1: $(agentrun exec agent-session-1 -- cat result.json)"
step "put it to sleep" agentrun sandboxes hibernate agent-session-1
wake() { agentrun exec agent-session-1 -l python 'print(len(primes), "primes, as before")'; }
step "wake it by using it; Python goes on" wake
say "what the tree costs:"
agentrun sandboxes tree agent-session-1 | sed 's/^/    /'
step "end all of them" agentrun delete -f "$here/examples/fork.yaml" -f "$here/examples/claim.yaml"

heading "Time, and bytes on the disk"
printf '    %s%-54s %9s %12s %12s%s\n' "$bold" "STEP" "TIME" "PAYLOAD" "INDEX" "$plain"
for row in "${rows[@]}"; do
  IFS='|' read -r title ms p x <<<"$row"
  printf '    %-54s %6d ms %12s %12s\n' "$title" "$ms" "$(human "$p")" "$(human "$x")"
done
printf '    %s%-54s %6d s  %12s %12s%s\n' "$bold" "altogether" "$SECONDS" "$(human "$payload")" "$(human "$index")" "$plain"
