package make_test

import (
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"testing"

	"agentrun.dev/command/commandtest"
)

// Makefiles with random prerequisites, on files of random ages.
func TestRandom(t *testing.T) {
	r := rand.New(rand.NewSource(12))
	for range 20 {
		names := []string{}
		for i := range 12 {
			names = append(names, fmt.Sprintf("f%d", i))
		}
		var b strings.Builder
		var setup []string
		if r.Intn(3) == 0 {
			b.WriteString(".PHONY: f1 f3\n")
		}
		switch r.Intn(5) {
		case 0:
			b.WriteString(".SECONDARY: f5 f2.b\n")
		case 1:
			b.WriteString(".INTERMEDIATE: f4\n")
		case 2:
			b.WriteString(".PRECIOUS: %.b\n")
		}
		b.WriteString("all: f0 f1 f2\n%.a: %.b\n\t@echo a $@ from $? by $<; touch $@\n%.b: %.c\n\t@echo b $@ from $? by $<; touch $@\n")
		for i := range 12 {
			var deps []string
			for range r.Intn(4) {
				switch k := r.Intn(14); {
				case k < 9 && i < 11:
					deps = append(deps, names[i+1+r.Intn(11-i)])
				case k < 12:
					deps = append(deps, fmt.Sprintf("f%d.%c", r.Intn(4), 'a'+r.Intn(2)))
				case k == 12 && !slices.Contains(deps, "|"):
					deps = append(deps, "|")
				case r.Intn(6) == 0:
					deps = append(deps, "missing")
				}
			}
			colon := ":"
			if i == 7 && r.Intn(2) == 0 {
				colon = "::"
			}
			fmt.Fprintf(&b, "%s%s %s\n", names[i], colon, strings.Join(deps, " "))
			switch r.Intn(8) {
			case 0: // no recipe
			case 1:
				fmt.Fprintf(&b, "\t@echo %s; touch $@\n\t@echo again $^\n", names[i])
			case 2:
				fmt.Fprintf(&b, "\t@echo untouched $@ $?\n")
			case 3:
				if r.Intn(3) == 0 {
					fmt.Fprintf(&b, "\t@echo fails; false\n")
				} else {
					fmt.Fprintf(&b, "\t-@false\n\ttouch $@\n")
				}
			default:
				fmt.Fprintf(&b, "\t@echo make $@ from $^ newer $? first $< order $|; touch $@\n")
			}
			if colon == "::" {
				fmt.Fprintf(&b, "%s:: f11\n\t@echo second $@\n", names[i])
			}
		}
		files := append([]string{}, names[1:]...)
		for i := range 4 {
			for _, s := range []string{"a", "b", "c"} {
				files = append(files, fmt.Sprintf("f%d.%s", i, s))
			}
		}
		r.Shuffle(len(files), func(i, j int) { files[i], files[j] = files[j], files[i] })
		for _, f := range files {
			if r.Intn(3) > 0 || strings.HasSuffix(f, ".c") && r.Intn(4) > 0 {
				setup = append(setup, "f "+f+" x")
			}
		}
		setup = append(setup, "f Makefile "+b.String())
		lines := []string{"make -r", "make -rk", "make -rn", "make -rk f1 f2.a f3 all", "make -rks f4", "make -rkt"}
		for _, i := range []int{r.Intn(6), r.Intn(6)} {
			lines[i] = "make -rk " + names[r.Intn(12)] + " f3.a"
		}
		ok := t.Run("", func(t *testing.T) {
			commandtest.Run(t, commands(), commandtest.Table{Setup: setup, Lines: lines})
		})
		if !ok {
			t.Logf("%s\n%s", strings.Join(setup[:len(setup)-1], ", "), b.String())
		}
	}
}
