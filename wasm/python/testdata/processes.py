# Programs started from here.
import os, shutil, subprocess, sys

print(subprocess.run(["echo", "a", "b"], capture_output=True, text=True).stdout)
print(subprocess.check_output(["cat"], input=b"through a pipe"))
p = subprocess.Popen([sys.executable, "-c", "import sys; print(sys.stdin.read().upper()); print('e', file=sys.stderr); sys.exit(7)"],
                     stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
print(p.communicate("hello"), p.returncode)
print(subprocess.run([sys.executable, "-c", "import os; print(os.environ['X'], os.getcwd())"], env={"X": "1", "PATH": os.environ["PATH"]}, cwd="/", capture_output=True, text=True).stdout)
try:
    subprocess.run(["no-such-program"])
except FileNotFoundError as e:
    print(e)
try:
    subprocess.run(["echo"], cwd="/no/such/folder")
except FileNotFoundError as e:
    print(e)
try:
    subprocess.run([sys.executable, "-c", "import time; time.sleep(60)"], timeout=0.3)
except subprocess.TimeoutExpired as e:
    print(type(e).__name__)
try:
    subprocess.check_call([sys.executable, "-c", "raise SystemExit(3)"])
except subprocess.CalledProcessError as e:
    print(e.returncode)
p = subprocess.Popen([sys.executable, "-c", "import time; print('up', flush=True); time.sleep(60)"], stdout=subprocess.PIPE)
print(p.stdout.readline())
p.terminate()
print(p.wait())
r, w = os.pipe()
subprocess.run([sys.executable, "-c", f"import os; os.write({w}, b'kept')"], pass_fds=[w])
os.close(w)
print(os.read(r, 10))
a = subprocess.Popen(["echo", "1"], stdout=subprocess.PIPE)
b = subprocess.Popen(["cat"], stdin=a.stdout, stdout=subprocess.PIPE)
print(b.communicate())
print(shutil.which("echo") is not None, shutil.which("no-such-program"))
print(subprocess.run([sys.executable, "-c", "print(1)"], stdout=subprocess.DEVNULL).returncode)
big = subprocess.run(["cat"], input=b"x" * 1000000, stdout=subprocess.PIPE)
print(len(big.stdout))
sys.stdout.flush()
pid = os.spawnlp(os.P_NOWAIT, "echo", "echo", "spawned")
print(os.waitpid(pid, 0)[1])

# A filter that gives more than it takes: neither side may wait for the other.
code = "import sys\nfor line in sys.stdin:\n    for i in range(20): sys.stdout.write(line)"
r = subprocess.run(["python3", "-c", code], input=b"some words of a line\n" * 20000, capture_output=True)
print(r.returncode, len(r.stdout))
r, w = os.pipe()
os.set_blocking(w, False)
total = 0
try:
    while True:
        total += os.write(w, b"x" * 1000)
except BlockingIOError as e:
    print("full", total >= 64000, e.errno)
import select, stat
print(select.select([], [w], [], 0)[1] == [], select.select([r], [], [], 0)[0] == [r], stat.S_ISFIFO(os.fstat(w).st_mode))
os.read(r, 65536)
print(select.select([], [w], [], 0)[1] == [w])
