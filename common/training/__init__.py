"""For students' own programs: progress, plots, experiments, numeric gradients, memory."""
