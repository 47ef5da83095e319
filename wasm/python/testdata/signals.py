import os, signal, time

got = []
signal.signal(signal.SIGUSR1, lambda n, f: got.append(n))
os.kill(os.getpid(), signal.SIGUSR1)
print(got)
signal.signal(signal.SIGALRM, lambda n, f: got.append("alarm"))
signal.setitimer(signal.ITIMER_REAL, 0.02)
t = time.monotonic()
while len(got) < 2 and time.monotonic() < t + 10:
    pass
print(got)
signal.setitimer(signal.ITIMER_REAL, 0.02)
time.sleep(0.1)
print(got)


class Late(Exception):
    pass


def late(n, f):
    raise Late


signal.signal(signal.SIGALRM, late)
signal.setitimer(signal.ITIMER_REAL, 0.02)
try:
    time.sleep(30)
except Late:
    print("late")
try:
    signal.raise_signal(signal.SIGINT)
except KeyboardInterrupt:
    print("interrupted")
print(signal.getsignal(signal.SIGTERM), signal.Signals(15).name, signal.strsignal(9))
signal.signal(signal.SIGTERM, signal.SIG_IGN)
os.kill(os.getpid(), signal.SIGTERM)
print("alive")
