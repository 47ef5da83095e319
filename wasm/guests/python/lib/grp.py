"""Groups, as /etc/group of the sandbox lists them."""

from collections import namedtuple

struct_group = namedtuple("struct_group", "gr_name gr_passwd gr_gid gr_mem")
struct_group.__module__ = "grp"


def getgrall():
    out = []
    try:
        with open("/etc/group", encoding="utf-8", errors="surrogateescape") as f:
            for line in f:
                field = line.rstrip("\n").split(":")
                if len(field) == 4 and field[2].isdigit():
                    out.append(struct_group(field[0], field[1], int(field[2]), [m for m in field[3].split(",") if m]))
    except OSError:
        pass
    return out


def getgrnam(name):
    for g in getgrall():
        if g.gr_name == name:
            return g
    raise KeyError(f"getgrnam(): name not found: {name!r}")


def getgrgid(gid):
    for g in getgrall():
        if g.gr_gid == gid:
            return g
    raise KeyError(f"getgrgid(): gid not found: {gid}")
