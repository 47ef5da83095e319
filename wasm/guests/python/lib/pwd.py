"""Users, as /etc/passwd of the sandbox lists them."""

from collections import namedtuple

struct_passwd = namedtuple("struct_passwd", "pw_name pw_passwd pw_uid pw_gid pw_gecos pw_dir pw_shell", module="pwd")


def getpwall():
    out = []
    try:
        with open("/etc/passwd", encoding="utf-8", errors="surrogateescape") as f:
            for line in f:
                field = line.rstrip("\n").split(":")
                if len(field) == 7 and field[2].isdigit() and field[3].isdigit():
                    out.append(struct_passwd(field[0], field[1], int(field[2]), int(field[3]), *field[4:]))
    except OSError:
        pass
    return out


def getpwnam(name):
    if not isinstance(name, str):
        raise TypeError("getpwnam() argument must be str, not " + type(name).__name__)
    for p in getpwall():
        if p.pw_name == name:
            return p
    raise KeyError(f"getpwnam(): name not found: {name!r}")


def getpwuid(uid):
    for p in getpwall():
        if p.pw_uid == uid:
            return p
    raise KeyError(f"getpwuid(): uid not found: {uid}")
