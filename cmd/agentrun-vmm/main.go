// Command agentrun-vmm is a VMM process: package jail starts one for each VM, over a socket. It is of no use otherwise.
package main

import (
	"fmt"
	"os"

	"agentrun.dev/vmm/jail"
)

func main() {
	if err := jail.Serve(nil); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
