package api

// MaxName bounds the names of templates, pools, sandboxes, principals and the like.
const MaxName = 63

// ValidName reports whether a name is 1 to MaxName of a–z, 0–9 and '-', with no '-' at either end, as a DNS label is.
func ValidName(s string) bool {
	if s == "" || len(s) > MaxName || s[0] == '-' || s[len(s)-1] == '-' {
		return false
	}
	for _, c := range []byte(s) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
			return false
		}
	}
	return true
}
