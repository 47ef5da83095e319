package lineedit

import (
	"slices"
	"strings"
)

// lookup returns what a key is bound to, and whether it begins a longer one.
func (e *Editor) lookup(seq string) (fn string, prefix bool) {
	user, table := e.cfg.Keys, emacsKeys
	if e.cfg.Vi {
		if table = viInsertKeys; !e.vi.insert {
			user, table = e.cfg.ViKeys, viKeys
		}
	}
	if f, ok := user[seq]; ok {
		fn = f
	} else {
		fn = table[seq]
	}
	for k, f := range user {
		if f != "" && len(k) > len(seq) && strings.HasPrefix(k, seq) {
			prefix = true
		}
	}
	if !prefix {
		for k := range table {
			if len(k) > len(seq) && strings.HasPrefix(k, seq) {
				prefix = true
				break
			}
		}
	}
	e.seqKey = seq
	return fn, prefix
}

// Bindings returns the keys that are bound by default in a keymap: emacs, vi-insert or vi-command (vi).
func Bindings(keymap string) map[string]string {
	switch keymap {
	case "vi", "vi-command", "vi-move":
		return viKeys
	case "vi-insert":
		return viInsertKeys
	}
	return emacsKeys
}

// Commands lists the commands that keys can be bound to.
func Commands() []string {
	out := strings.Fields(commandNames)
	slices.Sort(out)
	return out
}

// emacsKeys are readline's.
var emacsKeys = with(arrows, map[string]string{
	"\x00": "set-mark", "\x01": "beginning-of-line", "\x02": "backward-char", "\x04": "delete-char", "\x05": "end-of-line", "\x06": "forward-char", "\x07": "abort",
	"\x08": "backward-delete-char", "\t": "complete", "\n": "accept-line", "\x0b": "kill-line", "\x0c": "clear-screen", "\r": "accept-line", "\x0e": "next-history",
	"\x0f": "operate-and-get-next", "\x10": "previous-history", "\x11": "quoted-insert", "\x12": "reverse-search-history", "\x13": "forward-search-history",
	"\x14": "transpose-chars", "\x15": "unix-line-discard", "\x16": "quoted-insert", "\x17": "unix-word-rubout", "\x19": "yank", "\x1d": "character-search",
	"\x1f": "undo", "\x7f": "backward-delete-char",
	"\x18\x07": "abort", "\x18\x12": "re-read-init-file", "\x18\x15": "undo", "\x18\x16": "display-shell-version", "\x18\x18": "exchange-point-and-mark", "\x18\x05": "edit-and-execute-command",
	"\x18(": "start-kbd-macro", "\x18)": "end-kbd-macro", "\x18e": "call-last-kbd-macro", "\x18\x7f": "backward-kill-line", "\x18/": "possible-filename-completions",
	"\x18!": "possible-command-completions", "\x18$": "possible-variable-completions", "\x18*": "glob-expand-word", "\x18g": "glob-list-expansions", "\x18@": "possible-hostname-completions",
	"\x18~": "possible-username-completions", "\x18s": "spell-correct-word",
	"\x1b\x07": "abort", "\x1b\x08": "backward-kill-word", "\x1b\x7f": "backward-kill-word", "\x1bb": "backward-word", "\x1bf": "forward-word", "\x1bd": "kill-word",
	"\x1bc": "capitalize-word", "\x1bl": "downcase-word", "\x1bu": "upcase-word", "\x1bt": "transpose-words", "\x1by": "yank-pop", "\x1b.": "yank-last-arg", "\x1b_": "yank-last-arg",
	"\x1b\x19": "yank-nth-arg", "\x1b<": "beginning-of-history", "\x1b>": "end-of-history", "\x1bn": "non-incremental-forward-search-history",
	"\x1bp": "non-incremental-reverse-search-history", "\x1b\x0c": "clear-display", "\x1b!": "complete-command", "\x1b/": "complete-filename", "\x1b$": "complete-variable",
	"\x1b~": "complete-username", "\x1b@": "complete-hostname", "\x1b{": "complete-into-braces", "\x1b=": "possible-completions", "\x1b?": "possible-completions", "\x1b*": "insert-completions",
	"\x1b#": "insert-comment", "\x1b\\": "delete-horizontal-space", "\x1b&": "tilde-expand", "\x1br": "revert-line", "\x1b\x12": "revert-line", "\x1b ": "set-mark", "\x1b^": "history-expand-line",
	"\x1b\x05": "shell-expand-line", "\x1b\x02": "shell-backward-word", "\x1b\x06": "shell-forward-word", "\x1b\x04": "shell-kill-word", "\x1b\x14": "shell-transpose-words",
	"\x1b\x1d": "character-search-backward", "\x1b\t": "dynamic-complete-history", "\x1bg": "glob-complete-word", "\x1b\x1b[C": "forward-word", "\x1b\x1b[D": "backward-word",
	"\x1b-": "digit-argument", "\x1b0": "digit-argument", "\x1b1": "digit-argument", "\x1b2": "digit-argument", "\x1b3": "digit-argument", "\x1b4": "digit-argument",
	"\x1b5": "digit-argument", "\x1b6": "digit-argument", "\x1b7": "digit-argument", "\x1b8": "digit-argument", "\x1b9": "digit-argument",
	"\x1b[1~": "beginning-of-line", "\x1b[4~": "end-of-line", "\x1b[5C": "forward-word", "\x1b[5D": "backward-word", "\x1b[2~": "quoted-insert", "\x1b[200~": "bracketed-paste-begin",
})

// arrows are the keys of a terminal that all keymaps have.
var arrows = map[string]string{
	"\x1b[A": "previous-history", "\x1b[B": "next-history", "\x1b[C": "forward-char", "\x1b[D": "backward-char", "\x1bOA": "previous-history", "\x1bOB": "next-history",
	"\x1bOC": "forward-char", "\x1bOD": "backward-char", "\x1b[H": "beginning-of-line", "\x1b[F": "end-of-line", "\x1bOH": "beginning-of-line", "\x1bOF": "end-of-line",
	"\x1b[3~": "delete-char", "\x1b[5~": "history-search-backward", "\x1b[6~": "history-search-forward", "\x1b[1;5C": "forward-word", "\x1b[1;5D": "backward-word",
	"\x1b[1;3C": "forward-word", "\x1b[1;3D": "backward-word", "\x1b[3;5~": "kill-word",
}

var viInsertKeys = with(arrows, map[string]string{
	"\x04": "vi-eof-maybe", "\x08": "backward-delete-char", "\t": "complete", "\n": "accept-line", "\r": "accept-line", "\x0e": "menu-complete", "\x10": "menu-complete-backward",
	"\x12": "reverse-search-history", "\x13": "forward-search-history", "\x14": "transpose-chars", "\x15": "unix-line-discard", "\x16": "quoted-insert", "\x17": "vi-unix-word-rubout",
	"\x19": "yank", "\x1b": "vi-movement-mode", "\x1f": "vi-undo", "\x7f": "backward-delete-char", "\x1b[2~": "overwrite-mode", "\x1b[200~": "bracketed-paste-begin",
})

var viKeys = with(arrows, map[string]string{
	"\x04": "vi-eof-maybe", "\x07": "abort", "\x08": "backward-char", "\x7f": "backward-char", "\n": "accept-line", "\r": "accept-line", "\x0b": "kill-line", "\x0c": "clear-screen", "\x0e": "next-history",
	"\x10": "previous-history", "\x11": "quoted-insert", "\x12": "reverse-search-history", "\x13": "forward-search-history", "\x14": "transpose-chars", "\x15": "unix-line-discard",
	"\x16": "quoted-insert", "\x17": "vi-unix-word-rubout", "\x19": "yank", "\x1f": "vi-undo", " ": "forward-char", "#": "insert-comment", "$": "end-of-line", "%": "vi-match",
	"&": "vi-tilde-expand", "*": "vi-complete", "+": "next-history", ",": "vi-char-search", "-": "previous-history", ".": "vi-redo", "/": "vi-search", "0": "beginning-of-line",
	"1": "vi-arg-digit", "2": "vi-arg-digit", "3": "vi-arg-digit", "4": "vi-arg-digit", "5": "vi-arg-digit", "6": "vi-arg-digit", "7": "vi-arg-digit", "8": "vi-arg-digit", "9": "vi-arg-digit",
	";": "vi-char-search", "=": "vi-complete", "?": "vi-search", "A": "vi-append-eol", "B": "vi-prev-word", "C": "vi-change-to", "D": "vi-delete-to", "E": "vi-end-word", "F": "vi-char-search",
	"G": "vi-fetch-history", "I": "vi-insert-beg", "N": "vi-search-again", "P": "vi-put", "R": "vi-replace", "S": "vi-subst", "T": "vi-char-search", "U": "revert-line", "W": "vi-next-word",
	"X": "vi-rubout", "Y": "vi-yank-to", "\\": "vi-complete", "^": "vi-first-print", "_": "vi-yank-arg", "`": "vi-goto-mark", "a": "vi-append-mode", "b": "vi-prev-word", "c": "vi-change-to",
	"d": "vi-delete-to", "e": "vi-end-word", "f": "vi-char-search", "h": "backward-char", "i": "vi-insertion-mode", "j": "next-history", "k": "previous-history", "l": "forward-char",
	"m": "vi-set-mark", "n": "vi-search-again", "p": "vi-put", "r": "vi-change-char", "s": "vi-subst", "t": "vi-char-search", "u": "vi-undo", "v": "vi-edit-and-execute-command", "w": "vi-next-word",
	"x": "vi-delete", "y": "vi-yank-to", "|": "vi-column", "~": "vi-change-case", "\x1b[2~": "overwrite-mode",
})

func with(a, b map[string]string) map[string]string {
	out := make(map[string]string, len(a)+len(b))
	for k, v := range a {
		out[k] = v
	}
	for k, v := range b {
		out[k] = v
	}
	return out
}

const commandNames = `abort accept-line alias-expand-line arrow-key-prefix backward-byte backward-char backward-delete-char backward-kill-line backward-kill-word
backward-word beginning-of-history beginning-of-line bracketed-paste-begin call-last-kbd-macro capitalize-word character-search
character-search-backward clear-display clear-screen complete complete-command complete-filename complete-hostname complete-into-braces
complete-username complete-variable copy-backward-word copy-forward-word copy-region-as-kill dabbrev-expand delete-char delete-char-or-list
delete-horizontal-space digit-argument display-shell-version do-lowercase-version downcase-word dump-functions dump-macros dump-variables
dynamic-complete-history edit-and-execute-command emacs-editing-mode end-kbd-macro end-of-history end-of-line exchange-point-and-mark fetch-history
forward-backward-delete-char forward-byte forward-char forward-search-history forward-word glob-complete-word glob-expand-word glob-list-expansions
history-and-alias-expand-line history-expand-line history-search-backward history-search-forward history-substring-search-backward
history-substring-search-forward insert-comment insert-completions insert-last-argument kill-line kill-region kill-whole-line kill-word magic-space
menu-complete menu-complete-backward next-history next-screen-line non-incremental-forward-search-history
non-incremental-forward-search-history-again non-incremental-reverse-search-history non-incremental-reverse-search-history-again old-menu-complete
operate-and-get-next overwrite-mode possible-command-completions possible-completions possible-filename-completions possible-hostname-completions
possible-username-completions possible-variable-completions previous-history previous-screen-line print-last-kbd-macro quoted-insert
re-read-init-file redraw-current-line reverse-search-history revert-line self-insert set-mark shell-backward-kill-word shell-backward-word
shell-expand-line shell-forward-word shell-kill-word shell-transpose-words skip-csi-sequence spell-correct-word start-kbd-macro tab-insert
tilde-expand transpose-chars transpose-words tty-status undo universal-argument unix-filename-rubout unix-line-discard unix-word-rubout upcase-word
vi-append-eol vi-append-mode vi-arg-digit vi-bWord vi-back-to-indent vi-backward-bigword vi-backward-word vi-bword vi-change-case vi-change-char
vi-change-to vi-char-search vi-column vi-complete vi-delete vi-delete-to vi-eWord vi-edit-and-execute-command vi-editing-mode vi-end-bigword
vi-end-word vi-eof-maybe vi-eword vi-fWord vi-fetch-history vi-first-print vi-forward-bigword vi-forward-word vi-fword vi-goto-mark vi-insert-beg
vi-insertion-mode vi-match vi-movement-mode vi-next-word vi-overstrike vi-overstrike-delete vi-prev-word vi-put vi-redo vi-replace vi-rubout
vi-search vi-search-again vi-set-mark vi-subst vi-tilde-expand vi-undo vi-unix-word-rubout vi-yank-arg vi-yank-pop vi-yank-to yank yank-last-arg
yank-nth-arg yank-pop`
