"""A report opened in a browser that records errors."""

from autograder.batch.batch_records import read_batch

COUNT = 60


class WatchedReport:
    """A page, all that it asked of a network, and all that went wrong in it."""

    def __init__(self, browser, folder, **options):
        self.requests, self.errors = [], []
        self.context = browser.new_context(
            **{"viewport": {"width": 1300, "height": 900}, **options}
        )
        self.page = self.context.new_page()
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("console", lambda message: self.errors.append(message.text))
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("dialog", lambda dialog: self.errors.append(dialog.message))
        self.address = (folder / "report.html").as_uri()
        self.page.goto(self.address)

    def names(self):
        return self.page.locator("#rows td.who a").all_inner_texts()

    def column(self, number):
        return self.page.locator(f"#rows tr td:nth-child({number})").all_inner_texts()


def result_of(folder, name):
    """A student's entry and result."""
    batch = read_batch(folder)
    entry = next(e for e in batch.entries if e.students and e.students[0].name == name)
    return entry, batch.result(entry)
