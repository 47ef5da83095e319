// Package network is `nc`, `ping`, `host` and `nslookup` in a sandbox whose only way out is services.Services.Dial: TCP
// connections that the network policy allows, and those to servers of the sandbox itself. Names are resolved beyond it. What can't
// be done there (UDP, raw sockets, questions to name servers) fails with an error that says so, and the way round it.
package network

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"syscall"
	"time"

	"agentrun.dev/command/getopt"
	"agentrun.dev/command/services"
	"agentrun.dev/command/tool"
	"agentrun.dev/errs"
)

var ncSpec = tool.Spec{
	Usage:   []string{"[-46dNnvz] [-q seconds] [-w timeout] destination port", "-l [-46dkNv] [-w timeout] [address] port"},
	About:   "Connects to a TCP port of the sandbox or one that its network policy allows, or waits for a connection, and copies standard input there and what comes back to standard output.",
	Package: tool.Own,
	Options: []getopt.Option{
		{Short: '4', Help: "use IPv4"}, {Short: '6', Help: "use IPv6"}, {Short: 'n', Help: "the destination is an address"}, {Short: 'v', Help: "say what happens"},
		{Short: 'z', Help: "only try whether the port is open"}, {Short: 'N', Help: "shut the connection after the end of standard input"},
		{Short: 'w', Arg: getopt.Required, Name: "SECONDS", Help: "time limit of connecting, and of silence"},
		{Short: 'q', Arg: getopt.Required, Name: "SECONDS", Help: "wait after the end of standard input"},
		{Short: 'l', Help: "listen for a connection"}, {Short: 'k', Help: "with -l: go on with the next one"}, {Short: 'd', Help: "don't read standard input"},
		{Short: 'p', Arg: getopt.Required, Name: "PORT", Help: "the port to listen on, or to connect from"},
		{Short: 'i', Arg: getopt.Required}, {Short: 'u'}, {Short: 'U'}, {Short: 's', Arg: getopt.Required},
		{Short: 'x', Arg: getopt.Required}, {Short: 'X', Arg: getopt.Required}, {Short: 'h', Key: 'h'}, {Short: 'r'}, {Short: 't'}, {Short: 'C'},
	},
}

// netcat is one run of nc.
type netcat struct {
	t               *tool.T
	network         string
	verbose, scan   bool
	noStdin, shut   bool
	keep, numeric   bool
	listening       bool
	timeout, linger time.Duration
}

// Nc is the command `nc`.
func Nc(t *tool.T) int {
	n := &netcat{t: t, network: "tcp", linger: -1}
	listen, port := false, ""
	opts, operands := t.Parse(&ncSpec)
	for _, o := range opts {
		switch o.Key {
		case 'h':
			t.Help(&ncSpec)
			return 0
		case '4', '6':
			n.network = "tcp" + string(o.Key)
		case 'v':
			n.verbose = true
		case 'z':
			n.scan = true
		case 'd':
			n.noStdin = true
		case 'N':
			n.shut = true
		case 'w':
			n.timeout = n.seconds("timeout", o.Arg)
		case 'q':
			n.linger = n.seconds("-q", o.Arg)
		case 'l':
			listen = true
		case 'k':
			n.keep = true
		case 'n':
			n.numeric = true
		case 'p':
			port = o.Arg
		case 'u':
			t.Fatal(1, "UDP isn't possible in a sandbox: only TCP connections that the network policy allows are")
		case 'U':
			t.Fatal(1, "Unix-domain sockets aren't possible in a sandbox")
		case 'x', 'X':
			t.Fatal(1, "proxies aren't supported")
		}
	}
	switch {
	case n.keep && !listen:
		t.Fatal(1, "must use -l with -k")
	case listen && port != "" && len(operands) < 2:
		operands = append(operands, port) // as traditional nc has it
	}
	if len(operands) != 2 && !(listen && len(operands) == 1) {
		for i, u := range ncSpec.Usage {
			fmt.Fprintf(t.Stderr(), "%s %s %s\n", [2]string{"usage:", "      "}[i], t.Name, u)
		}
		return 1
	}
	if listen {
		return n.listen(operands)
	}
	from, to := n.ports(operands[1])
	status := 1
	for port := from; port <= to; port++ {
		if n.connect(operands[0], strconv.Itoa(port)) {
			status = 0
			if !n.scan {
				break
			}
		}
	}
	return status
}

func (n *netcat) seconds(what, s string) time.Duration {
	v, err := strconv.Atoi(s)
	if err != nil || v < 0 || v > 1<<30 {
		n.t.Fatal(1, "%s invalid: %s", what, s)
	}
	return time.Duration(v) * time.Second
}

var ports = map[string]int{"ftp": 21, "ssh": 22, "telnet": 23, "smtp": 25, "domain": 53, "http": 80, "pop3": 110, "imap2": 143, "https": 443, "postgresql": 5432, "mysql": 3306}

// ports reads "80", "http" or "1-100".
func (n *netcat) ports(s string) (from, to int) {
	if p, ok := ports[s]; ok {
		return p, p
	}
	a, b, ranged := strings.Cut(s, "-")
	if !ranged {
		b = a
	}
	from, err1 := strconv.Atoi(a)
	to, err2 := strconv.Atoi(b)
	if err1 != nil || err2 != nil || from < 1 || to > 65535 || from > to {
		n.t.Fatal(1, "port number invalid: %s", s)
	}
	return from, to
}

// connect makes one connection and uses it.
func (n *netcat) connect(host, port string) bool {
	ctx, cancel := n.t.Context(), context.CancelFunc(func() {})
	if n.timeout > 0 {
		ctx, cancel = context.WithTimeout(ctx, n.timeout)
	}
	defer cancel()
	c, err := services.From(n.t.Process).Connect(ctx, n.network, net.JoinHostPort(host, port))
	n.t.Check()
	if err != nil {
		var dns *net.DNSError
		switch {
		case errors.As(err, &dns), errs.Is(err, errs.NotFound):
			n.t.Warn("getaddrinfo for host \"%s\" port %s: Name or service not known", host, port)
		case errs.Is(err, errs.Denied):
			n.t.Warn("connect to %s port %s (tcp) failed: %s", host, port, Denial(err))
		case ctx.Err() != nil:
			n.t.Warn("connect to %s port %s (tcp) timed out: Operation now in progress", host, port)
		case n.verbose || !n.scan:
			n.t.Warn("connect to %s port %s (tcp) failed: %s", host, port, dialError(err))
		}
		return false
	}
	defer c.Close()
	defer context.AfterFunc(n.t.Context(), func() { c.Close() })()
	if n.verbose {
		fmt.Fprintf(n.t.Stderr(), "Connection to %s %s port [tcp/%s] succeeded!\n", host, port, service(port))
	}
	if !n.scan {
		n.copy(c)
	}
	return true
}

func service(port string) string {
	for name, p := range ports {
		if strconv.Itoa(p) == port {
			return name
		}
	}
	return "*"
}

// Denial words a refusal of the network policy with what would allow it.
func Denial(err error) string {
	s := err.Error()
	if hint := errs.HintOf(err); hint != "" {
		s += " (" + hint + ")"
	}
	return s
}

func dialError(err error) string {
	var n syscall.Errno
	if errors.As(err, &n) {
		return tool.Strerror(n)
	}
	return err.Error()
}

// copy joins the connection with standard input and output, until the other side ends.
func (n *netcat) copy(c net.Conn) {
	sent, over := make(chan struct{}), make(chan struct{})
	if n.noStdin {
		close(sent)
	} else {
		go func() {
			defer close(sent)
			n.send(c, over)
		}()
	}
	ended := false
	// The goroutine has ended before the command does, however it unwinds.
	defer func() {
		if ended && !n.listening { // the other side may only have nothing more to say: what is about to be sent, is
			select {
			case <-sent:
			case <-time.After(lastWords):
			case <-n.t.Process.Context().Done():
			}
		}
		close(over)
		if n.listening {
			<-sent // what is there to be sent, is
		}
		c.Close()
		<-sent
	}()
	buf := make([]byte, 16<<10)
	for {
		if n.timeout > 0 {
			c.SetReadDeadline(time.Now().Add(n.timeout))
		}
		k, err := c.Read(buf)
		n.t.Out.Write(buf[:k])
		n.t.Out.Flush()
		if err != nil {
			ended = err == io.EOF
			return
		}
	}
}

// lastWords is how long a client whose server has ended its side goes on reading its own input.
const lastWords = time.Second

// send copies standard input to the connection until either ends. It reads the process's input rather than the T's, which
// belongs to another goroutine.
func (n *netcat) send(c net.Conn, over <-chan struct{}) {
	buf := make([]byte, 16<<10)
	for {
		ready, err := n.t.Process.Poll(0, over)
		if err != nil || !ready {
			return
		}
		k, err := n.t.Process.Stdin().Read(buf)
		if _, werr := c.Write(buf[:k]); werr != nil {
			return
		}
		if err != nil {
			break
		}
	}
	if half, ok := c.(interface{ CloseWrite() error }); ok && (n.shut || n.linger < 0) {
		half.CloseWrite()
	}
	if n.linger >= 0 {
		c.SetReadDeadline(time.Now().Add(n.linger))
	}
}

// Ping is the command `ping`, which needs a raw socket.
func Ping(t *tool.T) int {
	args := t.Args()[1:]
	if len(args) == 0 {
		fmt.Fprintf(t.Stderr(), "%s: usage error: Destination address required\n", t.Name)
		return 1
	}
	host := args[len(args)-1]
	fmt.Fprintf(t.Stderr(), "%s: socket: Operation not permitted\n%s: ICMP isn't possible in a sandbox; try a TCP port that the network policy allows: nc -zv %s PORT\n", t.Name, t.Name, host)
	return 2
}

// Host is the command `host`; it knows addresses and the names in the sandbox's /etc/hosts.
func Host(t *tool.T) int {
	name := lastOperand(t)
	if name == "" {
		fmt.Fprintf(t.Stderr(), "Usage: host [-aCdilrTvVw] [-c class] [-N ndots] [-t type] [-W time]\n            [-R number] [-m flag] [-p port] hostname [server]\n")
		return 1
	}
	found := hosts(t, name)
	for _, a := range found {
		kind := "address"
		if a.Is6() {
			kind = "IPv6 address"
		}
		fmt.Fprintf(t.Out, "%s has %s %s\n", name, kind, a)
	}
	if len(found) > 0 {
		return 0
	}
	t.Out.WriteString(noServer)
	return 1
}

// Nslookup is the command `nslookup`.
func Nslookup(t *tool.T) int {
	name := lastOperand(t)
	if name == "" {
		fmt.Fprintf(t.Stderr(), "Usage: nslookup [-opt ...] host [server]\n")
		return 1
	}
	found := hosts(t, name)
	for _, a := range found {
		fmt.Fprintf(t.Out, "Name:\t%s\nAddress: %s\n", name, a)
	}
	if len(found) > 0 {
		return 0
	}
	t.Out.WriteString(noServer)
	return 1
}

const noServer = ";; no name server can be reached: names are resolved outside of the sandbox, when the network policy allows a connection to them\n"

func lastOperand(t *tool.T) string {
	args := t.Args()[1:]
	for i := 0; i < len(args); i++ {
		switch a := args[i]; {
		case len(a) == 2 && a[0] == '-' && strings.IndexByte("cNtWRmp", a[1]) >= 0:
			i++
		case !strings.HasPrefix(a, "-"):
			return a
		}
	}
	return ""
}

// maxHosts bounds /etc/hosts.
const maxHosts = 1 << 20

// hosts finds the addresses of a name that the sandbox itself knows.
func hosts(t *tool.T, name string) (found []netip.Addr) {
	text, err := t.ReadFile("/etc/hosts", maxHosts)
	if err != nil {
		text = []byte("127.0.0.1 localhost\n::1 localhost\n")
	}
	for line := range strings.SplitSeq(string(text), "\n") {
		line, _, _ = strings.Cut(line, "#")
		f := strings.Fields(line)
		for i := 1; i < len(f); i++ {
			if strings.EqualFold(f[i], strings.TrimSuffix(name, ".")) {
				if a, err := netip.ParseAddr(f[0]); err == nil {
					found = append(found, a)
				}
				break
			}
		}
	}
	return found
}
