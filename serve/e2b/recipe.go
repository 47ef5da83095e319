package e2b

import (
	"encoding/json"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"agentrun.dev/api"
	"agentrun.dev/errs"
)

// recipe is how a template is built: a Dockerfile, as the SDKs send it.
type recipe struct {
	FromImage         string          `json:"fromImage"`
	FromTemplate      string          `json:"fromTemplate"`
	FromImageRegistry json.RawMessage `json:"fromImageRegistry"`
	StartCmd          string          `json:"startCmd"`
	ReadyCmd          string          `json:"readyCmd"`
	Steps             []step          `json:"steps"`
	Force             bool            `json:"force"`
}

// step is an instruction of a recipe.
type step struct {
	Type      string   `json:"type"`
	Args      []string `json:"args"`
	FilesHash string   `json:"filesHash"`
	Force     bool     `json:"force"`
}

// Where a sandbox's users are at home, and where a build finds files.
const (
	homeDir   = "/home/user"
	filesDir  = "/.e2b-files" // a volume, that the last line of a build empties
	startFile = "/etc/e2b/start"
	readyFile = "/etc/e2b/ready"
	stepMark  = "# step "
	maxSteps  = 95 // lines of a build, with those of its own
)

// readyTries bounds the waits for a start command, of half a second each.
const readyTries = 240

// script makes the lines of a build out of steps.
type script struct {
	spec  *api.TemplateSpec
	user  string
	dir   string
	at    int // step, from 1: the SDKs count the line that names the base as the first
	files map[string]bool
}

// translate makes a template's spec of a recipe.
func (h *Handler) translate(r *request, b *asked, in *recipe) (*api.TemplateSpec, api.Labels, error) {
	const op = "start build"
	if given(in.FromImageRegistry) {
		return nil, nil, errs.Msg(errs.Unsupported, op, "fromImageRegistry", "this server fetches no images from registries")
	}
	spec := &api.TemplateSpec{}
	s := &script{spec: spec, user: "user", dir: homeDir, files: map[string]bool{}}
	switch {
	case in.FromTemplate != "":
		c, err := readName(in.FromTemplate)
		if err != nil {
			return nil, nil, err
		}
		t, err := h.newest(r, c.name)
		if err != nil {
			return nil, nil, err
		}
		version, err := versionOf(t, c)
		if err != nil {
			return nil, nil, err
		}
		v, err := h.Control.Template(r.Context(), r.who, c.name, version)
		if err != nil {
			return nil, nil, err
		}
		*spec = v.Spec
		if t.Labels[labelUser] != "" {
			s.user = t.Labels[labelUser]
		}
		if t.Labels[labelDir] != "" {
			s.dir = t.Labels[labelDir]
		}
		if in.StartCmd == "" && in.ReadyCmd == "" && t.Labels[labelStart] != "" {
			in.StartCmd = inherited
		}
		if slices.ContainsFunc(spec.Volumes, func(v api.Volume) bool { return v.Path == filesDir }) && slices.ContainsFunc(in.Steps, func(s step) bool { return s.Type == "COPY" }) {
			return nil, nil, errs.Msg(errs.Unsupported, op, clip(in.FromTemplate), "a template with files that is made of another with files").
				WithHint("copy all files in one template, or write them in sandboxes")
		}
		spec.Init = slices.Clone(spec.Init)
		spec.Volumes = slices.Clone(spec.Volumes)
	case in.FromImage != "":
		if !strings.HasPrefix(in.FromImage, "e2bdev/") {
			spec.Image = in.FromImage
		}
		spec.Network = api.NetworkPolicy{Egress: "allow"}
		s.line(sudoers)
	default:
		return nil, nil, errs.Msg(errs.Invalid, op, "fromImage, fromTemplate", "want one of them")
	}
	env := map[string]string{}
	for k, v := range spec.Env {
		env[k] = v
	}
	spec.Env = env
	if b.resources.CPU > 0 {
		spec.Resources.CPU = b.resources.CPU
	}
	if b.resources.Memory > 0 {
		spec.Resources.Memory = b.resources.Memory
	}
	for i := range in.Steps {
		s.at = i + 1
		if err := s.add(&in.Steps[i]); err != nil {
			return nil, nil, err
		}
	}
	if len(s.files) > 0 {
		if err := h.checkFiles(r, b.name.name, s.files); err != nil {
			return nil, nil, err
		}
		spec.Volumes = append(spec.Volumes, api.Volume{Name: "e2b-files", Path: filesDir, Source: api.VolumeSource{Bucket: filesBucket(b.name.name)}})
		s.line("rm -rf " + filesDir + "/* || true")
	}
	if err := s.start(in); err != nil {
		return nil, nil, err
	}
	if len(spec.Init) > maxSteps {
		return nil, nil, errs.Msg(errs.Limit, op, "steps", fmt.Sprintf("more than %d, with those of the template that it is made of", maxSteps))
	}
	labels := api.Labels{labelUser: s.user, labelDir: s.dir}
	if b.name.text != b.name.name {
		labels[labelName] = b.name.text
	}
	if in.StartCmd != "" {
		labels[labelStart] = "1"
	}
	if len(s.dir) > piece || len(s.user) > piece {
		return nil, nil, errs.Msg(errs.TooLarge, op, "WORKDIR", "more than 256 bytes")
	}
	return spec, labels, nil
}

// inherited stands for the start command that the base template has in its files.
const inherited = "\x00"

// line adds a line that root runs.
func (s *script) line(text string) { s.spec.Init = append(s.spec.Init, text) }

// run adds a line that somebody runs where the build is.
func (s *script) run(user, command string) {
	var b strings.Builder
	fmt.Fprintf(&b, "%s%d\n", stepMark, s.at)
	b.WriteString(s.as(user, s.dir, command))
	s.line(b.String())
}

// as is a shell line that runs a command as a user, with the environment so far, in a folder.
func (s *script) as(user, dir, command string) string {
	home := homeDir
	if user == "root" {
		home = "/root"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "export HOME=%s USER=%s LOGNAME=%s\n", home, user, user)
	for _, k := range sortedKeys(s.spec.Env) {
		fmt.Fprintf(&b, "export %s=%s\n", k, quote(s.spec.Env[k]))
	}
	inner := "cd " + quote(dir) + " || exit\n" + command
	if user == "root" {
		b.WriteString(inner)
	} else {
		fmt.Fprintf(&b, "exec chroot --userspec=%s:%s / bash -c %s", user, user, quote(inner))
	}
	return b.String()
}

var variable = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// add adds an instruction.
func (s *script) add(in *step) error {
	bad := func(text string) error {
		return errs.Msg(errs.Invalid, "start build", fmt.Sprintf("step %d (%s)", s.at, clip(in.Type)), text)
	}
	for _, a := range in.Args {
		if !utf8.ValidString(a) || strings.ContainsRune(a, 0) {
			return bad("an argument isn't text")
		}
	}
	arg := func(i int) string {
		if i < len(in.Args) {
			return in.Args[i]
		}
		return ""
	}
	switch strings.ToUpper(in.Type) {
	case "RUN":
		user := arg(1)
		if user == "" {
			user = s.user
		}
		if arg(0) == "" || len(in.Args) > 2 {
			return bad("want a command, and perhaps a user")
		}
		if err := checkUser(user); err != nil {
			return bad(err.Error())
		}
		s.run(user, arg(0))
	case "WORKDIR":
		if len(in.Args) != 1 || arg(0) == "" {
			return bad("want one folder")
		}
		s.dir = s.resolve(arg(0))
		s.line(fmt.Sprintf("%s%d\nmkdir -p %s && { [ %s = root ] || chown %s %s; }", stepMark, s.at, quote(s.dir), s.user, s.user, quote(s.dir)))
	case "USER":
		if len(in.Args) != 1 {
			return bad("want one user")
		}
		if err := checkUser(arg(0)); err != nil {
			return bad(err.Error())
		}
		s.user = arg(0)
	case "ENV", "ARG":
		if len(in.Args) == 0 || len(in.Args)%2 != 0 {
			return bad("want names and values")
		}
		for i := 0; i < len(in.Args); i += 2 {
			if !variable.MatchString(in.Args[i]) {
				return bad("the name of a variable is letters, digits and '_', and doesn't begin with a digit: " + clip(in.Args[i]))
			}
			s.spec.Env[in.Args[i]] = in.Args[i+1]
		}
	case "COPY", "ADD":
		return s.copy(in, arg, bad)
	default:
		return bad("this server builds with RUN, COPY, ENV, WORKDIR and USER")
	}
	return nil
}

// resolve is a path as it stands in a recipe, made absolute.
func (s *script) resolve(p string) string {
	switch {
	case p == "~" || strings.HasPrefix(p, "~/"):
		p = homeDir + p[1:]
	case !strings.HasPrefix(p, "/"):
		p = s.dir + "/" + p
	}
	return path.Clean(p)
}

// checkUser refuses users that userspace hasn't got.
func checkUser(user string) error {
	if user != "user" && user != "root" {
		return errs.Msg(errs.Unsupported, "find user", clip(user), "there are user and root")
	}
	return nil
}

var mode = regexp.MustCompile(`^0?[0-7]{3,4}$`)

// copy adds the copying of files that were sent: what matches the source goes to a folder, or a single file to a name.
func (s *script) copy(in *step, arg func(int) string, bad func(string) error) error {
	if len(in.Args) < 2 || arg(0) == "" || arg(1) == "" || !isHash(in.FilesHash) {
		return bad("want a source, a destination and the hash of the files")
	}
	if src := path.Clean(arg(0)); path.IsAbs(src) || src == ".." || strings.HasPrefix(src, "../") {
		return bad("the source is outside of the context")
	}
	user := arg(2)
	if user == "" {
		user = s.user
	}
	user, _, _ = strings.Cut(user, ":")
	if err := checkUser(user); err != nil {
		return bad(err.Error())
	}
	if m := arg(3); m != "" && !mode.MatchString(m) {
		return bad("the mode isn't octal: " + clip(m))
	}
	dest := s.resolve(arg(1))
	if strings.HasSuffix(arg(1), "/") && dest != "/" {
		dest += "/"
	}
	s.files[in.FilesHash] = true
	var b strings.Builder
	fmt.Fprintf(&b, "%s%d\nset -e\nt=$(mktemp -d)\n", stepMark, s.at)
	fmt.Fprintf(&b, "if [ \"$(head -c 2 %[1]s/%[2]s | od -An -tx1 | tr -d ' \\n')\" = 1f8b ]; then tar -xzf %[1]s/%[2]s -C \"$t\"; else tar -xf %[1]s/%[2]s -C \"$t\"; fi\n",
		filesDir, in.FilesHash)
	fmt.Fprintf(&b, "d=%s\nset -- \"$t\"/%s\n", quote(dest), glob(path.Clean(arg(0))))
	b.WriteString("[ -e \"$1\" ] || { echo \"nothing matches the source\" >&2; exit 1; }\n")
	b.WriteString("owned() { chown -R " + user + ":" + user + " \"$1\"" + chmod(arg(3)) + "; }\n")
	b.WriteString("up=$(dirname \"${d%/}\"); n=; while [ ! -e \"$up\" ]; do n=$up; up=$(dirname \"$up\"); done\n")
	b.WriteString("for s in \"$@\"; do\n" +
		"  if [ -d \"$s\" ]; then mkdir -p \"$d\"; owned \"$s\"; cp -a \"$s/.\" \"$d/\"\n" +
		"  elif [ $# -gt 1 ] || [ -d \"$d\" ] || [ \"${d%/}\" != \"$d\" ]; then mkdir -p \"$d\"; owned \"$s\"; cp -a \"$s\" \"${d%/}/\"\n" +
		"  else mkdir -p \"$(dirname \"$d\")\"; owned \"$s\"; cp -a \"$s\" \"$d\"\n  fi\ndone\n")
	b.WriteString("[ -z \"$n\" ] || chown -R " + user + ":" + user + " \"$n\"\n[ ! -d \"$d\" ] || chown " + user + ":" + user + " \"$d\"\nrm -rf \"$t\"\n")
	s.line(b.String())
	return nil
}

func chmod(mode string) string {
	if mode == "" {
		return ""
	}
	return " && chmod -R " + mode + " \"$1\""
}

// start keeps the start and the ready command, and tries them: a template whose command doesn't get ready isn't built.
func (s *script) start(in *recipe) error {
	for _, c := range []string{in.StartCmd, in.ReadyCmd} {
		if c != inherited && (strings.ContainsRune(c, 0) || len(c) > 16<<10) {
			return errs.Msg(errs.Invalid, "start build", "startCmd, readyCmd", "want text of at most 16 KiB")
		}
	}
	keep := func(file, command string) string {
		return fmt.Sprintf("mkdir -p /etc/e2b && printf %%s %s > %s && chmod 755 %s\n", quote(command), file, file)
	}
	s.at++
	var b strings.Builder
	fmt.Fprintf(&b, "%sfinalize\n", stepMark)
	if in.StartCmd != "" && in.StartCmd != inherited {
		b.WriteString(keep(startFile, s.as(s.user, s.dir, "exec bash -l -c "+quote(in.StartCmd))))
		b.WriteString("rm -f " + readyFile + "\n")
	}
	if in.ReadyCmd != "" {
		b.WriteString(keep(readyFile, s.as(s.user, s.dir, in.ReadyCmd)))
		start := ""
		if in.StartCmd != "" {
			start = "bash " + startFile + " </dev/null & p=$!\n"
		}
		b.WriteString(start + "ok=1\nfor i in $(seq " + strconv.Itoa(readyTries) + "); do if bash " + readyFile + " </dev/null; then ok=0; break; fi; sleep 0.5; done\n")
		if start != "" {
			b.WriteString("kill $p 2>/dev/null; wait $p 2>/dev/null\n")
		}
		b.WriteString("[ $ok = 0 ] || echo 'the ready command never succeeded' >&2\nexit $ok")
	}
	if in.StartCmd != "" && in.StartCmd != inherited || in.ReadyCmd != "" {
		s.line(b.String())
	}
	return nil
}

// quote makes a text one word of a shell line.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// glob is quote for a pattern, which stays one.
func glob(s string) string {
	var b strings.Builder
	for _, c := range s {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', strings.ContainsRune("/._-*?[]", c):
			b.WriteRune(c)
		default:
			b.WriteString(quote(string(c)))
		}
	}
	return b.String()
}

func sortedKeys(m map[string]string) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}
