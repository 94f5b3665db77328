"""The exceptions CourseError (shown to people as one sentence) and GraderFault."""


class CourseError(Exception):
    """Something a person can put right: one clear sentence, shown without a traceback."""


class GraderFault(CourseError):
    """The machinery failed, not the submission: what it was grading has no verdict."""
