"""The environment in which NumPy and PyTorch compute alike everywhere, set before they are loaded.

One thread, and no matrix unit (AMX): there are virtual machines that announce one, and then kill
the first process that uses it, as bfloat16 on the processor does.
"""

SAME_ARITHMETIC = {
    **dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"),
    "ONEDNN_MAX_CPU_ISA": "AVX512_CORE_FP16",
}
