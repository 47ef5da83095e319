#!/usr/bin/env bash
# run.sh LABEL PACKAGE [FLAG…]: runs one package of Go tests that drive other programs, shows what fails and how long the parts
# took, and ends with "LABEL: N passed, N failed", counting the steps (the innermost subtests). What fails is run once more:
# a test that fails twice fails the run; one that passes then is named as wavering, to be repaired.
set -uo pipefail

label=$1 package=$2
shift 2
log=$(mktemp)
trap 'rm -f "$log"' EXIT
go test -count=1 -timeout 20m -v "$@" "$package" >"$log" 2>&1
status=$?
wavering=
if [ $status != 0 ] && grep -q '^ *--- FAIL' "$log"; then
	cat "$log"
	wavering=$(grep -E '^ *--- FAIL' "$log")
	echo "$label: failed; once more"
	go test -count=1 -timeout 20m -v "$@" "$package" >"$log" 2>&1
	status=$?
fi

# -v shows everything; what a reader needs is the summary of each client, what is open, and all there is about a failure.
if [ $status = 0 ]; then
	grep -E '^(--- |ok |[a-z]+: [0-9]+ of [0-9]+ counted|\||$)|OPEN: ' "$log"
else
	cat "$log"
fi
awk -v label="$label" -v status=$status '
	match($0, /--- (PASS|FAIL|SKIP): [^ ]+/) {
		split(substr($0, RSTART, RLENGTH), w, " ")
		name = w[3]
		result[name] = w[2]
		while (sub(/\/[^\/]*$/, "", name)) parent[name] = 1
	}
	END {
		for (n in result) if (!(n in parent)) count[result[n]]++
		# A run that fails without a failed step (a panic, a build error, a time limit) is one failure more.
		if (status != 0 && !count["FAIL:"]) count["FAIL:"] = 1
		printf "%s: %d passed, %d failed", label, count["PASS:"], count["FAIL:"]
		if (count["SKIP:"]) printf ", %d skipped", count["SKIP:"]
		printf "\n"
	}' "$log"
if [ $status = 0 ] && [ -n "$wavering" ]; then printf '%s: WAVERING, failed once and passed then:\n%s\n' "$label" "$wavering"; fi
exit $status
