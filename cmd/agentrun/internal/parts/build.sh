#!/usr/bin/env bash
# build.sh: builds the programs of microVMs into dist/, for package parts: the agent that is a VM's first process, and the VMM process.
# They are static, and the same for the same sources, so that go build finds agentrun unchanged.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cd "$here/../../../.."
for program in agentrun-guest agentrun-vmm; do
	CGO_ENABLED=0 GOOS=linux GOARCH=amd64 go build -trimpath -buildvcs=false -ldflags='-s -w -buildid=' -o "$here/dist/.$program" "./cmd/$program"
	if cmp -s "$here/dist/.$program" "$here/dist/$program"; then
		rm "$here/dist/.$program"
	else
		mv "$here/dist/.$program" "$here/dist/$program"
	fi
done
