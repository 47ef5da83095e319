package coreutils

import (
	"bytes"
	"slices"
	"strings"

	"agentrun.dev/command/tool"
)

var tsortSpec = tool.Spec{
	Usage:   []string{"[OPTION] [FILE]"},
	About:   "Write totally ordered list consistent with the partial ordering in FILE.\n\nWith no FILE, or when FILE is -, read standard input.",
	Package: tool.Coreutils,
}

// tsortNode is a word of the input: how many must come before it, and who comes after, the newest first.
type tsortNode struct {
	word  string
	count int
	after []*tsortNode
	done  bool
	from  *tsortNode // in the search for a loop
}

// Tsort sorts topologically. The words are held in memory, at most MaxHeld bytes.
func Tsort(t *tool.T) int {
	_, files := t.Parse(&tsortSpec)
	if len(files) > 1 {
		t.Extra(1, files[1])
	}
	name := names(files)[0]
	b, err := t.ReadFile(name, MaxHeld)
	if err != nil {
		t.WarnFile(name, err)
		return 1
	}
	words := bytes.FieldsFunc(b, func(r rune) bool { return r == ' ' || r == '\t' || r == '\n' })
	if len(words)%2 != 0 {
		t.Fatal(1, "%s: input contains an odd number of tokens", tool.QuoteF(name))
	}
	byWord := map[string]*tsortNode{}
	var nodes []*tsortNode
	node := func(w []byte) *tsortNode {
		n := byWord[string(w)]
		if n == nil {
			n = &tsortNode{word: string(w)}
			byWord[n.word] = n
			nodes = append(nodes, n)
		}
		return n
	}
	for i := 0; i < len(words); i += 2 {
		a, b := node(words[i]), node(words[i+1])
		if a != b {
			a.after = append(a.after, b)
			b.count++
		}
	}
	sortNodes(nodes)
	return tsortWrite(t, name, nodes)
}

// sortNodes orders by the words' bytes, in which order GNU's tree of words is walked.
func sortNodes(nodes []*tsortNode) {
	slices.SortFunc(nodes, func(a, b *tsortNode) int { return strings.Compare(a.word, b.word) })
}

func tsortWrite(t *tool.T, name string, nodes []*tsortNode) int {
	left, failed := len(nodes), false
	var queue []*tsortNode
	for left > 0 {
		queue = queue[:0]
		for _, n := range nodes {
			if n.count == 0 && !n.done {
				queue = append(queue, n)
			}
		}
		for i := 0; i < len(queue); i++ {
			n := queue[i]
			t.Out.WriteString(n.word + "\n")
			n.done = true
			left--
			for j := len(n.after) - 1; j >= 0; j-- {
				if m := n.after[j]; !m.done {
					if m.count--; m.count == 0 {
						queue = append(queue, m)
					}
				}
			}
		}
		if left > 0 {
			t.Warn("%s: input contains a loop:", tool.QuoteF(name))
			failed = true
			tsortBreak(t, nodes)
		}
	}
	return status(failed)
}

// tsortBreak finds a loop by walking backwards, as GNU does, reports it and takes away one of its relations.
func tsortBreak(t *tool.T, nodes []*tsortNode) {
	var loop *tsortNode
	for {
		for _, k := range nodes {
			if k.count == 0 || k.done {
				continue
			}
			if loop == nil {
				loop = k
				continue
			}
			for p := len(k.after) - 1; p >= 0; p-- {
				if k.after[p] != loop {
					continue
				}
				if k.from == nil {
					k.from, loop = loop, k
					break
				}
				for loop != nil { // back at k: this is the loop
					next := loop.from
					t.Warn("%s", loop.word)
					if loop == k {
						k.after[p].count--
						k.after = append(k.after[:p], k.after[p+1:]...)
						break
					}
					loop.from, loop = nil, next
				}
				for loop != nil {
					next := loop.from
					loop.from, loop = nil, next
				}
				return
			}
		}
	}
}
