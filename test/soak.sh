#!/usr/bin/env bash
# soak.sh: what takes too long for `make test`: every fuzzer of the tree, the crash test for many rounds, hundreds of
# sandboxes of a service, and the client tests and suites again and again against a server built with the race detector. SOAK_MINUTES (10) is for each of the three parts;
# what reads a hostile guest's bytes (the devices, the monitor's protocol, saved machines) is fuzzed for six times as long.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

minutes=${SOAK_MINUTES:-10}
passed=0 failed=0
# run NAME COMMAND… counts how a part ended; a failure doesn't stop the others.
run() {
	local name=$1
	shift
	printf -- '--- %s\n' "$name"
	if "$@"; then passed=$((passed + 1)); else
		failed=$((failed + 1))
		printf -- '--- FAILED: %s\n' "$name"
	fi
}

mapfile -t fuzzers < <(go test -list '^Fuzz' ./... 2>/dev/null | awk '/^Fuzz/ { names[n++] = $1 } /^ok/ { for (i = 0; i < n; i++) print $2, names[i]; n = 0 }')
# fuzz SECONDS "PACKAGE NAME"… runs these fuzzers for so long together, and each for 5 s at least.
fuzz() {
	local each=$(($1 / ($# - 1))) package name
	shift
	[ $each -gt 5 ] || each=5
	for f in "$@"; do
		read -r package name <<<"$f"
		run "$package $name for $each s" go test -run '^$' -fuzz "^$name\$" -fuzztime "${each}s" "$package"
	done
}
of_guests=() others=()
for f in "${fuzzers[@]}"; do
	case $f in
	agentrun.dev/vmm/* | agentrun.dev/fusefs* | agentrun.dev/guest/wire*) of_guests+=("$f") ;;
	*) others+=("$f") ;;
	esac
done
[ ${#others[@]} -gt 0 ] && [ ${#of_guests[@]} -gt 0 ] || { echo "soak: go test -list finds too few fuzzers" >&2; exit 1; }
fuzz $((minutes * 60)) "${others[@]}"
fuzz $((minutes * 360)) "${of_guests[@]}"

run "1,000 forks of a VM" env AGENTRUN_VM_FORKS=1000 go test -count=1 -timeout 30m -run '^TestNothingLeaks$' ./vmm ./vmm/memory ./vmm/jail
run "a Python in VMs, the long form" env AGENTRUN_VM_LONG=1 go test -count=1 -timeout 60m -run '^TestPython$' -v ./test/vm
run "the service with microVMs, its restarts too" env AGENTRUN_VM_LONG=1 go test -count=1 -timeout 40m -run '^TestService$' ./test/vm
run "the engines' suite, and what machines do besides, in the bench" go test -count=1 -timeout 40m -run '^TestEngine$' ./test/vm
run "CPython's own tests" test/cpython/run.sh

run "build" go build -trimpath -o bin/agentrun ./cmd/agentrun
run "500 sandboxes of 50 clients" go run ./test/soak -minutes "$((minutes < 5 ? minutes : 5))"

race=$(mktemp -d)
trap 'rm -rf "$race"' EXIT
run "build with the race detector" go build -race -trimpath -o "$race/agentrun" ./cmd/agentrun
export AGENTRUN_TEST_BINARY=$race/agentrun

export AGENTRUN_CRASH_ROUNDS=50
end=$((SECONDS + minutes * 60))
while [ $SECONDS -lt $end ]; do
	run "50 crashes" go test -count=1 -timeout 60m -run '^TestCrash$' ./test/e2e
done
unset AGENTRUN_CRASH_ROUNDS

end=$((SECONDS + minutes * 60))
while [ $SECONDS -lt $end ]; do
	run "clients" go test -count=1 -timeout 60m ./test/e2e
	run "suites" go test -count=1 -timeout 60m ./test/suites
done

echo "soak: $passed passed, $failed failed"
[ $failed = 0 ]
