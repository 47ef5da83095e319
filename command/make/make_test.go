package make_test

import (
	"fmt"
	"strings"
	"testing"

	"agentrun.dev/command"
	"agentrun.dev/command/commandtest"
	"agentrun.dev/proc"
	"agentrun.dev/shell"
)

func commands() *command.Set {
	return command.NewSet(map[string]proc.Program{"sh": shell.New(true), "bash": shell.New(false)})
}

// run runs lines on a makefile and other files, against the machine's make.
func run(t *testing.T, makefile string, setup []string, lines ...string) {
	t.Helper()
	files := append([]string{}, setup...)
	files = append(files, "f Makefile "+makefile)
	commandtest.Run(t, commands(), commandtest.Table{Setup: files, Lines: lines})
}

func TestRules(t *testing.T) {
	src := []string{"f a.c a\n", "f b.c b\n", "f old x\n", "f new y\n", "d sub", "f sub/x.in in\n", "d gen"}
	run(t, "all: prog\nprog: a.o b.o\n\tcat $^ > $@\n%.o: %.c\n\t@echo compiling $<\n\tcp $< $@\nclean:\n\trm -f prog *.o\n.PHONY: all clean\n", src,
		"make", "make all", "make -n", "make prog clean", "make a.o", "make -s", "make nope", "make -k nope prog", "make clean", "make a.c", "make -B a.o", "make -t", "make -q", "make -q a.c", "make -r a.o", "make --trace a.o", "make -W a.c a.o", "make -i nope", "make -C sub", "make -f nope", "make -f nope a.c")
	run(t, "all: one two\none:\n\tfalse\ntwo:\n\techo two\nign:\n\t-false\n\t@-exit 3\n\techo after\nmulti:\n\t@echo a; \\\n\techo b\n\t@echo $$HOME | wc -w\ndel: \n\techo x > $@; false\n", src,
		"make", "make -k", "make -i", "make ign", "make multi", "make -n multi ign", "make del", "make -k del two", "make two two", "make -s two one")
	run(t, ".DELETE_ON_ERROR:\nout: a.c\n\techo x > $@\n\tfalse\nkill:\n\tkill -9 $$$$\nterm: ; kill $$$$\n", src, "make", "make kill", "make term", "make out")
	run(t, "old: new\n\techo rebuild $@ from $? > $@\nnew:\nnone: old\nphony: old none\n.PHONY: phony\nsub/y: sub/x.in | gen\n\tcp $< $@; echo $| $(@D) $(@F) $(<D) $(<F) $*\nboth: a.c b.c a.c\n\t@echo $^ - $+ - $? - $< - $@ - $(^F)\n", src, "make", "make none", "make phony", "make sub/y", "make both", "make old old", "make new", "make -n old", "make -o new old", "make -t old both")
	run(t, "x: y\ny: z\nz: x\n\techo z\n", src, "make")
	run(t, "a: FORCE ; @echo a\nFORCE:\nb:: ; @echo one\nb:: a ; @echo two\nb:: ; @echo three\n", src, "make", "make b", "make FORCE")
	run(t, "objs = a.o b.o\nall: $(objs)\n$(objs): %.o: %.c\n\t@echo $< $@ $*\nbig little: text\n\t@echo $@\ntext: ;\n", src, "make", "make big little", "make text")
	run(t, ".SUFFIXES: .c .o .zz\n.c.o:\n\t@echo suffix $< $*\n.c.zz:\n\t@echo zz $< > $@\n.zz:\n\t@echo single $<\n", src, "make a.o", "make a.zz")
	run(t, "%.x: %.m\n\tcp $< $@\n%.m: %.c\n\tcp $< $@\n%.two %.three: %.c\n\ttouch $*.two $*.three\nlib/%.q: %.c\n\t@echo $@ $< $*\nsub/%.w: sub/%.in\n\t@echo $@ $< $*\n%.v: %.in\n\t@echo $@ $< $* $(@D)\n", src, "make a.x", "make a.two a.three", "make a.x b.x", "make lib/a.q", "make sub/x.w", "make sub/x.v", "make a.nope", "make")
	run(t, ".SECONDARY:\n%.x: %.y\n\tcp $< $@\n%.y: %.c\n\tcp $< $@\n", src, "make a.x")
	run(t, ".PRECIOUS: %.y\n%.x: %.y\n\tcp $< $@\n%.y: %.c\n\tcp $< $@\n", src, "make a.x")
	run(t, ".INTERMEDIATE: mid\nfin: mid\n\tcp mid fin\nmid: a.c\n\tcp a.c mid\n", src, "make", "make fin fin", "make mid")
	run(t, ".ONESHELL:\nall:\n\t@x=1\n\techo $$x\n\techo done\n", src, "make", "make -n")
	run(t, ".DEFAULT:\n\t@echo default $@\nall: something\n", src, "make", "make other")
	run(t, "VPATH = sub\nall: x.in\n\t@echo $< $^\nvpath %.in sub\n%.out: %.in\n\t@echo $@ from $<\n", src, "make", "make x.out")
	run(t, ".SECONDEXPANSION:\na_deps = a.c b.c\na: $$($$@_deps)\n\t@echo $@: $^\n%.o: $$(wildcard %.c)\n\t@echo $@: $<\n", src, "make", "make b.o")
	run(t, "a b &: a.c\n\t@echo both; touch a b\n", src, "make", "make a b", "make b")
	run(t, "all: *.c\n\t@echo $(sort $^)\nw:\n\t@echo $(wildcard *.c sub/*.in nope* */) $(wildcard sub)\n", src, "make", "make w")
	run(t, "a:\n\t@echo 1\na:\n\t@echo 2\nmain: ; @echo main; echo $@\n", src, "make", "make main")
	run(t, "all : a ;@echo all $^\na : ;@echo a # not a comment\nb: # comment ; x\n\t# recipe comment\n\t@echo b # c\n", src, "make", "make b")
	run(t, "all:\n\t@echo '$$x' \"$$HOSTVAR\" '#'\n\t@echo a\\\n\tb\\\nc\n\t@printf '%s\\n' \"x \\\n\ty\"\n", src, "make", "make -n")
	run(t, ".NOTPARALLEL:\nall: a b c\na b c:\n\t@echo $@\n.SILENT: a\n.IGNORE: x\nx:\n\tfalse\n\techo on\n", src, "make -j3", "make x")
	run(t, "all: a b c\na:\n\t@sleep 0.3; echo a\nb:\n\t@sleep 0.1; echo b\nc: b\n\t@echo c\nbad: f g\nf:\n\t@sleep 0.1; false\ng:\n\t@sleep 0.3; echo g\n", src, "make -j3", "make -j 2 all", "make -j2 bad", "make -kj2 bad")
	run(t, "", src, "make", "make a.c", "make a -n", "make nope", "make x.o", "make sub")
}

func TestMore(t *testing.T) {
	src := []string{"f a.c a\n"}
	run(t, ".DEFAULT_GOAL := two\none: ; @echo one\ntwo: ; @echo two\n", src, "make", "make one")
	run(t, ".PHONY: dc\ndc:: ; @echo 1\ndc:: ; @echo 2\n", src, "make", "make -n")
	run(t, "all:\n\t@x=$$(for i in 1 2; do \\\n\t\techo $$i; \\\n\tdone); \\\n\techo $$x\n\techo $(subst a,b,a \\\n\t  a) \\\n\tc\n", src, "make", "make -n")
	run(t, "x := $(shell nosuchcommand a b)\nall: ; nosuchcommand x\n", src, "make")
	run(t, "all:\n\t@echo last;\\\n", src, "make", "make -n")
	run(t, "x := $(foreach v,1 2,$(eval y$(v) := val$(v))) \nall: ; @echo $(y1) $(y2) [$(x)]\n", src, "make")
	run(t, "a b c: X = $@!\na b: ; @echo $(X) $^\na: c\nc: ; @echo $(X)\nd: a ; @echo d [$(X)]\n", src, "make", "make b", "make d", "make c a")
	run(t, "print-%: ; @echo '$* = $($*)'\nV = value $(W)\nW = w\n", src, "make print-V", "make print-CC print-U")
	run(t, "ifeq ($(OS),Windows_NT)\n\tX = w\nelse\n  UNAME := $(shell uname -s)\n  ifeq ($(UNAME),Linux)\n    X = linux\n  endif\n  ifneq (,$(findstring x,abc))\n    X += x\n  endif\nendif\nall:\n\t@echo $(X)\n", src, "make")
	run(t, "DIRS = d1 d2\nall: $(DIRS)\n$(DIRS):\n\tmkdir -p $@\nout: | d1\n\ttouch d1/f out\n", src, "make", "make out", "make out out d1")
	run(t, "all: $(patsubst %,build/%.txt,x y)\nbuild/%.txt: a.c | build\n\t@echo $@ $* $(@D) $(@F) > $@; cat $@\nbuild: ; mkdir $@\n", src, "make", "make -j4 -s build/x.txt")
	run(t, "SRC := $(wildcard *.c)\nOBJ := $(SRC:.c=.o)\n-include $(OBJ:.o=.d)\nCFLAGS ?= -O2\nall: $(OBJ)\n.c.o:\n\t@echo $(CC) $(CFLAGS) -c $<\n", src, "make", "make CC=gcc CFLAGS=", "make -n CC=x")
	run(t, "help: ## Show this\n\t@grep -E '^[a-z]+:.*## ' $(MAKEFILE_LIST) | awk 'BEGIN {FS = \":.*?## \"}; {printf \"%-10s %s\\n\", $$1, $$2}'\n", src, "make")
	run(t, "x:\n\t@echo \"a  b\"   c'  d'\n\t@echo a  b | tr ' ' .\n\t@echo `echo hi` $${HOME:+home}\n\t@if true; then echo yes; else echo no; fi\n\t@for i in 1 2 3; do echo $$i; done\n\t@cd / && pwd\n\t@test -f a.c && echo there || echo not\n", src, "make", "make -n")
	run(t, "all: x.b y.b\n%.b: %.a\n\tcp $< $@\n%.a:\n\techo $* > $@\n", src, "make", "make -n", "make -j2 -s", "make x.b x.a")
	run(t, "A = 1\nA += \\\n 2 \\\n 3\nB = a\\#b\nC = x\\\n    y\nall: \\\n  a.c\n\t@echo '$(A)' '$(B)' '$(C)'\n", src, "make")
	run(t, "all: one; @echo all\none: two\n\t@echo one\ntwo:\n\t@echo two; exit 1\nthree: ; @echo three\n", src, "make", "make -k all three", "make -i", "make three one")
	run(t, "export VAR := from make\nunexport HOME2\nall:\n\t@env | grep -c '^VAR=from make'\n\t@echo $${VAR}\n", src, "make", "make VAR=cl", "make SHELL=/bin/bash")
}

// Prerequisites of the rule with the recipe come before those of others.
func TestOrder(t *testing.T) {
	run(t, "a: b\na: c\n\t@echo $^ - $<\na: d\nb c d: ; @echo $@\n", nil, "make", "make d a")
}

func TestVariables(t *testing.T) {
	src := []string{"f a.c a\n", "f inc.mk INC = included\ninc: ; @echo inc rule\n", "f list one\ntwo\n"}
	run(t, "A = $(B)\nB = late\nC := $(B)\nD ?= dflt\nD ?= no\nE = 1\nE += 2\nF := 1\nF += $(E)\nG != echo shell out\nH ::= $(C)x\nempty =\nsp = $(empty) $(empty)\nI = a # trailing\nall:\n\t@echo $(A) $(B) $(C) $(D) $(E) $(F) $(G) $(H) [$(I)] [$(sp)] $(UNDEF) $Az $(A)z ${A} $(flavor A) $(flavor C) $(flavor U) $(origin A) $(origin U) $(origin CC) $(origin PATH) $(origin @) '$(value A)'\nB = later\n", src,
		"make", "make B=cmd", "make D=cmd E=x", "make -e", "make 'A=$(B) q' B=z", "make C:=q", "make E+=3", "env B=env make", "env B=env make -e", "env D=env make", "make --warn-undefined-variables", "make A=", "make CC=x all")
	run(t, "override O = o\noverride O += more\nP = p\nall: P = target\nall: Q := $(P) q\nall: dep\nall:\n\t@echo $(O) $(P) $(Q) $(CFLAGS)\ndep:\n\t@echo dep $(P) $(Q) $(R)\nother: R = r\nother: private P = priv\nother: dep\n\t@echo other $(P)\n%.q: P = pattern $*\nx.q:\n\t@echo $(P)\nall: CFLAGS += -g\nCFLAGS = -O\n", src, "make", "make O=x", "make P=x", "make dep", "make other", "make x.q", "make CFLAGS=z")
	run(t, "define multi\n@echo one\n@echo two $(1)\nendef\ndefine fn =\n$(1)-$(2)-$(0)\nendef\ndefine imm :=\nnow $(X)\nendef\nX = late\nall:\n\t$(multi)\n\t$(call multi,arg)\n\t@echo $(call fn,a,b) $(call fn,x) '$(imm)'\n", src, "make", "make -n")
	run(t, "ifeq ($(X),1)\nR = one\nelse ifeq '$(X)' '2'\nR = two\nelse ifdef Y\nR = y\nelse\nR = none\nendif\nifneq (a,b)\nS = ne\nendif\nifndef Z\nS += noz\nendif\nall:\nifeq ($(X),1)\n\t@echo is one\nendif\n\t@echo $(R) $(S)\n", src, "make", "make X=1", "make X=2", "make Y=1", "make Z=1 X=3")
	run(t, "include inc.mk\n-include nope.mk\nall:\n\t@echo $(INC) $(MAKEFILE_LIST) $(CURDIR) $(MAKECMDGOALS) $(.DEFAULT_GOAL) $(MAKE) $(MAKELEVEL) $(MAKE_VERSION)\n", src, "make", "make all", "make inc")
	run(t, "include nope.mk\nall: ; @echo x\n", src, "make")
	run(t, "include gen.mk\nall: ; @echo $(G)\ngen.mk: a.c\n\t@echo making $@\n\t@echo G = generated > $@\n", src, "make", "make -n", "make -s")
	run(t, "-include a.d\nall: ; @echo $(D)\n%.d: %.c\n\t@echo D = dep > $@\n", src, "make")
	run(t, "export A = exported\nB = not\nC = yes\nexport C D\nunexport E\nall:\n\t@echo $$A [$$B] $$C $$E $$F $$MAKELEVEL\nall: export F = target\n", src, "make", "make B=cmd", "env E=e B=env make", "env A=e make")
	run(t, "export\nA = 1\nb-c = 2\nall:\n\t@echo $$A\n", src, "make")
	run(t, "SHELL = /bin/bash\n.SHELLFLAGS = -ec\nall:\n\t@[[ a == a ]] && echo bash\n\t@false; echo not reached\n", src, "make")
	run(t, "A = $(A) x\nall: ; @echo $(A)\n", src, "make")
	run(t, "all:\n    echo spaces\n", src, "make")
	run(t, "all:\n        echo spaces\n", src, "make")
	run(t, "\techo early\nall: ; @echo x\n", src, "make")
	run(t, "x = $(foo\nall: ; @echo $(x)\n", src, "make")
	run(t, "ifdef X\nall: ; @echo x\n", src, "make")
	run(t, "endif\n", src, "make")
	run(t, "else\n", src, "make")
	run(t, "define x\nfoo\n", src, "make")
	run(t, "ifeq (a\nendif\n", src, "make")
	run(t, "just words\n", src, "make")
	run(t, "= x\n", src, "make")
	run(t, ": x\n", src, "make")
	run(t, "%.o foo: x\n", src, "make")
	run(t, "a: b\na:: c\n", src, "make")
	run(t, "a b: %.o\n", src, "make")
	run(t, "a b: x: y\n", src, "make")
	run(t, "A := 1\nundefine A\nall: ; @echo [$(A)] $(origin A)\n", src, "make")
	run(t, ".RECIPEPREFIX = >\nall:\n>@echo prefix\n>echo two\n", src, "make")
	run(t, "MAKEFLAGS += -s\nall:\n\techo silent\n\t@echo '$(MAKEFLAGS)'\n", src, "make")
	run(t, "all:\n\t@echo '[$(MAKEFLAGS)]' '[$(MFLAGS)]' '$(MAKEOVERRIDES)'\n", src, "make", "make -k", "make -ks A=b", "make A=1 B='x y'", "make -i -k -B", "make --no-print-directory")
	run(t, "all:\n\t@$(MAKE) sub X=1\nsub:\n\t@echo level $(MAKELEVEL) $(X) '$(MAKEFLAGS)'\ncdir:\n\t$(MAKE) -C . sub\nfail:\n\t$(MAKE) bad\nbad:\n\tfalse\n", src, "make", "make -s", "make cdir", "make -n", "make --no-print-directory cdir", "make fail", "make -k fail", "make Y=2", "make -C . sub", "make -w sub")
	run(t, "all: $(foreach x,1 2 3,t$(x))\nt%: ; @echo $@ $*\ndefine R\nr$(1): ; @echo made $$@ $(1)\nendef\n$(foreach x,a b,$(eval $(call R,$(x))))\nrs: ra rb\n$(eval V = $$(W))\nW = w\nv: ; @echo $(V)\n", src, "make", "make rs", "make v", "make ra")
}

func TestFunctions(t *testing.T) {
	src := []string{"f a.c a\n", "f b.c b\n", "d dir", "f dir/f.txt text\n", "l link a.c", "f file in file\n"}
	var b strings.Builder
	for _, e := range []string{"$(subst ee,EE,feet on the street)", "$(subst ,x,abc)", "$(patsubst %.c,%.o,x.c.c bar.c y.h)", "$(patsubst lib%,%,libx liby z)", "$(patsubst a,b,a aa)", "$(A:.c=.o)", "$(A:%.c=obj/%.o)", "$(A:x=y)", "[$(strip  a   b c )]", "$(findstring a,a b c)", "[$(findstring z,a b c)]", "$(filter %.c %.s,foo.c bar.s baz.h)", "$(filter-out %.c,foo.c bar.s baz.h)", "$(sort foo bar lose bar)",
		"$(word 2,foo bar baz)", "[$(word 9,foo)]", "$(wordlist 2,3,a b c d)", "[$(wordlist 3,2,a b c)]", "$(words a b c)", "$(firstword a b)", "$(lastword a b)", "$(dir src/foo.c hacks /a)", "$(notdir src/foo.c hacks a/)", "$(suffix src/foo.c src-1.0/bar.c hacks)", "$(basename src/foo.c src-1.0/bar hacks.x)", "$(addsuffix .c,foo bar)", "$(addprefix src/,foo bar)", "$(join a b,.c .o .x)", "$(wildcard *.c)", "$(wildcard dir/*)", "[$(wildcard no*)]", "$(realpath dir/../a.c link nope)", "$(abspath a/../b ./c /x//y)", "$(if a,yes,no)", "$(if ,yes,no)", "[$(if ,yes)]", "$(or ,,c,d)", "$(and a,b,c)", "[$(and a,,c)]", "$(foreach d,a b c,$(d)$(d))", "$(call f,1,2)", "$(call f,1)", "$(call rev,a,b)", "$(call words,a b c)", "$(value f)", "$(origin f)", "$(flavor f)", "$(shell echo hi; echo there)", "$(shell exit 3)$(.SHELLSTATUS)", "$(file < file)", "[$(file <nope)]", "$(subst $(comma),$(space),a,b)", "$(subst :,$(space),a:b)", "$(words $(A))", "$$", "$(A:.c=)", "$(patsubst %,'%',a b)", "$(filter a\\%b,a%b acb)", "${subst a,b,${A}}", "$(call map,dbl,1 2 3)", "$(if $(filter x,$(A)),in,out)", "$(strip $(foreach i,1 2,$(if $(filter 1,$(i)),one,)))", "$(let)", "$(nofunc a)", "$(call undefined,a)", "$(sort)", "$(words)"} {
		b.WriteString("$(info " + e + ")\n")
	}
	run(t, "A = x.c y.c z.h\nf = <$(1)|$(2)|$(0)>\nrev = $(2) $(1)\ndbl = $(1)$(1)\nmap = $(foreach a,$(2),$(call $(1),$(a)))\ncomma = ,\nempty =\nspace = $(empty) $(empty)\n"+b.String()+"all: ; @:\n", src, "make", "make -s")
	for _, bad := range []string{"$(word x,a)", "$(word 0,a)", "$(wordlist 0,1,a)", "$(subst a,b)", "$(error stop here)", "$(patsubst a)", "$(call)", "$(if x", "$(foreach a)", "$(file x)", "$(wordlist a,b,c)", "$(word )"} {
		run(t, "x := "+bad+"\nall: ; @echo $(x)\n", src, "make")
	}
	run(t, "$(warning careful)\nall:\n\t@echo a\n\t$(info from recipe)\n\t$(error in recipe)\n", src, "make")
	run(t, "$(file >out,some text)$(file >>out,more)$(file >empty)\nall: ; @cat out empty\n", src, "make")
}

func TestInput(t *testing.T) {
	commandtest.Run(t, commands(), commandtest.Table{Stdin: "all: ; @echo from stdin\n", Setup: []string{"f makefile lower: ; @echo lower\n", "f Makefile upper: ; @echo upper\n", "f x.mk all: ; @echo x $(V)\n", "d d", "f d/Makefile d: ; @echo d $(CURDIR)\n", "f crlf all:\n\t@echo ok\n"},
		Lines: []string{"make -f -", "make", "make -f Makefile", "make -fx.mk V=1", "make -C d", "make -C d -s", "make -C nope", "make -f x.mk -f Makefile", "make -C d --no-print-directory", "make --eval=v=1 -f x.mk", "make -f x.mk --eval 'extra: ; @echo extra $(V)' extra", "make --directory=d", "make --file=x.mk", "make -Cd", "make -I d -f x.mk", "make -n -C d"}})
}

// With several jobs, targets that wait are looked at once each time around.
func TestDeepParallel(t *testing.T) {
	var b strings.Builder
	for i := range 120 {
		fmt.Fprintf(&b, "t%d: t%d t%d t%d ; @echo t%d\n", i, i+1, i+2, i+3, i)
	}
	b.WriteString("t120 t121 t122: ; @echo $@\n")
	table := commandtest.Table{Setup: []string{"f Makefile " + b.String()}}
	r := table.Sandbox(t, commands(), []string{"make", "-j4"}, "")
	if n := strings.Count(r.Stdout, "\n"); n != 123 || !strings.HasSuffix(r.Stdout, "t2\nt1\nt0\n") || r.Status != 0 {
		t.Errorf("%d lines, status %d: %q", n, r.Status, r.Stdout)
	}
}

// Intermediate files that many others are made from are looked at once.
func TestDeepIntermediate(t *testing.T) {
	var b strings.Builder
	b.WriteString("all: goal\ngoal: t0 ; @echo goal\n.INTERMEDIATE:")
	for i := range 120 {
		fmt.Fprintf(&b, " t%d", i)
	}
	for i := range 120 {
		fmt.Fprintf(&b, "\nt%d: t%d t%d t%d ; @echo t%d", i, i+1, i+2, i+3, i)
	}
	b.WriteString("\nt120 t121 t122:\n")
	table := commandtest.Table{Setup: []string{"f t120 x", "f t121 x", "f t122 x", "f goal x", "f Makefile " + b.String()}}
	if r := table.Sandbox(t, commands(), []string{"make", "-r"}, ""); r.Stdout != "make: Nothing to be done for 'all'.\n" {
		t.Errorf("%q %q", r.Stdout, r.Stderr)
	}
}

// Makefiles that would run away end with a message.
func TestHostile(t *testing.T) {
	table := commandtest.Table{Setup: []string{
		"f deep f = $(call f,$(1)x)\nall: ; @echo $(call f,x)\n",
		"f double a := xxxxxxxxxxxxxxxx\n" + strings.Repeat("a := $(a)$(a)\n", 40) + "all: ; @echo done\n",
		"f self include self\n",
		"f chain %.a: %.b ; x\n%.b: %.c ; x\n%.c: %.a ; x\n",
		"f many " + strings.Repeat("%: %.z ; x\n%: %.y ; x\n%.z: %.y ; x\n%.y: %.x ; x\n%.x: %.w ; x\n", 20),
		"f parens x = " + strings.Repeat("$(", 5000) + "\nall: ; @echo $(x)\n",
		"f again all: ; @echo $(X)\nagain: ; \ninclude gen\ngen: FORCE ; @echo '#' > gen; sleep 0.01\nFORCE:\n",
		"f bin \x00\x01\xff:\x00\n\t\x00\n",
		"f eval x = $(eval $(x))\n$(x)\nall:\n",
		"f subst a := " + strings.Repeat("x", 4000) + "\nb := $(subst x,$(a),$(a))\nc := $(subst x,$(b),$(b))\nall:\n",
	}}
	for _, name := range []string{"deep", "double", "self", "parens", "bin", "eval", "subst"} {
		table.Survives(t, commands(), "make", "-f", name)
	}
	table.Survives(t, commands(), "make", "-f", "chain", "q.a")
	table.Survives(t, commands(), "make", "-f", "many", "q")
	table.Survives(t, commands(), "make", "-f", "again")
}
