"""Times what agents do most, through E2B's SDK or our own, and prints milliseconds as JSON: sdks.py e2b|native ROUNDS."""
import json
import sys
import time

times = {"create": [], "exec": [], "write": [], "read": []}
DATA = bytes(range(256)) * 4096


def timed(what, call):
    start = time.perf_counter()
    got = call()
    times[what].append((time.perf_counter() - start) * 1000)
    return got


if sys.argv[1] == "e2b":
    from e2b import Sandbox

    def create():
        return Sandbox.create("base", timeout=120)

    def run(s):
        assert s.commands.run("true").exit_code == 0

    def write(s):
        s.files.write("/home/user/bench", DATA)

    def read(s):
        return bytes(s.files.read("/home/user/bench", format="bytes"))

    def end(s):
        s.kill()
else:
    from agent_run import Sandbox

    def create():
        return Sandbox.create(template="base")

    def run(s):
        assert s.exec("true", language="shell").exit_code == 0

    def write(s):
        s.files.write("/home/user/bench", DATA)

    def read(s):
        return s.files.read_bytes("/home/user/bench")

    def end(s):
        s.terminate()

for round in range(int(sys.argv[2]) + 1):
    s = timed("create", create)
    for _ in range(8):
        timed("exec", lambda: run(s))
        timed("write", lambda: write(s))
        assert timed("read", lambda: read(s)) == DATA
    end(s)
    if round == 0:  # connections, and code that runs for the first time
        for t in times.values():
            t.clear()
print(json.dumps(times))
