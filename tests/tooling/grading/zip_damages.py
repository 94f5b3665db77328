"""Random ways to damage a submission's zip."""

import bz2
import functools
import lzma
import stat
import struct
import warnings
import zipfile
from io import BytesIO

from autograder.grading.submission import MAX_FILE_BYTES

CENTRAL, LOCAL, END = b"PK\x01\x02", b"PK\x03\x04", b"PK\x05\x06"
BOMB_BYTES = 32 << 20  # more than a judge may hold


def zipped(members, compression=zipfile.ZIP_DEFLATED):
    """A zip of (name or ZipInfo, content)."""
    buffer = BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as archive:
        for name, content in members:
            archive.writestr(name, content, compress_type=compression)
    return buffer.getvalue()


def valid(rng, files):
    """One of the zips that students make."""
    folder = rng.choice(["", "work/", "a1 final (2)/", "home/me/course/"])
    members = [(folder + name, content) for name, content in files.items()]
    if rng.random() < 0.5:
        members += [(f"__MACOSX/{folder}._{name}", b"\0\5\x16\7") for name in files]
        members += [(folder + "notes.txt", b"notes"), (folder + "figures/", b"")]
    rng.shuffle(members)
    return zipped(members, rng.choice([zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED]))


def places(data, mark):
    """Where a record of that kind begins."""
    found, place = [], data.find(mark)
    while place >= 0:
        found.append(place)
        place = data.find(mark, place + 1)
    return found


def overwritten(data, place, content):
    return data[:place] + content + data[place + len(content) :]


def truncated(rng, data, files):
    return data[: rng.randrange(len(data))]


def beheaded(rng, data, files):
    return data[rng.randrange(1, len(data)) :]


def flipped(rng, data, files):
    spoilt = bytearray(data)
    for _ in range(rng.choice([1, 2, 8, 64])):
        spoilt[rng.randrange(len(spoilt))] = rng.randrange(256)
    return bytes(spoilt)


def wrong_crc(rng, data, files):
    for mark, offset in ((CENTRAL, 16), (LOCAL, 14)):
        for place in places(data, mark):
            data = overwritten(data, place + offset, rng.randbytes(4))
    return data


def field_of(mark, size):
    """Spoils a field of a record: its place and its length are drawn."""

    def spoil(rng, data, files):
        for place in places(data, mark):
            width = rng.choice([1, 2, 4])
            number = rng.choice(
                [0, 1, 0x7F, 0xFF, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF, rng.getrandbits(32)]
            )
            content = struct.pack("<I", number)[:width]
            data = overwritten(data, place + rng.randrange(4, size), content)
        return data

    return spoil


def nested(rng, data, files):
    for _ in range(rng.randrange(1, 4)):
        data = zipped([(rng.choice(["submission.zip", *files]), data)])
    return data


def renamed(rng, data, files):
    def other(name):
        stem = name.removesuffix(".py")
        changed = (stem.upper() + ".py", f"{stem} (1).py", f"{stem}.py.txt", f" {name}", f"{name} ")
        return rng.choice(
            [*changed, stem, f"{stem}\u200b.py", f".{name}", f"{stem}.PY", f"a\\{name}"]
        )

    return zipped([(other(name), content) for name, content in files.items()])


def odd_names(rng, data, files):
    """Names in bytes that no encoding gives, empty ones, and flags that say otherwise."""
    data = zipped([*files.items(), ("x" * 12, b"")])
    for place in places(data, b"x" * 12):
        data = overwritten(data, place, rng.randbytes(12))
    for place in places(data, CENTRAL):
        data = overwritten(data, place + 8, rng.randbytes(2))
        if rng.random() < 0.3:
            data = overwritten(data, place + 28, struct.pack("<H", rng.choice([0, 1, 60_000])))
    return data


def recoded(rng, data, files):
    """The content in another encoding, or in none."""
    coding = rng.choice(["utf-16", "utf-32", "utf-8-sig", "latin-1", "cp500", "rot13", "noise"])
    changed = {}
    for name, content in files.items():
        if coding == "noise":
            changed[name] = rng.randbytes(rng.randrange(2000))
        elif coding == "rot13":
            changed[name] = b"# coding: rot13\n" + content
        else:
            changed[name] = content.decode().encode(coding, "replace")
    return zipped(changed.items())


def linked(rng, data, files):
    members = []
    for name, content in files.items():
        member = zipfile.ZipInfo(name)
        member.create_system = 3
        kind = rng.choice([stat.S_IFLNK, stat.S_IFIFO, stat.S_IFCHR, stat.S_IFSOCK, stat.S_IFDIR])
        member.external_attr = (kind | 0o777) << 16
        members.append((member, rng.choice([b"/etc/passwd", b"../semester", content])))
    return zipped(members)


def bomb(rng, data, files):
    method = rng.choice([zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
    return bomb_of(method, tuple(files))


@functools.cache
def bomb_of(method, names):
    """Zeros that are small until they are read."""
    return zipped([(name, bytes(BOMB_BYTES)) for name in names], method)


def lying_bomb(rng, data, files):
    """A bomb whose headers say that it is small."""
    data = bomb(rng, data, files)
    for mark, offset in ((CENTRAL, 24), (LOCAL, 22)):
        for place in places(data, mark):
            data = overwritten(data, place + offset, struct.pack("<I", 100))
    return data


def folders_for_files(rng, data, files):
    members = [(f"{name}/", b"") for name in files]
    members += [(f"{name}/__init__.py", content) for name, content in files.items()]
    return zipped(members)


def no_files(rng, data, files):
    return zipped([] if rng.random() < 0.5 else [("readme.txt", b"nothing here")])


def three_copies(rng, data, files):
    folders = rng.choice(
        [("a/", "b/", "c/"), ("", "", ""), ("", "old/", "older/"), ("a/", "a/", "")]
    )
    with warnings.catch_warnings(action="ignore"):  # zipfile has something to say about it
        return zipped(
            [(folder + name, content) for folder in folders for name, content in files.items()]
        )


def crowded(rng, data, files):
    """More members than are looked at."""
    name, content = next(iter(files.items()))
    if rng.random() < 0.1:  # making one takes its time
        return crowd(rng.choice([19_990, 21_000]))
    return zipped([(name, content)])


@functools.cache
def crowd(count):
    return zipped(
        [(f"{number}", b"") for number in range(count)] + [("convolution.py", b"x = 1\n")], 0
    )


def glued(rng, data, files):
    return b"".join(rng.choice([data, b"", rng.randbytes(50)]) for _ in range(3))


def not_a_zip(rng, data, files):
    made = (
        b"",
        b"PK",
        END,
        END + bytes(18),
        rng.randbytes(500),
        bz2.compress(data),
        lzma.compress(data),
    )
    return rng.choice(made)


def encrypted(rng, data, files):
    for mark, offset in ((CENTRAL, 8), (LOCAL, 6)):
        for place in places(data, mark):
            data = overwritten(
                data, place + offset, struct.pack("<H", rng.choice([1, 0x41, 0x2001]))
            )
    return data


def huge_source(rng, data, files):
    padding = b"#" * rng.choice([MAX_FILE_BYTES, MAX_FILE_BYTES + 1, MAX_FILE_BYTES // 2])
    return zipped([(name, content + padding) for name, content in files.items()])


DAMAGES = {
    "valid": lambda rng, data, files: data,
    "truncated": truncated,
    "beheaded": beheaded,
    "flipped": flipped,
    "wrong CRC": wrong_crc,
    "central field": field_of(CENTRAL, 46),
    "local field": field_of(LOCAL, 30),
    "end field": field_of(END, 22),
    "nested": nested,
    "renamed": renamed,
    "odd names": odd_names,
    "recoded": recoded,
    "linked": linked,
    "bomb": bomb,
    "lying bomb": lying_bomb,
    "folders for files": folders_for_files,
    "no files": no_files,
    "three copies": three_copies,
    "crowded": crowded,
    "glued": glued,
    "not a zip": not_a_zip,
    "encrypted": encrypted,
    "huge source": huge_source,
}
