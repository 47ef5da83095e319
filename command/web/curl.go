package web

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"agentrun.dev/command/tool"
)

// curl is one run of the command.
type curl struct {
	t       *tool.T
	global  curlGlobal
	jar     jar
	client  *client
	stderr  io.Writer
	urlnum  int
	headers map[string]bool // files of -D that were begun
}

// curlError is an error with curl's exit status.
type curlError struct {
	code int
	text string
}

func (e *curlError) Error() string { return e.text }

// Curl is the command `curl`.
func Curl(t *tool.T) int {
	c := &curl{t: t, stderr: t.Stderr(), headers: map[string]bool{}}
	t.FailStatus(23)
	p := &curlParser{c: c, config: newConfig()}
	args := t.Args()[1:]
	if len(args) == 0 || args[0] != "-q" && args[0] != "--disable" {
		for _, dir := range []string{t.Getenv("CURL_HOME"), t.Getenv("HOME")} {
			if dir == "" {
				continue
			}
			if _, err := t.Stat(dir + "/.curlrc"); err == nil {
				p.file(dir + "/.curlrc")
				break
			}
		}
	}
	if len(args) == 0 {
		c.errorf("curl: try 'curl --help' or 'curl --manual' for more information\n")
		return 2
	}
	p.parse(args)
	p.configs = append(p.configs, p.config)
	return c.run(p.configs)
}

func (c *curl) errorf(format string, args ...any) {
	c.t.Out.Flush()
	fmt.Fprintf(c.stderr, format, args...)
}

// warnWidth is where warnings are broken.
const warnWidth = 70

func (c *curl) warn(format string, args ...any) {
	if c.global.silent {
		return
	}
	text := fmt.Sprintf(format, args...)
	for len(text) > warnWidth {
		cut := strings.LastIndexByte(text[:warnWidth], ' ')
		if cut <= 0 {
			break
		}
		c.errorf("Warning: %s\n", text[:cut+1])
		text = text[cut+1:]
	}
	c.errorf("Warning: %s\n", text)
}

// run does all transfers of all groups of options.
func (c *curl) run(configs []*curlConfig) (status int) {
	if name := c.global.stderr; name == "-" {
		c.stderr = c.t.Out
	} else if name != "" {
		if f, err := c.t.Create(name); err == nil {
			defer f.Close()
			c.stderr = f
		} else {
			c.warn("Failed to open %s!", name)
		}
	}
	for _, config := range configs {
		if len(config.urls) == 0 {
			c.errorf("curl: no URL specified!\ncurl: try 'curl --help' or 'curl --manual' for more information\n")
			return 2
		}
		if methods := config.methods(); methods > 1 {
			c.warn("You can only select one HTTP request method! You asked for both %s.", config.conflict())
			return 2
		}
		config.normalize()
		if status = c.group(config); status != 0 && c.global.failEarly {
			return status
		}
	}
	return status
}

// methods counts the kinds of request that were asked for.
func (c *curlConfig) methods() int {
	n := 0
	for _, on := range []bool{c.head, c.hasUpload, len(c.form) > 0, c.hasData && !c.get} {
		if on {
			n++
		}
	}
	return n
}

func (c *curlConfig) conflict() string {
	var names []string
	if c.hasData {
		names = append(names, "POST (-d, --data)")
	}
	if len(c.form) > 0 {
		names = append(names, "multipart formpost (-F, --form)")
	}
	if c.head {
		names = append(names, "HEAD (-I, --head)")
	}
	if c.hasUpload {
		names = append(names, "PUT (-T, --upload-file)")
	}
	return strings.Join(names, " and ")
}

// normalize settles what options mean together.
func (c *curlConfig) normalize() {
	if c.json {
		if !hasField(c.headers, "Content-Type") {
			c.headers = append(c.headers, "Content-Type: application/json")
		}
		if !hasField(c.headers, "Accept") {
			c.headers = append(c.headers, "Accept: application/json")
		}
	}
	if c.get && c.hasData {
		c.urlQuery = append(c.urlQuery, string(c.data))
		c.hasData = false
	}
}

// hasField reports whether -H names a field.
func hasField(headers []string, name string) bool {
	for _, h := range headers {
		if n, ok := cutPrefixFold(h, name); ok && n != "" && (n[0] == ':' || n[0] == ';') {
			return true
		}
	}
	return false
}

// group does the transfers of one group of options.
func (c *curl) group(config *curlConfig) (status int) {
	for _, b := range config.cookies {
		if !strings.Contains(b, "=") {
			if text, err := c.t.ReadFile(b, maxConfig); err == nil {
				c.jar.load(string(text), config.newSession, c.t.Now())
			}
		}
	}
	for n, pattern := range config.urls {
		out := curlOutput{remote: config.remote}
		if n < len(config.outputs) {
			out = config.outputs[n]
		}
		urls := []globbed{{url: pattern}}
		if !config.globOff {
			var err error
			if urls, err = expandGlob(pattern); err != nil {
				c.errorf("curl: (3) %s\n", err)
				return 3
			}
		}
		for _, u := range urls {
			if name := config.upload; config.hasUpload && name != "-" && name != "." {
				if _, err := c.t.Stat(name); err != nil {
					c.errorf("curl: Can't open '%s'!\ncurl: try 'curl --help' or 'curl --manual' for more information\n", name)
					if !c.global.silent {
						c.errorf("curl: (26) Failed to open/read local data from file/application\n")
					}
					return 26
				}
			}
			x := &transfer{c: c, config: config, url: u.url, glob: u.parts, out: out}
			status = x.run()
			c.urlnum++
			if status != 0 && c.global.failEarly {
				return status
			}
		}
	}
	if config.cookieJar != "" {
		c.saveCookies(config.cookieJar)
	}
	return status
}

func (c *curl) saveCookies(name string) {
	text := c.jar.text()
	if name == "-" {
		c.t.Out.WriteString(text)
		return
	}
	f, err := c.t.Create(name)
	if err != nil {
		c.warn("failed to save cookies in %s", name)
		return
	}
	f.Write([]byte(text))
	f.Close()
}

// run does one transfer, again if it fails and --retry says so, and reports it.
func (x *transfer) run() int {
	began := time.Now()
	delay := time.Second
	if x.config.retryDelay > 0 {
		delay = x.config.retryDelay
	}
	var err error
	for left := x.config.retry; ; left-- {
		err = x.once()
		why := x.transient(err)
		if left <= 0 || why == "" || x.config.retryMax > 0 && time.Since(began)+delay > x.config.retryMax {
			break
		}
		wait := delay
		if after, ok := x.retryAfter(); ok {
			wait = after
		}
		x.c.warn("Problem: %s. Will retry in %d seconds. %d %s left.", why, int(wait.Seconds()), left, plural(left, "retry", "retries"))
		x.discard()
		if x.c.t.Sleep(wait) != nil {
			x.c.t.Check()
		}
		if x.config.retryDelay == 0 {
			delay = min(delay*2, 10*time.Minute)
		}
	}
	return x.report(err)
}

func plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// transient says why a transfer may be tried again; "" if it may not.
func (x *transfer) transient(err error) string {
	code := exitCode(err)
	switch {
	case x.config.retryAll && code != 0:
		return "(retrying all errors)"
	case code == 28 || code == 6:
		return map[int]string{28: "timeout", 6: "timeout"}[code]
	case code == 7 && x.config.retryRefused && !isDenied(err):
		return "connection refused"
	}
	if code == 0 || code == 22 {
		switch x.status {
		case 408, 429, 500, 502, 503, 504:
			return "HTTP error"
		}
	}
	return ""
}

func isDenied(err error) bool {
	var e *transferError
	return errors.As(err, &e) && e.kind == failedDenied
}

// exitCode is curl's exit status for an error.
func exitCode(err error) int {
	var own *curlError
	var te *transferError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &own):
		return own.code
	case errors.As(err, &te):
		return map[errorKind]int{failedResolve: 6, failedConnect: 7, failedDenied: 7, failedTimeout: 28, failedTLS: 35, failedCertificate: 60,
			failedEmpty: 52, failedReceive: 56, failedSend: 55, failedPartial: 18, failedProtocol: 1}[te.kind]
	case errors.Is(err, context.DeadlineExceeded):
		return 28
	}
	return 56
}

const certificateHelp = `More details here: https://curl.se/docs/sslcerts.html

curl failed to verify the legitimacy of the server and therefore could not
establish a secure connection to it. To learn more about this situation and
how to fix it, please visit the web page mentioned above.
`

// report prints what is left to say about a transfer and returns the exit status.
func (x *transfer) report(err error) int {
	code := exitCode(err)
	x.text = ""
	if err != nil {
		x.text = x.describe(err)
		if x.config.removeFail && x.file != nil {
			x.c.t.Unlink(x.fileName)
		}
	}
	g := x.c.global
	if err != nil && (!g.silent || g.showError) {
		x.c.errorf("curl: (%d) %s\n", code, x.text)
		if code == 60 {
			x.c.errorf("%s", certificateHelp)
		}
	}
	x.exit = code
	if x.config.writeOut != "" {
		x.writeOut(x.config.writeOut)
	}
	x.done()
	return code
}

// describe words an error; a timeout tells how far it came.
func (x *transfer) describe(err error) string {
	if exitCode(err) != 28 || err.Error() != "" {
		return err.Error()
	}
	ms := time.Since(x.started).Milliseconds()
	switch {
	case x.client.at.connect == 0:
		return fmt.Sprintf("Connection timed out after %d milliseconds", ms)
	case x.total >= 0:
		return fmt.Sprintf("Operation timed out after %d milliseconds with %d out of %d bytes received", ms, x.received, x.total)
	}
	return fmt.Sprintf("Operation timed out after %d milliseconds with %d bytes received", ms, x.received)
}
