"""The error that is meant for people."""


class CourseError(Exception):
    """Something a person can put right. Its text is one clear sentence, shown without a traceback."""
