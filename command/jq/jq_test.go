package jq_test

import (
	"testing"

	"agentrun.dev/command"
	"agentrun.dev/command/commandtest"
)

func TestJq(t *testing.T) {
	commandtest.Run(t, command.NewSet(nil), commandtest.Table{Setup: []string{`f a {"name":"x","age":3,"b":[1,2.5,null,true],"a":{"z":1,"y":"é"}}`, "f l [{\"n\":\"p\",\"v\":2},{\"n\":\"q\",\"v\":1}]\n", "f bad {\"a\":", "f prog .name", "f multi 1 2\n\"s\"\n"}, Stdin: `{"k":"v","c":[]}`, Loose: true, Lines: []string{
		"jq .", "jq . a", "jq -c . a", "jq .name a", "jq -r .name a", "jq -S . a", "jq -a .a a", "jq --tab . a", "jq --indent 1 . a", "jq '.b[]' a", "jq '.[] | .n' l", "jq 'map(.v)' l", "jq -c 'sort_by(.v)' l", "jq -c '.[] | {v, n}' l", "jq 'length' l", "jq 'keys' a", "jq -n '1+2'", "jq -n '[1,2]|add'", "jq -s . multi", "jq -R . multi", "jq -Rs . multi", "jq -j '.[].n' l", "jq --arg x 5 '$x' a", "jq --argjson x 5 '$x+1' a", "jq -n --args '$ARGS.positional' a b", "jq -f prog a", "jq -e .nope a", "jq -e .name a", "jq .a.b.c a", "jq '{' a", "jq .x nope", "jq -c '. + {c:3}' a", "jq -c 'to_entries' l", "jq 'select(.age>2).name' a", "jq -c '[.[]|select(.v==1)]' l", "jq -c '.[0].n=\"new\"' l", "jq -n '1e1000, 1e-5, 100000000000000000000, 3.0, 0.1'", "jq -c 'del(.b)' a", "jq '.age|tostring' a", "jq -r '.[]|[.n,.v]|@csv' l", "jq -r '.[]|\"\\(.n)=\\(.v)\"' l", "jq -n 'error(\"x\")'", "jq empty a", "jq --stream -c . l", "jq 'first(.[])' l", "jq -c 'group_by(.v)' l", "jq -c '.a|to_entries|map(.value)' l -e"},
	})
}
