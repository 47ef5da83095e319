package s3

import (
	"encoding/xml"
	"net/http"
	"strings"

	"agentrun.dev/bucket"
	"agentrun.dev/serve/s3/fault"
)

// getLocation answers GetBucketLocation. us-east-1 is written as nothing, for historical reasons of S3.
func (c *call) getLocation() error {
	var x xmlDoc
	x.root("LocationConstraint")
	if region := c.region(); region != "us-east-1" {
		x.escape(region)
	}
	x.close("LocationConstraint")
	return c.sendXML(http.StatusOK, &x)
}

// region is where a bucket says it is: where Options has it, or else
// wherever the request is signed for, so that no client looks for it elsewhere.
func (c *call) region() string {
	if c.sig != nil && c.o.Region == "auto" {
		return c.sig.Region
	}
	return c.o.Region
}

func (c *call) getVersioning() error {
	info, err := c.info()
	if err != nil {
		return err
	}
	var x xmlDoc
	x.root("VersioningConfiguration")
	switch {
	case info.Versioning == bucket.Versioned:
		x.text("Status", "Enabled")
	case info.Versioning == bucket.Suspended:
		x.text("Status", "Suspended")
	}
	x.close("VersioningConfiguration")
	return c.sendXML(http.StatusOK, &x)
}

func (c *call) putVersioning() error {
	var req struct {
		XMLName   xml.Name `xml:"VersioningConfiguration"`
		Status    string   `xml:"Status"`
		MFADelete string   `xml:"MfaDelete"`
	}
	if err := c.readXML(&req, maxSettings); err != nil {
		return err
	}
	var v bucket.Versioning
	switch req.Status {
	case "Enabled":
		v = bucket.Versioned
	case "Suspended":
		v = bucket.Suspended
	default:
		return fault.MalformedXML
	}
	if strings.EqualFold(req.MFADelete, "Enabled") {
		return fault.NotImplemented
	}
	if err := c.update(func(i *bucket.Info) error { i.Versioning = v; return nil }); err != nil {
		return err
	}
	return c.ok()
}

// Ownership of objects: with the default, everything belongs to the bucket's owner and there are no access control
// lists. The other settings are kept and told again, but no list ever gives anyone else access.
const ownerEnforced = "BucketOwnerEnforced"

func validOwnership(s string) bool {
	return s == ownerEnforced || s == "BucketOwnerPreferred" || s == "ObjectWriter"
}

func (c *call) getOwnership() error {
	info, err := c.info()
	if err != nil {
		return err
	}
	o := info.Attributes[attrOwnership]
	switch o {
	case "-":
		return fault.OwnershipControlsNotFound.With("BucketName", c.name)
	case "":
		o = ownerEnforced
	}
	var x xmlDoc
	x.root("OwnershipControls")
	x.open("Rule")
	x.text("ObjectOwnership", o)
	x.close("Rule")
	x.close("OwnershipControls")
	return c.sendXML(http.StatusOK, &x)
}

func (c *call) putOwnership() error {
	var req struct {
		XMLName xml.Name `xml:"OwnershipControls"`
		Rules   []struct {
			ObjectOwnership string `xml:"ObjectOwnership"`
		} `xml:"Rule"`
	}
	if err := c.readXML(&req, maxSettings); err != nil {
		return err
	}
	if len(req.Rules) != 1 || !validOwnership(req.Rules[0].ObjectOwnership) {
		return fault.MalformedXML
	}
	if err := c.setAttribute(attrOwnership, req.Rules[0].ObjectOwnership); err != nil {
		return err
	}
	return c.ok()
}

func (c *call) deleteOwnership() error {
	if err := c.setAttribute(attrOwnership, "-"); err != nil {
		return err
	}
	return c.noContent()
}

// ownerGrant writes the only access control list that there is.
func (c *call) getACL() error {
	owner := c.owner()
	var x xmlDoc
	x.root("AccessControlPolicy")
	x.owner("Owner", owner)
	x.open("AccessControlList")
	x.open("Grant")
	x.open(`Grantee xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:type="CanonicalUser"`)
	x.text("ID", owner)
	x.text("DisplayName", owner)
	x.close("Grantee")
	x.text("Permission", "FULL_CONTROL")
	x.close("Grant")
	x.close("AccessControlList")
	x.close("AccessControlPolicy")
	return c.sendXML(http.StatusOK, &x)
}

func (c *call) getObjectACL() error {
	v, err := c.view(c.r.Context())
	if err != nil {
		return err
	}
	defer v.Close()
	if _, err := c.find(c.r.Context(), v, c.path, c.q.Get("versionId")); err != nil {
		return err
	}
	return c.getACL()
}

// putBucketACL and putObjectACL take what says that all belongs to the owner, and nothing else.
func (c *call) putBucketACL() error {
	if err := c.checkACL(); err != nil {
		return err
	}
	return c.ok()
}

func (c *call) putObjectACL() error {
	v, err := c.b.View(c.r.Context())
	if err != nil {
		return err
	}
	defer v.Close()
	if _, err := c.find(c.r.Context(), v, c.path, c.q.Get("versionId")); err != nil {
		return err
	}
	return c.putBucketACL()
}

// aclRequest is the body of PutBucketAcl and PutObjectAcl.
type aclRequest struct {
	XMLName xml.Name `xml:"AccessControlPolicy"`
	Owner   *struct {
		ID string `xml:"ID"`
	} `xml:"Owner"`
	Grants []struct {
		Grantee struct {
			Type string `xml:"http://www.w3.org/2001/XMLSchema-instance type,attr"`
			ID   string `xml:"ID"`
			URI  string `xml:"URI"`
		} `xml:"Grantee"`
		Permission string `xml:"Permission"`
	} `xml:"AccessControlList>Grant"`
}

// wellFormed reports whether the list is one that S3 would read.
func (a *aclRequest) wellFormed() bool {
	if a.Owner == nil || a.Owner.ID == "" {
		return false
	}
	for _, g := range a.Grants {
		switch g.Permission {
		case "FULL_CONTROL", "READ", "WRITE", "READ_ACP", "WRITE_ACP":
		default:
			return false
		}
		switch g.Grantee.Type {
		case "CanonicalUser":
			if g.Grantee.ID == "" {
				return false
			}
		case "Group", "AmazonCustomerByEmail":
		default:
			return false
		}
	}
	return true
}

// ownerEnforced reports whether the bucket has no access control lists at all, which is the default.
func (c *call) ownerEnforced() bool {
	info, err := c.info()
	return err == nil && (info.Attributes[attrOwnership] == "" || info.Attributes[attrOwnership] == ownerEnforced)
}

// checkACL takes a list that gives everything to the owner and nothing to anyone else.
func (c *call) checkACL() error {
	h := c.r.Header
	canned, grants := h["X-Amz-Acl"] != nil, false
	for name := range h {
		grants = grants || strings.HasPrefix(name, "X-Amz-Grant-")
	}
	data, err := c.readDocument(maxSettings)
	switch {
	case err != nil:
		return err
	case grants && c.ownerEnforced():
		return fault.AccessControlListNotSupported
	case len(data) > 0 && (canned || grants):
		return fault.UnexpectedContent
	case canned && grants:
		return fault.Request("Specifying both Canned ACLs and Header Grants is not allowed.")
	case len(data) == 0 && !canned && !grants:
		return fault.MissingSecurityHeader
	case len(data) == 0:
		return refuseUnsupported(h)
	}
	var req aclRequest
	if err := decodeXML(data, &req); err != nil || !req.wellFormed() {
		return fault.MalformedACL
	}
	for _, g := range req.Grants {
		if g.Grantee.ID != req.Owner.ID || g.Permission != "FULL_CONTROL" {
			return fault.AccessControlListNotSupported
		}
	}
	return nil
}

// noLock answers for the object lock that no object has.
func (c *call) noLock() error {
	return fault.Request("Bucket is missing Object Lock Configuration")
}

func (c *call) noLockConfiguration() error {
	return fault.Request("Bucket is missing Object Lock Configuration")
}
