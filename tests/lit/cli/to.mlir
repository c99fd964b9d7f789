// RUN: spyre-opt %s --to choose-layouts | filecheck %s --check-prefix LAYOUTS
// RUN: spyre-opt %s --to choose-layouts | spyre-opt --to superdsc | filecheck %s --check-prefix FILES
// RUN: spyre-opt %s --to superdsc | filecheck %s --check-prefix FILES
// RUN: spyre-opt %s --to plan -p 'plan{loops=false}' | spyre-opt --to plan --after order-batches | filecheck %s --check-prefix KERNELS
// RUN: spyre-opt %s --to plan -p 'plan{enabled=false}' | filecheck %s --check-prefix UNPLANNED
// RUN: spyre-run %s --to superdsc --time | filecheck %s --check-prefix TIME
// RUN: not spyre-opt %s --to superdsc -p canonicalize 2>&1 | filecheck %s --check-prefix OTHER
// RUN: not spyre-opt %s --after plan 2>&1 | filecheck %s --check-prefix ALONE

// A program is printed at any point, and goes on from there.

func.func @main(%x: tensor<4x64xf16>) -> tensor<4x64xf16> {
  %0 = aten.relu(%x) : (tensor<4x64xf16>) -> tensor<4x64xf16>
  func.return %0 : tensor<4x64xf16>
}

// LAYOUTS: spyre.loop.nest {{.*}}spyre.layout = #spyre.layout<lanes d1, stick 1, order [1, 0]>
// FILES:   superdsc.sdsc
// KERNELS: spyre.kernel.compute "relufwd" [d0 = 4 over 4
// UNPLANNED: spyre.kernel.compute "relufwd" [d0 = 4, d1 = 64]
// TIME:    time: {{.*}} us for 1 kernel
// OTHER:   error: [SPY-I002] 'canonicalize' is not among the passes on the way to superdsc
// ALONE:   error: [SPY-I002] --after goes with --to
