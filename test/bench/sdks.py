"""Times what agents do most, through E2B's SDK or our own: sdks.py e2b|native. Each line read is how often a round does everything; the
round's times are written as a line of JSON, in milliseconds."""
import gc
import json
import sys
import time

DATA = bytes(range(256)) * 4096

if sys.argv[1] == "e2b":
    from e2b import Sandbox

    def create():
        return Sandbox.create("base", timeout=120)

    def run(s):
        assert s.commands.run("true").exit_code == 0

    def write(s):
        s.files.write("/home/user/bench", DATA)

    def read(s):
        return s.files.read("/home/user/bench", format="bytes")

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


def timed(times, call):
    start = time.perf_counter()
    got = call()
    times.append((time.perf_counter() - start) * 1000)
    return got


for line in sys.stdin:
    times = {"create": [], "exec": [], "write": [], "read": []}
    for _ in range(int(line) - 1):
        end(timed(times["create"], create))
    s = timed(times["create"], create)
    for _ in range(int(line)):
        timed(times["exec"], lambda: run(s))
        timed(times["write"], lambda: write(s))
        assert timed(times["read"], lambda: read(s)) == DATA
    end(s)
    gc.collect()  # what is left of a round isn't the next one's
    print(json.dumps(times), flush=True)
