"""The ledger of a proof, which is committed, and the sample of it that each commit regrades."""
