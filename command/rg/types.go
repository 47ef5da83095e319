package rg

import "strings"

// typeGlobs are the file types that -t and -T know: suffixes, or whole names.
const typeGlobs = `asm:.S .asm .s
awk:.awk
c:.c .h .C .H .cats
clojure:.clj .cljc .cljs .cljx
cmake:.cmake CMakeLists.txt
config:.cfg .conf .config .ini
cs:.cs
css:.css .scss
csv:.csv
dart:.dart
diff:.diff .patch
elixir:.eex .ex .exs
erlang:.erl .hrl
go:.go
h:.h .hpp
haskell:.c2hs .cpphs .hs .hsc .lhs
html:.ejs .htm .html
java:.java .jsp .jspx .properties
js:.js .jsx .vue
json:.json composer.lock
jsonl:.jsonl
kotlin:.kt .kts
less:.less
log:.log
lua:.lua
markdown:.markdown .md .mdown .mkdn
md:.markdown .md .mdown .mkdn
nix:.nix
perl:.PL .perl .pl .plh .plx .pm .t
php:.php .php3 .php4 .php5 .phtml
protobuf:.proto
py:.py
r:.R .Rmd .Rnw .r
rst:.rst
ruby:.gemspec .rb .rbw .irbrc Gemfile Rakefile config.ru
rust:.rs
sass:.sass .scss
scala:.sbt .scala
sql:.psql .sql
svg:.svg
swift:.swift
tex:.bib .cls .dtx .ins .ltx .sty .tex
toml:.toml Cargo.lock
ts:.ts .tsx
txt:.txt
`

// fileType returns the suffixes of a type.
func fileType(name string) ([]string, bool) {
	for _, line := range strings.Split(typeGlobs, "\n") {
		if rest, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.Fields(rest), true
		}
	}
	return nil, false
}

// wrongType applies -t and -T to a file's name.
func (s *searcher) wrongType(name string) bool {
	return len(s.types) > 0 && !ofType(s.types, name) || ofType(s.notTypes, name)
}

func ofType(globs []string, name string) bool {
	for _, g := range globs {
		if g == name || g[0] == '.' && strings.HasSuffix(name, g) {
			return true
		}
	}
	return false
}
