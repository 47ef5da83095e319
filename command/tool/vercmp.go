package tool

// CompareVersions orders names as GNU's filevercmp does: runs of digits by their value, letters before other characters,
// "~" before everything, and suffixes such as .tar.gz only if the rest is equal.
func CompareVersions(a, b string) int {
	if a == b {
		return 0
	}
	switch {
	case a == "":
		return -1
	case b == "":
		return 1
	}
	// ".", ".." and hidden names come first.
	for _, special := range []string{".", ".."} {
		if a == special {
			return -1
		}
		if b == special {
			return 1
		}
	}
	if (a[0] == '.') != (b[0] == '.') {
		if a[0] == '.' {
			return -1
		}
		return 1
	}
	pa, pb := withoutSuffix(a), withoutSuffix(b)
	c := 0
	if pa == pb {
		c = versionCompare(a, b)
	} else if c = versionCompare(pa, pb); c == 0 {
		c = versionCompare(a, b)
	}
	return c
}

// withoutSuffix cuts what matches (\.[A-Za-z~][A-Za-z0-9~]*)*$ off, unless nothing would be left.
func withoutSuffix(s string) string {
	cut := -1
	for i := 0; i < len(s); {
		if s[i] == '.' && i > 0 && i+1 < len(s) && (isLetter(s[i+1]) || s[i+1] == '~') {
			if cut < 0 {
				cut = i
			}
			i += 2
			for i < len(s) && (isLetter(s[i]) || isDigit(s[i]) || s[i] == '~') {
				i++
			}
			continue
		}
		cut = -1
		i++
	}
	if cut < 0 {
		return s
	}
	return s[:cut]
}

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }
func isDigit(c byte) bool  { return c >= '0' && c <= '9' }

// versionOrder is a character's rank outside of digits.
func versionOrder(s string, i int) int {
	if i >= len(s) {
		return -1
	}
	c := s[i]
	switch {
	case isDigit(c):
		return 0
	case isLetter(c):
		return int(c)
	case c == '~':
		return -2
	}
	return int(c) + 256
}

// versionCompare is Debian's algorithm.
func versionCompare(a, b string) int {
	i, j := 0, 0
	for i < len(a) || j < len(b) {
		for i < len(a) && !isDigit(a[i]) || j < len(b) && !isDigit(b[j]) {
			x, y := versionOrder(a, i), versionOrder(b, j)
			if x != y {
				return x - y
			}
			i++
			j++
		}
		for i < len(a) && a[i] == '0' {
			i++
		}
		for j < len(b) && b[j] == '0' {
			j++
		}
		first := 0
		for i < len(a) && j < len(b) && isDigit(a[i]) && isDigit(b[j]) {
			if first == 0 {
				first = int(a[i]) - int(b[j])
			}
			i++
			j++
		}
		if i < len(a) && isDigit(a[i]) {
			return 1
		}
		if j < len(b) && isDigit(b[j]) {
			return -1
		}
		if first != 0 {
			return first
		}
	}
	return 0
}
