"""Makes self-contained HTML pages from Jinja templates, with all text escaped."""

from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from common.visible_text import visible


def render_page(template: Path, **values: object) -> str:
    """The page that a template makes of these values.

    A template can put a file of its folder into the page: {{ file("report.css") }}.
    """
    environment = Environment(
        loader=FileSystemLoader(template.parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.globals["file"] = lambda name: Markup((template.parent / name).read_text("utf-8"))
    # For tojson, which also spells out all that could end a script element or begin markup.
    environment.policies["json.dumps_kwargs"] = {"allow_nan": False, "separators": (",", ":")}
    return environment.get_template(template.name).render(all_visible(values))


def all_visible(value: Any) -> Any:
    """The value, with control characters as escapes in every string that it holds."""
    if type(value) is str:  # not Markup, which is ours
        return visible(value)
    if type(value) is dict:
        return {all_visible(key): all_visible(item) for key, item in value.items()}
    if type(value) in (list, tuple):
        return type(value)(map(all_visible, value))
    return value
