// Package archive is tar and unzip, as GNU tar 1.34 and Info-ZIP's UnZip 6.0.
//
// An archive holds members. A member's name says where it goes when it is extracted, which an archive's author may have
// chosen to do harm: names lose their leading slash and what leads out of the directory, members with ".." in their
// names are refused, and symbolic links that point elsewhere are made last, so that no member is written through one.
// Contents are streamed; what an archive can make a command hold in memory is bounded (maxNames, maxMeta).
package archive

// maxMeta bounds a single piece of an archive's metadata: a long name, a pax header, a comment.
const maxMeta = 1 << 20

// maxNames bounds how many members a command remembers, for hard links, directories' times and the like.
const maxNames = 4 << 20
