package cli

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
	"github.com/spf13/cobra"

	"agentrun.dev/client"
	"agentrun.dev/errs"
)

// place is one side of a copy: a path of this machine, "-" for a standard stream, or an object or prefix of a bucket.
type place struct {
	path        string
	bucket, key string
	at          string // version, snapshot or time of the bucket; "" is now
}

func (p place) remote() bool { return p.bucket != "" }

func (p place) String() string {
	if !p.remote() {
		return p.path
	}
	at := ""
	if p.at != "" {
		at = "@" + p.at
	}
	return "s3://" + p.bucket + at + "/" + p.key
}

func parsePlace(s string) (place, error) {
	rest, ok := strings.CutPrefix(s, "s3://")
	if !ok {
		if s == "" {
			return place{}, usage("cp", "an empty path")
		}
		return place{path: s}, nil
	}
	name, key, _ := strings.Cut(rest, "/")
	name, at, _ := strings.Cut(name, "@")
	if name == "" {
		return place{}, usage(s, "want s3://BUCKET/KEY")
	}
	return place{bucket: name, key: key, at: at}, nil
}

func (a *app) cp() *cobra.Command {
	var recursive bool
	var jobs int
	cmd := &cobra.Command{
		Use:   "cp [-r] SOURCE TARGET",
		Short: "Copy files into a bucket or a sandbox, or out of one",
		Long: `Copy files into a bucket or out of one, over S3. One of SOURCE and TARGET is s3://BUCKET/KEY, the other
a path of this machine, or - for the standard input or output. s3://BUCKET@SNAPSHOT/KEY reads a bucket
as it was. ID:PATH is a file of a sandbox, by its id or name; a relative one begins at its workspace.

With -r, everything beneath a folder or prefix is copied; what else is at the target stays. Only regular
files are copied: symbolic links and devices are passed over, and counted. Files out of a bucket are
written beneath TARGET only, whatever their keys say.`,
		Example: a.example(`
  agentrun cp report.txt s3://task-42/out/
  agentrun cp -r . s3://agent-base/src/
  agentrun cp -r s3://task-42/results/ ./results
  agentrun cp s3://agent-base@before-upgrade/config.json -
  agentrun cp data.csv alice:inputs/
  agentrun cp -r alice:/workspace/results ./results`),
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if handled, err := a.copySandbox(cmd.Context(), args[0], args[1], recursive); handled {
				return err
			}
			src, err := parsePlace(args[0])
			if err != nil {
				return err
			}
			dst, err := parsePlace(args[1])
			if err != nil {
				return err
			}
			switch {
			case src.remote() == dst.remote():
				return usage("cp", "one side must be s3://BUCKET/KEY or SANDBOX:PATH, the other a path")
			case dst.at != "":
				return usage(dst.String(), "the past can't be written")
			case jobs < 1 || jobs > 256:
				return usage("--jobs", "want 1 to 256")
			case recursive && (src.path == "-" || dst.path == "-"):
				return usage("cp -r", "a stream isn't a folder")
			}
			return a.advise(a.copy(cmd.Context(), src, dst, recursive, jobs))
		},
	}
	cmd.Flags().BoolVarP(&recursive, "recursive", "r", false, "everything beneath a folder or prefix")
	cmd.Flags().IntVar(&jobs, "jobs", 32, "how many files at once, 1 to 256: `N`")
	return cmd
}

// copied is what a copy prints as JSON.
type copied struct {
	Files   uint64  `json:"files"`
	Bytes   uint64  `json:"bytes"`
	Skipped uint64  `json:"skipped"`
	Seconds float64 `json:"seconds"`
}

func (a *app) copy(ctx context.Context, src, dst place, recursive bool, jobs int) error {
	s3, err := a.s3(ctx)
	if err != nil {
		return err
	}
	begun := time.Now()
	t := &transfer{s3: s3, a: a, jobs: jobs, meter: a.out.meter()}
	switch {
	case src.remote() && recursive:
		err = t.download(ctx, src, dst)
	case src.remote():
		err = t.downloadOne(ctx, src, dst)
	case recursive:
		err = t.upload(ctx, src, dst)
	default:
		err = t.uploadOne(ctx, src, dst)
	}
	t.meter.done()
	if err != nil {
		return err
	}
	took := time.Since(begun)
	if a.json && dst.path != "-" {
		return a.out.json(copied{t.files.Load(), t.bytes.Load(), t.skipped.Load(), took.Seconds()})
	}
	if n := t.skipped.Load(); n > 0 {
		fmt.Fprintf(a.Stderr, "%s: passed over %s that can't be kept as an object\n", a.Name, count(n, "file"))
	}
	if dst.path != "-" {
		a.out.printf("copied %s, %s to %s in %.2f s\n", count(t.files.Load(), "file"), size(t.bytes.Load()), dst, took.Seconds())
	}
	return nil
}

// s3 returns an S3 client for the server, in the name of the key that all commands use.
func (a *app) s3(ctx context.Context) (*minio.Core, error) {
	vars, err := a.variables(ctx, "")
	if err != nil {
		return nil, err
	}
	env := map[string]string{}
	for _, v := range vars {
		env[v.name] = v.value
	}
	t, err := a.find()
	if err != nil {
		return nil, err
	}
	u, err := url.Parse(env["AWS_ENDPOINT_URL_S3"])
	if err != nil || u.Host == "" {
		return nil, errs.Msg(errs.Unavailable, "cp", t.endpoint, "the server doesn't say where its S3 is")
	}
	tr := http.DefaultTransport.(*http.Transport).Clone()
	tr.MaxIdleConnsPerHost = 256
	tr.DisableCompression = true // an object's bytes are what they are
	if len(t.ca) > 0 {
		pool, err := x509.SystemCertPool()
		if err != nil {
			pool = x509.NewCertPool()
		}
		pool.AppendCertsFromPEM(t.ca)
		tr.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	}
	core, err := minio.NewCore(u.Host, &minio.Options{
		Creds:  credentials.NewStaticV4(env["AWS_ACCESS_KEY_ID"], env["AWS_SECRET_ACCESS_KEY"], ""),
		Secure: u.Scheme == "https", Transport: tr, Region: env["AWS_REGION"], BucketLookup: minio.BucketLookupPath,
	})
	if err != nil {
		return nil, errs.New(errs.Invalid, "cp", u.Host, err)
	}
	return core, nil
}

// s3Error turns an answer of S3 into an error of ours.
func s3Error(op, thing string, err error) error {
	if err == nil {
		return nil
	}
	if errs.KindOf(err) != errs.Other {
		return err
	}
	r := minio.ToErrorResponse(err)
	kind := errs.Other
	switch {
	case r.StatusCode == http.StatusNotFound:
		kind = errs.NotFound
	case r.StatusCode == http.StatusForbidden, r.StatusCode == http.StatusUnauthorized:
		kind = errs.Denied
	case r.StatusCode == http.StatusBadRequest:
		kind = errs.Invalid
	case r.StatusCode == http.StatusConflict, r.StatusCode == http.StatusPreconditionFailed:
		kind = errs.Conflict
	case r.StatusCode == http.StatusInsufficientStorage:
		kind = errs.NoSpace
	case r.StatusCode == http.StatusServiceUnavailable, r.StatusCode == 0 && r.Code == "":
		kind = errs.Unavailable
	}
	text := first(r.Message, err.Error())
	if r.Code != "" && r.Code != "InternalError" {
		text = r.Code + ": " + text
	}
	return errs.Msg(kind, op, thing, text)
}

// version resolves the point of a place to what the S3 extension takes; "" is now.
func (a *app) pointVersion(ctx context.Context, c *client.Client, p place) (string, error) {
	if p.at == "" || !strings.ContainsFunc(p.at, func(r rune) bool { return r < '0' || r > '9' }) {
		return p.at, nil
	}
	// A comparison of the point with itself costs nothing and names its version.
	point := p.bucket + "@" + p.at
	res, err := c.Diff(ctx, point, point, "", nil)
	if err != nil {
		return "", err
	}
	return res.From.Version.String(), nil
}
