package network_test

import (
	"io"
	"net"
	"strings"
	"testing"

	"agentrun.dev/command"
	"agentrun.dev/command/commandtest"
	"agentrun.dev/command/services"
)

var commands = command.NewSet(nil)

// TestNc talks to a server that answers in capitals.
func TestNc(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			b, _ := io.ReadAll(c)
			io.WriteString(c, strings.ToUpper(string(b)))
			c.Close()
		}
	}()
	host, port, _ := net.SplitHostPort(l.Addr().String())
	const usage = "usage: nc [-46dNnvz] [-q seconds] [-w timeout] destination port\n       nc -l [-46dkNv] [-w timeout] [address] port\n"
	table := commandtest.Table{Services: &services.Services{Dial: (&net.Dialer{}).DialContext}}
	for _, c := range []struct {
		args           []string
		stdin          string
		status         int
		stdout, stderr string
	}{
		{[]string{"nc", host, port}, "hello\n", 0, "HELLO\n", ""},
		{[]string{"nc", "-N", host, port}, "x", 0, "X", ""},
		{[]string{"nc", "-zv", host, port}, "", 0, "", "Connection to 127.0.0.1 " + port + " port [tcp/*] succeeded!\n"},
		{[]string{"nc", "-z", host, "1"}, "", 1, "", ""},
		{[]string{"nc", "-zv", host, "1"}, "", 1, "", "nc: connect to 127.0.0.1 port 1 (tcp) failed: Connection refused\n"},
		{[]string{"nc", "-l", "-w", "0", "-k"}, "", 1, "", usage},
		{[]string{"nc", "-lv", "-w1", "127.0.0.1", "80"}, "", 1, "", "Listening on 127.0.0.1 80\n"},
		{[]string{"nc", "-l", "10.0.0.1", "80"}, "", 1, "", "nc: Cannot assign requested address\n"},
		{[]string{"nc", "-l", "example.com", "80"}, "", 1, "", "nc: getaddrinfo: Name or service not known\n"},
		{[]string{"nc", "-k", "example.com", "80"}, "", 1, "", "nc: must use -l with -k\n"},
		{[]string{"nc", host, "0"}, "", 1, "", "nc: port number invalid: 0\n"},
		{[]string{"nc", host}, "", 1, "", usage},
		{[]string{"ping", "-c1", "example.com"}, "", 2, "", "ping: socket: Operation not permitted\nping: ICMP isn't possible in a sandbox; try a TCP port that the network policy allows: nc -zv example.com PORT\n"},
		{[]string{"host", "localhost"}, "", 0, "localhost has address 127.0.0.1\nlocalhost has IPv6 address ::1\n", ""},
		{[]string{"host", "example.com"}, "", 1, ";; no name server can be reached: names are resolved outside of the sandbox, when the network policy allows a connection to them\n", ""},
		{[]string{"nslookup", "localhost"}, "", 0, "Name:\tlocalhost\nAddress: 127.0.0.1\nName:\tlocalhost\nAddress: ::1\n", ""},
	} {
		r := table.Sandbox(t, commands, c.args, c.stdin)
		if r.Status != c.status || r.Stdout != c.stdout || r.Stderr != c.stderr {
			t.Errorf("%q: %+v", c.args, r)
		}
	}
	denied := commandtest.Table{}
	if r := denied.Sandbox(t, commands, []string{"nc", "example.com", "80"}, ""); r.Status != 1 || !strings.Contains(r.Stderr, "allows example.com:80") {
		t.Errorf("%+v", r)
	}
}
