package tool

import (
	"errors"
	"math"
	"math/big"
	"strconv"
	"strings"
	"syscall"
)

// Errors of ParseSize.
var (
	ErrNotNumber = errors.New("not a number")
	ErrSuffix    = errors.New("invalid suffix")
	ErrRange     = syscall.EOVERFLOW // GNU words it "Value too large for defined data type"
)

// SizeSuffixes are those that most commands take: b (512), and K to Y alone (1024), with iB (1024) or B (1000).
const SizeSuffixes = "bkKmMGTPEZY"

// ParseSize reads an unsigned decimal number with an optional multiplier out of suffixes, as GNU's xstrtoumax does. A
// value too large is MaxUint64 with ErrRange.
func ParseSize(s, suffixes string) (uint64, error) {
	i := 0
	for i < len(s) && (s[i] == ' ' || s[i] == '\t') {
		i++
	}
	if i < len(s) && s[i] == '+' {
		i++
	}
	start := i
	for i < len(s) && s[i] >= '0' && s[i] <= '9' {
		i++
	}
	digits, rest := s[start:i], s[i:]
	var n uint64 = 1
	var err error
	if digits == "" {
		// A suffix alone stands for one of its units.
		if start > 0 || rest == "" || strings.IndexByte(suffixes, rest[0]) < 0 {
			return 0, ErrNotNumber
		}
	} else if n, err = strconv.ParseUint(digits, 10, 64); err != nil {
		n, err = math.MaxUint64, ErrRange
	}
	if rest == "" {
		return n, err
	}
	if strings.IndexByte(suffixes, rest[0]) < 0 {
		return n, ErrSuffix
	}
	factor, ok := multiplier(rest)
	if !ok {
		return n, ErrSuffix
	}
	v := new(big.Int).Mul(new(big.Int).SetUint64(n), factor)
	if err != nil || !v.IsUint64() {
		return math.MaxUint64, ErrRange
	}
	return v.Uint64(), nil
}

// multiplier reads a whole suffix such as "K", "KiB", "KB" or "b".
func multiplier(s string) (*big.Int, bool) {
	base := int64(1024)
	switch s[1:] {
	case "":
	case "iB":
	case "B", "D":
		base = 1000
	default:
		return nil, false
	}
	if len(s) > 1 && strings.IndexByte("bcwB", s[0]) >= 0 {
		return nil, false
	}
	switch s[0] {
	case 'b':
		return big.NewInt(512), true
	case 'B':
		return big.NewInt(1024), true
	case 'c':
		return big.NewInt(1), true
	case 'w':
		return big.NewInt(2), true
	}
	letter := s[0]
	if letter == 'k' || letter == 'm' || letter == 'g' || letter == 't' {
		letter -= 'a' - 'A'
	}
	power := strings.IndexByte("KMGTPEZY", letter) + 1
	if power == 0 {
		return nil, false
	}
	return new(big.Int).Exp(big.NewInt(base), big.NewInt(int64(power)), nil), true
}

// Human renders a size with one letter, rounded up, as ls -h, du -h and df -h do. base is 1024 or 1000.
func Human(n uint64, base uint64) string {
	letters := "KMGTPE"
	if base == 1000 {
		letters = "kMGTPE"
	}
	if n < base {
		return strconv.FormatUint(n, 10)
	}
	unit, power := base, 0
	for power < len(letters)-1 && n/unit >= base {
		unit *= base
		power++
	}
	whole, rest := n/unit, n%unit
	if whole < 10 {
		// The fraction in tenths, rounded up; rest is below 2^60, so the product needs care.
		tenths := uint64(math.Ceil(float64(rest) / float64(unit) * 10))
		if whole*10+tenths < 100 {
			return strconv.FormatUint(whole+tenths/10, 10) + "." + strconv.FormatUint(tenths%10, 10) + letters[power:power+1]
		}
		whole, rest = 10, 0
	}
	if rest > 0 {
		whole++
	}
	if whole == base && power < len(letters)-1 {
		return "1.0" + letters[power+1:power+2]
	}
	return strconv.FormatUint(whole, 10) + letters[power:power+1]
}
