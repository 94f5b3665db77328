"""Labs: what notebooks import, and how submitted notebooks are read and run."""

from common.labs.check_display import show_checks_in_words
from common.labs.own_code import own_or_standin
from common.labs.questions import answered
from common.labs.sliders import slide

__all__ = ["answered", "own_or_standin", "slide"]

show_checks_in_words()
