// Package bucket is the forkable object store.
//
// A bucket is a namespace of objects that changes at its tip, one version at a time. A view is a state of a bucket that
// never changes: a tree of all its records, or an earlier view and the delta (the log of writes) since. A snapshot is a
// named view; a fork is a bucket that starts as a view of another, so both are O(1) whatever the size. A fold turns a
// view's delta into a new tree, in the background, without changing what the view shows. Payload, the objects' bytes,
// lies in segments beside the tree. What nothing shows any more is found by reference counts and collected.
package bucket
