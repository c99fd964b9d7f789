// RUN: spyre-opt -p outline-regions %s | filecheck %s
// RUN: spyre-opt -p outline-regions,inline-regions %s | filecheck %s --check-prefix=FLAT

// Three pieces of 32 ops that repeat themselves, each with a weight of its own; what all share, %c, is one parameter.

func.func @main(%x: tensor<2x4xf32>, %c: tensor<2x4xf32>, %a: tensor<2x4xf32>, %b: tensor<2x4xf32>, %d: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %0 = aten.add.Tensor(%x, %a) : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  %1 = aten.exp(%0) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %2 = aten.neg(%1) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %3 = aten.sigmoid(%2) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %4 = aten.tanh(%3) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %5 = aten.tanh(%4) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %6 = aten.sigmoid(%5) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %7 = aten.neg(%6) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %8 = aten.neg(%7) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %9 = aten.tanh(%8) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %10 = aten.sin(%9) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %11 = aten.abs(%10) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %12 = aten.abs(%11) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %13 = aten.sin(%12) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %14 = aten.tanh(%13) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %15 = aten.tanh(%14) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %16 = aten.abs(%15) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %17 = aten.cos(%16) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %18 = aten.sigmoid(%17) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %19 = aten.sigmoid(%18) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %20 = aten.cos(%19) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %21 = aten.abs(%20) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %22 = aten.abs(%21) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %23 = aten.sigmoid(%22) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %24 = aten.exp(%23) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %25 = aten.sin(%24) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %26 = aten.sin(%25) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %27 = aten.exp(%26) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %28 = aten.sigmoid(%27) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %29 = aten.sigmoid(%28) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %30 = aten.sin(%29) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %31 = aten.mul.Tensor(%30, %c) : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  %32 = aten.add.Tensor(%31, %b) : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  %33 = aten.exp(%32) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %34 = aten.neg(%33) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %35 = aten.sigmoid(%34) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %36 = aten.tanh(%35) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %37 = aten.tanh(%36) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %38 = aten.sigmoid(%37) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %39 = aten.neg(%38) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %40 = aten.neg(%39) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %41 = aten.tanh(%40) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %42 = aten.sin(%41) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %43 = aten.abs(%42) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %44 = aten.abs(%43) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %45 = aten.sin(%44) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %46 = aten.tanh(%45) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %47 = aten.tanh(%46) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %48 = aten.abs(%47) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %49 = aten.cos(%48) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %50 = aten.sigmoid(%49) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %51 = aten.sigmoid(%50) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %52 = aten.cos(%51) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %53 = aten.abs(%52) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %54 = aten.abs(%53) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %55 = aten.sigmoid(%54) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %56 = aten.exp(%55) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %57 = aten.sin(%56) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %58 = aten.sin(%57) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %59 = aten.exp(%58) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %60 = aten.sigmoid(%59) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %61 = aten.sigmoid(%60) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %62 = aten.sin(%61) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %63 = aten.mul.Tensor(%62, %c) : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  %64 = aten.add.Tensor(%63, %d) : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  %65 = aten.exp(%64) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %66 = aten.neg(%65) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %67 = aten.sigmoid(%66) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %68 = aten.tanh(%67) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %69 = aten.tanh(%68) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %70 = aten.sigmoid(%69) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %71 = aten.neg(%70) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %72 = aten.neg(%71) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %73 = aten.tanh(%72) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %74 = aten.sin(%73) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %75 = aten.abs(%74) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %76 = aten.abs(%75) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %77 = aten.sin(%76) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %78 = aten.tanh(%77) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %79 = aten.tanh(%78) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %80 = aten.abs(%79) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %81 = aten.cos(%80) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %82 = aten.sigmoid(%81) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %83 = aten.sigmoid(%82) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %84 = aten.cos(%83) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %85 = aten.abs(%84) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %86 = aten.abs(%85) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %87 = aten.sigmoid(%86) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %88 = aten.exp(%87) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %89 = aten.sin(%88) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %90 = aten.sin(%89) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %91 = aten.exp(%90) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %92 = aten.sigmoid(%91) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %93 = aten.sigmoid(%92) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %94 = aten.sin(%93) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %95 = aten.mul.Tensor(%94, %c) : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  func.return %95 : tensor<2x4xf32>
}

// CHECK:      func.func @main(%[[X:.*]]: {{.*}}, %[[C:.*]]: {{.*}}, %[[A:.*]]: {{.*}}, %[[B:.*]]: {{.*}}, %[[D:.*]]: tensor<2x4xf32>)
// CHECK-NEXT: %[[R0:.*]] = func.call @region(%[[X]], %[[A]], %[[C]]) : (tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
// CHECK-NEXT: %[[R1:.*]] = func.call @region(%[[R0]], %[[B]], %[[C]])
// CHECK-NEXT: %[[R2:.*]] = func.call @region(%[[R1]], %[[D]], %[[C]])
// CHECK-NEXT: func.return %[[R2]]
// CHECK:      func.func private @region(%[[P:.*]]: {{.*}}, %[[Q:.*]]: {{.*}}, %[[S:.*]]: tensor<2x4xf32>)
// CHECK-NEXT: aten.add.Tensor(%[[P]], %[[Q]])
// CHECK:      aten.mul.Tensor(%{{.*}}, %[[S]])
// CHECK-NEXT: func.return

// FLAT:     func.func @main
// FLAT:     aten.add.Tensor(%{{.*}}, %a)
// FLAT:     aten.add.Tensor(%{{.*}}, %b)
// FLAT:     aten.add.Tensor(%{{.*}}, %d)
// FLAT-NOT: func.call
// FLAT-NOT: func.func private
