// RUN: spyre-run %s --probe list --probe %%twice --output %t 2>&1 | filecheck %s --check-prefix=LIST
// RUN: not spyre-run %s --probe nothing 2>&1 | filecheck %s --check-prefix=BAD
// RUN: not spyre-run %s --bisect 2>&1 | filecheck %s --check-prefix=ALONE

// LIST: %twice  2x64  aten.add.Tensor
// LIST-NEXT: %result  2x64  aten.relu
// LIST-NEXT: result0: 2x64
// LIST-NEXT: %twice: 2x64
// BAD: error: [SPY-I002] no value is called 'nothing'
// BAD: try: name one of %twice, %result
// ALONE: there are no levels to compare the files with
func.func @main(%x: tensor<2x64xf32>) -> tensor<2x64xf32> {
  %twice = aten.add.Tensor(%x, %x) : (tensor<2x64xf32>, tensor<2x64xf32>) -> tensor<2x64xf32>
  %result = aten.relu(%twice) : (tensor<2x64xf32>) -> tensor<2x64xf32>
  func.return %result : tensor<2x64xf32>
}
