package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"agentrun.dev/cmd/agentrun/internal/parts"
	"agentrun.dev/errs"
	"agentrun.dev/vmm"
	"agentrun.dev/vmm/jail"
)

// doctorResult is what doctor prints with --json.
type doctorResult struct {
	MicroVMs bool            `json:"microvms"`
	KVM      []doctorFinding `json:"kvm"`
	Parts    []doctorFinding `json:"parts"` // what is needed besides
}

type doctorFinding struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Needed bool   `json:"needed"`
	Slow   bool   `json:"slow,omitempty"` // it works, but too slowly for a stock kernel
	Text   string `json:"text"`
	Hint   string `json:"hint,omitempty"`
}

func (a *app) doctor() *cobra.Command {
	return &cobra.Command{
		Use: "doctor", Short: "Say what this host can do",
		Long: `Say what this host can do for sandboxes: whether KVM runs microVMs here, what is missing for that and how to get it.
No server is needed. The exit status is 1 when microVMs can't run here. What a server or node that runs says of
itself is in 'agentrun nodes get NAME'.`,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(*cobra.Command, []string) error {
			r := doctorResult{MicroVMs: true}
			for _, f := range append(vmm.Examine(), jail.ExamineGroups(), jail.ExamineUsers(jail.FirstUser, jail.ManyUsers)) {
				r.KVM = append(r.KVM, doctorFinding{Name: f.Name, OK: f.OK, Needed: f.Need, Slow: f.Slow, Text: f.Text, Hint: f.Hint})
				if f.Need && !f.OK || f.Slow {
					r.MicroVMs = false
				}
			}
			for _, f := range examineParts("/") {
				r.Parts = append(r.Parts, f)
				r.MicroVMs = r.MicroVMs && (f.OK || !f.Needed)
			}
			if !r.MicroVMs {
				a.status = exitFailed
			}
			if a.json {
				return a.out.json(r)
			}
			for _, f := range append(r.KVM, r.Parts...) {
				mark := "ok     "
				if !f.OK && f.Needed {
					mark = "MISSING"
				} else if !f.OK {
					mark = "no     "
				} else if f.Slow {
					mark = "SLOW   "
				}
				a.out.printf("%s  %-22s %s\n", mark, f.Name, f.Text)
				if f.Hint != "" {
					a.out.printf("         %-22s %s\n", "", f.Hint)
				}
			}
			if r.MicroVMs {
				a.out.printf("microVMs can run here\n")
			} else {
				a.out.printf("microVMs can't run here; sandboxes of the userspace engine can\n")
			}
			return nil
		},
	}
}

// examineParts looks for what microVMs need besides KVM: programs that agentrun has in it, and a kernel, which 'up' has to be told of.
func examineParts(root string) []doctorFinding {
	programs := doctorFinding{Name: "programs", OK: true, Needed: true, Text: "the agent and the VMM are in this agentrun"}
	for _, name := range []string{parts.Agent, parts.VMM} {
		p, err := parts.Open(name)
		if err != nil {
			programs.OK, programs.Text, programs.Hint = false, err.Error(), errs.HintOf(err)
			break
		}
		_ = p.Close()
	}
	kernel := doctorFinding{Name: "kernel", Text: "none in /boot with modules that can be read",
		Hint: "apt-get install linux-image-cloud-amd64, or any Linux 6.1 or later with virtio, vsock, overlay, erofs and fuse; it needn't be the host's"}
	found, _ := filepath.Glob(filepath.Join(root, "boot", "vmlinuz-*"))
	for _, file := range slices.Backward(found) { // the newest, mostly
		modules := filepath.Join(root, "lib", "modules", strings.TrimPrefix(filepath.Base(file), "vmlinuz-"))
		f, err := os.Open(file)
		if err != nil {
			continue
		}
		_ = f.Close()
		if _, err := os.Stat(modules); err == nil {
			kernel.OK, kernel.Text = true, file
			kernel.Hint = "agentrun up --microvm-kernel " + file + " --microvm-modules " + modules
			break
		}
	}
	return []doctorFinding{programs, kernel}
}
