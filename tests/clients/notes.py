"""Why a row of the page has a large error, or steps of the host, where its reasons alone do not tell."""

from __future__ import annotations

NOTES: dict[str, str] = {
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
