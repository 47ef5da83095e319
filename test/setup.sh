#!/usr/bin/env bash
# setup.sh [TOOL…]: installs what the tests need and says so. Without arguments: everything.
#
# Each tool goes into its own folder of ${AGENTRUN_CACHE:-$HOME/.cache/agentrun}, named by its version, so that a second run
# does nothing and an upgrade never meets leftovers. A folder appears under its final name only when it is complete.
# Debian packages are installed only when something is missing, and only as root; otherwise the script says what to install.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(dirname "$here")
cache=${AGENTRUN_CACHE:-$HOME/.cache/agentrun}
mkdir -p "$cache"

say() { printf 'setup: %s\n' "$*"; }
die() { printf 'setup: error: %s\n' "$*" >&2; exit 1; }

# pinned NAME prints the version that tools.txt pins.
pinned() { awk -v n="$1" '$1 == n { print $2; found = 1 } END { exit !found }' "$here/harness/tools.txt" || die "$1 isn't in tools.txt"; }

# digest FILE… prints a short name for the content of lock files.
digest() { cat "$@" | sha256sum | cut -c1-12; }

# debian COMMAND PACKAGE… makes sure of a command, from Debian packages if need be.
debian() {
	local command=$1; shift
	command -v "$command" >/dev/null 2>&1 && return
	command -v apt-get >/dev/null 2>&1 || die "$command is missing and this isn't Debian: install it, then run again"
	[ "$(id -u)" = 0 ] || die "$command is missing and this isn't root: run 'apt-get install $*' as root, then run again"
	say "Debian packages: $*"
	apt-get update -qq
	DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null
	command -v "$command" >/dev/null 2>&1 || die "$command is still missing after installing $*"
}

# folder NAME COMMAND…: unless $cache/NAME exists, runs COMMAND with a new folder in $dir, then gives it its name.
folder() {
	local name=$1; shift
	[ -e "$cache/$name" ] && return
	# The lock keeps two runs at once from building the same thing twice.
	exec 9>"$cache/.$name.lock"
	flock 9
	if [ ! -e "$cache/$name" ]; then
		dir=$cache/.$name.partial
		rm -rf "$dir"
		mkdir -p "$dir"
		local start=$SECONDS
		"$@"
		mv "$dir" "$cache/$name"
		say "$name installed in $((SECONDS - start)) s"
	fi
	exec 9>&-
}

# gobuild MODULE@VERSION builds one pinned Go program. -trimpath is what its users' builds have; -buildvcs needs no git.
gobuild() {
	say "building $1 into $cache (from the Go module proxy; once per version)"
	(cd "$dir" && GOBIN="$dir/bin" GOFLAGS= GOWORK=off go install -buildvcs=false -trimpath "$1")
}

versitygw() { folder "versitygw-$(pinned versitygw)" gobuild "github.com/versity/versitygw/cmd/versitygw@v$(pinned versitygw)"; }
rclone() { folder "rclone-$(pinned rclone)" gobuild "github.com/rclone/rclone@v$(pinned rclone)"; }

# minio-go's functional tests are one program that runs case after case and stops at a panic. A copy whose main is renamed
# gets a main that runs the one case which it is told, so that each stands for itself.
miniogo_build() {
	local version=$1 source
	say "building minio-go $version's functional tests into $cache"
	source=$(cd "$root" && go mod download -json github.com/minio/minio-go/v7 | sed -n 's/.*"Dir": "\(.*\)".*/\1/p')
	[ -f "$source/functional_tests.go" ] || die "minio-go has no functional_tests.go"
	cp -r "$source" "$dir/source"
	chmod -R u+w "$dir/source"
	rm "$dir/source/functional_tests.go" && mkdir "$dir/source/functional"
	sed 's/^func main() {$/func allCases() {/' "$source/functional_tests.go" >"$dir/source/functional/all.go"
	{
		printf '//go:build mint\n\npackage main\n\nimport (\n\t"log/slog"\n\t"os"\n)\n\nvar cases = map[string]func(){\n'
		sed -n '/^func allCases() {$/,/^}$/s/^\t*\(test[A-Za-z0-9]*\)()$/\1/p' "$dir/source/functional/all.go" | sort -u |
			sed 's/.*/\t"&": &,/'
		cat <<-'GO'
			}

			func main() {
				slog.SetDefault(slog.New(slog.NewJSONHandler(os.Stdout, nil)))
				if len(os.Args) < 2 {
					for name := range cases {
						os.Stdout.WriteString(name + "\n")
					}
					return
				}
				run, ok := cases[os.Args[1]]
				if !ok {
					os.Stderr.WriteString("no such case\n")
					os.Exit(2)
				}
				run()
			}
		GO
	} >"$dir/source/functional/cases.go"
	mkdir -p "$dir/bin"
	(cd "$dir/source" && GOFLAGS= GOWORK=off go build -mod=mod -buildvcs=false -tags mint -o "$dir/bin/miniogo" ./functional)
	rm -rf "$dir/source"
}
miniogo() {
	local version
	version=$(cd "$root" && go list -m -f '{{.Version}}' github.com/minio/minio-go/v7)
	folder "miniogo-${version#v}" miniogo_build "${version#v}"
}

# venv makes a Python environment of $dir.
venv() {
	python3 -m venv "$dir" >/dev/null 2>&1 || {
		rm -rf "$dir"
		[ "$(id -u)" = 0 ] || die "python3 has no venv module: run 'apt-get install python3-venv' as root, then run again"
		say "Debian packages: python3-venv"
		apt-get update -qq
		DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends python3-venv >/dev/null
		python3 -m venv "$dir"
	}
}

# python_build NAME LOCK WHAT makes an environment of what a lock file has.
python_build() {
	say "installing $3 into $cache (from PyPI)"
	venv
	"$dir/bin/python" -m pip install --quiet --disable-pip-version-check --requirement "$2"
	# Scripts name their interpreter by its absolute path, which changes when the folder gets its name.
	grep -rlIF "$dir" "$dir/bin" "$dir/pyvenv.cfg" | xargs -r sed -i "s|$dir|$cache/$1|g"
}
python() {
	debian python3 python3 python3-venv
	local name lock=$here/e2e/python/requirements.txt
	name=python-$(digest "$lock")
	folder "$name" python_build "$name" "$lock" "aws-cli, boto3 and s3cmd"
}
openapi() {
	debian python3 python3 python3-venv
	local name lock=$here/suites/openapi/requirements.txt
	name=openapi-$(digest "$lock")
	folder "$name" python_build "$name" "$lock" "schemathesis"
}

# What the SDK for Python is tested with: an environment of tools, and their packages, from which the tests install without the network.
sdk_python_build() {
	say "installing what tests the Python SDK into $cache (from PyPI)"
	venv
	"$dir/bin/python" -m pip download --quiet --disable-pip-version-check --requirement "$here/sdk/python/requirements.txt" --dest "$dir/wheels"
	"$dir/bin/python" -m pip install --quiet --disable-pip-version-check --no-index --find-links "$dir/wheels" --requirement "$here/sdk/python/requirements.txt"
	grep -rlIF "$dir" "$dir/bin" "$dir/pyvenv.cfg" | xargs -r sed -i "s|$dir|$cache/$1|g"
}
sdk-python() {
	debian python3 python3 python3-venv
	local name
	name=sdk-python-$(digest "$here/sdk/python/requirements.txt")
	folder "$name" sdk_python_build "$name"
}

js_build() {
	say "installing @tigrisdata/cli and @tigrisdata/storage into $cache (from the npm registry, without their install scripts)"
	cp "$here/e2e/js/package.json" "$here/e2e/js/package-lock.json" "$dir/"
	(cd "$dir" && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error)
}
js() {
	debian node nodejs npm
	debian npm npm
	folder "js-$(digest "$here/e2e/js/package-lock.json")" js_build
}

sdk_typescript_build() {
	say "installing what builds the TypeScript SDK into $cache (from the npm registry, without install scripts)"
	cp "$here/sdk/typescript/package.json" "$here/sdk/typescript/package-lock.json" "$dir/"
	(cd "$dir" && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error)
}
sdk-typescript() {
	debian node nodejs npm
	debian npm npm
	folder "sdk-typescript-$(digest "$here/sdk/typescript/package-lock.json")" sdk_typescript_build
}

# E2B's SDKs, unmodified: for each language the oldest that is supported and the newest that was looked at.
e2b_js_build() {
	say "installing E2B's SDK for JavaScript into $cache (from the npm registry, without install scripts)"
	cp "$here/e2b/clients/$1/package.json" "$here/e2b/clients/$1/package-lock.json" "$dir/"
	(cd "$dir" && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error)
}
e2b() {
	debian node nodejs npm
	debian npm npm
	debian python3 python3 python3-venv
	local which name
	for which in js-old js-new; do
		folder "e2b-$which-$(digest "$here/e2b/clients/$which/package-lock.json")" e2b_js_build "$which"
	done
	for which in python-old python-new; do
		name=e2b-$which-$(digest "$here/e2b/clients/$which.txt")
		folder "$name" python_build "$name" "$here/e2b/clients/$which.txt" "E2B's SDK for Python"
	done
}

# What speaks MCP with us, and a Node that is new enough for it.
mcp_js_build() {
	say "installing MCP's inspector, conformance suite and TypeScript SDK into $cache (from the npm registry, without install scripts)"
	cp "$here/mcp/js/package.json" "$here/mcp/js/package-lock.json" "$dir/"
	(cd "$dir" && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error)
}
mcp-js() {
	debian node nodejs npm
	debian npm npm
	folder "mcp-js-$(digest "$here/mcp/js/package-lock.json")" mcp_js_build
}
mcp-python() {
	debian python3 python3 python3-venv
	local name lock=$here/mcp/python/requirements.txt
	name=mcp-python-$(digest "$lock")
	folder "$name" python_build "$name" "$lock" "MCP's Python SDK"
}

just_bash_build() {
	say "installing just-bash into $cache (from the npm registry, without install scripts)"
	npm install --prefix "$dir" --ignore-scripts --no-audit --no-fund --loglevel=error "just-bash@$1"
}

just-bash() {
	debian node nodejs npm
	debian npm npm
	folder "just-bash-$(pinned just-bash)" just_bash_build "$(pinned just-bash)"
}

ssh() {
	debian ssh openssh-client
	debian rsync rsync
}

# debs FOLDER PACKAGE… unpacks Debian packages into a folder, without installing them: that needs no root. apt is given lists of its
# own when the system's are missing or too old.
apt_lists() {
	say "fetching Debian's lists of packages"
	mkdir -p "$cache/apt/lists/partial" "$cache/apt/cache/archives/partial"
	printf 'Dir::State::lists "%s";\nDir::Cache "%s";\nAPT::Sandbox::User "%s";\n' "$cache/apt/lists" "$cache/apt/cache" "$(id -un)" >"$cache/apt/conf"
	export APT_CONFIG=$cache/apt/conf
	apt-get update -qq
}
debs() {
	local to=$1 from; shift
	from=$(mktemp -d "$cache/.debs.XXXXXX")
	(cd "$from" && apt-get download -qq "$@" >/dev/null 2>&1) || { apt_lists; (cd "$from" && apt-get download -qq "$@" >/dev/null); }
	for deb in "$from"/*.deb; do dpkg-deb -x "$deb" "$to"; done
	rm -rf "$from"
}

# candidate PACKAGE prints the version that Debian has now.
candidate() { apt-cache policy "$1" 2>/dev/null | awk '$1 == "Candidate:" && $2 != "(none)" { print $2 }'; }

# unpacked NAME PACKAGE COMMAND…: a folder named by a package's version, and a link of the plain name to it. Without Debian's lists and
# without a network the one that is there already is good enough.
unpacked() {
	local name=$1 package=$2 version; shift 2
	command -v apt-get >/dev/null 2>&1 || { [ -e "$cache/$name" ] && return; die "$name comes from Debian's packages, and this isn't Debian"; }
	version=$(candidate "$package")
	if [ -z "$version" ]; then
		[ ! -e "$cache/$name" ] || return 0
		apt_lists || true
		version=$(candidate "$package")
		[ -n "$version" ] || die "no package $package: is this Debian, and has it a network?"
	fi
	folder "$name-${version//:/_}" "$@"
	ln -sfn "$name-${version//:/_}" "$cache/$name"
}

# QEMU with those of its libraries that this machine lacks.
qemu_build() {
	local packages
	say "unpacking QEMU into $cache (from Debian's packages)"
	mapfile -t packages < <(apt-get install --print-uris -y --no-install-recommends qemu-system-x86 2>/dev/null | sed -n "s/^'[^']*' \([^_]*\)_.*\.deb .*/\1/p")
	debs "$dir/root" "${packages[@]:-qemu-system-x86}" qemu-system-x86
	mkdir "$dir/bin"
	cat >"$dir/bin/qemu-system-x86_64" <<-'SH'
		#!/bin/sh
		root=$(dirname "$(dirname "$(readlink -f "$0")")")/root
		LD_LIBRARY_PATH=$root/usr/lib/x86_64-linux-gnu:$root/lib/x86_64-linux-gnu QEMU_MODULE_DIR=$root/usr/lib/x86_64-linux-gnu/qemu \
			exec "$root/usr/bin/qemu-system-x86_64" -L "$root/usr/share/qemu" -L "$root/usr/share/seabios" -L "$root/usr/lib/ipxe/qemu" "$@"
	SH
	chmod +x "$dir/bin/qemu-system-x86_64"
	(cd "$root" && go run ./test/vm/emulator "$dir/root/usr/bin/qemu-system-x86_64") ||
		say "WARNING: this QEMU isn't the one that test/vm/emulator knows: once in some hours a machine that is emulated in it will stand still"
	"$dir/bin/qemu-system-x86_64" --version >/dev/null || die "the QEMU that was unpacked doesn't run"
	rm -rf "$dir"/root/usr/share/{doc,locale,man} "$dir"/root/usr/libexec "$dir"/root/usr/bin/qemu-s*-daemon "$dir"/root/usr/bin/*-microvm
}
qemu() {
	local recipe
	recipe=$({ declare -f qemu_build; cat "$here/vm/emulator/main.go"; } | sha256sum | cut -c1-8)
	unpacked "qemu-$recipe" qemu-system-x86 qemu_build
	ln -sfn "qemu-$recipe" "$cache/qemu"
}

# The kernels of test/vm: bench/ is the one that has KVM, cloud/ the one that our own VMs boot; each vmlinuz and modules/. busybox is
# what they run.
kernels_build() {
	local bench cloud
	bench=$(apt-cache depends linux-image-amd64 | awk '/Depends: linux-image/ { print $2; exit }')
	cloud=$(apt-cache depends linux-image-cloud-amd64 | awk '/Depends: linux-image/ { print $2; exit }')
	say "unpacking $bench, $cloud and busybox-static into $cache (from Debian's packages)"
	debs "$dir/root" "$bench" "$cloud" busybox-static
	mkdir "$dir/bench" "$dir/cloud" "$dir/bin"
	local name kind
	for kind in bench cloud; do
		name=${!kind#linux-image-}
		mv "$dir/root/boot/vmlinuz-$name" "$dir/$kind/vmlinuz"
		mv "$dir"/root/lib/modules/"$name"/kernel "$dir/$kind/modules"
	done
	# Drivers of real hardware aren't of use here, and take 300 MB.
	find "$dir/bench/modules/drivers" -mindepth 1 -maxdepth 1 ! -name crypto ! -name virtio ! -name block ! -name vhost ! -name char ! -name net -exec rm -rf {} +
	find "$dir/bench/modules/drivers/net" -mindepth 1 -maxdepth 1 ! -name 'virtio_net.ko*' ! -name 'net_failover.ko*' -exec rm -rf {} +
	rm -rf "$dir"/bench/modules/sound
	mv "$dir/root/bin/busybox" "$dir/bin/busybox"
	rm -rf "$dir/root"
}
kernels() {
	local recipe
	recipe=$(declare -f kernels_build | sha256sum | cut -c1-8)
	unpacked "kernels-$recipe" linux-image-amd64 kernels_build
	ln -sfn "kernels-$recipe" "$cache/kernels"
}

# bash, linked statically: what the engines' suite runs in a small system of busybox.
bash_static_build() {
	say "unpacking bash-static into $cache (from Debian's packages)"
	debs "$dir/root" bash-static
	mkdir "$dir/bin"
	mv "$dir/root/bin/bash-static" "$dir/bin/bash"
	rm -rf "$dir/root"
}
bash-static() { unpacked bash-static bash-static bash_static_build; }

# A Debian with Python and numpy as an OCI image, in a layout's folder, under the name that examples give their template. mmdebstrap makes it
# of the packages of this machine's own Debian, as root or in a user namespace; it is unpacked here, not installed.
readonly python_image=python:3.12-slim
debian_python_build() {
	local codename key blob sources=() config
	codename=$(. /etc/os-release && [ "${ID:-}" = debian ] && printf %s "${VERSION_CODENAME:-}") || true
	[ -n "$codename" ] || die "$python_image is made of Debian's packages, and this isn't a Debian"
	say "making the image $python_image, a Debian $codename with Python and numpy, in $cache (from Debian's packages, with mmdebstrap)"
	debian perl perl
	debs "$dir/tools" mmdebstrap
	# This machine's sources of Debian, and nothing else that it has; and how it reaches them.
	mapfile -t sources < <(grep -lE "(^|[[:space:]])$codename(-updates|-security|/updates)?([[:space:]]|\$)" /etc/apt/sources.list /etc/apt/sources.list.d/*.{list,sources} 2>/dev/null |
		xargs -r grep -lw main)
	apt-config dump | grep -E '^Acquire::(http|https|Retries|ForceIPv)' >"$dir/apt.conf" || true
	PATH=$dir/tools/usr/bin:$PATH mmdebstrap --variant=essential --format=tar --hook-dir="$dir/tools/usr/share/mmdebstrap/hooks/merged-usr" \
		--include=python3,python3-numpy,media-types,usr-is-merged --aptopt="$dir/apt.conf" \
		--setup-hook='printf "Package: usrmerge\nPin: release *\nPin-Priority: -1\n" >"$1/etc/apt/preferences.d/99build"' \
		--dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*' --dpkgopt='path-exclude=/usr/share/doc/*' \
		--dpkgopt='path-exclude=/usr/share/info/*' --dpkgopt='path-exclude=/usr/share/i18n/*' --dpkgopt='path-exclude=/usr/share/zoneinfo/*' \
		--dpkgopt='path-exclude=/usr/lib/x86_64-linux-gnu/gconv/*' \
		--customize-hook='find "$1/usr/lib/python3" -type d -name tests -prune -exec rm -rf {} +' \
		--customize-hook='rm -rf "$1"/etc/hostname "$1"/etc/resolv.conf "$1"/etc/machine-id "$1"/var/log/* "$1"/etc/apt/apt.conf.d/99mmdebstrap "$1"/etc/apt/preferences.d/99build "$1"/var/cache/ldconfig/*' \
		--customize-hook='ln -sf python3 "$1/usr/bin/python"' \
		"$codename" "$dir/layer.tar" "${sources[@]}" >"$dir/log" 2>&1 ||
		{ tail -n 30 "$dir/log" >&2; die "$python_image can't be made: mmdebstrap has said why. It needs root or user namespaces, and Debian's packages from a mirror"; }
	blob=$dir/layout/blobs/sha256
	mkdir -p "$blob"
	key=$(sha256sum <"$dir/layer.tar" | cut -d' ' -f1)
	gzip -n -6 "$dir/layer.tar"
	config=$(printf '{"architecture":"amd64","os":"linux","config":{"Env":["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin","LANG=C.UTF-8"],"Cmd":["python3"]},"rootfs":{"type":"layers","diff_ids":["sha256:%s"]}}' "$key")
	# blob TYPE FILE keeps a file by its sum and prints its descriptor.
	add_blob() {
		key=$(sha256sum <"$2" | cut -d' ' -f1)
		mv "$2" "$blob/$key"
		printf '{"mediaType":"application/vnd.oci.image.%s","digest":"sha256:%s","size":%d%s}' "$1" "$key" "$(stat -c %s "$blob/$key")" "${3:-}"
	}
	printf %s "$config" >"$dir/config"
	printf '{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","config":%s,"layers":[%s]}' \
		"$(add_blob config.v1+json "$dir/config")" "$(add_blob layer.v1.tar+gzip "$dir/layer.tar.gz")" >"$dir/manifest"
	printf '{"schemaVersion":2,"manifests":[%s]}' "$(add_blob manifest.v1+json "$dir/manifest" ',"annotations":{"org.opencontainers.image.ref.name":"'"$python_image"'"},"platform":{"os":"linux","architecture":"amd64"}')" \
		>"$dir/layout/index.json"
	printf '{"imageLayoutVersion":"1.0.0"}' >"$dir/layout/oci-layout"
	rm -rf "$dir/tools" "$dir/apt.conf" "$dir/log"
}
debian-python() {
	local recipe
	recipe=$(declare -f debian_python_build | sha256sum | cut -c1-8)
	unpacked "debian-python-$recipe" python3-numpy debian_python_build
	ln -sfn "debian-python-$recipe" "$cache/debian-python"
}

command -v go >/dev/null 2>&1 || die "Go is missing: AgentRun is built with it"
[ $# -gt 0 ] || set -- python openapi js ssh versitygw miniogo rclone sdk-python sdk-typescript mcp-js mcp-python e2b
for tool in "$@"; do
	case $tool in
	versitygw | rclone | miniogo | python | openapi | js | ssh | just-bash | sdk-python | sdk-typescript | mcp-js | mcp-python | e2b | qemu | kernels | debian-python | bash-static) "$tool" ;;
	*) die "no such tool: $tool" ;;
	esac
done
