package proc

import (
	"archive/zip"
	_ "embed"
	"encoding/binary"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"
)

// zoneinfo is where a sandbox may have its own time zones.
const zoneinfo = "/usr/share/zoneinfo/"

// zones is the IANA database as Go comes with it, in the public domain. It is embedded here because time.LoadLocation
// looks at the host's files first.
//
//go:embed zoneinfo.zip
var zones string

// zoneFiles finds a zone's file in the database.
var zoneFiles = sync.OnceValue(func() map[string]*zip.File {
	z, err := zip.NewReader(strings.NewReader(zones), int64(len(zones)))
	if err != nil {
		return nil // it can't be: the database is part of the program
	}
	files := make(map[string]*zip.File, len(z.File))
	for _, f := range z.File {
		files[f.Name] = f
	}
	return files
})

// Zone finds the time zone that a TZ variable names: empty is UTC, then a name, which read (may be nil) finds in the
// sandbox, then one of the IANA database, then a POSIX rule such as EST5EDT or <+03>-3. A zone that doesn't exist is UTC,
// as the C library has it. The host's zones are never looked at, so that a sandbox tells the same time everywhere.
func Zone(tz string, read func(path string) ([]byte, error)) *time.Location {
	tz = strings.TrimPrefix(tz, ":")
	if tz == "" || tz == "UTC" || tz == "UTC0" {
		return time.UTC
	}
	if strings.Contains(tz, "..") || strings.HasPrefix(tz, "/") || len(tz) > 255 {
		return time.UTC
	}
	if read != nil {
		if b, err := read(zoneinfo + tz); err == nil {
			if loc, err := time.LoadLocationFromTZData(tz, b); err == nil {
				return loc
			}
		}
	}
	if f := zoneFiles()[tz]; f != nil {
		if loc := embeddedZone(tz, f); loc != nil {
			return loc
		}
	}
	if loc := posixZone(tz); loc != nil {
		return loc
	}
	name, _ := zoneName(tz)
	if name == "" {
		name = "UTC"
	}
	return time.FixedZone(name, 0)
}

// ParseTZ is Zone without files of a sandbox.
func ParseTZ(tz string) *time.Location { return Zone(tz, nil) }

func embeddedZone(tz string, f *zip.File) *time.Location {
	r, err := f.Open()
	if err != nil {
		return nil
	}
	defer r.Close()
	b, err := io.ReadAll(r)
	if err != nil {
		return nil
	}
	loc, err := time.LoadLocationFromTZData(tz, b)
	if err != nil {
		return nil
	}
	return loc
}

// posixZone reads a POSIX TZ rule: std offset[dst[offset][,start,end]].
func posixZone(tz string) *time.Location {
	std, rest := zoneName(tz)
	if std == "" || rest == "" {
		return nil
	}
	offset, rest, ok := zoneOffset(rest)
	if !ok {
		return nil
	}
	if rest == "" {
		return time.FixedZone(std, -offset)
	}
	if dst, after := zoneName(rest); dst == "" {
		return nil
	} else if !strings.Contains(after, ",") {
		tz += ",M3.2.0,M11.1.0" // what the C library assumes
	}
	loc, err := time.LoadLocationFromTZData(tz, tzif(std, -offset, tz))
	if err != nil {
		return nil
	}
	return loc
}

func zoneName(s string) (name, rest string) {
	if strings.HasPrefix(s, "<") {
		if name, rest, ok := strings.Cut(s[1:], ">"); ok {
			return name, rest
		}
		return "", s
	}
	i := 0
	for i < len(s) && (s[i]|0x20 >= 'a' && s[i]|0x20 <= 'z') {
		i++
	}
	if i < 3 {
		return "", s
	}
	return s[:i], s[i:]
}

// zoneOffset reads [+-]hh[:mm[:ss]] as seconds.
func zoneOffset(s string) (seconds int, rest string, ok bool) {
	sign := 1
	if s != "" && (s[0] == '+' || s[0] == '-') {
		if s[0] == '-' {
			sign = -1
		}
		s = s[1:]
	}
	unit := 3600
	for unit > 0 {
		i := 0
		for i < len(s) && s[i] >= '0' && s[i] <= '9' && i < 3 {
			i++
		}
		if i == 0 {
			return 0, s, ok
		}
		n, _ := strconv.Atoi(s[:i])
		seconds += n * unit
		s, ok = s[i:], true
		unit /= 60
		if unit == 0 || s == "" || s[0] != ':' {
			break
		}
		s = s[1:]
	}
	return sign * seconds, s, ok
}

// tzif makes a time zone file without transitions, whose footer is the rule.
func tzif(name string, offset int, rule string) []byte {
	var b []byte
	header := func(version byte) {
		b = append(b, "TZif"...)
		b = append(b, version)
		b = append(b, make([]byte, 15)...)
		for _, n := range []uint32{0, 0, 0, 0, 1, uint32(len(name) + 1)} {
			b = binary.BigEndian.AppendUint32(b, n)
		}
		b = binary.BigEndian.AppendUint32(b, uint32(int32(offset)))
		b = append(b, 0, 0)
		b = append(b, name...)
		b = append(b, 0)
	}
	header('2')
	header('2')
	return fmt.Appendf(b, "\n%s\n", rule)
}
