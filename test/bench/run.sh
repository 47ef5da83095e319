#!/usr/bin/env bash
# run.sh: the benchmarks of SPECIFICATION.md, as `make bench` runs them. Arguments go to the program: -only REGEXP, -quick.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
go build -trimpath -o bin/bench ./test/bench
cache=${AGENTRUN_CACHE:-$HOME/.cache/agentrun}
version() { awk -v n="$1" '$1 == n { print $2 }' test/harness/tools.txt; }
digest() { sha256sum <"$1" | cut -c1-12; }
exec bin/bench -versitygw "$cache/versitygw-$(version versitygw)/bin/versitygw" -just-bash "$cache/just-bash-$(version just-bash)" -e2b "$cache/e2b-python-new-$(digest test/e2b/clients/python-new.txt)/bin/python" \
	-sdk-python "$cache/sdk-python-$(digest test/sdk/python/requirements.txt)/bin/python" "$@"
