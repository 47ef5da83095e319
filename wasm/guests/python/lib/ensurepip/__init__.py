"""ensurepip without wheels of its own: pip comes with the interpreter, and is copied from there."""

import os
import shutil
import sys
import sysconfig

__all__ = ["version", "bootstrap"]
_FROM = os.path.join(os.path.dirname(os.path.dirname(__file__)), "site-packages")


def version():
    for name in os.listdir(_FROM):
        if name.startswith("pip-") and name.endswith(".dist-info"):
            return name[4:-10]


def bootstrap(*, root=None, upgrade=False, user=False, altinstall=False, default_pip=False, verbosity=0):
    return _bootstrap(root=root, upgrade=upgrade, user=user, altinstall=altinstall, default_pip=default_pip, verbosity=verbosity)


def _bootstrap(*, root=None, upgrade=False, user=False, altinstall=False, default_pip=False, verbosity=0):
    if altinstall and default_pip:
        raise ValueError("Cannot use altinstall and default_pip together")
    paths = sysconfig.get_paths("posix_user") if user else sysconfig.get_paths()
    to, scripts = paths["purelib"], paths["scripts"]
    if root:
        to, scripts = (os.path.join(root, p.lstrip("/")) for p in (to, scripts))
    if os.path.abspath(to) == _FROM:
        print("Requirement already satisfied: pip in", _FROM)
        return 0
    os.makedirs(to, exist_ok=True)
    os.makedirs(scripts, exist_ok=True)
    for name in os.listdir(_FROM):
        if name == "pip" or name.startswith("pip-"):
            shutil.copytree(os.path.join(_FROM, name), os.path.join(to, name), dirs_exist_ok=True)
    names = ["pip%d.%d" % sys.version_info[:2]]
    if not altinstall:
        names.append("pip3")
    if default_pip:
        names.append("pip")
    for name in names:
        path = os.path.join(scripts, name)
        with open(path, "w") as f:
            f.write(f"#!{sys.executable}\nimport sys\nfrom pip._internal.cli.main import main\nif __name__ == '__main__':\n    sys.exit(main())\n")
        os.chmod(path, 0o755)
    return 0


def _main(argv=None):
    import argparse
    parser = argparse.ArgumentParser(prog="python -m ensurepip")
    parser.add_argument("--version", action="version", version="pip {}".format(version()))
    parser.add_argument("-v", "--verbose", action="count", default=0, dest="verbosity")
    parser.add_argument("-U", "--upgrade", action="store_true", default=False)
    parser.add_argument("--user", action="store_true", default=False)
    parser.add_argument("--root", default=None)
    parser.add_argument("--altinstall", action="store_true", default=False)
    parser.add_argument("--default-pip", action="store_true", default=False)
    args = parser.parse_args(argv)
    return _bootstrap(root=args.root, upgrade=args.upgrade, user=args.user, verbosity=args.verbosity, altinstall=args.altinstall, default_pip=args.default_pip)
