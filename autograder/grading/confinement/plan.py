"""What a child may use, as the judge tells the fork server."""

from common.assignment import Forbidden, Limits, Record


class Plan(Record, frozen=True):
    """Everything that decides how a child is confined. It holds no secret."""

    package: str  # "a1_convolution"
    modules: list[str]
    packages: dict[str, str]  # where `import assignments.X` finds X
    standins: list[str]  # modules in earlier assignments' places; nothing is forbidden to them
    home: str  # the only folder it may write to
    limits: Limits
    forbidden: list[Forbidden]
    uid: int | None


class ServerPlan(Record, frozen=True):
    """Everything that decides how the fork server is started."""

    libraries: list[str]
    forbidden: list[Forbidden]
    other_uid: bool


class Attempts(Record, frozen=True):
    """What a probe tries in vain, if the defences hold."""

    read: list[str]
    write_into: list[str]
    connect_to: int
