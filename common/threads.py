"""The environment that holds NumPy and PyTorch to one thread, set before they are loaded."""

ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
