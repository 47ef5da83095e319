# The driver of Python sessions. It reads requests from what was its standard input, and runs each in __main__. See node/session.go.
import __main__, ast, base64, builtins, gc, inspect, io, json, linecache, os, re, signal, sys, tempfile, traceback

requests, out, err = os.dup(0), os.dup(1), os.dup(2)
cells, given = 0, {}
rich = None  # what rich.py defines, once a call wants it
PLAIN = (ast.Expr, ast.Name, ast.Attribute, ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.operator, ast.unaryop, ast.boolop, ast.cmpop, ast.expr_context)
NOT_PLAIN = re.compile(r"[^\w\s.+\-*/%<>!=&|^~;\\#]")
MAX_RESULT = 1 << 20


def exactly(n):
    parts = []
    while n > 0:
        b = os.read(requests, min(n, 1 << 20))
        if not b:
            os._exit(0)
        parts.append(b)
        n -= len(b)
    return b"".join(parts)


def receive():
    kind, marker, extra, text = exactly(int(exactly(9))).split(b"\0", 3)
    r = json.loads(extra) if extra else {}
    r["kind"], r["marker"], r["text"] = kind, marker, text.decode()
    return r


def send(fd, data):
    while data:
        data = data[os.write(fd, data):]


def reply(r, answer):
    for s in (sys.stdout, sys.stderr):
        try:
            s.flush()
        except Exception:
            pass
    send(err, r["marker"] + b"\n")
    if not answer.get("result") and "status" in answer:
        text = b'{"status": %d}' % answer["status"]
    else:
        text = json.dumps(answer).encode()
    send(out, r["marker"] + text + b"\n")


def environment(new):
    """What a claim gave before goes; what it gives now comes."""
    for k, v in given.items():
        if k not in new and v is None:
            os.environ.pop(k, None)
        elif k not in new:
            os.environ[k] = v
    for k in [k for k in given if k not in new]:
        del given[k]
    for k, v in new.items():
        given.setdefault(k, os.environ.get(k))
        os.environ[k] = v


def stdin(data):
    """Standard input is this call's own, and at its end where nothing is given."""
    if data:
        f = tempfile.TemporaryFile()
        f.write(data)
        f.flush()
        f.seek(0)
        fd = f.fileno()
        os.dup2(fd, 0)
        f.close()
    else:
        fd = os.open(os.devnull, os.O_RDONLY)
        os.dup2(fd, 0)
        os.close(fd)
    sys.stdin = sys.__stdin__ = open(0, "r", encoding="utf-8", errors="surrogateescape", closefd=False)


def stream(fd, saved, name, **how):
    """A program may have closed or exchanged the streams: each call begins with them as they were."""
    os.dup2(saved, fd)
    s = getattr(sys, name)
    if s is None or s.closed or s is not getattr(sys, "__%s__" % name):
        s = open(fd, "w", encoding="utf-8", closefd=False, **how)
        setattr(sys, name, s)
        setattr(sys, "__%s__" % name, s)


def word(text, tree):
    """The first word, where the text is nothing but names, attributes, numbers and operators."""
    if NOT_PLAIN.search(text):
        return ""
    for n in ast.walk(tree):
        if isinstance(n, ast.Constant):
            if not isinstance(n.value, (int, float, complex)):
                return ""
        elif not isinstance(n, PLAIN + (ast.Module,)):
            return ""
    found = re.match(r"[^\s;&|<>()$]+", text.strip())
    return found.group() if found else ""


def show(value):
    if rich is not None and rich["call"]:
        return rich["result"](value)
    if sys.displayhook is not sys.__displayhook__:
        sys.displayhook(value)
        return "" if value is None else repr(value)
    if value is None:
        return ""
    builtins._ = None
    text = repr(value)
    try:
        sys.stdout.write(text + "\n")
    except UnicodeEncodeError:
        sys.stdout.write(text.encode("utf-8", "backslashreplace").decode() + "\n")
    builtins._ = value
    return text


def execute(tree, name):
    """Runs statements; the value of a last expression is the result."""
    last = None
    if tree.body and isinstance(tree.body[-1], ast.Expr):
        last = ast.Expression(tree.body.pop().value)
    result = ""
    for part, mode in ((tree, "exec"), (last, "eval")):
        if part is None or mode == "exec" and not part.body:
            continue
        code = compile(part, name, mode, flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
        value = eval(code, __main__.__dict__)
        if code.co_flags & inspect.CO_COROUTINE:
            import asyncio
            value = asyncio.run(value)
        if mode == "eval":
            result = show(value)
    return result


def failed(e):
    """Prints an error as the interpreter does, without the frames of this driver."""
    tb = e.__traceback__
    while tb is not None and tb.tb_frame.f_code.co_filename == "<agentrun>":
        tb = tb.tb_next
    e.__traceback__ = tb
    if rich is not None and rich["call"]:
        sys.last_type, sys.last_value, sys.last_traceback = type(e), e, tb
        return rich["error"](e, tb)
    if isinstance(e, SyntaxError) and tb is None and (e.filename or "").startswith("<cell "):
        e.filename = "<stdin>"
    sys.last_type, sys.last_value, sys.last_traceback = type(e), e, tb
    if sys.excepthook is not sys.__excepthook__:
        try:
            return sys.excepthook(type(e), e, tb)
        except BaseException:
            pass
    text = "".join(traceback.format_exception(type(e), e, tb))
    sys.stderr.write(re.sub(r'File "<cell \d+>"', 'File "<stdin>"', text))


def status(e):
    if e.code is None:
        return 0
    if isinstance(e.code, int):
        return e.code & 0xff
    sys.stderr.write(str(e.code) + "\n")
    return 1


def run(r, text, tree, name):
    answer = {"status": 0}
    try:
        # From here on, and no earlier, an interrupt is the program's.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        if tree is None:
            tree = rich["parse"](text, name) if r.get("rich") else ast.parse(text, name)
        answer["result"] = execute(tree, name)[:MAX_RESULT]
    except SystemExit as e:
        answer["status"] = rich["exit"](e) if rich is not None and rich["call"] else status(e)
    except KeyboardInterrupt as e:
        failed(e)
        answer["status"] = 130
    except BaseException as e:
        failed(e)
        answer["status"] = 1
    return answer


def richly(r):
    """A call whose results are told as messages: see rich.py, which only sandboxes need that have such calls."""
    global rich
    if rich is None:
        rich = {"__name__": "agentrun", "send": send, "out": out}
        exec(compile(RICH, "<agentrun>", "exec"), rich)
    rich["begin"](r)


def call(r):
    global cells
    text, tree = r["text"], None
    name = "<cell %d>" % (cells + 1)
    if r["kind"] == b"auto":
        try:
            tree = ast.parse(text, name)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return {"other": True}
        found = word(text, tree)
        if found:
            return {"word": found}
    cells += 1
    linecache.cache[name] = (len(text), None, [l + "\n" for l in text.split("\n")], name)
    if r.get("claim") is not None:
        environment(r["claim"])
    if r.get("rich"):
        richly(r)
    if r.get("dir"):
        try:
            os.chdir(r["dir"])
        except OSError as e:
            sys.stderr.write("%s: %s\n" % (r["dir"], e.strerror))
            return {"status": 1}
    stdin(base64.b64decode(r.get("stdin") or ""))
    own = r.get("env") or {}
    before = {k: os.environ.get(k) for k in own}
    os.environ.update(own)
    try:
        return run(r, text, tree, name)
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        if r.get("rich"):
            rich["end"]()
        for k, v in before.items():
            if v is None:
                os.environ.pop(k, None)
            else:
                os.environ[k] = v


def main():
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.argv = [""]
    sys.stdout.reconfigure(line_buffering=True)
    stdin(b"")
    # What is there now isn't looked at again: a fork of the sandbox shares its memory.
    gc.collect()
    gc.freeze()
    while True:
        r = receive()
        send(out, r["marker"] + b"\n")
        stream(1, out, "stdout", errors="surrogateescape", buffering=-1)
        sys.stdout.reconfigure(line_buffering=True)
        stream(2, err, "stderr", errors="backslashreplace", buffering=1)
        try:
            answer = {"status": 0} if r["kind"] == b"sync" else call(r)
        except KeyboardInterrupt:
            answer = {"status": 130}
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        reply(r, answer)


main()
