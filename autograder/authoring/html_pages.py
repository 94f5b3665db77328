"""Makes self-contained HTML pages from Jinja templates; everything put into one is escaped."""

from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup


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
    return environment.get_template(template.name).render(values)
