# What a Python session needs when its results are told richly: as messages of media types, like those of a notebook's kernel. See node/session.go.
import __main__, ast, base64, builtins, json, linecache, os, re, subprocess, sys, traceback, types

call, count, semicolon = None, 0, False
LIMIT = 12 << 20  # bytes of a message
METHODS = {
    "text/html": "_repr_html_", "text/markdown": "_repr_markdown_", "image/svg+xml": "_repr_svg_", "image/png": "_repr_png_", "image/jpeg": "_repr_jpeg_",
    "application/pdf": "_repr_pdf_", "text/latex": "_repr_latex_", "application/json": "_repr_json_", "application/javascript": "_repr_javascript_",
    "e2b/data": "_repr_e2b_data_", "e2b/chart": "_repr_e2b_chart_",
}


def tell(message):
    for s in (sys.stdout, sys.stderr):
        try:
            s.flush()
        except Exception:
            pass
    text = json.dumps(message, default=plain).encode()
    if len(text) > LIMIT:
        text = json.dumps({"data": {"text/plain": "a result of %d bytes, which is too large to be shown" % len(text)}, "main": bool(message.get("main"))}).encode()
    send(out, call["marker"] + b'{"rich":' + text + b"}\n")


def plain(value):
    """What JSON has no form of: bytes as base64, numbers of other kinds as numbers, everything else as it prints."""
    if isinstance(value, (bytes, bytearray, memoryview)):
        return base64.b64encode(bytes(value)).decode()
    for convert in ("item", "tolist"):
        f = getattr(value, convert, None)
        if callable(f):
            try:
                return f()
            except Exception:
                pass
    return str(value)


def begin(r):
    global call, count, semicolon
    call = r
    if count > 0:
        r["dir"] = ""  # it is where the session begins, not where each text runs
    text = r["text"].rstrip()
    semicolon = text.endswith(";")
    builtins.display = display
    if text:
        count += 1
        tell({"count": count})


def end():
    global call
    try:
        figures()
    except Exception:
        traceback.print_exc()
    call = None


def pretty(value):
    """As it prints; containers that don't fit a line have a line for each item."""
    text = repr(value)
    if len(text) > 79 and type(value) in (list, tuple, dict, set, frozenset):
        import pprint
        return pprint.pformat(value, width=79, sort_dicts=False)
    return text


def bundle(value):
    """The forms of a value by media type."""
    data = {}
    if isinstance(value, type) or callable(getattr(value, "_agentrun_has_every_attribute_", None)):
        return {"text/plain": pretty(value)}
    whole = getattr(value, "_repr_mimebundle_", None)
    if callable(whole):
        try:
            got = whole(include=None, exclude=None)
        except Exception as e:
            complain(e)
            got = None
        if isinstance(got, tuple):
            got = got[0]
        if isinstance(got, dict):
            data.update(got)
    for media, name in METHODS.items():
        f = getattr(value, name, None) if media not in data else None
        if not callable(f):
            continue
        try:
            got = f()
        except NotImplementedError:
            continue
        except Exception as e:
            complain(e)
            continue
        if isinstance(got, tuple) and len(got) == 2 and isinstance(got[1], dict):
            got = got[0]  # and metadata
        if got is not None:
            data[media] = got
    if type(value) in (list, dict) and "application/json" not in data:
        try:
            data["application/json"] = json.loads(json.dumps(value))
        except (TypeError, ValueError, RecursionError):
            pass
    pandas = sys.modules.get("pandas")
    if pandas is not None and isinstance(value, getattr(pandas, "DataFrame", ())):
        data["e2b/data"] = {str(k): [v.isoformat() if isinstance(v, pandas.Timestamp) else v for v in column] for k, column in value.to_dict(orient="list").items()}
    if "text/plain" not in data:
        data["text/plain"] = pretty(value)
    return data


def complain(e):
    """A form that can't be made isn't the program's failure."""
    sys.stderr.write("".join(traceback.format_exception(type(e), e, e.__traceback__.tb_next if e.__traceback__ else None)))


def display(*values, include=None, exclude=None, metadata=None, raw=False, display_id=None, transient=None, clear=False, **more):
    """Shows values in all the forms that they have."""
    for value in values:
        data = dict(value) if raw and isinstance(value, dict) else bundle(value)
        if include is not None:
            data = {k: v for k, v in data.items() if k in include}
        if exclude is not None:
            data = {k: v for k, v in data.items() if k not in exclude}
        if call is not None:
            tell({"data": data})
        elif "text/plain" in data:
            print(data["text/plain"])


def result(value):
    figures()
    if value is None or semicolon:
        return ""
    data = bundle(value)
    builtins._ = value
    tell({"data": data, "main": True})
    return data.get("text/plain", "") if isinstance(data.get("text/plain"), str) else ""


def figures():
    """What was drawn with matplotlib, where that is installed."""
    plot = sys.modules.get("matplotlib.pyplot")
    if plot is None or not hasattr(plot, "get_fignums"):
        return
    import io
    for n in plot.get_fignums():
        figure, b = plot.figure(n), io.BytesIO()
        figure.savefig(b, format="png", bbox_inches="tight")
        data = bundle(figure)
        data["image/png"] = base64.b64encode(b.getvalue()).decode()
        tell({"data": data})
        plot.close(figure)


def excerpt(file, line, around=2):
    """The lines of a program around one."""
    lines = linecache.getlines(file)
    text = []
    for n in range(max(1, line - around), min(len(lines), line + around) + 1):
        number = "-" * max(1, 5 - len(str(n))) + "> " + str(n) if n == line else "%7d" % n
        text.append(number + " " + lines[n - 1].rstrip("\n"))
    return "\n".join(text)


def place(file, line, name):
    cell = re.match(r"<cell (\d+)>$", file)
    where = "Cell In[%s], line %d" % (cell.group(1), line) if cell else "File %s:%d" % (file, line)
    return where + ("" if name in (None, "<module>") else ", in %s(...)" % name)


def trace(e, tb, seen=()):
    """The traceback of an error, with what led to it."""
    parts = []
    before = e.__cause__ or (None if e.__suppress_context__ else e.__context__)
    if before is not None and id(before) not in seen and len(seen) < 20:
        parts.append(trace(before, before.__traceback__, seen + (id(e),)))
        parts.append("The above exception was the direct cause of the following exception:" if e.__cause__ else "During handling of the above exception, another exception occurred:")
    kind = type(e).__name__
    if isinstance(e, SyntaxError):
        where = place(e.filename or "<string>", e.lineno or 1, None)
        code = (e.text or "").rstrip("\n")
        at = max((e.offset or 1) - 1, 0)
        text = "  %s\n    %s\n    %s^\n%s: %s" % (where, code, " " * at, kind, e.msg)
    else:
        frames = [f for f in traceback.extract_tb(tb) if f.filename != "<agentrun>"]
        if len(frames) > 40:
            frames = frames[:20] + frames[-20:]
        lines = ["-" * 75, "%s%s" % (kind, "Traceback (most recent call last)".rjust(75 - len(kind)))]
        for f in frames:
            lines.append(place(f.filename, f.lineno, f.name) + "\n" + excerpt(f.filename, f.lineno) + "\n")
        text = "\n".join(lines) + "\n" + "".join(traceback.format_exception_only(type(e), e)).rstrip()
    return "\n\n".join(parts + [text])


def error(e, tb):
    try:
        value = str(e)
    except Exception:
        value = "<an error that can't be printed>"
    try:
        text = trace(e, tb)
    except Exception:
        text = "".join(traceback.format_exception(type(e), e, tb))
    tell({"error": {"name": type(e).__name__, "value": value, "traceback": text[:1 << 20]}})


def exit(e):
    error(e, None)
    return 0 if e.code is None else e.code & 0xff if isinstance(e.code, int) else 1


def shell(line):
    """Runs a line that began with an exclamation mark."""
    for s in (sys.stdout, sys.stderr):
        s.flush()
    status = subprocess.call(["bash", "-c", line])
    __main__._exit_code = status


def chdir(path):
    os.chdir(os.path.expanduser(path.strip().strip("\"'") or "~"))
    print(os.getcwd())


def setenv(text):
    name, _, value = text.strip().partition("=")
    os.environ[name.strip()] = value.strip()


MAGIC = {"cd": "chdir", "env": "setenv", "set_env": "setenv"}


def parse(text, name):
    """A notebook's text: Python, with lines for the shell."""
    __main__.__dict__.setdefault("display", display)
    try:
        return ast.parse(text, name)
    except SyntaxError:
        if not re.search(r"^\s*[!%]", text, re.M):
            raise
        wrong = sys.exc_info()[1]
    builtins.__agentrun_notebook__ = types.SimpleNamespace(shell=shell, chdir=chdir, setenv=setenv)
    whole = re.match(r"\s*%%(bash|sh|script bash)[ \t]*\n(.*)", text, re.S)
    if whole:
        return ast.parse("__agentrun_notebook__.shell(%r)" % whole.group(2), name)

    def line(m):
        indent, mark, rest = m.groups()
        if mark == "!":
            return "%s__agentrun_notebook__.shell(%r)" % (indent, rest)
        word, _, tail = rest.partition(" ")
        if word in MAGIC:
            return "%s__agentrun_notebook__.%s(%r)" % (indent, MAGIC[word], tail)
        if word in ("pip", "bash", "sh", "ls", "cat", "mkdir", "rm", "mv", "cp", "pwd"):
            return "%s__agentrun_notebook__.shell(%r)" % (indent, rest)
        if word in ("matplotlib", "load_ext", "autoreload", "config"):
            return indent + "pass"
        return m.group()
    try:
        return ast.parse(re.sub(r"^([ \t]*)([!%])(.*)$", line, text, flags=re.M), name)
    except SyntaxError:
        raise wrong from None


# Programs import display and the like from IPython, which is a large package; where it isn't installed, these stand in for it.
def media(name, mime, base64ed=False):
    def __init__(self, data=None, url=None, filename=None, metadata=None, **more):
        if filename is not None and data is None:
            with open(filename, "rb" if base64ed else "r") as f:
                data = f.read()
        self.data, self.url, self.metadata = data, url, metadata or {}

    def _repr_mimebundle_(self, include=None, exclude=None):
        kind = mime
        if name == "Image":
            head = bytes(self.data[:4]) if isinstance(self.data, (bytes, bytearray)) else b""
            if self.url is not None and self.data is None:
                return {"text/html": '<img src="%s"/>' % self.url}
            kind = "image/jpeg" if head[:2] == b"\xff\xd8" else "image/gif" if head[:3] == b"GIF" else "image/png"
        return {kind: self.data, "text/plain": "<IPython.core.display.%s object>" % name}
    return type(name, (), {"__init__": __init__, "_repr_mimebundle_": _repr_mimebundle_, "__module__": "IPython.core.display"})


class Stand:
    """Finds the stand-ins last, so that the real package comes first."""
    names = ("IPython", "IPython.display", "IPython.core", "IPython.core.display")

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name in cls.names:
            import importlib.machinery
            return importlib.machinery.ModuleSpec(name, cls, is_package=name in ("IPython", "IPython.core"))
        return None

    @staticmethod
    def create_module(spec):
        return None

    @staticmethod
    def exec_module(module):
        shown = {"display": display, "clear_output": lambda wait=False: None, "update_display": lambda *a, **k: display(*a), "DisplayHandle": type("DisplayHandle", (), {})}
        for name, mime in (("HTML", "text/html"), ("Markdown", "text/markdown"), ("SVG", "image/svg+xml"), ("Latex", "text/latex"), ("Math", "text/latex"),
                           ("JSON", "application/json"), ("Javascript", "application/javascript"), ("Image", "image/png"), ("Pretty", "text/plain")):
            shown[name] = media(name, mime, name == "Image")
        if module.__name__ == "IPython":
            shown = {"get_ipython": lambda: None, "version_info": (8, 0, 0), "__version__": "8.0.0"}
        if module.__name__ != "IPython.core":
            module.__dict__.update(shown)


sys.meta_path.append(Stand)
