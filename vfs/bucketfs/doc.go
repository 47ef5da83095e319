// Package bucketfs is a filesystem over a bucket. The bucket's keys are the only truth: the path of a file is its key.
//
// # Directories
//
// A directory exists wherever keys share a prefix up to a slash, or where a directory record says so (bucket.Dir, made by
// mkdir) or a zero-byte object "dir/" (made by S3 clients). Unlinking the last file of a directory that only keys implied
// writes its record, so that it stays. Access, change and modification times of directories move in memory as entries come
// and go, and are stored with the directory's next change of attributes.
//
// # Names
//
// Most parts of keys are names as they are. The rest is shown escaped, so that nothing is invisible and every name leads
// back to its key:
//
//   - an empty part (of a key with "//", or a leading or trailing slash), ".", "..", a part with a zero byte, and a part
//     that looks like one of these escapes: "%=" and the part, in which "%" is "%25", a zero byte "%00", and the dots of
//     "." and ".." are "%2E";
//   - the object "a" beside "a/b": the directory is a, the object is "a%=";
//   - a part of more than 255 bytes: directories "%+" and 80 bytes each, the last piece as "%=" and the rest.
//
// Names that begin with "%=" or "%+", or end with "%=", can't be created (EINVAL) unless they are such an escape.
//
// # Visibility and durability
//
// Whatever changes names is in the bucket when it returns, but durable only with the next fsync (or sync of the bucket).
// Bytes written are seen by all users of the FS at once; S3 and other mounts see them when a descriptor of the file is
// closed or synced, and a new file as a whole then: one write of the bucket. When the FS holds back more than
// Options.Dirty bytes, the largest file is written out early. If two mounts create the same file, the last one closed wins.
//
// What S3 clients and other mounts write is seen at the next lookup. A PUT over an open file makes another file: open
// descriptors keep the old one, as if it had been unlinked. A rename by another mount doesn't: what is written to an open file goes to the key
// that it has by then, for which the whole bucket is searched once.
//
// In a bucket with versioning every close of a changed file is a version, and a write to one of several hard links parts it
// from the others.
//
// Inode numbers derive from object ids, which a PUT changes and a write keeps. A file made here gets its lasting number
// when it is first written out, but shows the first one for as long as the FS remembers it.
package bucketfs
