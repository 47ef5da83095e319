package shell

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"syscall"

	"agentrun.dev/proc"
)

// ulimitKind is a limit that ulimit knows.
type ulimitKind struct {
	letter   byte
	resource int // -1: the size of pipes, which nobody changes
	unit     uint64
	what     string
	unitName string // "" for numbers
}

// ulimitKinds are in the order of ulimit -a.
var ulimitKinds = [...]ulimitKind{
	{'R', 15, 1, "real-time non-blocking time", "microseconds"},
	{'c', proc.LimitCore, 1024, "core file size", "blocks"},
	{'d', proc.LimitData, 1024, "data seg size", "kbytes"},
	{'e', 13, 1, "scheduling priority", ""},
	{'f', proc.LimitFsize, 1024, "file size", "blocks"},
	{'i', 11, 1, "pending signals", ""},
	{'l', 8, 1024, "max locked memory", "kbytes"},
	{'m', proc.LimitRSS, 1024, "max memory size", "kbytes"},
	{'n', proc.LimitNofile, 1, "open files", ""},
	{'p', -1, 512, "pipe size", "512 bytes"},
	{'q', 12, 1, "POSIX message queues", "bytes"},
	{'r', 14, 1, "real-time priority", ""},
	{'s', proc.LimitStack, 1024, "stack size", "kbytes"},
	{'t', proc.LimitCPU, 1, "cpu time", "seconds"},
	{'u', proc.LimitNproc, 1, "max user processes", ""},
	{'v', proc.LimitAS, 1024, "virtual memory", "kbytes"},
	{'x', 10, 1, "file locks", ""},
}

// pipeSize is what ulimit -p shows, in bytes.
const pipeSize = 4096

const ulimitUsage = "ulimit [-SHabcdefiklmnpqrstuvxPRT] [limit]"

func findUlimit(letter byte) *ulimitKind {
	for i := range ulimitKinds {
		if ulimitKinds[i].letter == letter {
			return &ulimitKinds[i]
		}
	}
	return nil
}

// ulimitJob is one limit to be shown, or set to what a word says.
type ulimitJob struct {
	kind *ulimitKind
	word string
	set  bool
}

func builtinUlimit(sh *Shell, args []string) int {
	args = args[1:]
	soft, hard, all := false, false, false
	var jobs []ulimitJob
	for len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' {
		word := args[0]
		args = args[1:]
		if word == "--" {
			break
		}
	letters:
		for i := 1; i < len(word); i++ {
			switch c := word[i]; c {
			case 'S':
				soft = true
			case 'H':
				hard = true
			case 'a':
				all = true
			default:
				k := findUlimit(c)
				if k == nil {
					return sh.badOption("ulimit", "-"+string(c), ulimitUsage)
				}
				job := ulimitJob{kind: k}
				switch { // what follows a limit's letter is its value
				case i+1 < len(word):
					job.word, job.set = word[i+1:], true
				case len(args) > 0 && !strings.HasPrefix(args[0], "-"):
					job.word, job.set, args = args[0], true, args[1:]
				}
				jobs = append(jobs, job)
				break letters
			}
		}
	}
	if all {
		for i := range ulimitKinds {
			sh.showUlimit(&ulimitKinds[i], hard && !soft, true)
		}
		return 0
	}
	if len(jobs) == 0 {
		job := ulimitJob{kind: findUlimit('f')}
		if len(args) > 0 {
			job.word, job.set = args[0], true
		}
		jobs = append(jobs, job)
	}
	if !soft && !hard {
		soft = true
		for _, j := range jobs {
			hard = hard || j.set
		}
	}
	for _, j := range jobs {
		if !j.set {
			sh.showUlimit(j.kind, hard && !soft, len(jobs) > 1)
		} else if !sh.setUlimit(j.kind, j.word, soft, hard) {
			return 1
		}
	}
	return 0
}

// blocks is what a limit counts in.
func (sh *Shell) blocks(k *ulimitKind) uint64 {
	if sh.opts.posix && k.unitName == "blocks" {
		return 512
	}
	return k.unit
}

func (sh *Shell) showUlimit(k *ulimitKind, hard, named bool) {
	n := uint64(pipeSize)
	if k.resource >= 0 {
		l, _ := sh.p.Rlimit(k.resource)
		if n = l.Soft; hard {
			n = l.Hard
		}
	}
	if named {
		unit := fmt.Sprintf("(-%c) ", k.letter)
		if k.unitName != "" {
			unit = fmt.Sprintf("(%s, -%c) ", k.unitName, k.letter)
		}
		sh.printf("%-20s %20s", k.what, unit)
	}
	if n == proc.Unlimited {
		sh.print("unlimited\n")
		return
	}
	sh.printf("%d\n", n/sh.blocks(k))
}

func (sh *Shell) setUlimit(k *ulimitKind, word string, soft, hard bool) bool {
	l := proc.Rlimit{}
	if k.resource >= 0 {
		l, _ = sh.p.Rlimit(k.resource)
	}
	var n uint64
	switch word {
	case "hard":
		n = l.Hard
	case "soft":
		n = l.Soft
	case "unlimited":
		n = proc.Unlimited
	default:
		if word == "" || strings.Trim(word, "0123456789") != "" {
			sh.errorf("ulimit: %s: invalid number", word)
			return false
		}
		v, err := strconv.ParseUint(word, 10, 64)
		if err != nil || v > math.MaxInt64/sh.blocks(k) {
			sh.errorf("ulimit: %s: limit out of range", word)
			return false
		}
		n = v * sh.blocks(k)
	}
	if soft {
		l.Soft = n
	}
	if hard {
		l.Hard = n
	}
	err := error(syscall.EINVAL)
	if k.resource >= 0 {
		err = sh.p.SetRlimit(k.resource, l)
	}
	if err != nil {
		sh.errorf("ulimit: %s: cannot modify limit: %s", k.what, strerror(err))
		return false
	}
	return true
}
