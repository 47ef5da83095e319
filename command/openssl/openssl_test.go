package openssl_test

import (
	"testing"

	"agentrun.dev/command"
	"agentrun.dev/command/commandtest"
)

func TestOpenssl(t *testing.T) {
	commandtest.Run(t, command.NewSet(nil), commandtest.Table{
		Loose: true,
		Stdin: "input\n",
		Setup: []string{"f h.txt hello\n", "f empty ", "f b64 aGVsbG8K\n", "f pw pw\n", "f long 0123456789012345678901234567890123456789012345678901234567890123456789\n", "f sealed n1mBenOAifl+Jr00328TYA==\n"},
		Lines: []string{
			"openssl dgst -sha256 h.txt", "openssl dgst h.txt", "openssl sha1 h.txt", "openssl md5", "openssl dgst -r -sha256 h.txt empty", "openssl dgst -sha256 -hmac key h.txt", "openssl dgst -c -sha512 h.txt", "openssl dgst -binary -md5 h.txt",
			"openssl sha3-256 h.txt", "openssl sha512-256 h.txt", "openssl dgst nope", "openssl dgst -foo h.txt", "openssl sha256 h.txt nope", "openssl dgst -sha256 -out o h.txt", "openssl dgst -sha256 -hex h.txt", "openssl foo", "openssl base64 -in h.txt", "openssl base64 -in long",
			"openssl base64 -A -in long", "openssl base64 -d -in b64", "openssl enc -base64 -in h.txt", "openssl enc -d -base64 -in b64", "openssl base64 -in nope", "openssl base64 -in empty", "openssl base64 -in h.txt -out o", "openssl enc -aes-256-cbc -pbkdf2 -k pw -S 0102030405060708 -in h.txt -a",
			"openssl enc -aes-256-cbc -pbkdf2 -k pw -S 0102030405060708 -in sealed -a -d", "openssl enc -aes-128-cbc -k pw -S 0102030405060708 -in h.txt -a", "openssl aes-256-cbc -pbkdf2 -pass pass:pw -nosalt -in h.txt", "openssl enc -aes-256-ctr -pbkdf2 -iter 10 -pass file:pw -nosalt -in h.txt -a",
			"openssl enc -aes-256-cbc -K 00112233 -iv 00 -in long -a", "openssl enc -aes-192-ecb -K 00 -in long -a", "openssl enc -d -aes-256-cbc -pbkdf2 -k bad -in h.txt", "openssl enc -d -aes-256-cbc -pbkdf2 -k bad -S 0102030405060708 -a -in sealed", "openssl enc -foo", "openssl enc -aes-256-cbc -md md5 -k pw -nosalt -a -in h.txt",
			"openssl rand -hex 0", "openssl rand -foo 3",
		},
	})
	table := commandtest.Table{}
	for _, c := range []struct {
		args []string
		want int
	}{{[]string{"-hex", "16"}, 33}, {[]string{"-base64", "48"}, 65}, {[]string{"10"}, 10}} {
		if r := table.Sandbox(t, command.NewSet(nil), append([]string{"openssl", "rand"}, c.args...), ""); len(r.Stdout) != c.want {
			t.Errorf("%q: %q", c.args, r.Stdout)
		}
	}
}
