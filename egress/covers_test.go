package egress

import "testing"

func TestCovers(t *testing.T) {
	for _, c := range []struct {
		parent, child []string
		ok            bool
	}{
		{nil, nil, true},
		{nil, []string{"example.org"}, false},
		{[]string{"example.org"}, nil, true},
		{[]string{"example.org"}, []string{"EXAMPLE.org.:443"}, true},
		{[]string{"example.org:443"}, []string{"example.org"}, false},
		{[]string{"example.org:443"}, []string{"example.org:80"}, false},
		{[]string{"*.example.org"}, []string{"a.example.org", "*.b.example.org:1"}, true},
		{[]string{"*.example.org"}, []string{"example.org"}, false},
		{[]string{"a.example.org"}, []string{"*.example.org"}, false},
		{[]string{"*.ample.org"}, []string{"example.org"}, false},
		{[]string{"*"}, []string{"example.org", "*.a.b", "*", "1.1.1.1"}, true},
		{[]string{"*"}, []string{"127.0.0.1"}, false},
		{[]string{"*"}, []string{"0.0.0.0/0"}, false},
		{[]string{"*:443"}, []string{"*"}, false},
		{[]string{"example.org"}, []string{"*"}, false},
		{[]string{"10.0.0.0/8"}, []string{"10.1.0.0/16", "10.2.3.4:80"}, true},
		{[]string{"10.1.0.0/16"}, []string{"10.0.0.0/8"}, false},
		{[]string{"10.0.0.0/8"}, []string{"2001:db8::1"}, false},
		{[]string{"2001:db8::/32"}, []string{"[2001:db8::1]:80"}, true},
		{[]string{"10.0.0.0/8"}, []string{"example.org"}, false},
	} {
		if rule, ok := policy(t, c.parent...).Covers(policy(t, c.child...)); ok != c.ok {
			t.Errorf("%v covers %v: %v (%s), want %v", c.parent, c.child, ok, rule, c.ok)
		}
	}
}
