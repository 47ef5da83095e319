# AgentRun: everything that a developer or CI runs. `make help` lists it.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := build
.PHONY: build guests setup check unit race e2e suites sdk mcp e2b docs vm posix test demo bench bench-kvm soak clean help

# Packages whose tests are about several goroutines at once: these run once more under the race detector.
RACE := ./kv/... ./blob/... ./bucket/... ./access/... ./vfs/... ./volume/... ./proc/... ./fusefs ./vmm ./vmm/virtio/... ./vmm/jail ./guest/... ./engine/... ./node/... ./serve/...
# Packages with model tests on random sequences. Here they run with one seed, so that a run can be repeated; `make soak` takes new ones.
RAPID := ./bucket ./bucket/tree ./guest/files ./vfs/bucketfs ./vfs/hostfs ./vfs/memfs
SEED := -rapid.seed=20261121
# What `make unit` leaves to the targets below it: they need third-party tools.
UNIT = $$(go list ./... | grep -v -e '/test/\(e2e\|suites\|docs\|sdk\|mcp\|vm\|e2b\)$$' -e '/bucket$$' -e '/bucket/tree$$' -e '/guest/files$$' -e '/vfs/\(bucket\|host\|mem\)fs$$')

build: ## build bin/agentrun, with the guests if they can be built here
	@wasm/guests/build.sh || echo "building without the interpreters: python3 will say so"
	@wasm/guests/js/build.sh || echo "building without QuickJS: node will say so"
	@cmd/agentrun/internal/parts/build.sh || echo "building without the programs of microVMs: the engine will say so"
	go build -trimpath -o bin/agentrun ./cmd/agentrun

guests: ## build the WebAssembly interpreters into wasm/guests/dist, from Debian's sources, cached
	wasm/guests/build.sh
	wasm/guests/js/build.sh

setup: ## install the third-party tools that the tests run into a cache, pinned by version
	test/setup.sh

check: ## gofmt and vet
	@bad=$$(gofmt -l $$(git ls-files '*.go')); [ -z "$$bad" ] || { echo "not formatted with gofmt:"; echo "$$bad"; exit 1; }
	go vet ./...

unit: ## unit tests of every package, and the test of the levels
	test/go.sh $(UNIT)
	test/go.sh $(RAPID) $(SEED)

race: ## the concurrent packages once more, under the race detector
	test/go.sh -race -short $$(go list $(RACE) | grep -v -e '/bucket$$' -e '/bucket/tree$$' -e '/guest/files$$' -e '/vfs/\(bucket\|host\|mem\)fs$$')
	test/go.sh -race -short $(RAPID) $(SEED)

e2e: build setup ## real clients against a real server
	test/run.sh e2e ./test/e2e

suites: build setup ## the S3 suites of versitygw and minio-go against a real server
	test/run.sh suites ./test/suites

sdk: build setup ## the SDKs: built, installed from their packages, against a real server
	test/run.sh sdk ./test/sdk

e2b: build setup ## E2B's own SDKs, unmodified, against a real server; docs/e2b.md says what they found
	test/run.sh e2b ./test/e2b

mcp: build setup ## MCP: official clients and the conformance suite, on both transports
	test/run.sh mcp ./test/mcp

docs: build setup ## what the documents print is run, what they name is looked for
	test/run.sh docs ./test/docs

vm: ## microVMs with stock kernels, in a machine that QEMU emulates with its virtualization
	test/setup.sh qemu kernels bash-static sdk-python ssh
	cmd/agentrun/internal/parts/build.sh
	@no=; test/setup.sh debian-python || { no=1; echo "vm: NOT TESTED HERE: what needs a Debian with Python"; }; \
		AGENTRUN_NO_DEBIAN=$$no test/run.sh vm ./test/vm -timeout 40m

posix: ## write docs/posix.md, the conformance to POSIX, from its tests
	go test ./test/posix -update

test: ## all of the above: the whole proof, fast things first
	$(MAKE) --no-print-directory check
	$(MAKE) --no-print-directory build
	$(MAKE) --no-print-directory unit
	$(MAKE) --no-print-directory setup
	$(MAKE) --no-print-directory e2e
	$(MAKE) --no-print-directory suites
	$(MAKE) --no-print-directory sdk
	$(MAKE) --no-print-directory mcp
	$(MAKE) --no-print-directory e2b
	$(MAKE) --no-print-directory docs
	$(MAKE) --no-print-directory vm
	$(MAKE) --no-print-directory race

demo: build ## the main job in a minute: upload, snapshot, fork, diff, merge
	./examples/demo.sh

bench: build ## the measurements of SPECIFICATION.md
	test/setup.sh versitygw just-bash sdk-python e2b qemu kernels bash-static debian-python
	test/bench/run.sh

bench-kvm: ## the measurements of VMs on this host's own KVM, which has to boot stock kernels
	test/setup.sh kernels bash-static debian-python
	test/bench/run.sh -only '^vm' -kvm host

soak: build setup ## what takes long: every fuzzer, crash loops, load (SOAK_MINUTES each, 10 unless told)
	test/setup.sh qemu kernels bash-static debian-python
	test/soak.sh

clean: ## remove what was built here; the cache of tools stays
	rm -rf bin

help: ## this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "make %-9s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
