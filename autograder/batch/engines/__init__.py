"""Engines that grade a batch's submissions: on this machine, or on a Ray cluster."""
