package system

import (
	"fmt"

	"agentrun.dev/command/tool"
)

// Locale tells the locale, of which there is one: C.UTF-8, with C and POSIX as its other names.
func Locale(t *tool.T) int {
	args := t.Args()[1:]
	if len(args) == 0 {
		lang, all := t.Getenv("LANG"), t.Getenv("LC_ALL")
		fmt.Fprintf(t.Out, "LANG=%s\nLANGUAGE=%s\n", lang, t.Getenv("LANGUAGE"))
		for _, name := range []string{"CTYPE", "NUMERIC", "TIME", "COLLATE", "MONETARY", "MESSAGES", "PAPER", "NAME", "ADDRESS", "TELEPHONE", "MEASUREMENT", "IDENTIFICATION"} {
			own := t.Getenv("LC_" + name)
			switch {
			case all != "":
				fmt.Fprintf(t.Out, "LC_%s=\"%s\"\n", name, all)
			case own != "":
				fmt.Fprintf(t.Out, "LC_%s=%s\n", name, own)
			case lang != "":
				fmt.Fprintf(t.Out, "LC_%s=\"%s\"\n", name, lang)
			default:
				fmt.Fprintf(t.Out, "LC_%s=\"POSIX\"\n", name)
			}
		}
		fmt.Fprintf(t.Out, "LC_ALL=%s\n", all)
		return 0
	}
	values := map[string]string{"charmap": "UTF-8", "decimal_point": ".", "thousands_sep": "", "codeset": "UTF-8", "yesexpr": "^[yY]", "noexpr": "^[nN]", "d_fmt": "%m/%d/%y", "t_fmt": "%H:%M:%S", "d_t_fmt": "%a %b %e %H:%M:%S %Y",
		"abday": "Sun;Mon;Tue;Wed;Thu;Fri;Sat", "day": "Sunday;Monday;Tuesday;Wednesday;Thursday;Friday;Saturday", "abmon": "Jan;Feb;Mar;Apr;May;Jun;Jul;Aug;Sep;Oct;Nov;Dec"}
	keyword, status := false, 0
	for _, a := range args {
		switch a {
		case "-a", "--all-locales":
			t.Out.WriteString("C\nC.utf8\nPOSIX\n")
		case "-m", "--charmaps":
			t.Out.WriteString("UTF-8\n")
		case "-k", "--keyword-name":
			keyword = true
		case "-c", "--category-name":
		default:
			v, ok := values[a]
			if !ok {
				t.Out.Flush()
				fmt.Fprintf(t.Stderr(), "locale: unknown name \"%s\"\n", a)
				status = 1
				continue
			}
			if keyword {
				v = a + "=\"" + v + "\""
			}
			fmt.Fprintln(t.Out, v)
		}
	}
	return status
}
