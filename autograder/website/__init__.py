"""Renders the course's site (`make site`): manual, handouts, labs, the proof's figures."""
