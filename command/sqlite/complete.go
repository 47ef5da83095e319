package sqlite

import "strings"

// scanner decides where a statement ends, as sqlite3_complete does: at a semicolon, which in a trigger must follow END.
// It is fed pieces that end with lines.
type scanner struct {
	state scanState
	in    byte // what an open comment or string ends with: '*', '\'', '"', '`', ']'; 0 outside
	some  bool // there was anything but blanks and comments
	star  bool // in a comment, after a star
}

type scanState uint8

// The states of sqlite3_complete.
const (
	scanInvalid scanState = iota // nothing yet
	scanStart                    // after a whole statement
	scanNormal
	scanExplain
	scanCreate
	scanTrigger
	scanSemi // in a trigger, after a semicolon
	scanEnd  // in a trigger, after ";END"
)

type scanToken uint8

const (
	tokenSemi scanToken = iota
	tokenSpace
	tokenOther
	tokenExplain
	tokenCreate
	tokenTemp
	tokenTrigger
	tokenEnd
)

var scanTable = [8][8]scanState{
	//              SEMI        SPACE        OTHER        EXPLAIN      CREATE       TEMP         TRIGGER      END
	scanInvalid: {scanStart, scanInvalid, scanNormal, scanExplain, scanCreate, scanNormal, scanNormal, scanNormal},
	scanStart:   {scanStart, scanStart, scanNormal, scanExplain, scanCreate, scanNormal, scanNormal, scanNormal},
	scanNormal:  {scanStart, scanNormal, scanNormal, scanNormal, scanNormal, scanNormal, scanNormal, scanNormal},
	scanExplain: {scanStart, scanExplain, scanExplain, scanNormal, scanCreate, scanNormal, scanNormal, scanNormal},
	scanCreate:  {scanStart, scanCreate, scanNormal, scanNormal, scanNormal, scanCreate, scanTrigger, scanNormal},
	scanTrigger: {scanSemi, scanTrigger, scanTrigger, scanTrigger, scanTrigger, scanTrigger, scanTrigger, scanTrigger},
	scanSemi:    {scanSemi, scanSemi, scanTrigger, scanTrigger, scanTrigger, scanTrigger, scanTrigger, scanEnd},
	scanEnd:     {scanStart, scanEnd, scanTrigger, scanTrigger, scanTrigger, scanTrigger, scanTrigger, scanTrigger},
}

var scanWords = map[string]scanToken{"create": tokenCreate, "temp": tokenTemp, "temporary": tokenTemp, "trigger": tokenTrigger,
	"end": tokenEnd, "explain": tokenExplain}

func (sc *scanner) token(k scanToken) {
	sc.state = scanTable[sc.state][k]
	if k != tokenSpace {
		sc.some = true
	}
}

// feed goes on with more text.
func (sc *scanner) feed(s string) {
	for i := 0; i < len(s); {
		i = sc.step(s, i)
	}
}

// step takes one token, or a piece of an open string or comment, and returns where the next begins.
func (sc *scanner) step(s string, i int) int {
	c := s[i]
	switch {
	case sc.in == '*':
		if sc.star && c == '/' {
			sc.in = 0
			sc.state = scanTable[sc.state][tokenSpace]
		}
		sc.star = c == '*'
		return i + 1
	case sc.in != 0:
		if c == sc.in {
			sc.in = 0
			sc.token(tokenOther)
		}
		return i + 1
	case c == ';':
		sc.token(tokenSemi)
	case c == ' ' || c >= '\t' && c <= '\r':
		sc.token(tokenSpace)
	case c == '/' && i+1 < len(s) && s[i+1] == '*':
		sc.in, sc.star = '*', false
		return i + 2
	case c == '-' && i+1 < len(s) && s[i+1] == '-':
		for i < len(s) && s[i] != '\n' {
			i++
		}
		return i
	case c == '\'' || c == '"' || c == '`':
		sc.in = c
	case c == '[':
		sc.in = ']'
	case wordByte(c):
		start := i
		for i < len(s) && wordByte(s[i]) {
			i++
		}
		k, ok := scanWords[strings.ToLower(s[start:i])]
		if !ok {
			k = tokenOther
		}
		sc.token(k)
		return i
	default:
		sc.token(tokenOther)
	}
	return i + 1
}

func wordByte(c byte) bool {
	return c == '_' || c == '$' || c >= 0x80 || c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z'
}

// done reports whether the text so far is whole.
func (sc *scanner) done() bool { return sc.in == 0 && sc.state == scanStart }

// empty reports whether there is nothing but blanks and comments so far.
func (sc *scanner) empty() bool { return sc.in == 0 && !sc.some }
