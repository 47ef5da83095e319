#!/usr/bin/env bash
# go.sh ARGUMENT…: `go test` with these arguments. Packages that fail are tested once more, alone, when the machine has nothing
# else to do: a test that fails twice fails the run; one that passes then is named at the end as wavering, to be repaired.
set -uo pipefail

log=$(mktemp)
trap 'rm -f "$log"' EXIT
go test "$@" 2>&1 | tee "$log"
[ "${PIPESTATUS[0]}" = 0 ] && exit 0

mapfile -t failed < <(awk '$1 == "FAIL" && $2 ~ /\// && !/\[(build|setup) failed\]/ { print $2 }' "$log" | sort -u)
# What doesn't compile fails as surely the second time, and so does a run that names no package.
if grep -q '\[\(build\|setup\) failed\]' "$log" || [ ${#failed[@]} = 0 ]; then exit 1; fi

flags=()
for a in "$@"; do
	case $a in ./* | */*) ;; *) flags+=("$a") ;; esac
done
echo "go.sh: once more, alone: ${failed[*]}"
# Flags of the test binary (-rapid.seed) have to stand behind the packages.
go test -count=1 -p 1 "${failed[@]}" "${flags[@]}" || exit 1
echo "go.sh: WAVERING, failed once and passed alone:"
grep -E '^ *--- FAIL' "$log"
