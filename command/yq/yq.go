package yq

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"agentrun.dev/command/getopt"
	"agentrun.dev/command/tool"
	"agentrun.dev/vfs"
)

// maxInput bounds what is read of a file.
const maxInput = 256 << 20

const (
	keyExpression = tool.KeyOwn + iota
	keyFromFile
	keyHeader
	keyCSVSeparator
	keyCSVParse
	keyTSVParse
	keyPropsSeparator
	keyPropsBrackets
	keyShellSeparator
	keyXMLAttribute
	keyXMLContent
	keyXMLDirective
	keyXMLInstruction
	keyXMLStrict
	keyXMLSkipDirectives
	keyXMLSkipInstructions
	keyXMLNamespace
	keyXMLRaw
	keyNoEnv
	keyNoFiles
	keySplitFile
	keyIgnored
	keyInterpolation
	keyFix
)

var spec = tool.Spec{
	Usage: []string{"[flags]", "[command]"},
	About: "yq is a portable command-line data file processor, as Mike Farah's version 4.",
	Options: []getopt.Option{
		{Short: 'C', Long: "colors", Help: "force print with colors (there are none)"},
		{Short: 'M', Long: "no-colors", Help: "force print with no colors"},
		{Short: 'e', Long: "exit-status", Help: "set exit status if there are no matches or null or false is returned"},
		{Long: "expression", Key: keyExpression, Arg: getopt.Required, Name: "string", Help: "forcibly set the expression argument"},
		{Long: "from-file", Key: keyFromFile, Arg: getopt.Required, Name: "string", Help: "Load expression from specified file"},
		{Short: 'f', Long: "front-matter", Arg: getopt.Required, Name: "string", Help: "(extract|process) first input as yaml front-matter"},
		{Long: "header-preprocess", Key: keyHeader, Arg: getopt.Optional, Name: "bool", Help: "Slurp any header comments and separators before processing expression"},
		{Short: 'I', Long: "indent", Arg: getopt.Required, Name: "int", Help: "sets indent level for output (default 2)"},
		{Short: 'i', Long: "inplace", Help: "update the file in place of first file given"},
		{Short: 'p', Long: "input-format", Arg: getopt.Required, Name: "string", Help: "[auto|yaml|json|props|csv|tsv|xml|base64|uri|toml] parse format for input"},
		{Short: 'o', Long: "output-format", Arg: getopt.Required, Name: "string", Help: "[auto|yaml|json|props|csv|tsv|xml|base64|uri|toml|shell] output format type"},
		{Short: 'N', Long: "no-doc", Help: "Don't print document separators (---)"},
		{Short: '0', Long: "nul-output", Help: "Use NUL char to separate values"},
		{Short: 'n', Long: "null-input", Help: "Don't read input, simply evaluate the expression given"},
		{Short: 'P', Long: "prettyPrint", Help: "pretty print, shorthand for '... style = \"\"'"},
		{Short: 's', Long: "split-exp", Arg: getopt.Required, Name: "string", Help: "print each result (or doc) into a file named (exp)"},
		{Long: "split-exp-file", Key: keySplitFile, Arg: getopt.Required, Name: "string", Help: "Use a file to specify the split-exp expression"},
		{Short: 'r', Long: "unwrapScalar", Arg: getopt.Optional, Name: "bool", Help: "unwrap scalar, print the value with no quotes, colours or comments"},
		{Short: 'v', Long: "verbose", Help: "verbose mode"},
		{Short: 'V', Key: 'V'},
		{Short: 'h', Key: 'h'},
		{Short: 'c', Long: "yaml-compact-seq-indent", Key: keyIgnored},
		{Short: 'j', Long: "tojson", Key: 'j'},
		{Long: "csv-separator", Key: keyCSVSeparator, Arg: getopt.Required, Name: "char", Help: "CSV Separator character (default ,)"},
		{Long: "csv-auto-parse", Key: keyCSVParse, Arg: getopt.Optional, Name: "bool", Help: "parse CSV YAML/JSON values (default true)"},
		{Long: "tsv-auto-parse", Key: keyTSVParse, Arg: getopt.Optional, Name: "bool", Help: "parse TSV YAML/JSON values (default true)"},
		{Long: "properties-separator", Key: keyPropsSeparator, Arg: getopt.Required, Name: "string", Help: "separator to use between keys and values"},
		{Long: "properties-array-brackets", Key: keyPropsBrackets, Help: "use [x] in array paths (e.g. for SpringBoot)"},
		{Long: "shell-key-separator", Key: keyShellSeparator, Arg: getopt.Required, Name: "string", Help: "separator for shell variable key paths"},
		{Long: "xml-attribute-prefix", Key: keyXMLAttribute, Arg: getopt.Required, Name: "string", Help: "prefix for xml attributes (default \"+@\")"},
		{Long: "xml-content-name", Key: keyXMLContent, Arg: getopt.Required, Name: "string", Help: "name for xml content (default \"+content\")"},
		{Long: "xml-directive-name", Key: keyXMLDirective, Arg: getopt.Required, Name: "string", Help: "name for xml directives"},
		{Long: "xml-proc-inst-prefix", Key: keyXMLInstruction, Arg: getopt.Required, Name: "string", Help: "prefix for xml processing instructions"},
		{Long: "xml-strict-mode", Key: keyXMLStrict, Help: "enables strict parsing of XML"},
		{Long: "xml-skip-directives", Key: keyXMLSkipDirectives, Help: "skip over directives"},
		{Long: "xml-skip-proc-inst", Key: keyXMLSkipInstructions, Help: "skip over process instructions"},
		{Long: "xml-keep-namespace", Key: keyXMLNamespace, Arg: getopt.Optional, Name: "bool", Help: "enables keeping namespace after parsing attributes"},
		{Long: "xml-raw-token", Key: keyXMLRaw, Arg: getopt.Optional, Name: "bool", Help: "enables using RawToken method instead Token"},
		{Long: "security-disable-env-ops", Key: keyNoEnv, Help: "Disable env related operations"},
		{Long: "security-disable-file-ops", Key: keyNoFiles, Help: "Disable file related operations (e.g. load)"},
		{Long: "string-interpolation", Key: keyInterpolation, Arg: getopt.Optional, Name: "bool"},
		{Long: "yaml-fix-merge-anchor-to-spec", Key: keyFix, Arg: getopt.Optional, Name: "bool"},
	},
	Package: "https://github.com/mikefarah/yq/) version v4.53.5",
}

// command is one run.
type command struct {
	t                                         *tool.T
	e                                         *evaluator
	o                                         *options
	expression, split, front                  string
	hasExpression                             bool
	in, out                                   string
	inPlace, nullInput, all, pretty           bool
	exitStatus, noDoc, nul, header, unwrapSet bool
	text                                      *expr
	printed                                   int
	matched                                   bool // something else than null and false was printed
	last                                      *document
	w                                         io.Writer
	frontRest                                 string
	files                                     int // made by -s
}

// Yq is the command.
func Yq(t *tool.T) int {
	c := &command{t: t, o: defaults(), e: &evaluator{t: t, functions: makeFunctions(), formats: makeFormats()}, in: "auto", out: "auto", header: true, w: t.Out}
	args := t.Args()[1:]
	if len(args) > 0 {
		switch args[0] {
		case "eval", "e":
			args = args[1:]
		case "eval-all", "ea":
			args, c.all, c.e.together = args[1:], true, true
		}
	}
	opts, operands := t.ParseArgs(&spec, args)
	for _, o := range opts {
		if err := c.option(o); err != nil {
			return c.fail(err)
		}
	}
	err := c.run(operands)
	if err != nil {
		return c.fail(err)
	}
	if c.exitStatus && !c.matched {
		return c.fail(errors.New("no matches found"))
	}
	return 0
}

func (c *command) fail(err error) int {
	c.t.Out.Flush()
	fmt.Fprintf(c.t.Stderr(), "Error: %s\n", err)
	return 1
}

// fileError words an error of a file as Go does.
func fileError(name string, err error) error {
	return fmt.Errorf("open %s: %s", name, lowerFirst(tool.Strerror(err)))
}

func lowerFirst(s string) string {
	if s == "" {
		return s
	}
	return strings.ToLower(s[:1]) + s[1:]
}

func (c *command) option(o getopt.Opt) error {
	on := func() bool { return !o.Has || o.Arg != "false" }
	switch o.Key {
	case 'e':
		c.exitStatus = true
	case keyExpression:
		c.expression, c.hasExpression = o.Arg, true
	case keyFromFile, keySplitFile:
		b, err := c.t.ReadFile(o.Arg, maxInput)
		if err != nil {
			return fileError(o.Arg, err)
		}
		if o.Key == keySplitFile {
			c.split = string(b)
		} else {
			c.expression, c.hasExpression = string(b), true
		}
	case 'f':
		c.front = o.Arg
	case keyHeader:
		c.header = on()
	case 'I':
		n, err := strconv.Atoi(o.Arg)
		if err != nil || n < 0 || n > maxIndent {
			return fmt.Errorf("invalid argument %q for \"-I, --indent\" flag", o.Arg)
		}
		c.o.indent = n
	case 'i':
		c.inPlace = true
	case 'p', 'o':
		f, ok := formatNames[strings.TrimPrefix(o.Arg, "=")]
		if !ok {
			return fmt.Errorf("unknown format '%s' please use [yaml|y|json|j|props|p|csv|c|tsv|t|xml|x|base64|uri|toml|shell|s]", o.Arg)
		}
		if o.Key == 'p' {
			c.in = f
		} else {
			c.out = f
		}
	case 'j':
		c.out = "json"
	case 'N':
		c.noDoc = true
	case '0':
		c.nul = true
	case 'n':
		c.nullInput = true
	case 'P':
		c.pretty = true
	case 's':
		c.split = o.Arg
	case 'r':
		c.o.unwrap, c.unwrapSet = strings.TrimPrefix(o.Arg, "=") != "false", true
	case 'V':
		c.t.Out.WriteString("yq (https://github.com/mikefarah/yq/) version v4.53.5\n")
		c.t.Exit(0)
	case 'h':
		c.t.Help(&spec)
		c.t.Exit(0)
	default:
		c.formatOption(o, on())
	}
	return nil
}

func (c *command) formatOption(o getopt.Opt, on bool) {
	switch o.Key {
	case keyCSVSeparator:
		c.o.csvSeparator = o.Arg
	case keyCSVParse:
		c.o.csvParse = on
	case keyTSVParse:
		c.o.tsvParse = on
	case keyPropsSeparator:
		c.o.propsSeparator = o.Arg
	case keyPropsBrackets:
		c.o.propsBrackets = on
	case keyShellSeparator:
		c.o.shellSeparator = o.Arg
	case keyXMLAttribute:
		c.o.xmlAttribute = o.Arg
	case keyXMLContent:
		c.o.xmlContent = o.Arg
	case keyXMLDirective:
		c.o.xmlDirective = o.Arg
	case keyXMLInstruction:
		c.o.xmlInstruction = o.Arg
	case keyXMLStrict:
		c.o.xmlStrict = on
	case keyXMLSkipDirectives:
		c.o.xmlSkipDirectives = on
	case keyXMLSkipInstructions:
		c.o.xmlSkipInstructions = on
	case keyXMLNamespace:
		c.o.xmlKeepNamespace = on
	case keyXMLRaw:
		c.o.xmlRaw = on
	case keyNoEnv:
		c.e.noEnv = on
	case keyNoFiles:
		c.e.noFiles = on
	}
}

// run finds out what is the expression and what are files, and does the work.
func (c *command) run(operands []string) (err error) {
	files := operands
	if !c.hasExpression && len(operands) > 0 {
		// A lone file is a file; otherwise the first operand is the expression.
		if a, err := c.t.Stat(operands[0]); err == nil && !a.Mode.IsDir() && !c.nullInput {
			c.expression = "."
		} else {
			c.expression, files = operands[0], operands[1:]
			if len(files) == 0 && !c.nullInput && strings.HasPrefix(c.expression, "/") {
				return c.usage()
			}
		}
	}
	if len(operands) == 0 && !c.hasExpression && !c.nullInput {
		if c.t.IsTerminal(0) {
			return c.usage()
		}
	}
	if len(files) == 0 && !c.nullInput {
		if c.inPlace {
			return errors.New("write in place flag only applicable when giving an expression and at least one file")
		}
		files = []string{"-"}
	}
	if c.nullInput && len(files) > 0 {
		return errors.New("cannot pass files in when using null-input flag")
	}
	c.pickFormats(files)
	if c.text, err = c.e.parse(c.expression); err != nil {
		return err
	}
	if c.inPlace {
		return c.rewrite(files)
	}
	return c.process(files)
}

func (c *command) usage() error {
	c.t.Help(&spec)
	c.t.Out.Flush()
	c.t.Exit(1)
	return nil
}

// pickFormats settles formats that weren't given by the name of the first file.
func (c *command) pickFormats(files []string) {
	given := c.in != "auto"
	if !given {
		c.in = "yaml"
		if len(files) > 0 && files[0] != "-" {
			c.in = byExtension(files[0])
		}
		if c.out == "auto" {
			c.out = c.in
		}
	}
	if c.out == "auto" {
		c.out = "yaml"
		if c.in != "yaml" {
			fmt.Fprintf(c.t.Stderr(), "time=%s level=WARN msg=\"yq default output is now 'auto' (based on the filename extension). Normally yq would output '%s', but for backwards compatibility 'yaml' has been set. Please use -oy to specify yaml, or drop the -p flag.\"\n",
				c.t.Now().UTC().Format("2006-01-02T15:04:05.000Z"), map[string]string{"props": "properties"}[c.in]+map[bool]string{true: c.in}[c.in != "props"])
		}
	}
	if !c.unwrapSet {
		c.o.unwrap = c.out == "yaml" || c.out == "props"
	}
}

// rewrite is -i: the first file gets the output.
func (c *command) rewrite(files []string) error {
	var b strings.Builder
	c.w = &b
	if err := c.process(files); err != nil {
		return err
	}
	if c.exitStatus && !c.matched {
		return nil
	}
	f, err := c.t.Create(files[0])
	if err != nil {
		return fileError(files[0], err)
	}
	_, err = f.Write([]byte(b.String()))
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}

// process reads the files, evaluates and prints.
func (c *command) process(files []string) error {
	if c.nullInput {
		n := null()
		n.doc, n.value = &document{}, ""
		return c.evaluate([]*node{n})
	}
	var all []*node
	for i, name := range files {
		docs, err := c.read(name, i)
		if err != nil {
			return err
		}
		if c.all {
			all = append(all, docs...)
			continue
		}
		for _, d := range docs {
			if err := c.evaluate([]*node{d}); err != nil {
				return err
			}
		}
	}
	if c.all {
		if err := c.evaluate(all); err != nil {
			return err
		}
	}
	if c.front == "process" {
		io.WriteString(c.w, c.frontRest)
	}
	return nil
}

// read reads all documents of a file.
func (c *command) read(name string, index int) ([]*node, error) {
	in, err := c.t.Open(name)
	if err != nil {
		return nil, fileError(name, err)
	}
	b, err := io.ReadAll(io.LimitReader(in, maxInput+1))
	in.Close()
	if err != nil {
		return nil, fmt.Errorf("read %s: %s", name, lowerFirst(tool.Strerror(err)))
	}
	if len(b) > maxInput {
		return nil, fmt.Errorf("%s: file too large", name)
	}
	text := string(b)
	if c.front != "" && index == 0 {
		text = c.frontMatter(text)
	}
	docs, err := decodeFormat(c.in, text, &document{file: name, fileIndex: index}, c.o)
	if err != nil {
		return nil, fmt.Errorf("bad file '%s': %w", name, err)
	}
	if len(docs) == 0 && !c.all {
		n := null()
		n.value, n.doc = "", &document{file: name, fileIndex: index}
		docs = append(docs, n)
	}
	if !c.header {
		for _, d := range docs {
			d.leading = ""
		}
	}
	return docs, nil
}

// frontMatter splits YAML between two "---" off a text.
func (c *command) frontMatter(text string) string {
	if !strings.HasPrefix(text, "---\n") {
		return text
	}
	end := strings.Index(text[4:], "\n---")
	if end < 0 {
		return text
	}
	c.frontRest = text[4+end+1:]
	return text[:4+end+1]
}

func (c *command) evaluate(nodes []*node) error {
	list, err := context{e: c.e, nodes: nodes}.eval(c.text)
	if err != nil {
		return err
	}
	for _, n := range list {
		if c.pretty {
			n.plain(0)
		}
		if err := c.print(n); err != nil {
			return err
		}
	}
	return nil
}

// oldBoolean matches strings that YAML 1.1 would read as booleans without their quotes.
var oldBoolean = regexp.MustCompile(`(?i)^(y|yes|n|no|on|off)$`)

// plain forgets styles (-P).
func (n *node) plain(depth int) {
	if n.kind != scalarKind || n.niceTag() != "!!str" || !oldBoolean.MatchString(n.value) {
		n.style = 0
	}
	if depth > maxDepth {
		return
	}
	for _, e := range n.content {
		e.plain(depth + 1)
	}
}

// print prints one result.
func (c *command) print(n *node) error {
	w := c.w
	if c.split != "" {
		f, err := c.splitFile(n)
		if err != nil {
			return err
		}
		defer f.Close()
		w = f
	}
	if n.truthy() {
		c.matched = true
	}
	s, err := encodeFormat(c.out, n, c.o)
	if err != nil {
		return err
	}
	if n.kind == scalarKind && n.value == "" && n.leading != "" && c.out == "yaml" {
		s = ""
	}
	var head string
	if c.out == "yaml" && (n.kind != scalarKind || !c.o.unwrap || n.leading != "") {
		head = c.leading(n)
	}
	if c.out == "yaml" && c.printed > 0 && c.split == "" && !c.noDoc && !c.nul && c.newDocument(n) && !strings.HasPrefix(head, "---") {
		head = "---\n" + head
	}
	c.printed++
	if d := documentOf(n); d != nil {
		c.last = d
	}
	if c.nul {
		s = strings.TrimSuffix(s, "\n")
		if c.o.unwrap && strings.Contains(s, "\x00") && n.kind == scalarKind {
			return errors.New("can't serialize value because it contains NUL char and you are using NUL separated output")
		}
		s += "\x00"
	}
	_, err = io.WriteString(w, head+s)
	return err
}

// newDocument reports whether a result comes from another document than the one before.
func (c *command) newDocument(n *node) bool {
	d := documentOf(n)
	if d == nil || c.last == nil {
		return false
	}
	return d.index != c.last.index || d.fileIndex != c.last.fileIndex
}

func documentOf(n *node) *document {
	if n.doc != nil {
		return n.doc
	}
	return n.root().doc
}

// leading renders what stood before the first document's content.
func (c *command) leading(n *node) string {
	var b strings.Builder
	if c.split != "" && !c.noDoc && !strings.HasPrefix(n.leading, docMark) {
		b.WriteString("---\n")
	}
	if n.leading == "" {
		return b.String()
	}
	for line := range strings.SplitSeq(strings.TrimSuffix(n.leading, "\n"), "\n") {
		if tail, ok := strings.CutPrefix(line, docMark); ok {
			if !c.noDoc {
				b.WriteString("---" + tail + "\n")
			}
			continue
		}
		b.WriteString(line + "\n")
	}
	return b.String()
}

// splitFile makes the file for a result (-s).
func (c *command) splitFile(n *node) (vfs.File, error) {
	x, err := c.e.parse(c.split)
	if err != nil {
		return nil, err
	}
	list, err := context{e: c.e, nodes: []*node{n}}.let("index", []*node{integer(c.files)}).eval(x)
	if err != nil {
		return nil, err
	}
	c.files++
	if len(list) == 0 {
		return nil, errors.New("the split expression has no result")
	}
	name := list[0].value
	if dot := strings.LastIndexByte(name, '.'); dot <= strings.LastIndexByte(name, '/') {
		name += "." + map[string]string{"yaml": "yml", "props": "properties"}[c.out] + map[bool]string{true: c.out}[c.out != "yaml" && c.out != "props"]
	}
	for i := 1; i < len(name); i++ {
		if name[i] == '/' {
			c.t.Mkdir(name[:i], 0o755)
		}
	}
	f, err := c.t.Create(name)
	if err != nil {
		return nil, fileError(name, err)
	}
	return f, nil
}
