// Command bench measures what SPECIFICATION.md promises: each row runs us and a floor or a rival in the same run, on
// the same disk, and prints the ratio. `make bench` runs all of it; -only takes a regular expression of rows.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"runtime/pprof"
	"slices"
	"strings"
	"time"

	"agentrun.dev/vmm/jail"
)

// row is one measurement. Ratio is ours divided by the other's, so that less is better unless More is set.
type row struct {
	Name   string
	Ours   string
	Other  string
	Ratio  float64
	Target string
	Met    bool
}

type bench struct {
	ctx       context.Context
	dir       string
	only      *regexp.Regexp
	quick     bool
	rows      []row
	json      bool
	versitygw string
	rival     string // the folder where just-bash is installed
	e2b       string // the Python that has E2B's SDK
	native    string // the Python that has what our own needs
	kvm       string // where sandboxes with stock kernels are measured: bench or host
}

// want reports whether a group of rows is to run.
func (b *bench) want(name string) bool { return b.only == nil || b.only.MatchString(name) }

func (b *bench) add(r row) {
	b.rows = append(b.rows, r)
	if b.json {
		out, _ := json.Marshal(r)
		fmt.Println(string(out))
		return
	}
	met := "yes"
	if !r.Met {
		met = "NO"
	}
	fmt.Printf("| %s | %s | %s | %.2f | %s | %s |\n", r.Name, r.Ours, r.Other, r.Ratio, r.Target, met)
}

func main() {
	if len(os.Args) == 2 && os.Args[1] == vmProcess {
		if err := jail.Serve(nil); err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
			os.Exit(1)
		}
		return
	}
	b := &bench{ctx: context.Background()}
	only := flag.String("only", "", "run only the groups that match this regular expression")
	dir := flag.String("dir", "", "work in this folder (default: a new one in the system's temporary folder)")
	flag.BoolVar(&b.quick, "quick", false, "smaller sizes: for trying the benchmark itself")
	flag.BoolVar(&b.json, "json", false, "print a JSON object per row")
	flag.StringVar(&b.versitygw, "versitygw", "", "the rival's program")
	clients := flag.String("ssh-clients", "", "be the clients of the group ssh: `ADDRESS COUNT`")
	flag.StringVar(&b.e2b, "e2b", "", "the Python that E2B's SDK is installed for; without it its times are missing")
	flag.StringVar(&b.kvm, "kvm", "bench", "where stock kernels run: in the emulated bench of test/vm, or on this host")
	flag.StringVar(&b.native, "sdk-python", "", "the Python that has what our own SDK needs")
	flag.StringVar(&b.rival, "just-bash", "", "the folder where npm has installed just-bash; without it its times are missing")
	profile := flag.String("cpuprofile", "", "write a CPU profile to this file")
	flag.Parse()
	if *clients != "" {
		if err := sshClients(*clients); err != nil {
			fmt.Fprintln(os.Stderr, "bench: ssh clients:", err)
			os.Exit(1)
		}
		return
	}
	if *profile != "" {
		f, err := os.Create(*profile)
		if err == nil {
			err = pprof.StartCPUProfile(f)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
			os.Exit(1)
		}
		defer pprof.StopCPUProfile()
	}
	if err := b.run(*only, *dir); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func (b *bench) run(only, dir string) (err error) {
	if only != "" {
		if b.only, err = regexp.Compile(only); err != nil {
			return err
		}
	}
	if b.kvm == onHost {
		if err := ableHost(); err != nil {
			return err
		}
	}
	if b.dir, err = os.MkdirTemp(dir, "agentrun-bench-"); err != nil {
		return err
	}
	defer os.RemoveAll(b.dir)
	if !b.json {
		fmt.Printf("Machine: %s. Command: `%s`.\n\n", machine(), command(b.kvm))
		fmt.Println("| what | ours | other | ratio | target | met |\n|-|-|-|-|-|-|")
	}
	for _, g := range []struct {
		name string
		f    func(*bench) error
	}{{"fork", forks}, {"depth", depth}, {"diff", diffs}, {"deletes", deletes}, {"writes", randomWrites}, {"rename", renames},
		{"small-forks", smallForks}, {"store", storedOnce}, {"s3", s3}, {"sessions", sessions}, {"neighbours", neighbours}, {"ssh", sshSessions}, {"python", interpreters}, {"shell", shells}, {"claims", claims}, {"service", service}, {"sdks", sdks}, {"vm", vms}, {"vm-jail", jails}, {"vm-python", pythonVMs}} {
		if !b.want(g.name) {
			continue
		}
		if err := g.f(b); err != nil {
			return fmt.Errorf("%s: %w", g.name, err)
		}
		runtime.GC()
	}
	return nil
}

// command is what has started this.
func command(kvm string) string {
	if kvm == onHost {
		return "make bench-kvm"
	}
	return "make bench"
}

// machine describes where the numbers come from.
func machine() string {
	model := "unknown CPU"
	if info, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(info)) {
			if name, v, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
				model = strings.TrimSpace(v)
				break
			}
		}
	}
	kernel, _ := exec.Command("uname", "-r").Output()
	return fmt.Sprintf("%s, %d cores, Linux %s, %s", model, runtime.NumCPU(), strings.TrimSpace(string(kernel)), runtime.Version())
}

// times are the durations of one thing done again and again.
type times []time.Duration

func (t times) at(q float64) time.Duration {
	s := slices.Sorted(slices.Values(t))
	return s[min(int(q*float64(len(s))), len(s)-1)]
}

func (t times) p50() time.Duration { return t.at(0.5) }

func (t times) String() string { return fmt.Sprintf("%s (p99 %s)", short(t.p50()), short(t.at(0.99))) }

func short(d time.Duration) string {
	switch {
	case d < 10*time.Microsecond:
		return fmt.Sprintf("%.2f µs", float64(d)/1e3)
	case d < time.Millisecond:
		return fmt.Sprintf("%.0f µs", float64(d)/1e3)
	case d < time.Second:
		return fmt.Sprintf("%.2f ms", float64(d)/1e6)
	}
	return fmt.Sprintf("%.2f s", d.Seconds())
}

// measure runs f n times, after a tenth as often for warming up.
func measure(n int, f func(i int) error) (times, error) {
	t := make(times, 0, n)
	for i := -n / 10; i < n; i++ {
		start := time.Now()
		if err := f(i); err != nil {
			return nil, err
		}
		if i >= 0 {
			t = append(t, time.Since(start))
		}
	}
	return t, nil
}

// fsyncTime is the floor: one small append and its fdatasync, in the same folder.
func fsyncTime(dir string) (times, error) {
	f, err := os.CreateTemp(dir, "fsync-")
	if err != nil {
		return nil, err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	buf := make([]byte, 512)
	return measure(500, func(int) error {
		if _, err := f.Write(buf); err != nil {
			return err
		}
		return f.Sync()
	})
}

func ratio(a, b time.Duration) float64 { return float64(a) / float64(b) }
