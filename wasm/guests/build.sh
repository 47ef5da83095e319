#!/usr/bin/env bash
# build.sh [GUEST…]: builds the WebAssembly guests into dist/ from the sources of Debian 12, with Debian's own clang.
#
# A finished guest is kept in ${AGENTRUN_CACHE:-$HOME/.cache/agentrun} under the hash of all that it is made from, so that a second run
# does nothing. Packages are installed only when something is missing, and only as root; otherwise the script says what to install.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=${AGENTRUN_CACHE:-$HOME/.cache/agentrun}
llvm=14
jobs=$(nproc)
mkdir -p "$cache" "$here/dist"

say() { printf 'guests: %s\n' "$*"; }
die() { printf 'guests: error: %s\n' "$*" >&2; exit 1; }

# tools makes sure of the compilers.
tools() {
	local missing=()
	command -v clang-$llvm >/dev/null || missing+=(clang-$llvm)
	command -v wasm-ld-$llvm >/dev/null || missing+=(lld-$llvm)
	command -v llvm-ar-$llvm >/dev/null || missing+=(llvm-$llvm)
	[ -e /usr/lib/wasm32-wasi/libc.a ] || missing+=(wasi-libc)
	ls /usr/lib/llvm-$llvm/lib/clang/*/lib/wasi/libclang_rt.builtins-wasm32.a >/dev/null 2>&1 || missing+=(libclang-rt-$llvm-dev-wasm32)
	[ -x /usr/bin/python3.11 ] || missing+=(python3.11)
	command -v make >/dev/null || missing+=(make)
	command -v patch >/dev/null || missing+=(patch)
	command -v dpkg-source >/dev/null || missing+=(dpkg-dev)
	command -v tclsh >/dev/null || missing+=(tcl)
	command -v xz >/dev/null || missing+=(xz-utils)
	[ ${#missing[@]} -gt 0 ] || return 0
	command -v apt-get >/dev/null || die "this needs Debian 12 or its packages: ${missing[*]}"
	[ "$(id -u)" = 0 ] || die "missing packages: run 'apt-get install ${missing[*]}' as root, then run again"
	say "Debian packages: ${missing[*]}"
	apt-get update -qq
	DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}

# The sources, pinned by their hashes: package, file, sha256, and the release of Debian if it isn't 12.
sources='
python3.11 python3.11_3.11.2.orig.tar.gz 2411c74bda5bbcfcddaf4531f66d1adc73f247f529aee981b029513aefdbf849
sqlite3 sqlite3_3.40.1.orig.tar.xz aaa776260ab4dc976db34aa7891819484c8676b5b2783123ebc6301e2ca5d655
zlib zlib_1.2.13.dfsg.orig.tar.bz2 71feb7947e3c00ef125f83b79a4e529bde31171e5babe48b391f06758d1ab0a1
bzip2 bzip2_1.0.8.orig.tar.gz ab5a03176ee106d3f0fa90e381da478ddae405918153cca248e682cd0c4a2269
xz-utils xz-utils_5.4.1.orig.tar.xz 5d9827aa1875b21c288f78864bb26d2650b436ea8d2cad364e4921eb6266a5a5
jq jq_1.7.1.orig.tar.gz fc75b1824aba7a954ef0886371d951c3bf4b6e0a921d1aefc553f309702d6ed1 trixie
jq/patches jq_1.7.1-6+deb13u3.debian.tar.xz 815de96992ec0f465b03a0e08dbc5dffa59c3ef89585b5ae71bb877a8545759c trixie
libonig libonig_6.9.9.orig.tar.gz 001aa1202e78448f4c0bf1a48c76e556876b36f16d92ce3207eccfd61d99f2a0 trixie
'

# source PACKAGE unpacks a package's original source into ./PACKAGE. apt is given lists of its own, so that the system's stay as they are.
source_of() {
	local package=$1 file sum release from=$cache/guest-sources
	read -r file sum release < <(awk -v p="$package" '$1 == p { print $2, $3, $4 }' <<<"$sources")
	mkdir -p "$from"
	if ! (cd "$from" && sha256sum --status -c <<<"$sum  $file" 2>/dev/null); then
		say "fetching the source of $package"
		mkdir -p apt/lists/partial apt/cache/archives/partial
		local mirror # the one that this machine's packages come from
		mirror=$(grep -rhoE 'https?://[^ ]+/debian/?( |$)' /etc/apt/sources.list /etc/apt/sources.list.d 2>/dev/null | head -n 1) || true
		[ -n "$mirror" ] || die "no mirror of Debian stands in /etc/apt"
		printf 'deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] %s %s main\n' "${mirror% }" bookworm "${mirror% }" trixie >apt/sources.list
		printf 'Dir::Etc::sourcelist "%s";\nDir::Etc::sourceparts "/dev/null";\nDir::State::lists "%s";\nDir::Cache "%s";\nAPT::Sandbox::User "%s";\n' \
			"$PWD/apt/sources.list" "$PWD/apt/lists" "$PWD/apt/cache" "$(id -un)" >apt/conf
		[ -e apt/done ] || APT_CONFIG=$PWD/apt/conf apt-get update -qq
		touch apt/done
		(cd "$from" && APT_CONFIG=$OLDPWD/apt/conf apt-get source -qq --download-only "${package%%/*}/${release:-bookworm}" >/dev/null)
		(cd "$from" && sha256sum --status -c <<<"$sum  $file") || die "the source of $package isn't the one that is pinned: $file"
	fi
	mkdir -p "$package"
	tar xf "$from/$file" -C "$package" --strip-components=1
}

wasm_env() {
	export CC="clang-$llvm --target=wasm32-wasi" CXX="clang++-$llvm --target=wasm32-wasi" CPP="clang-$llvm --target=wasm32-wasi -E"
	export AR=llvm-ar-$llvm RANLIB=llvm-ranlib-$llvm LD=wasm-ld-$llvm
	export PKG_CONFIG_PATH='' PKG_CONFIG_LIBDIR=/nonexistent
	inst=$PWD/inst
	mkdir -p "$inst/lib" "$inst/include"
	# The overlay of headers comes first: it completes those of WASI's libc.
	posix="-isystem $here/posix/include -D_GNU_SOURCE -D_WASI_EMULATED_SIGNAL -D_WASI_EMULATED_GETPID -D_WASI_EMULATED_PROCESS_CLOCKS"
}

# library NAME FLAGS FILE… compiles sources into inst/lib/libNAME.a.
library() {
	local name=$1 flags=$2; shift 2
	mkdir -p "obj-$name"
	export FLAGS="-O2 -g0 -w $posix $flags" OBJ="obj-$name"
	printf '%s\0' "$@" | xargs -0 -P "$jobs" -n 1 bash -c '$CC $FLAGS -c "$0" -o "$OBJ/$(basename "$0" .c).o"'
	$AR rcs "$inst/lib/lib$name.a" "obj-$name"/*.o
}

python_libraries() {
	library agentrun "" "$here"/posix/*.c
	for p in zlib bzip2 xz-utils sqlite3; do source_of $p; done
	library z "-Izlib -DHAVE_UNISTD_H" zlib/{adler32,compress,crc32,deflate,infback,inffast,inflate,inftrees,trees,uncompr,zutil}.c
	cp zlib/{zlib,zconf}.h "$inst/include/"
	library bz2 "-Ibzip2" bzip2/{blocksort,huffman,crctable,randtable,compress,decompress,bzlib}.c
	cp bzip2/bzlib.h "$inst/include/"
	(cd xz-utils && ./configure --host=wasm32-wasi --quiet --disable-shared --disable-threads --disable-xz --disable-xzdec --disable-lzmadec \
		--disable-lzmainfo --disable-scripts --disable-doc --disable-nls --disable-assembler --prefix="$inst" CFLAGS="-O2 -g0 $posix" \
		LIBS="-L$inst/lib -lagentrun" >log 2>&1 && make -j"$jobs" install >>log 2>&1) || { tail -20 xz-utils/log; die "xz-utils"; }
	(cd sqlite3 && env -u CC -u CXX -u CPP -u AR -u RANLIB -u LD ./configure --disable-tcl --disable-readline --disable-load-extension >log 2>&1 && make sqlite3.c >>log 2>&1) ||
		{ tail -20 sqlite3/log; die "sqlite3"; }
	# Locks are record locks of the host (posix/descriptors.c). Without memory maps there is no WAL. No extensions are loaded.
	library sqlite3 "-Isqlite3 -DSQLITE_THREADSAFE=0 -DSQLITE_OMIT_LOAD_EXTENSION -DSQLITE_OMIT_WAL=1 -DSQLITE_MAX_MMAP_SIZE=0 -DSQLITE_ENABLE_FTS5 \
		-DSQLITE_ENABLE_FTS4 -DSQLITE_ENABLE_RTREE -DSQLITE_ENABLE_MATH_FUNCTIONS -DSQLITE_ENABLE_COLUMN_METADATA -DSQLITE_ENABLE_DBSTAT_VTAB -DHAVE_READLINK=1 -DHAVE_LSTAT=1 \
		-DHAVE_USLEEP=1 -DHAVE_FCHMOD=1 -DHAVE_UTIME=1" sqlite3/sqlite3.c
	cp sqlite3/sqlite3.h "$inst/include/"
}

python() {
	wasm_env
	python_libraries
	source_of python3.11
	/usr/bin/python3.11 "$here/python/edit.py" python3.11
	local exports='' f flags="-O2 -g0 $posix -I$here -I$inst/include -DPy_DEFAULT_RECURSION_LIMIT=1000"
	for f in malloc free; do exports="$exports -Wl,--export=$f"; done
	mkdir -p build/Modules
	cp "$here/python/Setup.local" build/Modules/
	cp "$here"/python/*.c python3.11/Modules/
	(
		cd build
		export CONFIG_SITE=$here/python/config.site LDSHARED=$LD
		export ZLIB_CFLAGS="-I$inst/include" ZLIB_LIBS="-L$inst/lib -lz" LIBLZMA_CFLAGS="-I$inst/include" LIBLZMA_LIBS="-L$inst/lib -llzma"
		export BZIP2_CFLAGS="-I$inst/include" BZIP2_LIBS="-L$inst/lib -lbz2" LIBSQLITE3_CFLAGS="-I$inst/include" LIBSQLITE3_LIBS="-L$inst/lib -lsqlite3"
		../python3.11/configure --host=wasm32-unknown-wasi --build=x86_64-pc-linux-gnu --with-build-python=/usr/bin/python3.11 --disable-ipv6 \
			--with-suffix=.wasm --with-ensurepip=no --disable-test-modules --prefix=/usr --with-pymalloc \
			CFLAGS="$flags" CPPFLAGS="$flags" LDFLAGS="-L$inst/lib" LIBS="-lagentrun" >configure.log 2>&1 || { tail -30 configure.log; die "configure of CPython"; }
		make -j"$jobs" python.wasm LINKFORSHARED="-Wl,-z,stack-size=8388608 -Wl,--stack-first -Wl,--initial-memory=16777216 $exports" >make.log 2>&1 ||
			{ grep -E 'error|undefined|duplicate' make.log | head -30; tail -5 make.log; die "build of CPython"; }
	)
	llvm-strip-$llvm -o "$1/dist/python.wasm" build/python.wasm
	make -C build pybuilddir.txt >>build/make.log 2>&1 || die "sysconfig of CPython"
	cp build/build/lib.*/_sysconfigdata*.py python3.11/Lib/
	rm -rf python3.11/Lib/test
	mv python3.11/Lib "$1/Lib"
}

# jq_guest builds jq with Debian's corrections, and the regular expressions that it needs.
jq_guest() {
	wasm_env
	for p in jq jq/patches libonig; do source_of $p; done
	while read -r p; do
		patch -s -d jq -p1 <"jq/patches/patches/$p" || die "jq: $p"
	done <jq/patches/patches/series
	library agentrun "" "$here"/posix/*.c
	library onig "-I$here/jq -Ilibonig/src -DHAVE_CONFIG_H" libonig/src/{regparse,regcomp,regexec,regenc,regerror,regext,regsyntax,regtrav,regversion,st}.c \
		libonig/src/{unicode,unicode_unfold_key,unicode_fold1_key,unicode_fold2_key,unicode_fold3_key,ascii,utf8,iso8859_1,onig_init}.c
	sed -e 's/\\/\\\\/g' -e 's/"/\\"/g' -e 's/^/"/' -e 's/$/\\n"/' jq/src/builtin.jq >jq/src/builtin.inc
	echo '#define JQ_VERSION "1.7.1"' >jq/src/version.h
	echo '#define JQ_CONFIG ""' >jq/src/config_opts.inc
	local have=() f
	for f in isatty memmem strptime strftime timegm gmtime_r localtime_r gmtime localtime mktime setlocale alloca_h tm_tm_gmt_off atexit \
		acos acosh asin asinh atan2 atan atanh cbrt ceil copysign cos cosh drem erf exp10 exp2 exp expm1 fabs fdim floor fma fmax fmin fmod frexp hypot j0 j1 jn \
		ldexp lgamma lgamma_r log10 log1p log2 log logb modf nearbyint nextafter nexttoward pow rint round scalb scalbln significand sin sinh sqrt tan tanh \
		tgamma trunc y0 y1 yn pow10; do
		have+=("-DHAVE_$(tr a-z A-Z <<<"$f")=1")
	done
	library jq "-I$here/jq -Ilibonig/src -Ijq/src -Ijq -Ijq/src/decNumber -DIEEE_8087=1 -DHAVE_LIBONIG=1 -DUSE_DECNUM=1 -DDECUSE64=1 -DDECLITEND=1 ${have[*]}" \
		jq/src/{builtin,bytecode,compile,execute,jq_test,jv,jv_alloc,jv_aux,jv_dtoa,jv_dtoa_tsd,jv_file,jv_parse,jv_print,jv_unicode,lexer,linker,locfile,main,parser,util}.c \
		jq/src/decNumber/{decContext,decNumber}.c
	$CC -o jq.wasm -Wl,-z,stack-size=8388608 -Wl,--stack-first -Wl,--initial-memory=16777216 -L"$inst/lib" -Wl,--whole-archive -ljq -Wl,--no-whole-archive \
		-lonig -lagentrun -lwasi-emulated-signal -lwasi-emulated-getpid -lwasi-emulated-process-clocks -lm
	llvm-strip-$llvm -o "$1/dist/jq.wasm" jq.wasm
}

# library_of_python packs the standard library: it changes more often than the interpreter, and is made in seconds.
library_of_python() { /usr/bin/python3.11 "$here/python/pack.py" "$(made python)/Lib" "$1/dist/python.zip"; }

# made NAME prints the folder where the cache has a guest, which depends on the hash of what it is made from.
made() { printf '%s/guest-%s-%s' "$cache" "$1" "$(key_of "$1")"; }

# key_of NAME prints that hash.
key_of() (
	cd "$here"
	case $1 in
	python) inputs=(build.sh agentrun.h posix python/_*.c python/edit.py python/config.site python/Setup.local) ;;
	library_of_python) inputs=(build.sh agentrun.h posix python) ;;
	jq_guest) inputs=(build.sh posix jq) ;;
	esac
	find "${inputs[@]}" -type f ! -path '*/__pycache__/*' -print0 | sort -z | xargs -0 sha256sum | sha256sum | cut -c1-16
)

# guest NAME builds NAME unless the cache has it, and puts what it made into dist/.
guest() {
	local name=$1 to dir start
	to=$(made "$name")
	if [ ! -e "$to" ]; then
		exec 9>"$cache/.guest-$name.lock"
		flock 9 # keeps two runs at once from building the same thing twice
	fi
	if [ ! -e "$to" ]; then
		tools
		dir=$cache/.guest-$name.partial
		say "building $name (once per version of its parts; it may take minutes)"
		rm -rf "$dir" && mkdir -p "$dir/out/dist"
		start=$SECONDS
		(cd "$dir" && "$name" "$dir/out")
		mv "$dir/out" "$to"
		rm -rf "$dir"
		say "$name built in $((SECONDS - start)) s"
	fi
	for file in "$to"/dist/*; do
		cmp -s "$file" "$here/dist/${file##*/}" || cp "$file" "$here/dist/"
	done
}

[ $# -gt 0 ] || set -- python jq
for g in "$@"; do
	case $g in
	python) guest python; guest library_of_python ;; # not one list: "set -e" has to hold within
	jq) guest jq_guest ;;
	*) die "no such guest: $g" ;;
	esac
done
