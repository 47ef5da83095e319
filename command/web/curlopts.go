package web

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// curlConfig is what one group of options (up to --next) asks for.
type curlConfig struct {
	urls    []string
	outputs []curlOutput
	remote  bool // --remote-name-all

	method                            string
	head, include, get, fail, body    bool // -I -i -G -f --fail-with-body
	location, trusted                 bool
	maxRedirs                         int
	post301, post302, post303         bool
	data                              []byte
	hasData, json                     bool
	form                              []formPart
	headers                           []string
	agent, referer, user, bearer      string
	autoReferer                       bool
	ranges, resume, timeCond          string
	upload                            string
	hasUpload                         bool
	compressed, raw, pathAsIs         bool
	cookies                           []string
	cookieJar, dumpHeader, etagSave   string
	etagCompare                       string
	newSession                        bool
	insecure                          bool
	caCert                            string
	minTLS, maxTLS                    uint16
	maxTime, connectTimeout           time.Duration
	retry                             int
	retryDelay, retryMax              time.Duration
	retryAll, retryRefused            bool
	resolves, connectTo               []string
	network                           string
	contentDisposition, remoteTime    bool
	createDirs, noClobber, removeFail bool
	outputDir                         string
	writeOut                          string
	maxSize                           int64
	globOff, http10                   bool
	requestTarget, protoDefault       string
	ignoreLength, noKeepalive         bool
	limitRate                         int64
	urlQuery                          []string
}

// curlOutput is where a URL's body goes: a file, the URL's own name, or standard output.
type curlOutput struct {
	file   string
	remote bool
}

// curlGlobal are the options of the whole command line.
type curlGlobal struct {
	silent, showError, verbose, noProgress, bar bool
	failEarly                                   bool
	stderr                                      string
}

// curlOption describes an option: its letter, and whether it takes an argument.
type curlOption struct {
	letter byte
	arg    bool
}

// curlOptions are all options that are understood. Those that change nothing here are accepted in silence, as scripts
// give them; what would need more than HTTP isn't there.
var curlOptions = map[string]curlOption{
	"anyauth": {}, "append": {'a', false}, "basic": {}, "ca-native": {}, "cacert": {0, true}, "capath": {0, true}, "compressed": {}, "config": {'K', true},
	"connect-timeout": {0, true}, "connect-to": {0, true}, "continue-at": {'C', true}, "cookie": {'b', true}, "cookie-jar": {'c', true},
	"create-dirs": {}, "data": {'d', true}, "data-ascii": {0, true}, "data-binary": {0, true}, "data-raw": {0, true}, "data-urlencode": {0, true},
	"disable": {'q', false}, "dump-header": {'D', true}, "etag-compare": {0, true}, "etag-save": {0, true}, "expect100-timeout": {0, true},
	"fail": {'f', false}, "fail-early": {}, "fail-with-body": {}, "form": {'F', true}, "form-string": {0, true}, "form-escape": {}, "get": {'G', false},
	"globoff": {'g', false}, "head": {'I', false}, "header": {'H', true}, "help": {'h', false}, "http0.9": {}, "http1.0": {'0', false}, "http1.1": {}, "http2": {},
	"http2-prior-knowledge": {}, "http3": {}, "ignore-content-length": {}, "include": {'i', false}, "insecure": {'k', false}, "ipv4": {'4', false},
	"ipv6": {'6', false}, "json": {0, true}, "junk-session-cookies": {'j', false}, "keepalive": {}, "keepalive-time": {0, true},
	"limit-rate": {0, true}, "location": {'L', false}, "location-trusted": {}, "manual": {'M', false}, "max-filesize": {0, true},
	"max-redirs": {0, true}, "max-time": {'m', true}, "buffer": {'N', false}, "netrc": {'n', false}, "netrc-optional": {}, "next": {':', false},
	"clobber": {}, "no-progress-meter": {}, "progress-meter": {}, "noproxy": {0, true}, "oauth2-bearer": {0, true}, "output": {'o', true}, "output-dir": {0, true}, "parallel": {'Z', false},
	"parallel-immediate": {}, "parallel-max": {0, true}, "path-as-is": {}, "post301": {}, "post302": {}, "post303": {}, "progress-bar": {'#', false},
	"proto": {0, true}, "proto-default": {0, true}, "proto-redir": {0, true}, "range": {'r', true}, "rate": {0, true}, "raw": {}, "referer": {'e', true},
	"remote-header-name": {'J', false}, "remote-name": {'O', false}, "remote-name-all": {}, "remote-time": {'R', false}, "remove-on-error": {},
	"request": {'X', true}, "request-target": {0, true}, "resolve": {0, true}, "retry": {0, true}, "retry-all-errors": {}, "retry-connrefused": {},
	"retry-delay": {0, true}, "retry-max-time": {0, true}, "sessionid": {}, "show-error": {'S', false}, "silent": {'s', false}, "speed-limit": {'Y', true},
	"speed-time": {'y', true}, "ssl": {}, "ssl-reqd": {}, "ssl-no-revoke": {}, "sslv2": {'2', false}, "sslv3": {'3', false}, "stderr": {0, true},
	"styled-output": {}, "tcp-fastopen": {}, "tcp-nodelay": {}, "time-cond": {'z', true}, "tls-max": {0, true}, "tlsv1": {'1', false}, "tlsv1.0": {},
	"tlsv1.1": {}, "tlsv1.2": {}, "tlsv1.3": {}, "tr-encoding": {}, "trace-time": {}, "upload-file": {'T', true}, "url": {0, true}, "url-query": {0, true},
	"user": {'u', true}, "user-agent": {'A', true}, "verbose": {'v', false}, "version": {'V', false}, "write-out": {'w', true}, "alpn": {}, "npn": {},
}

// curlLetters maps letters to names.
var curlLetters = func() map[byte]string {
	m := map[byte]string{}
	for name, o := range curlOptions {
		if o.letter != 0 {
			m[o.letter] = name
		}
	}
	return m
}()

// curlParser reads a command line, or a file of options.
type curlParser struct {
	c       *curl
	config  *curlConfig
	configs []*curlConfig
	depth   int // of -K in -K
}

// maxConfigDepth bounds files of options that name others.
const maxConfigDepth = 10

func newConfig() *curlConfig { return &curlConfig{maxRedirs: 50, network: "tcp"} }

// parse reads arguments; a mistake ends the command.
func (p *curlParser) parse(args []string) {
	for i := 0; i < len(args); i++ {
		a := args[i]
		if a == "--" {
			for _, u := range args[i+1:] {
				p.config.urls = append(p.config.urls, u)
			}
			return
		}
		if !strings.HasPrefix(a, "-") || a == "-" {
			p.config.urls = append(p.config.urls, a)
			continue
		}
		if strings.HasPrefix(a, "--") {
			name, on := p.long(a)
			if curlOptions[name].arg {
				i++
				p.set(name, p.argument(a, args, i), true)
			} else {
				p.set(name, "", on)
			}
			continue
		}
		i = p.letters(a, args, i)
	}
}

// letters reads a word of short options.
func (p *curlParser) letters(a string, args []string, i int) int {
	for k := 1; k < len(a); k++ {
		name, ok := curlLetters[a[k]]
		if !ok {
			p.c.usage("option %s: is unknown", a)
		}
		if !curlOptions[name].arg {
			p.set(name, "", name != "buffer")
			continue
		}
		if k+1 < len(a) {
			p.set(name, a[k+1:], true)
		} else {
			i++
			p.set(name, p.argument("-"+string(a[k]), args, i), true)
		}
		break
	}
	return i
}

func (p *curlParser) argument(option string, args []string, i int) string {
	if i >= len(args) {
		p.c.usage("option %s: requires parameter", option)
	}
	return args[i]
}

// long finds an option by its name or an unambiguous prefix; "--no-…" turns it off.
func (p *curlParser) long(a string) (name string, on bool) {
	name, on = a[2:], true
	if _, ok := curlOptions[name]; !ok {
		if rest, no := strings.CutPrefix(name, "no-"); no {
			if o, ok := curlOptions[rest]; ok && !o.arg {
				return rest, false
			}
		}
		var found []string
		for n := range curlOptions {
			if strings.HasPrefix(n, name) {
				found = append(found, n)
			}
		}
		switch len(found) {
		case 0:
			p.c.usage("option %s: is unknown", a)
		case 1:
			name = found[0]
		default:
			p.c.usage("option %s: is ambiguous", a)
		}
	}
	return name, on
}

// seconds reads a time of an option.
func (p *curlParser) seconds(option, s string) time.Duration {
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || f < 0 || f > 1e9 {
		p.c.usage("option %s: expected a proper numerical parameter", option)
	}
	return time.Duration(f * float64(time.Second))
}

func (p *curlParser) number(option, s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		p.c.usage("option %s: expected a proper numerical parameter", option)
	}
	return n
}

// set applies one option.
func (p *curlParser) set(name, arg string, on bool) {
	if p.setGlobal(name, arg, on) || p.setFlag(name, on) || p.setData(name, arg) || p.setTransfer(name, arg) {
		return
	}
}

func (p *curlParser) setGlobal(name, arg string, on bool) bool {
	g := &p.c.global
	switch name {
	case "silent":
		g.silent = on
	case "show-error":
		g.showError = on
	case "verbose":
		g.verbose = on
	case "no-progress-meter":
		g.noProgress = on
	case "progress-meter":
		g.noProgress = !on
	case "progress-bar":
		g.bar = on
	case "fail-early":
		g.failEarly = on
	case "stderr":
		g.stderr = arg
	case "help":
		p.c.t.Out.WriteString(curlHelp)
		p.c.t.Exit(0)
	case "version":
		p.c.t.Out.WriteString(curlVersion)
		p.c.t.Exit(0)
	case "next":
		p.configs = append(p.configs, p.config)
		p.config = newConfig()
	case "config":
		p.file(arg)
	default:
		return false
	}
	return true
}

func (p *curlParser) setFlag(name string, on bool) bool {
	c := p.config
	flags := map[string]*bool{"head": &c.head, "include": &c.include, "get": &c.get, "fail": &c.fail, "fail-with-body": &c.body, "location": &c.location,
		"post301": &c.post301, "post302": &c.post302, "post303": &c.post303, "compressed": &c.compressed, "raw": &c.raw, "path-as-is": &c.pathAsIs,
		"junk-session-cookies": &c.newSession, "insecure": &c.insecure, "retry-all-errors": &c.retryAll, "retry-connrefused": &c.retryRefused,
		"remote-header-name": &c.contentDisposition, "remote-time": &c.remoteTime, "create-dirs": &c.createDirs, "remove-on-error": &c.removeFail,
		"globoff": &c.globOff, "http1.0": &c.http10, "remote-name-all": &c.remote, "ignore-content-length": &c.ignoreLength}
	if f := flags[name]; f != nil {
		*f = on
		return true
	}
	switch name {
	case "location-trusted":
		c.location, c.trusted = on, on
	case "remote-name":
		c.outputs = append(c.outputs, curlOutput{remote: true})
	case "clobber":
		c.noClobber = !on
	case "ipv4":
		c.network = "tcp4"
	case "ipv6":
		c.network = "tcp6"
	case "tlsv1", "tlsv1.0":
		c.minTLS = 0x301
	case "tlsv1.1":
		c.minTLS = 0x302
	case "tlsv1.2":
		c.minTLS = 0x303
	case "tlsv1.3":
		c.minTLS = 0x304
	default:
		return false
	}
	return true
}

func (p *curlParser) setTransfer(name, arg string) bool {
	c := p.config
	texts := map[string]*string{"request": &c.method, "user-agent": &c.agent, "user": &c.user, "oauth2-bearer": &c.bearer, "range": &c.ranges,
		"continue-at": &c.resume, "time-cond": &c.timeCond, "cookie-jar": &c.cookieJar, "dump-header": &c.dumpHeader, "etag-save": &c.etagSave,
		"etag-compare": &c.etagCompare, "cacert": &c.caCert, "output-dir": &c.outputDir, "request-target": &c.requestTarget, "proto-default": &c.protoDefault}
	if s := texts[name]; s != nil {
		*s = arg
		if name == "user-agent" && arg == "" {
			*s = "\x00" // no field at all
		}
		return true
	}
	switch name {
	case "url":
		c.urls = append(c.urls, arg)
	case "output":
		c.outputs = append(c.outputs, curlOutput{file: arg})
	case "header":
		p.header(arg)
	case "referer":
		c.referer, c.autoReferer = strings.CutSuffix(arg, ";auto")
	case "upload-file":
		c.upload, c.hasUpload = arg, true
	case "cookie":
		c.cookies = append(c.cookies, arg)
	case "max-time":
		c.maxTime = p.seconds("--"+name, arg)
	case "connect-timeout":
		c.connectTimeout = p.seconds("--"+name, arg)
	case "retry":
		c.retry = p.number("--"+name, arg)
	case "retry-delay":
		c.retryDelay = p.seconds("--"+name, arg)
	case "retry-max-time":
		c.retryMax = p.seconds("--"+name, arg)
	case "max-redirs":
		c.maxRedirs = p.number("--"+name, arg)
	case "resolve":
		c.resolves = append(c.resolves, arg)
	case "connect-to":
		c.connectTo = append(c.connectTo, arg)
	case "max-filesize":
		c.maxSize = p.size(arg)
	case "limit-rate":
		c.limitRate = p.size(arg)
	case "tls-max":
		c.maxTLS = map[string]uint16{"1.0": 0x301, "1.1": 0x302, "1.2": 0x303, "1.3": 0x304}[arg]
	case "write-out":
		c.writeOut = p.textOrFile(arg)
	default:
		return false
	}
	return true
}

// size reads a number of bytes with a suffix.
func (p *curlParser) size(arg string) int64 {
	factor := int64(1)
	s := arg
	if n := len(s); n > 0 {
		switch s[n-1] {
		case 'k', 'K':
			factor = 1 << 10
		case 'm', 'M':
			factor = 1 << 20
		case 'g', 'G':
			factor = 1 << 30
		}
		if factor > 1 {
			s = s[:n-1]
		}
	}
	v, err := strconv.ParseInt(s, 10, 40)
	if err != nil || v < 0 {
		p.c.usage("unsupported rate unit. Use G, M, K or B")
	}
	return v * factor
}

// textOrFile is an argument, or with a leading "@" the content of a file.
func (p *curlParser) textOrFile(arg string) string {
	name, ok := strings.CutPrefix(arg, "@")
	if !ok {
		return arg
	}
	b, err := p.c.t.ReadFile(name, maxConfig)
	if err != nil {
		p.c.warn("Failed to open %s", name)
		p.c.usage("error encountered when reading a file")
	}
	return strings.NewReplacer("\r", "", "\n", "").Replace(string(b))
}

// maxConfig bounds files of options, headers and data.
const maxConfig = 1 << 30

// header adds a field, or with "@" those of a file.
func (p *curlParser) header(arg string) {
	if !strings.HasPrefix(arg, "@") {
		p.config.headers = append(p.config.headers, arg)
		return
	}
	b, err := p.c.t.ReadFile(arg[1:], maxConfig)
	if err != nil {
		p.c.warn("Failed to open %s", arg[1:])
		p.c.usage("error encountered when reading a file")
	}
	for line := range strings.SplitSeq(string(b), "\n") {
		if line = strings.TrimRight(line, "\r"); line != "" && !strings.HasPrefix(line, "#") {
			p.config.headers = append(p.config.headers, line)
		}
	}
}

// file reads options from a file (-K).
func (p *curlParser) file(name string) {
	if p.depth++; p.depth > maxConfigDepth {
		p.c.usage("option --config: is badly used here")
	}
	defer func() { p.depth-- }()
	b, err := p.c.t.ReadFile(name, maxConfig)
	if err != nil {
		p.c.errorf("curl: option -K: error encountered when reading a file\ncurl: try 'curl --help' or 'curl --manual' for more information\n")
		p.c.t.Exit(26)
	}
	for line := range strings.SplitSeq(string(b), "\n") {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		end := strings.IndexAny(line, " \t=:")
		option, value := line, ""
		if end >= 0 {
			option, value = line[:end], strings.TrimLeft(line[end:], " \t=:")
		}
		value = configValue(value)
		if !strings.HasPrefix(option, "-") {
			option = "--" + option
		}
		args := []string{option}
		if len(option) == 2 && option[1] != '-' {
			if curlOptions[curlLetters[option[1]]].arg {
				args = append(args, value)
			}
		} else if full, _ := p.long(option); curlOptions[full].arg {
			args = append(args, value)
		}
		p.parse(args)
	}
}

// configValue reads a value of a file of options: "quoted" with escapes, or one word.
func configValue(s string) string {
	if !strings.HasPrefix(s, `"`) {
		if end := strings.IndexAny(s, " \t"); end >= 0 {
			s = s[:end]
		}
		return s
	}
	var b strings.Builder
	for i := 1; i < len(s) && s[i] != '"'; i++ {
		c := s[i]
		if c == '\\' && i+1 < len(s) {
			i++
			if k := strings.IndexByte("tnrv", s[i]); k >= 0 {
				c = "\t\n\r\v"[k]
			} else {
				c = s[i]
			}
		}
		b.WriteByte(c)
	}
	return b.String()
}

const curlVersion = `curl 7.88.1 (x86_64-pc-linux-gnu) libcurl/7.88.1 AgentRun/1.0
Release-Date: 2023-02-20
Protocols: file http https
Features: alt-svc AsynchDNS HTTPS-proxy IPv6 Largefile libz SSL zstd
`

const curlHelp = `Usage: curl [options...] <url>
 -d, --data <data>          HTTP POST data
 -f, --fail                 Fail fast with no output on HTTP errors
 -h, --help <category>      Get help for commands
 -i, --include              Include protocol response headers in the output
 -o, --output <file>        Write to file instead of stdout
 -O, --remote-name          Write output to a file named as the remote file
 -s, --silent               Silent mode
 -T, --upload-file <file>   Transfer local FILE to destination
 -u, --user <user:password> Server user and password
 -A, --user-agent <name>    Send User-Agent <name> to server
 -v, --verbose              Make the operation more talkative
 -V, --version              Show version number and quit

This is not the full help, this menu is stripped into categories.
Use "--help category" to get an overview of all categories.
For all options use the manual or "--help all".
`

// usage reports a mistake of the command line and ends the command.
func (c *curl) usage(format string, args ...any) {
	c.errorf("curl: %s\ncurl: try 'curl --help' or 'curl --manual' for more information\n", fmt.Sprintf(format, args...))
	c.t.Exit(2)
}
