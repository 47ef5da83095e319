# What happens at the end.
import atexit, sys


class D:
    def __del__(self):
        print("deleted")


atexit.register(print, "atexit")
d = D()
print("unflushed", end="")
sys.stdout.write("!\n")
raise ValueError("at last")
