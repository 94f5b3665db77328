"""Says which defenses of the sandbox were not in force where a batch was graded."""

from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec

from autograder.batch.batch_records import WITH_RESULT, Batch, result_file
from autograder.grading.sandbox.defenses import Defense


class ExtraData(msgspec.Struct, frozen=True):
    """What a result says beside its tests."""

    defenses: tuple[str, ...] = ()


class GradedWith(msgspec.Struct, frozen=True):
    """The part of a result that names its defenses."""

    extra_data: ExtraData = ExtraData()


def missing_defenses(batch: Batch) -> list[str]:
    """Sentences about the results of a batch."""
    files = [
        result_file(batch.folder, entry.id)
        for entry in batch.entries
        if entry.status in WITH_RESULT
    ]
    decoder = msgspec.json.Decoder(GradedWith)
    return defense_notes(decoder.decode(file.read_bytes()).extra_data.defenses for file in files)


def defense_notes(results: Iterable[Sequence[str]]) -> list[str]:
    """A sentence for each number of results that lack the same defenses, given those of each."""
    counts, total = Counter[str](), 0
    for defenses in results:
        total += 1
        counts.update(not_in_force(defenses))
    notes = []
    for count in sorted({*counts.values()}, reverse=True):
        names = "; ".join(name for name in counts if counts[name] == count)
        graded = "Graded" if count == total else f"{count} of {total} results were graded"
        notes.append(f"{graded} without these defenses: {names}. `make doctor` explains them.")
    return notes


def not_in_force(defenses: Iterable[str]) -> list[str]:
    """The names of those that a result says are missing."""
    names = {text: text.partition(": ")[0] for text in defenses}
    return [name for text, name in names.items() if text == str(Defense(name, False, ""))]
