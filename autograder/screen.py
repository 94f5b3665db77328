"""The console for commands: it prints control characters of submitted text as visible text."""

from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from common.visible_text import visible


class Screen(Console):
    """A console on which no text can be more than text; markup still is for callers to escape."""

    def __init__(self, **options: Any) -> None:
        super().__init__(emoji=False, **options)

    def render_str(self, text: str, **options: Any) -> Text:
        """A string as it is to be shown: before rich drops some characters, and measures it."""
        return super().render_str(visible(text), **options)

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Everything that is shown passes here; rich's own controls are marked as such."""
        for segment in super().render(renderable, options):
            if segment.control:
                yield segment
            else:
                yield Segment(visible(segment.text), segment.style)
