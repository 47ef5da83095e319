package envsubst_test

import (
	"testing"

	"agentrun.dev/command"
	"agentrun.dev/command/commandtest"
)

func TestEnvsubst(t *testing.T) {
	commands := command.NewSet(nil)
	for _, stdin := range []string{"x $HOME ${TZ} ${NO} $ $$HOME ${HOME:-d} \\$HOME \"$HOME\" $1 ${HOME", "no newline $TZ", "", "$", "${}", "$HOME$TZ${HOME}x", "${HOME}\n\n$_\n$HOMEé ${HO ME}\n"} {
		commandtest.Run(t, commands, commandtest.Table{Stdin: stdin, Lines: []string{"envsubst", "envsubst '$TZ'", "envsubst '${TZ} $HOME'", "envsubst ''", "envsubst -v '$TZ ${HOME} $TZ x'",
			"envsubst --variables ''", "envsubst -v", "envsubst a b", "envsubst --foo"}})
	}
}
