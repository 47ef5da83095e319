// Package sigv4 checks AWS Signature Version 4 as S3 uses it, and decodes the bodies that are signed chunk by chunk.
//
// A request is signed in its Authorization header or, presigned, in its query. The signature covers a canonical
// request: method, path, query, the signed headers and the payload's hash, or a word that says how the payload is
// protected instead. A credential is an access key with a scope: day, region, service. Any region is taken as given;
// nothing here knows keys or buckets. The specification is
// https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-authenticating-requests.html.
package sigv4

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"agentrun.dev/serve/s3/fault"
)

const (
	algorithm = "AWS4-HMAC-SHA256"
	terminal  = "aws4_request"

	// MaxSkew is how far a request's clock may be from ours.
	MaxSkew = 15 * time.Minute
	// MaxExpires is the longest life of a presigned URL.
	MaxExpires = 7 * 24 * time.Hour
)

// What x-amz-content-sha256 may say instead of a hash.
const (
	Unsigned                 = "UNSIGNED-PAYLOAD"
	StreamingSigned          = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD"
	StreamingSignedTrailer   = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER"
	StreamingUnsignedTrailer = "STREAMING-UNSIGNED-PAYLOAD-TRAILER"
)

// Credential is who signed, and for which scope. Date is yyyymmdd.
type Credential struct{ AccessKey, Date, Region, Service string }

// Signature is what a request says about how it is signed.
type Signature struct {
	Credential
	Time          time.Time
	SignedHeaders string // as given: lower-case names joined by ';'
	Signature     string // as given, hexadecimal
	Presigned     bool
	Expires       time.Duration // of a presigned request
	PayloadHash   string        // the hash, or one of the words above
	SessionToken  string

	stamp string // Time as it was written
	key   *SigningKey
}

// Key returns the key that the signature was verified with; nil before Verify.
func (s *Signature) Key() *SigningKey { return s.key }

// Stamp returns the request's time as it is signed, yyyymmddThhmmssZ.
func (s *Signature) Stamp() string { return s.stamp }

// Parse reads the signature of a request. An anonymous request has none: nil without an error. Errors are faults.
func Parse(r *http.Request, q Query) (*Signature, error) {
	if auth, ok := r.Header["Authorization"]; ok && auth[0] != "" {
		return parseHeader(r, auth[0])
	}
	if q.Has("X-Amz-Algorithm") || q.Has("X-Amz-Signature") || q.Has("X-Amz-Credential") {
		return parseQuery(r, q)
	}
	if q.Has("Signature") && q.Has("AWSAccessKeyId") {
		return nil, unsupported()
	}
	return nil, nil
}

func unsupported() error {
	return fault.Request("The authorization mechanism you have provided is not supported. Please use AWS4-HMAC-SHA256.")
}

func malformed(format string, args ...any) error {
	return fault.AuthorizationHeaderMalformed.Text("The authorization header is malformed; " + fmt.Sprintf(format, args...))
}

func parseHeader(r *http.Request, auth string) (*Signature, error) {
	scheme, rest, ok := strings.Cut(auth, " ")
	switch {
	case !ok:
		return nil, fault.Argument("Authorization", auth, "Authorization header is invalid -- one and only one ' ' (space) required.")
	case scheme == "AWS":
		return nil, unsupported()
	case scheme != algorithm:
		return nil, fault.Argument("Authorization", scheme, "Unsupported Authorization Type")
	}
	s := &Signature{}
	var credential string
	n := 0
	for rest != "" {
		var part string
		part, rest, _ = strings.Cut(rest, ",")
		n++
		name, value, ok := strings.Cut(strings.TrimSpace(part), "=")
		if !ok {
			return nil, malformed("the authorization component %q is malformed.", part)
		}
		switch name {
		case "Credential":
			credential = value
		case "SignedHeaders":
			s.SignedHeaders = value
		case "Signature":
			s.Signature = value
		}
	}
	switch {
	case n != 3:
		return nil, malformed("the authorization header requires three components: Credential, SignedHeaders, and Signature.")
	case credential == "":
		return nil, malformed("missing Credential.")
	case s.SignedHeaders == "":
		return nil, malformed("missing SignedHeaders.")
	case s.Signature == "":
		return nil, malformed("missing Signature.")
	}
	if bad := s.parseCredential(credential); bad != "" {
		return nil, malformed("%s", bad)
	}
	if err := s.parseDate(r); err != nil {
		return nil, err
	}
	s.SessionToken = r.Header.Get("X-Amz-Security-Token")
	s.PayloadHash = r.Header.Get("X-Amz-Content-Sha256")
	return s, nil
}

// parseCredential reads KEY/DATE/REGION/SERVICE/aws4_request and returns what is wrong with it, or "". The access key
// may itself hold slashes.
func (s *Signature) parseCredential(text string) (bad string) {
	var field [5]string
	rest := text
	for i := 4; i > 0; i-- {
		at := strings.LastIndexByte(rest, '/')
		if at < 0 {
			return `the Credential is mal-formed; expecting "<YOUR-AKID>/YYYYMMDD/REGION/SERVICE/aws4_request".`
		}
		field[i], rest = rest[at+1:], rest[:at]
	}
	if rest == "" || strings.Contains(rest, "/") || len(rest) > 128 {
		return `the Credential is mal-formed; expecting "<YOUR-AKID>/YYYYMMDD/REGION/SERVICE/aws4_request".`
	}
	s.Credential = Credential{AccessKey: rest, Date: field[1], Region: field[2], Service: field[3]}
	switch {
	case field[4] != terminal:
		return fmt.Sprintf("incorrect terminal %q. This endpoint uses %q.", field[4], terminal)
	case s.Service != "s3" && s.Service != "iam" && s.Service != "sts":
		return fmt.Sprintf("incorrect service %q. This endpoint belongs to \"s3\".", s.Service)
	case !isDate(s.Date):
		return fmt.Sprintf("incorrect date format %q. This date in the credential must be in the format \"yyyyMMdd\".", s.Date)
	}
	return ""
}

func isDate(s string) bool {
	if len(s) != 8 {
		return false
	}
	_, err := time.Parse("20060102", s)
	return err == nil
}

// parseDate takes the time from X-Amz-Date or Date.
func (s *Signature) parseDate(r *http.Request) error {
	stamp := r.Header.Get("X-Amz-Date")
	var ok bool
	if stamp != "" {
		s.Time, ok = parseStamp(stamp)
		s.stamp = stamp
	} else if date := r.Header.Get("Date"); date != "" {
		if s.Time, ok = parseStamp(date); !ok {
			t, err := http.ParseTime(date)
			s.Time, ok = t, err == nil
		}
		s.stamp = s.Time.UTC().Format(stampLayout)
	}
	if !ok {
		return fault.AccessDenied.Text("AWS authentication requires a valid Date or x-amz-date header.")
	}
	if s.stamp[:8] != s.Date {
		return malformed("Invalid credential date. Date is not the same as X-Amz-Date.")
	}
	return nil
}

const stampLayout = "20060102T150405Z"

// parseStamp reads yyyymmddThhmmssZ without the cost of a general parser.
func parseStamp(s string) (time.Time, bool) {
	if len(s) != len(stampLayout) || s[8] != 'T' || s[15] != 'Z' {
		return time.Time{}, false
	}
	var v [6]int
	for i, span := range [6][2]int{{0, 4}, {4, 6}, {6, 8}, {9, 11}, {11, 13}, {13, 15}} {
		for _, c := range []byte(s[span[0]:span[1]]) {
			if c < '0' || c > '9' {
				return time.Time{}, false
			}
			v[i] = v[i]*10 + int(c-'0')
		}
	}
	t := time.Date(v[0], time.Month(v[1]), v[2], v[3], v[4], v[5], 0, time.UTC)
	if v[1] < 1 || t.Month() != time.Month(v[1]) || t.Day() != v[2] || v[3] > 23 || v[4] > 59 || v[5] > 60 {
		return time.Time{}, false
	}
	return t, true
}

func queryFault(message string) error { return fault.AuthorizationQueryParameters.Text(message) }

func parseQuery(r *http.Request, q Query) (*Signature, error) {
	switch alg := q.Get("X-Amz-Algorithm"); alg {
	case algorithm:
	case "AWS4-ECDSA-P256-SHA256":
		return nil, queryFault(`X-Amz-Algorithm only supports "AWS4-HMAC-SHA256"`)
	case "":
		return nil, missingParameters()
	default:
		return nil, queryFault(`X-Amz-Algorithm only supports "AWS4-HMAC-SHA256 and AWS4-ECDSA-P256-SHA256"`)
	}
	s := &Signature{Presigned: true, Signature: q.Get("X-Amz-Signature"), SignedHeaders: q.Get("X-Amz-SignedHeaders"),
		SessionToken: q.Get("X-Amz-Security-Token"), stamp: q.Get("X-Amz-Date")}
	credential := q.Get("X-Amz-Credential")
	if s.Signature == "" || credential == "" {
		return nil, missingParameters()
	}
	if bad := s.parseCredential(credential); bad != "" {
		return nil, queryFault("Error parsing the X-Amz-Credential parameter; " + bad)
	}
	if s.stamp == "" || s.SignedHeaders == "" || !q.Has("X-Amz-Expires") {
		return nil, missingParameters()
	}
	var ok bool
	if s.Time, ok = parseStamp(s.stamp); !ok {
		return nil, queryFault(`X-Amz-Date must be in the ISO8601 Long Format "yyyyMMdd'T'HHmmss'Z'"`)
	}
	if s.stamp[:8] != s.Date {
		return nil, queryFault(fmt.Sprintf("Invalid credential date %q. This date is not the same as X-Amz-Date: %q.", s.Date, s.stamp[:8]))
	}
	seconds, err := strconv.ParseInt(q.Get("X-Amz-Expires"), 10, 64)
	switch {
	case err != nil:
		return nil, queryFault("X-Amz-Expires should be a number")
	case seconds < 0:
		return nil, queryFault("X-Amz-Expires must be non-negative")
	case seconds > int64(MaxExpires/time.Second):
		return nil, queryFault("X-Amz-Expires must be less than a week (in seconds); that is, the given X-Amz-Expires must be less than 604800 seconds")
	}
	s.Expires = time.Duration(seconds) * time.Second
	// A presigned request's payload is unsigned unless it says otherwise.
	if s.PayloadHash = q.Get("X-Amz-Content-Sha256"); s.PayloadHash == "" {
		if s.PayloadHash = r.Header.Get("X-Amz-Content-Sha256"); s.PayloadHash == "" {
			s.PayloadHash = Unsigned
		}
	}
	return s, nil
}

func missingParameters() error {
	return queryFault("Query-string authentication version 4 requires the X-Amz-Algorithm, X-Amz-Credential, X-Amz-Signature, X-Amz-Date, X-Amz-SignedHeaders, and X-Amz-Expires parameters.")
}
