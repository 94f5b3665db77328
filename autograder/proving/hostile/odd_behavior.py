"""What fuzzed submissions are made of: odd values to return, odd ends, odd processes and threads.

All are Python source. `given` is what the function was called with, `x` the first array of it.
"""

import random

# Begins every fuzzed file. WORD is what must not be seen in a hidden result.
HEAD = '''
import array, atexit, builtins, collections, ctypes, datetime, decimal, enum, fractions
import fcntl, functools, gc, io, itertools, json, math, mmap, operator, os, random, resource, select
import signal, socket, struct, sys, tempfile, threading, time, traceback, types, warnings, weakref
import numpy as np

WORD = "LEA" + "KED"
COUNTS = collections.Counter()
KEPT = []


def first_array(given):
    arrays = [one for one in given if hasattr(one, "shape")]
    return arrays[0] if arrays else np.zeros((2, 3))


def nested(kind, depth):
    value = kind()
    for _ in range(depth):
        value = kind([value]) if kind is not dict else {"a": value}
    return value


def endless():
    value = []
    value.append(value)
    return value


def everywhere(data, first=0, last=64):
    for descriptor in range(first, last):
        try:
            os.write(descriptor, data)
        except OSError:
            pass


def apart(function, *arguments):
    """In a process of its own, in a session of its own."""
    if os.fork() == 0:
        os.setsid()
        ctypes.CDLL(None).prctl(15, b"hostile-fuzz", 0, 0, 0)
        function(*arguments)
        os._exit(0)


class Lying:
    __class__ = property(lambda self: float)

    def __eq__(self, other):
        return True

    def __array__(self, dtype=None, copy=None):
        return np.ones(3)

    def __float__(self):
        return 1.0

    __index__ = __int__ = __len__ = lambda self: 1
    __hash__ = lambda self: os._exit(0)


class Text(str):
    __eq__ = lambda self, other: True
    __hash__ = str.__hash__


class Odd(np.ndarray):
    __array_priority__ = 1e9
    __eq__ = lambda self, other: True


class Failing:
    def __getattribute__(self, name):
        raise RuntimeError(name)


class Ending:
    def __del__(self):
        os._exit(0)


class Words(Exception):
    __str__ = __repr__ = lambda self: f"{WORD} {self.args}" * 1000


class Silent(Exception):
    def __str__(self):
        os._exit(3)


class Naked(BaseException):
    pass
'''


def rows(text: str) -> list[str]:
    """The entries of a table, which a bar or the end of a line divides."""
    return [row.strip() for line in text.splitlines() for row in line.split(" | ") if row.strip()]


# `#` is a random number from the row of SIZES.
SIZES = (0, 1, 2, 3, 7, 63, 64, 255, 256, 4095, 65_536, 1_000_001)
PLAIN_VALUES = rows("""
None | True | -0.0 | math.nan | -math.inf | complex(math.nan, 1) | # | -# | 2**64 + # | 10**4000
1 << # | -(1 << 31_990) | 5e-324 | "" | "x" * # | chr(0xD800) * # | "\\x1b[2J\\u202e" | b"\\0" * #
WORD + repr(given) | f"{WORD} {x.shape}" | Text(f"{WORD} {x}") | "(This message contains" * #
... | NotImplemented | int | np | len | lambda *given: # | given | x | x.T | x.shape | repr(x)
x[..., :0] | object() | Lying() | Failing() | Odd((2, 3)) | range(#) | iter(range(#)) | {1, 2, #}
endless() | frozenset({WORD}) | collections.deque([#]) | bytearray(#) | memoryview(bytes(#))
Words(x) | array.array("d", [#]) | fractions.Fraction(1, 1 + #) | decimal.Decimal(#)
datetime.timedelta(#) | types.SimpleNamespace(**{WORD: x})
collections.namedtuple("N", "a b")(x, #) | slice(#) | sys | (one for one in given)
enum.Enum(WORD, "a b") | weakref.ref(Lying) | io.BytesIO(bytes(#))
collections.OrderedDict({WORD: x}) | collections.defaultdict(list)
types.MappingProxyType({1: x})
""")
ARRAY_VALUES = rows("""
np.zeros(#) | np.ones((0, #)) | np.zeros((1,) * 32) | np.zeros((1,) * 64) | np.array(#)
x * np.nan | np.zeros(x.shape) | np.ones(x.shape, np.float32) | np.zeros_like(x, dtype=bool)
x[::-1] | x[None] | np.full(x.shape, np.inf) | np.zeros(x.shape, ">f8") | np.asfortranarray(x)
x.astype(complex) | np.broadcast_to(x.sum(), (#, #)) | np.broadcast_to(0.5, (2**40,))
np.zeros(30 << 20, np.int8) | np.zeros((1 << 20, 60), np.int8) | np.ones(9 << 20, np.float16)
np.zeros(2, [(WORD, float)]) | np.array([None, x], object) | np.array([f"{WORD}{x}"])
np.array([WORD.encode()]) | np.void(b"x" * 9) | np.zeros(#, "M8[s]") | np.zeros(3, "m8[D]")
np.ma.masked_array(x, x > 0) | x.view(Odd) | np.matrix([[1, #]]) | np.rec.array([(1, #)])
np.float16(#) | np.longdouble(#) | np.str_(WORD) | np.ones(x.shape, np.longdouble)
np.random.default_rng(#) | np.ndarray((3,), float, x, 0, (0,))
np.lib.stride_tricks.as_strided(x, (4, 4), (0, 0)) | np.frombuffer(bytes(8 * #)) | np.dtype("f8")
np.memmap(tempfile.TemporaryFile(), float, "w+", shape=(5,)) | np.nditer(x) | np.poly1d([1, #])
np.empty(x.shape) | x.astype(np.uint8) | x.__class__ | x.flat | np.zeros(x.shape + (1,))
x + 1e-7
""")
TENSOR_VALUES = rows("""
torch.zeros(#) | torch.ones(x.shape) | torch.zeros(1).expand(#, #)
torch.zeros(1).expand(1 << 40) | torch.empty(x.shape, dtype=torch.bfloat16)
torch.zeros(3, device="meta") | torch.tensor(#) | torch.zeros(2, 3).to_sparse()
torch.ones(3, requires_grad=True) | torch.nn.Parameter(torch.ones(2))
torch.quantize_per_tensor(torch.ones(3), 1.0, 0, torch.qint8)
torch.zeros(2, dtype=torch.complex64) | torch.ones(30 << 20, dtype=torch.int8)
torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]) | torch.nn.Linear(1, 1) | torch.float32
torch.Generator() | torch.nn.ParameterDict({WORD: x}) | torch.as_tensor(x) + math.nan
torch.Size([#]) | torch.zeros((1,) * 70) | torch.device("cpu") | torch.zeros(x.shape)[..., None]
torch.ones(4).conj() | torch.ones(2, dtype=torch.complex64).conj()
torch.zeros(2).as_subclass(type("T", (torch.Tensor,), {"__eq__": lambda *given: True}))
""")
# How values lie within others; `@` is the value, and a second one where there are two.
FORMS = rows("""
(@, @) | [@, @] | (@,) | [@] * # | {"a": @, "b": @} | {(1, WORD): @} | {1: @, 1.5: @, None: @}
dict.fromkeys(range(#), @) | dict.fromkeys([2**61 - 1 << k for k in range(#)], @)
((@,) * 9,) * 9 | nested(list, #) | nested(tuple, #) | nested(dict, 40) | {f"{WORD}{x.shape}": @}
{math.nan: @} | (@, @, @) | (None, @) | [[@], [@]] | type("L", (list,), {})([@])
type("T", (tuple,), {})([@]) | (x, (x, [x, {"x": x}]))
type("D", (dict,), {"__len__": lambda s: 0})(a=@) | [given] * #
""")

EXCEPTIONS = rows("""
RuntimeError(WORD, x) | KeyError(f"{WORD}{x.shape}") | Words(x) | Silent() | StopIteration(x)
GeneratorExit() | KeyboardInterrupt() | SystemExit() | SystemExit(x) | Naked(WORD)
MemoryError(#) | RecursionError() | AssertionError(WORD + repr(x)) | ImportError(WORD)
OSError(#, WORD) | Lying | NotImplementedError(f"{WORD}: exercise 1.1 is yours to write")
AttributeError(WORD) | Warning(x) | UnicodeDecodeError("utf-8", b"x", 0, 1, WORD)
ExceptionGroup(WORD, [Words(x)]) | SyntaxError(WORD)
type(f"{WORD}{x.shape}", (Exception,), {})() | AssertionError("x" * 10**#) | TimeoutError(WORD)
ValueError(WORD) | TypeError(f"{WORD}{x.shape}") | IndexError() | ConnectionResetError()
BrokenPipeError() | BlockingIOError() | InterruptedError() | EOFError()
""")
ENDS = rows("""
os._exit(0) | os._exit(#) | sys.exit() | sys.exit(WORD + repr(x)) | os.abort()
ctypes.string_at(0) | os.kill(os.getpid(), signal.SIGKILL) | os.kill(os.getpid(), signal.SIGTERM)
os.kill(0, signal.SIGINT) | os.kill(os.getpid(), signal.SIGINT)
os.kill(os.getpid(), signal.SIGSEGV) | os.kill(-1, signal.SIGKILL) | os.closerange(0, 1024)
os.closerange(3, 1024) | os.kill(os.getppid(), signal.SIGKILL)
os.kill(os.getpid(), signal.SIGABRT) | signal.raise_signal(signal.SIGPIPE)
os.execv(sys.executable, [""]) | sys.setrecursionlimit(10**6) or (lambda f: f(f))(lambda f: f(f))
bytearray(1 << 40) | [bytearray(1 << 26) for _ in range(#)]
resource.setrlimit(resource.RLIMIT_AS, (1 << 20, 1 << 20))
""")
# As long as nobody stops them: they cost a test's whole time, so few submissions have one.
HANGS = rows("""
os.kill(os.getpid(), signal.SIGSTOP) | time.sleep(#)
threading.Lock().__enter__() or [x].index(-1) | [None for _ in iter(int, 1)]
os.read(os.pipe()[0], 1) | select.select([], [], [])
threading.Thread(target=time.sleep, args=(60,)).start() | math.factorial(10**7)
""")
DEEDS = rows("""
everywhere(b"\\0" * #) | everywhere(b"\\xff" * #, 3) | everywhere(struct.pack("<Q", 1 << 40), 3)
everywhere(struct.pack("<Q", 3) + b"\\x93\\x01\\xc0", 3) | print(WORD, given)
print("x" * (1 << 21)) | os.write(1, b"\\x1b[2J" * #) | os.write(2, b"x" * #)
print("x" * 3000, file=sys.stderr) | gc.collect() | sys.stdout.close() | os.close(1)
os.dup2(1, 0) | sys.modules.clear() | builtins.__dict__.clear() | vars(np).clear()
sys.path.insert(0, "/tmp") | os.environ.clear() | os.chdir("/") | gc.disable()
setattr(builtins, "isinstance", lambda *given: True) | setattr(builtins, "len", lambda *given: 1)
setattr(np.ndarray, "x", 1) | setattr(sys, "excepthook", None) | sys.settrace(lambda *given: None)
sys.setprofile(lambda *given: os._exit(0)) | signal.alarm(1)
signal.setitimer(signal.ITIMER_REAL, 0.01) | signal.signal(signal.SIGTERM, signal.SIG_IGN)
atexit.register(os._exit, 0) | KEPT.append(Ending()) | atexit.register(time.sleep, 60)
atexit.register(everywhere, b"\\0" * #) | KEPT.append(given)
threading.Thread(target=everywhere, args=(b"\\0" * #, 3)).start() | os.fork()
os.fork() or os.fork() | threading.Thread(target=time.sleep, args=(60,)).start()
threading.Timer(0.02, os._exit, (0,)).start()
threading.Thread(target=lambda: [None for _ in iter(int, 1)], daemon=True).start() | os.setsid()
[threading.Thread(target=time.sleep, args=(9,), daemon=True).start() for _ in range(#)] | x.sort()
apart(time.sleep, 60) | apart(apart, time.sleep, 60) | apart(everywhere, b"\\0" * #, 3)
x.fill(#) | apart(lambda: [None for _ in iter(int, 1)])
apart(os.kill, os.getppid(), signal.SIGKILL) | [apart(time.sleep, 60) for _ in range(#)]
apart(lambda: bytearray(1 << 28) and time.sleep(9))
open(f"/tmp/hostile-{#}", "w").write("x" * #) | os.symlink("/", "/tmp/hostile-link") | os.nice(19)
open(os.path.expanduser("~/hostile"), "wb").write(bytes(1 << 20))
tempfile.mkdtemp(prefix="hostile") | warnings.warn(WORD + repr(x))
resource.setrlimit(resource.RLIMIT_NOFILE, (4, 4)) | os.umask(0)
resource.setrlimit(resource.RLIMIT_CPU, (1, 1)) | setattr(x, "shape", (-1,))
x.setflags(write=False) | socket.socketpair() | KEPT.extend(os.pipe() for _ in range(#))
os.memfd_create("hostile") | np.seterr(all="raise") | warnings.simplefilter("error")
time.sleep(0.05) | sys.setswitchinterval(9) | sys.setrecursionlimit(60)
sys._getframe().f_back.f_locals.clear() | ctypes.memset(id(x), 1, 9)
""")


def value(rng: random.Random, tensors: bool, depth: int = 0) -> str:
    """An expression of an odd value."""
    if depth < 3 and rng.random() < 0.35:
        form = choice(rng, FORMS)
        while "@" in form:
            form = form.replace("@", value(rng, tensors, depth + 1), 1)
        return form
    kinds = (PLAIN_VALUES, ARRAY_VALUES, TENSOR_VALUES)
    weights = (2, 1, 3) if tensors else (2, 3, 0)
    return choice(rng, rng.choices(kinds, weights)[0])


def deed(rng: random.Random, may_hang: bool) -> str:
    """A statement that does something odd, or ends something."""
    kinds = (DEEDS, ENDS, EXCEPTIONS, HANGS)
    kind = rng.choices(kinds, (8, 3, 3, 1 if may_hang else 0))[0]
    chosen = choice(rng, kind)
    return f"raise {chosen}" if kind is EXCEPTIONS else chosen


def choice(rng: random.Random, table: list[str]) -> str:
    """One of them, with sizes for its numbers."""
    chosen = rng.choice(table)
    while "#" in chosen:
        chosen = chosen.replace("#", str(rng.choice(SIZES)), 1)
    return chosen
