// Package yq is `yq` as Mike Farah's version 4: an evaluator of its language, and its input and output formats.
//
// Vocabulary: a node is a piece of a document (map, sequence, scalar or alias) that knows its parent and its key there. An
// expression turns a list of nodes (the matches) into another. What a path doesn't find is a null node that isn't part
// of its parent yet; assigning to it makes it one, and its parents too. Operators of equal rank group to the right, as in
// the original: 10 - 3 - 2 is 9.
//
// Comments and styles come from go.yaml.in/yaml/v3 and go back to it. There is no system operator, and no Lua, HCL or INI.
package yq
