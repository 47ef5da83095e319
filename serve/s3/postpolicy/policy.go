// Package postpolicy reads and checks the policies of browser uploads.
//
// A policy is signed JSON that says until when a form may be posted and what its fields must be: conditions that a
// field equals or begins with a text, and a range for the file's length. Every field of a form must be covered by a
// condition, but for those that carry the signature and those whose names begin with x-ignore-.
package postpolicy

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"agentrun.dev/serve/s3/fault"
)

// Limits of a policy.
const (
	MaxSize       = 64 << 10 // bytes of base64
	maxConditions = 200
)

// Policy is a checked policy document.
type Policy struct {
	Expires  time.Time
	Min, Max int64 // allowed length of the file; Max is -1 without a limit
	checks   []check
}

type check struct {
	op, field, value string
	text             string // as it is quoted in an error
}

func invalid(format string, args ...any) error {
	return fault.InvalidPolicyDocument.Text("Invalid Policy: " + fmt.Sprintf(format, args...))
}

func denied(format string, args ...any) error {
	return fault.AccessDenied.Text("Invalid according to Policy: " + fmt.Sprintf(format, args...))
}

// Parse reads a policy from base64. Errors are faults.
func Parse(encoded string) (*Policy, error) {
	if len(encoded) > MaxSize {
		return nil, fault.MaxMessageLengthExceeded
	}
	if encoded == "" {
		return nil, invalid("Expecting '{' but found End-of-Input")
	}
	data, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return nil, invalid("invalid Base64 encoding.")
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(data, &fields); err != nil || fields == nil {
		return nil, invalid("Invalid JSON.")
	}
	for name := range fields {
		if name != "expiration" && name != "conditions" {
			return nil, invalid("Unexpected: %q", name)
		}
	}
	p := &Policy{Max: -1}
	if err := p.parseExpiration(fields["expiration"]); err != nil {
		return nil, err
	}
	raw, ok := fields["conditions"]
	if !ok {
		return nil, invalid("Policy missing conditions.")
	}
	var conditions []json.RawMessage
	if err := json.Unmarshal(raw, &conditions); err != nil {
		return nil, invalid("Invalid 'conditions' value: must be a List.")
	}
	if len(conditions) > maxConditions {
		return nil, invalid("Too many conditions.")
	}
	for _, c := range conditions {
		if err := p.parseCondition(c); err != nil {
			return nil, err
		}
	}
	return p, nil
}

func (p *Policy) parseExpiration(raw json.RawMessage) error {
	if raw == nil {
		return invalid("Policy missing expiration.")
	}
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		return invalid("Invalid JSON.")
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return invalid("Invalid 'expiration' value: '%s'", text)
	}
	p.Expires = t
	return nil
}

func (p *Policy) parseCondition(raw json.RawMessage) error {
	raw = bytes.TrimSpace(raw)
	switch {
	case len(raw) > 0 && raw[0] == '{':
		return p.parseSimple(raw)
	case len(raw) > 0 && raw[0] == '[':
		return p.parseList(raw)
	}
	return invalid("Invalid condition test: must be a List or Object.")
}

// parseSimple reads {"field": "value"}.
func (p *Policy) parseSimple(raw json.RawMessage) error {
	var m map[string]any
	if err := json.Unmarshal(raw, &m); err != nil {
		return invalid("Invalid JSON.")
	}
	if len(m) != 1 {
		return invalid("Invalid Simple-Condition: Simple-Conditions must have exactly one property specified.")
	}
	for field, v := range m {
		value, ok := v.(string)
		if !ok {
			return invalid("Invalid Simple-Condition: value must be a string.")
		}
		p.checks = append(p.checks, check{"eq", strings.ToLower(field), value,
			fmt.Sprintf("[%s, %s, %s]", quote("eq"), quote("$"+field), quote(value))})
	}
	return nil
}

// parseList reads ["eq", "$field", "value"] and its like.
func (p *Policy) parseList(raw json.RawMessage) error {
	var list []any
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if err := d.Decode(&list); err != nil {
		return invalid("Invalid JSON.")
	}
	if len(list) == 0 {
		return invalid("Invalid Condition: missing operation identifier.")
	}
	op, ok := list[0].(string)
	if !ok {
		return invalid("Invalid JSON.")
	}
	op = strings.ToLower(op)
	switch op {
	case "eq", "starts-with", "content-length-range":
	default:
		return invalid("Invalid Condition: unknown operation '%s'.", op)
	}
	if len(list) != 3 {
		return invalid("Invalid %s: wrong number of arguments.", op)
	}
	if op == "content-length-range" {
		return p.parseRange(list)
	}
	field, ok := list[1].(string)
	value, ok2 := list[2].(string)
	if !ok || !ok2 {
		return invalid("Invalid JSON.")
	}
	text := fmt.Sprintf("[%s,%s,%s]", quote(op), quote(field), quote(value))
	name, dollar := strings.CutPrefix(field, "$")
	if !dollar {
		name = "" // matches no field, so that the condition fails
	}
	p.checks = append(p.checks, check{op, strings.ToLower(name), value, text})
	return nil
}

func (p *Policy) parseRange(list []any) error {
	var bound [2]int64
	for i := range bound {
		n, ok := list[i+1].(json.Number)
		if !ok {
			return invalid("Invalid JSON.")
		}
		v, err := n.Int64()
		if err != nil || v < 0 {
			return invalid("Invalid JSON.")
		}
		bound[i] = v
	}
	p.Min = max(p.Min, bound[0])
	if p.Max < 0 || bound[1] < p.Max {
		p.Max = bound[1]
	}
	return nil
}

func quote(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		return `""`
	}
	return string(b)
}

// exempt reports whether a field needs no condition.
func exempt(name string) bool {
	switch name {
	case "policy", "x-amz-signature", "file", "x-amz-security-token":
		return true
	}
	return strings.HasPrefix(name, "x-ignore-")
}

// Check holds a form against the policy. Names of fields are in lower case; "bucket" must be among them.
func (p *Policy) Check(now time.Time, fields map[string]string) error {
	if !now.Before(p.Expires) {
		return denied("Policy expired.")
	}
	covered := map[string]bool{"bucket": false}
	for _, c := range p.checks {
		value, ok := fields[c.field]
		if !ok || c.field == "" || !c.holds(value) {
			return denied("Policy Condition failed: %s", c.text)
		}
		covered[c.field] = true
	}
	for name := range fields {
		if !covered[name] && !exempt(name) {
			return denied("Extra input fields: %s", name)
		}
	}
	return nil
}

func (c *check) holds(value string) bool {
	if c.op == "eq" {
		return value == c.value
	}
	if c.field == "content-type" {
		// Several types may be given; each must begin as asked.
		for part := range strings.SplitSeq(value, ",") {
			if !strings.HasPrefix(strings.TrimSpace(part), c.value) {
				return false
			}
		}
		return true
	}
	return strings.HasPrefix(value, c.value)
}
