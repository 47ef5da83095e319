# Modes, links, times, temporary files.
import os, pathlib, shutil, stat, tempfile

os.umask(0o027)
d = pathlib.Path(tempfile.mkdtemp())
print(oct(d.stat().st_mode))
p = d / "a.txt"
p.write_text("one\ntwo\n")
print(oct(p.stat().st_mode), p.stat().st_size, p.read_text().splitlines())
p.chmod(0o600)
print(oct(os.stat(p).st_mode & 0o777))
os.symlink("a.txt", d / "l")
print(os.readlink(d / "l"), (d / "l").is_symlink(), (d / "l").resolve() == p.resolve())
os.link(p, d / "h")
print(os.stat(p).st_nlink, os.path.samefile(p, d / "h"))
os.utime(p, (1, 2))
print(os.stat(p).st_mtime, os.stat(p).st_atime)
(d / "sub").mkdir()
(d / "sub" / "x").touch()
print(sorted(x.name for x in d.iterdir()), sorted(str(x.relative_to(d)) for x in d.rglob("*")))
print([(e.name, e.is_dir(), e.is_symlink()) for e in sorted(os.scandir(d), key=lambda e: e.name)])
with open(p, "r+b") as f:
    f.seek(0, 2)
    print(f.tell())
    f.write(b"three\n")
    f.truncate(10)
print(p.read_bytes())
with open(p, "a") as f:
    f.write("!")
print(p.read_bytes())
os.rename(p, d / "b.txt")
shutil.copytree(d / "sub", d / "copy")
print(sorted(os.listdir(d)))
for what in (lambda: open(d / "nope"), lambda: os.mkdir(d / "sub"), lambda: os.rmdir(d / "sub"), lambda: os.listdir(d / "b.txt"), lambda: open(d)):
    try:
        what()
    except OSError as e:
        print(type(e).__name__, e.errno, e.strerror)
cwd = os.getcwd()
os.chdir(d)
print(os.path.exists("b.txt"), os.getcwd() == str(d.resolve()))
os.chdir(cwd)
fd = os.open(d / "o", os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o640)
print(oct(os.fstat(fd).st_mode & 0o777), os.write(fd, b"abc"), os.pread(fd, 2, 1), os.lseek(fd, 0, 1))
os.close(fd)
os.mkfifo(d / "fifo")
print(stat.S_ISFIFO(os.stat(d / "fifo").st_mode))
shutil.rmtree(d)
print(d.exists())
