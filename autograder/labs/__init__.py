"""Makes the labs: from one master, the student's notebook, the solved one, and Otter's zip."""
