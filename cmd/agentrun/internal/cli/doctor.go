package cli

import (
	"github.com/spf13/cobra"

	"agentrun.dev/vmm"
)

// doctorResult is what doctor prints with --json.
type doctorResult struct {
	MicroVMs bool            `json:"microvms"`
	KVM      []doctorFinding `json:"kvm"`
}

type doctorFinding struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Needed bool   `json:"needed"`
	Text   string `json:"text"`
	Hint   string `json:"hint,omitempty"`
}

func (a *app) doctor() *cobra.Command {
	return &cobra.Command{
		Use: "doctor", Short: "Say what this host can do",
		Long: `Say what this host can do for sandboxes: whether KVM runs microVMs here, what is missing for that and how to get it.
No server is needed. The exit status is 1 when microVMs can't run here.`,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(*cobra.Command, []string) error {
			r := doctorResult{MicroVMs: true}
			for _, f := range vmm.Examine() {
				r.KVM = append(r.KVM, doctorFinding{Name: f.Name, OK: f.OK, Needed: f.Need, Text: f.Text, Hint: f.Hint})
				if f.Need && !f.OK {
					r.MicroVMs = false
				}
			}
			if !r.MicroVMs {
				a.status = exitFailed
			}
			if a.json {
				return a.out.json(r)
			}
			for _, f := range r.KVM {
				mark := "ok     "
				if !f.OK && f.Needed {
					mark = "MISSING"
				} else if !f.OK {
					mark = "no     "
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
