# The standard library, one thing of each part.
import array, ast, asyncio, base64, bisect, bz2, calendar, collections, configparser, contextlib, copy, csv, dataclasses, datetime, decimal
import difflib, enum, fractions, functools, gzip, hashlib, heapq, html, io, ipaddress, itertools, json, logging, lzma, math, operator, pickle
import platform, pprint, queue, random, re, secrets, shlex, socket, sqlite3, statistics, string, struct, sys, tarfile, textwrap, threading, time
import types, typing, unicodedata, unittest, urllib.parse, uuid, xml.etree.ElementTree as ET, zipfile, zlib, zoneinfo

print(json.dumps({"b": [1, 2.5, None, "é"]}, sort_keys=True), json.loads('{"a": 1e3}'))
print(re.findall(r"(\w)(\d+)", "a1 b22"), re.sub(r"(?P<x>\d+)", lambda m: m["x"][::-1], "123 45"))
out = io.StringIO()
csv.writer(out).writerows([["a", 'q"x'], [1, "y,z"]])
print(repr(out.getvalue()), list(csv.DictReader(["a,b", "1,2"])))
db = sqlite3.connect(":memory:")
db.execute("create table t(a, b)")
db.executemany("insert into t values (?, ?)", [(i, str(i)) for i in range(5)])
print(db.execute("select sum(a), group_concat(b), max(json_extract('[1,2]', '$[1]')) from t").fetchall())
data = b"some data " * 100
for m in (zlib, bz2, lzma, gzip):
    print(m.__name__, m.decompress(m.compress(data)) == data)
print(hashlib.sha256(b"x").hexdigest(), hashlib.md5(b"x").hexdigest(), hashlib.blake2b(b"x", digest_size=8).hexdigest(), zlib.crc32(b"x"))
print(hashlib.pbkdf2_hmac("sha256", b"p", b"s", 10).hex(), hashlib.new("sha3_256", b"x").hexdigest())
print(datetime.datetime(2024, 2, 29, 12, tzinfo=zoneinfo.ZoneInfo("Europe/Berlin")).isoformat(), datetime.timedelta(days=1.5))
print(decimal.Decimal("1.1") + decimal.Decimal("2.2"), fractions.Fraction(3, 4) * 2, statistics.mean([1, 2, 3]), math.comb(5, 2), 2**200)
print(ET.fromstring("<a><b c='1'>t</b></a>").find("b").attrib, html.escape("<&>"), urllib.parse.urlencode({"a": "b c"}))
print(struct.pack("<IhQ", 1, -2, 3), array.array("i", [1, 2]).tobytes(), base64.b64encode(b"abc"))
print(unicodedata.name("é"), "ß".upper(), "İ".lower(), f"{1234567.891:,.2f} {255:#x} {'x':>5} {3.0!r}")
b = io.BytesIO()
with zipfile.ZipFile(b, "w", zipfile.ZIP_DEFLATED) as z:
    z.writestr("a", "text")
print(zipfile.ZipFile(b).read("a"))
b = io.BytesIO()
with tarfile.open(fileobj=b, mode="w:gz") as t:
    t.addfile(tarfile.TarInfo("empty"))
print(tarfile.open(fileobj=io.BytesIO(b.getvalue())).getnames())


@dataclasses.dataclass(order=True)
class P:
    x: int
    y: list = dataclasses.field(default_factory=list)


class C(enum.Enum):
    A = 1


print(P(1), sorted([P(2), P(1)]), C.A, pickle.loads(pickle.dumps(P(3, [4]))), copy.deepcopy(P(1, [[2]])))


async def work(n):
    await asyncio.sleep(0.001 * n)
    return n


async def main():
    print(await asyncio.gather(*(work(i) for i in (3, 1, 2))))
    try:
        await asyncio.wait_for(asyncio.sleep(10), 0.01)
    except asyncio.TimeoutError:
        print("timeout")
    q = asyncio.Queue()
    await q.put(1)
    print(await q.get())
    async with asyncio.TaskGroup() as g:
        t = g.create_task(work(1))
    print(t.result())


asyncio.run(main())
random.seed(1)
print(random.random(), random.sample(range(100), 5), random.choice("abc"))
print(len(secrets.token_hex(4)), uuid.UUID(int=5), uuid.uuid5(uuid.NAMESPACE_DNS, "x"), len(str(uuid.uuid4())))
lock = threading.Lock()
with lock:
    print(lock.locked(), threading.current_thread().name, threading.active_count())
print(queue.Queue().empty(), ipaddress.ip_network("10.0.0.0/30").num_addresses, shlex.split("a 'b c'"), textwrap.shorten("a b c d", 5))
print(ast.literal_eval("{'a': (1, 2)}"), heapq.nsmallest(2, [3, 1, 2]), list(itertools.pairwise("abc")), functools.reduce(operator.mul, [1, 2, 3]))
def deep(n):
    return n and deep(n - 1)


print(deep(900))
try:
    deep(10**6)
except RecursionError as e:
    print(e)
match [1, {"k": 2}]:
    case [x, {"k": y}]:
        print(x, y)
suite = unittest.TestSuite([unittest.FunctionTestCase(lambda: None)])
print(unittest.TextTestRunner(stream=io.StringIO()).run(suite))
print(sys.getrecursionlimit(), sys.version_info[:2], sys.byteorder, sys.getfilesystemencoding())
