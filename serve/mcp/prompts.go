package mcp

import (
	"context"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// instructions are what a model is told before it sees any tool.
func instructions(v *conversation) string {
	own := `This conversation has a sandbox of its own: a Unix machine, apart from the user's computer and from all others. It is made when a tool first needs
it. Tools that are given no 'sandbox' work on it.`
	switch {
	case v.o.Base.Sandbox != "":
		own = "Tools that are given no 'sandbox' work on the sandbox '" + v.o.Base.Sandbox + "', which lives on after this conversation."
	case v.stateless:
		own = "This connection keeps no session: call create_sandbox first, and give the id that it returns as 'sandbox' to every other tool."
	case v.o.Base.Fork != "":
		own += " It is a fork of '" + v.o.Base.Fork + "': merge_sandbox brings what is good back there."
	}
	return own + `

- exec runs shell commands, run_code runs Python and JavaScript with state that stays, as a notebook does.
- read_file, write_file, edit_file, list_files, search_files and find_files work on files; relative paths begin at /workspace.
- The user's own files aren't in the sandbox: write what is needed into it, or download it where the network is open.
- Something risky, or several ways to try: fork_sandbox copies a sandbox with all that runs in it within milliseconds. Work on the copies by their
  ids, compare with diff_sandboxes, bring the best back with merge_sandbox, terminate_sandbox the others.
- snapshot_sandbox keeps files for later; hibernate_sandbox frees memory and loses nothing.
- An answer that was cut says how to get the rest. An answer that begins with "Denied" is a permission: don't try again, ask the user.`
}

// addPrompts adds what users pick from a menu.
func addPrompts(s *mcp.Server) {
	s.AddPrompt(&mcp.Prompt{Name: "try_variants", Title: "Try several ways at once",
		Description: "Solve a task in several forks of the sandbox, compare the results and keep the best.",
		Arguments: []*mcp.PromptArgument{
			{Name: "task", Description: "what is to be done", Required: true},
			{Name: "count", Description: "how many ways to try (default 3)"},
		}}, func(_ context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		a := req.Params.Arguments
		return prompt("Try several ways at once", fmt.Sprintf(`Task: %s

Solve it in %s different ways, side by side:
1. Prepare this conversation's sandbox with whatever all ways need.
2. Make one fork of it for each way with fork_sandbox.
3. Work out each way in its own fork (give its id as 'sandbox'), and test it there.
4. Compare the results with diff_sandboxes and by what the tests say, and tell me which is best and why.
5. Bring the best back with merge_sandbox and end the other forks with terminate_sandbox.`, a["task"], orElseText(a["count"], "3"))), nil
	})
	s.AddPrompt(&mcp.Prompt{Name: "review_changes", Title: "Review what changed",
		Description: "Say what changed in the sandbox since it was made or forked.",
		Arguments:   []*mcp.PromptArgument{{Name: "sandbox", Description: "id or name (default this conversation's own)"}}},
		func(_ context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			which := "this conversation's sandbox"
			if id := req.Params.Arguments["sandbox"]; id != "" {
				which = "sandbox " + id
			}
			return prompt("Review what changed", "List what changed in "+which+
				" since it was made or forked with diff_sandboxes, read the files that matter, and sum up what was done, what is risky and what is missing."), nil
		})
}

func prompt(about, text string) *mcp.GetPromptResult {
	return &mcp.GetPromptResult{Description: about, Messages: []*mcp.PromptMessage{{Role: "user", Content: &mcp.TextContent{Text: text}}}}
}
