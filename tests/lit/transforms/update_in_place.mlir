// RUN: spyre-opt -p update-in-place %s --split-input-file | filecheck %s

// Each call of the function of two layers writes a cache of its own, at the entry behind the position.

// CHECK-LABEL: func.func @main
// CHECK-NOT: spyre.loop.block
// CHECK-LABEL: func.func private @layers
func.func @main(%at: tensor<i64> {aten.name = "at", aten.kind = "input"}, %x: tensor<64xf16> {aten.name = "x", aten.kind = "input"},
    %a: tensor<128x64xf16> {aten.name = "a", aten.kind = "buffer"}, %b: tensor<128x64xf16> {aten.name = "b", aten.kind = "buffer"})
    -> (tensor<128x64xf16> {aten.mutates = "a"}, tensor<128x64xf16> {aten.mutates = "b"}) {
  %0 = func.call @layers(%x, %a, %at) : (tensor<64xf16>, tensor<128x64xf16>, tensor<i64>) -> tensor<128x64xf16>
  %1 = func.call @layers(%x, %b, %at) : (tensor<64xf16>, tensor<128x64xf16>, tensor<i64>) -> tensor<128x64xf16>
  func.return %0, %1 : tensor<128x64xf16>, tensor<128x64xf16>
}
func.func private @layers(%x: tensor<64xf16> {aten.kind = "input"}, %kept: tensor<128x64xf16> {aten.kind = "buffer"},
    %at: tensor<i64> {aten.kind = "input"}) -> tensor<128x64xf16> {
  %one = spyre.loop.constant 1.0 : f64 : tensor<i64>
  %next = spyre.loop.nest [] ins(%at[] : tensor<i64>, %one[] : tensor<i64>) -> [] : tensor<i64> {
  ^bb0(%p : i64, %q : i64):
    %s = arith.addi %p, %q : i64
    spyre.loop.yield %s : i64
  }
  %number = spyre.loop.nest [] ins(%next[] : tensor<i64>) -> [] : tensor<f32> {
  ^bb0(%p : i64):
    spyre.loop.yield %p : i64
  }
  %places = spyre.loop.constant #spyre.iota<0.0, 1.0> : tensor<128xf32>
  %here = spyre.loop.nest [d = 128] ins(%places[d] : tensor<128xf32>, %number[] : tensor<f32>) -> [d] : tensor<128xi1> {
  ^bb0(%p : f32, %q : f32):
    %s = arith.cmpf oeq, %p, %q : f32
    spyre.loop.yield %s : i1
  }
  // CHECK: [[BLOCK:%.*]] = spyre.loop.block %kept dim 0 at %at plus 1 : tensor<128x64xf16>, tensor<i64> -> tensor<64x64xf16>
  // CHECK: [[NEW:%.*]] = spyre.loop.nest [d = 64, e = 64] ins(%{{.*}}[d] : tensor<64xi1>, %x[e] : tensor<64xf16>, [[BLOCK]][d, e] : tensor<64x64xf16>)
  // CHECK: spyre.loop.put [[NEW]] into %kept dim 0 at %at plus 1 : tensor<64x64xf16>, tensor<128x64xf16>, tensor<i64> -> tensor<128x64xf16>
  %new = spyre.loop.nest [d = 128, e = 64] ins(%here[d] : tensor<128xi1>, %x[e] : tensor<64xf16>, %kept[d, e] : tensor<128x64xf16>) -> [d, e] : tensor<128x64xf16> {
  ^bb0(%p : i1, %q : f16, %r : f16):
    %s = spyre.loop.apply "where"(%p, %q, %r) : (i1, f16, f16) -> f16
    spyre.loop.yield %s : f16
  }
  func.return %new : tensor<128x64xf16>
}

// -----

// Both calls take one cache: its old value is wanted twice.

// CHECK-LABEL: func.func @main
// CHECK-NOT: spyre.loop.put
func.func @main(%at: tensor<i64> {aten.name = "at", aten.kind = "input"}, %x: tensor<64xf16> {aten.name = "x", aten.kind = "input"},
    %a: tensor<128x64xf16> {aten.name = "a", aten.kind = "buffer"}, %b: tensor<128x64xf16> {aten.name = "b", aten.kind = "buffer"})
    -> (tensor<128x64xf16> {aten.mutates = "a"}, tensor<128x64xf16>) {
  %0 = func.call @layers(%x, %a, %at) : (tensor<64xf16>, tensor<128x64xf16>, tensor<i64>) -> tensor<128x64xf16>
  %1 = func.call @layers(%x, %a, %at) : (tensor<64xf16>, tensor<128x64xf16>, tensor<i64>) -> tensor<128x64xf16>
  func.return %0, %1 : tensor<128x64xf16>, tensor<128x64xf16>
}
func.func private @layers(%x: tensor<64xf16> {aten.kind = "input"}, %kept: tensor<128x64xf16> {aten.kind = "buffer"},
    %at: tensor<i64> {aten.kind = "input"}) -> tensor<128x64xf16> {
  %one = spyre.loop.constant 1.0 : f64 : tensor<i64>
  %next = spyre.loop.nest [] ins(%at[] : tensor<i64>, %one[] : tensor<i64>) -> [] : tensor<i64> {
  ^bb0(%p : i64, %q : i64):
    %s = arith.addi %p, %q : i64
    spyre.loop.yield %s : i64
  }
  %number = spyre.loop.nest [] ins(%next[] : tensor<i64>) -> [] : tensor<f32> {
  ^bb0(%p : i64):
    spyre.loop.yield %p : i64
  }
  %places = spyre.loop.constant #spyre.iota<0.0, 1.0> : tensor<128xf32>
  %here = spyre.loop.nest [d = 128] ins(%places[d] : tensor<128xf32>, %number[] : tensor<f32>) -> [d] : tensor<128xi1> {
  ^bb0(%p : f32, %q : f32):
    %s = arith.cmpf oeq, %p, %q : f32
    spyre.loop.yield %s : i1
  }
  %new = spyre.loop.nest [d = 128, e = 64] ins(%here[d] : tensor<128xi1>, %x[e] : tensor<64xf16>, %kept[d, e] : tensor<128x64xf16>) -> [d, e] : tensor<128x64xf16> {
  ^bb0(%p : i1, %q : f16, %r : f16):
    %s = spyre.loop.apply "where"(%p, %q, %r) : (i1, f16, f16) -> f16
    spyre.loop.yield %s : f16
  }
  func.return %new : tensor<128x64xf16>
}

// -----

// The program returns an old value too.

// CHECK-LABEL: func.func @main
// CHECK-NOT: spyre.loop.put
func.func @main(%at: tensor<i64> {aten.name = "at", aten.kind = "input"}, %x: tensor<64xf16> {aten.name = "x", aten.kind = "input"},
    %a: tensor<128x64xf16> {aten.name = "a", aten.kind = "buffer"}, %b: tensor<128x64xf16> {aten.name = "b", aten.kind = "buffer"})
    -> (tensor<128x64xf16> {aten.mutates = "a"}, tensor<128x64xf16> {aten.mutates = "b"}, tensor<128x64xf16>) {
  %0 = func.call @layers(%x, %a, %at) : (tensor<64xf16>, tensor<128x64xf16>, tensor<i64>) -> tensor<128x64xf16>
  %1 = func.call @layers(%x, %b, %at) : (tensor<64xf16>, tensor<128x64xf16>, tensor<i64>) -> tensor<128x64xf16>
  func.return %0, %1, %a : tensor<128x64xf16>, tensor<128x64xf16>, tensor<128x64xf16>
}
func.func private @layers(%x: tensor<64xf16> {aten.kind = "input"}, %kept: tensor<128x64xf16> {aten.kind = "buffer"},
    %at: tensor<i64> {aten.kind = "input"}) -> tensor<128x64xf16> {
  %one = spyre.loop.constant 1.0 : f64 : tensor<i64>
  %next = spyre.loop.nest [] ins(%at[] : tensor<i64>, %one[] : tensor<i64>) -> [] : tensor<i64> {
  ^bb0(%p : i64, %q : i64):
    %s = arith.addi %p, %q : i64
    spyre.loop.yield %s : i64
  }
  %number = spyre.loop.nest [] ins(%next[] : tensor<i64>) -> [] : tensor<f32> {
  ^bb0(%p : i64):
    spyre.loop.yield %p : i64
  }
  %places = spyre.loop.constant #spyre.iota<0.0, 1.0> : tensor<128xf32>
  %here = spyre.loop.nest [d = 128] ins(%places[d] : tensor<128xf32>, %number[] : tensor<f32>) -> [d] : tensor<128xi1> {
  ^bb0(%p : f32, %q : f32):
    %s = arith.cmpf oeq, %p, %q : f32
    spyre.loop.yield %s : i1
  }
  %new = spyre.loop.nest [d = 128, e = 64] ins(%here[d] : tensor<128xi1>, %x[e] : tensor<64xf16>, %kept[d, e] : tensor<128x64xf16>) -> [d, e] : tensor<128x64xf16> {
  ^bb0(%p : i1, %q : f16, %r : f16):
    %s = spyre.loop.apply "where"(%p, %q, %r) : (i1, f16, f16) -> f16
    spyre.loop.yield %s : f16
  }
  func.return %new : tensor<128x64xf16>
}

// -----

// The position is a tensor that the host does not have.

// CHECK-LABEL: func.func @main
// CHECK-NOT: spyre.loop.put
func.func @main(%at: tensor<i64> {aten.name = "at", aten.kind = "input"}, %x: tensor<64xf16> {aten.name = "x", aten.kind = "input"},
    %a: tensor<128x64xf16> {aten.name = "a", aten.kind = "buffer"}, %b: tensor<128x64xf16> {aten.name = "b", aten.kind = "buffer"})
    -> (tensor<128x64xf16> {aten.mutates = "a"}, tensor<128x64xf16> {aten.mutates = "b"}) {
  %0 = func.call @layers(%x, %a, %at) : (tensor<64xf16>, tensor<128x64xf16>, tensor<i64>) -> tensor<128x64xf16>
  %1 = func.call @layers(%x, %b, %at) : (tensor<64xf16>, tensor<128x64xf16>, tensor<i64>) -> tensor<128x64xf16>
  func.return %0, %1 : tensor<128x64xf16>, tensor<128x64xf16>
}
func.func private @layers(%x: tensor<64xf16> {aten.kind = "input"}, %kept: tensor<128x64xf16> {aten.kind = "buffer"},
    %at: tensor<i64>) -> tensor<128x64xf16> {
  %one = spyre.loop.constant 1.0 : f64 : tensor<i64>
  %next = spyre.loop.nest [] ins(%at[] : tensor<i64>, %one[] : tensor<i64>) -> [] : tensor<i64> {
  ^bb0(%p : i64, %q : i64):
    %s = arith.addi %p, %q : i64
    spyre.loop.yield %s : i64
  }
  %number = spyre.loop.nest [] ins(%next[] : tensor<i64>) -> [] : tensor<f32> {
  ^bb0(%p : i64):
    spyre.loop.yield %p : i64
  }
  %places = spyre.loop.constant #spyre.iota<0.0, 1.0> : tensor<128xf32>
  %here = spyre.loop.nest [d = 128] ins(%places[d] : tensor<128xf32>, %number[] : tensor<f32>) -> [d] : tensor<128xi1> {
  ^bb0(%p : f32, %q : f32):
    %s = arith.cmpf oeq, %p, %q : f32
    spyre.loop.yield %s : i1
  }
  %new = spyre.loop.nest [d = 128, e = 64] ins(%here[d] : tensor<128xi1>, %x[e] : tensor<64xf16>, %kept[d, e] : tensor<128x64xf16>) -> [d, e] : tensor<128x64xf16> {
  ^bb0(%p : i1, %q : f16, %r : f16):
    %s = spyre.loop.apply "where"(%p, %q, %r) : (i1, f16, f16) -> f16
    spyre.loop.yield %s : f16
  }
  func.return %new : tensor<128x64xf16>
}

// -----

// A negative position counts from the end.

// CHECK-LABEL: func.func @main
// CHECK: [[BLOCK:%.*]] = spyre.loop.block %a dim 0 at %at from_end : tensor<128x64xf16>, tensor<1xi64> -> tensor<64x64xf16>
// CHECK: spyre.loop.put %{{.*}} into %a dim 0 at %at from_end :
func.func @main(%at: tensor<1xi64> {aten.name = "at", aten.kind = "input"}, %x: tensor<64xf16> {aten.name = "x", aten.kind = "input"},
    %a: tensor<128x64xf16> {aten.name = "a", aten.kind = "buffer"}) -> (tensor<128x64xf16> {aten.mutates = "a"}) {
  %zero = spyre.loop.constant 0.0 : f64 : tensor<i64>
  %extent = spyre.loop.constant 128.0 : f64 : tensor<i64>
  %below = spyre.loop.nest [] ins(%at[0] : tensor<1xi64>, %zero[] : tensor<i64>) -> [0] : tensor<1xi1> {
  ^bb0(%p : i64, %q : i64):
    %s = arith.cmpi slt, %p, %q : i64
    spyre.loop.yield %s : i1
  }
  %more = spyre.loop.nest [] ins(%at[0] : tensor<1xi64>, %extent[] : tensor<i64>) -> [0] : tensor<1xi64> {
  ^bb0(%p : i64, %q : i64):
    %s = arith.addi %p, %q : i64
    spyre.loop.yield %s : i64
  }
  %number = spyre.loop.nest [] ins(%below[0] : tensor<1xi1>, %more[0] : tensor<1xi64>, %at[0] : tensor<1xi64>) -> [0] : tensor<1xi64> {
  ^bb0(%p : i1, %q : i64, %r : i64):
    %s = spyre.loop.apply "where"(%p, %q, %r) : (i1, i64, i64) -> i64
    spyre.loop.yield %s : i64
  }
  %places = spyre.loop.constant #spyre.iota<0.0, 1.0> : tensor<128xi64>
  %here = spyre.loop.nest [d = 128] ins(%places[d] : tensor<128xi64>, %number[0] : tensor<1xi64>) -> [d] : tensor<128xi1> {
  ^bb0(%p : i64, %q : i64):
    %s = arith.cmpi eq, %p, %q : i64
    spyre.loop.yield %s : i1
  }
  %new = spyre.loop.nest [d = 128, e = 64] ins(%here[d] : tensor<128xi1>, %x[e] : tensor<64xf16>, %a[d, e] : tensor<128x64xf16>) -> [d, e] : tensor<128x64xf16> {
  ^bb0(%p : i1, %q : f16, %r : f16):
    %s = spyre.loop.apply "where"(%p, %q, %r) : (i1, f16, f16) -> f16
    spyre.loop.yield %s : f16
  }
  func.return %new : tensor<128x64xf16>
}

// -----

// A number that is added to negative positions and is not the extent: the place is another one.

// CHECK-LABEL: func.func @main
// CHECK-NOT: spyre.loop.put
func.func @main(%at: tensor<1xi64> {aten.name = "at", aten.kind = "input"}, %x: tensor<64xf16> {aten.name = "x", aten.kind = "input"},
    %a: tensor<128x64xf16> {aten.name = "a", aten.kind = "buffer"}) -> (tensor<128x64xf16> {aten.mutates = "a"}) {
  %zero = spyre.loop.constant 0.0 : f64 : tensor<i64>
  %extent = spyre.loop.constant 64.0 : f64 : tensor<i64>
  %below = spyre.loop.nest [] ins(%at[0] : tensor<1xi64>, %zero[] : tensor<i64>) -> [0] : tensor<1xi1> {
  ^bb0(%p : i64, %q : i64):
    %s = arith.cmpi slt, %p, %q : i64
    spyre.loop.yield %s : i1
  }
  %more = spyre.loop.nest [] ins(%at[0] : tensor<1xi64>, %extent[] : tensor<i64>) -> [0] : tensor<1xi64> {
  ^bb0(%p : i64, %q : i64):
    %s = arith.addi %p, %q : i64
    spyre.loop.yield %s : i64
  }
  %number = spyre.loop.nest [] ins(%below[0] : tensor<1xi1>, %more[0] : tensor<1xi64>, %at[0] : tensor<1xi64>) -> [0] : tensor<1xi64> {
  ^bb0(%p : i1, %q : i64, %r : i64):
    %s = spyre.loop.apply "where"(%p, %q, %r) : (i1, i64, i64) -> i64
    spyre.loop.yield %s : i64
  }
  %places = spyre.loop.constant #spyre.iota<0.0, 1.0> : tensor<128xi64>
  %here = spyre.loop.nest [d = 128] ins(%places[d] : tensor<128xi64>, %number[0] : tensor<1xi64>) -> [d] : tensor<128xi1> {
  ^bb0(%p : i64, %q : i64):
    %s = arith.cmpi eq, %p, %q : i64
    spyre.loop.yield %s : i1
  }
  %new = spyre.loop.nest [d = 128, e = 64] ins(%here[d] : tensor<128xi1>, %x[e] : tensor<64xf16>, %a[d, e] : tensor<128x64xf16>) -> [d, e] : tensor<128x64xf16> {
  ^bb0(%p : i1, %q : f16, %r : f16):
    %s = spyre.loop.apply "where"(%p, %q, %r) : (i1, f16, f16) -> f16
    spyre.loop.yield %s : f16
  }
  func.return %new : tensor<128x64xf16>
}
