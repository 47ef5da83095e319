package datetime

import (
	"os/exec"
	"testing"
	"time"
)

// gnu runs the host's date, the reference; without it the test says so and fails nothing that it could have shown.
func gnu(t *testing.T, args ...string) (string, bool) {
	t.Helper()
	path, err := exec.LookPath("date")
	if err != nil {
		t.Skip("no date on this machine to compare with; it runs wherever coreutils are installed")
	}
	cmd := exec.Command(path, args...)
	cmd.Env = []string{"TZ=UTC0", "LC_ALL=C.UTF-8"}
	out, err := cmd.Output()
	return string(out), err == nil
}

func TestFormatAgainstGNU(t *testing.T) {
	at := time.Date(2024, 2, 5, 3, 4, 9, 12345000, time.UTC)
	for _, f := range []string{"%a %A %b %B %h", "%c|%x|%X|%r|%R|%T|%D|%F", "%C %d %e %g %G %H %I %j %k %l %m %M %N %p %P %q %s %S",
		"%u %U %V %w %W %y %Y %z %:z %::z %:::z %Z %%", "%-d %_d %05d %^a %#a %#Z %10a %-j %_m %3N %-N %6N %_H %010Y %+4Y", "%n%t", "%Q %", "%^b%10B|%-10B|%010B",
		"%10c", "%_3S|%-S|%03S", "%E %Ey %Od", "%:", "%_5z %-z %010z", "%12N", "%10s|%-5s"} {
		want, _ := gnu(t, "-d", "@"+Format("%s.%N", at), "+"+f)
		if got := Format(f, at) + "\n"; got != want {
			t.Errorf("%q: got %q, want %q", f, got, want)
		}
	}
}

func TestParseAgainstGNU(t *testing.T) {
	now := time.Now().UTC()
	for _, s := range []string{"2024-01-02", "2024-01-02 03:04", "2024-01-02 03:04:05.678", "2024-01-02T03:04:05Z", "2024-01-02T03:04:05+02:00",
		"2024-01-02 03:04:05 +0200", "2024-01-02 03:04 PM", "2024-01-02 12am", "1/2/2024", "1/2/99", "2024/1/2", "Jan 2 2024", "January 2, 2024", "2 Jan 2024",
		"2-Jan-2024", "Tue Jan 2 03:04:05 UTC 2024", "Tue, 02 Jan 2024 03:04:05 +0000", "@0", "@1700000000.5", "@-5", "20240102", "20240102 0304", "20240102T0304",
		"2024-01-31 +1 month", "2024-01-31 1 day ago", "2024-01-31 -1 week", "2024-01-31 next year", "2024-03-01 yesterday", "2024-03-01 tomorrow 10:00",
		"2024-01-01 00:00 + 3 hours", "2024-01-01 12:00 2 hours ago", "2024-01-01 -3 hours", "2024-01-01 10:00 +1 hour", "2024-01-01 noon", "2024-01-01 UTC+3",
		"2024-01-02 03:04 EST", "last monday", "next friday", "monday", "sunday 10:00", "third thursday", "tomorrow 00:00", "yesterday 12:30", "midnight", "noon tomorrow",
		"12:34", "23:59:60", "24:00", "25:00", "2024-02-30", "2024-13-01", "garbage", "2024-01-02 xyz", "", "1 fortnight ago 00:00", "2024-06-01 last month", "2024-06-01 2 months",
		"10 September 2023", "Sep 10", "10pm", "2024-01-02 (comment) 10:00", "00:00 3 days ago", "00:00 next week", "2024-01-02 00:00:00 1 year ago 2 days"} {
		want, ok := gnu(t, "-d", s, "+%Y-%m-%d %H:%M")
		at, err := Parse(s, now, nil)
		if ok != (err == nil) {
			t.Errorf("%q: error %v, but date: %v", s, err, ok)
			continue
		}
		if got := Format("%Y-%m-%d %H:%M\n", at); ok && got != want {
			t.Errorf("%q: got %q, want %q", s, got, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("next monday 10:00 +0200")
	f.Add(`TZ="A" @12`)
	f.Fuzz(func(t *testing.T, s string) {
		if at, err := Parse(s, time.Unix(0, 0).UTC(), func(string) *time.Location { return time.UTC }); err == nil {
			Format(s, at)
		}
	})
}
