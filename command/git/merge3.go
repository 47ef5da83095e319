package git

import (
	"bytes"
)

// region is a part of a three-way merge: lines of the base that one or both sides changed.
type region struct {
	base, ours, theirs [2]int // from, to
	kind               byte   // 'o' only ours, 't' only theirs, 'b' both the same, 'c' conflict
}

// merge3 merges two versions of a text that have a base, as diff3 does. With conflicts, the text has markers.
func merge3(base, ours, theirs []byte, labels [3]string, diff3 bool, favor string, step func(int)) (out []byte, conflicts int) {
	return merge3With(base, ours, theirs, labels, diff3, favor, 7, step)
}

// merge3With is merge3 with markers of a size.
func merge3With(base, ours, theirs []byte, labels [3]string, diff3 bool, favor string, size int, step func(int)) (out []byte, conflicts int) {
	lb, lo, lt := lines(base), lines(ours), lines(theirs)
	regions := mergeRegions(lb, lo, lt, step)
	var b bytes.Buffer
	at := 0 // in ours
	write := func(list [][]byte) {
		for _, l := range list {
			b.Write(l)
		}
	}
	side := func(list [][]byte) {
		write(list)
		if n := len(list); n > 0 && !bytes.HasSuffix(list[n-1], []byte{'\n'}) {
			b.WriteByte('\n')
		}
	}
	for _, g := range regions {
		write(lo[at:g.ours[0]])
		at = g.ours[1]
		o, t := lo[g.ours[0]:g.ours[1]], lt[g.theirs[0]:g.theirs[1]]
		switch g.kind {
		case 'o', 'b':
			write(o)
		case 't':
			write(t)
		default:
			switch favor {
			case "ours":
				write(o)
				continue
			case "theirs":
				write(t)
				continue
			case "union":
				side(o)
				write(t)
				continue
			}
			conflicts++
			eol := "\n"
			mark := func(c byte, label string) {
				b.Write(bytes.Repeat([]byte{c}, size))
				if label != "" {
					b.WriteString(" " + label)
				}
				b.WriteString(eol)
			}
			mark('<', labels[0])
			side(o)
			if diff3 {
				mark('|', labels[2])
				side(lb[g.base[0]:g.base[1]])
			}
			mark('=', "")
			side(t)
			mark('>', labels[1])
		}
	}
	write(lo[at:])
	return b.Bytes(), conflicts
}

// mergeRegions aligns both sides' changes on the base. Conflicts are then refined as git's xdl_merge does at its usual
// level: what both sides have alike inside of a conflict is taken out of it, and conflicts closer than 3 lines are joined.
func mergeRegions(lb, lo, lt [][]byte, step func(int)) []region {
	ho, ht := diffLines(lb, lo, spaceAll, step), diffLines(lb, lt, spaceAll, step)
	var list []region
	i, j := 0, 0
	dOurs, dTheirs := 0, 0 // how far the sides have moved against the base
	for i < len(ho) || j < len(ht) {
		switch {
		case j == len(ht) || i < len(ho) && ho[i].a1 < ht[j].a0:
			h := ho[i]
			list = append(list, region{[2]int{h.a0, h.a1}, [2]int{h.b0, h.b1}, [2]int{h.a0 + dTheirs, h.a1 + dTheirs}, 'o'})
			dOurs = h.b1 - h.a1
			i++
		case i == len(ho) || ht[j].a1 < ho[i].a0:
			h := ht[j]
			list = append(list, region{[2]int{h.a0, h.a1}, [2]int{h.a0 + dOurs, h.a1 + dOurs}, [2]int{h.b0, h.b1}, 't'})
			dTheirs = h.b1 - h.a1
			j++
		default:
			lo0 := min(ho[i].a0, ht[j].a0)
			hi := max(ho[i].a1, ht[j].a1)
			startO, startT := lo0+dOurs, lo0+dTheirs
			dOurs, dTheirs = ho[i].b1-ho[i].a1, ht[j].b1-ht[j].a1
			i++
			j++
			for {
				if i < len(ho) && ho[i].a0 <= hi {
					hi = max(hi, ho[i].a1)
					dOurs = ho[i].b1 - ho[i].a1
					i++
				} else if j < len(ht) && ht[j].a0 <= hi {
					hi = max(hi, ht[j].a1)
					dTheirs = ht[j].b1 - ht[j].a1
					j++
				} else {
					break
				}
			}
			g := region{[2]int{lo0, hi}, [2]int{startO, hi + dOurs}, [2]int{startT, hi + dTheirs}, 'c'}
			list = append(list, refine(g, lb, lo, lt, step)...)
		}
	}
	return join(list, lo)
}

// refine splits a conflict by comparing its sides.
func refine(g region, lb, lo, lt [][]byte, step func(int)) []region {
	o, t := lo[g.ours[0]:g.ours[1]], lt[g.theirs[0]:g.theirs[1]]
	hunks := diffLines(o, t, spaceAll, step)
	if len(hunks) == 0 {
		g.kind = 'b'
		return []region{g}
	}
	if len(o) == 0 || len(t) == 0 {
		return []region{g}
	}
	var out []region
	base := g.base
	for n, h := range hunks {
		sub := region{ours: [2]int{g.ours[0] + h.a0, g.ours[0] + h.a1}, theirs: [2]int{g.theirs[0] + h.b0, g.theirs[0] + h.b1}, kind: 'c'}
		// The base's lines belong to the first part; the others show none.
		sub.base = [2]int{base[1], base[1]}
		if n == 0 {
			sub.base = base
		}
		out = append(out, sub)
	}
	return out
}

// join makes one conflict of those that at most 3 lines of ours lie between.
func join(list []region, lo [][]byte) []region {
	var out []region
	for _, g := range list {
		if n := len(out); n > 0 && g.kind == 'c' && out[n-1].kind == 'c' && g.ours[0]-out[n-1].ours[1] <= 3 {
			p := &out[n-1]
			p.ours[1], p.theirs[1], p.base[1] = g.ours[1], g.theirs[1], max(p.base[1], g.base[1])
			continue
		}
		out = append(out, g)
	}
	return out
}
