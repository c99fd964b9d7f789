"""Why a row of the page has a large error, or steps of the host, where its reasons alone do not tell."""

from __future__ import annotations

_EXPERTS = (
    "the router's values choose the experts of every token, and the operator of ibm-fms that takes them is no "
    "composition of ATen operators, only code for the CPU and a kernel in Triton."
)
_PAGES = (
    "the operators of ibm-fms for paged attention read page numbers and lengths as values, and are no composition of "
    "ATen operators, only loops in Python."
)
_PAGED = ("granite", "granite_moe_hybrid", "granite_swa", "llama", "ministral3", "mistral", "qwen3", "gpt_bigcode")

NOTES: dict[str, str] = {
    **{f"fms/{name}": _EXPERTS for name in ("mixtral", "gpt_oss", "mixtral_decode", "gpt_oss_decode")},
    **{f"fms/{name}_paged": _PAGES for name in (*_PAGED, "mixtral", "gpt_oss")},
    "timm/fastvit_t8": (
        "rounding, which these weights amplify: exact numerics agree with eager to 6e-07. Rounding what each module of "
        "torch gives to the 10 binary digits of DLFloat16, in double precision, gives an error of 1.7e-02; with the "
        "weights that timm starts from it gives 1.9e-03, and the device 3.7e-03."
    ),
    "diffusers/flux": (
        "it asks for rotary angles in double precision, which the host computes. Its error is that of the step, an "
        "input that the model multiplies by 1000 and takes sines of: DLFloat16 has 10 binary digits, and 728.3 becomes "
        "729. That rounding alone, in double precision, gives an error of 6e-02, that of the other inputs 3e-04."
    ),
}
