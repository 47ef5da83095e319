// Package files has the tests of files that run inside of a microVM: a volume, which is a filesystem of ours over virtio-fs, is what a
// kernel's own filesystem is.
package files
