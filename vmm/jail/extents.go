package jail

import (
	"encoding/binary"
	"encoding/json"
	"errors"

	"agentrun.dev/vmm/memory"
)

// extents are those of an image on the wire, in order: for each the pages between the one before and it, how many it has, and its
// layer. As objects they would take each child longer to read than to map.
type extents []memory.Extent

// MarshalJSON writes them as bytes.
func (e extents) MarshalJSON() ([]byte, error) {
	b := make([]byte, 0, 8*len(e))
	at := uint64(0)
	for _, x := range e {
		b = binary.AppendUvarint(b, (x.Off-at)/memory.PageSize)
		b = binary.AppendUvarint(b, (x.End-x.Off)/memory.PageSize)
		b = binary.AppendUvarint(b, uint64(x.Layer))
		at = x.End
	}
	return json.Marshal(b)
}

// maxPages is more than an image can have.
const maxPages = 1 << 36

var errExtents = errors.New("a list of extents is broken")

// UnmarshalJSON reads them. Whether they suit an image is for memory.Import to say.
func (e *extents) UnmarshalJSON(text []byte) error {
	var b []byte
	if err := json.Unmarshal(text, &b); err != nil {
		return err
	}
	if len(b) > 3*binary.MaxVarintLen64*memory.MaxExtents {
		return errExtents
	}
	out := make(extents, 0, min(len(b)/3, memory.MaxExtents))
	at := uint64(0)
	for len(b) > 0 {
		var v [3]uint64
		for i := range v {
			n := 0
			if v[i], n = binary.Uvarint(b); n <= 0 || v[i] > maxPages {
				return errExtents
			}
			b = b[n:]
		}
		x := memory.Extent{Off: at + v[0]*memory.PageSize, Layer: int(v[2])}
		if x.End = x.Off + v[1]*memory.PageSize; x.End > maxPages*memory.PageSize || len(out) == memory.MaxExtents {
			return errExtents
		}
		at = x.End
		out = append(out, x)
	}
	*e = out
	return nil
}
