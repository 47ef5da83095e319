package s3

import (
	"encoding/json"
	"encoding/xml"
	"maps"
	"net/http"
	"slices"

	"agentrun.dev/bucket"
	"agentrun.dev/errs"
	"agentrun.dev/serve/s3/fault"
)

// tagging is the body of PutObjectTagging and PutBucketTagging.
type tagging struct {
	XMLName xml.Name `xml:"Tagging"`
	TagSet  *tagSet  `xml:"TagSet"`
}

type tagSet struct {
	Tag []struct {
		Key   string `xml:"Key"`
		Value string `xml:"Value"`
	} `xml:"Tag"`
}

// tags checks the tags of a request.
func (t *tagging) tags(limit int, tooMany string) (map[string]string, error) {
	if t.TagSet == nil {
		return nil, fault.MalformedXML
	}
	if len(t.TagSet.Tag) > limit {
		return nil, fault.BadRequest.Text(tooMany)
	}
	tags := make(map[string]string, len(t.TagSet.Tag))
	for _, tag := range t.TagSet.Tag {
		if err := checkTag(tag.Key, tag.Value); err != nil {
			return nil, err
		}
		if _, dup := tags[tag.Key]; dup {
			return nil, fault.InvalidTag.Text("Cannot provide multiple Tags with the same key").With("TagKey", tag.Key)
		}
		tags[tag.Key] = tag.Value
	}
	return tags, nil
}

func (c *call) sendTags(tags map[string]string) error {
	var x xmlDoc
	x.root("Tagging")
	x.open("TagSet")
	for _, name := range slices.Sorted(maps.Keys(tags)) {
		x.open("Tag")
		x.text("Key", name)
		x.text("Value", tags[name])
		x.close("Tag")
	}
	x.close("TagSet")
	x.close("Tagging")
	return c.sendXML(http.StatusOK, &x)
}

func (c *call) getTagging() error {
	v, err := c.view(c.r.Context())
	if err != nil {
		return err
	}
	defer v.Close()
	o, err := c.find(c.r.Context(), v, c.path, c.q.Get("versionId"))
	if err != nil {
		return err
	}
	if !o.Null {
		c.w.Header()["X-Amz-Version-Id"] = []string{wireVersion(o)}
	}
	return c.sendTags(o.Tags)
}

func (c *call) putTagging() error {
	var req tagging
	if err := c.readXML(&req, maxSettings); err != nil {
		return err
	}
	tags, err := req.tags(maxObjectTags, "Object tags cannot be greater than 10")
	if err != nil {
		return err
	}
	if err := c.setTags(tags); err != nil {
		return err
	}
	return c.ok()
}

func (c *call) deleteTagging() error {
	if err := c.setTags(nil); err != nil {
		return err
	}
	return c.noContent()
}

// setTags changes an object's tags and nothing else. Should the object be written meanwhile, it begins again.
func (c *call) setTags(tags map[string]string) error {
	ctx := c.r.Context()
	for range 10 {
		v, err := c.b.View(ctx)
		if err != nil {
			return err
		}
		o, err := c.find(ctx, v, c.path, c.q.Get("versionId"))
		v.Close()
		if err != nil {
			return err
		}
		changed := *o
		changed.Tags = tags
		op := bucket.Op{Kind: bucket.OpSetMeta, Key: c.path, Object: &changed, Version: o.Version,
			Cond: &bucket.Condition{IfVersion: o.Version}}
		if c.q.Get("versionId") != "" {
			op.Cond = nil
		} else {
			op.Version = 0
		}
		_, err = c.b.Apply(ctx, []bucket.Op{op}, bucket.ApplyOptions{})
		if errs.Is(err, errs.Precondition) || errs.Is(err, errs.NotFound) {
			continue
		}
		if err == nil && !o.Null {
			c.w.Header()["X-Amz-Version-Id"] = []string{wireVersion(o)}
		}
		return err
	}
	return fault.SlowDown
}

// Attributes that this protocol keeps with a bucket. Forks take their parent's.
const (
	attrTags      = "s3.tags"      // JSON object
	attrCORS      = "s3.cors"      // the XML document as it was put
	attrOwnership = "s3.ownership" // BucketOwnerEnforced and its like; "-" once deleted
)

func (c *call) getBucketTagging() error {
	info, err := c.info()
	if err != nil {
		return err
	}
	text := info.Attributes[attrTags]
	if text == "" {
		return fault.NoSuchTagSet.With("BucketName", c.name)
	}
	var tags map[string]string
	if err := json.Unmarshal([]byte(text), &tags); err != nil {
		return errs.New(errs.Corrupt, "read tags", c.name, err)
	}
	return c.sendTags(tags)
}

func (c *call) putBucketTagging() error {
	var req tagging
	if err := c.readXML(&req, maxSettings); err != nil {
		return err
	}
	tags, err := req.tags(maxBucketTags, "Bucket tag count cannot be greater than 50")
	if err != nil {
		return err
	}
	text, err := json.Marshal(tags)
	if err != nil {
		return err
	}
	if err := c.setAttribute(attrTags, string(text)); err != nil {
		return err
	}
	return c.noContent()
}

func (c *call) deleteBucketTagging() error {
	if err := c.setAttribute(attrTags, ""); err != nil {
		return err
	}
	return c.noContent()
}

// info describes the call's bucket.
func (c *call) info() (*bucket.Info, error) {
	info, err := c.store.Info(c.r.Context(), c.name)
	return info, as(err, errs.NotFound, fault.NoSuchBucket.With("BucketName", c.name))
}

// setAttribute sets one of the bucket's attributes, or removes it if the value is empty.
func (c *call) setAttribute(name, value string) error {
	return c.update(func(i *bucket.Info) error {
		attrs := make(map[string]string, len(i.Attributes)+1)
		maps.Copy(attrs, i.Attributes)
		if attrs[name] = value; value == "" {
			delete(attrs, name)
		}
		i.Attributes = attrs
		return nil
	})
}

func (c *call) update(f func(*bucket.Info) error) error {
	_, err := c.store.Update(c.r.Context(), c.name, f)
	return as(err, errs.NotFound, fault.NoSuchBucket.With("BucketName", c.name))
}
