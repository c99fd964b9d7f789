// RUN: spyre-opt %s --verify-diagnostics --split-input-file

func.func @nest_c1(%a: tensor<4xf32>) {
  // expected-error@+1 {{input 0: index i + 1 runs over 1 to 4, dimension 0 has 4}}
  %0 = spyre.loop.nest [i = 4] ins(%a[i + 1] : tensor<4xf32>) -> [i] : tensor<4xf32> {
  ^bb0(%x: f32):
    spyre.loop.yield %x : f32
  }
  func.return
}

// -----

func.func @nest_c2(%a: tensor<4xf32>) {
  // expected-error@+1 {{the body of a nest is one scalar operation on all its arguments, in order}}
  %0 = spyre.loop.nest [i = 4] ins(%a[i] : tensor<4xf32>) -> [i] : tensor<4xf32> {
  ^bb0(%x: f32):
    %y = arith.negf %x : f32
    %z = arith.negf %y : f32
    spyre.loop.yield %z : f32
  }
  func.return
}

// -----

func.func @nest_c2_unknown(%a: tensor<4xf32>) {
  // expected-error@+1 {{no hardware function computes math.sin}}
  %0 = spyre.loop.nest [i = 4] ins(%a[i] : tensor<4xf32>) -> [i] : tensor<4xf32> {
  ^bb0(%x: f32):
    %z = math.sin %x : f32
    spyre.loop.yield %z : f32
  }
  func.return
}

// -----

func.func @nest_c3(%a: tensor<4x3xf32>) {
  // expected-error@+1 {{j must be combined: the result's map lacks them}}
  %0 = spyre.loop.nest [i = 4, j = 3] ins(%a[i, j] : tensor<4x3xf32>) -> [i] : tensor<4xf32> {
  ^bb0(%x: f32):
    spyre.loop.yield %x : f32
  }
  func.return
}

// -----

func.func @nest_combine(%a: tensor<4x3xf32>) {
  // expected-error@+1 {{cannot combine with 'arith.mulf', expected one of arith.addf, arith.maximumf, arith.minimumf}}
  %0 = spyre.loop.nest [i = 4, j = 3] ins(%a[i, j] : tensor<4x3xf32>) -> [i] : tensor<4xf32> reduce "arith.mulf" {
  ^bb0(%x: f32):
    spyre.loop.yield %x : f32
  }
  func.return
}

// -----

func.func @nest_c4(%a: tensor<4xf32>, %d: tensor<5xf32>) {
  // expected-error@+1 {{the destination is tensor<5xf32>, the result tensor<4xf32>}}
  %0 = "spyre.loop.nest"(%a, %d) <{space = #spyre.space<i = 4>, maps = [#spyre.map<i>, #spyre.map<i>], operandSegmentSizes = array<i32: 1, 1>}> ({
  ^bb0(%x: f32):
    spyre.loop.yield %x : f32
  }) : (tensor<4xf32>, tensor<5xf32>) -> tensor<4xf32>
  func.return
}

// -----

func.func @unknown_dimension(%a: tensor<4xf32>) {
  // expected-error@+1 {{the map of input 0 uses 'j', the space has i}}
  %0 = spyre.loop.nest [i = 4] ins(%a[j] : tensor<4xf32>) -> [i] : tensor<4xf32> {
  ^bb0(%x: f32):
    spyre.loop.yield %x : f32
  }
  func.return
}

// -----

func.func @gather_c1(%ids: tensor<3xi64>, %t: tensor<4x8xf32>) {
  // expected-error@+1 {{axis 0 must be a dimension of the table whose expression is 0}}
  %0 = spyre.loop.gather [s = 3, h = 8] rows(%ids[s] : tensor<3xi64>) of axis 0 in %t[s, h] : tensor<4x8xf32> -> [s, h] : tensor<3x8xf32>
  func.return
}

// -----

func.func @apply(%a: tensor<4xf32>) {
  %0 = spyre.loop.nest [i = 4] ins(%a[i] : tensor<4xf32>) -> [i] : tensor<4xf32> {
  ^bb0(%x: f32):
    // expected-error@+1 {{no op-table entry is called 'gulp'; known:}}
    %z = spyre.loop.apply "gulp"(%x) : (f32) -> f32
    spyre.loop.yield %z : f32
  }
  func.return
}

// -----

func.func @block_c1(%x: tensor<2x256xf16>, %at: tensor<1xi64>) {
  // expected-error@+1 {{a block of tensor<2x256xf16> along dimension 1 cannot be tensor<1x64xf16>}}
  %b = spyre.loop.block %x dim 1 at %at : tensor<2x256xf16>, tensor<1xi64> -> tensor<1x64xf16>
  func.return
}

// -----

func.func @block_c2(%x: tensor<2x250xf16>, %at: tensor<1xi64>) {
  // expected-error@+1 {{blocks of 64 do not divide dimension 1, which has 250 entries}}
  %b = spyre.loop.block %x dim 1 at %at : tensor<2x250xf16>, tensor<1xi64> -> tensor<2x64xf16>
  func.return
}

// -----

func.func @put_c3(%b: tensor<2x64xf16>, %x: tensor<2x256xf16>, %at: tensor<1xf32>) {
  // expected-error@+1 {{the position is tensor<1xf32>, expected a tensor of one integer}}
  %y = spyre.loop.put %b into %x dim 1 at %at : tensor<2x64xf16>, tensor<2x256xf16>, tensor<1xf32> -> tensor<2x256xf16>
  func.return
}
