package git

// prepareFrom is prepare, with copies found among the files of a tree.
func (r *repo) prepareFrom(list []change, d *diffOptions, tree oid) []change {
	return r.prepare(list, d)
}
