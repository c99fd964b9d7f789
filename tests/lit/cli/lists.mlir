// RUN: spyre-opt --list-passes | filecheck %s --check-prefix=PASSES
// RUN: spyre-opt --list-ops | filecheck %s --check-prefix=OPS

// PASSES: {{^}}pass{{.}}from{{.}}options{{.}}meaning
// PASSES-NEXT: assign-pool{{.}}spyre
// PASSES-NEXT: carry-in-place{{.}}spyre
// PASSES-NEXT: choose-layouts{{.}}spyre
// PASSES: {{^}}convert-spyre-kernel-to-superdsc{{.}}spyre{{.}}addresses=symbolic|concrete
// PASSES: {{^}}cse{{.}}xdsl
// OPS: {{^}}op{{.}}support{{.}}family{{.}}hardware function{{.}}unit{{.}}formats
// OPS: {{^}}aten.mm{{.}}native{{.}}contraction{{.}}batchmatmul{{.}}pt{{.}}DL16
