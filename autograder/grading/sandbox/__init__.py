"""The sandbox: where student code runs, and how the judge talks to it."""
