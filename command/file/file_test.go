package file_test

import (
	"testing"

	"agentrun.dev/command"
	"agentrun.dev/command/commandtest"
)

func TestFile(t *testing.T) {
	setup := []string{"f t hi\n", "f u h\u00e4\n", "f l1 h\xe4\n", "f crlf a\r\nb\r\n", "f mix a\r\nb\n", "f ne noeol", "f sh #!/bin/sh\necho\n", "f py #!/usr/bin/env python3\nx\n", "f ba #!/bin/bash\n", "f j {\"a\":1}\n", "f x <?xml version=\"1.0\"?><a/>\n", "f h <!DOCTYPE html><html></html>\n", "f p %PDF-1.4\n", "f e ", "f d \x00\x01\x02", "f b BZh91AY&SY", "f w \x00asm\x01\x00\x00\x00", "f png \x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x10\x00\x00\x00\x20\x08\x06\x00\x00\x00", "f gif GIF89a\x10\x00\x20\x00\x00\x00\x00", "l ln t", "l dang no", "d dir", "f list t\nu\n"}
	commandtest.Run(t, command.NewSet(nil), commandtest.Table{Setup: setup, Loose: true, Lines: []string{
		"file t u l1 crlf mix ne", "file sh py ba", "file j x h p", "file e d", "file b w", "file png gif", "file ln dang dir", "file -L ln dang", "file -i t u l1 sh py j x h p e d b w png gif ln dir", "file --mime-type t png", "file -b t", "file -bi t", "file -f list", "file -F = t", "file nope", "file dang"}})
}
