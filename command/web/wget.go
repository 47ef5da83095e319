package web

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"agentrun.dev/command/getopt"
	"agentrun.dev/command/tool"
	"agentrun.dev/vfs"
)

const (
	keySpider = tool.KeyOwn + iota
	keyHeader
	keyPostData
	keyPostFile
	keyMethod
	keyBodyData
	keyBodyFile
	keyUser
	keyPassword
	keyNoCheck
	keyMaxRedirect
	keyContentDisposition
	keyContentOnError
	keySaveHeaders
	keyReferer
	keyLoadCookies
	keySaveCookies
	keyCA
	keyShowProgress
	keyIgnored
	keyIgnoredArg
	keyNoVerbose
	keyTrustNames
	keyKeepSession
	keyRetryError
	keyConnectTimeout
	keyReadTimeout
)

var wgetSpec = tool.Spec{
	Usage:   []string{"[OPTION]... [URL]..."},
	About:   "GNU Wget 1.21.3, a non-interactive network retriever.",
	Package: "GNU Wget) 1.21.3",
	Fail:    2,
	Terse:   true,
	Options: []getopt.Option{
		{Short: 'o', Long: "output-file", Arg: getopt.Required, Name: "FILE", Help: "log messages to FILE"},
		{Short: 'a', Long: "append-output", Arg: getopt.Required, Name: "FILE", Help: "append messages to FILE"},
		{Short: 'q', Long: "quiet", Help: "quiet (no output)"},
		{Short: 'v', Long: "verbose", Help: "be verbose (this is the default)"},
		{Long: "no-verbose", Key: keyNoVerbose, Help: "turn off verboseness, without being quiet"},
		{Short: 'i', Long: "input-file", Arg: getopt.Required, Name: "FILE", Help: "download URLs found in local or external FILE"},
		{Short: 't', Long: "tries", Arg: getopt.Required, Name: "NUMBER", Help: "set number of retries to NUMBER (0 unlimits)"},
		{Short: 'O', Long: "output-document", Arg: getopt.Required, Name: "FILE", Help: "write documents to FILE"},
		{Short: 'n', Long: "no", Arg: getopt.Required, Hidden: true},
		{Long: "no-clobber", Key: 'C' << 8, Help: "skip downloads that would download to existing files"},
		{Short: 'c', Long: "continue", Help: "resume getting a partially-downloaded file"},
		{Long: "spider", Key: keySpider, Help: "don't download anything"},
		{Short: 'N', Long: "timestamping", Help: "don't re-retrieve files unless newer than local"},
		{Short: 'S', Long: "server-response", Help: "print server response"},
		{Short: 'T', Long: "timeout", Arg: getopt.Required, Name: "SECONDS", Help: "set all timeout values to SECONDS"},
		{Short: 'P', Long: "directory-prefix", Arg: getopt.Required, Name: "PREFIX", Help: "save files to PREFIX/.."},
		{Short: 'U', Long: "user-agent", Arg: getopt.Required, Name: "AGENT", Help: "identify as AGENT instead of Wget/VERSION"},
		{Short: '4', Long: "inet4-only", Help: "connect only to IPv4 addresses"},
		{Short: '6', Long: "inet6-only", Help: "connect only to IPv6 addresses"},
		{Short: 'd', Key: keyIgnored},
		{Short: 'w', Long: "wait", Arg: getopt.Required, Name: "SECONDS", Help: "wait SECONDS between retrievals"},
		{Short: 'e', Long: "execute", Key: keyIgnoredArg, Arg: getopt.Required},
		{Long: "user", Key: keyUser, Arg: getopt.Required, Name: "USER", Help: "set http user to USER"},
		{Long: "http-user", Key: keyUser, Arg: getopt.Required, Hidden: true},
		{Long: "password", Key: keyPassword, Arg: getopt.Required, Name: "PASS", Help: "set http password to PASS"},
		{Long: "http-password", Key: keyPassword, Arg: getopt.Required, Hidden: true},
		{Long: "header", Key: keyHeader, Arg: getopt.Required, Name: "STRING", Help: "insert STRING among the headers"},
		{Long: "referer", Key: keyReferer, Arg: getopt.Required, Name: "URL", Help: "include 'Referer: URL' header in HTTP request"},
		{Long: "post-data", Key: keyPostData, Arg: getopt.Required, Name: "STRING", Help: "use the POST method; send STRING as the data"},
		{Long: "post-file", Key: keyPostFile, Arg: getopt.Required, Name: "FILE", Help: "use the POST method; send contents of FILE"},
		{Long: "method", Key: keyMethod, Arg: getopt.Required, Name: "HTTPMethod", Help: "use method \"HTTPMethod\" in the request"},
		{Long: "body-data", Key: keyBodyData, Arg: getopt.Required, Name: "STRING", Help: "send STRING as data. --method MUST be set"},
		{Long: "body-file", Key: keyBodyFile, Arg: getopt.Required, Name: "FILE", Help: "send contents of FILE. --method MUST be set"},
		{Long: "no-check-certificate", Key: keyNoCheck, Help: "don't validate the server's certificate"},
		{Long: "ca-certificate", Key: keyCA, Arg: getopt.Required, Name: "FILE", Help: "file with the bundle of CAs"},
		{Long: "max-redirect", Key: keyMaxRedirect, Arg: getopt.Required, Name: "N", Help: "maximum redirections allowed per page"},
		{Long: "content-disposition", Key: keyContentDisposition, Help: "honor the Content-Disposition header when choosing local file names"},
		{Long: "content-on-error", Key: keyContentOnError, Help: "output the received content on server errors"},
		{Long: "trust-server-names", Key: keyTrustNames, Help: "use the name specified by the redirection URL's last component"},
		{Long: "save-headers", Key: keySaveHeaders, Help: "save the HTTP headers to file"},
		{Long: "load-cookies", Key: keyLoadCookies, Arg: getopt.Required, Name: "FILE", Help: "load cookies from FILE before session"},
		{Long: "save-cookies", Key: keySaveCookies, Arg: getopt.Required, Name: "FILE", Help: "save cookies to FILE after session"},
		{Long: "keep-session-cookies", Key: keyKeepSession, Help: "load and save session (non-permanent) cookies"},
		{Long: "retry-on-http-error", Key: keyRetryError, Arg: getopt.Required, Name: "ERRORS", Help: "comma-separated list of HTTP errors to retry"},
		{Long: "connect-timeout", Key: keyConnectTimeout, Arg: getopt.Required, Name: "SECS", Help: "set the connect timeout to SECS"},
		{Long: "read-timeout", Key: keyReadTimeout, Arg: getopt.Required, Name: "SECS", Help: "set the read timeout to SECS"},
		{Long: "dns-timeout", Key: keyIgnoredArg, Arg: getopt.Required},
		{Long: "waitretry", Key: keyIgnoredArg, Arg: getopt.Required},
		{Long: "progress", Key: keyIgnoredArg, Arg: getopt.Required},
		{Long: "limit-rate", Key: keyIgnoredArg, Arg: getopt.Required},
		{Long: "secure-protocol", Key: keyIgnoredArg, Arg: getopt.Required},
		{Long: "compression", Key: keyIgnoredArg, Arg: getopt.Required},
		{Long: "show-progress", Key: keyShowProgress, Help: "display the progress bar in any verbosity mode"},
		{Long: "no-show-progress", Key: keyIgnored}, {Long: "no-proxy", Key: keyIgnored}, {Long: "no-cache", Key: keyIgnored}, {Long: "no-hsts", Key: keyIgnored},
		{Long: "no-cookies", Key: keyIgnored}, {Long: "no-config", Key: keyIgnored}, {Long: "no-netrc", Key: keyIgnored}, {Long: "no-iri", Key: keyIgnored},
		{Long: "no-dns-cache", Key: keyIgnored}, {Long: "https-only", Key: keyIgnored}, {Long: "retry-connrefused", Key: keyIgnored},
		{Long: "random-wait", Key: keyIgnored}, {Long: "auth-no-challenge", Key: keyIgnored}, {Long: "no-use-server-timestamps", Key: 'T' << 8},
		{Long: "no-directories", Key: keyIgnored}, {Long: "no-http-keep-alive", Key: keyIgnored}, {Long: "background", Short: 'b', Key: keyIgnored},
	},
}

// wget is one run of the command.
type wget struct {
	t                                          *tool.T
	log                                        io.Writer
	quiet, brief, noClobber, resume, spider    bool
	timestamping, response, insecure           bool
	disposition, onError, saveHeaders, noTimes bool
	trustNames, keepSession                    bool
	document, prefix, agent, user, password    string
	method, referer, ca, loadCookies, saveJar  string
	headers                                    []string
	body                                       []byte
	hasBody                                    bool
	maxRedirect, tries                         int
	timeout, readTimeout, wait                 time.Duration
	network                                    string
	retryOn                                    map[int]bool
	inputs                                     []string
	jar                                        jar
	out                                        vfs.File
	files                                      int
	bytes                                      int64
	took                                       time.Duration
}

// Wget is the command `wget`.
func Wget(t *tool.T) int {
	w := &wget{t: t, log: t.Stderr(), maxRedirect: 20, tries: 20, timeout: 15 * time.Minute, agent: "Wget/1.21.3", network: "tcp"}
	opts, urls := t.Parse(&wgetSpec)
	for _, o := range opts {
		w.option(o)
	}
	if w.hasBody && w.method == "" {
		w.method = "POST"
	}
	for _, name := range w.inputs {
		b, err := t.ReadFile(name, maxConfig)
		if err != nil {
			w.tell("%s: %s\n", name, tool.Strerror(err))
			continue
		}
		for line := range strings.SplitSeq(string(b), "\n") {
			if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
				urls = append(urls, line)
			}
		}
	}
	if len(urls) == 0 {
		if len(w.inputs) > 0 {
			return 0
		}
		fmt.Fprintf(t.Stderr(), "wget: missing URL\nUsage: wget [OPTION]... [URL]...\n\nTry `wget --help' for more options.\n")
		return 1
	}
	return w.run(urls)
}

// option applies one option.
func (w *wget) option(o getopt.Opt) {
	switch o.Key {
	case 'q':
		w.quiet = true
	case 'n':
		w.negative(o.Arg)
	case keyNoVerbose:
		w.brief = true
	case 'C' << 8:
		w.noClobber = true
	case 'T' << 8:
		w.noTimes = true
	case 'c':
		w.resume = true
	case keySpider:
		w.spider = true
	case 'N':
		w.timestamping = true
	case 'S':
		w.response = true
	case 'O':
		w.document = o.Arg
	case 'P':
		w.prefix = o.Arg
	case 'U':
		w.agent = o.Arg
	case 'o', 'a':
		open := w.t.Create
		if o.Key == 'a' {
			open = w.t.Append
		}
		f, err := open(o.Arg)
		if err != nil {
			w.t.Fatal(1, "%s: %s", o.Arg, tool.Strerror(err))
		}
		w.log = f
	case 'i':
		w.inputs = append(w.inputs, o.Arg)
	case '4':
		w.network = "tcp4"
	case '6':
		w.network = "tcp6"
	case 't':
		if w.tries = w.number(o); w.tries == 0 {
			w.tries = maxTries
		}
	case 'T':
		w.timeout = w.seconds(o)
		w.readTimeout = w.timeout
	case keyConnectTimeout:
		w.timeout = w.seconds(o)
	case keyReadTimeout:
		w.readTimeout = w.seconds(o)
	case 'w':
		w.wait = w.seconds(o)
	default:
		w.httpOption(o)
	}
}

// maxTries is what "unlimited" means.
const maxTries = 1000

// negative is -n followed by letters: -nc, -nv, -nd, -nH.
func (w *wget) negative(letters string) {
	for _, c := range letters {
		switch c {
		case 'c':
			w.noClobber = true
		case 'v':
			w.brief = true
		case 'd', 'H', 'p':
		default:
			w.t.Warn("invalid option -- 'n%c'", c)
			w.t.Misused(&wgetSpec)
		}
	}
}

func (w *wget) httpOption(o getopt.Opt) {
	texts := map[rune]*string{keyUser: &w.user, keyPassword: &w.password, keyMethod: &w.method, keyReferer: &w.referer, keyCA: &w.ca,
		keyLoadCookies: &w.loadCookies, keySaveCookies: &w.saveJar}
	flags := map[rune]*bool{keyNoCheck: &w.insecure, keyContentDisposition: &w.disposition, keyContentOnError: &w.onError,
		keySaveHeaders: &w.saveHeaders, keyTrustNames: &w.trustNames, keyKeepSession: &w.keepSession}
	if s := texts[o.Key]; s != nil {
		*s = o.Arg
		return
	}
	if f := flags[o.Key]; f != nil {
		*f = true
		return
	}
	switch o.Key {
	case keyHeader:
		w.headers = append(w.headers, o.Arg)
	case keyPostData, keyBodyData:
		w.body, w.hasBody = []byte(o.Arg), true
	case keyPostFile, keyBodyFile:
		b, err := w.t.ReadFile(o.Arg, maxConfig)
		if err != nil {
			w.t.Fatal(3, "BODY data file %s missing: %s", tool.Quote(o.Arg), tool.Strerror(err))
		}
		w.body, w.hasBody = b, true
	case keyMaxRedirect:
		w.maxRedirect = w.number(o)
	case keyRetryError:
		w.retryOn = map[int]bool{}
		for s := range strings.SplitSeq(o.Arg, ",") {
			if n, err := strconv.Atoi(strings.TrimSpace(s)); err == nil {
				w.retryOn[n] = true
			}
		}
	}
}

func (w *wget) number(o getopt.Opt) int {
	if o.Arg == "inf" {
		return maxTries
	}
	n, err := strconv.Atoi(o.Arg)
	if err != nil || n < 0 {
		w.t.Fatal(2, "%s: Invalid number %s.", strings.TrimLeft(o.As, "-"), tool.Quote(o.Arg))
	}
	return n
}

func (w *wget) seconds(o getopt.Opt) time.Duration {
	s, factor := o.Arg, time.Second
	if n := len(s); n > 0 {
		if unit, ok := map[byte]time.Duration{'s': time.Second, 'm': time.Minute, 'h': time.Hour, 'd': 24 * time.Hour}[s[n-1]]; ok {
			s, factor = s[:n-1], unit
		}
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || f < 0 || f > 1e8 {
		w.t.Fatal(2, "%s: Invalid time period %s", strings.TrimLeft(o.As, "-"), tool.Quote(o.Arg))
	}
	return time.Duration(f * float64(factor))
}

// say writes to the log unless -q or -nv.
func (w *wget) say(format string, args ...any) {
	if !w.quiet && !w.brief {
		fmt.Fprintf(w.log, format, args...)
	}
}

// tell writes to the log unless -q.
func (w *wget) tell(format string, args ...any) {
	if !w.quiet {
		fmt.Fprintf(w.log, format, args...)
	}
}

// run fetches all URLs. The status is the worst of their errors, as wget ranks them.
func (w *wget) run(urls []string) int {
	if w.loadCookies != "" {
		if b, err := w.t.ReadFile(w.loadCookies, maxConfig); err == nil {
			w.jar.load(string(b), false, w.t.Now())
		}
	}
	if w.document != "" && w.document != "-" && !w.spider {
		open := w.t.Create
		if w.resume {
			open = w.t.Append
		}
		f, err := open(w.document)
		if err != nil {
			fmt.Fprintf(w.t.Stderr(), "%s: %s\n", w.document, tool.Strerror(err))
			return 1
		}
		defer f.Close()
		w.out = f
	}
	status, began := 0, time.Now()
	for i, u := range urls {
		if i > 0 && w.wait > 0 {
			w.t.Sleep(w.wait)
		}
		status = worse(status, w.fetch(u))
	}
	if w.files > 1 {
		total := time.Since(began)
		w.say("FINISHED --%s--\nTotal wall clock time: %.1fs\nDownloaded: %d files, %s in %s (%s)\n", w.stamp(), total.Seconds(), w.files, humanBytes(w.bytes),
			interval(w.took), rate(w.bytes, w.took))
	}
	if w.saveJar != "" {
		w.writeJar()
	}
	return status
}

// worse picks the status that wget reports: the lower one, but never success.
func worse(a, b int) int {
	switch {
	case a == 0:
		return b
	case b == 0:
		return a
	}
	return min(a, b)
}

func (w *wget) writeJar() {
	f, err := w.t.Create(w.saveJar)
	if err != nil {
		w.tell("Cannot open cookies file %s: %s\n", tool.Quote(w.saveJar), tool.Strerror(err))
		return
	}
	defer f.Close()
	var b strings.Builder
	fmt.Fprintf(&b, "# HTTP Cookie File\n# Generated by Wget on %s.\n# Edit at your own risk.\n\n", w.stamp())
	for line := range strings.SplitSeq(w.jar.text(), "\n") {
		f := strings.Split(line, "\t")
		if len(f) == 7 && (w.keepSession || f[4] != "0") {
			f[0] = strings.TrimPrefix(f[0], "#HttpOnly_")
			b.WriteString(strings.Join(f, "\t") + "\n")
		}
	}
	f.Write([]byte(b.String()))
}

func (w *wget) stamp() string { return w.t.Now().In(w.t.Location()).Format("2006-01-02 15:04:05") }

// wgetStatus is wget's exit status for an error.
func wgetStatus(err error) int {
	var te *transferError
	if errors.As(err, &te) {
		switch te.kind {
		case failedCertificate, failedTLS:
			return 5
		case failedProtocol:
			return 7
		}
		return 4
	}
	return 1
}

// fetch gets one URL, again if it fails and may be tried again.
func (w *wget) fetch(u string) int {
	addr, err := parseAddress(u, "http", false)
	if err == nil && addr.scheme != "http" && addr.scheme != "https" {
		w.tell("%s: Unsupported scheme %s.\n", u, tool.Quote(addr.scheme))
		return 1
	}
	if err != nil {
		w.tell("%s: Invalid host name.\n", u)
		return 1
	}
	g := &wgetFetch{w: w, first: addr, addr: addr}
	for try := 1; ; try++ {
		g.try = try
		status, again := g.attempt()
		if !again || try >= w.tries {
			if again {
				w.say("Giving up.\n\n")
			}
			return status
		}
		w.say("Retrying.\n\n")
		if w.t.Sleep(time.Duration(min(try, 10))*time.Second) != nil {
			w.t.Check()
		}
	}
}
