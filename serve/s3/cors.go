package s3

import (
	"encoding/xml"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"agentrun.dev/errs"
	"agentrun.dev/serve/s3/fault"
)

// corsConfig is a bucket's rules for requests from other origins.
type corsConfig struct {
	XMLName xml.Name   `xml:"CORSConfiguration"`
	Rules   []corsRule `xml:"CORSRule"`
}

type corsRule struct {
	ID             string   `xml:"ID,omitempty"`
	AllowedOrigins []string `xml:"AllowedOrigin"`
	AllowedMethods []string `xml:"AllowedMethod"`
	AllowedHeaders []string `xml:"AllowedHeader"`
	ExposeHeaders  []string `xml:"ExposeHeader"`
	MaxAge         *int     `xml:"MaxAgeSeconds"`
}

// maxCORSRules is AWS' limit.
const maxCORSRules = 100

func corsMethod(m string) bool {
	switch m {
	case http.MethodGet, http.MethodPut, http.MethodPost, http.MethodDelete, http.MethodHead:
		return true
	}
	return false
}

func (cfg *corsConfig) check() error {
	if len(cfg.Rules) == 0 || len(cfg.Rules) > maxCORSRules {
		return fault.MalformedXML
	}
	for i := range cfg.Rules {
		r := &cfg.Rules[i]
		if len(r.AllowedOrigins) == 0 || len(r.AllowedMethods) == 0 || len(r.ID) > 255 {
			return fault.MalformedXML
		}
		for _, o := range r.AllowedOrigins {
			if strings.Count(o, "*") > 1 {
				return fault.Request(fmt.Sprintf(`AllowedOrigin "%s" can not have more than one wildcard.`, o))
			}
		}
		for _, m := range r.AllowedMethods {
			if !corsMethod(m) {
				return fault.Request("Found unsupported HTTP method in CORS config. Unsupported method is " + m)
			}
		}
		for _, h := range slices.Concat(r.AllowedHeaders, r.ExposeHeaders) {
			if !headerPattern(h) {
				return fault.Request(fmt.Sprintf(`AllowedHeader "%s" contains invalid character.`, h))
			}
		}
	}
	return nil
}

// headerPattern reports whether text is made of what a header's name may hold, and "*".
func headerPattern(s string) bool {
	for _, ch := range []byte(s) {
		if !('a' <= ch && ch <= 'z' || 'A' <= ch && ch <= 'Z' || '0' <= ch && ch <= '9' || strings.IndexByte("!#$%&'*+-.^_`|~", ch) >= 0) {
			return false
		}
	}
	return s != ""
}

// wildcard matches text against a pattern with at most one "*".
func wildcard(pattern, text string) bool {
	before, after, star := strings.Cut(pattern, "*")
	if !star {
		return pattern == text
	}
	return len(text) >= len(before)+len(after) && strings.HasPrefix(text, before) && strings.HasSuffix(text, after)
}

// match finds the first rule that allows a request.
func (cfg *corsConfig) match(origin, method string, headers []string) *corsRule {
	for i := range cfg.Rules {
		r := &cfg.Rules[i]
		if r.origin(origin) != "" && slices.Contains(r.AllowedMethods, method) && !slices.ContainsFunc(headers, func(h string) bool {
			return !slices.ContainsFunc(r.AllowedHeaders, func(p string) bool { return wildcard(strings.ToLower(p), strings.ToLower(h)) })
		}) {
			return r
		}
	}
	return nil
}

// origin returns what Access-Control-Allow-Origin says to an origin, "" if it isn't allowed.
func (r *corsRule) origin(origin string) string {
	for _, p := range r.AllowedOrigins {
		if p == "*" {
			return "*"
		}
		if wildcard(p, origin) {
			return origin
		}
	}
	return ""
}

// write sets the response's headers.
func (r *corsRule) write(h http.Header, origin string, asked []string) {
	allowed := r.origin(origin)
	h.Set("Access-Control-Allow-Origin", allowed)
	h.Set("Access-Control-Allow-Methods", strings.Join(r.AllowedMethods, ", "))
	h.Set("Access-Control-Allow-Credentials", strconv.FormatBool(allowed != "*"))
	expose := r.ExposeHeaders
	if !slices.ContainsFunc(expose, func(s string) bool { return strings.EqualFold(s, "ETag") }) {
		expose = append(slices.Clip(expose), "ETag") // without it no browser can upload parts
	}
	h.Set("Access-Control-Expose-Headers", strings.Join(expose, ", "))
	if len(asked) > 0 {
		h.Set("Access-Control-Allow-Headers", strings.ToLower(strings.Join(asked, ", ")))
	}
	if r.MaxAge != nil {
		h.Set("Access-Control-Max-Age", strconv.Itoa(*r.MaxAge))
	}
	h.Set("Vary", "Origin, Access-Control-Request-Headers, Access-Control-Request-Method")
}

// cors returns the bucket's rules, nil if there are none.
func (c *call) cors() (*corsConfig, error) {
	info, err := c.info()
	if err != nil {
		return nil, err
	}
	text := info.Attributes[attrCORS]
	if text == "" {
		return nil, nil
	}
	var cfg corsConfig
	if err := decodeXML([]byte(text), &cfg); err != nil {
		return nil, errs.New(errs.Corrupt, "read cors", c.name, err)
	}
	return &cfg, nil
}

// preflight answers OPTIONS, which browsers send without credentials.
func (c *call) preflight() error {
	h := c.r.Header
	origin, method := h.Get("Origin"), h.Get("Access-Control-Request-Method")
	if origin == "" {
		return fault.BadRequest.Text("Insufficient information. Origin request header needed.")
	}
	if !corsMethod(method) {
		return fault.BadRequest.Text("Invalid Access-Control-Request-Method: " + method)
	}
	var asked []string
	if list := strings.Join(h["Access-Control-Request-Headers"], ","); list != "" {
		for name := range strings.SplitSeq(list, ",") {
			trimmed := strings.TrimSpace(name)
			if !headerPattern(trimmed) {
				return fault.BadRequest.Text(fmt.Sprintf(`Access-Control-Request-Headers "%s" contains invalid character.`, name))
			}
			asked = append(asked, trimmed)
		}
	}
	forbidden := fault.AccessDenied.Coded("AccessForbidden")
	if c.name == "" {
		return forbidden.Text("CORSResponse: CORS is not enabled for this bucket.")
	}
	cfg, err := c.cors()
	if err != nil {
		return err
	}
	if cfg == nil {
		return forbidden.Text("CORSResponse: CORS is not enabled for this bucket.").With("Method", method, "ResourceType", c.kind())
	}
	r := cfg.match(origin, method, asked)
	if r == nil {
		return forbidden.Text("CORSResponse: This CORS request is not allowed. This is usually because the evalution of Origin, request method / Access-Control-Request-Method or Access-Control-Request-Headers are not whitelisted by the resource's CORS spec.").
			With("Method", method, "ResourceType", c.kind())
	}
	r.write(c.w.Header(), origin, asked)
	return c.ok()
}

func (c *call) kind() string {
	if c.path != "" {
		return "OBJECT"
	}
	return "BUCKET"
}

// allowOrigin adds headers to the answer of a request from another origin, if the bucket's rules allow it.
func (c *call) allowOrigin() {
	if c.name == "" {
		return
	}
	cfg, err := c.cors()
	if err != nil || cfg == nil {
		return
	}
	origin := c.r.Header.Get("Origin")
	if r := cfg.match(origin, c.r.Method, nil); r != nil {
		r.write(c.w.Header(), origin, nil)
	}
}

func (c *call) getCORS() error {
	cfg, err := c.cors()
	if err != nil {
		return err
	}
	if cfg == nil {
		return fault.NoSuchCORSConfiguration.With("BucketName", c.name)
	}
	var x xmlDoc
	x.root("CORSConfiguration")
	for i := range cfg.Rules {
		r := &cfg.Rules[i]
		x.open("CORSRule")
		x.opt("ID", r.ID)
		for _, list := range []struct {
			tag    string
			values []string
		}{{"AllowedOrigin", r.AllowedOrigins}, {"AllowedMethod", r.AllowedMethods}, {"AllowedHeader", r.AllowedHeaders}, {"ExposeHeader", r.ExposeHeaders}} {
			for _, v := range list.values {
				x.text(list.tag, v)
			}
		}
		if r.MaxAge != nil {
			x.int("MaxAgeSeconds", int64(*r.MaxAge))
		}
		x.close("CORSRule")
	}
	x.close("CORSConfiguration")
	return c.sendXML(http.StatusOK, &x)
}

func (c *call) putCORS() error {
	var cfg corsConfig
	if err := c.readXML(&cfg, maxSettings); err != nil {
		return err
	}
	if err := cfg.check(); err != nil {
		return err
	}
	if err := c.setCORS(&cfg); err != nil {
		return err
	}
	return c.ok()
}

// document writes the rules as they are stored.
func (cfg *corsConfig) document() (string, error) {
	cfg.XMLName = xml.Name{Local: "CORSConfiguration"}
	text, err := xml.Marshal(cfg)
	return string(text), err
}

func (c *call) deleteCORS() error {
	if err := c.setAttribute(attrCORS, ""); err != nil {
		return err
	}
	return c.noContent()
}
