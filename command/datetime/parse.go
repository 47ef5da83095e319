package datetime

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"time"
)

// ErrDate says that a text isn't a date.
var ErrDate = errors.New("invalid date")

// token is a word, a number or a sign of a date.
type token struct {
	kind   byte // 'w' word, 'n' number, or the character itself
	word   string
	num    int64
	digits int
	frac   int64 // nanoseconds after a decimal point
	hasDot bool
	space  bool // preceded by a blank
}

// maxText bounds a date's text.
const maxText = 1024

// Parse reads a date as date -d does: calendar dates, times, zones, days of the week, relative items, @seconds. What isn't
// said is taken from now, in now's location.
func Parse(s string, now time.Time, location func(tz string) *time.Location) (time.Time, error) {
	if len(s) > maxText {
		return time.Time{}, ErrDate
	}
	s = strings.TrimLeft(s, " \t\n")
	if strings.HasPrefix(s, `TZ="`) {
		tz, rest, ok := strings.Cut(s[4:], `"`)
		if !ok {
			return time.Time{}, ErrDate
		}
		if location != nil {
			now = now.In(location(tz))
		}
		s = strings.TrimLeft(rest, " \t\n")
	}
	if strings.TrimSpace(s) == "" {
		y, m, d := now.Date()
		return time.Date(y, m, d, 0, 0, 0, 0, now.Location()), nil
	}
	tokens, err := scan(s)
	if err != nil {
		return time.Time{}, err
	}
	if len(tokens) > 1 && tokens[0].kind == '@' {
		return epoch(tokens[1:], now)
	}
	p := dateParser{t: tokens, now: now}
	if err := p.items(); err != nil {
		return time.Time{}, err
	}
	return p.result()
}

// epoch reads @[-]seconds[.fraction].
func epoch(t []token, now time.Time) (time.Time, error) {
	neg := false
	if t[0].kind == '-' || t[0].kind == '+' {
		neg = t[0].kind == '-'
		t = t[1:]
	}
	if len(t) != 1 || t[0].kind != 'n' || t[0].num > math.MaxInt64/4 {
		return time.Time{}, ErrDate
	}
	if neg {
		return time.Unix(-t[0].num, -t[0].frac).In(now.Location()), nil
	}
	return time.Unix(t[0].num, t[0].frac).In(now.Location()), nil
}

func scan(s string) ([]token, error) {
	var out []token
	space := false
	for i := 0; i < len(s); {
		c := s[i]
		start := i
		switch {
		case c == ' ' || c == '\t' || c == '\n' || c == '\r':
			space = true
			i++
			continue
		case c == '(': // a comment
			depth := 0
			for ; i < len(s); i++ {
				if s[i] == '(' {
					depth++
				} else if s[i] == ')' {
					if depth--; depth == 0 {
						i++
						break
					}
				}
			}
			continue
		case c >= '0' && c <= '9':
			t := token{kind: 'n', space: space}
			for i < len(s) && s[i] >= '0' && s[i] <= '9' {
				i++
			}
			n, err := strconv.ParseInt(s[start:i], 10, 64)
			if err != nil {
				return nil, ErrDate
			}
			t.num, t.digits = n, i-start
			if i+1 < len(s) && (s[i] == '.' || s[i] == ',') && s[i+1] >= '0' && s[i+1] <= '9' {
				t.hasDot = true
				i++
				unit := int64(1e8)
				for ; i < len(s) && s[i] >= '0' && s[i] <= '9'; i++ {
					t.frac += int64(s[i]-'0') * unit
					unit /= 10
				}
			}
			out = append(out, t)
		case c|0x20 >= 'a' && c|0x20 <= 'z':
			for i < len(s) && (s[i]|0x20 >= 'a' && s[i]|0x20 <= 'z' || s[i] == '.') {
				i++
			}
			out = append(out, token{kind: 'w', word: strings.ToLower(strings.ReplaceAll(s[start:i], ".", "")), space: space})
		default:
			out = append(out, token{kind: c, space: space})
			i++
		}
		space = false
	}
	return out, nil
}

// dateParser collects what the items say.
type dateParser struct {
	t   []token
	now time.Time

	year, month, day     int
	hour, minute, second int
	nano                 int64
	dates, times, zones  int
	days, yearDigits     int
	weekday, ordinal     int
	offset               int // of the zone, seconds
	rel                  relative
	relSeen              bool
}

type relative struct {
	years, months, days, seconds int64
	nanos                        int64
}

func (p *dateParser) peek(i int) token {
	if i < len(p.t) {
		return p.t[i]
	}
	return token{}
}

func (p *dateParser) items() error {
	for len(p.t) > 0 {
		before := len(p.t)
		var ok bool
		switch p.t[0].kind {
		case 'n':
			ok = p.numeric()
		case 'w':
			ok = p.word()
		case '+', '-':
			ok = p.signed()
		case ',':
			p.t = p.t[1:]
			ok = true
		}
		if !ok || len(p.t) >= before {
			return ErrDate
		}
	}
	if p.dates > 1 || p.times > 1 || p.zones > 1 || p.days > 1 {
		return ErrDate
	}
	return nil
}

// numeric reads an item that begins with a number.
func (p *dateParser) numeric() bool {
	n, next := p.t[0], p.peek(1)
	switch {
	case next.kind == ':' && p.peek(2).kind == 'n':
		return p.clock()
	case next.kind == '/' && p.peek(2).kind == 'n':
		return p.slashed()
	case next.kind == '-' && p.peek(2).kind == 'n' && p.peek(3).kind == '-' && p.peek(4).kind == 'n' && !next.space:
		return p.setDate(int(n.num), n.digits, int(p.t[2].num), int(p.t[4].num), 5)
	case next.kind == '-' && p.peek(2).kind == 'w' && monthOf(p.peek(2).word) > 0:
		if p.peek(3).kind != '-' || p.peek(4).kind != 'n' {
			return false
		}
		return p.setDate(int(p.t[4].num), p.t[4].digits, monthOf(p.t[2].word), int(n.num), 5)
	case next.kind == 'w':
		w := next.word
		if m := monthOf(w); m > 0 && !n.hasDot {
			if y := p.peek(2); y.kind == 'n' && p.peek(3).kind != ':' && !isMeridian(p.peek(3).word) {
				return p.setDate(int(y.num), y.digits, m, int(n.num), 3)
			}
			return p.setDate(p.now.Year(), 4, m, int(n.num), 2)
		}
		if isMeridian(w) {
			return p.setTime(n.num, 0, 0, 0, w, 2)
		}
		if d := weekdayOf(w); d >= 0 {
			p.weekday, p.ordinal = d, int(n.num)
			p.days++
			p.t = p.t[2:]
			return true
		}
		if unit(w) != 0 {
			return p.relative(1)
		}
	}
	return p.pure(n)
}

// pure reads a bare number: a year after a date, a date of eight digits, else a time.
func (p *dateParser) pure(n token) bool {
	if n.hasDot {
		return false
	}
	switch {
	case p.dates > 0 && p.yearDigits == 0 && p.times == 0 && n.digits <= 4 && n.digits != 2:
		return false
	case p.dates > 0 && p.times > 0 && !p.relSeen && p.yearDigits == -1:
		p.year, p.yearDigits = fixYear(int(n.num), n.digits), n.digits
		p.t = p.t[1:]
		return true
	case n.digits > 4:
		return p.compact(n)
	case n.digits <= 2:
		return p.setTime(n.num, 0, 0, 0, "", 1)
	}
	return p.setTime(n.num/100, n.num%100, 0, 0, "", 1)
}

func (p *dateParser) compact(n token) bool {
	if n.digits < 5 {
		return false
	}
	y := int(n.num / 10000)
	if n.digits <= 6 {
		y = fixYear(y, n.digits-4)
	}
	return p.setDate(y, 4, int(n.num/100%100), int(n.num%100), 1)
}

// slashed reads month/day[/year], or year/month/day when the first number is long.
func (p *dateParser) slashed() bool {
	a, b := p.t[0], p.t[2]
	if p.peek(3).kind == '/' && p.peek(4).kind == 'n' {
		c := p.t[4]
		if a.digits >= 4 {
			return p.setDate(int(a.num), a.digits, int(b.num), int(c.num), 5)
		}
		return p.setDate(int(c.num), c.digits, int(a.num), int(b.num), 5)
	}
	return p.setDate(p.now.Year(), 4, int(a.num), int(b.num), 3)
}

func fixYear(y, digits int) int {
	if digits <= 2 {
		if y < 69 {
			return y + 2000
		}
		return y + 1900
	}
	return y
}

func (p *dateParser) setDate(y, digits, m, d, used int) bool {
	y = fixYear(y, digits)
	if m < 1 || m > 12 || d < 1 || d > 31 || y > 1<<30 {
		return false
	}
	p.year, p.month, p.day, p.yearDigits = y, m, d, digits
	p.dates++
	p.t = p.t[used:]
	if used > 1 && len(p.t) > 1 && p.t[0].word == "t" && p.t[1].kind == 'n' { // the T of ISO 8601
		p.t = p.t[1:]
	}
	return true
}

// clock reads hour:minute[:second][ am|pm][zone].
func (p *dateParser) clock() bool {
	h, m := p.t[0], p.t[2]
	if h.hasDot {
		return false
	}
	used := 3
	var s token
	if p.peek(3).kind == ':' && p.peek(4).kind == 'n' {
		s, used = p.t[4], 5
	} else if m.hasDot {
		return false
	}
	meridian := ""
	if w := p.peek(used).word; isMeridian(w) {
		meridian = w
		used++
	}
	return p.setTime(h.num, m.num, s.num, s.frac, meridian, used)
}

func (p *dateParser) setTime(h, m, s, frac int64, meridian string, used int) bool {
	if meridian != "" {
		if h < 1 || h > 12 {
			return false
		}
		h %= 12
		if meridian[0] == 'p' {
			h += 12
		}
	}
	if h > 23 || m > 59 || s > 59 {
		return false
	}
	p.hour, p.minute, p.second, p.nano = int(h), int(m), int(s), frac
	p.times++
	p.t = p.t[used:]
	if meridian == "" {
		return p.zoneAfterTime()
	}
	return true
}

// zoneAfterTime reads a numeric zone right after a time: +hh, +hhmm, +hh:mm.
func (p *dateParser) zoneAfterTime() bool {
	if k := p.peek(0).kind; k != '+' && k != '-' || p.peek(1).kind != 'n' || p.peek(1).hasDot {
		return true
	}
	return p.numericZone()
}

func (p *dateParser) numericZone() bool {
	sign := 1
	if p.t[0].kind == '-' {
		sign = -1
	}
	n := p.t[1]
	off := 0
	used := 2
	switch {
	case p.peek(2).kind == ':' && p.peek(3).kind == 'n':
		off = int(n.num)*3600 + int(p.t[3].num)*60
		used = 4
	case n.digits <= 2:
		off = int(n.num) * 3600
	default:
		off = int(n.num/100)*3600 + int(n.num%100)*60
	}
	if off > 24*3600 {
		return false
	}
	p.offset = sign * off
	p.zones++
	p.t = p.t[used:]
	return true
}

// signed reads +N unit or -N unit, or a zone's correction.
func (p *dateParser) signed() bool {
	sign := int64(1)
	for len(p.t) > 0 && (p.t[0].kind == '+' || p.t[0].kind == '-') {
		if p.t[0].kind == '-' {
			sign = -sign
		}
		p.t = p.t[1:]
	}
	if p.peek(0).kind != 'n' {
		return false
	}
	if unit(p.peek(1).word) == 0 {
		return false
	}
	return p.relative(sign)
}

// relative reads N unit [ago].
func (p *dateParser) relative(sign int64) bool {
	n, u := p.t[0], unit(p.t[1].word)
	used := 2
	if p.peek(2).word == "ago" {
		sign = -sign
		used = 3
	}
	if n.hasDot && u != 's' || n.num > math.MaxInt32*100 {
		return false
	}
	p.add(u, sign*n.num)
	p.rel.nanos += sign * n.frac
	p.t = p.t[used:]
	return true
}

func (p *dateParser) add(u byte, n int64) {
	p.relSeen = true
	switch u {
	case 'y':
		p.rel.years += n
	case 'm':
		p.rel.months += n
	case 'f':
		p.rel.days += 14 * n
	case 'w':
		p.rel.days += 7 * n
	case 'd':
		p.rel.days += n
	case 'h':
		p.rel.seconds += 3600 * n
	case 'i':
		p.rel.seconds += 60 * n
	case 's':
		p.rel.seconds += n
	}
}

// word reads an item that begins with a word.
func (p *dateParser) word() bool {
	w := p.t[0].word
	next := p.peek(1)
	if m := monthOf(w); m > 0 {
		return p.monthFirst(m)
	}
	if d := weekdayOf(w); d >= 0 {
		p.weekday, p.ordinal = d, 0
		p.days++
		p.t = p.t[1:]
		return true
	}
	if n, ok := ordinals[w]; ok && next.kind == 'w' {
		return p.ordinalItem(n)
	}
	if off, ok := zones[w]; ok || len(w) == 1 && w != "j" {
		if !ok {
			off = military(w[0])
		}
		return p.namedZone(off)
	}
	switch w {
	case "now", "today":
		p.relSeen = true
	case "yesterday":
		p.add('d', -1)
	case "tomorrow":
		p.add('d', 1)
	default:
		u := unit(w)
		if u == 0 {
			return false
		}
		n := int64(1)
		if next.word == "ago" {
			n = -1
			p.t = p.t[1:]
		}
		p.add(u, n)
	}
	p.t = p.t[1:]
	return true
}

// monthFirst reads Mon DD[, YYYY], or Mon-DD-YYYY.
func (p *dateParser) monthFirst(m int) bool {
	d := p.peek(1)
	if d.kind == '-' && p.peek(2).kind == 'n' && p.peek(3).kind == '-' && p.peek(4).kind == 'n' {
		return p.setDate(int(p.t[4].num), p.t[4].digits, m, int(p.t[2].num), 5)
	}
	if d.kind != 'n' {
		return false
	}
	if p.peek(2).kind == ',' && p.peek(3).kind == 'n' {
		return p.setDate(int(p.t[3].num), p.t[3].digits, m, int(d.num), 4)
	}
	if y := p.peek(2); y.kind == 'n' && y.digits >= 4 && p.peek(3).kind != ':' {
		return p.setDate(int(y.num), y.digits, m, int(d.num), 3)
	}
	ok := p.setDate(p.now.Year(), 4, m, int(d.num), 2)
	p.yearDigits = -1 // a year may follow the time: Jan 2 03:04:05 2024
	return ok
}

func (p *dateParser) ordinalItem(n int64) bool {
	w := p.t[1].word
	used := 2
	if d := weekdayOf(w); d >= 0 {
		p.weekday, p.ordinal = d, int(n)
		p.days++
	} else if u := unit(w); u != 0 {
		if p.peek(2).word == "ago" {
			n, used = -n, 3
		}
		p.add(u, n)
	} else {
		return false
	}
	p.t = p.t[used:]
	return true
}

func (p *dateParser) namedZone(off int) bool {
	p.t = p.t[1:]
	if k := p.peek(0).kind; (k == '+' || k == '-') && p.peek(1).kind == 'n' && unit(p.peek(2).word) == 0 {
		if !p.numericZone() {
			return false
		}
		p.offset += off
		return true
	}
	if p.peek(0).word == "dst" {
		off += 3600
		p.t = p.t[1:]
	}
	p.offset = off
	p.zones++
	return true
}

func (p *dateParser) result() (time.Time, error) {
	loc := p.now.Location()
	y, mo, d := p.now.Date()
	if p.dates > 0 {
		y, mo, d = p.year, time.Month(p.month), p.day
		if first := time.Date(y, mo, d, 0, 0, 0, 0, time.UTC); first.Day() != d {
			return time.Time{}, ErrDate // such as February 30
		}
	}
	h, mi, s, ns := p.now.Hour(), p.now.Minute(), p.now.Second(), int64(p.now.Nanosecond())
	if p.times > 0 {
		h, mi, s, ns = p.hour, p.minute, p.second, p.nano
	} else if p.dates > 0 || p.days > 0 && !p.relSeen || p.days > 0 {
		h, mi, s, ns = 0, 0, 0, 0
	}
	if abs(p.rel.years) > 1<<30 || abs(p.rel.months) > 1<<33 || abs(p.rel.days) > 1<<38 || abs(p.rel.seconds) > 1<<55 {
		return time.Time{}, ErrDate
	}
	if p.zones > 0 {
		loc = time.FixedZone("", p.offset)
		if p.dates == 0 {
			y, mo, d = p.now.In(loc).Date()
		}
	}
	days := p.rel.days
	if p.days > 0 && p.dates == 0 {
		t := time.Date(y, mo, d, 0, 0, 0, 0, time.UTC)
		ahead := (p.weekday - int(t.Weekday()) + 7) % 7
		n := p.ordinal
		if n > 0 && ahead != 0 {
			n--
		}
		days += int64(ahead + 7*n)
	}
	t := time.Date(y+int(p.rel.years), mo+time.Month(p.rel.months), d+int(days), h, mi, s, int(ns), loc)
	t = time.Unix(t.Unix()+p.rel.seconds, int64(t.Nanosecond())+p.rel.nanos)
	return t.In(p.now.Location()), nil
}

// military is a one-letter zone's offset: A to M (without J) lie east of UTC, N to Y west.
func military(c byte) int {
	switch {
	case c >= 'n':
		return -int(c-'n'+1) * 3600
	case c > 'j':
		return int(c-'a') * 3600
	}
	return int(c-'a'+1) * 3600
}

func abs(n int64) int64 { return max(n, -n) }

func isMeridian(w string) bool { return w == "am" || w == "pm" }

func monthOf(w string) int {
	for i, name := range []string{"january", "february", "march", "april", "may", "june", "july", "august", "september", "october",
		"november", "december"} {
		if w == name || w == name[:3] || w == "sept" && i == 8 {
			return i + 1
		}
	}
	return 0
}

func weekdayOf(w string) int {
	for i, name := range []string{"sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"} {
		if w == name || w == name[:3] {
			return i
		}
	}
	switch w {
	case "tues":
		return 2
	case "wednes":
		return 3
	case "thur", "thurs":
		return 4
	}
	return -1
}

// unit returns a unit of time's letter (i is a minute), 0 for other words.
func unit(w string) byte {
	switch strings.TrimSuffix(w, "s") {
	case "year":
		return 'y'
	case "month":
		return 'm'
	case "fortnight":
		return 'f'
	case "week":
		return 'w'
	case "day":
		return 'd'
	case "hour":
		return 'h'
	case "minute", "min":
		return 'i'
	case "second", "sec":
		return 's'
	}
	return 0
}

var ordinals = map[string]int64{"last": -1, "this": 0, "next": 1, "first": 1, "third": 3, "fourth": 4, "fifth": 5, "sixth": 6,
	"seventh": 7, "eighth": 8, "ninth": 9, "tenth": 10, "eleventh": 11, "twelfth": 12}

// zones are the names that GNU date knows, as seconds east of UTC.
var zones = map[string]int{"utc": 0, "gmt": 0, "z": 0, "ut": 0, "wet": 0, "west": 3600, "bst": 3600, "cet": 3600, "cest": 7200,
	"met": 3600, "mest": 7200, "eet": 7200, "eest": 10800, "msk": 10800, "ist": 19800, "jst": 32400, "sgt": 28800, "est": -18000,
	"edt": -14400, "cst": -21600, "cdt": -18000, "mst": -25200, "mdt": -21600, "pst": -28800, "pdt": -25200, "akst": -32400,
	"hst": -36000, "art": -10800, "brt": -10800, "nzst": 43200, "nzdt": 46800}
