"""Parts of passes `plan` and `materialize-plan`: loops as notes at kernels, and the loops that such notes say."""
