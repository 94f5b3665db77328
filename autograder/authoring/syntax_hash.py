"""Hashes Python code by its syntax tree, ignoring comments, docstrings and formatting."""

import ast
import hashlib
import io
from functools import cache, lru_cache

# What the tree says besides the code: the context of a name, type comments, the prefix u"".
LEFT_OUT = ("ctx", "type_comment", "kind")
WITH_DOCSTRING = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


@lru_cache(4096)  # a proof asks for each version once for each test
def python_hash(source: bytes) -> str:
    """A hash of a source file's code; of its bytes, where it is not valid Python."""
    try:
        text = source.decode("utf-8")
        body = code_of(ast.parse(text))
    except (SyntaxError, ValueError):
        return hashlib.sha256(source).hexdigest()
    lines = io.StringIO(text, newline="").readlines()  # split where Python's parser does
    digest = hashlib.sha256()
    for statement in body:
        own = "".join(lines[first_line(statement) : statement.end_lineno])
        try:
            digest.update(statement_hash(own))
        except SyntaxError:  # it shares a line with another one
            digest.update(node_hash(statement).encode())
    return digest.hexdigest()


def first_line(statement: ast.stmt) -> int:
    """Where a statement begins, decorators included, counted from 0."""
    decorators = getattr(statement, "decorator_list", [])
    return min(node.lineno for node in (statement, *decorators)) - 1


@cache
def statement_hash(text: str) -> bytes:
    """The hash of one statement of a module. A thousand versions of a file share most of them."""
    return hashlib.sha256(canonical(ast.parse(text)).encode("utf-8", "surrogatepass")).digest()


def node_hash(node: ast.AST) -> str:
    """The hash of a piece of a tree."""
    return hashlib.sha256(canonical(node).encode("utf-8", "surrogatepass")).hexdigest()


def canonical(node: object) -> str:
    """A tree as text, the same under all versions of Python that know its nodes."""
    if isinstance(node, ast.AST):
        fields = (
            (name, code_of(node) if name == "body" else value)
            for name, value in ast.iter_fields(node)
            if name not in LEFT_OUT and value is not None and value != []
        )
        inside = ",".join(f"{name}={canonical(value)}" for name, value in fields)
        return f"{type(node).__name__}({inside})"
    if isinstance(node, list):
        return f"[{','.join(map(canonical, node))}]"
    return repr(node)


def code_of(node: ast.AST) -> list[ast.stmt]:
    """The statements of a body, without its docstring."""
    body: list[ast.stmt] = node.body  # type: ignore[attr-defined]
    if isinstance(node, WITH_DOCSTRING) and ast.get_docstring(node, clean=False) is not None:
        return body[1:]
    return body
