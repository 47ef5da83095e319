package archive_test

import (
	"archive/tar"
	"bytes"
	"io"
	"strings"
	"testing"
	"time"

	"agentrun.dev/command"
	"agentrun.dev/command/commandtest"
)

// long is a name that doesn't fit a header.
var long = strings.Repeat("n", 120)

func TestTarCreate(t *testing.T) {
	commandtest.Run(t, command.NewSet(nil), commandtest.Table{Setup: []string{"f a hello\n", "x run #!/bin/sh\n", "d d", "f d/b two\n", "h d/h a", "l l a", "l up ../x", "l abs /etc/passwd", "f " + long + " long\n", "l ll " + long + long, "d d/.git", "f d/.git/c x", "f d/x~ y", "f list a\nd/b\n", "f nul a\x00d/b\x00", "f ex *.o\nb\n", "f old.tar junk", "f empty ", "d e"},
		Lines: []string{
			"tar cf - a", "tar cf - a run d/b", "tar cf - d/b", "tar cf - e", "tar cf - " + long, "tar cf - l ll", "tar cf - up abs", "tar cf - a d/h", "tar cf out.tar a", "tar cf old.tar a", "tar -cf out.tar a run", "tar -cvf out.tar a e", "tar cvvf out.tar a l run", "tar c a", "tar -c a", "tar cvf - a e",
			"tar cf - --owner=root --group=sys --mtime=@1234567890 a", "tar cf - --owner=0 --group=0 --numeric-owner a", "tar cf - --owner=joe:1234 --group=grp:4321 a", "tar cf - --owner=9999999 --group=8888888 a", "tar cf - --mode=a+x a", "tar cf - --mode=600 a run", "tar cf - --mtime='2020-01-01 00:00:00 UTC' a", "tar cf - --clamp-mtime --mtime=@0 a", "tar cf - --mtime=./a run",
			"tar cf - --format=ustar a l run e", "tar cf - --format=v7 a l e", "tar cf - --format=ustar " + long, "tar cf - --format=v7 " + long, "tar cf - --format=oldgnu a " + long, "tar cf - --format=posix --pax-option=delete=atime,delete=ctime a", "tar cf - --format=posix --pax-option=delete=atime,delete=ctime " + long, "tar cf - --format=pax --pax-option=exthdr.name=%d/X/%f,delete=atime,delete=ctime " + long,
			"tar cf - -b 1 a", "tar cf - -C d b", "tar cf - a -C d b x~", "tar cf - -T list", "tar cf - --null -T nul", "tar cf - -T empty", "tar cf - --mtime=@1000000000 --sort=name d", "tar cf - --sort=name --exclude=b d", "tar cf - --mtime=@1000000000 --sort=name --exclude='*~' --exclude-vcs d", "tar cf - --mtime=@1000000000 --sort=name -X ex d", "tar cf - --mtime=@1000000000 --sort=name --exclude=d/b --exclude=.git d", "tar cf - --mtime=@1000000000 --no-recursion d", "tar cf - --sort=name --exclude-backups d/x~ d/b",
			"tar cf - --transform=s/a/b/ a", "tar cf - --transform=s,^,pre/, a l", "tar cf - --xform='s/\\(.\\)/\\U\\1/g' run", "tar cf - --xform='s/a/b/S' a l", "tar cf - --xform='flags=r;s/a/b/' a l", "tar cf - -h l", "tar cf - --hard-dereference a d/h", "tar cf - ./a", "tar cf - ./e/", "tar cf - nope a", "tar cf - nope", "tar cf out.tar", "tar", "tar --badopt", "tar cf", "tar -z", "tar cxf out.tar a", "tar cf /nodir/x.tar a", "tar cf - -C nodir a", "tar cf out.tar out.tar a",
			"tar cf - --remove-files a", "tar cvf out.tar --remove-files --mtime=@1000000000 --sort=name d", "tar cf - --newer-mtime=@1704164700 a run", "tar cvf out.tar --show-transformed-names --xform=s/a/zzz/ a", "tar czf - a", "tar czf out.tgz a run", "tar caf out.tar.gz a", "tar -I 'gzip -9' -cf out a", "tar cf out.tar a --exclude=a",
		}})
}

// evil is an archive whose members try to leave the directory.
func evil() string {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	add := func(h tar.Header, data string) {
		h.Size, h.ModTime, h.Format = int64(len(data)), time.Unix(1e9, 0), tar.FormatUSTAR
		if h.Mode == 0 {
			h.Mode = 0o644
		}
		w.WriteHeader(&h)
		io.WriteString(w, data)
	}
	for _, name := range []string{"../up", "a/../../up2", "/task/abs", "fine", "x/../y"} {
		add(tar.Header{Name: name}, "hi")
	}
	add(tar.Header{Name: "out", Typeflag: tar.TypeSymlink, Linkname: "/tmp"}, "")
	add(tar.Header{Name: "out/through"}, "hi")
	add(tar.Header{Name: "dots", Typeflag: tar.TypeSymlink, Linkname: "../.."}, "")
	add(tar.Header{Name: "dots/through"}, "hi")
	add(tar.Header{Name: "hard", Typeflag: tar.TypeLink, Linkname: "../../etc/passwd"}, "")
	add(tar.Header{Name: "hard2", Typeflag: tar.TypeLink, Linkname: "/etc/hosts-none"}, "")
	w.Close()
	return b.String()
}

// pack makes an archive with the tool itself.
func pack(t *testing.T, setup []string, words ...string) string {
	t.Helper()
	table := commandtest.Table{Setup: setup}
	r := table.Sandbox(t, command.NewSet(nil), words, "")
	if r.Status != 0 || r.Stderr != "" {
		t.Fatalf("%q: status %d, %s", words, r.Status, r.Stderr)
	}
	return r.Stdout
}

func TestTarExtract(t *testing.T) {
	files := []string{"f a hello\n", "x run #!/bin/sh\n", "d d", "d d/s", "f d/b two\n", "h d/h a", "l d/l b", "l up ../x", "f " + long + " long\n"}
	plain := pack(t, files, "tar", "cf", "-", "--owner=root:0", "--group=root:0", "--sort=name", "--mtime=@1700000000", "a", "run", "d", "up", long)
	gz := pack(t, files, "tar", "czf", "-", "--owner=root:0", "--group=root:0", "--sort=name", "--mtime=@1700000000", "d", "a")
	pax := pack(t, files, "tar", "cf", "-", "--format=pax", "--pax-option=delete=atime,delete=ctime", "--owner=root:0", "--group=root:0", "a", "d/b", long)
	commandtest.Run(t, command.NewSet(nil), commandtest.Table{Setup: []string{"f p.tar " + plain, "f z.tgz " + gz, "f pax.tar " + pax, "f evil.tar " + evil(), "f junk this is no archive\n", "f block " + strings.Repeat("junk", 256), "f empty ", "f cut.tar " + plain[:700], "f cutz.tgz " + gz[:60], "d o", "f o/a other\n", "d d", "f d/b new\n", "f list a\nd/b\n"},
		Stdin: plain, Lines: []string{
			"tar tf p.tar", "tar tvf p.tar", "tar -tvf pax.tar", "tar tvvf p.tar", "tar tf z.tgz", "tar tzf z.tgz", "tar tjf z.tgz", "tar t", "tar tf - a", "tar tvf p.tar d", "tar tvf p.tar d/", "tar tf p.tar nope a", "tar tf p.tar --wildcards '*a*'", "tar tf p.tar '*a*'", "tar tf p.tar --exclude=d", "tar tf p.tar --exclude='*/b'", "tar tvf p.tar --full-time", "tar tvf p.tar --numeric-owner", "tar tf p.tar --xform=s,^,x/, --show-transformed-names", "tar tRf p.tar", "tar tf p.tar -T list", "tar tf p.tar --no-recursion d",
			"tar xf p.tar -C o", "tar xvf p.tar -C o", "tar xzf z.tgz -C o", "tar xf z.tgz -C o", "tar xf pax.tar -C o", "tar xf p.tar a", "tar xf p.tar d", "tar xf p.tar nope", "tar xf p.tar --strip-components=1", "tar xf p.tar -C o --strip-components=1", "tar xOf p.tar a d/b", "tar xvOf p.tar d/b", "tar xkf p.tar -C o", "tar xf p.tar -C o --skip-old-files", "tar xf p.tar -C o --overwrite", "tar xf p.tar -C o -U", "tar xf p.tar --keep-newer-files d/b",
			"tar xf p.tar -C o --xform=s/a/zz/", "tar xmf p.tar -C o", "tar xpf p.tar -C o", "tar x -C o", "tar xf p.tar -C nodir", "tar xf nope.tar", "tar tf junk", "tar tf block", "tar tzf junk", "tar tf empty", "tar tf cut.tar", "tar tf d", "tar xf evil.tar -C o", "tar xvf evil.tar -C o", "tar tvf evil.tar", "tar xf p.tar -C o --wildcards '*b'", "tar xf p.tar -C o --exclude=d/s", "tar xf p.tar --no-same-permissions -C o run",
			"tar df p.tar", "tar df p.tar d/b", "tar rf p.tar list", "tar rvf p.tar list", "tar rf z.tgz list", "tar uf p.tar d/b", "tar --delete -f p.tar a", "tar --delete -f p.tar d", "tar --delete -f p.tar nope", "tar Af p.tar pax.tar", "tar rf new.tar list",
		}})
}
