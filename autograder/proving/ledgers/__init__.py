"""Proof ledgers (solutions/aN/proof.json), and the sample that each commit regrades."""
