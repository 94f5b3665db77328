"""The error that is meant for people."""


class CourseError(Exception):
    """Something a person can put right: one clear sentence, shown without a traceback."""
