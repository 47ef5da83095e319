#!/usr/bin/env bash
# run.sh: the benchmarks of SPECIFICATION.md, as `make bench` runs them. Arguments go to the program: -only REGEXP, -quick.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
go build -trimpath -o bin/bench ./test/bench
version=$(awk '$1 == "versitygw" { print $2 }' test/harness/tools.txt)
exec bin/bench -versitygw "${AGENTRUN_CACHE:-$HOME/.cache/agentrun}/versitygw-$version/bin/versitygw" "$@"
