// Package text holds small tools that turn text into other text and don't come from coreutils: column, col, colrm, look,
// rename, cal, iconv, dos2unix and asa, most of them as util-linux has them.
package text

import "agentrun.dev/command/tool"

// utilLinux is the version that util-linux's commands report.
const utilLinux tool.Package = "util-linux) 2.38.1"

// maxText bounds what a tool keeps of its input in memory.
const maxText = 256 << 20
