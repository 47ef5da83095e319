package s3

import (
	"net/http"
	"strings"

	"agentrun.dev/access"
	"agentrun.dev/serve/s3/fault"
)

// operation is what a request asks for.
type operation struct {
	action   access.Action
	run      func(*call) error
	own      bool // authenticates and authorises itself
	open     bool // any key may call it; it looks at the key's grants itself
	noBucket bool // the bucket named needn't exist
	streams  bool // takes bodies in signed chunks
}

func reads(run func(*call) error) *operation   { return &operation{action: access.Read, run: run} }
func writes(run func(*call) error) *operation  { return &operation{action: access.Write, run: run} }
func manages(run func(*call) error) *operation { return &operation{action: access.Manage, run: run} }

// answers is a read that always ends in the same fault, such as the absence of a configuration that can't be set.
func answers(f *fault.Fault) *operation {
	return reads(func(*call) error { return f })
}

// misrouted is a request that no bucket or object could answer: it says nothing about any, so anyone is told.
func misrouted(f *fault.Fault) *operation {
	return &operation{run: func(*call) error { return f }, own: true}
}

// refuses is a change of a setting that AgentRun doesn't have.
func refuses() *operation {
	return manages(func(*call) error { return fault.NotImplemented })
}

// clears is the deletion of a setting that is never there.
func clears() *operation { return manages((*call).noContent) }

// subresource is an operation chosen by a parameter of the query.
type subresource struct {
	param string
	op    *operation
}

// routes are the operations of one method: the first subresource whose parameter the query has, or else the plain one.
type routes struct {
	sub   []subresource
	plain *operation
}

func (r *routes) find(c *call) *operation {
	if r == nil {
		return nil
	}
	for i := range c.q {
		for j := range r.sub {
			if r.sub[j].param == c.q[i].Name {
				return r.sub[j].op
			}
		}
	}
	return r.plain
}

// The tables never change.
var (
	bucketGet = &routes{[]subresource{
		{"location", reads((*call).getLocation)},
		{"versioning", reads((*call).getVersioning)},
		{"versions", reads((*call).listVersions)},
		{"uploads", reads((*call).listUploads)},
		{"tagging", reads((*call).getBucketTagging)},
		{"cors", reads((*call).getCORS)},
		{"ownershipControls", reads((*call).getOwnership)},
		{"acl", reads((*call).getACL)},
		{"metadata", reads((*call).tigrisInfo)},
		{"policy", answers(fault.NoSuchBucketPolicy)},
		{"policyStatus", answers(fault.NoSuchBucketPolicy)},
		{"lifecycle", answers(fault.NoSuchLifecycleConfiguration)},
		{"encryption", answers(fault.ServerSideEncryptionConfigurationNotFound)},
		{"object-lock", answers(fault.ObjectLockConfigurationNotFound)},
		{"publicAccessBlock", answers(fault.NoSuchPublicAccessBlockConfiguration)},
		{"replication", answers(fault.ReplicationConfigurationNotFound)},
		{"website", answers(fault.NoSuchWebsiteConfiguration)},
		{"requestPayment", reads(document("RequestPaymentConfiguration", "<Payer>BucketOwner</Payer>"))},
		{"logging", reads(document("BucketLoggingStatus", ""))},
		{"notification", reads(document("NotificationConfiguration", ""))},
		{"accelerate", reads(document("AccelerateConfiguration", ""))},
		{"analytics", refuses()},
		{"intelligent-tiering", refuses()},
		{"inventory", refuses()},
		{"metrics", refuses()},
		{"session", refuses()},
	}, reads((*call).list)}

	bucketPut = &routes{[]subresource{
		{"versioning", manages((*call).putVersioning)},
		{"tagging", manages((*call).putBucketTagging)},
		{"cors", manages((*call).putCORS)},
		{"ownershipControls", manages((*call).putOwnership)},
		{"acl", manages((*call).putBucketACL)},
		{"policy", refuses()}, {"lifecycle", refuses()}, {"encryption", refuses()}, {"object-lock", refuses()},
		{"publicAccessBlock", refuses()}, {"replication", refuses()}, {"website", refuses()}, {"requestPayment", refuses()},
		{"logging", refuses()}, {"notification", refuses()}, {"accelerate", refuses()}, {"analytics", refuses()},
		{"intelligent-tiering", refuses()}, {"inventory", refuses()}, {"metrics", refuses()},
	}, nil}

	bucketDelete = &routes{[]subresource{
		{"tagging", manages((*call).deleteBucketTagging)},
		{"cors", manages((*call).deleteCORS)},
		{"ownershipControls", manages((*call).deleteOwnership)},
		{"policy", clears()}, {"lifecycle", clears()}, {"encryption", clears()}, {"publicAccessBlock", clears()},
		{"replication", clears()}, {"website", clears()}, {"analytics", refuses()}, {"intelligent-tiering", refuses()},
		{"inventory", refuses()}, {"metrics", refuses()},
	}, manages((*call).deleteBucket)}

	bucketPost = &routes{[]subresource{
		{"delete", &operation{action: access.Write, run: (*call).deleteObjects}},
		{"bundle", reads((*call).bundle)},
	}, nil}

	objectGet = &routes{[]subresource{
		{"acl", reads((*call).getObjectACL)},
		{"tagging", reads((*call).getTagging)},
		{"attributes", reads((*call).attributes)},
		{"uploadId", reads((*call).listParts)},
		{"uploads", misrouted(fault.InvalidRequest.Text("Key is not expected for the GET method ?uploads subresource"))},
		{"versions", misrouted(fault.InvalidRequest.Text("There is no such thing as the ?versions sub-resource for a key"))},
		{"legal-hold", reads((*call).noLock)},
		{"retention", reads((*call).noLock)},
		{"torrent", refuses()},
	}, reads((*call).getObject)}

	objectPut = &routes{[]subresource{
		{"tagging", writes((*call).putTagging)},
		{"acl", writes((*call).putObjectACL)},
		{"legal-hold", writes((*call).noLockConfiguration)},
		{"retention", writes((*call).noLockConfiguration)},
		{"renameObject", refuses()},
		{"encryption", refuses()},
	}, nil}

	objectDelete = &routes{[]subresource{
		{"uploadId", writes((*call).abortUpload)},
		{"tagging", writes((*call).deleteTagging)},
	}, writes((*call).deleteObject)}

	objectPost = &routes{[]subresource{
		{"uploads", writes((*call).createUpload)},
		{"uploadId", writes((*call).completeUpload)},
		{"select", refuses()},
		{"restore", refuses()},
	}, nil}

	opListBuckets   = &operation{action: access.Read, run: (*call).listBuckets, open: true}
	opIAM           = &operation{action: access.Manage, run: (*call).iam}
	opPresign       = &operation{action: access.Read, run: (*call).presign, open: true}
	opCreateBucket  = &operation{action: access.Manage, run: (*call).createBucket, noBucket: true}
	opPutSnapshot   = manages((*call).takeSnapshot)
	opMergeBucket   = manages((*call).merge)
	opRebaseBucket  = manages((*call).rebase)
	opDelSnapshot   = manages((*call).deleteSnapshot)
	opPatchBucket   = manages((*call).patchBucket)
	opPostForm      = &operation{run: (*call).postForm, own: true}
	opHeadBucket    = reads((*call).headBucket)
	opPutObject     = &operation{action: access.Write, run: (*call).putObject, streams: true}
	opUploadPart    = &operation{action: access.Write, run: (*call).uploadPart, streams: true}
	opCopyObject    = writes((*call).copyObject)
	opRenameObject  = writes((*call).renameObject)
	opUploadCopy    = writes((*call).uploadPartCopy)
	opPartNoUpload  = &operation{run: partWithoutUpload, own: true}
	opAppendRefused = refuses()
)

func partWithoutUpload(c *call) error {
	return fault.Argument("partNumber", "partNumber", "This operation does not accept partNumber without uploadId")
}

// route finds the operation.
func (c *call) route() (*operation, error) {
	var op *operation
	switch {
	case c.name == "":
		op = c.routeService()
	case c.path == "":
		op = c.routeBucket()
	default:
		op = c.routeObject()
	}
	if op == nil {
		return nil, c.notAllowed()
	}
	if src := c.r.Header["X-Amz-Copy-Source"]; src != nil && op != opCopyObject && op != opUploadCopy && op != opRenameObject {
		return nil, fault.Argument("x-amz-copy-source", src[0], "You can only specify a copy source header for copy requests.")
	}
	return op, nil
}

func (c *call) notAllowed() error {
	kind := "SERVICE" // also for a POST that names no operation, as AWS has it
	switch {
	case c.path != "" && c.r.Method != http.MethodPost:
		kind = "OBJECT"
		if c.q.Has("uploadId") {
			kind = "UPLOAD"
		}
	case c.name != "" && c.path == "":
		kind = "BUCKET"
	}
	return fault.MethodNotAllowed.With("Method", c.r.Method, "ResourceType", kind)
}

func (c *call) routeService() *operation {
	switch c.r.Method {
	case http.MethodGet:
		return opListBuckets
	case http.MethodPost:
		if c.q.Get("func") == "presign" {
			return opPresign
		}
		if c.q.Has("Action") || c.q.Has("Detailed") || strings.HasPrefix(c.r.Header.Get("Content-Type"), "application/x-www-form-urlencoded") {
			return opIAM
		}
	}
	return nil
}

func (c *call) routeBucket() *operation {
	h := c.r.Header
	switch c.r.Method {
	case http.MethodHead:
		return opHeadBucket
	case http.MethodGet:
		if c.q.Has("list-type") {
			return bucketGet.plain // ?metadata is MinIO's wish for a listing, and Tigris' name of another call
		}
		return bucketGet.find(c)
	case http.MethodPut:
		if op := bucketPut.find(c); op != nil {
			return op
		}
		switch {
		case h["X-Tigris-Snapshot"] != nil:
			return opPutSnapshot
		case h["X-Tigris-Merge-Source-Bucket"] != nil:
			return opMergeBucket
		case h["X-Tigris-Rebase"] != nil:
			return opRebaseBucket
		}
		return opCreateBucket
	case http.MethodDelete:
		if h["X-Tigris-Snapshot-Version"] != nil {
			return opDelSnapshot
		}
		return bucketDelete.find(c)
	case http.MethodPost:
		if op := bucketPost.find(c); op != nil {
			return op
		}
		return opPostForm
	case http.MethodPatch:
		return opPatchBucket
	}
	return nil
}

func (c *call) routeObject() *operation {
	h := c.r.Header
	switch c.r.Method {
	case http.MethodGet, http.MethodHead:
		if len(c.q) == 0 || c.r.Method == http.MethodHead {
			return objectGet.plain
		}
		return objectGet.find(c)
	case http.MethodPut:
		if op := objectPut.find(c); op != nil {
			return op
		}
		switch {
		case c.q.Has("uploadId") && !c.q.Has("partNumber"):
			return nil
		case c.q.Has("uploadId") && h["X-Amz-Copy-Source"] != nil:
			return opUploadCopy
		case c.q.Has("uploadId"):
			return opUploadPart
		case c.q.Has("partNumber"):
			return opPartNoUpload
		case h["X-Amz-Copy-Source"] != nil && h["X-Tigris-Rename"] != nil && h["X-Tigris-Rename"][0] == "true":
			return opRenameObject
		case h["X-Amz-Copy-Source"] != nil:
			return opCopyObject
		case h["X-Amz-Write-Offset-Bytes"] != nil:
			return opAppendRefused
		}
		return opPutObject
	case http.MethodDelete:
		return objectDelete.find(c)
	case http.MethodPost:
		return objectPost.find(c)
	}
	return nil
}

// document answers with a fixed configuration.
func document(tag, inner string) func(*call) error {
	return func(c *call) error {
		var x xmlDoc
		x.root(tag)
		x.buf = append(x.buf, inner...)
		x.close(tag)
		return c.sendXML(http.StatusOK, &x)
	}
}
