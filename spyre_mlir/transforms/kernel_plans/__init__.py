"""Parts of pass `plan`: what kernels may do, which of them share rows, and bodies of loops."""
