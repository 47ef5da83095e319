# Locks between processes.
import fcntl, os, sqlite3, subprocess, sys

f = open("locked", "w+")
f.write("x" * 100)
f.flush()
TRY = """
import fcntl, sys
f = open("locked", "r+")
for name, call in (("flock", lambda: fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)), ("shared", lambda: fcntl.flock(f, fcntl.LOCK_SH | fcntl.LOCK_NB)),
                   ("first", lambda: fcntl.lockf(f, fcntl.LOCK_EX | fcntl.LOCK_NB, 10, 0)), ("last", lambda: fcntl.lockf(f, fcntl.LOCK_EX | fcntl.LOCK_NB, 10, 90))):
    try:
        call()
        print(name, "got", end="; ")
    except OSError as e:
        print(name, e.errno, end="; ")
print()
"""


def child(code):
    print(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout, end="")


child(TRY)
fcntl.flock(f, fcntl.LOCK_EX)
child(TRY)
fcntl.flock(f, fcntl.LOCK_SH)
fcntl.lockf(f, fcntl.LOCK_EX, 50, 0)
child(TRY)
fcntl.lockf(f, fcntl.LOCK_UN, 20, 5)
child(TRY)
open("locked").close()
child(TRY)
waiter = subprocess.Popen([sys.executable, "-c", "import fcntl\nf = open('locked', 'r+')\nprint('waits', flush=True)\nfcntl.flock(f, fcntl.LOCK_EX)\nprint('has it')"],
                          stdout=subprocess.PIPE, text=True)
print(waiter.stdout.readline(), end="")
f.close()
print(waiter.stdout.read(), waiter.wait())

c = sqlite3.connect("base.db", timeout=0.1, isolation_level=None)
c.execute("create table t(a)")
WRITE = """
import sqlite3
c = sqlite3.connect("base.db", timeout=0.1)
try:
    c.execute("insert into t values (2)")
    c.commit()
    print("written")
except sqlite3.Error as e:
    print(e)
"""
c.execute("begin immediate")
c.execute("insert into t values (1)")
child(WRITE)
c.execute("commit")
child(WRITE)
print(c.execute("select * from t order by a").fetchall())
